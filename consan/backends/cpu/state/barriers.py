"""CTA barriers and warp barriers (PTX ISA, "Parallel Synchronization and Communication Instructions": barrier, bar.warp.sync).

A barrier counts whole warps: a warp arrives when all of its threads that have not exited are there, and counts 32
threads. Without a thread count the barrier waits for all live warps. Exited threads are not waited for.

It decides who is released; the scheduler decides who runs next. Not handled: mbarrier, cluster barriers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .groups import Activation
from .wave import WARP, Wave

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock

    from .faults import StepSite

Lanes = npt.NDArray[np.intp]
BARRIERS = 16
ALL = -1


@dataclass(eq=False)
class WaitingLanes:
    """Lanes that wait at one place."""

    lanes: Lanes
    stack: Activation
    resume: BoundBlock
    turn: int
    site: StepSite
    barrier: int | None
    reduction: Any = None  # (kind, Target) of barrier.red
    spins: int = 0  # of the group, which goes on counting: a loop that polls may meet at barriers
    polls: int = 0


class CtaBarriers:
    """The 16 barriers of every CTA of the wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        ctas = wave.shape.ctas
        self.partial = np.zeros((BARRIERS, wave.warps.count), np.int64)  # lanes of a warp that has not fully arrived
        self.arrived = np.zeros((BARRIERS, ctas), np.int64)  # threads, counted in whole warps
        self.expected = np.full((BARRIERS, ctas), ALL, np.int64)
        self.votes = np.zeros((BARRIERS, ctas), np.int64)  # barrier.red: true predicates
        self.voters = np.zeros((BARRIERS, ctas), np.int64)
        self.waiters: list[list[WaitingLanes]] = []
        self.reset()

    def reset(self) -> None:
        """Reset for a new wave."""
        for table, empty in ((self.partial, 0), (self.arrived, 0), (self.expected, ALL), (self.votes, 0), (self.voters, 0)):
            table[...] = empty
        self.waiters = [[] for _ in range(BARRIERS)]
        self.in_use = False  # whether any barrier has arrivals not yet consumed

    def counts(self, barrier: int, cta: int) -> tuple[int, int]:
        """How many threads have arrived, and how many it waits for."""
        wave, expected = self.wave, int(self.expected[barrier, cta])
        partial = int(self.partial[barrier].reshape(-1, wave.warps.per_cta)[cta].sum())
        return int(self.arrived[barrier, cta]) + partial, int(wave.warps.live_in_ctas[cta]) * WARP if expected == ALL else expected

    def idle(self, barrier: int) -> bool:
        """Whether no thread has arrived at `barrier` in any CTA."""
        return not self.in_use or not (self.waiters[barrier] or self.arrived[barrier].any() or self.partial[barrier].any())

    def arrive(self, barrier: int, lanes: Lanes, count: int, waiter: WaitingLanes | None, predicate: Any = None) -> list[WaitingLanes]:
        """Threads of `lanes` arrive. Returns the released waiters."""
        released: list[WaitingLanes] = []
        for chunk in self._chunks(lanes, count):
            if waiter is not None:
                self.waiters[barrier].append(replace(waiter, lanes=chunk))
            released += self._arrive(barrier, chunk, count, predicate)
        return released

    def _chunks(self, lanes: Lanes, count: int) -> list[Lanes]:
        """Arrivals in portions that cannot exceed a thread count: one warp of each CTA at a time."""
        if count == ALL:
            return [lanes]
        warps = self.wave.warps.in_cta[lanes]
        return [lanes[warps == warp] for warp in np.unique(warps)]

    def _arrive(self, barrier: int, lanes: Lanes, count: int, predicate: Any) -> list[WaitingLanes]:
        wave = self.wave
        ctas = np.unique(wave.cta_of[lanes])
        self.in_use = True
        self.partial[barrier] += np.bincount(wave.warps.of_lane[lanes], minlength=wave.warps.count)
        if predicate is not None:
            self.voters[barrier] += np.bincount(wave.cta_of[lanes], minlength=wave.shape.ctas)
            self.votes[barrier] += np.bincount(wave.cta_of[lanes[predicate[lanes]]], minlength=wave.shape.ctas)
        self.expected[barrier, ctas] = count
        return self.settle(barrier)

    def settle(self, barrier: int) -> list[WaitingLanes]:
        """Complete `barrier` in each CTA in which all warps have arrived."""
        wave, partial = self.wave, self.partial[barrier]
        whole = (partial > 0) & (partial >= wave.warps.live)
        if whole.any():
            partial[whole] = 0
            self.arrived[barrier] += whole.reshape(-1, wave.warps.per_cta).sum(1) * WARP
        arrived, expected = self.arrived[barrier], self.expected[barrier]
        needed = np.where(expected == ALL, wave.warps.live_in_ctas * WARP, expected)
        done = (arrived > 0) & (arrived >= needed)
        return self._release(barrier, done) if done.any() else []

    def _release(self, barrier: int, done: npt.NDArray[np.bool_]) -> list[WaitingLanes]:
        released: list[WaitingLanes] = []
        kept: list[WaitingLanes] = []
        for waiter in self.waiters[barrier]:
            free = done[self.wave.cta_of[waiter.lanes]]
            for chosen, target in ((free, released), (~free, kept)):
                if chosen.any():
                    target.append(replace(waiter, lanes=waiter.lanes[chosen]))
        self._reduce(barrier, released)
        self.waiters[barrier] = kept
        for table, empty in ((self.arrived, 0), (self.expected, ALL), (self.votes, 0), (self.voters, 0)):
            table[barrier, done] = empty
        if not (any(self.waiters) or self.arrived.any() or self.partial.any()):
            self.in_use = False
        return released

    def _reduce(self, barrier: int, released: list[WaitingLanes]) -> None:
        for waiter in released:
            if waiter.reduction is not None:
                kind, target = waiter.reduction
                ctas = self.wave.cta_of[waiter.lanes]
                target.write(waiter.lanes, REDUCTIONS[kind](self.votes[barrier][ctas], self.voters[barrier][ctas]))

    def after_exit(self) -> list[WaitingLanes]:
        """Threads have exited: complete the barriers that waited only for them."""
        if not self.in_use:
            return []
        used = [b for b in range(BARRIERS) if self.waiters[b] or self.partial[b].any()]
        return [waiter for barrier in used for waiter in self.settle(barrier)]


REDUCTIONS = {
    "popc": lambda votes, voters: votes.astype(np.uint32),
    "and": lambda votes, voters: votes == voters,
    "or": lambda votes, voters: votes > 0,
}


class WarpBarriers:
    """bar.warp.sync: lanes that wait for the others of their mask, possibly at different instructions."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiters: list[WaitingLanes] = []
        self.members = np.zeros(wave.lanes, np.uint32)

    def arrive(self, waiter: WaitingLanes, members: npt.NDArray[np.uint32]) -> list[WaitingLanes]:
        """`waiter.lanes` arrive with their member masks. Returns the released waiters."""
        self.members[waiter.lanes] = members
        self.waiters.append(waiter)
        return self.settle()

    def settle(self) -> list[WaitingLanes]:
        """Release every lane whose members all wait with the same mask or have exited."""
        if not self.waiters:
            return []
        wave, waiting = self.wave, np.concatenate([w.lanes for w in self.waiters])
        live, masks = wave.live_masks(), self.members[waiting]
        missing = {int(mask): live & ~wave.warps.masks(waiting[masks == mask]) for mask in np.unique(masks)}
        released: list[WaitingLanes] = []
        kept: list[WaitingLanes] = []
        for waiter in self.waiters:
            free = np.zeros(len(waiter.lanes), np.bool_)
            for mask, absent in missing.items():
                free |= (self.members[waiter.lanes] == mask) & ((np.uint32(mask) & absent[wave.warps.of_lane[waiter.lanes]]) == 0)
            for chosen, target in ((free, released), (~free, kept)):
                if chosen.any():
                    target.append(replace(waiter, lanes=waiter.lanes[chosen]))
        self.waiters = kept
        return released
