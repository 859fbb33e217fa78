"""Groups findings with one cause for display: instances of a template share their source lines.

Findings belong together if kind, severity and the source lines of all accesses are equal, whatever the kernel.
For display only: JSON, counts and the verdict keep one finding for each kernel (`merging.merge_findings`). Findings without source
lines are not grouped: PTX lines of two kernels are unrelated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from consan.reports.merging import merge_key
from consan.reports.model import Finding, seen
from consan.reports.names import kernel_name

_SHOWN: Final = 8  # kernels and tests listed


@dataclass(frozen=True)
class Cause:
    """One finding shown in full, and the findings of other kernels that repeat it."""

    finding: Finding
    others: tuple[Finding, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests in which any of them occurred."""
        return tuple(dict.fromkeys(test for finding in (self.finding, *self.others) for test in finding.tests))

    def where(self) -> Iterator[tuple[str, str]]:
        """The other kernels, and the tests: (label, text)."""
        yield from _listed("also in", [f"kernel {kernel_name(f.kernel)}, {seen(f)}" for f in self.others])
        yield from _listed("tests", [test or "outside of tests" for test in self.tests])


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Groups, in the order of their first findings."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return [Cause(first, tuple(others)) for first, *others in groups.values()]


def key(finding: Finding) -> tuple[Any, ...]:
    """The key by which findings are grouped."""
    if not finding.accesses or not all(access.line for access in finding.accesses):
        return merge_key(finding)
    return (finding.severity, finding.kind, finding.policy, *sorted((*access.site, access.op) for access in finding.accesses))


def _listed(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    yield from ((label, text) for text in texts[:_SHOWN])
    if len(texts) > _SHOWN:
        yield label, f"and {len(texts) - _SHOWN:,} more; the JSON report lists them all"
