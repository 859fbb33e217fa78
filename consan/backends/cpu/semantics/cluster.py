"""Clusters: barrier.cluster, mapa and getctarank (PTX ISA, "barrier.cluster", "mapa", "getctarank").

The shared::cluster address of rank r is r << 24 plus the address in that CTA; the generic address is the same offset in the shared window.
This was measured on sm_90, where the address of a CTA's own variable also has the rank: mapa to rank 0 gives an address without
one, so it would mean rank 0's. In .shared::cta an address may have its rank or not. So code for CTA pairs (sm_100) names the even CTA's
object by clearing the lowest bit of the rank: `address & 0xFEFFFFFF`. An instruction with .cta_group::2 takes such an address also where it
says .shared::cta. A CTA's shared memory exists until the last CTA of its wave has exited; the instrumented code judges whether a peer may
still access it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.barriers import WaitingLanes
from consan.backends.cpu.state.groups import LaneGroup
from consan.backends.cpu.state.memory import RANK_SHIFT, SHARED_WINDOW
from consan.backends.cpu.state.wave import Wave

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock
    from consan.backends.cpu.engine.scheduler import Scheduler

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]
RANKS = 16  # the most CTAs that a cluster may have


class ClusterBarriers:
    """The barrier of every cluster of the wave: one arrival per thread and phase."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.cluster_of = wave.cluster_of
        self.clusters = wave.shape.clusters
        self.arrived = np.zeros(wave.lanes, np.bool_)
        self.turn = np.zeros(wave.lanes, np.int64)  # phase of the thread's last arrival, counted from 1
        self.waited = np.zeros(wave.lanes, np.int64)  # the same of its last wait
        self.phase = np.zeros(self.clusters, np.int64)  # phases completed
        self.reset()

    def reset(self) -> None:
        """A new wave starts."""
        for table in (self.arrived, self.turn, self.waited, self.phase):
            table[...] = 0
        self.waiters: list[WaitingLanes] = []
        self.in_use = False

    def arrive(self, lanes: Lanes) -> list[WaitingLanes]:
        """Threads arrive. A second arrival in one phase does not count. Returns the released waiters."""
        self.in_use = True
        self.turn[lanes] = self.phase[self.cluster_of[lanes]] + 1
        self.arrived[lanes] = True
        return self.settle()

    def settle(self) -> list[WaitingLanes]:
        """Complete the phases for which all threads that have not exited have arrived."""
        if not self.in_use:
            return []
        missing = np.bincount(self.cluster_of[self.wave.live & ~self.arrived], minlength=self.clusters)
        present = np.bincount(self.cluster_of[self.arrived], minlength=self.clusters)
        done = (missing == 0) & (present > 0)
        if not done.any():
            return []
        self.phase[done] += 1
        self.arrived[done[self.cluster_of]] = False
        self.in_use = bool(self.arrived.any())
        released, kept = list[WaitingLanes](), list[WaitingLanes]()
        for waiter in self.waiters:
            free = done[self.cluster_of[waiter.lanes]]
            for chosen, target in ((free, released), (~free, kept)):
                if chosen.any():
                    target.append(WaitingLanes(waiter.lanes[chosen], waiter.stack, waiter.resume, waiter.turn, waiter.site, None))
        self.waiters = kept
        return released

    def wait(self, lanes: Lanes) -> Array:
        """Threads wait for the phase of their last arrival, or for the next one if they have not arrived since their last wait.

        Returns whether that phase is complete.
        """
        self.waited[lanes] = np.maximum(self.turn[lanes], self.waited[lanes] + 1)
        return np.asarray(self.phase[self.cluster_of[lanes]] >= self.waited[lanes])


def decode_arrive(context: DecodeContext) -> Step:
    """barrier.cluster.arrive."""
    plan, ids = context.function.plan, context.wave.ids
    return selective(lambda sel: plan.resume(plan.cluster_barriers.arrive(ids[sel])))


class ClusterWait:
    """barrier.cluster.wait: the end of a block."""

    def __init__(self, context: DecodeContext, following: BoundBlock) -> None:
        self.barriers = context.function.plan.cluster_barriers
        self.site = context.site
        self.following = following

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        lanes = group.lanes
        free = self.barriers.wait(lanes)
        if free.all():
            return self.following
        self.barriers.waiters.append(WaitingLanes(lanes[~free], group.stack, self.following, group.round, self.site, None))
        if not free.any():
            return None
        group.set_lanes(lanes[free])
        return self.following


def decode_mapa(context: DecodeContext) -> Step:
    """mapa: the same offset in the CTA of another rank."""
    destination, address, rank = context.instruction.operands
    word = context.modifiers["type"]
    target, source, ranks = context.target(destination, word), context.source(address, word), context.source(rank, "u32")
    base = np.array(0 if "space" in context.modifiers else SHARED_WINDOW, source.dtype if word == "u64" else np.uint32)
    inside, shift = source.dtype.type((1 << RANK_SHIFT) - 1), source.dtype.type(RANK_SHIFT)
    count = len(context.wave.ids)

    def part(sel: Any) -> None:
        given = np.broadcast_to(source, count)[sel]
        there = np.broadcast_to(ranks, count)[sel].astype(source.dtype)
        target.write(sel, base + (((given - base) & inside) | (there << shift)))

    return selective(part)


def decode_getctarank(context: DecodeContext) -> Step:
    """getctarank: the rank of the CTA that an address lies in."""
    destination, address = context.instruction.operands
    word = context.modifiers["type"]
    target, source = context.target(destination, "u32"), context.source(address, word)
    shift, ranks = source.dtype.type(RANK_SHIFT), source.dtype.type(RANKS - 1)
    count = len(context.wave.ids)
    return selective(lambda sel: target.write(sel, ((np.broadcast_to(source, count)[sel] >> shift) & ranks).astype(np.uint32)))


STEPS: Steps = {"barrier.cluster.arrive{.sem}{.aligned}": decode_arrive, "mapa": decode_mapa, "getctarank": decode_getctarank}
