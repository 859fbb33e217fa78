"""The result of the check of a launch, and that of each history that was replayed."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import Retained
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import History
from consan.checker.judging.collected import Collected, StoppedThread
from consan.checker.judging.spins import Polling
from consan.checker.judging.tally import Tally
from consan.checker.logs.memory import SMALLER
from consan.checker.logs.shares import Pairs, Slices
from consan.dataclass import dataclass
from consan.instrument.findings import FindingRecord, LanesGone
from consan.reports.verdict.speaking.raw import key
from consan.reports.verdict.speaking.terms import Key

OUT_OF_ROOM = f"ran out of room in their logs ({SMALLER}, --global off needs less)"
HistoryName = tuple[object, ...]  # module, kernel, block, cluster, window of shared memory, and the hashes of a log
WHY = {
    Status.STUCK: "could not be replayed to their end",
    Status.CORRUPT: "left a log that does not fit the kernel",
    Status.FULL: OUT_OF_ROOM,
    Status.TOO_MANY: "had more findings than are kept",
    Status.HALTED: "were replayed in part: the time was over",
    Status.SEAL_FAILED: "met at barriers in another way than the kernel's text promises, so that the sources of cp.async were not checked",
}


class LeftOut(NamedTuple):
    """CTAs that have one history, and why it was not replayed."""

    why: str
    ctas: int


@dataclass
class Checked:
    """The checker's findings in one launch, and what it could not check. It grows while the launch is checked."""

    collected: Collected
    tally: Tally
    gaps: dict[str, int] = field(default_factory=dict)  # CTAs that were not checked in full, by reason
    unended: int = 0  # CTAs that did not end and were checked as far as they came
    deadlocked: bool = False  # those of a launch that the host has stopped are proven to be in a deadlock
    positions: tuple[StoppedThread, ...] = ()  # where they were
    polls: tuple[Polling, ...] = ()  # if none of its threads is known to go on: those that may go round a loop for ever
    global_races: tuple[str, ...] = ()  # why global memory was not checked in full
    share: str = ""  # which CTAs were compared there, if not all
    pairs: Pairs | Slices | None = None  # of sets of CTAs that were compared there, if not all at a time; slices, if not all had logs
    overtaken: bool = False  # see replay.py
    alike: bool = False  # they are those of an earlier launch, whose logs were the same
    retained: Retained | None = None  # the accesses to global memory, for a comparison with other launches
    by_address: bool = False  # as `Known` has it, of any history
    left: dict[HistoryName, LeftOut] = field(default_factory=dict)  # histories that were not replayed: a later launch may have them, too

    @property
    def is_whole(self) -> bool:
        """Whether each CTA was checked in full."""
        return not (self.gaps or self.left or (self.slices is not None and self.slices.left))

    @property
    def slices(self) -> Slices | None:
        """Those of its shape, where not all CTAs had logs."""
        return self.pairs if isinstance(self.pairs, Slices) else None

    @property
    def compares_all_pairs(self) -> bool:
        """Whether no pair of sets of CTAs, and no slice, is left to later launches."""
        return self.pairs is None or not self.pairs.left

    def leave(self, name: HistoryName, why: str, clusters: int) -> None:
        """So many clusters have a history that was not replayed."""
        self.left[name] = LeftOut(why, clusters * self.collected.cluster_ctas)

    def gap(self, why: str, clusters: int) -> None:
        """So many clusters were not checked in full."""
        self.gaps[why] = self.gaps.get(why, 0) + clusters * self.collected.cluster_ctas

    def add(self, cluster: int, clusters: int, known: Known) -> None:
        """The findings of a history that so many clusters have; `cluster` is one of them."""
        self.overtaken |= known.overtaken
        for status in known.troubles:
            self.gap(WHY[status], clusters)
        self.collected.note(cluster, known.lanes_gone)
        self.collected.add(cluster, clusters, known.found, known.geometry)

    def again(self, times: int) -> Checked:
        """The same for so many launches that did the same."""
        return replace(self, tally=Tally(times, times * self.tally.ctas))

    @property
    def found(self) -> list[Any]:
        """The checker's own records of them, in the same order."""
        return self.collected.found

    def records(self) -> list[FindingRecord]:
        """The findings for a report."""
        return self.collected.records()

    @property
    def keys(self) -> list[Key]:
        """The key of each finding, by which findings are merged."""
        return list(map(key, self.found))


@dataclass(frozen=True)
class Known:
    """The findings of the replay of one history."""

    found: list[Any]
    troubles: frozenset[Status]
    geometry: History  # without its log
    # The address of a tensor map, where boxes of tensor copies lie, or whether stored values are equal decides: each cluster is replayed.
    by_address: bool = False
    overtaken: bool = False  # see replay.py
    deadlocked: bool = False
    positions: npt.NDArray[np.uint32] | None = None
    lanes_gone: frozenset[LanesGone] = frozenset()


Histories = dict[HistoryName, Known]


def needs_replay(name: HistoryName, histories: Histories) -> bool:
    """Whether a cluster with a history is replayed: no cluster that has it was, or addresses decide what is found."""
    known = histories.get(name)
    return known is None or known.by_address
