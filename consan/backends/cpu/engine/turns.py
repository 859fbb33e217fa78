"""Lets CTAs take turns at what they write and read of each other, so that few of their accesses are ordered by luck.

The groups of a wave run as long as they can, so a CTA would often find that all it looks for has long been written.
"""

from __future__ import annotations

from consan.backends.cpu.engine.code import BoundBlock
from consan.backends.cpu.state.groups import LaneGroup, ReadyQueue
from consan.backends.cpu.state.wave import Wave
from consan.dataclass import dataclass

# A turn has three parts. Their ends, counted in writes that others may poll:
HESITANT = 6  # others go first, and a group that leaves its poll lets all others go on: it knows as little of them as it can
PROMPT = HESITANT + 5  # others go first, and a group that leaves its poll goes on
AHEAD = PROMPT + 2  # the writer goes on; behind so many writes, the first group but a follower that has to wait begins a new turn
PARTED = 64  # of so many writes by several CTAs at once, one of these CTAs comes later
LOOKED = 2  # of so many looks by an atomic that changes nothing, one lets others go first; so does the last of several CTAs that glance
GLANCED = 64  # CTAs that come later to what they glance at
LATE = 3  # turns


@dataclass
class Turns:
    """The turns of one wave."""

    ready: ReadyQueue
    wave: Wave
    published: int = 0  # in this turn
    parted: int = 0
    looked: int = 0
    glanced: int = 0
    follower: tuple[int, int] | None = None  # the CTAs of the group that was the first to wait: a consumer
    behind: bool = False  # the follower waits while others may be ahead: they go on until they have to wait
    shown: bool = False  # since then it went first once: it has seen the first of the writes that it waits for, and no later one

    def waits(self, group: LaneGroup) -> None:
        """A group polls, and sees nothing new: others go first."""
        group.round += 1
        ctas = self._ctas(group)
        self.follower = self.follower or ctas
        if self.published >= AHEAD:
            self.behind = ctas == self.follower
            if not self.behind:
                self.published, self.shown = 0, False

    def ends(self, group: LaneGroup) -> None:
        """A group has gone round a loop for long: all others run before it does so again, also if its rounds write what others may poll."""
        group.round = 1 + max((group.round, *(other.round for other in self.ready.groups())))

    def hand_over(self, group: LaneGroup) -> None:
        """A group writes what others may poll.

        If the others run first, each of them sees only the write that it waits for. If the writer runs on, it gets far ahead of them.
        """
        self.published += 1
        if self.published <= PROMPT or (self.behind and not self.shown):
            self.shown = self.published > PROMPT
            self._prefer_others(group)
        elif self.ready:
            group.round = min(group.round, min(other.round for other in self.ready.groups()) - 1)

    def leaves(self, group: LaneGroup) -> None:
        """A group goes on behind a poll: in a loop, it has seen what it polled for."""
        if group.spins and self.ready and (self.published <= HESITANT or (self.shown and self.follower == self._ctas(group))):
            group.round = 1 + max(other.round for other in self.ready.groups())

    def part(self, group: LaneGroup) -> bool:
        """Several CTAs, or warps of one, are about to write at once what others may poll: one does so later. Returns whether one does."""
        wave, lanes = self.wave, group.lanes
        ctas = wave.cta_of[lanes]
        places = ctas if ctas[0] != ctas[-1] else wave.warps.in_cta[lanes].astype(ctas.dtype)
        last = places[-1]
        if places[0] == last or self.parted >= PARTED:
            return False
        self.parted += 1
        self.ready.push(LaneGroup(group.lanes[places == last], group.stack, group.block, group.round + 1))
        group.set_lanes(group.lanes[places != last])
        return True

    def looks_later(self, group: LaneGroup, block: BoundBlock) -> bool:
        """Whether a group that looks at what others write, by an atomic, lets other CTAs go first: they may write between its looks."""
        if block.glances:
            return self._glances_later(group)
        self.looked += 1
        later = self.looked % LOOKED == 0 and self._prefer_others(group)
        if later:
            self.ready.push(group)
        return later

    def _glances_later(self, group: LaneGroup) -> bool:
        """The same for a group that looks once, without waiting. The last of several CTAs comes later, and sees later writes."""
        if group.late or self.glanced >= GLANCED:
            group.late = False
            return False
        self.glanced += 1
        ctas = self.wave.cta_of[group.lanes]
        last = ctas == ctas[-1]
        if last.all() and (self.glanced % LOOKED or not self.ready):
            return False
        late = LaneGroup(group.lanes[last], group.stack, group.block, group.round + LATE)
        late.late = True
        self.ready.push(late)
        if not last.all():
            group.set_lanes(group.lanes[~last])
        return bool(last.all())

    def _prefer_others(self, group: LaneGroup) -> bool:
        """Let other CTAs go first. Returns whether any do."""
        low, high = self._ctas(group)
        others = [
            other for other in self.ready.groups() for first, last in [self._ctas(other)] if (last < low or high < first) and not other.late
        ]
        for other in others:
            self.ready.prefer(other, group.round - 1)
        return bool(others)

    def _ctas(self, group: LaneGroup) -> tuple[int, int]:
        """The first and the last CTA of a group."""
        return int(self.wave.cta_of[group.lanes[0]]), int(self.wave.cta_of[group.lanes[-1]])
