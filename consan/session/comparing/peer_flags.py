"""The order that launches of different GPUs make by flags in memory (SEMANTICS 12, R-RK8).

The checker gives the strong accesses of .sys scope of each launch, with their values
(consan/checker/source/global_memory/peer_order.hpp). No clock is common to two GPUs, so the values decide: of all orders of the accesses
of a place in which each read gets what is there, a read has read from the same write in each.

Not decided: a read that has not (it may have observed any release of its place), order by way of a third launch, and places where no
order fits (a copy has written, or a kernel that is not recorded) or too many would have to be tried. The first value of a
flag is taken to be 0, or the one that launches before have left there.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, PeerFlagKind, RetainedFlag, RetainedFlags, Rows, conflicts
from consan.checker.compiled.layouts import RETAINED
from consan.dataclass import dataclass
from consan.instrument.layouts.records import dtype
from consan.session.comparing.array_rows import span_of

if TYPE_CHECKING:
    from consan.session.comparing.streams import Stream

_ST, _EXCH, _ADD, _CAS = 2, 3, 4, 5  # FlagOrder::Operation
_MOST_AT_ONE_PLACE, _MOST_STATES = 128, 1 << 14
_STRONG_READ: Final = np.uint32(RetainedFlag.STRONG | RetainedFlag.READS)
_ALL: Final = 1  # a set of numbers, which are from 1: bit 0 of a set of acquires stands for all accesses of the later launch
_ANY: Final = -1  # a set of all numbers
_FIRST: Final = -1  # stands for what was there at first
Place = tuple[int, int]
FirstValues = dict[Place, set[int]]


class _Done(Protocol):
    """A launch or an operation of a process with several GPUs."""

    @property
    def rows(self) -> Rows | None:
        """Its accesses, if they are known."""

    @property
    def flags(self) -> RetainedFlags | None:
        """Its flags that other GPUs may use, if all are known."""

    @property
    def stream(self) -> Stream | None:
        """The stream in which it was made."""


@dataclass(eq=False)
class FlaggedLaunch:
    """A launch. `flags`: those that other GPUs may use; None: they are not known."""

    rank: int
    rows: Rows
    flags: RetainedFlags | None

    @functools.cached_property
    def accesses(self) -> list[_Access]:
        """Its flags."""
        if self.flags is None:
            return []
        columns = (self.flags.rows[name].tolist() for name in _Access.COLUMNS)
        return [_Access(self, at, *values) for at, values in enumerate(zip(*columns, strict=True))]

    @functools.cached_property
    def groups(self) -> list[_Group]:
        """Its accesses by the acquires before them and the releases behind them."""
        keys: npt.NDArray[np.uint64] = self.rows["begins"].astype(np.uint64) << np.uint64(32) | self.rows["ends"]
        _, groups = np.unique(keys, return_inverse=True)
        order, sets = np.argsort(groups, kind="stable"), self._sets()
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1)).tolist()
        found = []
        for rows in map(self.rows.__getitem__, np.split(order, starts)[1:]):
            begins, ends = (sets[int(rows[0][name])] if sets else _ALL for name in ("begins", "ends"))
            found.append(_Group(begins, ends, rows, *span_of(rows)))
        return found

    def _sets(self) -> list[int]:
        """The sets of numbers that accesses name: a bit for each number, and bit 0."""
        words, at, found = [] if self.flags is None else self.flags.sets.tolist(), 0, list[int]()
        while at < len(words):
            found.append(functools.reduce(lambda bits, number: bits | 1 << number, words[at + 1 : at + 1 + words[at]], _ALL))
            at += 1 + words[at]
        return found


class _Group(NamedTuple):
    """Accesses with the same acquires before them and the same releases behind them. `begin`, `end`: their bytes are between."""

    begins: int
    ends: int
    rows: Rows
    begin: int
    end: int


Over = Callable[[FlaggedLaunch, FlaggedLaunch], bool]
"""Whether a launch is over when another one starts."""


@dataclass(eq=False)
class _Access:
    """A flag. `at`: its place among those of its launch."""

    COLUMNS: ClassVar = (
        *("address", "bytes", "operation", "old", "first", "second"),
        *("flags", "cluster", "thread", "acquired", "released"),
    )
    launch: FlaggedLaunch
    at: int
    address: int
    bytes: int
    operation: int
    value: int
    first: int
    second: int
    flags: int
    cluster: int
    number: int
    acquired: int
    released: int

    def has(self, kind: PeerFlagKind) -> bool:
        return bool(self.flags & kind)

    @property
    def old(self) -> int | None:
        """The value that it has read."""
        return self.value if self.has(PeerFlagKind.OBSERVES) else None

    @property
    def stored(self) -> int | None:
        """The value that it leaves, if that is known."""
        mask = (1 << 8 * self.bytes) - 1
        if self.operation in (_ST, _EXCH):
            return self.first & mask
        if self.operation == _CAS:
            return self.second & mask
        return (self.value + self.first) & mask if self.operation == _ADD and self.has(PeerFlagKind.OBSERVES) else None

    @property
    def place(self) -> Place:
        return self.address, self.bytes

    @property
    def thread(self) -> tuple[int, int]:
        return self.cluster, self.number


@dataclass(frozen=True)
class _Edge:
    """A release of one launch that an acquire of another one has observed: the numbers of both."""

    first: FlaggedLaunch
    released: int
    second: FlaggedLaunch
    acquired: int


def judged_of_process(
    done: Mapping[int, _Done], starts: Mapping[int, Collection[int]], one: _Done, other: _Done, left: FirstValues
) -> tuple[list[Conflict], bool]:
    """`PeerFlags.judged` for launches of several GPUs in one process. `starts`: the numbers of what is over when each starts."""
    known = {number: _flagged(each) for number, each in done.items() if each.rows is not None and each.stream is not None}
    numbers = {launch: number for number, launch in known.items()}
    own, others = (next(known[number] for number, each in done.items() if each is wanted) for wanted in (one, other))
    return PeerFlags(list(known.values()), lambda first, second: numbers[first] in starts[numbers[second]], left).judged(own, others)


def left_in_flags(done: Iterable[_Done], left: FirstValues) -> None:
    """Add the values that launches have stored into flags."""
    for launch in (_flagged(each) for each in done if each.rows is not None and each.stream is not None and each.flags is not None):
        for access in launch.accesses:
            if access.has(PeerFlagKind.WRITES) and access.stored is not None:
                left.setdefault(access.place, set()).add(access.stored)


def _flagged(done: _Done) -> FlaggedLaunch:
    assert done.rows is not None
    assert done.stream is not None
    return FlaggedLaunch(done.stream.context, done.rows, done.flags)


class PeerFlags:
    """The flags of launches. `first_values`: what places may have held before these launches, besides 0."""

    def __init__(self, launches: Sequence[FlaggedLaunch], over: Over, first_values: FirstValues | None = None) -> None:
        self._launches, self._over, self._first = launches, over, first_values or {}
        self._looked_at: dict[int, tuple[set[Place], list[Rows]]] = {}  # by GPU: the flags that it looks at, and its strong reads
        self._ways_on: dict[FlaggedLaunch, list[_Edge]] = {}

    def judged(self, one: FlaggedLaunch, other: FlaggedLaunch) -> tuple[list[Conflict], bool]:
        """The races of two launches that no flag orders; and, of some that are no sure ones, whether there are any."""
        found, uncertain = dict[tuple[int, ...], Conflict](), False
        there, back = _Direction(self, one, other), _Direction(self, other, one)
        spans = np.array([(each.begin, each.end) for each in other.groups], np.uint64).reshape(-1, 2)
        for first in one.groups:
            near = (spans[:, 0] < first.end) & (spans[:, 1] > first.begin)
            seconds = [other.groups[at] for at in np.flatnonzero(near)]
            seconds = [each for each in seconds if not (there.orders(first.ends, each.begins) or back.orders(each.ends, first.begins))]
            may = [there.may_order(first.ends, each.begins) or back.may_order(each.ends, first.begins) for each in seconds]
            perhaps = _together(each for each, is_so in zip(seconds, may, strict=True) if is_so)
            certainly = _together(each for each, is_so in zip(seconds, may, strict=True) if not is_so)
            uncertain = uncertain or any(True for _ in conflicts(first.rows, perhaps, waited=False, scope=SYS_SCOPE))
            for each in conflicts(first.rows, certainly, waited=False, scope=SYS_SCOPE):
                kind = tuple(int(row[name]) for row in (each.first, each.second) for name in ("site", "flags"))
                found[kind] = _united(found[kind], each) if kind in found else each
        return list(found.values()), uncertain

    def is_earlier(self, one: FlaggedLaunch, other: FlaggedLaunch) -> bool:
        """Whether a launch is over when another one of its GPU starts."""
        return one is not other and one.rank == other.rank and self._over(one, other)

    def may_be_waited_for(self, place: Place, rank: int) -> bool:
        """Whether a GPU may wait for a flag without being seen. A strong read of a narrower scope acquires nothing."""
        if rank not in self._looked_at:
            own = [each for each in self._launches if each.rank == rank]
            reads = [each.rows[(each.rows["flags"] & _STRONG_READ) == _STRONG_READ] for each in own]
            places = {each.place for launch in own for each in launch.accesses if each.old is not None}
            self._looked_at[rank] = places, [each for each in reads if len(each)]
        (places, reads), (address, nbytes) = self._looked_at[rank], place
        if place in places:
            return False
        return not any(((rows["address"] < address + nbytes) & (rows["address"] + rows["bytes"] > address)).any() for rows in reads)

    def behind(self, edges: Iterable[_Edge]) -> list[_Edge]:
        """These edges, and all that may follow them: an acquire of a launch is taken to be before each of its releases."""
        found, reached, more = list[_Edge](), set[FlaggedLaunch](), list(edges)
        while more:
            found += more
            new = {edge.second for edge in more} - reached
            reached |= new
            more = [each for launch in new for each in self._onward(launch)]
        return found

    def _onward(self, launch: FlaggedLaunch) -> list[_Edge]:
        """The edges that may lead from a launch, or from later ones of its GPU."""
        if launch not in self._ways_on:
            self._ways_on[launch] = [each for each in self.may_be if each.first is launch or self.is_earlier(launch, each.first)]
        return self._ways_on[launch]

    @functools.cached_property
    def sources(self) -> dict[_Access, _Access | None]:
        """The writes that reads have read from, as far as that is certain; None: what was there at first."""
        places = defaultdict[Place, list[_Access]](list)
        for each in itertools.chain.from_iterable(launch.accesses for launch in self._launches):
            places[each.place].append(each)
        found: dict[_Access, _Access | None] = {}
        for place, accesses in places.items():
            if len(accesses) <= _MOST_AT_ONE_PLACE:
                found |= _AtPlace(accesses, self._over).sources({0} | self._first.get(place, set()))
        return found

    @functools.cached_property
    def edges(self) -> list[_Edge]:
        """The releases that other launches have observed."""
        return [
            _Edge(write.launch, write.released, read.launch, read.acquired)
            for read, source in self.sources.items()
            if read.acquired
            for write in self._sequence(source)
            if write.released and write.launch is not read.launch
        ]

    @functools.cached_property
    def may_be(self) -> list[_Edge]:
        """The same, and what there may be: an acquire whose source is not certain may have observed any release of its place."""
        accesses = list(itertools.chain.from_iterable(launch.accesses for launch in self._launches))
        releases = defaultdict[Place, list[_Access]](list)
        for each in accesses:
            if each.released:
                releases[each.place].append(each)
        unknown = [each for each in accesses if each.acquired and each not in self.sources]
        return self.edges + [
            _Edge(write.launch, write.released, read.launch, read.acquired)
            for read in unknown
            for write in releases[read.place]
            if write.launch is not read.launch
        ]

    def _sequence(self, write: _Access | None) -> Iterator[_Access]:
        """A write, and those whose release sequence it continues."""
        while write is not None:
            yield write
            write = self.sources.get(write) if write.has(PeerFlagKind.UPDATES) else None


class _Direction:
    """How flags order the accesses of one launch before those of another one. `ends`, `begins`: of groups of accesses."""

    def __init__(self, flags: PeerFlags, first: FlaggedLaunch, second: FlaggedLaunch) -> None:
        self._flags, self._first, self._second = flags, first, second
        self._by_release, self._may = defaultdict[int, int](int), dict[int, int]()
        self._reached: dict[int, int] = {}
        for edge in flags.edges:
            behind = 1 << edge.acquired if edge.second is second else _ALL if flags.is_earlier(edge.second, second) else 0
            release = edge.released if edge.first is first else 0 if flags.is_earlier(first, edge.first) else None
            if behind and release is not None:
                self._by_release[release] |= behind

    def orders(self, ends: int, begins: int) -> bool:
        """Whether a release is behind the one access, and the other behind an acquire that has observed it."""
        if ends not in self._reached:
            found = (acquires for release, acquires in self._by_release.items() if ends >> release & 1)
            self._reached[ends] = functools.reduce(operator.or_, found, 0)
        return bool(self._reached[ends] & begins)

    def may_order(self, ends: int, begins: int) -> bool:
        """Whether an order may be one that is not seen: it takes a release behind the first access, and an acquire before the other."""
        if ends not in self._may:
            self._may[ends] = self._perhaps(ends)
        return bool(self._may[ends] & begins)

    def _perhaps(self, ends: int) -> int:
        """The acquires of the later launch that may be behind these releases."""
        flags, first, second = self._flags, self._first, self._second
        released = [each for each in first.accesses if each.released and ends >> each.released & 1]
        if first.flags is None or second.flags is None or any(flags.may_be_waited_for(each.place, second.rank) for each in released):
            return _ANY
        own = (each for each in flags.may_be if (ends >> each.released & 1 if each.first is first else flags.is_earlier(first, each.first)))
        found = 0
        for edge in flags.behind(own):
            found |= 1 << edge.acquired if edge.second is second else _ALL if flags.is_earlier(edge.second, second) else 0
        return found


class _AtPlace:
    """The accesses of one place: all orders of them in which each read gets the value that is there."""

    def __init__(self, accesses: list[_Access], over: Over) -> None:
        self._all = accesses
        self._behind = [
            sum(1 << at for at, one in enumerate(accesses) if one is not other and _comes_before(one, other, over)) for other in accesses
        ]
        self._possible: list[set[int]] = [set() for _ in accesses]
        self._ends: dict[tuple[int, int, int | None], bool] = {}

    def sources(self, first: Iterable[int]) -> dict[_Access, _Access | None]:
        """Which write each read has read from, where all orders agree. `first`: values that the place may have held at first."""
        some = [self._completes(0, _FIRST, value) for value in first]
        if not any(some) or len(self._ends) >= _MOST_STATES:
            return {}
        found = {at: next(iter(each)) for at, each in enumerate(self._possible) if len(each) == 1}
        return {self._all[at]: None if source == _FIRST else self._all[source] for at, source in found.items()}

    def _completes(self, done: int, last: int, value: int | None) -> bool:
        """Whether the accesses that are left can follow: `last` has left the value, None where that is not known."""
        state = done, last, value
        if done + 1 == 1 << len(self._all):
            return True
        if state not in self._ends:
            if len(self._ends) >= _MOST_STATES:
                return False
            self._ends[state] = False
            taken = [self._follows(state, at) for at in range(len(self._all))]  # all: each may have another source
            self._ends[state] = any(taken)
        return self._ends[state]

    def _follows(self, state: tuple[int, int, int | None], at: int) -> bool:
        (done, last, value), access = state, self._all[at]
        if done >> at & 1 or self._behind[at] & ~done or (access.old is not None and value not in (None, access.old)):
            return False
        writes = access.has(PeerFlagKind.WRITES)
        completes = self._completes(done | 1 << at, at if writes else last, access.stored if writes else value)
        if completes and access.old is not None:
            self._possible[at].add(last)
        return completes


def _comes_before(one: _Access, other: _Access, over: Over) -> bool:
    if one.launch is other.launch:
        return one.thread == other.thread and one.at < other.at
    return over(one.launch, other.launch)


def _together(groups: Iterable[_Group]) -> Rows:
    rows = [each.rows for each in groups]
    return np.concatenate(rows) if rows else np.zeros(0, dtype(RETAINED))


def _united(one: Conflict, other: Conflict) -> Conflict:
    """The races of two sites, in two groups of accesses."""
    meets = max(one.reach[0], other.reach[0]) <= min(one.reach[1], other.reach[1])
    reach = (min(one.reach[0], other.reach[0]), max(one.reach[1], other.reach[1])) if meets else one.reach
    count, ctas = one.count + other.count, max(one.ctas, other.ctas)
    return replace(one, count=count, ctas=ctas, reach=reach, same_value=one.same_value and other.same_value)
