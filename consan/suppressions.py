"""Applies the suppressions of a run, and its baseline, to its report, and lists those that matched nothing.

A comment is unused if its line was watched (the kernel was launched and has an instruction there) and no
finding matched. A rule of pyproject.toml is unused if no finding of the run matched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from consan._errors import UsageError
from consan.files import read_file
from consan.reports.formats.json_format import ReportError, loads
from consan.reports.model import Report
from consan.reports.source.sources import Reader, embed, read_lines
from consan.reports.verdict.baseline import KnownFinding, known
from consan.reports.verdict.suppression import (
    Lines,
    Rule,
    SuppressionError,
    comment_rules,
    exclude,
    excluded_but,
    suppress,
)

Place = tuple[str, int]


def finish(report: Report, rules: Iterable[Rule] = (), read: Reader = read_lines) -> Report:
    """Add source lines to the report and mark what is suppressed. `read` gives the lines of a source; default: from disk."""
    try:
        return suppress(embed(report, read), rules, read)
    except SuppressionError as error:
        raise UsageError(str(error)) from None


def settled(report: Report, places: Iterable[Place], rules: Sequence[Rule], status: int) -> Report:
    """The finished report of a program that ended with `status`. Warns of unused rules, also of comments at these places."""
    report = finish(replace(report, exit=status), rules)
    warn_of_unused(report, places, rules)
    return report


def warn_of_unused(report: Report, places: Iterable[Place], rules: Sequence[Rule]) -> None:
    """Say which rules, and which comments at these places, cover no finding."""
    for warning in unused([*rules, *comments_at(places)], report):
        print(f"consan: warning: {warning}", file=sys.stderr)


def comments_at(places: Iterable[Place]) -> list[Rule]:
    """The rules in comments that belong to these lines."""
    lines, found = Lines(), dict[Rule, None]()
    try:
        for file, line in sorted(set(places)):
            found |= dict.fromkeys(comment_rules(file, line, lines))
    except SuppressionError as error:
        raise UsageError(str(error)) from None
    return list(found)


def unused(rules: Iterable[Rule], report: Report) -> list[str]:
    """One line for each rule that matched no finding."""
    used = {(finding.suppressed.by, finding.kind) for finding in report.findings if finding.suppressed}
    return [line for rule in rules if (rule.by, rule.kind) not in used and (line := rule.unused)]


def stored(name: str) -> Report:
    """The report in a file. Raises UsageError if it is none."""
    try:
        return loads(read_file(name))
    except ReportError as error:
        raise UsageError(f"{name} is {error}") from None


def chosen(skip: str | None, checks: str | None) -> tuple[Rule, ...]:
    """The kinds that `--skip` and `--checks` exclude: both are kinds with commas between them. Raises UsageError for an unknown kind."""
    try:
        left_out = [exclude(kind, "--skip") for kind in _names(skip, "--skip")]
        return (*left_out, *(excluded_but(_names(checks, "--checks"), "--checks") if checks is not None else ()))
    except SuppressionError as error:
        raise UsageError(str(error)) from None


def _names(text: str | None, option: str) -> list[str]:
    names = [name for name in map(str.strip, (text or "").split(",")) if name]
    if text is not None and not names:
        raise UsageError(f"{option}: expected KIND[,KIND], got '{text}'")
    return names


def baseline(name: str | None) -> tuple[KnownFinding, ...]:
    """The rules of a stored run; none without a name. Raises UsageError if the file is no stored run."""
    return known(stored(name), name) if name else ()
