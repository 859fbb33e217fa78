"""Where a fault ended a launch: how much of an unfinished block the threads have executed.

A block of a log counts once the next one has begun. A fault may end the launch in the midst of a block; then the events up to the
instruction that failed count too, for threads that have stored their words.
"""

from __future__ import annotations

import numpy as np

from consan.checker.logs.grouping import Dim3, clusters_of
from consan.dataclass import dataclass
from consan.instrument.record import Recorded


@dataclass(frozen=True)
class Stop:
    """A fault: the cluster in which it happened, and the block (0: none) with the number of its events up to the fault."""

    cluster: int
    block: int = 0
    events: int = 0

    @property
    def opened(self) -> tuple[int, int]:
        """The block and its events."""
        return self.block, self.events


def stop_at(recorded: Recorded, line: int, ctaid: Dim3, grid: Dim3, cluster: Dim3 = (1, 1, 1)) -> Stop:
    """The place of a fault. `line`: of the recorded text."""
    cta = ctaid[0] + grid[0] * (ctaid[1] + grid[1] * ctaid[2])
    plain = recorded.lines[line - 1] if 1 <= line <= len(recorded.lines) else 0
    lines = {site.number: site.ptx_line for site in recorded.sites}
    number = int(np.argwhere(clusters_of(grid, cluster) == cta)[0, 0])
    best, found = 0, Stop(number)
    for template in recorded.blocks.templates:
        places = [lines.get(event.site, 0) for event in template.events]
        first = next(filter(None, places), 0)
        if first and best <= first <= plain:
            best, found = first, Stop(number, template.number, next((n for n, place in enumerate(places) if place > plain), len(places)))
    return found
