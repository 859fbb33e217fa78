"""What barriers and mbarriers order: SEMANTICS 3 and 6, from the events of arrivals.

A CTA barrier counts whole warps; an `arrive` gives its past and gets nothing. bar.warp.sync orders the lanes of its mask. An mbarrier
collects the past of release arrivals, and of copies that complete on it only themselves.

Misuse that is found, each as a pair of lines: of an mbarrier, arrivals beyond its count, an arrive.noComplete that completes, a byte
count out of range, a phase that completes before anybody has waited for the one before (D11); of a CTA barrier, thread counts that
disagree, lanes of a warp at different aligned barriers (R-BAR1), and an arrival that does not come after all those of the round before
(R-BAR3). Not handled: waits for a wrong parity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_clocks import Clocks, Snapshot, join
from oracle_scopes import Past, both

Array = npt.NDArray[Any]
WARP = 32
ALL = -1
MOST = (1 << 20) - 1


@dataclass
class _Barrier:
    line: int  # of the first arrival
    partial: dict[int, int] = field(default_factory=dict)  # lanes that have arrived, by warp, while some are missing
    partial_line: dict[int, int] = field(default_factory=dict)
    arrivals: list[tuple[int, int, int, int]] = field(default_factory=list)  # warp, actor, time, line
    arrived: int = 0
    expected: int = ALL
    past: Snapshot | None = None
    waiting: list[int] = field(default_factory=list)


class CtaBarriers:
    """The named barriers and the warp barriers of a CTA. Threads are numbered in the CTA; `actor_of` maps them to clocks."""

    def __init__(self, clocks: Clocks, actor_of: Array) -> None:
        self.clocks, self.actor_of = clocks, actor_of
        self.live = np.ones(len(actor_of), np.bool_)
        self.barriers: dict[int, _Barrier] = {}
        self.members: dict[int, int] = {}  # masks of the threads that wait at a warp barrier
        self.generations = 0
        self.last_round: dict[int, list[tuple[int, int, int, int]]] = {}  # arrivals, by barrier
        self.misuse: set[frozenset[int]] = set()
        self.released: list[int] = []  # threads that barriers have let go, until they are taken

    def exit(self, threads: Array) -> None:
        """Threads end: nobody waits for them."""
        self.live[threads] = False
        for number in list(self.barriers):
            self._settle(number)
        self._settle_warps()

    def arrive(self, threads: Array, number: int, count: int, waits: bool, line: int, aligned: bool) -> None:
        """Threads arrive at a barrier, warp by warp."""
        warps = threads // WARP
        for warp in np.unique(warps).tolist():
            chunk = threads[warps == warp]
            if aligned:
                self._must_be_together(warp, number, line)
            barrier = self.barriers.setdefault(number, _Barrier(line, expected=count))
            if self._needed(barrier.expected) != self._needed(count):
                self.misuse.add(frozenset((line, barrier.line)))
            barrier.expected = count
            self._must_know_last_round(warp, chunk, number, line)
            actors = np.unique(self.actor_of[chunk])
            barrier.arrivals += [(warp, int(actor), int(self.clocks.time[actor]), line) for actor in actors]
            barrier.past = join(barrier.past, self.clocks.snapshot(actors))
            if waits:
                barrier.waiting += chunk.tolist()
            barrier.partial[warp] = barrier.partial.get(warp, 0) + len(chunk)
            barrier.partial_line[warp] = line
            if count != ALL:
                self._settle(number)
        self._settle(number)

    def _needed(self, count: int) -> int:
        return -(-len(self.live) // WARP) * WARP if count == ALL else count

    def _must_be_together(self, warp: int, number: int, line: int) -> None:
        for other, barrier in self.barriers.items():
            if warp in barrier.partial and (other, barrier.partial_line[warp]) != (number, line):
                self.misuse.add(frozenset((line, barrier.partial_line[warp])))

    def _must_know_last_round(self, warp: int, threads: Array, number: int, line: int) -> None:
        known = self.clocks.seen[self.actor_of[threads]].max(0)
        for other, actor, time, its_line in self.last_round.get(number, ()):
            if other != warp and known[actor] < time:
                self.misuse.add(frozenset((line, its_line)))

    def _settle(self, number: int) -> None:
        barrier = self.barriers.get(number)
        if barrier is None:
            return
        for warp in list(barrier.partial):
            if barrier.partial[warp] >= np.count_nonzero(self.live[warp * WARP : warp * WARP + WARP]):
                del barrier.partial[warp]
                barrier.arrived += WARP
        everyone = len(np.unique(self.live.nonzero()[0] // WARP)) * WARP
        if barrier.arrived and barrier.arrived >= (everyone if barrier.expected == ALL else barrier.expected):
            del self.barriers[number]
            self.last_round[number] = barrier.arrivals
            self.generations += 1
            self.released += barrier.waiting
            if barrier.waiting and barrier.past is not None:
                self.clocks.acquire(self.actor_of[barrier.waiting], barrier.past)

    def arrive_warp(self, threads: Array, members: Array) -> None:
        """Threads arrive at bar.warp.sync."""
        self.members.update(zip(threads.tolist(), members.tolist(), strict=True))
        self._settle_warps()

    def _settle_warps(self) -> None:
        for thread, mask in list(self.members.items()):
            first = thread // WARP * WARP
            team = [t for t in range(first, min(first + WARP, len(self.live))) if mask >> (t - first) & 1 and self.live[t]]
            if thread in self.members and all(self.members.get(t) == mask for t in team):
                actors = self.actor_of[team]
                self.clocks.acquire(actors, self.clocks.snapshot(actors))
                self.released += team
                for t in team:
                    del self.members[t]


@dataclass
class MBarrier:
    """One mbarrier object from its init on."""

    pending: int
    expected: int
    init_line: int
    tx: int = 0
    phase: int = 0
    waited: int = 0  # phases that somebody has waited for
    live: bool = True
    gathered: Past = field(default_factory=dict)  # of all phases so far, the current one too
    done: Past = field(default_factory=dict)  # of completed phases
    last_line: int = 0  # of the last arrival
    misuse: set[frozenset[int]] = field(default_factory=set)  # pairs of lines, until they are taken

    def expects(self, line: int, count: int) -> bool:
        """Whether so many arrivals of one instruction of a warp fit the phase."""
        if count > self.pending:
            self.misuse.add(frozenset((line, self.init_line)))
        return count <= self.pending

    def arrive(self, line: int, count: int, past: Past, *, completes: bool = True, fits: bool = True) -> None:
        """Arrivals, with what they publish; those that do not fit are known to be wrong already."""
        if fits and count > self.pending:
            self.misuse.add(frozenset((line, self.init_line)))
        self.pending -= count
        self.gathered = both(self.gathered, past)
        if self._advance(line if fits else 0) and not completes:
            self.misuse.add(frozenset((line, self.init_line)))
        self.last_line = line

    def transact(self, line: int, nbytes: int) -> None:
        """expect-tx (positive) or complete-tx."""
        self.tx += nbytes
        if abs(self.tx) > MOST:
            self.misuse.add(frozenset((line, self.init_line)))
        self._advance(line)

    def _advance(self, line: int) -> bool:
        if self.pending != 0 or self.tx != 0:
            return False
        if line and self.waited < self.phase:
            self.misuse.add(frozenset((line, self.last_line)))
        self.phase += 1
        self.pending = self.expected
        self.done = self.gathered
        return True
