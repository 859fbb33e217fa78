"""Runs the groups of a wave until all threads have exited, one stops the launch, or none can continue.

Groups run as long as they can and merge where they can. A schedule (schedule.py) may delay warps, and in clusters also
the start of whole CTAs. Interleavings differ from seed to seed; equal seeds give equal ones.

Deadlock needs no timer: threads wait and nothing can run, or the running threads can do nothing new (progress.py).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consan.backends.cpu.state.barriers import WaitingLanes
from consan.backends.cpu.state.faults import Blocked, Fault, LaneError, LaunchStats, united
from consan.backends.cpu.state.groups import MAY_WAIT, Activation, LaneGroup, ReadyQueue, merge_lanes

from .parked import ParkedGroups
from .polling import poll_near
from .progress import IDLE_SECONDS, WaveProgress
from .turns import Turns

if TYPE_CHECKING:
    from consan.backends.cpu.state.schedule import Schedule

    from .code import BoundBlock, Collective, Plan

SPINS = 20_000  # consecutive backward branches after which other groups run
POLLS = 256  # the same for a loop that may be waiting for another thread
ALONE = 16  # after which such a loop is looked at if nothing else can run: whether it hangs
BETWEEN = SPINS // POLLS  # what a barrier in a loop counts for: a thread may wait there with plain loads
EARLY = 4  # the same for a loop that does nothing else, while other groups can run
TICKS = 64  # blocks between looks at the clock


class Scheduler:
    """One wave in execution."""

    def __init__(self, plan: Plan, schedule: Schedule, deadline: float | None, stats: LaunchStats) -> None:
        """Without a deadline, a wave that only polls ends after a while, too."""
        self.plan = plan
        self.wave = plan.wave
        plan.scheduler = self
        self.schedule = schedule
        self.enter = schedule.enter if schedule.counts else None
        self.deadline = deadline
        self.stats = stats
        self.ready = ReadyQueue()
        self.parked = ParkedGroups(self.wave, self.ready)
        self.held: list[tuple[int, LaneGroup]] = []  # groups delayed by the schedule, and until which step
        self.step = 0  # events of any thread (decode/events.py): the time of schedules
        self.blocks = 0
        self.instructions = 0
        self.turns = Turns(self.ready, self.wave)
        self.run_block = self.plain_block
        self.progress = WaveProgress(self, IDLE_SECONDS if deadline is None else None)

    def run(self) -> bool:
        """Run the wave. Returns whether the launch continues."""
        entry = self.plan.entry
        if entry.frame_base is not None:
            entry.frame_base[...] = self.plan.reach.static_local
        self.wave.sp[...] = self.plan.reach.static_local + entry.frame_bytes
        self._start(LaneGroup(self.wave.ids, Activation(None, entry), entry.entry))
        group: LaneGroup | None = None
        steers = self.schedule.steers
        try:
            while (group := self._next()) is not None:
                if (not steers or not group.block.code.event or self._hold_back(group)) and self._run_group(group):
                    self._stop(group)
                    return False
        except LaneError as fault:
            self.stats.faults.append(self._fault(fault))
            return False
        except KeyboardInterrupt as error:
            error.blocked = self._running(group)  # type: ignore[attr-defined]  # for the report: where the threads were
            raise
        finally:
            self.stats.instructions += self.instructions
        if self.wave.alive:
            self.stats.deadlocked = True
            self.stats.blocked += self._blocked()
            return False
        return True

    def _stop(self, group: LaneGroup) -> None:
        """The wave ends before its threads do: it hangs, or a limit was reached."""
        stats, progress = self.stats, self.progress
        stats.deadlocked, stats.idle = progress.hung, IDLE_SECONDS if progress.idled else 0.0
        stats.timed_out = not progress.over
        stats.blocked += self._hung(group) if progress.hung else self._running(group)

    def _start(self, group: LaneGroup) -> None:
        """Queue all threads; a schedule lets some CTAs of clusters start late."""
        self.schedule.start_wave(self)
        prompt = np.ones(self.wave.lanes, np.bool_)
        for lanes, due in self.schedule.late_starts():
            prompt[lanes] = False
            self.held.append((due, LaneGroup(lanes, group.stack, group.block, group.round)))
        if prompt.any():
            group.set_lanes(prompt.nonzero()[0])
            self.ready.push(group)

    def _next(self) -> LaneGroup | None:
        while (group := self.ready.pop()) is None:
            if self.held:
                self._release_held(min(due for due, _ in self.held))
            elif not self.plan.unblock() and not self.parked.go_on():
                return None
        return group

    def products_committed(self) -> None:
        """Warps have committed products: those of their warpgroups that wait for them look again."""
        self.parked.release(lambda collective: collective.together)

    def _run_group(self, group: LaneGroup) -> bool:
        """Run a group until it stops or another one goes first. Returns whether the wave must end."""
        ready = self.ready
        block = group.block
        while True:
            if not block.bound:
                block.bind()
            if (block.looks or block.collective is not None) and self._stays(group, block):
                return False
            self.run_block(group, block)
            following = block.end(self, group)
            self.blocks += 1
            self.step += block.code.event
            if self.blocks % TICKS == 0 and self._tick():
                if following is not None:
                    group.block = following
                return True
            if following is None:
                return False
            backward = following.position <= block.position
            group.block = following
            if (backward or block.sees) and self._spun(group, backward):
                ready.push(group)
                return self.progress.over
            block = following
            if block.code.event and not self.progress.calm and not self._hold_back(group):
                return False
            if ready and (best := ready.best()) is not None and best <= ready.key(group):
                ready.push(group)
                return False

    def _stays(self, group: LaneGroup, block: BoundBlock) -> bool:
        """Whether a group does not run its block now."""
        if block.collective is not None and group.count != self.wave.alive and not self._converge(group, block, block.collective):
            return True
        return block.looks and (block.glances or bool(self.ready)) and self.turns.looks_later(group, block)

    def count_block(self, group: LaneGroup, block: BoundBlock) -> None:
        """A group is about to run a block by other means than `plain_block`."""
        if self.enter is not None:
            self.enter(group, block)
        self.instructions += group.count * block.size
        group.polls |= block.polls

    def plain_block(self, group: LaneGroup, block: BoundBlock) -> None:
        """Run a block without its end."""
        if block.publishes and not self.turns.part(group) and self.ready:
            self.turns.hand_over(group)
        wave, count = self.wave, group.count
        if self.enter is not None:
            self.enter(group, block)
        self.instructions += count * block.size
        group.polls |= block.polls
        if count == wave.lanes:
            for full in block.fulls:
                full()
        elif count == wave.alive:
            sel = group.sel
            for step in block.steps:
                if step.pure:
                    step.full()
                else:
                    step.part(sel)
        elif count * 4 > wave.lanes and not isinstance(group.sel, slice):
            self._run_masked(group, block)
        else:
            sel = group.sel
            for step in block.steps:
                step.part(sel)

    def _run_masked(self, group: LaneGroup, block: BoundBlock) -> None:
        mask, sel = group.mask(self.wave.lanes), group.sel
        for step in block.steps:
            if step.pure:
                step.masked(mask)
            else:
                step.part(sel)

    def _spun(self, group: LaneGroup, backward: bool) -> bool:
        """Whether a group that has branched backwards lets others run; or it has left a block that may poll."""
        if not backward:
            self.turns.leaves(group)
            return False
        group.spins += 1
        polled = group.polls & MAY_WAIT
        if polled and group.spins % ALONE == 0 and self._is_alone() and self.progress.turn(group):
            return True
        if group.spins < (POLLS if polled else SPINS):
            return group.spins % EARLY == 0 and self._spun_early(group)
        if polled and not self.held:
            self.plan.unblock(polled=True)
        if self.held:  # no time passes in a loop without events
            self._release_held(min(due for due, _ in self.held))
        group.spins = group.polls = 0
        self.turns.ends(group)
        return self.progress.turn(group) or bool(self.ready) or bool(self.held)

    def _is_alone(self) -> bool:
        """Whether nothing but the group that runs can change anything."""
        return not (self.ready or self.held or self.plan.copies.flying or self.plan.mbarriers.parked)

    def _spun_early(self, group: LaneGroup) -> bool:
        """Whether a group that only polls lets others run: turns that see nothing new cost as much as turns that do."""
        idles = group.polls == MAY_WAIT and bool(self.ready)
        if idles:
            self.turns.waits(group)
        group.polls = 0
        return idles

    def _tick(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    # Delays --------------------------------------------------------------------------------------------------------

    def _hold_back(self, group: LaneGroup) -> bool:
        """Before an event: remove the lanes that the schedule delays from the group. Returns whether any lanes are left."""
        self.plan.copies.tick(self.step)
        if self.held:
            self._release_held(self.step)
        left = None
        for late, steps in self.schedule.holds(group):
            left = ~late if left is None else left & ~late
            delayed = LaneGroup(group.lanes[late], group.stack, group.block, group.round)
            delayed.spins, delayed.polls = group.spins, group.polls  # else a poll that is delayed often never counts as a hang
            self.held.append((self.step + steps, delayed))
        if left is None:
            return True
        if left.any():
            group.set_lanes(group.lanes[left])
            return True
        return False

    def _release_held(self, step: int) -> None:
        for due, group in self.held:
            if due <= step:
                self.schedule.released(group)
                self.ready.push(group)
        self.held = [(due, group) for due, group in self.held if due > step]

    # Used by the ends of blocks ---------------------------------------------------------------------------------------

    def proceed(self, group: LaneGroup, block: BoundBlock | None) -> None:
        """Queue a group that continues at `block`; None: its threads do not continue."""
        if block is not None:
            group.block = block
            self.ready.push(group)

    def resume(self, waiters: list[WaitingLanes]) -> None:
        """Queue threads that a barrier has released."""
        for waiter in waiters:
            group = LaneGroup(waiter.lanes, waiter.stack, waiter.resume, waiter.turn)
            group.spins, group.polls = waiter.spins + BETWEEN * (not waiter.polls & MAY_WAIT), waiter.polls
            self.ready.push(group)

    def exit(self, group: LaneGroup) -> None:
        """The threads of the group end."""
        plan, wave = self.plan, self.wave
        plan.copies.wait(group.lanes, None, "async")
        wave.retire(group.lanes)
        if wave.alive == 0:
            return
        self.resume(plan.barriers.after_exit())
        self.resume(plan.warp_barriers.settle())
        self.resume(plan.cluster_barriers.settle())
        for parked in self.parked.values():
            self.ready.push(parked)
        self.parked.clear()

    def _converge(self, group: LaneGroup, block: BoundBlock, collective: Collective) -> bool:
        """At a collective: park the lanes of incomplete warps, and of incomplete warpgroups. Returns whether any lanes can continue."""
        place = (id(group.stack), block.position)
        parked = self.parked.pop(place, None)
        if parked is not None:
            group.set_lanes(merge_lanes(parked.lanes, group.lanes))
        wave, lanes, members = self.wave, group.lanes, collective.members
        missing = wave.live_masks() & ~wave.warps.masks(lanes)
        alone = ((members[lanes] if members.ndim else members) & missing[wave.warps.of_lane[lanes]]) != 0
        if collective.together and not self.parked.parted:
            alone |= self.plan.copies.ahead("wgmma")[wave.warps.of_lane[lanes]]
        alone &= self.parked.waits(block, lanes)
        if not alone.any():
            return True
        self.parked[place] = LaneGroup(lanes[alone], group.stack, block, group.round)
        if alone.all():
            return False
        group.set_lanes(lanes[~alone])
        return True

    # Reports -------------------------------------------------------------------------------------------------------

    def _fault(self, fault: LaneError) -> Fault:
        wave, site = self.wave, fault.site
        ctaid, tid = wave.ctaid_of(fault.lane), wave.tid_of(fault.lane)
        touched, had = (fault.address, fault.nbytes, fault.space, fault.access), wave.shape.shared_bytes
        return Fault(fault.kind, site.opcode, site.line, ctaid, tid, *touched, fault.message, had)

    def _blocked(self) -> list[Blocked]:
        found: list[Blocked] = []
        for waiters in (*self.plan.barriers.waiters, self.plan.warp_barriers.waiters):
            for waiter in waiters:
                why = "warp-barrier" if waiter.barrier is None else "barrier"
                found += self._by_warp(waiter.lanes, why, waiter.barrier, waiter.site.opcode, waiter.site.line)
        for waiter in self.plan.cluster_barriers.waiters:
            found += self._by_warp(waiter.lanes, "cluster-barrier", None, waiter.site.opcode, waiter.site.line)
        for waiter, why in self.plan.columns_waiters:
            found += self._by_warp(waiter.lanes, why, None, waiter.site.opcode, waiter.site.line)
        for group in self.parked.values():
            found += self._at(group, "warp-collective")
        return united(found + self._at_mbarriers())

    def _at_mbarriers(self) -> list[Blocked]:
        barriers = self.plan.mbarriers
        found: list[Blocked] = []
        for parked in (parked for there in barriers.parked.values() for parked in there):
            site, state = parked.waiter.site, barriers.state(parked.unit)
            found += [replace(b, mbarrier=state) for b in self._by_warp(parked.waiter.lanes, "mbarrier", None, site.opcode, site.line)]
        return found

    def _running(self, current: LaneGroup | None) -> list[Blocked]:
        """The places of all threads."""
        return [blocked for group in self.running(current) for blocked in self._at_poll(group)] + self._blocked()

    def _at_poll(self, group: LaneGroup) -> list[Blocked]:
        """For a running group: the poll of its loop, if it is in one."""
        found = poll_near(group)
        if found is None:
            return self._at(group, "running")
        instruction, frame = found
        blocked = self._by_warp(group.lanes, "running", None, instruction.opcode, instruction.line)
        return [replace(b, callers=tuple(frame.calls())) for b in blocked]

    def running(self, current: LaneGroup | None) -> list[LaneGroup]:
        """The groups that neither wait nor have exited; `current` is the one that ran last."""
        groups = [*self.ready.groups(), *(group for _, group in self.held)]
        if current is None or current in groups:
            return groups
        left = self.wave.live.copy()
        for taken in (each.lanes for each in (*groups, *self.parked.values())):
            left[taken] = False
        for waiter in self._waiters():
            left[waiter.lanes] = False
        lanes = current.lanes[left[current.lanes]]
        return [*groups, LaneGroup(lanes, current.stack, current.block)] if len(lanes) else groups

    def _waiters(self) -> list[WaitingLanes]:
        plan = self.plan
        parked = [each.waiter for there in plan.mbarriers.parked.values() for each in there]
        others = (plan.warp_barriers.waiters, plan.cluster_barriers.waiters, [waiter for waiter, _ in plan.columns_waiters], parked)
        return [*itertools.chain(*plan.barriers.waiters, *others)]

    def _hung(self, current: LaneGroup) -> list[Blocked]:
        """Which warps loop and what they poll, and which wait."""
        found = []
        for group in self.running(current):
            warps = self.wave.warps.of_lane[group.lanes]
            for lanes in (group.lanes[warps == warp] for warp in np.unique(warps)):
                (blocked,) = self._at(LaneGroup(lanes, group.stack, group.block), "loop")
                found.append(self.progress.polls.of(blocked, lanes))
        return found + self._blocked()

    def _at(self, group: LaneGroup, why: str) -> list[Blocked]:
        code = group.block.function.code
        instruction = code.instructions[min(group.block.code.start, len(code.instructions) - 1)]
        blocked = self._by_warp(group.lanes, why, None, instruction.opcode, code.line(instruction))
        return [replace(b, callers=tuple(group.stack.calls())) for b in blocked]

    def _by_warp(
        self, lanes: np.ndarray[tuple[int], np.dtype[np.intp]], why: str, barrier: int | None, opcode: str, line: int
    ) -> list[Blocked]:
        wave = self.wave
        masks = wave.warps.masks(lanes)
        found = []
        for warp in masks.nonzero()[0].tolist():
            first = int(wave.warps.slots[warp][wave.warps.present[warp]][0])
            rank = int(wave.rank[first]) if wave.cluster_size > 1 else None
            who = (wave.ctaid_of(first), warp % wave.warps.per_cta, int(masks[warp]))
            arrived, expected = self.plan.barriers.counts(barrier, int(wave.cta_of[first])) if barrier is not None else (None, None)
            found.append(Blocked(*who, why, barrier, opcode, line, arrived, expected, cluster_rank=rank))
        return found
