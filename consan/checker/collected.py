"""Merges the findings of one launch over its histories, and makes the records of them from which a report is made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.beside import Kept
from consan.checker.grouping import Dim3, units_of
from consan.checker.replay import History
from consan.checker.uniting import Key, key
from consan.instrument.abi.events import FINDING, TYPES, FindingFlags, Kind
from consan.instrument.abi.records import TABLE_ENTRY, dtype, size
from consan.instrument.record.templates import LANES


@dataclass(frozen=True)
class LaunchedKernel:
    """The kernel of a launch: the number of its module, its number in the module, block, grid and cluster."""

    module: int
    entry: int
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)

    def ctaid(self, cta: int) -> Dim3:
        """The place of a CTA in the grid."""
        x, y, _ = self.grid
        return cta % x, cta // x % y, cta // (x * y)


@dataclass(frozen=True)
class Stand:
    """The place of some lanes of a warp: the CTA, and a line of the PTX, or a site (STAND_AT_SITE)."""

    cta: int
    warp: int
    lanes: int
    place: int


class Collected:
    """Findings of one launch, merged over its histories."""

    def __init__(self, launched: LaunchedKernel) -> None:
        self.launched = launched
        self._places: list[tuple[int, History]] = []  # of each finding: its first CTA, and the history without its log
        self.rows: list[list[int]] = []  # count, units, low, high
        self.found: list[Any] = []  # as the checker gave them
        self._known: dict[Key, int] = {}
        self._units = units_of(launched.grid, launched.cluster)
        self.unit_ctas = self._units.shape[1]

    def add(self, unit: int, units: int, found: Iterable[Any], history: History) -> None:
        """The findings of one history, which `units` units have; `unit` is the one that was replayed."""
        geometry = history.without_log()
        for record in found:
            name, row = key(record), [int(record["count"]) * units, units, int(record["low"]), int(record["high"])]
            number = self._known.setdefault(name, len(self.found))
            if number == len(self.found):
                self._places.append((int(self._units[unit, 0]), geometry))
                self.rows.append(row)
                self.found.append(record)
            else:
                kept = self.rows[number]
                kept[:] = kept[0] + row[0], kept[1] + row[1], min(kept[2], row[2]), max(kept[3], row[3])

    def add_outer(self, found: Iterable[Any], history: History) -> None:
        """Findings in global memory, whose threads have numbers that run through all units."""
        unit_threads = self.unit_ctas * history.cta_threads
        for record in found:
            if not int(record["flags"]) & FindingFlags.GRID:  # within one CTA
                unit = int(record["thread"]) // unit_threads
                record["thread"], record["other_thread"] = record["thread"] % unit_threads, record["other_thread"] % unit_threads
                self.add(unit, 1, [record], history)
                continue
            for name in ("thread", "other_thread"):
                unit, within = divmod(int(record[name]), unit_threads)
                rank, thread = divmod(within, history.cta_threads)
                record[name] = self._units[unit, rank] * history.threads + thread
            cta = int(record["thread"]) // history.threads
            self.add(int((self._units == cta).any(axis=1).nonzero()[0][0]), 1, [record], history)

    def numbered(self, kept: Kept, history: History) -> Kept:
        """Accesses whose units are CTAs of the grid, and whose threads are those of a CTA."""
        rank, thread = np.divmod(kept.rows["thread"], history.cta_threads)
        kept.rows["unit"], kept.rows["thread"] = self._units[kept.rows["unit"], rank], thread
        return kept

    def stands(self, unit: int, places: npt.NDArray[np.uint32], history: History) -> Iterable[Stand]:
        """The places of a unit's threads: the warps' lanes at each."""
        whole = np.pad(places, (0, -len(places) % LANES))
        for warp, lanes in enumerate(whole.reshape(-1, LANES)):
            rank, within = divmod(warp * LANES, history.cta_threads)
            for place in np.unique(lanes[lanes != 0]).tolist():
                mask = sum(1 << int(lane) for lane in (lanes == place).nonzero()[0])
                yield Stand(int(self._units[unit, rank]), within // LANES, mask, place)

    def _record(self, found: Any, cta: int, number: int, history: History) -> npt.NDArray[np.void]:
        """A FINDING, with the common fields and the fields of its type. `cta`: of rank 0."""
        record = np.zeros(1, dtype(FINDING))
        event = record["event"]
        _copy(found, event)
        event["valid"], event["module"], event["entry"], event["table"] = 1, self.launched.module, self.launched.entry, number
        x, y, _ = self.launched.grid
        of_grid = bool(int(found["flags"]) & FindingFlags.GRID)
        if of_grid:
            cta = int(found["thread"]) // history.threads
        event["ctaid"] = (cta % x, cta // x % y, cta // (x * y))
        event["ntid"], event["shared_bytes"] = self.launched.block, history.shared_bytes
        if history.ctas > 1:
            event["cluster"], event["cta_bytes"], event["cta_threads"] = self.launched.cluster, history.cta_bytes, history.cta_threads
        if of_grid:
            event["cluster"], event["cta_threads"], event["cta_bytes"] = self.launched.grid, history.threads, 0
            event["rank"] = cta
        _, own = TYPES[Kind(int(found["kind"]))]
        if own.fields:
            _fill(found, record["words"].view(np.uint8)[:, : size(own)].view(dtype(own))[:, 0])
        return record

    def key(self) -> Hashable:
        """The key of the tables: launches with equal keys have equal ones."""
        places = tuple((cta, each.ctas, each.threads, each.shared_bytes) for cta, each in self._places)
        return self.launched, b"".join(found.tobytes() for found in self.found), tuple(map(tuple, self.rows)), places

    def tables(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The records and the table of their counts, as the device's runtime keeps them."""
        table = np.zeros(max(len(self.rows), 1), dtype(TABLE_ENTRY))
        for entry, (count, ctas, low, high) in zip(table, self.rows, strict=False):
            entry["count"], entry["ctas"] = min(count, 0xFFFFFFFF), ctas
            entry["low"], entry["high"] = ~low & 0xFFFFFFFF, high
        places = zip(self.found, self._places, strict=True)
        records = [self._record(found, cta, number, history) for number, (found, (cta, history)) in enumerate(places)]
        return np.concatenate([np.zeros(0, dtype(FINDING)), *records]), table


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
