"""Computes full logs from compact ones: runs the expansion of a kernel (instrument/record/expansion.py) for some CTAs.

Each CTA is one of a launch on the virtual machine, with the numbers that it had. What cannot be computed is said, and never guessed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.launch import Dim3, Launch, NoRoom, NotExpanded
from consan.checker.memory import LogMemory
from consan.instrument.record import Recorded, Refusal, expansion
from consan.instrument.record.computed import PLACE
from consan.instrument.record.text import LAUNCH, LAUNCH_BYTES, PLACES

_MOST_BYTES = 1 << 36  # of the logs: memory of the virtual machine costs nothing until it is touched
_SECONDS = 300.0
_LOCK = threading.Lock()


@dataclass
class VirtualExpander:
    """Expands the logs of one kernel. `machine`: makes a virtual machine."""

    recorded: Recorded
    entry: int
    machine: Callable[[], Any]

    def expand(self, launch: Launch, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The full logs of the warps of some CTAs."""
        logs, left = [launch.stored(cta) for cta in ctas], np.concatenate([launch.left(cta) for cta in ctas])
        if any(log[:, -1].any() for log in logs):
            return _full(len(ctas) * launch.warps)
        with _LOCK:
            return self._run(launch, ctas, logs, left)

    def _run(
        self, launch: Launch, ctas: Sequence[int], logs: list[npt.NDArray[np.uint32]], left: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        backend, handle, recorded = self._load()
        lines = max(log.shape[1] for log in logs)
        words = np.concatenate([np.pad(log, ((0, 0), (0, lines - log.shape[1]), (0, 0))) for log in logs])
        numbers = np.stack([_place(cta, launch.grid, launch.cluster) for cta in ctas])
        memory = LogMemory(backend)
        try:
            whole = Launch(memory, (len(ctas), 1, 1), launch.block, recorded.words, _MOST_BYTES, outer=True, loops=recorded.loops)
        except NoRoom:
            raise NotExpanded from None
        given = {expansion.LOGS: words, expansion.CTAS: numbers, expansion.LEAVERS: left}
        given[expansion.CONSTANTS] = np.frombuffer(launch.constants(), np.uint8)
        places = {field: backend.alloc_apart(array.nbytes) for field, array in given.items()}
        try:
            for where, array in given.items():
                backend.write(places[where], array)
            _write(backend, handle, whole, places, lines)
            entry = self.recorded.entries[self.entry]
            zeros = [bytes(each.nbytes) for each in handle.entry(entry).params]
            stats = backend.launch(handle, entry, whole.grid, whole.block, zeros, timeout=_SECONDS)
            if not stats.completed or stats.faults:
                raise NotExpanded
            return whole.logs(range(len(ctas)))
        finally:
            for place in places.values():
                backend.free(place)
            whole.free()

    def _load(self) -> tuple[Any, Any, Recorded]:
        if not self.recorded.loaded:
            assert self.recorded.expand is not None
            try:
                backend, recorded = self.machine(), self.recorded.expand()
            except Refusal:
                raise NotExpanded from None
            self.recorded.loaded.append((backend, backend.load(recorded.ptx), recorded))
        backend, handle, recorded = self.recorded.loaded[0]
        return backend, handle, recorded


def _write(backend: Any, handle: Any, whole: Launch, places: dict[int, int], lines: int) -> None:
    """Tell the expansion where everything is."""
    given = np.zeros(expansion.GIVEN_BYTES // 8, "<u8")
    for where, address in places.items():
        given[where // 8] = address
    given[expansion.LINES // 8] = lines
    for name, data in (
        (expansion.GIVEN, given.tobytes()),
        (PLACES, whole.places()),
        (LAUNCH, whole.address.to_bytes(LAUNCH_BYTES, "little")),
    ):
        backend.write(backend.symbol(handle, name)[0], data)


def _full(warps: int) -> npt.NDArray[np.uint32]:
    """Logs that ran out of room."""
    log = np.zeros((warps, 2, 32), "<u4")
    log[:, -1] = 1
    return log


def _place(cta: int, grid: Dim3, cluster: Dim3) -> npt.NDArray[np.uint32]:
    """The special registers of a CTA, in the order of PLACE."""
    x, y, _ = grid
    ctaid = cta % x, cta // x % y, cta // (x * y)
    within = tuple(number % size for number, size in zip(ctaid, cluster, strict=True))
    clusters = tuple(number // size for number, size in zip(grid, cluster, strict=True))
    clusterid = tuple(number // size for number, size in zip(ctaid, cluster, strict=True))
    rank = within[0] + cluster[0] * (within[1] + cluster[1] * within[2])
    found = np.array([*ctaid, *grid, *within, *cluster, *clusterid, *clusters, rank, math.prod(cluster)], "<u4")
    assert len(found) == len(PLACE)
    return found
