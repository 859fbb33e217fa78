"""Schedules as lists of decisions: `Recorder` records what a schedule decided, `Replay` repeats it in whole or in part.

A decision is a difference from a baseline, in terms that stay valid when other decisions are removed: not "at step 512" but "before
the third time that this warp runs this block". So a list can be reduced to what a failure needs (consan/triage).
The list of all decisions of a launch repeats it exactly.

Two baselines. In `late` asynchronous operations land as late as is legal (seed 0), and a decision lands one earlier. In `prompt` each
lands at once, and a decision delays it. In both, no warp is delayed and no wait gives up.

| kind | who | what |
|---|---|---|
| start | the warps of a CTA | begin after `steps` |
| hold | warps before a block | stop there for `steps` |
| land | an operation's issuers | it lands at once, after `steps`, or late |
| first | an operation's issuers | when no thread can run, it lands before the one that would have (`over`) |
| give-up | warps at a try_wait | it times out at once |

Not recorded: what does not depend on the schedule (the order of groups, of lanes of one instruction), and what the host does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.faults import Dim3
from consan.backends.cpu.state.schedule import AT_ONCE, LATE, Bools, Lanes, Schedule
from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.backends.cpu.state.copies import PendingOperation
    from consan.backends.cpu.state.groups import Activation, LaneGroup
    from consan.backends.cpu.state.wave import Wave

    from .code import BoundBlock
    from .scheduler import Scheduler

Array = npt.NDArray[Any]
BASELINES: Final = {"prompt": AT_ONCE, "late": LATE}
START, HOLD, LAND, FIRST, GIVE_UP = KINDS = ("start", "hold", "land", "first", "give-up")


@dataclass(frozen=True)
class Who:
    """Lanes of a warp, at their `nth` visit (from 1) of a place."""

    block: Dim3
    warp: int
    lanes: int  # mask
    nth: int = 1


@dataclass(frozen=True)
class Decision:
    """One decision of one launch. Launches count from 0.

    `place` identifies it in the text that ran: the position of a block; for land and first, the line of the instruction.
    `lines` are lines of that text, innermost call first, from which a reader's place is found.
    """

    kind: str
    who: tuple[Who, ...]
    steps: int = 0  # land: or AT_ONCE, LATE, LATE_READ, HELD
    place: int = 0
    lines: tuple[int, ...] = ()
    over: tuple[int, Who] | None = None  # place and issuer of another operation
    receiver: Dim3 | None = None  # the CTA that receives this part of a multicast
    launch: int = 0


class Counts:
    """How often each lane of a wave has visited each place."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._table: dict[int, Array] = {}

    def of(self, place: int) -> Array:
        """The counts of a place, per lane."""
        if place not in self._table:
            self._table[place] = np.zeros(self._lanes, np.int32)
        return self._table[place]


class Counting(Schedule):
    """A schedule that names blocks and operations by the counts that lanes have run and issued."""

    perturbs = True
    counts = True

    def start_wave(self, scheduler: Scheduler) -> None:  # noqa: D102 - as in Schedule
        super().start_wave(scheduler)
        self.entered = Counts(self.wave.lanes)
        self.issued = Counts(self.wave.lanes)

    def _count(self, operation: PendingOperation) -> int:
        """Count an issued operation. Returns the line of its instruction."""
        line = operation.site.line if operation.site is not None else 0
        self.issued.of(line)[operation.lanes] += 1
        self._name(operation, line)
        return line

    def _name(self, operation: PendingOperation, line: int) -> None:
        """The operation's name: its line, its first lane, and how many that lane has issued there."""
        lane = int(operation.lanes[0])
        operation.name = (line, lane, int(self.issued.of(line)[lane]))

    def _issuer(self, operation: PendingOperation) -> tuple[int, Who]:
        line, lane, nth = operation.name
        (who,) = whom(self.wave, np.array([lane]), np.array([nth]))
        return line, who


def whom(wave: Wave, lanes: Lanes, nth: Array) -> tuple[Who, ...]:
    """Lanes by warp, and by visits of the place."""
    keys = np.stack((wave.warps.of_lane[lanes], nth), 1)
    pairs, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    bits = np.left_shift(1, wave.warps.lane[lanes].astype(np.int64))
    found = []
    for index, (warp, times) in enumerate(pairs.tolist()):
        chosen = inverse == index
        block = wave.ctaid_of(int(lanes[chosen][0]))
        found.append(Who(block, warp % wave.warps.per_cta, int(bits[chosen].sum()), times))
    return tuple(found)


def lines_of(block: BoundBlock, stack: Activation) -> tuple[int, ...]:
    """The lines of a block, and of the calls that lead to it."""
    code = block.function.code
    inside = code.instructions[block.code.start : block.code.end]
    return (*dict.fromkeys(map(code.line, inside)), *stack.calls())


# Recording -------------------------------------------------------------------------------------------------------------


class Recorder(Counting):
    """Passes on another schedule's answers, and records them in `decisions`."""

    def __init__(self, inner: Schedule, decisions: list[Decision], launch: int = 0) -> None:
        self.inner = inner
        self.decisions = decisions
        self.launch = launch

    def _note(self, kind: str, who: tuple[Who, ...], **more: Any) -> None:
        self.decisions.append(Decision(kind, who, launch=self.launch, **more))

    def start_wave(self, scheduler: Scheduler) -> None:  # noqa: D102 - as in Schedule
        super().start_wave(scheduler)
        self.inner.start_wave(scheduler)

    def late_starts(self) -> list[tuple[Lanes, int]]:  # noqa: D102 - as in Schedule
        starts = self.inner.late_starts()
        for lanes, steps in starts:
            self._note(START, whom(self.wave, lanes, np.ones(len(lanes), np.int32)), steps=steps)
        return starts

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:  # noqa: D102 - as in Schedule
        self.entered.of(block.position)[group.sel] += 1

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:  # noqa: D102 - as in Schedule
        held = self.inner.holds(group)
        for late, steps in held:
            place, lanes = group.block.position, group.lanes[late]
            who = whom(self.wave, lanes, self.entered.of(place)[lanes] + 1)
            self._note(HOLD, who, steps=steps, place=place, lines=lines_of(group.block, group.stack))
        return held

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:  # noqa: D102 - as in Schedule
        line, lanes = self._count(operation), operation.lanes
        (answer,) = self.inner.landings(operation)
        who = whom(self.wave, lanes, self.issued.of(line)[lanes])
        self._note(LAND, who, steps=answer[1], place=line, lines=(line,), receiver=self._receiver(operation))
        return [answer]

    def first(self, flying: Mapping[int, PendingOperation], awaited: frozenset[int]) -> int:  # noqa: D102 - as in Schedule
        chosen, usual = self.inner.first(flying, awaited), super().first(flying, awaited)
        if chosen != usual:
            line, who = self._issuer(flying[chosen])
            receiver = self._receiver(flying[chosen])
            self._note(FIRST, (who,), place=line, lines=(line,), over=self._issuer(flying[usual]), receiver=receiver)
        return chosen

    def _receiver(self, operation: PendingOperation) -> Dim3 | None:
        cta = operation.receiver
        return None if cta is None else self.wave.ctaid_of(cta * self.wave.shape.threads)

    def stay(self, group: LaneGroup, incomplete: Bools) -> Bools:  # noqa: D102 - as in Schedule
        stay = self.inner.stay(group, incomplete)
        lanes = group.lanes[incomplete & ~stay]
        if len(lanes):
            place, lines = group.block.position, lines_of(group.block, group.stack)
            self._note(GIVE_UP, whom(self.wave, lanes, self.entered.of(place)[lanes]), place=place, lines=lines[::-1])
        return stay


# Replay ----------------------------------------------------------------------------------------------------------------


@dataclass
class Trace:
    """The effect of one decision in a replay: whether it was applied, and which lanes ran where when its delay ended."""

    taken: bool = False
    lines: tuple[int, ...] = ()
    block: Dim3 | None = None
    warp: int = 0
    idle: bool = False  # nobody could run


@dataclass
class _Item:
    """A decision's lanes in the wave, for one `nth`."""

    index: int
    lanes: Bools
    decision: Decision


@dataclass
class _Table:
    """Items by place and `nth`."""

    items: dict[tuple[int, int], list[_Item]] = field(default_factory=dict)
    places: set[int] = field(default_factory=set)

    def add(self, place: int, nth: int, item: _Item) -> None:
        """Add an item under its place and visit."""
        self.items.setdefault((place, nth), []).append(item)
        self.places.add(place)

    def matching(self, place: int, lanes: Lanes, nth: Array) -> Iterator[tuple[_Item, Bools]]:
        """The items for lanes that are at the place for the `nth` time, with those lanes."""
        if place not in self.places:
            return
        for times in np.unique(nth).tolist():
            for item in self.items.get((place, times), ()):
                chosen = item.lanes[lanes] & (nth == times)
                if chosen.any():
                    yield item, chosen


class Replay(Counting):
    """A baseline, and the decisions of one launch that differ from it. `traces` holds the effect of each."""

    def __init__(self, decisions: Sequence[Decision], baseline: str = "late") -> None:
        self.decisions = decisions
        self.usual = BASELINES[baseline]
        self.traces = [Trace() for _ in decisions]

    def start_wave(self, scheduler: Scheduler) -> None:  # noqa: D102 - as in Schedule
        super().start_wave(scheduler)
        wave = self.wave
        ctas = {wave.ctaid_of(cta * wave.shape.threads): cta for cta in range(wave.shape.ctas)}
        self.idle = False
        self.latest: tuple[BoundBlock, Activation, Lanes] | None = None  # what ran last, and which lanes
        self.pending: dict[Any, int] = {}  # names of operations with a decision
        self.held: list[tuple[int, Lanes]] = []
        self.tables = {kind: _Table() for kind in KINDS}
        self.over: dict[tuple[int, Who], list[int]] = {}
        for index, decision in enumerate(self.decisions):
            if decision.over is not None:
                self.over.setdefault(decision.over, []).append(index)
                continue
            for nth, lanes in _lanes_by_nth(wave, ctas, decision):
                self.tables[decision.kind].add(decision.place, nth, _Item(index, lanes, decision))

    def _over(self, index: int) -> None:
        """A delay has ended: note which lanes run."""
        trace, wave = self.traces[index], self.wave
        if self.latest is None or trace.block is not None:
            return
        block, stack, lanes = self.latest
        lane = self._concerned(self.decisions[index], lanes)
        trace.lines, trace.idle = lines_of(block, stack), self.idle
        trace.block, trace.warp = wave.ctaid_of(lane), int(wave.warps.in_cta[lane])

    def _concerned(self, decision: Decision, lanes: Lanes) -> int:
        """One of the lanes, preferably of the CTA that the decision is about."""
        block = decision.receiver or decision.who[0].block
        same = np.logical_and.reduce([axis[lanes] == value for axis, value in zip(self.wave.registers.ctaid, block, strict=True)])
        return int(lanes[same.argmax()])

    def late_starts(self) -> list[tuple[Lanes, int]]:  # noqa: D102 - as in Schedule
        found = []
        for item in (item for items in self.tables[START].items.values() for item in items):
            self.traces[item.index].taken = True
            lanes = item.lanes.nonzero()[0]
            self.held.append((item.index, lanes))
            found.append((lanes, item.decision.steps))
        return found

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:  # noqa: D102 - as in Schedule
        self.latest = block, group.stack, group.lanes
        place = block.position
        if place in self.tables[HOLD].places or place in self.tables[GIVE_UP].places:
            self.entered.of(place)[group.sel] += 1

    def holds(self, group: LaneGroup) -> list[tuple[Bools, int]]:  # noqa: D102 - as in Schedule
        table, place = self.tables[HOLD], group.block.position
        if place not in table.places:
            return []
        held: dict[int, Bools] = {}
        for item, chosen in table.matching(place, group.lanes, self.entered.of(place)[group.lanes] + 1):
            self.traces[item.index].taken = True
            self.held.append((item.index, group.lanes[chosen]))
            steps = item.decision.steps
            held[steps] = held[steps] | chosen if steps in held else chosen
        return [(late, steps) for steps, late in held.items()]

    def released(self, group: LaneGroup) -> None:  # noqa: D102 - as in Schedule
        going = [(index, lanes, bool(np.isin(lanes, group.lanes).any())) for index, lanes in self.held]
        self.held = [(index, lanes) for index, lanes, goes in going if not goes]
        for index in (index for index, _, goes in going if goes):
            self._over(index)

    def landings(self, operation: PendingOperation) -> list[tuple[PendingOperation, int]]:  # noqa: D102 - as in Schedule
        line, lanes = self._count(operation), operation.lanes
        when = np.full(len(lanes), self.usual, np.int64)
        for item, chosen in self.tables[LAND].matching(line, lanes, self.issued.of(line)[lanes]):
            self.traces[item.index].taken = True
            self.pending[operation.name] = item.index
            when[chosen] = item.decision.steps
        parts = [(operation.subset(when == value), value) for value in np.unique(when).tolist()] if (when != when[0]).any() else []
        divided = [(part, value) for part, value in parts if part is not None]
        if not divided or len(divided) < len(parts):
            return [(operation, int(when[0]))]
        for part, _ in divided:
            self._name(part, line)
        return divided

    def landed(self, operation: PendingOperation) -> None:  # noqa: D102 - as in Schedule
        index = self.pending.pop(operation.name, None)
        if index is not None:
            self._over(index)
        self.idle = False

    def first(self, flying: Mapping[int, PendingOperation], awaited: frozenset[int]) -> int:  # noqa: D102 - as in Schedule
        self.idle = True
        usual = super().first(flying, awaited)
        pending = self.over.get(self._issuer(flying[usual]), []) if self.over else []
        while pending:
            index = pending.pop(0)
            wanted = (self.decisions[index].place, self.decisions[index].who[0])
            for serial, operation in flying.items():
                if self._issuer(operation) == wanted:
                    self.traces[index].taken = True
                    return serial
        return usual

    def stay(self, group: LaneGroup, incomplete: Bools) -> Bools:  # noqa: D102 - as in Schedule
        place, lanes = group.block.position, group.lanes
        stay: Bools = incomplete.copy()
        if place in self.tables[GIVE_UP].places:
            for item, chosen in self.tables[GIVE_UP].matching(place, lanes, self.entered.of(place)[lanes]):
                self.traces[item.index].taken = True
                stay &= ~chosen
        return stay


def _lanes_by_nth(wave: Wave, ctas: Mapping[Dim3, int], decision: Decision) -> Iterator[tuple[int, Bools]]:
    """The lanes of a decision in the wave."""
    found: dict[int, Bools] = {}
    for who in decision.who:
        cta = ctas.get(who.block)
        if cta is None:
            continue
        warp = cta * wave.warps.per_cta + who.warp
        mask = found.setdefault(who.nth, np.zeros(wave.lanes, np.bool_))
        chosen = wave.warps.present[warp] & ((who.lanes >> np.arange(wave.warps.present.shape[1])) & 1).astype(np.bool_)
        mask[wave.warps.slots[warp][chosen]] = True
    yield from found.items()
