"""`--overhead`: which launches are looked at, so that checking slows the program by no more than a given share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

FIRST: Final = 2  # launches of each kernel and shape that are always looked at


@dataclass
class OverheadBudget:
    """A launch is looked at while consan's own time is within its share of the program's, and if it is one of the first of its shape.

    `own`, `elapsed`: consan's own seconds so far, and those since the run began (consan/backends/cost.py).
    """

    share: float
    own: Callable[[], float]
    elapsed: Callable[[], float]
    _launches: dict[Hashable, int] = field(default_factory=dict)

    def affords(self, shape: Hashable) -> bool:
        """Whether to look at the next launch. `shape`: its kernel, grid, block and cluster."""
        before = self._launches.get(shape, 0)
        if before < FIRST:
            self._launches[shape] = before + 1
            return True
        own = self.own()
        return own <= self.share * (self.elapsed() - own)

    def forget(self) -> None:
        """Start afresh after a report."""
        self._launches.clear()
