"""`consan replay FILE`: repeats a failure from a schedule of `consan reduce`, or from a seed of a `consan stress` campaign.

The same text, arguments and decisions give the same run. If the text has changed (source, compiler or consan), replay
fails with one line, because decisions refer to places in the text that ran.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan import options
from consan.files import check_writable, write_file
from consan.reports.model import EXIT_VIOLATIONS

if TYPE_CHECKING:
    pass

NOT_REPRODUCED = 1


class ReplayCommand:
    """Run a stored schedule again."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="file written by consan reduce or consan stress")
        parser.add_argument("--seed", dest="chosen", metavar="N", help="for a file of stress: the seed [the first that failed]")
        parser.add_argument("--confirm", default="3", metavar="N", help="run it N times [3]")
        parser.add_argument("-o", "--output", metavar="FILE", help="write the report of the run, as JSON, to this file")
        options.add(parser, options.TERMINAL, "output")

    def run(self, args: argparse.Namespace) -> int:
        """Run, compare, show."""
        from consan.triage import again
        from consan.triage.show import show_replay

        times = options.read_as("--confirm", args.confirm, options.read_positive)
        check_writable(args.output)
        output = None if args.output is None else str(Path(args.output).absolute())  # the run changes to the campaign's folder
        data = again.any_document(args.file)
        stored = again.stored_of(args.file, data, args.chosen)
        job = again.job_again(args.file, data, args.rules)
        outcomes = again.replay(job, stored, times)
        same = sum(stored.failure(outcome) and outcome.result == stored.result for outcome in outcomes)
        report = outcomes[0].report
        assert report is not None
        report = replace(report, seed=stored.seed, command=("consan", *args.argv))
        if output is not None:
            write_file(output, report.to_json())
        show_replay(data, outcomes, report, sys.stdout)
        print(f"{'reproduced' if same == times else 'NOT reproduced'}: {same} of {times} times: {stored.failure.text}")
        return EXIT_VIOLATIONS if same == times else NOT_REPRODUCED
