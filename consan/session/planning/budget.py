"""`--overhead`: which launches are looked at, so that checking slows the program by no more than a given share."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

FIRST: Final = 2  # launches of each kernel and shape that are always looked at
LOOK_EVERY: Final = 0.1  # seconds between two looks whether there is time again


@dataclass
class OverheadBudget:
    """A launch is looked at while consan's own time is within its share of the program's, and if it is one of the first of its shape.

    `own`, `elapsed`: consan's own seconds so far, and those in which the process was busy (consan/backends/cost.py).
    """

    share: float
    own: Callable[[], float]
    elapsed: Callable[[], float]
    _launches: dict[Hashable, int] = field(default_factory=dict)
    _waiting: list[ctypes.c_int64] = field(default_factory=list)
    _then: list[Callable[[], None]] = field(default_factory=list)  # is called once there is time
    _lock: threading.Lock = field(default_factory=threading.Lock)  # of those that wait
    _thread: threading.Thread | None = None  # None: nobody waits

    def affords(self, shape: Hashable) -> bool:
        """Whether to look at the next launch. `shape`: its kernel, grid, block and cluster."""
        before = self._launches.get(shape, 0)
        if before < FIRST:
            self._launches[shape] = before + 1
            return True
        return self._has_time()

    def until_there_is_time(self, shape: Hashable) -> ctypes.c_int64 | None:
        """A word that is 0 until there is time for a launch of a shape. None: there is, or the next one is one of its first."""
        if self._launches.get(shape, 0) < FIRST or self._has_time():
            return None
        word = ctypes.c_int64(0)
        with self._lock:
            self._waiting.append(word)
            if self._thread is None:
                self._thread = threading.Thread(target=self._wait, daemon=True, name="consan-overhead")
                self._thread.start()
        return word

    def look(self) -> bool:
        """Say so if there is time. Returns whether nobody waits for it any more."""
        if not self._has_time():
            return False
        with self._lock:
            while self._waiting:
                self._waiting.pop().value = 1
            then, self._then, self._thread = self._then, [], None
        for each in then:
            each()
        return True

    def once_there_is_time(self, then: Callable[[], None]) -> None:
        """Let a thread call something behind the words that it sets."""
        with self._lock:
            self._then.append(then)

    def forget(self) -> None:
        """Start afresh after a report."""
        self._launches.clear()

    def _has_time(self) -> bool:
        own = self.own()
        return own <= self.share * (self.elapsed() - own)

    def _wait(self) -> None:
        while not self.look():
            time.sleep(LOOK_EVERY)
