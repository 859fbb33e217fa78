"""The order that launches of different GPUs make by flags in memory (SEMANTICS 12, R-RK8).

The checker gives the strong accesses of .sys scope of each launch, with their values
(consan/checker/source/global_memory/peer_order.hpp). No clock is common to two GPUs, so the values decide: of all orders of the accesses
of a place in which each read gets what is there, a read has read from the same write in each.

Not decided: a read that has not (it may have observed any release of its place), order by way of a third launch, and places where no
order fits (a copy has written, or a kernel that is not recorded) or too many would have to be tried. The first value of a
flag is taken to be 0, or the one that launches before have left there, or else one that somebody has stored who is not seen.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, PeerFlagKind, RetainedFlag, RetainedFlags, Rows, conflicts
from consan.checker.compiled.layouts import RETAINED
from consan.dataclass import dataclass
from consan.instrument.layouts.records import dtype
from consan.session.comparing.pairs.flagged_launches import ALL, AccessesOfPlace, AccessGroup, FlagAccess, FlaggedLaunch, Over, Place

if TYPE_CHECKING:
    from consan.session.comparing.streams import Stream

_MOST_AT_ONE_PLACE: Final = 128  # accesses
_STRONG_READ: Final = np.uint32(RetainedFlag.STRONG | RetainedFlag.READS)
_ANY: Final = -1  # a set of all numbers
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
    """The flags of launches. `first_values`: what places may have held before these launches, besides 0.

    `shows`: whether all is known that the GPU of the second launch did from the begin of the first to that of the second.
    """

    def __init__(
        self, launches: Sequence[FlaggedLaunch], over: Over, first_values: FirstValues | None = None, *, shows: Over = lambda *_: False
    ) -> None:
        self._launches, self._over, self._first, self._shows = launches, over, first_values or {}, shows
        # By GPU: the flags that it looks at, its strong reads, and the accesses of its copies.
        self._looked_at: dict[int, tuple[set[Place], list[Rows], list[Rows]]] = {}
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

    def may_be_waited_for(self, place: Place, first: FlaggedLaunch, second: FlaggedLaunch) -> bool:
        """Whether the GPU of the second launch may wait, without being seen, for a flag of the first before it makes the second.

        A strong read of a narrower scope acquires nothing. The host may have looked at what was copied.
        """
        rank = second.rank
        if rank not in self._looked_at:
            own = [each for each in self._launches if each.rank == rank]
            reads = [each.rows[(each.rows["flags"] & _STRONG_READ) == _STRONG_READ] for each in own]
            places = {each.place for launch in own for each in launch.accesses if each.old is not None}
            self._looked_at[rank] = places, [each for each in reads if len(each)], [each.rows for each in own if each.flags is None]
        places, reads, copies = self._looked_at[rank]
        if place in places or _touch(reads, place):
            return False
        return not self._shows(first, second) or _touch(copies, place)

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
    def _found(self) -> tuple[dict[FlagAccess, FlagAccess | None], set[Place]]:
        """See `sources`; and the places that others have written: no order fits, or only one with another first value."""
        places = defaultdict[Place, list[FlagAccess]](list)
        for each in itertools.chain.from_iterable(launch.accesses for launch in self._launches):
            places[each.place].append(each)
        found: dict[FlagAccess, FlagAccess | None] = {}
        of_others = set[Place]()
        for place, accesses in places.items():
            if len(accesses) > _MOST_AT_ONE_PLACE:
                continue
            at_place = AccessesOfPlace(accesses, self._over)
            sources = at_place.sources({0} | self._first.get(place, set()))
            if sources is None:
                of_others.add(place)
                sources = at_place.sources({each.old for each in accesses if each.old is not None}) or {}
                sources = {read: write for read, write in sources.items() if write is not None}
            found |= sources
        return found, of_others

    @functools.cached_property
    def sources(self) -> dict[FlagAccess, FlagAccess | None]:
        """The writes that reads have read from, as far as that is certain; None: what was there at first."""
        return self._found[0]

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
        """The same, and what there may be: an acquire whose source is not certain may have observed any release of its place.

        If others have written there, it may have observed what they did behind any release.
        """
        accesses = list(itertools.chain.from_iterable(launch.accesses for launch in self._launches))
        releases = defaultdict[Place, list[FlagAccess]](list)
        for each in accesses:
            if each.released:
                releases[each.place].append(each)
        unknown, of_others = [each for each in accesses if each.acquired and each not in self.sources], self._found[1]
        return self.edges + [
            _Edge(write.launch, write.released, read.launch, read.acquired)
            for read in unknown
            for write in (itertools.chain.from_iterable(releases.values()) if read.place in of_others else releases[read.place])
            if write.launch is not read.launch
        ]

    def _sequence(self, write: FlagAccess | None) -> Iterator[FlagAccess]:
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
            behind = 1 << edge.acquired if edge.second is second else ALL if flags.is_earlier(edge.second, second) else 0
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
        if first.flags is None or second.flags is None or any(flags.may_be_waited_for(each.place, first, second) for each in released):
            return _ANY
        own = (each for each in flags.may_be if (ends >> each.released & 1 if each.first is first else flags.is_earlier(first, each.first)))
        found = 0
        for edge in flags.behind(own):
            found |= 1 << edge.acquired if edge.second is second else ALL if flags.is_earlier(edge.second, second) else 0
        return found


def _touch(several: Iterable[Rows], place: Place) -> bool:
    address, nbytes = place
    return any(((rows["address"] < address + nbytes) & (rows["address"] + rows["bytes"] > address)).any() for rows in several)


def _together(groups: Iterable[AccessGroup]) -> Rows:
    rows = [each.rows for each in groups]
    return np.concatenate(rows) if rows else np.zeros(0, dtype(RETAINED))


def _united(one: Conflict, other: Conflict) -> Conflict:
    """The races of two sites, in two groups of accesses."""
    meets = max(one.reach[0], other.reach[0]) <= min(one.reach[1], other.reach[1])
    reach = (min(one.reach[0], other.reach[0]), max(one.reach[1], other.reach[1])) if meets else one.reach
    count, ctas = one.count + other.count, max(one.ctas, other.ctas)
    return replace(one, count=count, ctas=ctas, reach=reach, same_value=one.same_value and other.same_value)
