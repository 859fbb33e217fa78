"""Merges findings: one for each defect, with the totals, in the order of the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from consan.reports.model import Buffer, Finding
from consan.reports.racing_value import united_value
from consan.reports.source.names import name_without_element
from consan.reports.verdict.speaking.consequences import arranged
from consan.reports.verdict.speaking.precedence import rank, select
from consan.reports.verdict.speaking.shared import merge_key

_MERGE_AFTER = 32  # findings, and then as many more as there are distinct ones


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per (kernel, kind, unordered pair of sites), worst and most frequent first. Suppressed findings stay separate."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.suppressed, *merge_key(finding)), []).append(finding)
    return sort_findings(_merge(group) for group in groups.values())


class Accumulated(list[Finding]):
    """Findings of any number of launches, merged as they come: a program may have one in each of a million launches."""

    _merge_at = _MERGE_AFTER
    new = False  # whether one has come that is unlike all before, since the caller last cleared this
    _known: set[tuple[Any, ...]]

    def __init__(self) -> None:
        super().__init__()
        self._known = set()

    def add(self, found: Iterable[Finding]) -> None:
        """Keep findings. They are merged once as many have come as there are distinct ones."""
        for finding in found:
            self.append(finding)
            key = merge_key(finding)
            self.new |= key not in self._known
            self._known.add(key)
        if len(self) > self._merge_at:
            self[:] = merge_findings(self)
            self._merge_at = 2 * len(self) + _MERGE_AFTER

    def clear(self) -> None:
        """Forget all findings."""
        super().clear()
        self._merge_at = _MERGE_AFTER


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by rank (`precedence`), then by count. Ties are broken by kernel, kind and place.

    A finding that certainly follows from another one comes right after it (`consequences`).
    """
    return arranged(sorted(findings, key=_position))


def _position(finding: Finding) -> tuple[Any, ...]:
    return bool(finding.suppressed), *rank(finding), -finding.count, *map(str, merge_key(finding))


def _merge(group: list[Finding]) -> Finding:
    """The finding of the group that speaks for it, with the totals.

    `ctas` is exact if each record comes from another CTA or carries the total. Otherwise it is a lower
    bound, because records do not list their CTAs.
    """
    first = select(group)
    blocks = {access.block for finding in group for access in finding.accesses[:1] if access.block is not None}
    return replace(
        first,
        count=sum(finding.count for finding in group),
        ctas=max(len(blocks), *(finding.ctas for finding in group)) if blocks else max(finding.ctas for finding in group),
        buffer=_merge_buffers([finding.buffer for finding in group if finding.buffer]),
        waiters=_distinct([waiter for finding in group for waiter in finding.waiters]),
        tests=tuple(dict.fromkeys(test for finding in group for test in finding.tests)),
        verified=next((finding.verified for finding in group if finding.verified), None),
        value=united_value(finding.value for finding in group),
        unoptimized=all(finding.unoptimized for finding in group),
        seed=None if any(finding.seed is None for finding in group) else group[0].seed,
    )


def _merge_buffers(buffers: list[Buffer]) -> Buffer | None:
    """The union of the byte ranges in the first buffer's variable."""
    if not buffers:
        return None
    first = buffers[0]
    same = [
        buffer for buffer in buffers if (name_without_element(buffer.name), buffer.space) == (name_without_element(first.name), first.space)
    ]
    begin = min(buffer.offset for buffer in same)
    end = max(buffer.offset + buffer.bytes for buffer in same)
    name = first.name if len({buffer.name for buffer in same}) == 1 else name_without_element(first.name)
    return replace(first, name=name, offset=begin, bytes=end - begin)


def _distinct(waiters: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    seen: dict[str, dict[str, Any]] = {}
    for waiter in waiters:
        seen.setdefault(repr(sorted(waiter.items())), waiter)
    return tuple(seen.values())
