"""Sets a request's schedules in a virtual machine, and reads back the decisions or their effects.

One schedule per launch, in order: the n-th launch of a replay takes the decisions of the n-th recorded launch.
Places are given as lines of the module before instrumentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from consan.backends.cpu.engine.decisions import Decision, Recorder, Replay, Trace
from consan.backends.cpu.engine.steered import schedule_of
from consan.backends.cpu.state.schedule import Schedule
from consan.instrument.rewriting.ranked import rank_grid_of
from consan.reports.source.places import located
from consan.triage.outcome import DecisionPlace, DecisionWords, Request
from consan.triage.subject import hash_ptx

if TYPE_CHECKING:
    from consan.instrument import Instrumented
    from consan.session.modules.device import Device


class Steering:
    """The schedules of one run, launch by launch."""

    def __init__(self, request: Request, device: Device) -> None:
        self._request = request
        self._device = device
        self._schedules: list[Schedule] = []
        self.recorded: list[Decision] = []

    @contextmanager
    def steer(self) -> Iterator[None]:
        """Inside the block, launches use the schedules of this run. A GPU has its own."""
        machine = getattr(self._device.backend, "machine", None)
        if machine is None:
            yield
            return
        machine.schedules = self._next
        try:
            yield
        finally:
            machine.schedules = schedule_of

    def _next(self, _seed: int) -> Schedule:
        launch, request = len(self._schedules), self._request
        if request.decisions is not None:
            schedule: Schedule = Replay([each for each in request.decisions if each.launch == launch], request.baseline)
        else:
            schedule = schedule_of(request.seed)
            schedule = Recorder(schedule, self.recorded, launch) if request.record else schedule
        self._schedules.append(schedule)
        return schedule

    def kernels(self) -> tuple[str, ...]:
        """Hashes of the modules' texts, in the order of the launches."""
        modules = [schedule.scheduler.plan.module for schedule in self._schedules if hasattr(schedule, "scheduler")]
        return tuple(dict.fromkeys(hash_ptx(module.program.text) for module in modules))

    def described(self) -> tuple[DecisionWords, ...]:
        """The effects of the request's decisions, in their order."""
        decisions = self._request.decisions or ()
        found: dict[int, DecisionWords] = {}
        for launch, schedule in enumerate(self._schedules):
            if isinstance(schedule, Replay):
                indices = [index for index, decision in enumerate(decisions) if decision.launch == launch]
                for index, trace in zip(indices, schedule.traces, strict=True):
                    found[index] = self._tell(schedule, decisions[index], trace)
        return tuple(found.get(index, DecisionWords()) for index in range(len(decisions)))

    def _tell(self, schedule: Schedule, decision: Decision, trace: Trace) -> DecisionWords:
        over = (decision.over[0],) if decision.over is not None else ()
        return DecisionWords(
            place=self._place(schedule, decision.lines),
            over=self._place(schedule, over),
            taken=trace.taken,
            until=self._place(schedule, trace.lines),
            block=trace.block,
            warp=trace.warp,
            rank_grid=rank_grid_of(schedule.scheduler.plan.module.program.text) if hasattr(schedule, "scheduler") else 0,
            idle=trace.idle,
        )

    def _place(self, schedule: Schedule, lines: Sequence[int]) -> DecisionPlace | None:
        """The first of these lines of the instrumented text that the original text has."""
        scheduler = getattr(schedule, "scheduler", None)
        if scheduler is None:
            return None
        module = scheduler.plan.module
        for prepared in self._device.prepared():
            if prepared.loaded is module:
                return _original(prepared.instrumented, lines)
        return DecisionPlace(ptx_line=lines[0]) if lines else None


def _original(instrumented: Instrumented, lines: Sequence[int]) -> DecisionPlace | None:
    """The first line that the original has."""
    found = map(instrumented.original, lines)
    return next((_shown(place) for place in found if place is not None), None)


def _shown(place: Any) -> DecisionPlace:
    """The user's line, as reports show it, and the line of the kernel that calls its function."""
    shown = located(place)
    calls = [f"{os.path.basename(frame.file)}:{frame.line}" for frame in shown["inlined"][-1:]]
    here = f"{os.path.basename(shown['file'])}:{shown['line']}"
    return DecisionPlace(shown["file"], shown["line"], place.ptx_line, place.ptx, next((call for call in calls if call != here), ""))
