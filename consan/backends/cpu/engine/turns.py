"""Lets CTAs take turns at what they write and read of each other, so that few of their accesses are ordered by luck.

The groups of a wave run as long as they can, so a CTA would often find that all it looks for has long been written.
"""

from __future__ import annotations

from dataclasses import dataclass

from consan.backends.cpu.state.groups import LaneGroup, ReadyQueue
from consan.backends.cpu.state.wave import Wave

HANDED = 3  # of so many writes that others may poll, one lets nobody go first; odd, so that each of two CTAs that take turns has its turn
LOOKED = 2  # of so many looks by an atomic that changes nothing, one lets others go first


@dataclass
class Turns:
    """The turns of one wave."""

    ready: ReadyQueue
    wave: Wave
    published: int = 0
    looked: int = 0

    def hand_over(self, group: LaneGroup) -> None:
        """A group writes what others may poll: mostly other CTAs go first. So each sees as little as it waits for, and knows no more."""
        self.published += 1
        if self.published % HANDED:
            self._prefer_others(group)

    def looks_later(self, group: LaneGroup) -> bool:
        """Whether a group that looks at what others write, by an atomic, lets other CTAs go first: they may write between its looks."""
        self.looked += 1
        return self.looked % LOOKED == 0 and self._prefer_others(group)

    def _prefer_others(self, group: LaneGroup) -> bool:
        """Let other CTAs go first. Returns whether any do."""
        low, high = self._ctas(group)
        others = [other for other in self.ready.groups() for first, last in [self._ctas(other)] if last < low or high < first]
        for other in others:
            self.ready.prefer(other, group.round - 1)
        return bool(others)

    def _ctas(self, group: LaneGroup) -> tuple[int, int]:
        """The first and the last CTA of a group."""
        return int(self.wave.cta_of[group.lanes[0]]), int(self.wave.cta_of[group.lanes[-1]])
