"""Findings with their roots (`precedence`): in order, and in the words for people.

Findings keep their own words in the JSON report, which names the root by its index. Counts, verdict and exit status do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from consan.reports.model import SEVERITIES, Finding
from consan.reports.verdict.speaking.precedence import roots
from consan.reports.verdict.speaking.terms import Belongs
from consan.reports.words.wording import place


def arranged(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sorted findings, with each right after its root among those of its severity."""
    found = roots(findings)

    def position(index: int) -> tuple[bool, int, int, int]:
        finding, root = findings[index], found[index][0] if index in found else index
        return bool(finding.suppressed), SEVERITIES.index(finding.severity), root, -1 if index == root else index

    return tuple(findings[index] for index in sorted(range(len(findings)), key=position))


def worded(findings: Sequence[Finding], numbers: Sequence[int]) -> list[Finding]:
    """The findings in the words for people. `numbers`: the number under which each is shown."""
    found = roots(findings)
    return [_worded(finding, findings, numbers, found.get(index)) for index, finding in enumerate(findings)]


def _worded(finding: Finding, findings: Sequence[Finding], numbers: Sequence[int], found: tuple[int, Belongs] | None) -> Finding:
    if found is None:
        return finding
    root, relation = found
    name = f"{findings[root].severity} {numbers[root]}"
    last = place(finding.pair[-1]) if finding.pair else ""
    return replace(
        finding,
        message=f"{finding.message}. {relation.words.message.format(root=name)}",
        missing=finding.missing if relation.mutual else "",
        accesses=finding.accesses if relation.mutual else finding.pair,  # the root shows what is at fault
        fix=relation.words.fix.format(root=name, fix=finding.fix, last=last),
    )
