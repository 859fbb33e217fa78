"""Findings of an earlier run that do not count: only new ones fail.

A finding is known by what it is (kind, hazard, kernel) and by its accesses: what each does, in which file, and the text of its line. Lines
above it may come and go.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final

from consan.dataclass import dataclass
from consan.reports.model import Access, Finding, Report
from consan.reports.verdict.suppression import Lines, Rule

Identity = tuple[object, ...]
REASON: Final = "known in the baseline"


@dataclass(frozen=True)
class KnownFinding(Rule):
    """Covers what is one finding of an earlier run."""

    identity: Identity = ()

    def covers(self, finding: Finding, lines: Lines) -> bool:
        """Whether it is the same finding."""
        return self.kind == finding.kind and self.identity == identity_of(finding, lines.at)

    @property
    def unused(self) -> str:
        """The sentence where the rule covers no finding."""
        return f"{self.by}: this {self.kind} in kernel {self.kernel} is not found any more"


def identity_of(finding: Finding, line: Callable[[str, int], str]) -> Identity:
    """The parts of a finding that a change of other lines leaves as they are. `line` gives the text of a line of a file."""
    accesses = sorted(_identity_of(access, line) for access in finding.pair)
    return (finding.kind, finding.hazard or "", finding.kernel, finding.buffer.name if finding.buffer else "", *accesses)


def _identity_of(access: Access, line: Callable[[str, int], str]) -> tuple[str, ...]:
    if not access.line:
        return (access.role, access.op, "", access.ptx.strip())
    text = line(access.file, access.line).strip() or f"line {access.line}"
    return (access.role, access.op, posixpath.basename(access.file.replace("\\", "/")), text)


def known(report: Report, name: str) -> tuple[KnownFinding, ...]:
    """A rule for each finding of a stored report that counted in it, or that its own baseline had. `name`: of the report."""
    counted = [each for each in report.findings if each.suppressed is None or each.suppressed.reason == REASON]
    return tuple(
        KnownFinding(each.kind, REASON, f"{name}, finding {number}", each.kernel, identity=identity_of(each, _lines_of(report)))
        for number, each in enumerate(counted, 1)
    )


def _lines_of(report: Report) -> Callable[[str, int], str]:
    return lambda file, line: report.sources.get(file, {}).get(line, "")
