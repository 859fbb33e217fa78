"""The order that launches of different GPUs make by flags in memory (SEMANTICS 12, R-RK8).

The checker gives the strong accesses of .sys scope of each launch, with their values
(consan/checker/source/global_memory/peer_order.hpp). No clock is common to two GPUs, so the values decide: of all orders of the accesses
of a place in which each read gets what is there, a read has read from the same write in each.

Not decided: a read that has not, and places where no order fits (a copy has written, or a kernel that is not recorded) or too many would
have to be tried. What a flag held at first is taken for 0, or for what launches before have left there.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, PeerFlagKind, RetainedFlag, Rows, conflicts
from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.session.comparing.streams import Stream

_ST, _EXCH, _ADD, _CAS = 2, 3, 4, 5  # FlagOrder::Operation
_MOST_AT_ONE_PLACE, _MOST_STATES = 128, 1 << 14
_STRONG_READ: Final = np.uint32(RetainedFlag.STRONG | RetainedFlag.READS)
_FIRST: Final = -1  # stands for what was there at first
Place = tuple[int, int]
FirstValues = dict[Place, set[int]]


class _Done(Protocol):
    """A launch or an operation of a process with several GPUs."""

    @property
    def rows(self) -> Rows | None:
        """Its accesses, if they are known."""

    @property
    def flags(self) -> Rows | None:
        """Its flags that other GPUs may use, if all are known."""

    @property
    def stream(self) -> Stream | None:
        """The stream in which it was made."""


@dataclass(eq=False)
class FlaggedLaunch:
    """A launch. `flags`: those that other GPUs may use; None: they are not known."""

    rank: int
    rows: Rows
    flags: Rows | None


Over = Callable[[FlaggedLaunch, FlaggedLaunch], bool]
"""Whether a launch is over when another one starts."""


@dataclass(frozen=True)
class _Access:
    launch: FlaggedLaunch
    at: int  # among its flags

    @property
    def row(self) -> np.void:
        assert self.launch.flags is not None
        found: np.void = self.launch.flags[self.at]
        return found

    def has(self, kind: PeerFlagKind) -> bool:
        return bool(int(self.row["flags"]) & kind)

    @property
    def old(self) -> int | None:
        """The value that it has read."""
        return int(self.row["old"]) if self.has(PeerFlagKind.OBSERVES) else None

    @property
    def stored(self) -> int | None:
        """The value that it leaves, if that is known."""
        row, mask = self.row, (1 << 8 * int(self.row["bytes"])) - 1
        operation = int(row["operation"])
        if operation in (_ST, _EXCH):
            return int(row["first"]) & mask
        if operation == _CAS:
            return int(row["second"]) & mask
        return (int(row["old"]) + int(row["first"])) & mask if operation == _ADD and self.has(PeerFlagKind.OBSERVES) else None

    @property
    def place(self) -> Place:
        return int(self.row["address"]), int(self.row["bytes"])

    @property
    def thread(self) -> tuple[int, int]:
        return int(self.row["cluster"]), int(self.row["thread"])


@dataclass(frozen=True)
class _Edge:
    """A release of one launch that an acquire of another one has observed: the bits of both."""

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
        for at in range(0 if launch.flags is None else len(launch.flags)):
            access = _Access(launch, at)
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

    def judged(self, one: FlaggedLaunch, other: FlaggedLaunch) -> tuple[list[Conflict], bool]:
        """The races of two launches that no flag orders; and, of some that are no sure ones, whether there are any."""
        found, uncertain = dict[tuple[int, ...], Conflict](), False
        for (begins, ends, first), (others_begin, others_end, second) in itertools.product(_groups(one.rows), _groups(other.rows)):
            if self._before(one, ends, other, others_begin) or self._before(other, others_end, one, begins):
                continue
            here = list(conflicts(first, second, waited=False, scope=SYS_SCOPE))
            if here and (self._may_order(one, ends, other) or self._may_order(other, others_end, one)):
                uncertain = True
            else:
                for each in here:
                    kind = tuple(int(row[name]) for row in (each.first, each.second) for name in ("site", "flags"))
                    found[kind] = _united(found[kind], each) if kind in found else each
        return list(found.values()), uncertain

    def _before(self, first: FlaggedLaunch, ends: int, second: FlaggedLaunch, begins: int) -> bool:
        """Whether an access is before another one: a release is behind the first, and the second behind an acquire that has observed it."""
        for edge in self._edges:
            behind = bool(ends & edge.released) if edge.first is first else self._is_earlier(first, edge.first)
            if behind and (bool(begins & edge.acquired) if edge.second is second else self._is_earlier(edge.second, second)):
                return True
        return False

    def _is_earlier(self, one: FlaggedLaunch, other: FlaggedLaunch) -> bool:
        return one is not other and one.rank == other.rank and self._over(one, other)

    def _may_order(self, first: FlaggedLaunch, ends: int, second: FlaggedLaunch) -> bool:
        """Whether an order may be one that is not seen: it takes a release behind the first access."""
        if first.flags is None or second.flags is None:
            return True
        released = [each for each in self._of(first) if int(each.row["released"]) & ends]
        if not released and not any(self._is_earlier(first, edge.first) for edge in self._edges):
            return False
        looked_at = {each.place for each in self._accesses if each.launch.rank == second.rank and each.has(PeerFlagKind.OBSERVES)}
        if any(each.place not in looked_at and not self._is_read(second.rank, *each.place) for each in released):
            # a kernel that is not recorded may wait for it
            return True
        acquired = (each for launch in (first, second) for each in self._of(launch) if int(each.row["acquired"]))
        return self._leads(first, second) or any(each not in self.sources for each in acquired)

    def _is_read(self, rank: int, address: int, nbytes: int) -> bool:
        """Whether a launch of a GPU has a strong read there: one of a narrower scope acquires nothing."""
        found = (each.rows[(each.rows["flags"] & _STRONG_READ) == _STRONG_READ] for each in self._launches if each.rank == rank)
        return any(((rows["address"] < address + nbytes) & (rows["address"] + rows["bytes"] > address)).any() for rows in found)

    def _leads(self, first: FlaggedLaunch, second: FlaggedLaunch) -> bool:
        """Whether flags lead from a launch to another one by way of a third."""
        reached, more = {first}, True
        while more:
            found = {edge.second for edge in self._edges if any(edge.first is each or self._over(each, edge.first) for each in reached)}
            more = not found <= reached
            reached |= found
        through = reached - {first, second}
        last = [edge.first for edge in self._edges if edge.second is second]
        return any(each in through or any(self._over(one, each) for one in through) for each in last)

    @functools.cached_property
    def _accesses(self) -> list[_Access]:
        return [_Access(launch, at) for launch in self._launches if launch.flags is not None for at in range(len(launch.flags))]

    def _of(self, launch: FlaggedLaunch) -> Iterator[_Access]:
        return (each for each in self._accesses if each.launch is launch)

    @functools.cached_property
    def sources(self) -> dict[_Access, _Access | None]:
        """The writes that reads have read from, as far as that is certain; None: what was there at first."""
        places = defaultdict[Place, list[_Access]](list)
        for each in self._accesses:
            places[each.place].append(each)
        found: dict[_Access, _Access | None] = {}
        for place, accesses in places.items():
            if len(accesses) <= _MOST_AT_ONE_PLACE:
                found |= _AtPlace(accesses, self._over).sources({0} | self._first.get(place, set()))
        return found

    @functools.cached_property
    def _edges(self) -> list[_Edge]:
        return [
            _Edge(write.launch, int(write.row["released"]), read.launch, int(read.row["acquired"]))
            for read, source in self.sources.items()
            if int(read.row["acquired"])
            for write in self._sequence(source)
            if int(write.row["released"]) and write.launch is not read.launch
        ]

    def _sequence(self, write: _Access | None) -> Iterator[_Access]:
        """A write, and those whose release sequence it continues."""
        while write is not None:
            yield write
            write = self.sources.get(write) if write.has(PeerFlagKind.UPDATES) else None


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


def _groups(rows: Rows) -> Iterable[tuple[int, int, Rows]]:
    """The accesses with the same acquires before them and the same releases behind them."""
    keys: npt.NDArray[np.uint64] = rows["begins"].astype(np.uint64) << np.uint64(32) | rows["ends"]
    return [(key >> 32, key & 0xFFFFFFFF, rows[keys == np.uint64(key)]) for key in np.unique(keys).tolist()]


def _united(one: Conflict, other: Conflict) -> Conflict:
    """The races of two sites, in two groups of accesses."""
    meets = max(one.reach[0], other.reach[0]) <= min(one.reach[1], other.reach[1])
    reach = (min(one.reach[0], other.reach[0]), max(one.reach[1], other.reach[1])) if meets else one.reach
    count, ctas = one.count + other.count, max(one.ctas, other.ctas)
    return replace(one, count=count, ctas=ctas, reach=reach, same_value=one.same_value and other.same_value)
