"""`consan report`: renders a stored run again. The status is 0: findings count in the command that made the run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from consan import late, options
from consan._errors import UsageError
from consan.commands.parts.deliver import deliver, shown_by
from consan.commands.parts.output import choose_format
from consan.files import check_writable, read_file, write_file
from consan.reports.model import Report
from consan.reports.source.sources import embed, of_lines, within
from consan.reports.verdict.baseline import KnownFinding
from consan.reports.verdict.suppression import suppress, to_toml
from consan.suppressions import baseline, stored, unused


class ReportCommand:
    """Render a stored run."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        stored = "a run that `consan run` or `consan check -o FILE.json` stored; or what `consan stress` or `reduce` did, as text"
        parser.add_argument("file", metavar="FILE", help=stored)
        shown = "instead of a report, print [[tool.consan.suppressions]] for the findings, to be completed with reasons"
        parser.add_argument("--emit-suppression", dest="emit", action="store_true", help=shown)
        root = "show lines of the sources below this folder where the run has not stored them; otherwise no other file is read"
        parser.add_argument("--source-root", dest="root", metavar="DIR", help=root)
        parser.add_argument("--diff", metavar="OLD", help="show what FILE has found and the stored run OLD has not, and what is gone")
        options.add(parser, (*options.OUTPUT, *options.PICTURE, *options.TERMINAL), "output")

    def run(self, args: argparse.Namespace) -> int:
        """Load and render."""
        chosen = choose_format("text" if args.emit else args.format, args.output)
        check_writable(args.output)
        if _shown_by_triage(args.file, chosen, args.notes):
            return 0
        report = _with_lines(stored(args.file), args.root)
        if args.diff:
            report = _compared(report, baseline(args.diff))
        if not args.emit:
            return deliver(report, chosen, args.output, shown_by(args), stored=args.file)
        if args.output is None:
            sys.stdout.write(to_toml(report, os.getcwd()))
        else:
            write_file(args.output, to_toml(report, os.getcwd()))
        return 0


def _compared(report: Report, rules: Sequence[KnownFinding]) -> Report:
    """The report, in which findings of an earlier one do not count. Says which of those are gone."""
    marked = suppress(report, rules, of_lines(report.sources))
    for line in unused(rules, marked):
        print(f"consan: {line}", file=sys.stderr)
    return marked


def _with_lines(report: Report, root: str | None) -> Report:
    """The report with the lines that it lacks, from the user's folder. Raises UsageError if there is no such folder."""
    if root is None:
        return report
    if not os.path.isdir(root):
        raise UsageError(f"--source-root: there is no folder {root}")
    return replace(report, sources={**embed(report, within(Path(root))).sources, **report.sources})


def _shown_by_triage(name: str, chosen: str, notes: bool) -> bool:
    """Whether the file holds a campaign or a schedule. Those have only a text form."""
    if chosen != "text" or '"schema": "consan.report/' in read_file(name)[:200]:
        return False
    try:
        document = late.schedule_file.load(name)
    except UsageError:
        return False
    if document["schema"] not in late.again.KNOWN:
        return False
    with late.schedule_file.refused(name, document["schema"]):
        late.show.show_document(document, sys.stdout, notes=notes)
    return True
