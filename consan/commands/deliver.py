"""What becomes of a session's report: judged, then to a file or standard output in the format asked for. For check, report, run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from consan._errors import NotSupported
from consan.commands.base import write_file
from consan.reports import FORMATS, FormatError, render, text
from consan.reports.model import Report, plural
from consan.suppressions import comments_at, finish, unused

if TYPE_CHECKING:
    from consan.reports.suppress import Rule
    from consan.session import Session

# `-o run.json` without --format means JSON.
_BY_SUFFIX: Final = {".json": "json", ".sarif": "sarif", ".html": "html", ".htm": "html"}


def choose_format(given: str | None, output: str | None) -> str:
    """The format asked for, else what the output's name suggests, else text; NotSupported when it has no renderer."""
    chosen = given or _BY_SUFFIX.get(Path(output or "").suffix, "text")
    if chosen not in FORMATS:
        raise NotSupported(f"--format: {chosen} is not available yet; choose from {', '.join(FORMATS)}")
    return chosen


def judged(session: Session, rules: Sequence[Rule]) -> Report:
    """The report of a session with its source lines, and suppressions applied; those that covered nothing are warned of."""
    report = finish(session.report(), rules)
    for warning in unused([*rules, *comments_at(session.places(report))], report):
        print(f"consan: warning: {warning}", file=sys.stderr)
    return report


def deliver(report: Report, chosen: str, output: str | None, *, stored: str | None = None) -> None:
    """Print the report, or write it and say so in one line."""
    try:
        if output is not None:
            write_file(output, render(report, chosen))
            print(f"verdict: {report.verdict}, {plural(len(report.active), 'finding')}; {chosen} report in {output}")
        elif chosen == "text":
            text.show(report, sys.stdout, stored=stored)
        else:
            sys.stdout.write(render(report, chosen))
    except FormatError as error:
        raise NotSupported(str(error)) from None
