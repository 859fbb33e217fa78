"""Other schedules of a launch on the virtual machine.

A launch whose threads observe something of each other is repeated under schedules that steer at what was observed
(backends/cpu/engine/steered.py), each from the same memory, until the budget of the session is spent. A finding that only they show goes
into the report with the seed that repeats it.

A kernel is explored once for each grid and block, and only if no error was found in its launch. Two errors are exceptions: a copy
overwrites another one of a ring, and no reader was seen (a few schedules let the readers come between the copies); and threads wait for
ever for phases of mbarriers (such a wait may pass too soon where it comes earlier, as with the token of an earlier phase).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from consan._errors import ConsanError
from consan.backends.cpu.engine.steered import (
    Action,
    Seen,
    Steer,
    Steered,
    SteeringPoint,
    WaveSizes,
    constants,
    points,
    schedule_of,
    steerings,
)
from consan.backends.cpu.state.schedule import STEERED
from consan.dataclass import dataclass
from consan.reports.catalogue.situations import LAPPED
from consan.reports.model import Access, Finding
from consan.reports.verdict.speaking.shared import merge_key
from consan.session.planning.schedules import RACES, Explored

if TYPE_CHECKING:
    from consan.backends.cpu.engine.machine import Machine
    from consan.backends.cpu.state.schedule import Lanes, Schedule

MOST_MEMORY: Final = 256 << 20  # bytes of the program's memory that are kept for repetitions
_MOST_FOR_READERS: Final = 4  # schedules

ANYONE: Final = -1
Outcome = tuple[int, int, bool]
"""A point, or its line; a thread, or `ANYONE`; and whether it comes late, or a wait fails."""

Launch = Callable[[int, float], tuple[list[Finding], bool]]
"""Repeats the launch under a seed, in so many seconds: what was found, and whether it could be judged."""


@dataclass
class Exploration:
    """The schedules of one launch. `left`: seconds of the budget that are left. `took`: those of the launch itself."""

    machine: Machine
    launch: Launch
    data: int  # seed of random arguments
    left: Callable[[], float]
    took: float
    known: set[Any]  # keys of findings that the launch has
    explored: Explored
    found: list[Finding] = field(default_factory=list)
    found_points: list[SteeringPoint] = field(default_factory=list)
    _made: list[Schedule] = field(default_factory=list)

    def run(self) -> None:
        """Explore until all planned schedules have run, or the budget is spent."""
        with _schedules(self.machine, self._made_for):
            first = self._run_once(Steer(prompt=1))
            if first is None:
                return
            found = points(first.scheduler.plan.reach)
            wave = first.scheduler.wave
            numbers = tuple(constants(first.scheduler.plan.reach))
            for steering in steerings(found, first.seen, WaveSizes(wave.warps.per_cta, wave.shape.ctas, wave.shape.threads, numbers)):
                if self._run_once(steering) is None:
                    return

    def find_readers(self, refills: Collection[Hashable], lapped: Collection[Hashable]) -> None:
        """Find who reads what is overwritten by copies of these sites, or before arrivals of others that lap a phase.

        Copies land at once, and those who come to a point before one are held.
        """
        with _schedules(self.machine, self._made_for):
            chosen, shown = [0], list[Finding]()
            while chosen and not shown:
                schedule, fresh = self._launched(Steer(1, Action.LAST, point=chosen.pop(0)))
                if schedule is None:
                    return
                shown = [each for each in fresh if _reads(each) and (lapped or each.pair[-1].site in refills)]
                if not self.found_points:
                    self.found_points = points(schedule.scheduler.plan.reach)
                    chosen = self._signals(schedule.seen)
            self.found += shown

    def _signals(self, seen: Seen) -> list[int]:
        visited = dict.fromkeys(number for number, _ in seen.visits)
        return [each for each in visited if each and not self.found_points[each].waits][: _MOST_FOR_READERS - 1]

    def _made_for(self, seed: int) -> Schedule:
        self._made.append(schedule_of(seed))
        return self._made[-1]

    def _run_once(self, steering: Steer) -> Steered | None:
        """Run one schedule. None: no other one follows, since the budget is spent or there is an error."""
        schedule, fresh = self._launched(steering)
        if schedule is None:
            return None
        self.explored.schedules += 1
        self._note(schedule)
        self.known |= set(map(merge_key, fresh))
        self.found += fresh
        if any(each.severity == "error" for each in fresh):
            self.explored.ended = "the last one shows an error"
            return None
        return schedule

    def _launched(self, steering: Steer) -> tuple[Steered | None, list[Finding]]:
        """Launch under a steering: the schedule, and what was not known. None if the budget is spent, or nothing could be judged."""
        left = self.left()
        if left < self.took:
            self.explored.ended = "budget ended"
            return None, []
        self._made.clear()
        seed = steering.seed(self.data)
        began = time.monotonic()
        found, judged = self.launch(seed, left)
        schedule = self._made[0] if self._made else None
        if not judged or not isinstance(schedule, Steered) or not hasattr(schedule, "scheduler"):
            over = min(self.left(), left - (time.monotonic() - began)) <= 0
            self.explored.ended = "budget ended" if over else "a schedule could not be judged"
            return None, []
        return schedule, [replace(each, seed=seed) for each in found if merge_key(each) not in self.known]

    def _note(self, schedule: Steered) -> None:
        """Keep what was observed, and which outcomes came."""
        found = points(schedule.scheduler.plan.reach)
        looks = {number for number, each in enumerate(found) if each.observes}
        self.explored.observed |= {found[number].line for number, _ in schedule.seen.visits if number in looks}
        threads = schedule.wave.shape.threads
        possible, came = _possible(found, schedule.seen), _outcomes(found, schedule.seen, threads)
        self.explored.possible |= {(found[number].line, who, late) for number, who, late in possible if number in looks}
        self.explored.outcomes |= {(found[number].line, who, late) for number, who, late in came if number in looks}


def unread_refills(found: Iterable[Finding]) -> set[Hashable]:
    """Sites of copies that overwrite what another copy still writes, where no reader of these bytes was seen: it had no time."""
    known = list(found)
    over: set[Hashable] = {each.pair[-1].site for each in known if each.hazard == "WAW" and _is_refill(each.pair)}
    return over - {access.site for each in known if _reads(each) for access in each.pair}


def unread_laps(found: Iterable[Finding]) -> set[Hashable]:
    """Sites of arrivals that lap a phase, where no race with a read was seen: the readers had no time."""
    known = list(found)
    laps: set[Hashable] = {each.pair[-1].site for each in known if each.situation == LAPPED and each.pair}
    return set() if any(map(_reads, known)) else laps


def stuck_at_phases(found: Iterable[Finding]) -> bool:
    """Whether all errors are threads that wait for ever for phases of mbarriers."""
    errors = [each for each in found if each.severity == "error"]
    return bool(errors) and all(each.kind == "deadlock" and all("mbarrier" in waiter for waiter in each.waiters) for each in errors)


def _is_refill(pair: Sequence[Access]) -> bool:
    """Whether two accesses are copies, and the first one signals an mbarrier."""
    copies = [each.asynchronous for each in pair if each.asynchronous is not None]
    return len(copies) > 1 and copies[0].barrier is not None


def _reads(finding: Finding) -> bool:
    return finding.kind in RACES and finding.hazard in ("RAW", "WAR") and len(finding.pair) > 1


def _possible(found: list[SteeringPoint], seen: Seen) -> set[Outcome]:
    """The outcomes that each point may have. Each thread comes first to an atomic, or last; a wait passes, or fails. Elsewhere, and at an
    atomic to which one thread comes, a warp looks before all others, or after all.
    """
    turns = _turns(seen)
    who = {number: lanes.tolist() for number, lanes in turns.items()}
    several = len({warp for _, warp in seen.visits}) > 1
    who |= {number: [ANYONE] for number, _ in seen.visits if found[number].waits or (several and number not in turns)}
    return {(number, one, late) for number, ones in who.items() for one in ones for late in (False, True)}


def _turns(seen: Seen) -> dict[int, Lanes]:
    """The threads that came to each point where more than one sees in which order they come."""
    return {number: lanes for number, came in seen.turns.items() if len(lanes := np.concatenate(came)) > 1}


def _outcomes(found: list[SteeringPoint], seen: Seen, threads: int) -> set[Outcome]:
    """Those that came. In a CTA of so many threads a point in shared memory has a first and a last one."""
    outcomes = {(number, ANYONE, True) for number in seen.failed} | {(number, ANYONE, False) for number in seen.passed - seen.failed}
    for number, lanes in _turns(seen).items():
        ctas = lanes // threads * (found[number].turns == "cta")
        for cta in np.unique(ctas):
            inside = lanes[ctas == cta]
            outcomes |= {(number, int(inside[0]), False), (number, int(inside[-1]), True)}
    return outcomes | set(_by_warp(found, seen))


def _by_warp(found: list[SteeringPoint], seen: Seen) -> Iterator[Outcome]:
    """Points without turns: some warp looks before all others have shown something, or after all."""
    begins, turns = dict[tuple[int, int], int](), _turns(seen)
    for step, visit in enumerate(seen.visits):
        begins.setdefault(visit, step)
    shown = [(warp, step) for (number, warp), step in begins.items() if found[number].shows]
    for (number, warp), step in begins.items():
        steps = [each for other, each in shown if other != warp]
        if found[number].waits or number in turns or not steps:
            continue
        if step < min(steps):
            yield number, ANYONE, False
        if step > max(steps):
            yield number, ANYONE, True


@contextmanager
def _schedules(machine: Machine, make: Callable[[int], Schedule]) -> Iterator[None]:
    """Inside the block launches get their schedules from `make`."""
    before, machine.schedules = machine.schedules, make
    try:
        yield
    finally:
        machine.schedules = before


@contextmanager
def by_seed(backend: Any) -> Iterator[None]:
    """Inside the block the seed of a launch alone decides its schedule on this virtual machine, also where `consan stress` steers."""
    with _schedules(backend.machine, schedule_of):
        yield


def data_seed(seed: int) -> int:
    """The seed of random arguments in a seed that names a schedule."""
    return seed % STEERED if seed >= STEERED else seed


def quietly(launch: Callable[[], object]) -> bool:
    """Make a launch that may fail. Returns whether it did not."""
    with suppress(ConsanError, MemoryError):
        launch()
        return True
    return False
