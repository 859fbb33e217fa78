"""Detects that a wave hangs: proves without a timer that no thread can do anything new, or gives up after a time.

The proof: during some stretch no thread changes memory and no asynchronous operation is in flight. A thread's next action then depends
only on its own registers and that memory, and in a collective on its warp's registers. If every running thread is seen twice
at the same place with the same registers, each repeats the steps in between for ever, or comes to wait at a barrier, under any
schedule. The code and state of hooks are ignored: they change nothing that the kernel computes.

A loop that counts, or reads a clock, is as good as one that repeats itself if only memory can end it (patience.py).

Never proven: other loops that read a clock or the active mask, count, recurse, or store anything. If all threads
poll in such loops, and none changes memory for `IDLE_SECONDS`, the launch is given up without a verdict.

The scheduler reports each turn of a group in a loop (`turn`). Everything else costs time only during a look, and looks
become rarer after they have seen a change.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import is_clock, is_of_hooks
from consan.backends.cpu.decode.patience import PatientLoops
from consan.backends.cpu.decode.program import FunctionCode, call_parts, is_aligned, is_collective
from consan.dataclass import dataclass
from consan.instrument.isa import is_wide, lookup, polls, row_of
from consan.instrument.ptx import Instruction

from .output import BUILTINS
from .polling import Polls

if TYPE_CHECKING:
    from consan.backends.cpu.state.groups import Activation, LaneGroup

    from .code import BoundBlock
    from .scheduler import Scheduler

IDLE_SECONDS: Final = 60.0
FIRST_LOOK, MOST_BETWEEN = 4, 64  # turns before the first look, and at most before another one
CALM: Final = 2  # turns of a look without change, after which the schedule stops delaying warps
MOST_STATES: Final = 4096  # kept per look: threads that count have a new state each turn


@dataclass(frozen=True)
class Effects:
    """The effects of a block of the kernel, for a look."""

    changes: bool = False  # memory changes that others may see
    erratic: bool = False  # not a function of registers and memory
    together: bool = False  # a function of the whole warp's registers
    polls: bool = False  # a thread may wait for another there


def effects_of(block: BoundBlock) -> Effects:
    """The effects of a block, computed once."""
    if block.effects is None:
        code = block.function.code
        inside = code.instructions[block.code.start : block.code.end]
        block.effects = Effects(
            any(map(_changes, inside)) or code.recursive or code.text.uses_alloca,
            any(map(_erratic, inside)),
            any(map(_together, inside)),
            any(polls(instruction) or _erratic(instruction) for instruction in inside),
        )
    return block.effects


def _changes(instruction: Instruction) -> bool:
    """Whether others may see a change. Atomics but asynchronous ones report at run time, since many leave the value unchanged."""
    if is_of_hooks(instruction):
        return False
    row = lookup(instruction.parts)
    if row is None:
        return True
    if row.calls:  # a function of the module has blocks of its own; a built-in one prints or allocates
        return getattr(call_parts(instruction)[1], "name", "") in BUILTINS
    if row.is_store or row.is_mbarrier:
        return row.writes and row.status != "neutral"  # that is private memory
    if row.is_update:
        return is_wide(instruction) or row.may_be_late
    if row.is_barrier:
        return row.arrives_only or row.reduces or row.is_cluster_barrier
    return not row.is_steady


def _erratic(instruction: Instruction) -> bool:
    return row_of(instruction).asks_who_is_active or any(map(is_clock, instruction.operands))


def _together(instruction: Instruction) -> bool:
    return is_collective(instruction) or is_aligned(instruction)


class WaveProgress:
    """The looks at one wave."""

    def __init__(self, scheduler: Scheduler, idle: float | None) -> None:
        self.scheduler = scheduler
        self.idle = idle
        self.polls = Polls(scheduler.plan)
        self.hung = self.idled = False
        self.turns, self.next, self.between = 0, FIRST_LOOK, FIRST_LOOK
        self.look: _Look | None = None  # that is under way
        self.loops: dict[FunctionCode, PatientLoops] = {}

    @property
    def over(self) -> bool:
        """Whether the wave was given up."""
        return self.hung or self.idled

    @property
    def calm(self) -> bool:
        """Whether the schedule should stop delaying warps: nothing has changed for a while."""
        return self.look is not None and self.look.still >= CALM

    def turn(self, group: LaneGroup) -> bool:
        """A group has completed turns of a loop. Returns whether the wave must be given up."""
        self.turns += 1
        if self.look is None:
            if self.turns >= self.next:
                self.look = _Look(self)
            return False
        if self.look.has_changed():
            self._end()
            return False
        running = np.concatenate([each.lanes for each in self.scheduler.running(group)])  # those that neither wait nor have exited
        self.look.record(group)
        if self.look.cycled[running].all():
            self.hung = self.look.proves_hang()
        elif self.idle is not None and self.look.polled[running].all():
            self.idled = time.monotonic() - self.look.since > self.idle
        return self.over

    def _end(self) -> None:
        self.look = self.scheduler.wave.changed = None
        self.between = min(2 * self.between, MOST_BETWEEN)
        self.next = self.turns + self.between
        self.scheduler.run_block = self.scheduler.plain_block


class _Look:
    """One look: it lasts until something changes."""

    def __init__(self, progress: WaveProgress) -> None:
        self.scheduler, self.polls, self.loops = progress.scheduler, progress.polls, progress.loops
        self.still = 0  # turns
        self.since = time.monotonic()
        self.changes = False
        self.again: int | None = None  # the turn after which the polled memory is looked at anew; None: it has not been yet
        self.states: set[bytes] = set()
        self.heads: set[tuple[int, bytes]] = set()  # of loops that only memory ends, with the lanes that have come there
        lanes = self.scheduler.wave.lanes
        self.moved, self.touched, self.cycled, self.erratic, self.together, self.polled = (np.zeros(lanes, np.bool_) for _ in range(6))
        self.scheduler.wave.changed = False
        self.scheduler.run_block = self._run_block

    def has_changed(self) -> bool:
        """Whether memory has changed, or may still."""
        return self.changes or bool(self.scheduler.wave.changed) or bool(self.scheduler.plan.copies.flying)

    def proves_hang(self) -> bool:
        """Whether the launch hangs, where all running groups loop: the waiters have waited all the time, and the polls were seen."""
        waiting = self.scheduler.wave.live & ~self.cycled
        if self.again is not None and not (waiting & self.touched).any():
            return True
        if self.again is None or self.still > self.again:
            self._watch()
        return False

    def _watch(self) -> None:
        """Look once more, at the polled memory."""
        self.again = self.still + MOST_BETWEEN
        self.states.clear()
        self.heads.clear()
        self.cycled[...] = self.touched[...] = False
        self.polls.clear()

    def _run_block(self, group: LaneGroup, block: BoundBlock) -> None:
        """Run a block, and note its effects."""
        if block.function.own:
            effects, sel = effects_of(block), group.sel
            self.changes |= effects.changes
            self.moved[sel] = self.touched[sel] = True
            if effects.polls:
                self.polled[sel] = True
            if effects.erratic:
                self.erratic[sel] = True
            if effects.together:
                self.together[sel] = True
            if self.again is not None:
                self.scheduler.count_block(group, block)
                self.polls.run(group, block)
                return
        self.scheduler.plain_block(group, block)

    # States --------------------------------------------------------------------------------------------------------

    def record(self, group: LaneGroup) -> None:
        """Record the place and registers of the group's threads after a turn. A repeated state means a completed one."""
        self.still += 1
        lanes = group.lanes
        if self.moved[lanes].all() and self._goes_round(group):
            self.cycled[lanes] = True
        if not self.moved[lanes].all() or self.erratic[lanes].any() or (self.together[lanes].any() and not self._whole_warps(lanes)):
            return
        self.moved[lanes] = False
        state = self._state(group)
        if state in self.states:
            self.cycled[lanes] = True
        elif len(self.states) < MOST_STATES:
            self.states.add(state)

    def _goes_round(self, group: LaneGroup) -> bool:
        """Whether a group has come twice to the head of a loop that only memory ends: then it has completed a round during the look."""
        if not group.block.function.own or not self._is_patient(group.block):
            return False
        key = group.block.position, group.lanes.tobytes()
        if key in self.heads:
            return True
        self.heads.add(key)
        return False

    def _is_patient(self, block: BoundBlock) -> bool:
        """Whether a block is the head of such a loop."""
        code = block.function.code
        if code not in self.loops:
            self.loops[code] = PatientLoops(code.function)
        return block.size > 0 and self.loops[code].begins_at(code.instructions[block.code.start].start)

    def _whole_warps(self, lanes: npt.NDArray[np.intp]) -> bool:
        here = self.scheduler.wave.warps.masks(lanes)
        return bool((here[here != 0] == self.scheduler.wave.live_masks()[here != 0]).all())

    def _state(self, group: LaneGroup) -> bytes:
        """A digest of the place in the kernel, the threads, and all their state."""
        frames, place = _place(group)
        lanes = group.lanes
        digest = hashlib.blake2b(repr(place).encode() + lanes.tobytes(), digest_size=16)
        own = [array for frame in frames for array in (*frame.function.own_arrays(), *self._locals(frame))]
        for array in (*own, *([self.scheduler.plan.carry] if "carry" in self.scheduler.plan.__dict__ else [])):
            digest.update(array[lanes].tobytes())
        return digest.digest()

    def _locals(self, frame: Activation) -> list[npt.NDArray[Any]]:
        """The local variables of a function, a row for each lane."""
        code, wave = frame.function.code, self.scheduler.wave
        if not code.local_bytes:
            return []
        row = max(-(-wave.shape.local_bytes // 16) * 16, 16)
        start = self.scheduler.plan.reach.local.get(code, 0)
        window = wave.arena.raw[wave.windows.local : wave.windows.local + row * wave.lanes].reshape(wave.lanes, row)
        return [window[:, start : start + code.local_bytes]]


def _place(group: LaneGroup) -> tuple[list[Activation], tuple[int, ...]]:
    """The frames of the kernel's own functions, the innermost first, and where in them the group is: at a call if it is in a hook."""
    frames, position = [], group.block.position
    frame: Activation | None = group.stack
    place: list[int] = []
    while frame is not None:
        if frame.function.own:
            frames.append(frame)
            place.append(position)
        call = frame.return_to
        position = call.following.position if call is not None else 0
        frame = frame.parent
    return frames, tuple(place)
