"""Schedules that steer at what a kernel observes: this wait fails, this warp comes first, or last, turns begin with this thread.

A seed from `STEERED` on names one: its upper half is a `Steer`, its lower half the seed of random arguments. So a seed alone repeats a
schedule. A `point` is a block of the kernel with an instruction by which threads see what others do, or show it: a strong access, an
atomic, an operation on an mbarrier, a barrier of some threads. Points are numbered in the order of the text.

`Steered` also notes what has happened (`Seen`): who came to which point, in which order, and which waits found their phase incomplete.
"""

from __future__ import annotations

import itertools
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from consan.backends.cpu.decode.operands import is_of_hooks
from consan.backends.cpu.state.schedule import AT_ONCE, LATE, STEERED, Bools, Lanes, Schedule, for_seed
from consan.dataclass import dataclass
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from consan.backends.cpu.decode.reach import Reach
    from consan.backends.cpu.state.copies import PendingOperation
    from consan.backends.cpu.state.groups import LaneGroup
    from consan.instrument.ptx import Instruction

    from .code import BoundBlock
    from .scheduler import Scheduler

HOLD: Final = 600  # steps that a warp is held at most; it goes on before, if nobody else can run
CTAS: Final = 128  # parties from here on are CTAs of a wave; those below are warps of each CTA
EVERYONE: Final = 255
OF_CTA: Final = 256  # parties from here on are the threads of each CTA below so many
OF_WAVE: Final = OF_CTA + 1024  # and from here on those of the wave
EACH: Final = 0  # the first visits of a point, not one of them
_OFTEN: Final = 6  # of these visits are steered: a wait that always fails would never end
_BITS: Final = (("prompt", 1), ("action", 3), ("nth", 3), ("party", 14), ("point", 10))  # of a number, the lowest first
MOST_POINTS: Final = 1 << 10
_MOST_SEEN: Final = 100_000  # visits that are noted
_MOST_PARTY: Final = (1 << 14) - 1
CHOSEN, MOST_TURNS = 32, 128  # orders of the turns at one point: those that the text suggests, and all


class Action(IntEnum):
    """The action at the point."""

    NOTHING = 0
    LAST = 1  # the party is held
    FIRST = 2  # all others are held
    FAIL = 3  # waits of the party whose phase is incomplete fail at once
    AHEAD = 4  # the same, and until then the others are held wherever they show something
    BETWEEN = 5  # the party is held, and the others are behind what they show `nth`: it finds a lock that is taken


@dataclass(frozen=True)
class Steer:
    """One schedule. `prompt`: asynchronous operations land at once, else as late as is legal. `nth`: which visit of the point, from 1."""

    prompt: int = 0
    action: int = Action.NOTHING
    nth: int = EACH
    party: int = EVERYONE
    point: int = 0

    @property
    def number(self) -> int:
        """The steering as a number above zero."""
        number, shift = 0, 0
        for name, bits in _BITS:
            number |= int(getattr(self, name)) << shift
            shift += bits
        return number + 1

    @classmethod
    def of(cls, number: int) -> Steer:
        """The steering of a number."""
        fields, rest = {}, number - 1
        for name, bits in _BITS:
            fields[name] = rest & ((1 << bits) - 1)
            rest >>= bits
        return cls(**fields)

    def seed(self, data: int) -> int:
        """The seed of the schedule, where random arguments have the seed `data`."""
        return self.number * STEERED + data % STEERED


@dataclass(frozen=True)
class SteeringPoint:
    """A point: its place among the blocks, whether a thread observes something there, whether it waits for a phase, and whether it shows
    something to others. `turns`: threads come in an order, because there is an atomic ("cta": of shared memory). `has_result`: it has
    one, so that they see the order themselves; else only others may see a part of what they add.
    """

    position: int
    line: int
    observes: bool
    waits: bool
    shows: bool = False
    turns: str = ""
    has_result: bool = True


def points(reach: Reach) -> list[SteeringPoint]:
    """The points of a kernel."""
    found: list[SteeringPoint] = []
    for code in reach.functions:
        if code.name.startswith("__consan_"):
            continue
        for block in code.blocks:
            inside = [each for each in code.instructions[block.start : block.end] if _is_point(each)]
            if inside:
                rows = [row_of(each) for each in inside]
                line = code.line(next((each for each in inside if _observes(each)), inside[0]))
                waits = any(row.is_blocking_phase_wait for row in rows)
                place, shows = (code.ordinal << 32) + block.index, any(map(_shows, inside))
                turns = next(filter(None, map(_turns, inside)), "")
                has_result = any(row.is_ordinary and row.is_atomic for row in rows)
                found.append(SteeringPoint(place, line, any(map(_observes, inside)), waits, shows, turns, has_result))
    return sorted(found, key=lambda each: each.position)[:MOST_POINTS]


def constants(reach: Reach) -> list[int]:
    """The numbers that a kernel compares something with: threads and places that may be special, in the order of the text."""
    compared = (each for code in reach.functions for each in code.instructions if row_of(each).is_of_condition and not is_of_hooks(each))
    values = (operand.value for each in compared for operand in each.operands if isinstance(operand, Immediate))
    return list(dict.fromkeys(value for value in values if isinstance(value, int) and 0 <= value <= _MOST_PARTY))


def _observes(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_phase_wait or row.is_atomic or (row.is_load and _is_point(instruction)) or row.asks_who_is_active


def _shows(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return not (row.is_phase_wait or row.is_load or row.asks_who_is_active)


def _turns(instruction: Instruction) -> str:
    row = row_of(instruction)
    if not (row.is_ordinary and row.is_update):
        return ""
    return "cta" if row.describe(instruction).qualified_space in ("shared", "shared::cta") else "wave"


def _is_point(instruction: Instruction) -> bool:
    row = row_of(instruction)
    if is_of_hooks(instruction):
        return False
    if row.is_ordinary and row.touches:
        return row.is_update or row.describe(instruction).is_strong
    if row.is_cta_barrier:
        return row.arrives_only or len(instruction.operands) > 1
    return (row.is_mbarrier and not row.begins_mbarrier) or row.asks_who_is_active or row.takes_cluster


@dataclass
class Seen:
    """The events of a launch: visits of points in order, as point and warp of the wave; and waits whose phase was incomplete. `turns`: the
    threads of the wave in the order in which they first came to a point with an atomic.
    """

    visits: list[tuple[int, int]] = field(default_factory=list)
    turns: dict[int, list[Lanes]] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)  # points
    passed: set[int] = field(default_factory=set)


class Steered(Schedule):
    """The schedule of a steering."""

    perturbs = counts = steers = True

    def __init__(self, steering: Steer) -> None:
        self.steering = steering
        self.seen = Seen()

    def start_wave(self, scheduler: Scheduler) -> None:  # noqa: D102 - as in Schedule
        super().start_wave(scheduler)
        found = points(scheduler.plan.reach)
        self._numbers = {each.position: number for number, each in enumerate(found)}
        self._waiting = {number for number, each in enumerate(found) if each.waits}
        self._first = {number: np.ones(self.wave.lanes, np.bool_) for number, each in enumerate(found) if each.turns}
        self._position = found[self.steering.point].position if self.steering.point < len(found) else -1
        self._shows = {each.position for each in found if each.shows and self.steering.action in (Action.AHEAD, Action.BETWEEN)}
        lanes = self.wave.lanes
        self._shown = np.zeros(lanes, np.int64)
        self._visits = np.zeros(lanes, np.int64)
        self._was_held = np.zeros(lanes, np.bool_)
        self._party = self._members()

    def _members(self) -> Bools:
        party, wave = self.steering.party, self.wave
        if party == EVERYONE:
            return np.ones(wave.lanes, np.bool_)
        if party >= OF_WAVE:
            return np.asarray(wave.ids < party - OF_WAVE)
        if party >= OF_CTA:
            return np.asarray(wave.ids % wave.shape.threads < party - OF_CTA)
        if party >= CTAS:
            return np.asarray(wave.cta_of == party - CTAS)
        return np.asarray(wave.warps.in_cta == party)

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:  # noqa: D102 - as in Schedule
        number = self._numbers.get(block.position)
        if number is None:
            return
        if len(self.seen.visits) < _MOST_SEEN:
            warps = np.unique(self.wave.warps.of_lane[group.lanes])
            self.seen.visits += [(number, int(warp)) for warp in warps]
        if number in self._waiting:
            self.seen.passed.add(number)
        if number in self._first:
            first = self._first[number]
            self.seen.turns.setdefault(number, []).append(group.lanes[first[group.lanes]])
            first[group.lanes] = False
        if block.position == self._position:
            self._visits[group.lanes] += 1
        if block.position in self._shows:
            self._shown[group.lanes] += 1
        if block.position == self._position or block.position in self._shows:
            self._was_held[group.lanes] = False

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:  # noqa: D102 - as in Schedule
        action, lanes = self.steering.action, group.lanes
        if action == Action.BETWEEN:
            chosen = self._is_between(group)
        elif group.block.position == self._position and action in (Action.LAST, Action.FIRST):
            chosen = (self._party[lanes] == (action == Action.LAST)) & self._is_now(lanes)
        elif group.block.position in self._shows and not self.seen.failed:
            chosen = self._party[lanes]
        else:
            return []
        chosen &= ~self._was_held[lanes]
        if not chosen.any():
            return []
        self._was_held[lanes[chosen]] = True
        return [(chosen, HOLD)]

    def _is_between(self, group: LaneGroup) -> Bools:
        """The party before its first visit of the point, and the others once they have shown something so often."""
        lanes, party = group.lanes, self._party[group.lanes]
        chosen = party & (self._visits[lanes] == 0) & (group.block.position == self._position)
        if group.block.position in self._shows:
            chosen |= ~party & (self._shown[lanes] == self.steering.nth)
        return np.asarray(chosen)

    def _is_now(self, lanes: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Bools:
        nth = self.steering.nth
        visits = self._visits[lanes] + 1
        return np.asarray(visits <= _OFTEN if nth == EACH else visits == nth)

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:  # noqa: D102 - as in Schedule
        return [(operation, AT_ONCE if self.steering.prompt else LATE)]

    def stay(self, group: LaneGroup, incomplete: Bools) -> Bools:  # noqa: D102 - as in Schedule
        number = self._numbers.get(group.block.position)
        if number is None or group.block.position != self._position or self.steering.action not in (Action.FAIL, Action.AHEAD):
            return incomplete
        visits, nth = self._visits[group.lanes], self.steering.nth
        fails = self._party[group.lanes] & (visits <= _OFTEN if nth == EACH else visits == nth)
        if (incomplete & fails).any():
            self.seen.failed.add(number)
        return np.asarray(incomplete & ~fails)


def schedule_of(seed: int) -> Schedule:
    """The schedule of a launch with a seed."""
    return Steered(Steer.of(seed // STEERED)) if seed >= STEERED else for_seed(seed)


@dataclass(frozen=True)
class WaveSizes:
    """The sizes of a wave, and the numbers that its kernel compares something with."""

    warps_per_cta: int
    ctas: int
    threads: int = 0  # of a CTA
    constants: tuple[int, ...] = ()


def steerings(found: list[SteeringPoint], seen: Seen, sizes: WaveSizes) -> Iterator[Steer]:
    """The schedules to try, the most telling first. `seen`: of a first launch, which says who comes to which point."""
    visitors: dict[int, list[int]] = {}
    for number, warp in dict.fromkeys(seen.visits):
        visitors.setdefault(number, []).append(warp)
    looking = [number for number in visitors if found[number].observes]
    fails = [(nth, number) for nth in (1, EACH, 2) for number in looking if found[number].waits]
    yield from (Steer(0, action, nth, EVERYONE, number) for action in (Action.FAIL, Action.AHEAD) for nth, number in fails)
    orders = {
        number: list(_orders(number, found[number].turns, seen.turns[number], sizes)) for number in seen.turns if found[number].has_result
    }
    yield from (each for number in seen.turns for each in _parted(number, found[number], seen.turns[number], sizes))
    yield from (each for one in orders.values() for each in one[:CHOSEN])
    parties = {number: _parties(visitors[number], sizes.warps_per_cta, sizes.ctas) for number in visitors}
    held = [number for number in looking if not found[number].waits]
    yield from (Steer(0, Action.BETWEEN, nth, party, number) for nth in (1, 2) for number in held for party in parties[number])
    for nth, prompt in ((1, 0), (2, 0), (1, 1), (3, 0), (EACH, 0)):
        for number in (*looking, *(each for each in visitors if each not in looking)):
            for party in parties[number]:
                yield Steer(prompt, Action.LAST, nth, party, number)
                if number in looking:
                    yield Steer(prompt, Action.FIRST, nth, party, number)
    yield from (each for one in orders.values() for each in one[CHOSEN:MOST_TURNS])


def _orders(number: int, turns: str, came: Sequence[Lanes], sizes: WaveSizes) -> Iterator[Steer]:
    """Orders in which threads come to a point. Each begins with another thread and goes round: in all of them together each thread has each
    place. Orders that put a thread whose number the text has into a place whose number it has come first; the others are spread.
    """
    lanes = np.concatenate(came)
    visitors = np.unique(lanes % sizes.threads if turns == "cta" else lanes)
    base, count = (OF_CTA if turns == "cta" else OF_WAVE), len(visitors)
    begins = itertools.chain(_suggested(visitors.tolist(), sizes), _spread(count))
    for begin in dict.fromkeys(each % count for each in begins):
        party = base + int(visitors[begin])
        if begin and party <= _MOST_PARTY:
            yield Steer(0, Action.LAST, 1, party, number)


def _parted(number: int, point: SteeringPoint, came: Sequence[Lanes], sizes: WaveSizes) -> Iterator[Steer]:
    """Schedules in which others see what a part of the threads has added: all but the first, or the first or the last alone."""
    lanes = np.concatenate(came)
    visitors = np.unique(lanes % sizes.threads if point.turns == "cta" else lanes)
    base = OF_CTA if point.turns == "cta" else OF_WAVE
    first, last = base + int(visitors[0]) + 1, base + int(visitors[-1])
    parts = ((Action.FIRST, first), *(() if point.has_result else ((Action.LAST, first), (Action.LAST, last))))  # else orders have these
    yield from (Steer(0, action, 1, party, number) for action, party in parts if len(visitors) > 1 and party <= _MOST_PARTY)


def _suggested(visitors: list[int], sizes: WaveSizes) -> Iterator[int]:
    """The beginnings of orders that put a thread whose number the text has into a place whose number it has."""
    index, last = {lane: number for number, lane in enumerate(visitors)}, (sizes.ctas - 1) * sizes.threads
    for near in ((0,), (0, 1, -1)):
        numbers = [each + step for each in sizes.constants[:CHOSEN] for step in near]
        threads = [index[lane] for each in numbers for lane in dict.fromkeys((each, each + last)) if lane in index]
        yield from (thread - place for place in (0, *numbers) for thread in (*threads, len(visitors) - 1))


def _spread(count: int) -> Iterator[int]:
    """All numbers below a count, those that are far from each other first."""
    bits = max(count - 1, 1).bit_length()
    found = (int(f"{each:0{bits}b}"[::-1], 2) for each in range(1 << bits))
    return (each for each in found if each < count)


def _parties(warps: list[int], warps_per_cta: int, ctas: int) -> list[int]:
    """Some of those who come to a point: the first and the last warp of a CTA, the first and the last CTA, and two more of each."""
    inside = sorted({warp % warps_per_cta for warp in warps})
    found = [each for each in dict.fromkeys((inside[0], inside[-1], *inside[1:3])) if each < CTAS] if warps_per_cta > 1 else []
    outside = sorted({warp // warps_per_cta for warp in warps})
    found += [CTAS + each for each in dict.fromkeys((outside[0], outside[-1], *outside[1:3])) if CTAS + each < EVERYONE] if ctas > 1 else []
    return found
