"""Findings that have one cause, for readers: instances of a template, or a kernel compiled for several types, share their source lines.

Decides what is shown together: findings of one kind and severity whose accesses are at the same source lines, in kernels of any name.
For display only: the JSON keeps one finding for each kernel (`model.merge_findings`), and so do counts and the verdict. Without source
lines nothing is put together: PTX lines of two kernels have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from consan.reports.model import Finding, merge_key, plural
from consan.reports.names import kernel_name

_SHOWN: Final = 8  # kernels, and tests, that are listed


@dataclass(frozen=True)
class Cause:
    """One finding to show in full, and those of other kernels that repeat it."""

    finding: Finding
    others: tuple[Finding, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests in which any of them was seen."""
        return tuple(dict.fromkeys(test for finding in (self.finding, *self.others) for test in finding.tests))

    def where(self) -> Iterator[tuple[str, str]]:
        """The other kernels, and the tests: (label, text)."""
        yield from _listed("also in", [f"kernel {kernel_name(f.kernel)}, {_seen(f)}" for f in self.others])
        yield from _listed("tests", [test or "outside of tests" for test in self.tests])


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """In the order of the first finding of each."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return [Cause(first, tuple(others)) for first, *others in groups.values()]


def key(finding: Finding) -> tuple[Any, ...]:
    """What findings of one cause have in common."""
    if not finding.accesses or not all(access.line for access in finding.accesses):
        return merge_key(finding)
    return (finding.severity, finding.kind, finding.policy, *sorted((*access.site, access.op) for access in finding.accesses))


def _seen(finding: Finding) -> str:
    return plural(finding.count, "time") + (f" in {plural(finding.ctas, 'CTA')}" if finding.ctas else "")


def _listed(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    yield from ((label, text) for text in texts[:_SHOWN])
    if len(texts) > _SHOWN:
        yield label, f"and {len(texts) - _SHOWN:,} more; the JSON report lists them all"
