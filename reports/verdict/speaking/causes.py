"""Groups findings with one cause for display: instances of a template share their source lines, consequences have a root.

Findings belong together if kind, severity and the source lines of all accesses are equal, whatever the kernel. A finding that follows from
another finding, or has its repair (`consequences`), is a line of that one; the line says where it only may follow. For display only: JSON,
counts and the verdict keep one finding for each kernel (`merging.merge_findings`). Findings without source lines are not grouped: PTX lines
of two kernels are unrelated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from consan.dataclass import dataclass
from consan.reports.counts import seen
from consan.reports.model import Finding
from consan.reports.source.names import kernel_name
from consan.reports.verdict.speaking import precedence
from consan.reports.verdict.speaking.shared import merge_key
from consan.reports.words.wording import place


@dataclass(frozen=True)
class Cause:
    """One finding shown in full, the findings of other kernels that repeat it, and those that have its cause."""

    finding: Finding
    others: tuple[Finding, ...] = ()
    folded: tuple[Finding, ...] = ()
    perhaps: tuple[Finding, ...] = ()  # those for which that is not certain

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests in which any of them occurred."""
        return tuple(dict.fromkeys(test for finding in self.all for test in finding.tests))

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings of the cause."""
        return (self.finding, *self.others, *self.folded, *self.perhaps)

    def where(self, most: int) -> Iterator[tuple[str, str]]:
        """The other kernels, and the tests: (label, text). `most`: how many are listed of each."""
        yield from _listed("also", [_line(finding) for finding in self.folded], most)
        yield from _listed("may follow", [_line(finding) for finding in self.perhaps], most)
        yield from _listed("also in", [f"kernel {kernel_name(f.kernel)}, {seen(f)}" for f in self.others], most)
        yield from _listed("tests", [test or "outside of tests" for test in self.tests], most)


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Groups, in the order of their first findings."""
    found = list(findings)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, finding in enumerate(found):
        groups.setdefault(key(finding), []).append(index)
    roots = precedence.roots(found)
    home: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # by group: the one that it is shown with, which comes before it
    folded: dict[tuple[tuple[Any, ...], bool], list[Finding]] = {}
    for name, indexes in groups.items():
        root, rule = roots.get(indexes[0], (indexes[0], None))
        home[name] = home.get(key(found[root]), name)
        if rule and home[name] != name:
            folded.setdefault((home[name], rule.certain), []).extend(found[each] for each in indexes)
    return [
        Cause(found[first], tuple(found[each] for each in others), *(tuple(folded.get((name, certain), ())) for certain in (True, False)))
        for name, (first, *others) in groups.items()
        if home[name] == name
    ]


def _line(finding: Finding) -> str:
    """`data-race WAR: the read at k.cu:9 and the write at k.cu:4, 12 times in 1 CTA`."""
    hazard = f" {finding.hazard}" if finding.hazard else ""
    sides = " and ".join(f"the {access.role} at {place(access)}" for access in finding.pair)
    return f"{finding.severity}[{finding.kind}]{hazard}: {f'{sides}, ' if sides else ''}{seen(finding)}"


def key(finding: Finding) -> tuple[Any, ...]:
    """The key by which findings are grouped."""
    if not finding.accesses or not all(access.line for access in finding.accesses):
        return merge_key(finding)
    return (finding.severity, finding.kind, finding.policy, *sorted((*access.site, access.op) for access in finding.accesses))


def _listed(label: str, texts: list[str], most: int) -> Iterator[tuple[str, str]]:
    yield from ((label, text) for text in texts[:most])
    if len(texts) > most:
        yield label, f"and {len(texts) - most:,} more; the JSON report lists them all"
