"""The definitions of PTX ISA 8.7 to 8.10 on a small trace, word by word: no clocks, but sets of operations. It judges oracle_grid.py.

A trace becomes operations in the order in which they ran. Each has the set of those before it in base causality order (8.9.5), as the bits
of a number: program order, barriers, and for each acquire pattern all release patterns that it observes (8.8, 8.9.2, 8.9.4). Patterns are
looked for among all operations of a thread, not kept as they come.

Fence-SC order: `chosen` says which of two fence.sc is first. Without it R-GM6 decides, and no other pair is ordered (D19). `possible` goes
through all orders of a few fences that contradict no axiom: D19 and R-GM6 are held against that.

Handled are loads, stores, atomics, memory fences, bar.sync of whole CTAs and bar.warp.sync of whole warps. Not handled: copies, mbarriers,
barriers of clusters, `.nc`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from oracle_trace import ELSEWHERE, Event, Trace

_LEVELS = {"cta": 0, "cluster": 1, "gpu": 2, "gl": 2, "sys": 2}
_SHARED = 1 << 62
WARP = 32
Pair = frozenset[int]
Order = dict[Pair, int]  # of two fences, the first


@dataclass
class Operation:
    """A scalar memory operation, a fence, or an arrival at a barrier."""

    number: int
    thread: int
    cta: int
    cluster: int
    line: int
    kind: str  # "memory", "fence", "barrier"
    sem: str = "weak"
    level: int = -1  # of the scope; -1: not strong
    span: tuple[int, int] = (0, 0)
    reads: bool = False
    writes: bool = False
    is_red: bool = False
    rf: frozenset[int] = frozenset()  # the writes that it reads from; -1: what was there before the launch
    before: int = 0  # a set: base causality order
    after: int = 0  # what is before all that follows it in its thread

    @property
    def releases(self) -> bool:
        """Whether it may begin a release pattern."""
        return self.level >= 0 and self.sem in ("release", "acq_rel", "sc")

    @property
    def acquires(self) -> bool:
        """Whether it may end an acquire pattern."""
        return self.level >= 0 and self.sem in ("acquire", "acq_rel", "sc")

    @property
    def observes(self) -> bool:
        """Whether it is a strong read, and not of a `red`."""
        return self.kind == "memory" and self.reads and self.level >= 0 and not self.is_red


def morally_strong(x: Operation, y: Operation) -> bool:
    """8.7."""
    needed = 0 if x.cta == y.cta else 1 if x.cluster == y.cluster else 2
    return min(x.level, y.level) >= needed and (x.kind == "fence" or y.kind == "fence" or x.span == y.span)


class Execution:
    """The operations of a launch."""

    def __init__(self) -> None:
        self.all: list[Operation] = []
        self.of: dict[int, list[Operation]] = {}  # by thread
        self.met: dict[int, list[Operation]] = {}  # the arrivals at a barrier that the last of them completes, by its number
        self.causes: dict[int, int] = {}  # causality order of memory operations

    @functools.cached_property
    def observers(self) -> list[Operation]:
        """The reads that observe a write."""
        return [one for one in self.all if one.observes and self.observed(one)]

    # Relations -----------------------------------------------------------------------------------------------------------

    def observed(self, read: Operation) -> list[Operation]:
        """8.9.2: the writes that precede a read in observation order."""
        found: list[Operation] = []
        while len(read.rf) == 1 and (number := next(iter(read.rf))) >= 0 and morally_strong(self.all[number], read):
            read = self.all[number]
            found.append(read)
        return found

    def _heads(self, write: Operation) -> Iterator[Operation]:
        """8.8: the first operation of each release pattern that a write is in."""
        for one in self.of[write.thread]:
            same = one.kind == "fence" or (one.writes and one.span == write.span)
            if one.releases and same and (one is write or one.number < write.number):
                yield one

    def _reads(self, last: Operation) -> Iterator[Operation]:
        """8.8: the reads of each acquire pattern that an operation ends."""
        for one in self.of[last.thread]:
            if one.number <= last.number and one.observes and (last.kind == "fence" or one.span == last.span):
                yield one

    def close(self, chosen: Order | None = None) -> bool:
        """Base causality order, and causality order; whether the former is one: a chosen Fence-SC order may contradict it."""
        for one in self.all:
            one.before = one.after = 0
        while self._pass(chosen) and chosen is not None:  # a fence may be to come before one that ran earlier
            pass
        self._observe()
        return not any(one.before >> one.number & 1 for one in self.all)

    def _pass(self, chosen: Order | None) -> bool:
        latest: dict[int, Operation] = {}
        changed = False
        for one in self.all:
            before = latest.get(one.thread)
            mine = one.before | (before.after if before is not None else 0)
            acquired = 0
            for read in self._reads(one) if one.acquires else ():
                for write in self.observed(read):
                    for head in self._heads(write):
                        acquired |= head.after if morally_strong(head, one) else 0
            if one.kind == "fence":
                mine |= acquired
                if one.sem == "sc":
                    for other in self._fences_before(one, mine, chosen):
                        mine |= other.after
            after = one.after | mine | acquired | 1 << one.number
            changed |= (mine, after) != (one.before, one.after)
            one.before, one.after = mine, after
            for arrival in self.met.get(one.number, ()):  # each gets what all had
                for other in self.met[one.number]:
                    arrival.after |= other.after
            latest[one.thread] = one
        return changed

    def _fences_before(self, fence: Operation, before: int, chosen: Order | None) -> Iterator[Operation]:
        for other in self.all:
            if other.kind != "fence" or other.sem != "sc" or other.thread == fence.thread or not morally_strong(other, fence):
                continue
            if chosen is None:
                first = other.number < fence.number and self._must_follow(other, before)
            else:
                first = chosen[frozenset((other.number, fence.number))] == other.number
            if first:
                yield other

    def _must_follow(self, first: Operation, before: int) -> bool:
        """R-GM6: a write after the one fence is observed by a read before the other."""
        reads = (read for read in self.observers if before >> read.number & 1)
        return any(write.before >> first.number & 1 for read in reads for write in self.observed(read))

    def _observe(self) -> None:
        """8.9.5: causality order, with what has been observed."""
        seen = [(read, sum(1 << write.number for write in self.observed(read))) for read in self.observers]
        for one in self.all:
            found = one.before
            for read, writes in seen:
                found |= writes if one.before >> read.number & 1 else 0
            self.causes[one.number] = found

    # Verdicts ------------------------------------------------------------------------------------------------------------

    def conflicts(self) -> Iterator[tuple[Operation, Operation]]:
        """Pairs of operations on global memory that overlap, one of them a write, in the order in which they ran."""
        places: dict[int, list[Operation]] = {}
        for one in self.all:
            if one.kind == "memory" and one.span[0] < _SHARED:
                others = {other.number: other for byte in range(*one.span) for other in places.get(byte, ())}
                yield from ((other, one) for other in others.values() if other.writes or one.writes)
                for byte in range(*one.span):
                    places.setdefault(byte, []).append(one)

    def ordered(self, x: Operation, y: Operation) -> bool:
        """Whether two are related in causality order."""
        return bool(self.causes[y.number] >> x.number & 1 or self.causes[x.number] >> y.number & 1)

    def races(self) -> set[Pair]:
        """8.7.1, as pairs of lines."""
        return {
            frozenset((x.line, y.line))
            for x, y in self.conflicts()
            if x.thread != y.thread and not morally_strong(x, y) and not self.ordered(x, y)
        }

    def legal(self) -> bool:
        """Whether causality order agrees with what was read (8.10.6), and with the run's order of morally strong writes (8.10.1)."""
        for x, y in self.conflicts():
            if self.causes[x.number] >> y.number & 1:  # y ran later and yet comes before x
                stored = x.writes and y.writes and morally_strong(x, y)
                if stored or x.number in y.rf or (x.reads and y.writes):
                    return False
        return True

    def possible(self) -> set[Pair]:
        """The races of all Fence-SC orders that no axiom forbids."""
        fences = [one for one in self.all if one.kind == "fence" and one.sem == "sc"]
        pairs = [(x, y) for x, y in itertools.combinations(fences, 2) if x.thread != y.thread and morally_strong(x, y)]
        found: set[Pair] = set()
        for firsts in itertools.product((0, 1), repeat=len(pairs)):
            chosen = {frozenset((x.number, y.number)): (x, y)[k].number for (x, y), k in zip(pairs, firsts, strict=True)}
            if self.close(chosen) and self.legal():
                found |= self.races()
        return found


# From a trace ------------------------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Makes an execution of a trace of one wave."""

    trace: Trace
    execution: Execution = field(default_factory=Execution)
    last: dict[int, int] = field(default_factory=dict)  # the last write of a byte
    waiting: dict[tuple[int, int], list[Operation]] = field(default_factory=dict)  # by CTA and warp, or CTA and -1

    def __post_init__(self) -> None:
        ((self.wave, self.events),) = self.trace.waves

    def read(self) -> Execution:
        for event in self.events:
            getattr(self, "_on_" + event.kind.replace("-", "_"))(event)
        return self.execution

    def _new(self, event: Event, lane: int, kind: str, **more: object) -> Operation:
        cta = int(self.wave.cta_of[lane])
        cluster = int(self.wave.cluster_of[lane])
        one = Operation(len(self.execution.all), lane, cta, cluster, event.line, kind, **more)  # type: ignore[arg-type]
        self.execution.all.append(one)
        self.execution.of.setdefault(lane, []).append(one)
        return one

    def _on_exit(self, event: Event) -> None:
        pass

    def _on_global(self, event: Event) -> None:
        self._memory(event, event.data["addresses"].tolist())

    def _on_access(self, event: Event) -> None:
        places = event.data["places"]
        self._memory(event, [int(place) + _SHARED if place != ELSEWHERE else -1 for place in places])

    def _memory(self, event: Event, starts: list[int]) -> None:
        data, is_red = event.data, event.opcode.startswith("red")
        level = _LEVELS.get(data["scope"], 0) if data["strong"] else -1
        form = {"sem": data["sem"], "level": level, "is_red": is_red}
        for lane, first in zip(event.lanes.tolist(), starts, strict=True):
            for start in range(first, first + data["nbytes"], data["element"]) if first >= 0 else ():
                span = start, start + data["element"]
                reads, writes = data["access"] != "write", data["access"] != "read"
                rf = frozenset(self.last.get(byte, -1) for byte in range(*span)) if reads else frozenset()
                one = self._new(event, lane, "memory", span=span, reads=reads, writes=writes, rf=rf, **form)
                self.last.update(dict.fromkeys(range(*span), one.number) if writes else {})

    def _on_fence(self, event: Event) -> None:
        parts = event.data["parts"]
        sem = next((part for part in parts if part in ("sc", "acquire", "release")), "sc" if parts[0] == "membar" else "acq_rel")
        level = next(_LEVELS[part] for part in parts if part in _LEVELS)
        for lane in event.lanes.tolist():
            self._new(event, lane, "fence", sem=sem, level=level)

    def _on_barrier(self, event: Event) -> None:
        for lane in event.lanes.tolist():
            self._arrive(event, lane, -1, self.wave.shape.threads)

    def _on_warp_barrier(self, event: Event) -> None:
        for lane in event.lanes.tolist():
            self._arrive(event, lane, int(self.wave.warps.in_cta[lane]), WARP)

    def _arrive(self, event: Event, lane: int, group: int, members: int) -> None:
        one = self._new(event, lane, "barrier")
        waiting = self.waiting.setdefault((one.cta, group), [])
        waiting.append(one)
        if len(waiting) == members:
            self.execution.met[one.number] = self.waiting.pop((one.cta, group))


def execution(trace: Trace) -> Execution:
    """The operations of a launch of one wave."""
    return _Reader(trace).read()
