"""Vector clocks of one cluster, exact: a row per thread, a column per thread and per asynchronous operation.

`seen[t, a]` is the last moment of actor `a` that happens before what thread `t` does next, `fenced[h, t, a]` the last one that is also
behind a proxy fence on the way (SEMANTICS 5) for the shared memory of CTA h: a fence may be for that of its own CTA only (D3). An
asynchronous operation is an actor with one moment, 1: its reads and writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Snapshot = tuple[Array, Array]


class Clocks:
    """The clocks of `threads` threads; `homes`: CTAs whose fences are kept apart."""

    def __init__(self, threads: int, homes: int = 1) -> None:
        self.threads = threads
        self.homes = homes
        self.actors = threads
        self.seen = np.zeros((threads, 2 * threads), np.int32)
        self.fenced = np.zeros((homes, threads, 2 * threads), np.int32)
        self.time = np.ones(threads, np.int32)
        self.seen[np.arange(threads), np.arange(threads)] = 1

    def new_actors(self, count: int) -> Array:
        """Columns for asynchronous operations."""
        first = self.actors
        self.actors += count
        if self.actors > self.seen.shape[1]:
            grow = ((0, 0), (0, self.actors))
            self.seen, self.fenced = np.pad(self.seen, grow), np.pad(self.fenced, ((0, 0), *grow))
        return np.arange(first, self.actors)

    def snapshot(self, threads: Array) -> Snapshot:
        """Everything before what some threads do next; they then enter a new moment."""
        threads = np.unique(threads)
        found = self.seen[threads, : self.actors].max(0), self.fenced[:, threads, : self.actors].max(1)
        self.advance(threads)
        return found

    def snapshot_of(self, thread: int) -> Snapshot:
        """The same for one thread."""
        found = self.seen[thread, : self.actors].copy(), self.fenced[:, thread, : self.actors].copy()
        self.time[thread] += 1
        self.seen[thread, thread] = self.time[thread]
        return found

    def only(self, operations: list[int]) -> Snapshot:
        """What a completion publishes: the operations, not what came before them."""
        seen = np.zeros(self.actors, np.int32)
        seen[operations] = 1
        return seen, np.zeros((self.homes, self.actors), np.int32)

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
        self.fenced[:, threads, :width] = np.maximum(self.fenced[:, threads, :width], snapshot[1][:, None])

    def acquire_one(self, thread: int, snapshot: Snapshot) -> None:
        """The same for one thread."""
        width = len(snapshot[0])
        for mine, given in ((self.seen[thread, :width], snapshot[0]), (self.fenced[:, thread, :width], snapshot[1])):
            np.maximum(mine, given, out=mine)

    def observe(self, thread: int, operations: list[int]) -> None:
        """A thread learns that operations are complete, and nothing else."""
        self.seen[thread, operations] = 1

    def fence_proxies(self, threads: Array, home: int | None = None) -> None:
        """Everything before is behind the fence, and what comes after is not; `home`: for the shared memory of one CTA only."""
        for each in range(self.homes) if home is None or self.homes == 1 else (home,):
            self.fenced[each, threads] = np.maximum(self.fenced[each, threads], self.seen[threads])
        self.advance(threads)

    def behind_fence(self, homes: Array, threads: Array, actors: Array) -> Array:
        """The last moments of actors that are behind a fence for what threads do next to the shared memory of CTAs."""
        return np.asarray(self.fenced[homes if self.homes > 1 else 0, threads, actors])

    def before(self, threads: Array, actors: Array, times: Array) -> Array:
        """Whether moments of actors happen before what threads do next."""
        return np.asarray(self.seen[threads, actors] >= times)


def join(left: Snapshot | None, right: Snapshot | None) -> Snapshot | None:
    """Both."""
    if left is None or right is None:
        return right if left is None else left
    short, wide = sorted((left, right), key=lambda one: len(one[0]))
    seen, fenced = wide[0].copy(), wide[1].copy()
    width = len(short[0])
    np.maximum(seen[:width], short[0], out=seen[:width])
    np.maximum(fenced[:, :width], short[1], out=fenced[:, :width])
    return seen, fenced
