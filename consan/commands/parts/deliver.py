"""Judges a session's report and writes it to a file or standard output, for check, report and run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from consan import late
from consan._errors import ExitCode, NotSupported
from consan.commands.parts.output import keep
from consan.reports import FormatError, render
from consan.reports.counts import plural
from consan.reports.model import Report
from consan.suppressions import Place, finish, settled

if TYPE_CHECKING:
    from consan.reports.verdict.suppression import Rule
    from consan.session.session import Session


def judged(session: Session, rules: Sequence[Rule], status: int, merge: Callable[[Report], Report] = lambda own: own) -> Report:
    """The report of a session whose program ended with `status`, with source lines and suppressions. Warns of unused ones.

    `merge`: with the reports of child processes.
    """
    report, status = _reported(session, status)
    report = merge(report)
    places = session.places(report)
    return settled(report, places, rules, status)


def judged_launch(session: Session, rules: Sequence[Rule], status: int) -> tuple[Report, set[Place]]:
    """The report of a launch that the caller examines further, and the lines that were watched: the caller warns of suppressions."""
    report, status = _reported(session, status)
    places = session.places(report)
    return finish(replace(report, exit=status), rules), places


def _reported(session: Session, status: int) -> tuple[Report, int]:
    """The report and the status. Ctrl-C during the wait for the device stops the device, not the report."""
    try:
        return session.report(), status
    except KeyboardInterrupt:
        return session.report(), int(ExitCode.INTERRUPTED)


def shown_by(args: argparse.Namespace) -> dict[str, bool]:
    """How much of a report the options of a command let the text show."""
    return {name: getattr(args, name, False) for name in ("notes", "timeline", "details")}


def deliver(report: Report, chosen: str, output: str | None, shown: Mapping[str, bool], *, stored: str | None = None) -> int:
    """Print the report, or write it and say so in one line. If writing fails, print it and return a status other than 0.

    `shown`: how much of it, as `shown_by` gives it.
    """
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
