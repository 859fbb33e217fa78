"""Compares launches of different ranks that may run at the same time (SEMANTICS 12, R-RK5), on the virtual machine.

Launches of several ranks are made together, as one, which the checker judges (consan/ranks/crew.py). Here such a launch is compared with
each later one, rank by rank, until all ranks have met on the host. An access is over where the launch of a rank ends behind it: what comes
later in the stream of that rank is behind it, and so is what another rank does after it has seen a later launch of that rank begin. The
checker says of each access which ranks have begun before it and which end behind it (consan/checker/source/global_memory/rank_order.hpp).

An operation of the host of a rank on tensors is a launch of that rank alone. One that the rank has begun, and has not waited for, is also
compared with what the rank itself does then.

Not handled: several streams of a rank, and whether a copy of an asynchronous proxy is over when another rank
ends: it is incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, RetainedFlag, Rows, racing
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.source.names import function_name
from consan.session.comparing.array_rows import HOST, Placed, rows_of
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.concurrent_launches import MOST_ROWS
from consan.session.comparing.launch_memory import LaunchShape, Memory
from consan.session.modules.layouts import AddressName

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

_END: Final = "the end of rank {}"
Signalled = Sequence[tuple["_MadeTogether", int]]
"""Launches, and the ranks at whose ends a signal of the host was behind them."""


def _ranks(bits: int) -> Iterator[int]:
    return (rank for rank in range(bits.bit_length()) if bits >> rank & 1)


@dataclass(eq=False)
class _MadeTogether:
    """A launch of some ranks, an operation of the host of one, or its end.

    `behind`: of each rank, the ranks whose later launches come behind its end there.
    """

    ranks: Collection[int]
    rows: Rows | None
    behind: list[int]
    module: ModuleSites | None = None
    shape: LaunchShape | None = None
    names: AddressName | None = None
    rank_grid: int = 0  # CTAs of a rank in the last dimension of the grid
    what: str = ""  # of an operation
    where: tuple[str, int] = ("", 0)  # the line of the program
    is_end: bool = False
    is_own: bool = False  # compared with what the same rank does: the rank goes on before it is over

    @property
    def name(self) -> str:
        """The kernel."""
        return function_name(self.shape.entry) if self.shape is not None else self.what

    def repeats(self, last: _MadeTogether) -> bool:
        """Whether it is the operation that came last, made once more."""
        kinds = [(each.ranks, each.what, each.where, each.behind, each.is_own) for each in (self, last)]
        alike = kinds[0] == kinds[1]
        if not alike or last.shape is not None:
            return False
        return self.rows is last.rows or (self.rows is not None and last.rows is not None and np.array_equal(self.rows, last.rows))

    def reached(self, ends: int) -> int:
        """The ranks whose later launches come behind what is over at the end of one of these."""
        found = 0
        for rank in _ranks(ends):
            found |= self.behind[rank]
        return found

    def follow(self, begun: Sequence[int]) -> None:
        """Another launch was made. `begun`: of each rank, the ranks that have begun before its end."""
        for rank, reached in enumerate(self.behind):
            self.behind[rank] = reached | sum(1 << later for later, before in enumerate(begun) if before & reached)

    def groups(self, bits: str) -> Iterator[tuple[int, int, Rows]]:
        """The accesses of a rank with the same ranks behind or before them, and these."""
        assert self.rows is not None
        keys = self._ranks_of(self.rows) << 32 | self.rows[bits]
        for key in np.unique(keys).tolist():
            yield key >> 32, key & 0xFFFFFFFF, self.rows[keys == key]

    def _ranks_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        if self.shape is None:
            return np.full(len(rows), next(iter(self.ranks)), np.int64)
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
    """The launches of a program of several ranks since all of them have met."""

    by: Comparisons
    count: int  # of ranks
    _made: list[_MadeTogether] = field(default_factory=list)
    _over: dict[int, Signalled] = field(default_factory=dict)  # by rank: what was over when its host last waited for its device

    def met(self) -> None:
        """All ranks have waited for each other, on the host: what follows comes behind all launches."""
        self._made.clear()
        self._over.clear()

    def host_waited(self, rank: int) -> None:
        """The host of a rank has waited for its device."""
        self._over[rank] = self.sent(rank)

    def over_for_host(self, rank: int) -> Signalled:
        """The launches that the host of a rank knows to be over."""
        return self._over.get(rank, ())

    def sent(self, rank: int) -> Signalled:
        """The host of a rank sends a signal in its stream."""
        return [(each, sum(1 << end for end, reached in enumerate(each.behind) if reached >> rank & 1)) for each in self._made]

    def received(self, rank: int, sent: Signalled) -> None:
        """The host of a rank has waited for it."""
        for each, ends in sent:
            for end in _ranks(ends):
                each.behind[end] |= 1 << rank
        self._forget()

    def launched(self, prepared: Prepared, shape: LaunchShape, rank_grid: int, ranks: Collection[int], begun: Memory) -> None:
        """Compare a launch of some ranks, the last one that was made, with those before it, and keep it.

        `begun`: memory that operations of a rank use which are not over for it.
        """
        retained = self.by.accesses.last
        rows, others = (None if retained is None else each.rows(retained.rows) for each in (shape.memory, begun))
        own = [1 << rank for rank in range(self.count)]
        made = _MadeTogether(ranks, self._with_room(rows), own, self.by.sites_of(prepared), shape, prepared.address_name, rank_grid)
        for earlier in self._made:
            if earlier.is_own:
                self._compare(earlier, replace(made, rows=others, is_own=True))
        self._add(made, () if retained is None else retained.begun)

    def ended(self, rank: int, arrays: Sequence[Placed]) -> None:
        """A rank has ended, and with it its memory."""
        rows = rows_of((), [(address + HOST, array) for address, array in arrays])
        if rows is not None:
            rows["begins"] = rows["ends"] = 1 << rank
        own = [1 << each for each in range(self.count)]
        self._add(_MadeTogether([rank], rows, own, what=_END.format(rank), is_end=True), ())

    def operated(
        self, rank: int, what: str, reads: Sequence[Placed], writes: Sequence[Placed], where: tuple[str, int],
        *, names: AddressName, over: bool = True, certain: bool = True, own: bool = False,
    ) -> Signalled:  # fmt: skip
        """The host of a rank reads and writes memory, in its stream, where it comes behind what the rank has done before.

        `over`: what the rank does next comes behind it. Else it is over once it is `completed`, or as its own signal says.
        `certain`: it touches all these bytes. `names`: what a report calls them. `own`: it is compared with what the rank itself does.
        """
        rows = self._with_room(rows_of(*([(address + HOST, array) for address, array in arrays] for arrays in (reads, writes))))
        if rows is not None:
            rows["begins"] = rows["ends"] = 1 << rank
            rows["flags"] |= 0 if certain else int(RetainedFlag.POSSIBLE)
        behind = [1 << each if over else 0 for each in range(self.count)]
        made = _MadeTogether([rank], rows, behind, what=what, where=where, names=names, is_own=own)
        last = self._made[-1] if self._made else None
        if last is not None and made.repeats(last):
            return [(last, 1 << rank)]
        self._add(made, ())
        return [(made, 1 << rank)]

    def completed(self, rank: int) -> None:
        """All operations of the host of a rank are over for what it does next."""
        for each in self._made:
            if each.shape is None and rank in each.ranks:
                each.behind[rank] |= 1 << rank

    def _with_room(self, rows: Rows | None) -> Rows | None:
        room = MOST_ROWS - sum(len(each.rows) for each in self._made if each.rows is not None)
        return rows if rows is None or len(rows) <= room else None

    def _add(self, made: _MadeTogether, begun: Sequence[int]) -> None:
        for earlier in self._made:
            self._compare(earlier, made)
        for earlier in self._made:
            earlier.follow(begun)
        self._made.append(made)
        self._forget()

    def _forget(self) -> None:
        """Launches that all later ones come behind are compared with none."""
        every = (1 << self.count) - 1
        self._made = [each for each in self._made if any(~each.behind[rank] & (1 << rank if each.is_own else every) for rank in each.ranks)]

    def _compare(self, earlier: _MadeTogether, later: _MadeTogether) -> None:
        if earlier.rows is not None and later.rows is not None:
            self.by.found(self._races(earlier, later))
        elif any(not earlier.behind[one] >> other & 1 for one in earlier.ranks for other in later.ranks if one != other):
            self._unknown(earlier, later, "the accesses of one are not known in full")

    def _unknown(self, earlier: _MadeTogether, later: _MadeTogether, why: str) -> None:
        names = f"{earlier.name} and {later.name}"
        self.by.incomplete(f"{names}, of different ranks, were not compared: {why}")

    def _races(self, earlier: _MadeTogether, later: _MadeTogether) -> Iterator[Finding]:
        for first_rank, ends, first in earlier.groups("ends"):
            for rank, begins, second in later.groups("begins"):
                if not (_are_own if rank == first_rank else _are_of_two)(earlier, later, rank):
                    continue
                reached = earlier.reached(ends)
                alone = first[first["flags"] & RetainedFlag.ASYNCHRONOUS != 0] if reached & begins else first
                if alone is not first and earlier.behind[first_rank] & begins:
                    continue
                found, uncertain = racing(alone, second, waited=False, scope=SYS_SCOPE)
                if alone is not first and (found or uncertain):
                    self._unknown(earlier, later, "whether an asynchronous copy is over at the end of another rank is not known")
                    continue
                for each in found:
                    yield _race(earlier, later, (first_rank, rank), each)
                if uncertain:
                    self._unknown(earlier, later, "which bytes an operation of torch touches is not known")


def _are_own(earlier: _MadeTogether, later: _MadeTogether, rank: int) -> bool:
    """Whether a rank does something before what it has begun is over; what it begins comes one after the other."""
    return earlier.is_own and later.is_own and not earlier.behind[rank] >> rank & 1 and bool(later.behind[rank] >> rank & 1)


def _are_of_two(earlier: _MadeTogether, later: _MadeTogether, _: int) -> bool:
    return not (earlier.is_own or later.is_own)


def _race(earlier: _MadeTogether, later: _MadeTogether, ranks: tuple[int, int], each: Conflict) -> Finding:
    first, second = (earlier, each.first), (later, each.second)
    ended = next((made for made, _ in (first, second) if made.is_end), None)
    if ended is later:
        first, second, ranks = second, first, ranks[::-1]
    sides = first[0].side(first[1], each.reach), second[0].side(second[1], each.reach)
    situation = words.NO_RANK_EDGE if ended is None else words.RANK_ENDED
    edge = words.StreamEdge(f"rank {ranks[0]}", f"rank {ranks[1]}", "")
    if ranks[0] == ranks[1]:
        situation, edge = words.NO_STREAM_EDGE, words.StreamEdge(f"the stream of {earlier.name}", f"rank {ranks[1]}", ": work.wait()")
    return words.launch_race(
        *sides, situation, edge, ahead=int(second[1]["address"]) - int(first[1]["address"]),
        count=each.count, ctas=each.ctas, same_value=each.same_value,
    )  # fmt: skip
