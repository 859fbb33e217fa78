"""`consan reduce FILE`: reduces a failure that `consan stress` found to the fewest delays, and stores it for `consan replay`.

The search is in consan/triage/minimise.py. Ctrl-C keeps the best schedule so far: it fails, but may have needless delays.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from consan import late, options
from consan._errors import Interrupted, UsageError
from consan.commands.parts.output import JSON, add_output, chosen_output
from consan.commands.stress import INTERRUPTED, add_worker_options, workers_of
from consan.files import check_writable, write_file
from consan.reports.model import EXIT_VIOLATIONS
from consan.reports.verdict.coverage import installed_version

if TYPE_CHECKING:
    from consan.triage.minimise import Minimiser
    from consan.triage.outcome import Json


class ReduceCommand:
    """Shrink a failing schedule."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="file written by consan stress")
        group = parser.add_argument_group("what to reduce [a wrong result, else the rarest finding]")
        group.add_argument("--seed", dest="chosen", metavar="N", help="the failing seed [the first that stress lists]")
        group.add_argument("--finding", metavar="N", help="the N-th finding of the table")
        add_worker_options(parser.add_argument_group("runs"))
        group = add_output(parser, (JSON,), "store the schedule in this file [FILE.schedule.json]")
        options.add_to(group, options.TERMINAL)

    def run(self, args: argparse.Namespace) -> int:
        """Search, store, show."""
        chosen_output(args)
        document = late.again.stress_document(args.file)
        number = None if args.finding is None else options.read_as("--finding", args.finding, options.read_positive)
        with late.schedule_file.refused(args.file, document["schema"]):
            failure, seeds = late.minimise.failure_of(document, number)
        stored = str(Path(args.file_out or f"{args.file.removesuffix('.json')}.schedule.json").absolute())
        check_writable(stored)
        workers = workers_of(args)
        job = late.again.job_again(args.file, document, args.rules)
        seed = seeds[0] if args.chosen is None else options.read_as("--seed", args.chosen, options.read_count)
        with workers, late.show.Bar() as bar:
            search = late.minimise.Minimiser(job, failure, seed, workers, bar, tuple(document["kernels"]))
            search.run()
            result = _document(args, search)
        write_file(stored, json.dumps(result, indent=1) + "\n")
        late.show.show_schedule(result, sys.stdout)
        print(f"stored: {stored}; next: consan replay {stored}")
        return INTERRUPTED if search.partial else EXIT_VIOLATIONS


def _document(args: argparse.Namespace, search: Minimiser) -> Json:
    if search.partial and not search.recorded:
        raise Interrupted("interrupted before the failure was repeated: there is nothing to keep")
    outcome = search.last()
    if not search.failure(outcome):
        raise UsageError(
            f"the reduced schedule does not fail when run again ({outcome.status} {outcome.detail}): is the program itself random?"
        )
    about = {"recorded": search.recorded, "runs": search.runs, "seconds": round(search.seconds, 3)}
    more = {"partial": search.partial, "search": about, "consan": installed_version(), "command": ["consan", *args.argv]}
    return late.schedule_file.write(search.job.subject, search.failure, search.baseline, search.decisions, outcome, **more)
