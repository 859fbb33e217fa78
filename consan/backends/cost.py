"""The cost of consan for the program: seconds in which it works in the program's threads, and the GPU memory that it takes for itself.

Measured where a program's thread enters consan (`working`) and leaves it again for the program's own call (`outside`), each thread by
itself. A native program's threads are in the interposer, which measures that. Not measured: compiled code of Python programs that returns
without the interpreter, threads of consan's own, code and variables of modules.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

_SCHEDULED: Final = 2  # CPUCLOCK_SCHED: of the clocks of a process, the one that clock_getcpuclockid names


@dataclass
class _Thread:
    """The clock of one thread. `works`: since `since` it has been in consan."""

    works: bool = False
    since: float = 0.0
    seconds: float = 0.0


class ServedProcess:
    """The time in which another process of this user has computed, on all its threads, since it was made."""

    def __init__(self, pid: int, clock: Callable[[int], float] = time.clock_gettime) -> None:
        self._number, self._clock, self._seconds = ~pid << 3 | _SCHEDULED, clock, 0.0
        self._began = self._now() or 0.0

    @property
    def seconds(self) -> float:
        """Seconds; those so far, once it has ended."""
        now = self._now()
        self._seconds = self._seconds if now is None else now - self._began
        return self._seconds

    def _now(self) -> float | None:
        with contextlib.suppress(OSError):
            return self._clock(self._number)
        return None


class _Door:
    """A block in which the thread works for consan, or does not. A launch passes several: no generator serves it."""

    __slots__ = ("_before", "_meter", "_works")

    def __init__(self, meter: CostMeter, *, works: bool) -> None:
        self._meter, self._works, self._before = meter, works, False

    def __enter__(self) -> None:
        self._before = self._meter.turn(works=self._works)

    def __exit__(self, *_: object) -> None:
        self._meter.turn(works=self._before)


@dataclass
class CostMeter:
    """The cost of one process since `restart`. `now`: a clock, in seconds; `computed`: those of all threads on processors."""

    now: Callable[[], float] = time.perf_counter
    computed: Callable[[], float] = time.process_time
    most_bytes: int = 0  # of a GPU's memory, at any one time
    _bytes: int = 0
    _taken: dict[tuple[int, int], int] = field(default_factory=dict)  # bytes, by owner and address
    _threads: list[_Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on. Memory that is in use stays counted."""
        self._threads, self._local, self._began, self._computed = [], threading.local(), self.now(), self.computed()
        self._served: dict[int, ServedProcess] = {}
        self._lock = threading.Lock()  # a fork copies it as it is
        self.most_bytes = self._bytes

    def working(self) -> AbstractContextManager[None]:
        """Inside the block this thread works for consan."""
        return _Door(self, works=True)

    def outside(self) -> AbstractContextManager[None]:
        """Inside the block this thread does what it would do without consan."""
        return _Door(self, works=False)

    def add(self, seconds: float) -> None:
        """This thread has worked so long for consan, outside of such blocks."""
        thread: _Thread | None = getattr(self._local, "thread", None)
        (thread or self._thread()).seconds += seconds

    @property
    def mine(self) -> float:
        """Seconds in which this thread worked for consan, or that were added for it."""
        thread = self._thread()
        return thread.seconds + (self.now() - thread.since) * thread.works

    @property
    def seconds(self) -> float:
        """Seconds in which threads of the program worked for consan, in sum."""
        with self._lock:
            return sum((each.seconds + (self.now() - each.since) * each.works for each in self._threads), 0.0)

    @property
    def elapsed(self) -> float:
        """Seconds since `restart`."""
        return self.now() - self._began

    def serves(self, pid: int) -> None:
        """A process of a program that is not this one is served: the time in which it computes is the program's, from now on."""
        with self._lock:
            self._served.setdefault(pid, ServedProcess(pid))

    @property
    def busy(self) -> float:
        """Seconds of these in which the process can have computed: one that waits for requests, or for its turn, saves up none."""
        if not self._served:
            return min(self.elapsed, self.computed() - self._computed)
        with self._lock:
            program = sum(each.seconds for each in self._served.values())
        return program + self.seconds  # its threads wait while they are served

    def took(self, owner: object, address: int, nbytes: int) -> int:
        """Memory of an owner was allocated. Returns its address."""
        with self._lock:
            self._taken[id(owner), address] = nbytes
            self._bytes += nbytes
            self.most_bytes = max(self.most_bytes, self._bytes)
        return address

    def gave(self, owner: object, address: int) -> None:
        """Memory was freed. Not counted: what `took` has not seen."""
        with self._lock:
            self._bytes -= self._taken.pop((id(owner), address), 0)

    def turn(self, *, works: bool) -> bool:
        """This thread works for consan from now on, or does not. Returns which of the two it was."""
        thread = self._thread()
        now, before = self.now(), thread.works
        thread.seconds += (now - thread.since) * before
        thread.since, thread.works = now, works
        return before

    def _thread(self) -> _Thread:
        thread: _Thread | None = getattr(self._local, "thread", None)
        if thread is None:
            thread = self._local.thread = _Thread()
            with self._lock:
                self._threads.append(thread)
        return thread


COST: Final = CostMeter()
os.register_at_fork(after_in_child=COST.restart)
