"""The clusters of a launch that have not started yet, and how many start at once (PTX ISA, "clusterlaunchcontrol.try_cancel").

A kernel that asks for the work of clusters that have not started is right however many do start: on a GPU that depends on what else runs
there. So the seed decides. Clusters leave the queue in the order of the grid: one that is cancelled never runs, and those that
are left when a wave has ended start then.
"""

from __future__ import annotations

import numpy as np

from consan.backends.cpu.state.faults import Dim3
from consan.backends.cpu.state.schedule import STEERED
from consan.dataclass import dataclass


@dataclass
class LaunchQueue:
    """The waiting clusters of one launch: those from `first` to `end`. `grid` and `cluster` are in CTAs."""

    grid: Dim3 = (1, 1, 1)
    cluster: Dim3 = (1, 1, 1)
    first: int = 0
    end: int = 0
    cancelled: int = 0

    def take(self) -> Dim3 | None:
        """Cancel the launch of the next cluster, and return the %ctaid of its first CTA. None if all have started or are cancelled."""
        if self.first == self.end:
            return None
        index, (x, y, _) = self.first, (n // c for n, c in zip(self.grid, self.cluster, strict=True))
        self.first += 1
        self.cancelled += 1
        place = (index % x, index // x % y, index // (x * y))
        return place[0] * self.cluster[0], place[1] * self.cluster[1], place[2] * self.cluster[2]


def resident(seed: int, waiting: int) -> int:
    """How many of the waiting clusters start together: a third with seed 0, all with each fourth seed, else from one to all but one.

    With a seed that names a schedule any number of them: its remainder is that of the seed of the arguments.
    """
    if waiting == 1 or (seed % 4 == 1 and seed < STEERED):
        return waiting
    most = waiting + (seed >= STEERED)
    return max(1, waiting // 3) if seed == 0 else int(np.random.default_rng(abs(seed)).integers(1, most))
