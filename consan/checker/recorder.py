"""Records launches, and turns the checker's findings into the records from which a report is made.

A launch is checked as soon as it has ended: each history that no launch of the kernel had before, in both replay orders. Nothing is lost
silently: a log without room, CTAs that did not end, and a replay that cannot continue are reported, and make the verdict `incomplete`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.launch import Dim3, Group, Grouped, Launch
from consan.checker.replay import History, Replayed, Status, Tables, replay
from consan.instrument.abi.events import FINDING, TYPES, Kind, Reason
from consan.instrument.abi.records import TABLE_ENTRY, dtype, size
from consan.instrument.record import Recorded
from consan.instrument.record.templates import tables
from consan.instrument.record.text import LAUNCH

MOST_UNENDED = 16  # CTAs that did not end are replayed up to this number
_WHY = {
    Status.STUCK: "could not be replayed to their end",
    Status.CORRUPT: "left a log that does not fit the kernel",
    Status.FULL: "ran out of room in their logs (--trace-memory gives more)",
    Status.TOO_MANY: "had more findings than are kept",
}
_UNREADABLE = (Status.CORRUPT, Status.FULL)


@dataclass(frozen=True)
class LaunchedKernel:
    """The kernel of a launch: the number of its module, its number in the module, block and grid."""

    module: int
    entry: int
    grid: Dim3
    block: Dim3


@dataclass
class Tally:
    """How much of a kernel was checked; `events`: lane events that were replayed."""

    launches: int = 0
    ctas: int = 0
    histories: int = 0
    events: int = 0


@dataclass
class Checked:
    """What the checker says of one launch."""

    records: npt.NDArray[np.void]
    table: npt.NDArray[np.void]
    tally: Tally
    gaps: dict[str, int] = field(default_factory=dict)  # CTAs that were not checked in full, by reason


_Key = tuple[int, int, int, int, int]


class Collected:
    """Findings of one launch, merged over its histories."""

    def __init__(self, launched: LaunchedKernel) -> None:
        self.launched = launched
        self.records: list[Any] = []
        self.rows: list[list[int]] = []  # count, CTAs, low, high
        self._known: dict[_Key, int] = {}

    def add(self, cta: int, ctas: int, found: Iterable[Any], shared_bytes: int) -> None:
        """The findings of one history, which `ctas` CTAs have; `cta` is the one that was replayed."""
        for record in found:
            key, row = _key(record), [int(record["count"]) * ctas, ctas, int(record["low"]), int(record["high"])]
            number = self._known.setdefault(key, len(self.records))
            if number == len(self.records):
                self.records.append(self._record(record, cta, number, shared_bytes))
                self.rows.append(row)
            else:
                kept = self.rows[number]
                kept[:] = kept[0] + row[0], kept[1] + row[1], min(kept[2], row[2]), max(kept[3], row[3])

    def _record(self, found: Any, cta: int, number: int, shared_bytes: int) -> npt.NDArray[np.void]:
        """A FINDING, with the common fields and the fields of its type."""
        record = np.zeros(1, dtype(FINDING))
        event = record["event"]
        _copy(found, event)
        event["valid"], event["module"], event["entry"], event["table"] = 1, self.launched.module, self.launched.entry, number
        x, y, _ = self.launched.grid
        event["ctaid"] = (cta % x, cta // x % y, cta // (x * y))
        event["ntid"], event["shared_bytes"] = self.launched.block, shared_bytes
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


def _key(record: Any) -> _Key:
    first, second = sorted((int(record["site"]), int(record["other_site"])))
    return int(record["kind"]), int(record["flags"]) & 3, int(record["reason"]), first, second


def _united(done: list[Replayed]) -> list[Any]:
    """The findings of both orders; a finding that both have is taken from the first.

    After a divergent `.aligned` instruction the behaviour is undefined, and the order decides how much is replayed before it. Then only
    findings that both orders have are kept.
    """
    orders = [{_key(record): record for record in each.records} for each in done]
    undefined = any(each.status is Status.UNDEFINED for each in done)
    found = {name: record for order in reversed(orders) for name, record in order.items()}
    kept = [record for name, record in found.items() if not undefined or all(name in order for order in orders)]
    return _preferred(kept)


def _preferred(found: list[Any]) -> list[Any]:
    """One kind for each pair (SEMANTICS section 8).

    An unordered copy and access are a race in one order, a missing wait in the other. A missing proxy fence is reported rather than a
    missing `bar.warp.sync`.
    """
    waits, fences = (_pairs_of(found, kind) for kind in (Kind.MISSING_WAIT, Kind.MISSING_PROXY_FENCE))
    left = [record for record in found if record["kind"] != Kind.DATA_RACE or not _is_other(record, waits, fences)]
    return sorted(left, key=lambda record: record["kind"] == Kind.MISSING_WAIT and int(record["reason"]))


def _pairs_of(found: list[Any], kind: Kind) -> set[tuple[int, ...]]:
    return {_key(record)[3:] for record in found if record["kind"] == kind}


def _is_other(race: Any, waits: set[tuple[int, ...]], fences: set[tuple[int, ...]]) -> bool:
    """Whether the pair of a race has a finding of another kind that comes first."""
    pair = _key(race)[3:]
    return pair in waits or (pair in fences and race["reason"] == Reason.NO_WARP_SYNC)


def start(backend: Any, handle: Any, recorded: Recorded, launched: LaunchedKernel, most_bytes: int) -> Launch:
    """Give a loaded module the memory for its next launch. Raises `NoRoom`."""
    launch = Launch(backend, launched.grid, launched.block, recorded.words, most_bytes)
    backend.write(backend.symbol(handle, LAUNCH)[0], launch.address.to_bytes(8, "little"))
    return launch


@dataclass(frozen=True)
class Known:
    """What the replay of a history found."""

    found: list[Any]
    troubles: frozenset[Status]
    by_address: bool = False  # the findings depend on addresses in global memory, so each CTA is replayed


Histories = dict[tuple[object, ...], Known]
_MOST_KNOWN = 1 << 14


class RecordedLaunch(Protocol):
    """What `check` reads of a launch."""

    def grouped(self, limit: int) -> Grouped:
        """The CTAs by history. `limit`: only the first CTAs (0: all)."""

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""

    def history(self, cta: int) -> History:
        """What a CTA did."""

    def free(self) -> None:
        """Free the memory."""


def check(
    launch: RecordedLaunch, recorded: Recorded, launched: LaunchedKernel, histories: Histories, *, limit: int = 0, exhaustive: bool = False
) -> Checked:
    """Replay a launch that has ended, or that makes no progress. `limit`: only the first CTAs (0: all).

    `histories`: those of earlier launches, to which new ones are added. The findings of a known history are reported again; stored values
    are not compared again. `exhaustive`: each CTA is replayed.
    """
    found = launch.grouped(limit)
    if len(histories) > _MOST_KNOWN:
        histories.clear()
    before = len(histories)
    checker = _Checker(launch, tables(list(recorded.templates)), Collected(launched), histories, exhaustive)
    for group in found.groups:
        checker.check(group)
    for cta in found.unended[:MOST_UNENDED]:
        checker.collect(cta, 1, checker.replayed(cta))
    tally = Tally(1, found.ctas, len(histories) - before, checker.events)
    gaps = checker.gaps | ({"did not end": len(found.unended)} if found.unended else {})
    return Checked(*checker.collected.tables(), tally, gaps)


@dataclass
class _Checker:
    launch: RecordedLaunch
    tables: Tables
    collected: Collected
    histories: Histories
    exhaustive: bool
    gaps: dict[str, int] = field(default_factory=dict)
    events: int = 0

    def __post_init__(self) -> None:
        self._window = self.launch.window()

    def check(self, group: Group) -> None:
        launched = self.collected.launched
        name = (launched.module, launched.entry, launched.block, self._window, group.name)
        if name not in self.histories:
            self.histories[name] = self.replayed(group.members[0])
        known = self.histories[name]
        if not (known.by_address or self.exhaustive):
            self._add(group.members[0], len(group.members), known)
            return
        for cta in group.members:
            self._add(cta, 1, self.replayed(cta))

    def _add(self, cta: int, ctas: int, known: Known) -> None:
        for status in known.troubles:
            self.gaps[_WHY[status]] = self.gaps.get(_WHY[status], 0) + ctas
        self.collect(cta, ctas, known)

    def replayed(self, cta: int) -> Known:
        history = self.launch.history(cta)
        done = [replay(self.tables, history, descending=order) for order in (False, True)]
        self.events += sum(each.events for each in done)
        troubles = {each.status for each in done} - {Status.OK, Status.UNDEFINED}
        found = _united([each for each in done if each.status not in _UNREADABLE])
        return Known(found, frozenset(troubles), any(each.by_address for each in done))

    def collect(self, cta: int, ctas: int, known: Known) -> None:
        self.collected.add(cta, ctas, known.found, self._window[1])
