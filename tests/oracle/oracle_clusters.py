"""What is a cluster's: the barrier of all its threads, and how long a CTA's shared memory may be used by its peers (SEMANTICS 7).

A thread that touches a peer's shared memory must come after something that the peer has done, or the peer may not have started; and some
thread of the peer must come after it, or the peer may have exited. For that the order of execution is enough: a relaxed barrier says
so, and publishes nothing. An asynchronous operation must be over, to the knowledge of some thread of each CTA that it reads or writes.

Not handled: a second arrival of a thread in one phase, a wait without an arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_clocks import Clocks
from oracle_scopes import Past, Scopes, both
from oracle_trace import CTA_SHIFT

Array = npt.NDArray[Any]
Use = tuple[int, int, tuple[int, int]]  # line, time and bytes


class ClusterBarrier:
    """barrier.cluster: every thread that has not exited arrives once in a phase."""

    def __init__(self, scopes: Scopes, actor_of: Array, home_of: Array, live: Array) -> None:
        self.scopes, self.actor_of, self.home_of = scopes, actor_of, home_of
        self.live = live.copy()
        self.arrived = np.zeros(len(live), np.bool_)
        self.turn = np.zeros(len(live), np.int64)  # the phase of a thread's last arrival, from 1
        self.phase = 0  # phases completed
        self.gathered: Past = {}
        self.done: Past = {}
        self.waiting: list[int] = []
        self.released: list[int] = []  # threads that it has let go, until they are taken

    def arrive(self, threads: Array, *, relaxed: bool) -> None:
        """Threads arrive; a relaxed arrival publishes what a fence before it covers."""
        for actor, home in sorted(set(zip(self.actor_of[threads].tolist(), self.home_of[threads].tolist(), strict=True))):
            self.gathered = both(self.gathered, self.scopes.release(actor, home, orders=not relaxed, wide=True))
        self.arrived[threads] = True
        self.turn[threads] = self.phase + 1
        self._settle()

    def wait(self, threads: Array) -> None:
        """Threads wait for the phase that they have arrived at."""
        over = self.turn[threads] <= self.phase
        self._let_go(threads[over].tolist())
        self.waiting += threads[~over].tolist()

    def exit(self, threads: Array) -> None:
        """Nobody waits for threads that have ended."""
        self.live[threads] = False
        self._settle()

    def _settle(self) -> None:
        if not self.arrived.any() or (self.live & ~self.arrived).any():
            return
        self.phase += 1
        self.done, self.gathered = self.gathered, {}
        self.arrived[:] = False
        waiting, self.waiting = self.waiting, []
        self._let_go(waiting)

    def _let_go(self, threads: list[int]) -> None:
        for actor, home in sorted(set(zip(self.actor_of[threads].tolist(), self.home_of[threads].tolist(), strict=True))):
            self.scopes.take(actor, home, self.done, orders=True, wide=True)
        self.released += threads


class Lifetimes:
    """Uses of a peer's shared memory. The clocks are those of execution."""

    def __init__(self, clocks: Clocks, actor_of: Array, home_of: Array, exists: Array) -> None:
        self.clocks = clocks
        self.actors = [np.unique(actor_of[(home_of == home) & exists]) for home in range(int(home_of[-1]) + 1)]
        self.uses: dict[tuple[int, int], Use] = {}  # by actor and CTA: the last one, since those before it come before that
        self.early: list[Use] = []  # that may come before the start
        self.exited = np.zeros(len(actor_of), np.bool_)
        self.home_of, self.exists = home_of, exists

    def use(self, line: int, actor: int, home: int, span: tuple[int, int], *, at_once: bool) -> None:
        """An actor in CTA `home` uses bytes, or starts something that will: that says itself when it is over."""
        target = span[0] >> CTA_SHIFT
        if target == home or not 0 <= target < len(self.actors):
            return
        if not self.clocks.seen[actor, self.actors[target]].any():
            self.early.append((line, 0, span))
        if at_once:
            self.uses[actor, target] = line, int(self.clocks.time[actor]), span

    def operate(self, line: int, operation: int, span: tuple[int, int]) -> None:
        """An asynchronous operation reads or writes bytes of a CTA."""
        self.uses[operation, span[0] >> CTA_SHIFT] = line, 1, span

    def exit(self, threads: Array) -> None:
        """Threads end."""
        self.exited[threads] = True

    def broken(self) -> Iterator[Use]:
        """Uses of a CTA before it has started or after it may have exited."""
        yield from self.early
        for (actor, target), use in self.uses.items():
            over = self.exited[(self.home_of == target) & self.exists].all()
            if over and not (self.clocks.seen[self.actors[target], actor] >= use[1]).any():
                yield use
