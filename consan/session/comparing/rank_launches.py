"""Compares launches of a program of several ranks that may run at the same time (SEMANTICS 12, R-RK5), on the virtual machine.

Launches of several ranks are made together, as one, which the checker judges (consan/ranks/crew.py). Here such a launch is compared with
each later one, rank by rank: those of two ranks for the memory that they share, those of one rank, in two of its streams, for all memory.

The end of a launch has a number for each rank, and the streams of the rank hold which ends come before their next launch
(program_streams.py): by order in the stream, events, what the host has waited for, and what another rank has done before a collective, a
signal or a message. An access is over where the launch of a rank ends behind it, and so for what comes behind that end, also in another
rank that has seen a later launch there begin. The checker says of each access which ranks have begun before it and which end behind it
(consan/checker/source/global_memory/rank_order.hpp). An operation of the host of a rank on tensors is a launch of that rank alone.

Launches that all streams of all ranks come behind are forgotten. A stream that is made later, and does not wait for another one, may run
at the same time: then the report is incomplete.

Not handled: whether a copy of an asynchronous proxy is over when another rank ends: it is incomplete.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import (
    GPU_SCOPE,
    SYS_SCOPE,
    Conflict,
    RankSets,
    RetainedFlag,
    Rows,
    may_signal,
    racing,
    widest,
)
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.source.names import function_name
from consan.session.comparing.array_rows import HOST, Placed, rows_between, rows_of, span_of
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.concurrent_launches import MOST_ROWS
from consan.session.comparing.launch_memory import LaunchShape, Memory
from consan.session.comparing.program_streams import ProgramStream, ProgramStreams
from consan.session.comparing.streams import NONE, Event, LaunchOrder, Numbers, StreamPlace, all_behind
from consan.session.modules.layouts import AddressName

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

_END: Final = "the end of rank {}"
_FORGOTTEN: Final = "what all ranks have done before"
_ALONE: Final = "what rank {} did before it had a second stream"
_EACH: Final = (1 << RankSets.WAITED) - 1  # the bits of all ranks
_NOT_KNOWN: Final = "the accesses of one are not known in full"


def _ranks(bits: int) -> Iterator[int]:
    return (rank for rank in range(bits.bit_length()) if bits >> rank & 1)


@dataclass(eq=False)
class _Made:
    """A launch of some ranks, an operation of the host of one, or its end.

    `shared`: its accesses to memory that the ranks share; `own`: those to other memory; None: they are not known.
    """

    streams: Mapping[int, ProgramStream]  # by rank
    shared: Rows | None
    own: Rows | None
    places: dict[int, StreamPlace] = field(default_factory=dict)  # by rank: the ends that come before it
    ends: dict[int, int] = field(default_factory=dict)  # by rank: the number of its own
    module: ModuleSites | None = None
    shape: LaunchShape | None = None
    names: AddressName | None = None
    rank_grid: int = 0  # CTAs of a rank in the last dimension of the grid
    fences: int = -1  # the scope of the widest fence of the kernels
    what: str = ""  # of an operation
    where: tuple[str, int] = ("", 0)  # the line of the program
    owners: Sequence[Any] = ()  # they keep its memory where it is
    is_end: bool = False
    of_one: bool | None = None  # whether it is compared with what the same rank does; None: also with the others

    @property
    def name(self) -> str:
        """The kernel."""
        return function_name(self.shape.entry) if self.shape is not None else self.what

    def rows(self, *, of_one: bool) -> Rows | None:
        """The accesses that are compared with those of the same rank, or of another one."""
        if not of_one:
            return self.shared
        return None if self.shared is None or self.own is None else self._all

    @functools.cached_property
    def _all(self) -> Rows:
        return np.concatenate([each for each in (self.shared, self.own) if each is not None])

    def is_like(self, last: _Made) -> bool:
        """Whether it does what another operation has done, in the same stream."""
        kinds = [(each.streams, each.what, each.where, each.of_one, each.is_end) for each in (self, last)]
        if kinds[0] != kinds[1] or last.shape is not None:
            return False
        pairs = ((self.shared, last.shared), (self.own, last.own))
        return all(one is other or (one is not None and other is not None and np.array_equal(one, other)) for one, other in pairs)

    def comes_before(self, ends: int, later: _Made, begins: int) -> bool:
        """Whether one of these ends of it comes before the begin of a later launch at one of these ranks."""
        return self._has_end(ends, (later.places[rank].start for rank in _ranks(begins) if rank in later.places))

    def waited_for(self, ends: int, later: _Made, waits: int) -> bool:
        """Whether a `griddepcontrol.wait` of one of these ranks in a later launch waits for one of these ends of it."""
        return self._has_end(ends, (later.places[rank].waited for rank in _ranks(waits) if rank in later.places))

    def _has_end(self, ends: int, sets: Iterable[Numbers]) -> bool:
        """Whether one of these ends of it is in one of these sets."""
        numbers = [self.ends[rank] for rank in _ranks(ends) if rank in self.ends]
        return any(number in each for each in sets for number in numbers)

    def groups(self, bits: str, rank: int, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """The accesses of a rank with the same ranks behind or before them, and these."""
        mine = rows[self._ranks_of(rows) == rank]
        for key in np.unique(mine[bits]).tolist():
            yield key, mine[mine[bits] == key]

    def _ranks_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        if self.shape is None:
            return np.full(len(rows), next(iter(self.streams)), np.int64)
        x, y, _ = self.shape.grid
        found: npt.NDArray[np.int64] = rows["cluster"].astype(np.int64) // (x * y * self.rank_grid)
        return found

    def side(self, row: np.void, reach: tuple[int, int]) -> words.Side:
        """An access for the report. `reach`: the bytes of all that are like it, whose name it has."""
        begin, nbytes = int(row["device"]), int(row["bytes"])
        writes = bool(int(row["flags"]) & RetainedFlag.WRITES)
        name = "" if self.names is None else self.names(*(begin + each - int(row["address"]) for each in reach))
        if self.shape is None or self.module is None:
            return words.OperationSide(self.name, *self.where, begin, nbytes, writes, name=name)
        return words.LaunchSide(
            self.module, self.shape.entry, self.shape.grid, self.shape.block, int(row["cluster"]), int(row["thread"]), int(row["site"]),
            begin, nbytes, writes, name, self.rank_grid,
        )  # fmt: skip


@dataclass(eq=False)
class RankLaunches:
    """The launches of a program of several ranks."""

    by: Comparisons
    count: int  # of ranks
    streams: ProgramStreams
    _made: dict[int, _Made] = field(default_factory=dict)  # by the numbers of their ends; those that may still run
    _alone: dict[int, int] = field(default_factory=dict)  # by rank: an operation that stands for others
    _names: dict[ProgramStream, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank in range(self.count):
            self.streams.default_of(rank)

    @property
    def running(self) -> int:
        """The number of launches and operations that may still run."""
        return len(set(self._made.values()))

    @property
    def _timeline(self) -> LaunchOrder:
        return self.streams.concurrent.timeline

    def known_to_host(self, rank: int) -> Event:
        """The launches that the host of a rank knows to be over."""
        return Event(self.streams.reached[rank].get(None, NONE))

    def host_knows(self, event: Event) -> None:
        """The host of the rank that runs has met one that knows them to be over."""
        self.streams.host_waits_for(event)

    def launched(
        self, prepared: Prepared, shape: LaunchShape, rank_grid: int, streams: Mapping[int, ProgramStream], own: Memory,
        dependents: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        """Compare a launch of some ranks, the last one that was made, with those before it, and keep it. `own`: memory of one rank.

        `dependents`: the ranks of which it is a programmatic dependent launch.
        """
        retained = self.by.accesses.last
        shared = (
            rows_between((), ())
            if retained is None and not shape.memory.arrays
            else None
            if retained is None
            else shape.memory.rows(retained.rows)
        )
        other = None if retained is None else own.rows(retained.rows)
        other = None if other is None else other[~shape_inside(shape.memory, other)]
        fences = max(widest(function.fence_scopes) for function in prepared.instrumented.reachable(shape.entry))
        made = _Made(
            streams, *self._with_room(shared, other), module=self.by.sites_of(prepared), shape=shape, names=prepared.address_name,
            rank_grid=rank_grid, fences=fences, owners=own.owners,
        )  # fmt: skip
        self._add(made, () if retained is None else retained.begun, dependents)

    def ended(self, rank: int, arrays: Sequence[Placed]) -> None:
        """A rank has ended, and with it its memory."""
        rows = _of_rank(rank, rows_of((), [(address + HOST, array) for address, array in arrays]))
        for each in self.streams.on(rank):
            self.streams.default_of(rank).wait(each)
        self._add(
            _Made({rank: self.streams.default_of(rank)}, rows, rows_between((), ()), what=_END.format(rank), is_end=True, of_one=False)
        )

    def operated(
        self, stream: ProgramStream, what: str, reads: Sequence[Placed], writes: Sequence[Placed], where: tuple[str, int],
        *, shared: Sequence[int], names: AddressName, certain: bool = True, of_one: bool | None = None, owners: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """The host of a rank reads and writes memory in a stream. `shared`: addresses of those that are of memory that ranks share.

        `certain`: it touches all these bytes. `names`: what a report calls them. `of_one`: it is compared with what the same rank does,
        or with what others do; None: with both.
        """
        if not shared and len(self.streams.on(stream.context)) == 1:
            self._operated_alone(stream)
            return
        flag = 0 if certain else int(RetainedFlag.POSSIBLE)
        placed = [[(address, (address + HOST, array)) for address, array in some] for some in (reads, writes)]
        parts = [[[each for address, each in some if (address in shared) is of_all] for some in placed] for of_all in (True, False)]
        ours, own = (_of_rank(stream.context, rows_of(*part), flag) for part in parts)
        rows = self._with_room(ours, own)
        self._add(_Made({stream.context: stream}, *rows, names=names, what=what, where=where, of_one=of_one, owners=owners))

    def _operated_alone(self, stream: ProgramStream) -> None:
        """While a rank has one stream, one operation stands for those on its own memory, up to the next event."""
        known, number = self.known_to_host(stream.context).over, self._alone.get(stream.context)
        if number is None or number not in self._made or number < self._timeline.recorded or number in known:
            made = _Made({stream.context: stream}, rows_between((), ()), None, what=_ALONE.format(stream.context))
            self._add(made)
            self._alone[stream.context] = made.ends[stream.context]

    def _with_room(self, shared: Rows | None, own: Rows | None) -> tuple[Rows | None, Rows | None]:
        """Accesses, as far as there is room for them."""
        kept = [*dict.fromkeys(self._made.values())]
        return tuple(
            rows if rows is None or len(rows) + sum(len(each) for each in others if each is not None) <= MOST_ROWS else None
            for rows, others in ((shared, [each.shared for each in kept]), (own, [each.own for each in kept]))
        )  # type: ignore[return-value]

    def _add(self, made: _Made, begun: Sequence[int] = (), dependents: frozenset[int] = frozenset()) -> None:
        with self.streams.lock:
            made.places = {rank: each.place(self._timeline, programmatic=rank in dependents) for rank, each in made.streams.items()}
            if self._is_repeated(made):
                return
            ordered = functools.reduce(operator.and_, (place.start for place in made.places.values()))
            for earlier in dict.fromkeys(self._made[number] for number in self._timeline.everything - ordered):
                self._compare(earlier, made)
            for rank, place in made.places.items():
                before = begun[rank] if begun else 0
                behind = [made.places[each].start for each in _ranks(before & _EACH) if each in made.places]
                behind += [made.places[each].waited for each in _ranks(before >> RankSets.WAITED) if each in made.places]
                start = functools.reduce(operator.or_, behind, place.start)
                made.ends[rank] = number = self._timeline.note(StreamPlace(start, start), waits=False)
                made.streams[rank].launched(number, place)
                self._made[number] = made
            self._forget()

    def _is_repeated(self, made: _Made) -> bool:
        """Whether the last operation has done the same, and nothing has come behind that one alone."""
        last = self._timeline.last()
        return last is not None and self._made[last].is_like(made) and not self._known_elsewhere(last, made)

    def _known_elsewhere(self, number: int, made: _Made) -> bool:
        rank, stream = next(iter(made.streams.items()))
        if any(number in known.get(None, NONE) for known in self.streams.reached.values()):
            return True
        return any(number in each.over for other in range(self.count) for each in self.streams.on(other) if (other, each) != (rank, stream))

    def _forget(self) -> None:
        """Launches that all later ones come behind are compared with none.

        Something stands for those that are not over for the hosts: a new stream may run at the same time.
        """
        all_streams = [each for rank in range(self.count) for each in self.streams.on(rank)]
        known = all_behind(all_streams, self._timeline)
        gone = [each for each in dict.fromkeys(map(self._made.__getitem__, known)) if known >= Numbers(each.ends.values())]
        numbers = Numbers(number for each in gone for number in each.ends.values())
        of_hosts = functools.reduce(operator.and_, (self.known_to_host(rank).over for rank in range(self.count)))
        if not numbers or ([each.what for each in gone] == [_FORGOTTEN] and not numbers <= of_hosts):
            return
        for number in numbers:
            del self._made[number]
        self._timeline.host_waits(numbers)
        if not numbers <= of_hosts:
            self._stand_for(all_streams)

    def _stand_for(self, all_streams: Sequence[ProgramStream]) -> None:
        made = _Made({rank: self.streams.default_of(rank) for rank in range(self.count)}, None, None, what=_FORGOTTEN)
        number = self._timeline.note(StreamPlace(NONE, NONE), waits=False)
        made.ends, self._made[number] = dict.fromkeys(range(self.count), number), made
        for each in all_streams:
            each.put_behind(number)

    def _compare(self, earlier: _Made, later: _Made) -> None:
        for one in earlier.streams:
            for other in later.streams:
                same = one == other
                if any(each.of_one not in (None, same) for each in (earlier, later)):
                    continue
                self._compare_ranks(earlier, later, one, other)

    def _compare_ranks(self, earlier: _Made, later: _Made, one: int, other: int) -> None:
        if earlier.comes_before(1 << one, later, 1 << other):
            return
        first, second = (each.rows(of_one=one == other) for each in (earlier, later))
        if first is not None and second is not None:
            if len(first) and len(second):
                self.by.found(list(self._races(earlier, later, (one, other), (first, second))))
        else:
            self._unknown(earlier, later, _NOT_KNOWN)

    def _unknown(self, earlier: _Made, later: _Made, why: str) -> None:
        self.by.incomplete(f"{earlier.name} and {later.name} were not compared, which may run at the same time: {why}")

    def _races(self, earlier: _Made, later: _Made, ranks: tuple[int, int], rows: tuple[Rows, Rows]) -> Iterator[Finding]:
        one, other = ranks
        for ends, first in earlier.groups("ends", one, rows[0]):
            for begins, second in later.groups("begins", other, rows[1]):
                begins, waits = begins & _EACH, begins >> RankSets.WAITED
                ordered = earlier.comes_before(ends, later, begins) or earlier.waited_for(ends, later, waits)
                if earlier.comes_before(1 << one, later, begins) or earlier.waited_for(1 << one, later, waits):
                    continue
                alone = first[first["flags"] & RetainedFlag.ASYNCHRONOUS != 0] if ordered else first
                if not _meet(alone, second):
                    continue
                found, uncertain = racing(alone, second, waited=False, scope=SYS_SCOPE if one != other else GPU_SCOPE)
                if ordered and (found or uncertain):
                    self._unknown(earlier, later, "whether an asynchronous copy is over at the end of another rank is not known")
                elif found and one == other and _may_signal(earlier, later, rows):
                    self.by.incomplete(words.perhaps_by_memory(earlier.name, later.name))
                else:
                    yield from (self._race(earlier, later, ranks, each) for each in found)
                    if uncertain:
                        self._unknown(earlier, later, "which bytes an operation of torch touches is not known")

    def _race(self, earlier: _Made, later: _Made, ranks: tuple[int, int], each: Conflict) -> Finding:
        first, second = (earlier, each.first, ranks[0]), (later, each.second, ranks[1])
        if later.is_end:
            first, second = second, first
        sides = first[0].side(first[1], each.reach), second[0].side(second[1], each.reach)
        situation = words.RANK_ENDED if earlier.is_end or later.is_end else words.NO_RANK_EDGE
        edge = words.StreamEdge(f"rank {first[2]}", f"rank {second[2]}", "")
        if ranks[0] == ranks[1]:
            one, other = first[0].streams[ranks[0]], second[0].streams[ranks[0]]
            spelled = next((each.edge for each in sorted((other, one), key=lambda each: not each.name) if each.edge), "")
            unordered = words.NO_CHAINED_WAIT if one is other else words.NO_STREAM_EDGE
            situation = words.NO_GRID_WAIT if first[0].waited_for(1 << ranks[0], second[0], 1 << ranks[1]) else unordered
            edge = words.StreamEdge(self._named(one), self._named(other), spelled)
        return words.launch_race(
            *sides, situation, edge, ahead=int(second[1]["address"]) - int(first[1]["address"]),
            count=each.count, ctas=each.ctas, same_value=each.same_value,
        )  # fmt: skip

    def _named(self, stream: ProgramStream) -> str:
        """The name of a stream in reports: those of a rank are counted in the order in which they are named."""
        counted = sum(each.context == stream.context for each in self._names) + 1
        return f"{stream.name or self._names.setdefault(stream, f'stream {counted}')} of rank {stream.context}"


def shape_inside(memory: Memory, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which accesses are to the arrays of a launch."""
    return functools.reduce(operator.or_, (each.inside(rows) for each in memory.arrays), np.zeros(len(rows), np.bool_))


def _of_rank(rank: int, rows: Rows | None, flags: int = 0) -> Rows | None:
    """Accesses of an operation: they begin and end with its rank."""
    if rows is not None:
        rows["begins"] = rows["ends"] = 1 << rank
        rows["flags"] |= flags
    return rows


def _meet(one: Rows, other: Rows) -> bool:
    spans = span_of(one), span_of(other)
    return max(spans[0][0], spans[1][0]) < min(spans[0][1], spans[1][1])


def _may_signal(earlier: _Made, later: _Made, rows: tuple[Rows, Rows]) -> bool:
    """Whether two launches of one rank may synchronise through memory."""
    fences = earlier.fences, later.fences
    return may_signal(*rows, fences, GPU_SCOPE)
