"""The asynchronous operations in flight of a wave, in order of issue; also by family and by cluster, since few concern each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .copies import PendingOperation
    from .wave import Wave

Lanes = npt.NDArray[np.intp]
SEVERAL = -1  # the cluster of an operation whose lanes are of several


class Flying(dict[int, "PendingOperation"]):
    """Operations by their serial numbers."""

    def __init__(self, wave: Wave) -> None:
        super().__init__()
        self._threads = wave.shape.threads * wave.cluster_size  # of a cluster
        self._parts: dict[str, dict[int, dict[int, PendingOperation]]] = {}  # by family, then by cluster

    def __setitem__(self, serial: int, operation: PendingOperation) -> None:
        """Put an operation in flight, or what is left of it."""
        if serial in self:
            del self._part(self[serial])[serial]
        super().__setitem__(serial, operation)
        self._part(operation)[serial] = operation

    def __delitem__(self, serial: int) -> None:
        """It has landed."""
        del self._part(self[serial])[serial]
        super().__delitem__(serial)

    def _part(self, operation: PendingOperation) -> dict[int, PendingOperation]:
        return self._parts.setdefault(operation.family, {}).setdefault(self._cluster(operation.lanes), {})

    def _cluster(self, lanes: Lanes) -> int:
        first, last = int(lanes[0]) // self._threads, int(lanes[-1]) // self._threads
        return first if first == last else SEVERAL

    def of(self, family: str, lanes: Lanes | None = None) -> list[tuple[int, PendingOperation]]:
        """The operations of a family; those that may be of some lanes."""
        parts = self._parts.get(family, {})
        cluster = SEVERAL if lanes is None else self._cluster(lanes)
        near = list(parts.values()) if cluster == SEVERAL else [parts[each] for each in (SEVERAL, cluster) if each in parts]
        return sorted((pair for part in near for pair in part.items()), key=lambda pair: pair[0])

    def awaited(self, units: frozenset[int]) -> list[dict[int, PendingOperation]]:
        """The operations of each cluster that has one which signals one of these mbarriers."""
        parts: dict[int, dict[int, PendingOperation]] = {}
        for serial, operation in self.items():
            parts.setdefault(self._cluster(operation.lanes), {})[serial] = operation
        return [part for part in parts.values() if any(not units.isdisjoint(operation.signals) for operation in part.values())]
