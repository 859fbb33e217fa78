"""A limit on the time that the replays of one launch take. Ctrl-C and SIGTERM end them too; what they have found by then is kept."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

_EARLY = 1.0  # seconds after which the rest is estimated
_LONGEST_WAIT: Final = 0.5  # seconds: a thread that waits for longer gets no KeyboardInterrupt (consan/session/left_threads.py)


@dataclass
class Patience:
    """A limit on the time that replays take. `hurried`: it is short beside what they may need. `halt`: not 0 once they are to end."""

    seconds: float
    hurried: bool = False
    halt: ctypes.c_uint32 = field(default_factory=ctypes.c_uint32)
    interrupted: bool = False  # by the user
    _began: float = field(default_factory=time.monotonic)

    def over(self, done: int, total: int) -> bool:
        """Whether the time is over, or will be before all of `total` things are done; `done` are done now."""
        taken = time.monotonic() - self._began
        return bool(self.halt.value) or taken > self.seconds or (taken > _EARLY and done > 0 and taken * total > self.seconds * done)

    def wait(self, ended: Callable[[float], bool]) -> None:
        """Wait for the replays of other threads: to their end, or as far as they come in time. `ended`: waits for so many seconds."""
        over = False
        while not over:
            left = self.seconds - (time.monotonic() - self._began)
            try:
                over = ended(_LONGEST_WAIT if self.halt.value else min(max(left, 0.0), _LONGEST_WAIT))
            except KeyboardInterrupt:
                self.interrupted, left = True, 0.0
            if left <= 0:
                self.halt.value = 1
