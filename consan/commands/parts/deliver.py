"""Judges a session's report and writes it to a file or standard output, for check, report and run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from consan import late
from consan._errors import ExitCode, NotSupported
from consan.commands.parts.output import keep
from consan.process.children import merged
from consan.reports import FormatError, render
from consan.reports.model import Report, plural
from consan.session.spent import spent
from consan.suppressions import comments_at, finish, unused

if TYPE_CHECKING:
    from consan.reports.verdict.suppression import Rule
    from consan.session.session import Session


def judged(session: Session, rules: Sequence[Rule], status: int, children: Path | None = None, own: str = "") -> Report:
    """The report of a session whose program ended with `status`, with source lines and suppressions.

    `children`: folder with the reports of child processes, and of this one under the stem `own`. Unused suppressions are warned of.
    Ctrl-C during the wait for the device stops the device, not the report.
    """
    try:
        report = session.report()
    except KeyboardInterrupt:
        report, status = session.report(), int(ExitCode.INTERRUPTED)
    if children is not None:
        report = merged(replace(report, cost=spent()), children, own)
    return settled(report, session.places(report), rules, status)


def settled(report: Report, places: Iterable[tuple[str, int]], rules: Sequence[Rule], status: int) -> Report:
    """A report with source lines and suppressions. Warns of unused ones, also of comments at these places."""
    report = finish(replace(report, exit=status), rules)
    for warning in unused([*rules, *comments_at(places)], report):
        print(f"consan: warning: {warning}", file=sys.stderr)
    return report


def deliver(
    report: Report, chosen: str, output: str | None, *, stored: str | None = None, notes: bool = False, timeline: bool = False
) -> int:
    """Print the report, or write it and say so in one line. If writing fails, print it and return a status other than 0.

    `notes`: print findings of severity note in full. `timeline`: draw each finding as lanes of time.
    """
    shown = {"notes": notes, "timeline": timeline}
    try:
        if output is not None:
            return _write(report, chosen, output, shown)
        _print(report, chosen, shown, stored)
    except FormatError as error:
        raise NotSupported(str(error)) from None
    return 0


def _print(report: Report, chosen: str, shown: Mapping[str, bool], stored: str | None = None) -> None:
    if chosen == "text":
        late.text_report.show(report, sys.stdout, stored=stored, **shown)
    else:
        sys.stdout.write(render(report, chosen))


def _write(report: Report, chosen: str, output: str, shown: Mapping[str, bool]) -> int:
    if not keep(output, render(report, chosen, **shown)):
        _print(report, chosen, shown)  # the findings must not be lost with the file
        return int(ExitCode.USAGE)
    print(f"verdict: {report.verdict}, {plural(len(report.active), 'finding')}; {chosen} report in {output}")
    return 0
