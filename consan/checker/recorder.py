"""Records launches, and turns the checker's findings into the records from which a report is made.

A launch is checked as soon as it has ended: each history that no launch of the kernel had before, in both replay orders. Nothing is lost
silently: a log without room, CTAs that did not end, and a replay that cannot continue are reported, and make the verdict `incomplete`.

The CTAs of a cluster are replayed together. They and single CTAs are units (launch.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker import scopes
from consan.checker.grid import access_gaps, by_unit, check_grid, replay_gaps
from consan.checker.launch import Dim3, Group, Grouped, Launch, units_of
from consan.checker.replay import History, Level, Replayed, Status, Tables, replay
from consan.checker.stops import Stop
from consan.checker.uniting import Key, key, preferred, united, united_records
from consan.instrument.abi.events import FINDING, TYPES, FindingFlags, Kind
from consan.instrument.abi.records import TABLE_ENTRY, dtype, size
from consan.instrument.record import Recorded
from consan.instrument.record.global_memory import Mode
from consan.instrument.record.templates import tables
from consan.instrument.record.text import LAUNCH

MOST_BYTES = 1 << 30  # of the logs that are replayed for global memory
MOST_UNENDED = 16  # units that did not end are replayed up to this number
_WHY = {
    Status.STUCK: "could not be replayed to their end",
    Status.CORRUPT: "left a log that does not fit the kernel",
    Status.FULL: "ran out of room in their logs (--trace-memory gives more, --global off needs less)",
    Status.TOO_MANY: "had more findings than are kept",
    Status.APART: "met at barriers in another way than the kernel's text promises, so that the sources of cp.async were not checked",
}
_UNREADABLE = (Status.CORRUPT, Status.FULL)


@dataclass(frozen=True)
class LaunchedKernel:
    """The kernel of a launch: the number of its module, its number in the module, block, grid and cluster."""

    module: int
    entry: int
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)


@dataclass
class Tally:
    """How much of a kernel was checked; `events`: lane events that were replayed."""

    launches: int = 0
    ctas: int = 0
    histories: int = 0
    events: int = 0


@dataclass
class Checked:
    """The checker's findings in one launch, and what it could not check."""

    records: npt.NDArray[np.void]
    table: npt.NDArray[np.void]
    tally: Tally
    gaps: dict[str, int] = field(default_factory=dict)  # CTAs that were not checked in full, by reason
    unended: int = 0  # CTAs that did not end and were checked as far as they came
    outer: tuple[str, ...] = ()  # why global memory was not checked in full
    found: list[Any] = field(default_factory=list)  # the checker's records, one for each row of the table

    @property
    def keys(self) -> list[Key]:
        """The key of each finding, by which findings are merged."""
        return list(map(key, self.found))


class Collected:
    """Findings of one launch, merged over its histories."""

    def __init__(self, launched: LaunchedKernel) -> None:
        self.launched = launched
        self.records: list[Any] = []
        self.rows: list[list[int]] = []  # count, units, low, high
        self.found: list[Any] = []  # as the checker gave them
        self._known: dict[Key, int] = {}
        self._units = units_of(launched.grid, launched.cluster)
        self.unit_ctas = self._units.shape[1]

    def add(self, unit: int, units: int, found: Iterable[Any], history: History) -> None:
        """The findings of one history, which `units` units have; `unit` is the one that was replayed."""
        for record in found:
            name, row = key(record), [int(record["count"]) * units, units, int(record["low"]), int(record["high"])]
            number = self._known.setdefault(name, len(self.records))
            if number == len(self.records):
                self.records.append(self._record(record, int(self._units[unit, 0]), number, history))
                self.rows.append(row)
                self.found.append(record)
            else:
                kept = self.rows[number]
                kept[:] = kept[0] + row[0], kept[1] + row[1], min(kept[2], row[2]), max(kept[3], row[3])

    def add_outer(self, found: Iterable[Any], history: History) -> None:
        """Findings in global memory, whose threads have numbers that run through all units."""
        for record in found:
            for name in ("thread", "other_thread"):
                unit, within = divmod(int(record[name]), self.unit_ctas * history.cta_threads)
                rank, thread = divmod(within, history.cta_threads)
                record[name] = self._units[unit, rank] * history.threads + thread
            cta = int(record["thread"]) // history.threads
            self.add(int((self._units == cta).any(axis=1).nonzero()[0][0]), 1, [record], history)

    def _record(self, found: Any, cta: int, number: int, history: History) -> npt.NDArray[np.void]:
        """A FINDING, with the common fields and the fields of its type. `cta`: of rank 0."""
        record = np.zeros(1, dtype(FINDING))
        event = record["event"]
        _copy(found, event)
        event["valid"], event["module"], event["entry"], event["table"] = 1, self.launched.module, self.launched.entry, number
        x, y, _ = self.launched.grid
        if int(found["flags"]) & FindingFlags.GRID:
            cta = int(found["thread"]) // history.threads
        event["ctaid"] = (cta % x, cta // x % y, cta // (x * y))
        event["ntid"], event["shared_bytes"] = self.launched.block, history.shared_bytes
        if history.ctas > 1:
            event["cluster"], event["cta_bytes"], event["cta_threads"] = self.launched.cluster, history.cta_bytes, history.cta_threads
        if int(found["flags"]) & FindingFlags.GRID:
            event["cluster"], event["cta_threads"], event["cta_bytes"] = self.launched.grid, math.prod(self.launched.block), 0
            event["rank"] = int(found["thread"]) // math.prod(self.launched.block)
        _, own = TYPES[Kind(int(found["kind"]))]
        if own.fields:
            _fill(found, record["words"].view(np.uint8)[:, : size(own)].view(dtype(own))[:, 0])
        return record

    def tables(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The records and the table of their counts, as the device's runtime keeps them."""
        table = np.zeros(max(len(self.rows), 1), dtype(TABLE_ENTRY))
        for entry, (count, ctas, low, high) in zip(table, self.rows, strict=False):
            entry["count"], entry["ctas"] = min(count, 0xFFFFFFFF), ctas
            entry["low"], entry["high"] = ~low & 0xFFFFFFFF, high
        return np.concatenate([np.zeros(0, dtype(FINDING)), *self.records]), table


def _copy(found: Any, target: npt.NDArray[np.void]) -> None:
    """Copy the fields that have the same name."""
    names = target.dtype.names or ()
    for name in set(found.dtype.names) & set(names):
        target[name] = found[name]


def _fill(found: Any, own: npt.NDArray[np.void]) -> None:
    """The fields of a finding's type, those of its completion among them."""
    names = own.dtype.names or ()
    _copy(found, own)
    if "completion" in names:
        _copy(found, own["completion"])
        _fill_barrier(found, own["completion"]["barrier"])
    if "barrier" in names:
        _fill_barrier(found, own["barrier"])
    if "address" in names:
        own["address"] = int(found["address_high"]) << 32 | int(found["address_low"])


def _fill_barrier(found: Any, barrier: npt.NDArray[np.void]) -> None:
    """The mbarrier of a finding, if it has one."""
    if found["place"]:
        _copy(found, barrier)
        barrier["state"] = int(found["state_high"]) << 32 | int(found["state_low"])


def start(backend: Any, handle: Any, recorded: Recorded, launched: LaunchedKernel, most_bytes: int) -> Launch:
    """Give a loaded module the memory for its next launch. Raises `NoRoom`."""
    launch = Launch(
        backend, launched.grid, launched.block, recorded.words, most_bytes, launched.cluster, recorded.calls,
        recorded.mode is not Mode.OFF, recorded.loops,
    )  # fmt: skip
    backend.write(backend.symbol(handle, LAUNCH)[0], launch.address.to_bytes(8, "little"))
    return launch


@dataclass(frozen=True)
class Known:
    """The findings of the replay of one history."""

    found: list[Any]
    troubles: frozenset[Status]
    geometry: History  # without its log
    by_address: bool = False  # the findings depend on addresses in global memory, so each unit is replayed


Histories = dict[tuple[object, ...], Known]
_MOST_KNOWN = 1 << 14
_AT_ONCE = 16  # histories that are read at once


class RecordedLaunch(Protocol):
    """The part of a launch that `check` reads."""

    def grouped(self, limit: int) -> Grouped:
        """The units by history. `limit`: only as many as have so many CTAs (0: all)."""

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""

    def history(self, unit: int) -> History:
        """The history of a unit, without the lines that nothing was written to."""

    def free(self) -> None:
        """Free the memory."""


def check(
    launch: RecordedLaunch,
    recorded: Recorded,
    launched: LaunchedKernel,
    histories: Histories,
    *,
    limit: int = 0,
    exhaustive: bool = False,
    sample: int = 0,
    stop: Stop | None = None,
) -> Checked:
    """Replay a launch that has ended, or that makes no progress. `limit`: only the first CTAs (0: all).

    `histories`: those of earlier launches, to which new ones are added. The findings of a known history are reported again; stored values
    are not compared again. `exhaustive`: each unit is replayed. `sample`: at most so many CTAs are (0: all). `stop`: the fault that
    ended the launch.
    """
    found = launch.grouped(limit)
    if len(histories) > _MOST_KNOWN:
        histories.clear()
    before = len(histories)
    checker = _Checker(launch, tables(list(recorded.templates)), Collected(launched), histories, exhaustive, recorded.isa)
    ctas = checker.collected.unit_ctas
    if sample:
        checker.sample = spread(found.units, -(-sample // ctas))
    whole = recorded.mode is Mode.SYNCED and ctas == 1  # then the replay of the launch checks shared memory too
    if not whole:
        checker.check_all(found.groups)
    # A cluster whose launch another one has cancelled never runs.
    cancelled = {unit for unit in found.unended if recorded.takes_clusters and not launch.history(unit).log.any()}
    left = tuple(unit for unit in found.unended if unit not in cancelled)
    first = (stop.unit,) if stop is not None and stop.unit in left else ()
    unended = (*first, *(unit for unit in left if unit not in first))[:MOST_UNENDED]
    for unit in () if whole else unended:
        checker.check_unended(unit, stop.opened if stop is not None else (0, 0))
    outer = checker.check_grid(found, recorded.mode, whole=whole) if recorded.mode is not Mode.OFF else ()
    new = found.units if whole else len(histories) - before + len(unended)
    tally = Tally(1, (found.units - len(cancelled)) * ctas, new, checker.events)
    if more := len(left) - len(unended):
        checker.gaps["did not end, and were not checked"] = more * ctas
    if checker.skipped:
        checker.gaps[f"did what no CTA of the sample did: not checked (--sample {sample})"] = checker.skipped * ctas
    return Checked(*checker.collected.tables(), tally, checker.gaps, len(unended) * ctas, outer, checker.collected.found)


def spread(units: int, count: int) -> frozenset[int]:
    """`count` numbers out of so many, at equal distances; all if there are fewer."""
    return frozenset(number * units // count for number in range(count)) if count < units else frozenset(range(units))


@dataclass
class _Checker:
    launch: RecordedLaunch
    tables: Tables
    collected: Collected
    histories: Histories
    exhaustive: bool
    isa: bool
    gaps: dict[str, int] = field(default_factory=dict)
    events: int = 0
    sample: frozenset[int] | None = None  # the units that may be replayed; None: all
    skipped: int = 0  # units that were not, and did what no other did

    def __post_init__(self) -> None:
        self._window = self.launch.window()

    def check_all(self, groups: Sequence[Group]) -> None:
        """Check each history, new ones first."""
        for some in (groups[at : at + _AT_ONCE] for at in range(0, len(groups), _AT_ONCE)):
            new = {self._name(group): self._members(group) for group in some}
            first = {name: members[0] for name, members in new.items() if members and name not in self.histories}
            self.histories.update(zip(first, self.replayed(list(first.values())), strict=True))
            for group in some:
                self._check(group)

    def _name(self, group: Group) -> tuple[object, ...]:
        launched = self.collected.launched
        return (launched.module, launched.entry, launched.block, launched.cluster, self._window, group.name)

    def _members(self, group: Group) -> Sequence[int]:
        return group.members if self.sample is None else [unit for unit in group.members if unit in self.sample]

    def _check(self, group: Group) -> None:
        known, members = self.histories.get(self._name(group)), self._members(group)
        if known is not None and not (known.by_address or self.exhaustive):
            self._add(group.members[0], len(group.members), known)
            return
        for at in range(0, len(members), _AT_ONCE):
            units = members[at : at + _AT_ONCE]
            for unit, own in zip(units, self.replayed(units), strict=True):
                self._add(unit, 1, own)
        self.skipped += len(group.members) - len(members)

    def check_unended(self, unit: int, opened: tuple[int, int]) -> None:
        """A unit that did not end, as far as it came. How the launch ended is the backend's to tell."""
        (known,) = self.replayed([unit], opened)
        self._add(unit, 1, replace(known, troubles=known.troubles - {Status.STUCK}))

    def _add(self, unit: int, units: int, known: Known) -> None:
        for status in known.troubles:
            self.gaps[_WHY[status]] = self.gaps.get(_WHY[status], 0) + units * self.collected.unit_ctas
        self.collect(unit, units, known)

    def replayed(self, units: Sequence[int], opened: tuple[int, int] = (0, 0)) -> list[Known]:
        """Replay units in both orders, on all cores: the replays are compiled code."""
        histories = [self.launch.history(unit) for unit in units]
        tasks = [(history, opened, order) for history in histories for order in (False, True)]
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(lambda task: self._replayed(*task), tasks))
        return [self._known(history, done[2 * place : 2 * place + 2]) for place, history in enumerate(histories)]

    def _known(self, history: History, done: list[Replayed]) -> Known:
        self.events += sum(each.events for each in done)
        troubles = {each.status for each in done} - {Status.OK, Status.UNDEFINED}
        found = united([each for each in done if each.status not in _UNREADABLE])
        return Known(found, frozenset(troubles), history.without_log(), any(each.by_address for each in done))

    def _replayed(self, history: History, opened: tuple[int, int], descending: bool) -> Replayed:
        def at(level: Level) -> Replayed:
            return replay(self.tables, history, descending=descending, level=level, isa=self.isa, opened=opened)

        return scopes.named(at) if history.ctas > 1 else at(Level.EXACT)

    def check_grid(self, grouped: Grouped, mode: Mode, *, whole: bool) -> tuple[str, ...]:
        """Check global memory, and if `whole` shared memory too; returns what was not checked."""
        histories, nbytes = [], 0
        for unit in range(grouped.units):
            histories.append(self.launch.history(unit))
            nbytes += histories[-1].log.nbytes
            if nbytes > MOST_BYTES:
                return self._too_large(grouped.units, whole=whole)
        if not histories:
            return ()
        done = check_grid(self.tables, histories, mode, whole=whole, isa=self.isa)
        self.events += sum(each.events for each in done)
        found = united_records([each.records for each in done])
        self.collected.add_outer(found, histories[0])
        for unit, orders in by_unit(done).items():
            self.collected.add(unit, 1, preferred(united_records(orders)), histories[0])
        incomplete = replay_gaps(done, ended=not grouped.unended)
        if whole:
            self.gaps |= {f"were replayed together, and {why}": grouped.units for why in incomplete}
        return (*access_gaps(done), *incomplete)

    def _too_large(self, units: int, *, whole: bool) -> tuple[str, ...]:
        why = f"the logs of a launch take more than {MOST_BYTES >> 20:,} MiB"
        if whole:
            self.gaps[f"were not replayed: {why}"] = units
        return (why,)

    def collect(self, unit: int, units: int, known: Known) -> None:
        self.collected.add(unit, units, known.found, known.geometry)
