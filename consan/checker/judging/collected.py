"""Merges the findings of one launch over its histories, and makes the records of them from which a report is made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import Retained
from consan.checker.compiled.replay import History
from consan.checker.logs.grouping import Dim3, clusters_of
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.findings import (
    KINDS,
    Completion,
    FindingFlags,
    FindingRecord,
    FlagSites,
    Geometry,
    Hazard,
    Kind,
    LanesGone,
    LastWait,
    MbarrierPhase,
    Parted,
    Reason,
    Split,
    Waiting,
    bounds,
)
from consan.instrument.layouts.records import integers
from consan.reports.verdict.speaking.raw import key
from consan.reports.verdict.speaking.terms import Key


@dataclass(frozen=True)
class LaunchedKernel:
    """The kernel of a launch: the number of its module, its number in the module, block, grid and cluster.

    `ranks`: GPUs, each with a part of the grid in its last dimension. `rank_memory`: where their symmetric memory begins, and the bytes of
    one rank.
    """

    module: int
    entry: int
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    ranks: int = 1
    rank_memory: tuple[int, int] = (0, 0)

    def ctaid(self, cta: int) -> Dim3:
        """The place of a CTA in the grid."""
        x, y, _ = self.grid
        return cta % x, cta // x % y, cta // (x * y)


@dataclass(frozen=True)
class StoppedThread:
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
        self.rows: list[list[int]] = []  # count, clusters, lane_bits, low, high, first and last reader
        self.found: list[Any] = []  # as the checker gave them
        self._known: dict[Key, int] = {}
        self.lanes_gone: dict[LanesGone, int] = {}  # with the first CTA
        self._clusters = clusters_of(launched.grid, launched.cluster)
        self.cluster_ctas = self._clusters.shape[1]

    def add(self, cluster: int, clusters: int, found: Iterable[Any], history: History) -> None:
        """The findings of one history, which `clusters` clusters have; `cluster` is the one that was replayed."""
        for record in found:
            name, row = key(record), [int(record["count"]) * clusters, clusters, *(int(record[each]) for each in _MERGED)]
            number = self._known.setdefault(name, len(self.found))
            if number == len(self.found):
                self._places.append((int(self._clusters[cluster, 0]), history.without_log()))
                self.rows.append(row)
                self.found.append(record)
            else:
                retained = self.rows[number]
                count, times, lane_bits, low, high, first, last = zip(retained, row, strict=True)
                retained[:] = sum(count), sum(times), lane_bits[0] | lane_bits[1], min(low), max(high), min(first), max(last)

    def add_global_races(self, found: Iterable[Any], history: History) -> None:
        """Findings in global memory, whose threads have numbers that run through all clusters."""
        cluster_threads = self.cluster_ctas * history.cta_threads
        for record in found:
            if not int(record["flags"]) & FindingFlags.GRID:  # within one CTA
                cluster = int(record["thread"]) // cluster_threads
                record["thread"], record["other_thread"] = record["thread"] % cluster_threads, record["other_thread"] % cluster_threads
                self.add(cluster, 1, [record], history)
                continue
            for name in ("thread", "other_thread"):
                cluster, within = divmod(int(record[name]), cluster_threads)
                rank, thread = divmod(within, history.cta_threads)
                record[name] = self._clusters[cluster, rank] * history.threads + thread
            cta = int(record["thread"]) // history.threads
            self.add(int((self._clusters == cta).any(axis=1).nonzero()[0][0]), 1, [record], history)

    def note(self, cluster: int, lanes_gone: Iterable[LanesGone]) -> None:
        """Add the shuffles that the replay of a cluster noted, where lanes were gone."""
        for each in lanes_gone:
            self.lanes_gone.setdefault(each, int(self._clusters[cluster, each.rank]))

    def numbered(self, retained: Retained, history: History) -> Retained:
        """Accesses whose clusters are CTAs of the grid, and whose threads are those of a CTA."""
        rank, thread = np.divmod(retained.rows["thread"], history.cta_threads)
        retained.rows["cluster"], retained.rows["thread"] = self._clusters[retained.rows["cluster"], rank], thread
        return retained

    def positions(self, cluster: int, places: npt.NDArray[np.uint32], history: History) -> Iterable[StoppedThread]:
        """The places of a cluster's threads: the warps' lanes at each."""
        whole = np.pad(places, (0, -len(places) % LANES))
        for warp, lanes in enumerate(whole.reshape(-1, LANES)):
            rank, within = divmod(warp * LANES, history.cta_threads)
            for place in np.unique(lanes[lanes != 0]).tolist():
                mask = sum(1 << int(lane) for lane in (lanes == place).nonzero()[0])
                yield StoppedThread(int(self._clusters[cluster, rank]), within // LANES, mask, place)

    def key(self) -> Hashable:
        """The key of `records`: launches with equal keys have equal ones."""
        places = tuple((cta, each.ctas, each.threads, each.shared_bytes) for cta, each in self._places)
        return self.launched, b"".join(found.tobytes() for found in self.found), tuple(map(tuple, self.rows)), places

    def records(self) -> list[FindingRecord]:
        """The findings in their order."""
        places = zip(self.found, self.rows, self._places, strict=True)
        return [self._record(index, found, row, cta, history) for index, (found, row, (cta, history)) in enumerate(places)]

    def _record(self, index: int, found: Any, row: list[int], cta: int, history: History) -> FindingRecord:
        """A finding. `cta`: of rank 0."""
        kind, flags = Kind(int(found["kind"])), FindingFlags(int(found["flags"]))
        of_grid, about, barrier = FindingFlags.GRID in flags, KINDS[kind], _barrier(found)
        given = integers(found, *_COMMON, *(_OF_TWO_SIDES if about.two_sides else ()))
        count, ctas, lane_bits, low, high, *readers = row
        low, high = bounds(given["offset"], given["bytes"], low, high, of_cluster=history.ctas > 1 and not of_grid)
        given |= {"count": count, "ctas": ctas, "low": low, "high": high}
        if about.conflicts:
            given |= {
                "hazard": Hazard(int(found["hazard"])),
                "readers": None if flags & _OUTSIDE else tuple(readers),
                "lane_bits": lane_bits,
            }
        if about.completes:
            given["completion"] = Completion(**integers(found, "group", "commits", "retired"), barrier=barrier)
            given["waited"] = _last_wait(found)
            given["flag"] = FlagSites(int(found["flag_write"]), int(found["flag_read"]), int(found["fence"]))
        else:
            given["barrier"] = barrier
        if kind is Kind.DIVERGENCE:
            given["split"] = Split(**integers(found, "came", "others", "exited"), how=Parted(int(found["how"])))
        if kind in (Kind.DEADLOCK, Kind.WAITER):
            given["waiting"] = Waiting(**integers(found, "threads", "lanes", "arrived", "expected"))
        given["geometry"] = self._geometry(int(found["thread"]) // history.threads if of_grid else cta, history, of_grid=of_grid)
        given["address"] = int(found["address_high"]) << 32 | int(found["address_low"])
        reason, launched = Reason(int(found["reason"])), self.launched
        return FindingRecord(kind, reason, flags, launched.module, launched.entry, index, **given)

    def _geometry(self, cta: int, history: History, *, of_grid: bool) -> Geometry:
        launched = self.launched
        where = launched.ctaid(cta), launched.block, history.shared_bytes
        extent = launched.grid[2] // launched.ranks if launched.ranks > 1 else 0
        if of_grid:
            return Geometry(*where, launched.grid, history.threads, rank=cta, rank_grid=extent)
        if history.ctas == 1:
            return Geometry(*where, rank_grid=extent)
        return Geometry(*where, launched.cluster, history.cta_threads, history.cta_bytes, rank_grid=extent)


_MERGED = ("lane_bits", "low", "high", "first_reader", "last_reader")
_OUTSIDE = FindingFlags.GLOBAL | FindingFlags.TENSOR | FindingFlags.GRID  # of shared memory
_COMMON = ("site", "other_site", "thread", "offset", "bytes", "own_operation", "number")
_WAITED = ("waited_site", "waited_place", "waited_phase", "signal_site", "signal_thread")
_OF_TWO_SIDES = ("other_thread", "operation")


def _last_wait(found: Any) -> LastWait | None:
    """The last wait of the thread of a missing wait, if it has waited."""
    if not found["waited_place"]:
        return None
    site, place, phase, signal, thread = (int(found[name]) for name in _WAITED)
    return LastWait(site, place - 1, phase if phase < 1 << 31 else -1, signal, thread)


def _barrier(found: Any) -> MbarrierPhase | None:
    """The mbarrier of a finding, if it has one."""
    if not found["place"]:
        return None
    state = int(found["state_high"]) << 32 | int(found["state_low"])
    return MbarrierPhase(int(found["place"]) - 1, int(found["phase"]), int(found["expected"]), state)
