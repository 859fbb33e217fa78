"""Schedules in which one access of a pair comes last: its warp, or its thread alone, is held before it, or its copy lands late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from consan.backends.cpu.state.schedule import AT_ONCE, LATE, Bools, Schedule

if TYPE_CHECKING:
    from consan.backends.cpu.state.copies import PendingOperation
    from consan.backends.cpu.state.groups import LaneGroup

    from .code import BoundBlock
    from .scheduler import Scheduler

_HOLD: Final = 600  # steps; it goes on before, if nobody else can run
_VISITS: Final = 6  # the first ones are held


class Ordered(Schedule):
    """`line`: of the kernel's PTX. `cta`, `thread`: their linear numbers. `alone`: the other lanes of the warp go on. `late`: copies land
    as late as is legal, else at once.
    """

    perturbs = counts = steers = True

    def __init__(self, line: int, cta: int, thread: int, *, alone: bool, late: bool) -> None:
        self.line, self.cta, self.thread, self.alone, self.late = line, cta, thread, alone, late

    def start_wave(self, scheduler: Scheduler) -> None:  # noqa: D102 - as in Schedule
        super().start_wave(scheduler)
        functions = scheduler.plan.reach.functions
        blocks = ((code, block) for code in functions for block in code.blocks)
        self._positions = {
            (code.ordinal << 32) + block.index
            for code, block in blocks
            if any(code.line(each) == self.line for each in code.instructions[block.start : block.end])
        }
        wave = self.wave
        places = np.arange(wave.lanes) % (wave.lanes // wave.shape.ctas)
        same = places == self.thread if self.alone else places // 32 == self.thread // 32
        self._chosen = np.asarray(same & (wave.cta_of == self.cta))
        self._visits, self._was_held = np.zeros(wave.lanes, np.int64), np.zeros(wave.lanes, np.bool_)

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:  # noqa: D102 - as in Schedule
        if block.position in self._positions:
            self._visits[group.lanes] += 1
            self._was_held[group.lanes] = False

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:  # noqa: D102 - as in Schedule
        if group.block.position not in self._positions:
            return []
        lanes = group.lanes
        chosen = np.asarray(self._chosen[lanes] & ~self._was_held[lanes] & (self._visits[lanes] < _VISITS))
        if not chosen.any():
            return []
        self._was_held[lanes[chosen]] = True
        return [(chosen, _HOLD)]

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:  # noqa: D102 - as in Schedule
        return [(operation, LATE if self.late else AT_ONCE)]
