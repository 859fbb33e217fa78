"""What barriers and mbarriers order: SEMANTICS 2.3, 2.7 and 2.8, from the events of arrivals.

A CTA barrier counts whole warps; an `arrive` gives its past and gets nothing. bar.warp.sync orders the lanes of its mask. An mbarrier
collects the past of release arrivals, and of copies that complete on it only themselves.

Not handled: barriers used against their protocol beyond what `MBarrier.misuse` names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_clocks import Clocks, Snapshot, join

Array = npt.NDArray[Any]
WARP = 32
ALL = -1
MOST = (1 << 20) - 1


@dataclass
class _Barrier:
    partial: dict[int, int] = field(default_factory=dict)  # lanes that have arrived, by warp, while some are missing
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

    def exit(self, threads: Array) -> None:
        """Threads end: nobody waits for them."""
        self.live[threads] = False
        for number in list(self.barriers):
            self._settle(number)
        self._settle_warps()

    def arrive(self, threads: Array, number: int, count: int, waits: bool) -> None:
        """Threads arrive at a barrier, warp by warp where it counts."""
        warps = threads // WARP
        for chunk in [threads] if count == ALL else [threads[warps == warp] for warp in np.unique(warps)]:
            barrier = self.barriers.setdefault(number, _Barrier())
            barrier.expected = count
            barrier.past = join(barrier.past, self.clocks.snapshot(self.actor_of[chunk]))
            if waits:
                barrier.waiting += chunk.tolist()
            for warp, lanes in zip(*np.unique(chunk // WARP, return_counts=True), strict=True):
                barrier.partial[int(warp)] = barrier.partial.get(int(warp), 0) + int(lanes)
            self._settle(number)

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
            self.generations += 1
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
    live: bool = True
    gathered: Snapshot | None = None  # of all phases so far, the current one too
    done: Snapshot | None = None  # of completed phases
    misuse: set[int] = field(default_factory=set)  # lines

    def arrive(self, line: int, count: int, past: Snapshot | None) -> None:
        """Arrivals, with what they publish."""
        if count > self.pending:
            self.misuse.add(line)
        self.pending -= count
        self.gathered = join(self.gathered, past)
        self._advance()

    def transact(self, line: int, nbytes: int) -> None:
        """expect-tx (positive) or complete-tx."""
        self.tx += nbytes
        if abs(self.tx) > MOST:
            self.misuse.add(line)
        self._advance()

    def _advance(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected
            self.done = self.gathered
