"""Selects the CTAs in which addresses in global memory may decide a finding (instrument/record/footprint.py).

Two CTAs with equal hashes did the same, except for addresses in global memory and stored values. The checker compares such addresses only
with those of asynchronous copies: a write with their sources, any access with their results. If no spans that it may compare overlap, each
comparison fails, whatever is in flight. So all such CTAs of one history have equal findings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consan.instrument.record.footprint import MEETING, SideKind

_MOST_THREADS = 1 << 18  # whose spans are computed at once
_CELL = ~np.uint64(15)  # stores are known by cells of 16 bytes (source/map_uses.hpp)


@dataclass(frozen=True)
class Spans:
    """For each side and CTA the first byte and the one behind the last; where there is none the first is not below the other."""

    kinds: tuple[SideKind, ...]
    first: npt.NDArray[np.uint64]  # sides x CTAs
    behind: npt.NDArray[np.uint64]

    def meet(self, ctas: int = 1) -> npt.NDArray[np.bool_]:
        """Whether spans that are compared overlap in each unit. `ctas`: of a unit."""
        first = (self.first & _CELL).reshape(len(self.kinds), -1, ctas).min(axis=2)
        behind = (self.behind + ~_CELL & _CELL).reshape(len(self.kinds), -1, ctas).max(axis=2)
        found = np.zeros(first.shape[1], np.bool_)
        for kind, other in MEETING:
            for one in self._sides(kind):
                for two in self._sides(other):
                    found |= (first[one] < behind[two]) & (first[two] < behind[one])
        return found

    def _sides(self, kind: SideKind) -> list[int]:
        return [number for number, each in enumerate(self.kinds) if each is kind]


def apart(spans_of: Callable[[Sequence[int]], Spans | None], members: npt.NDArray[np.int64], threads: int) -> npt.NDArray[np.bool_]:
    """The units of which it is certain that no spans meet. `members`: the CTAs of each; `threads`: of a CTA."""
    found = np.zeros(len(members), np.bool_)
    step = max(1, _MOST_THREADS // (threads * members.shape[1]))
    for first in range(0, len(members), step):
        some = members[first : first + step]
        spans = spans_of(some.ravel().tolist())
        if spans is not None:
            found[first : first + step] = ~spans.meet(members.shape[1])
    return found
