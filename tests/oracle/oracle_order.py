"""The order of a run: runs of a kernel that have the same one have the same edges, so that what they order need be found only once.

Happens-before, and with it whatever nothing orders, follows from what each thread does, in its own order, and from whose releases
each of its acquires takes. So each thread has a hash of all that comes before what it does next: what it does goes into it, a
release gives it to an object, an acquire takes in what the object has been given. How events of different threads lie in the run
otherwise is of no matter, and does not go in. So thousands of schedules of a large kernel fall into a few orders.

Waits for mbarriers do not go in, since pipelines peek: whether a thread has seen a phase some instructions earlier or later is for
chance to say. It is kept when each thread has seen each phase first. Where two runs differ in that alone, the one that has
seen everything at the same time or later has no edge that the other has not (`Order.covers`): if nothing is wrong in it, nothing is
in the other. That holds of what is exact (`oracle_passes.exact`), where no access has been excused: an edge more can make an
uninitialised read of a race.

Where in doubt, runs that are the same get different orders: of strong accesses of a location the order of the run goes in, relaxed
arrivals count as others do, and so do waits for an mbarrier that not all threads know to be initialised. No order at all, and so a
verdict of its own, has what is for the order of the run itself to say: misuse of mbarriers (too many arrivals, phases that nobody
waits for) and of CTA barriers (lanes of a warp at several, counts that disagree). Neither have clusters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import ALL, MOST, WARP
from oracle_trace import CTA_SHIFT, ELSEWHERE, Event, Ranges

Array = npt.NDArray[Any]
_BITS = (1 << 64) - 1
_FACTOR, _SPREAD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(29)
_NOTHING, _ONE = np.uint64(0), np.uint64(1)
_NEVER = np.iinfo(np.int32).max


class IrregularError(Exception):
    """What the order of the run decides."""


def _mix(state: Any, word: Any) -> Any:
    """Hashes, each with another word; of arrays item by item."""
    found = (state ^ word) * _FACTOR
    return (found ^ (found >> _SHIFT)) * _SPREAD


def _word(*parts: Any) -> np.uint64:
    return np.uint64(hash(parts) & _BITS)


def _words(values: Array) -> Array:
    return values.astype(np.int64).view(np.uint64)


def _sum(hashes: Array) -> np.uint64:
    """The hash of a set of hashes, in whichever order."""
    return np.uint64(int(_mix(hashes, _ONE).sum(dtype=np.uint64)))


@dataclass(eq=False)
class _Round:
    """A CTA barrier that has been arrived at."""

    expected: int
    past: np.uint64 = _NOTHING
    arrived: int = 0
    partial: dict[int, int] = field(default_factory=dict)  # lanes that have arrived, by warp, while some are missing
    lines: dict[int, int] = field(default_factory=dict)  # where they last did
    waiting: list[Array] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Order:
    """The order of one CTA. `seen`: how much each thread has done when it sees each phase, or asks for the last time."""

    number: int
    seen: Array

    def covers(self, other: Order) -> bool:
        """Whether all edges of this run are edges of the other one."""
        return self.number == other.number and self.seen.shape == other.seen.shape and bool((self.seen >= other.seen).all())


@dataclass
class _Phases:
    """An mbarrier, from an initialisation on, among so many threads."""

    pending: int
    expected: int
    threads: int
    settled: bool = False  # all threads know that it is initialised
    seen: list[Array] = field(default_factory=list)  # by phase: how much each thread has done when it sees that it is over
    asked: Array = field(init=False)  # the same when it asks for the last time
    tx: int = 0
    phase: int = 0
    waited: int = 0
    gathered: np.uint64 = _NOTHING
    done: np.uint64 = _NOTHING
    past: np.uint64 = _NOTHING  # what each of the phases was given

    def __post_init__(self) -> None:
        self.asked = np.zeros(self.threads, np.int32)

    def see(self, threads: Array, acts: Array) -> None:
        """Threads that have done so much see the phases that are over."""
        if self.phase:
            self.seen[self.phase - 1][threads] = np.minimum(self.seen[self.phase - 1][threads], acts)

    def when(self) -> list[Array]:
        """When threads see each phase, if only with a later one, and when they ask."""
        found = np.minimum.accumulate(self.seen[::-1])[::-1] if self.seen else ()
        return [*found, self.asked]

    def arrive(self, count: int, past: np.uint64, *, completes: bool = True) -> None:
        """Arrivals that publish a hash."""
        if count > self.pending:
            raise IrregularError
        self.pending -= count
        self.gathered += past
        if self._advance() and not completes:
            raise IrregularError

    def transact(self, nbytes: int) -> None:
        """expect-tx (positive) or complete-tx."""
        self.tx += nbytes
        if abs(self.tx) > MOST:
            raise IrregularError
        self._advance()

    def _advance(self) -> bool:
        if self.pending or self.tx:
            return False
        if self.waited < self.phase:
            raise IrregularError
        self.phase += 1
        self.seen.append(np.full(self.threads, _NEVER, np.int32))
        self.pending, self.done = self.expected, self.gathered
        self.past = _mix(self.past + self.done, _ONE)
        return True


class History:
    """What one CTA's threads have done."""

    def __init__(self, threads: int, base: int) -> None:
        self.base = base
        self.hashes = _mix(np.arange(threads, dtype=np.uint64), _ONE)
        self.live = np.ones(threads, np.bool_)
        self.acts = np.zeros(threads, np.int32)  # how much each has done
        self.rounds: dict[int, _Round] = {}
        self.over = dict[int, np.uint64]()  # by CTA barrier: who came to its rounds, also to those that nobody waits for
        self.members: dict[int, int] = {}
        self.phases: dict[int, _Phases] = {}
        self.every: list[tuple[int, _Phases]] = []
        self.locations: dict[int, np.uint64] = {}
        self.operations: dict[int, np.uint64] = {}  # by serial
        self.covered: dict[tuple[int, int], deque[np.uint64]] = {}  # by arrive-ons, by place and thread

    def _do(self, threads: Array, word: Any) -> None:
        """What goes into the hashes of threads."""
        self.hashes[threads] = _mix(self.hashes[threads], word)
        self.acts[threads] += 1

    def _places(self, event: Event) -> Array:
        places = event.data["places"]
        return np.where(places == ELSEWHERE, places, places - self.base)

    def handle(self, event: Event, threads: Array) -> None:
        """One event of threads of this CTA."""
        if event.kind not in _HANDLERS:
            raise IrregularError
        _HANDLERS[event.kind](self, event, threads)

    def order(self) -> Order:
        """After the last event."""
        items = sorted(self.every, key=lambda one: one[0])  # those of one place in the order in which they were made
        rounds = ((number, int(past)) for number, past in sorted(self.over.items()))
        states = ((place, it.pending, it.tx, it.phase, int(it.past)) for place, it in items)
        seen = [when for _, it in items for when in it.when()]
        return Order(int(_mix(_sum(self.hashes), _word(*rounds, *states))), np.concatenate(seen) if seen else np.zeros(0, np.int32))

    # Accesses and fences -------------------------------------------------------------------------------------------------

    def _on_access(self, event: Event, threads: Array) -> None:
        data, places = event.data, self._places(event)
        word = _word(event.line, event.opcode, data["nbytes"], data["access"], data["strong"], data["scope"], data["element"])
        self._do(threads, _mix(_words(places), word))
        if data["values"] is not None:
            self._do(threads, np.array([hash(value) & _BITS for value in data["values"]], np.uint64))
        if data["strong"] or (self.locations and data["access"] != "read"):
            self._meet(threads, np.where(places == ELSEWHERE, data["addresses"], places), data)

    def _meet(self, threads: Array, keys: Array, data: dict[str, Any]) -> None:
        """Strong accesses, and what overwrites them."""
        for thread, key in zip(threads.tolist(), keys.tolist(), strict=True):
            if not data["strong"] and key not in self.locations:
                continue
            found = self.locations.get(key, _NOTHING)
            if data["access"] != "write":
                self._do(np.array([thread]), found)
            if data["access"] != "read":
                self.locations[key] = _mix(found, self.hashes[thread])

    def _on_fence(self, event: Event, threads: Array) -> None:
        self._do(threads, _word(event.kind, event.line, event.opcode))

    # Barriers --------------------------------------------------------------------------------------------------------------

    def _on_barrier(self, event: Event, threads: Array) -> None:
        ids, counts = event.data["ids"], event.data["counts"]
        self._do(threads, _mix(_words(ids * 4096 + counts), _word(event.line, event.opcode)))
        for number, count in sorted(set(zip(ids.tolist(), counts.tolist(), strict=True))):
            chosen = threads[(ids == number) & (counts == count)]
            self._arrive(chosen, number, count if count >= 0 else ALL, event.data["waits"], event.line)

    def _arrive(self, threads: Array, number: int, count: int, waits: bool, line: int) -> None:
        for warp in np.unique(threads // WARP).tolist():
            lanes = threads[threads // WARP == warp]
            one = self.rounds.setdefault(number, _Round(count))
            apart = any(warp in other.partial and (other, other.lines[warp]) != (one, line) for other in self.rounds.values())
            if one.expected != count or apart:
                raise IrregularError
            one.lines[warp] = line
            one.past += _sum(self.hashes[lanes])
            one.partial[warp] = one.partial.get(warp, 0) + len(lanes)
            if waits:
                one.waiting.append(lanes)
            if count != ALL:
                self._settle(number)
        self._settle(number)

    def _settle(self, number: int) -> None:
        one = self.rounds.get(number)
        if one is None:
            return
        for warp in [warp for warp, lanes in one.partial.items() if lanes >= np.count_nonzero(self.live[warp * WARP : warp * WARP + WARP])]:
            del one.partial[warp]
            one.arrived += WARP
        everyone = len(np.unique(self.live.nonzero()[0] // WARP)) * WARP
        if one.arrived and one.arrived >= (everyone if one.expected == ALL else one.expected):
            del self.rounds[number]
            self.over[number] = _mix(self.over.get(number, _NOTHING) + one.past, _ONE)
            if one.expected == ALL and self.live.all() and sum(map(len, one.waiting)) == len(self.live):
                for item in self.phases.values():
                    item.settled = True
            if one.waiting:
                self._do(np.concatenate(one.waiting), one.past)

    def _on_warp_barrier(self, event: Event, threads: Array) -> None:
        members = event.data["members"]
        self._do(threads, _mix(_words(members), _word(event.line, event.opcode)))
        self.members.update(zip(threads.tolist(), members.tolist(), strict=True))
        self._settle_warps()

    def _settle_warps(self) -> None:
        for warp in {thread // WARP for thread in self.members}:
            lanes = np.arange(warp * WARP, min(warp * WARP + WARP, len(self.live)))
            waiting = np.array([self.members.get(lane, 0) for lane in lanes.tolist()])
            for mask in np.unique(waiting[waiting != 0]).tolist():
                team = self.live[lanes] & ((mask >> (lanes - warp * WARP) & 1) > 0)
                if (waiting[team] == mask).all():
                    self._do(lanes[team], _sum(self.hashes[lanes[team]]))
                    for lane in lanes[team].tolist():
                        del self.members[lane]

    def _on_exit(self, event: Event, threads: Array) -> None:
        self._do(threads, _word(event.kind))
        self.live[threads] = False
        for number in list(self.rounds):
            self._settle(number)
        self._settle_warps()

    # Asynchronous operations -----------------------------------------------------------------------------------------------

    def _on_copy(self, event: Event, threads: Array) -> None:
        self._do(threads, _mix(_words(self._places(event)), _word(event.line, event.opcode, event.data["nbytes"])))

    def _on_group(self, event: Event, threads: Array) -> None:
        self._do(threads, _word(event.kind, event.line, event.opcode, event.data["family"], event.data.get("pending")))

    def _on_product(self, event: Event, threads: Array) -> None:
        for first, ranges in zip(range(0, len(threads), WARP), event.data["ranges"], strict=True):
            self._do(threads[first : first + WARP], _word(event.line, self.base, *ranges))

    def _relative(self, ranges: Ranges) -> tuple[tuple[int, int], ...]:
        return tuple([(start - self.base, end - self.base) for start, end in ranges])

    def _on_bulk(self, event: Event, threads: Array) -> None:
        reads, writes = (self._relative(event.data[way]) for way in ("reads", "writes"))
        self._start(event, threads, _word(event.line, event.opcode, reads, writes))

    def _on_async_store(self, event: Event, threads: Array) -> None:
        self._start(event, threads, _mix(_words(self._places(event)), _word(event.line, event.opcode)))

    def _start(self, event: Event, threads: Array, word: Any) -> None:
        unit = event.data["unit"]
        self._do(threads, word)
        self._do(threads, _word(None if unit is None else unit - self.base))
        self.operations[event.data["serial"]] = _sum(self.hashes[threads])

    # mbarriers -------------------------------------------------------------------------------------------------------------

    def _on_mbarrier(self, event: Event, threads: Array) -> None:
        action, places, given = event.data["action"], self._places(event), event.data["given"]
        words = _mix(_mix(_words(places), _words(given)), _word(event.line, event.opcode))
        if action in ("try_wait", "test_wait"):
            self._ask(threads, places, words)
            return
        self._do(threads, words)
        for place, count, past in zip(places.tolist(), given.tolist(), _mix(self.hashes[threads], _ONE), strict=True):
            if action == "init":
                self.phases[place] = _Phases(count, count, len(self.live))
                self.every.append((place, self.phases[place]))
            elif action != "inval":
                self._signal(self._object(place), action, count, event.data["parts"], past)

    def _ask(self, threads: Array, places: Array, words: Array) -> None:
        settled = np.array([place in self.phases and self.phases[place].settled for place in places.tolist()])
        self._do(threads[~settled], words[~settled])
        for place in np.unique(places[settled]).tolist():
            lanes = threads[places == place]
            self.phases[place].asked[lanes] = self.acts[lanes]

    def _object(self, place: int) -> _Phases:
        if place not in self.phases:
            raise IrregularError
        return self.phases[place]

    @staticmethod
    def _signal(item: _Phases, action: str, given: int, parts: tuple[str, ...], past: np.uint64) -> None:
        if action in ("expect_tx", "complete_tx"):
            item.transact(given if action == "expect_tx" else -given)
            return
        count = given
        if "expect_tx" in parts:
            count, item.tx = 1, item.tx + given
        if action == "arrive_drop":
            item.expected -= count
        item.arrive(count, past, completes="noComplete" not in parts)

    def _on_waited(self, event: Event, threads: Array) -> None:
        data, places = event.data, self._places(event)
        for place in np.unique(places).tolist():
            item, lanes = self._object(place), threads[places == place]
            item.waited = item.phase
            if item.settled and not data["relaxed"]:
                item.see(lanes, self.acts[lanes])
            else:
                self._do(lanes, _mix(item.done, _word(event.line, place, data["relaxed"], data["narrow"])))

    def _on_complete(self, event: Event, threads: Array) -> None:
        item = self._object(event.data["unit"] - self.base)
        item.gathered += self.operations[event.data["serial"]]
        item.transact(-event.data["total"])

    def _on_arrive_on(self, event: Event, threads: Array) -> None:
        places = self._places(event)
        self._do(threads, _mix(_words(places), _word(event.line, event.opcode)))
        for thread, place, past in zip(threads.tolist(), places.tolist(), _mix(self.hashes[threads], _ONE), strict=True):
            self.covered.setdefault((place, thread), deque()).append(past)
            if not event.data["noinc"]:
                self._object(place).pending += 1

    def _on_copies_arrive(self, event: Event, threads: Array) -> None:
        for thread, place in zip(threads.tolist(), self._places(event).tolist(), strict=True):
            self._object(place).arrive(1, self.covered[place, thread].popleft())


_HANDLERS: dict[str, Callable[[History, Event, Array], None]] = {
    "access": History._on_access, "fence": History._on_fence, "barrier": History._on_barrier, "warp-barrier": History._on_warp_barrier,
    "exit": History._on_exit, "copy": History._on_copy, "commit": History._on_group, "wait": History._on_group,
    "product": History._on_product, "bulk": History._on_bulk, "async-store": History._on_async_store,
    "mbarrier": History._on_mbarrier, "waited": History._on_waited,
    "complete": History._on_complete, "arrive-on": History._on_arrive_on, "copies-arrive": History._on_copies_arrive,
}  # fmt: skip


def order(threads: int, cta: int, events: list[Event]) -> Order | None:
    """The order of a CTA's events, whose lanes are those of the wave; None: it has none."""
    one = History(threads, cta << CTA_SHIFT)
    try:
        with np.errstate(over="ignore"):
            for event in events:
                one.handle(event, event.lanes - cta * threads)
            return one.order()
    except IrregularError:
        return None
