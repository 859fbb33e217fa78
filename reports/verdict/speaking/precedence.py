"""Reads the tables of `relations`: which finding speaks or comes first, and which findings belong to another one, of the same kernel.

A finding follows from a root if the root's repair has to come first: a race through an mbarrier that is misused, a deadlock at
a barrier that is misused, a copy in flight at the exit whose missing wait is reported. Two findings with one culprit and one repair have
one cause.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final

from consan.reports.model import SEVERITIES, Finding
from consan.reports.verdict.speaking.relations import BELONGS, MILDER, ORDER
from consan.reports.verdict.speaking.terms import Belongs, F, Silences, Which

MOST_ROOTS: Final = 64  # of one kernel; findings beyond them stand alone


def speaking(found: Iterable[F], table: Iterable[Silences[F]], others: Sequence[F] | None = None) -> list[F]:
    """The findings that are left. `others`: those that speak, if these are not the findings themselves."""
    left = list(found)
    for rule in table:
        known = Counter[Hashable]()
        for each in filter(rule.speaks, left if others is None else others):
            for shared in rule.share(each):
                known[shared] += rule.times(each)
        if not known:
            continue
        left = [each for each in left if not (rule.silent(each) and any(known[shared] >= rule.times(each) for shared in rule.share(each)))]
    return left


def rank(finding: Finding) -> tuple[int, bool, int, bool]:
    """The place of a finding in a report: the worst come first. Within a severity those whose value is discarded come last."""
    discarded = finding.value is not None and not finding.value.end
    order = next((place for place, which in ORDER if which.has(finding)), 0)
    return SEVERITIES.index(finding.severity), discarded, order, MILDER.has(finding)


def select(group: Iterable[Finding]) -> Finding:
    """The finding that speaks for findings of one kind at one pair of places: the worst."""
    return min(group, key=lambda finding: (rank(finding)[0], MILDER.has(finding)))


def roots(findings: Sequence[Finding]) -> dict[int, tuple[int, Belongs]]:
    """For the index of each finding that has a root: the root's index, and the relation. A root has no root itself."""
    kernels: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.suppressed is None:
            kernels.setdefault(finding.kernel, []).append(index)
    direct: dict[int, tuple[int, Belongs]] = {}
    for indexes in kernels.values():
        candidates = [index for index in indexes if _may_lead(findings[index])][:MOST_ROOTS]
        leading = functools.cache(functools.partial(_leading, findings, candidates))
        for index in indexes:
            found = _root(findings, index, [other for other in candidates if _last(direct, other) != index], leading)
            if found is not None:
                direct[index] = found
    return {index: (_last(direct, root), relation) for index, (root, relation) in direct.items()}


def _may_lead(finding: Finding) -> bool:
    """Whether some relation takes it as a root."""
    return any(root.has(finding) for relation in BELONGS for root, _, _ in relation.cases)


def _leading(findings: Sequence[Finding], candidates: Sequence[int], which: Which) -> frozenset[int]:
    """Those of some candidates that are findings of a sort."""
    return frozenset(index for index in candidates if which.has(findings[index]))


def _root(
    findings: Sequence[Finding], index: int, candidates: Sequence[int], leading: Callable[[Which], Collection[int]]
) -> tuple[int, Belongs] | None:
    """`candidates`: findings that do not belong to this one, nor this one itself; `leading`: those of a sort."""
    finding = findings[index]
    severe = SEVERITIES[: SEVERITIES.index(finding.severity) + 1]
    for relation in BELONGS:
        cases = [(roots, share) for which, share in relation.cases_of(finding) if (roots := leading(which))]
        for other in candidates if cases else ():
            root = findings[other]
            may_lead = root.severity in severe and not (relation.mutual and other > index)
            if may_lead and any(other in roots and share(root, finding) for roots, share in cases):
                return other, relation
    return None


def _last(direct: Mapping[int, tuple[int, Belongs]], index: int) -> int:
    """The end of a chain of roots."""
    while index in direct:
        index = direct[index][0]
    return index
