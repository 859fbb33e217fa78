"""Passes over the clusters of a launch in which nothing is found, where there are many: each is replayed as its log is computed
(source/sweep.hpp).

Findings in others are for the replay of `recorder.py`, which has their logs. So no finding, and no reason why one is missing, comes
from here. Not handled: full logs, and launches whose logs are wanted twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.cores import replayed
from consan.checker.compiled.layouts import Reading
from consan.checker.compiled.patience import Patience
from consan.checker.compiled.replay import MOST_SHARED, History, replay_input
from consan.checker.judging.checked import HistoryName, Known
from consan.checker.judging.tally import Tally
from consan.checker.logs.launch import Clear, Launch
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.dataclass import dataclass
from consan.instrument.record import Recorded

FEWEST: Final = 16  # clusters; of fewer the logs are computed at once
MOST: Final = 1 << 10  # clusters at a time
_OF_TASK: Final = 16  # clusters at most
CORES: int = os.cpu_count() or 1
_Thing = TypeVar("_Thing")


@dataclass(frozen=True)
class Sweep:
    """The sweep of one launch. `geometry`: of its clusters, without a log. `in_any_order`: the first order of a replay decides."""

    launch: Launch
    geometry: History
    clear: Clear
    patience: Patience
    in_any_order: bool

    def known(self, clusters: Mapping[HistoryName, int], tally: Tally) -> dict[HistoryName, Known]:
        """The histories in which nothing is found, of those that some clusters have. `tally`: counts the lane events of their replays."""
        if len(clusters) < FEWEST:
            return {}
        numbers, size = list(clusters.values()), max(1, min(_OF_TASK, len(clusters) // (2 * CORES)))
        tasks = [(numbers[at : at + size],) for at in range(0, len(numbers), size)]
        events = np.concatenate(replayed(self._of_task, tasks, self.launch.log_bytes, self.patience))
        tally.events += int(events.sum()) * (2 if self.in_any_order else 1)
        clear = Known([], frozenset(), self.geometry)
        return {name: clear for name, count in zip(clusters, events.tolist(), strict=True) if count}

    @staticmethod
    def in_turn(things: Sequence[_Thing]) -> Iterator[tuple[int, Sequence[_Thing]]]:
        """Some things, with the place of the first one: a few, then more at a time."""
        at, count = 0, FEWEST
        while at < len(things):
            yield at, things[at : at + count]
            at, count = at + count, min(2 * count, MOST)

    def _of_task(self, clusters: Sequence[int]) -> npt.NDArray[np.uint64]:
        """The lane events of their replays, by a thread of its own, which reads logs while the program may capture a graph."""
        with self.launch.backend.outside_captures():
            return self.clear(self.launch.clusters[list(clusters)].ravel().tolist())


def sweep_of(launch: RecordedLaunch, recorded: Recorded, geometry: History, patience: Patience) -> Sweep | None:
    """The sweep of a launch; None: its logs are there, or the compiled machine does not compute them."""
    if not isinstance(launch, Launch) or launch.silent or launch.expander is None:
        return None
    if recorded.blocks.restricted or geometry.shared_bytes > MOST_SHARED:
        return None
    reading, in_any_order = Reading.BY_THE_ISA if recorded.isa else Reading.USUAL, recorded.blocks.in_any_order and geometry.ctas == 1
    none: npt.NDArray[np.void] = np.zeros(0, np.void)
    one = replay_input(recorded.blocks.tables, geometry, none, {}, descending=False, reading=reading, halt=patience.halt)
    clear = launch.expander.clearing(launch, one, both=not in_any_order)
    return None if clear is None else Sweep(launch, geometry, clear, patience, in_any_order)
