"""Vector clocks of one CTA, exact: a row per thread, a column per thread and per asynchronous operation.

`seen[t, a]` is the last moment of actor `a` that happens before what thread `t` does next, `fenced[t, a]` the last one that is also
behind a proxy fence on the way (SEMANTICS 2.4). An asynchronous operation is an actor with one moment, 1: its reads and writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Snapshot = tuple[Array, Array]


class Clocks:
    """The clocks of `threads` threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.actors = threads
        self.seen = np.zeros((threads, 2 * threads), np.int32)
        self.fenced = np.zeros((threads, 2 * threads), np.int32)
        self.time = np.ones(threads, np.int32)
        self.seen[np.arange(threads), np.arange(threads)] = 1
        self.released: dict[int, Snapshot] = {}  # by thread: what its last release fence covers
        self.pending: dict[int, list[Snapshot]] = {}  # by thread: what an acquire fence would acquire

    def new_actors(self, count: int) -> Array:
        """Columns for asynchronous operations."""
        first = self.actors
        self.actors += count
        if self.actors > self.seen.shape[1]:
            grow = ((0, 0), (0, self.actors))
            self.seen, self.fenced = np.pad(self.seen, grow), np.pad(self.fenced, grow)
        return np.arange(first, self.actors)

    def snapshot(self, threads: Array) -> Snapshot:
        """Everything before what some threads do next; they then enter a new moment."""
        threads = np.unique(threads)
        found = self.seen[threads, : self.actors].max(0), self.fenced[threads, : self.actors].max(0)
        self.advance(threads)
        return found

    def advance(self, threads: Array) -> None:
        """A new moment of some threads."""
        threads = np.unique(threads)
        self.time[threads] += 1
        self.seen[threads, threads] = self.time[threads]

    def acquire(self, threads: Array, snapshot: Snapshot) -> None:
        """What is in the snapshot happens before what the threads do next."""
        width = len(snapshot[0])
        threads = np.unique(threads)
        self.seen[threads, :width] = np.maximum(self.seen[threads, :width], snapshot[0])
        self.fenced[threads, :width] = np.maximum(self.fenced[threads, :width], snapshot[1])

    def observe(self, thread: int, operations: list[int]) -> None:
        """A thread learns that operations are complete, and nothing else."""
        self.seen[thread, operations] = 1

    def fence_proxies(self, threads: Array) -> None:
        """Everything before is behind the fence, and what comes after is not."""
        self.fenced[threads] = np.maximum(self.fenced[threads], self.seen[threads])
        self.advance(threads)

    def fence(self, threads: Array, *, acquires: bool, releases: bool) -> None:
        """fence.acquire, release, acq_rel and sc."""
        for thread in np.unique(threads).tolist():
            if acquires:
                for snapshot in self.pending.pop(thread, []):
                    self.acquire(np.array([thread]), snapshot)
            if releases:
                self.released[thread] = self.snapshot(np.array([thread]))

    def before(self, threads: Array, actors: Array, times: Array) -> Array:
        """Whether moments of actors happen before what threads do next."""
        return np.asarray(self.seen[threads, actors] >= times)


def join(left: Snapshot | None, right: Snapshot | None) -> Snapshot | None:
    """Both."""
    if left is None or right is None:
        return right if left is None else left
    width = max(len(left[0]), len(right[0]))
    one, other = ([np.pad(part, (0, width - len(part))) for part in each] for each in (left, right))
    return np.maximum(one[0], other[0]), np.maximum(one[1], other[1])
