"""How long a thread of the program waits for the interpreter while consan checks a launch beside it.

A thread that wants the interpreter gets it after the switch interval, 5 ms as Python has it: each call that gives it up, as a launch does,
may take so long while another thread computes. While a check runs the interval is shorter.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

OFTEN: Final = 0.0002  # seconds
_SAME: Final = 1e-6  # Python has microseconds


@dataclass(eq=False)
class Switches:
    """The interval of a process. A program that sets it meanwhile keeps its own."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _checks: int = 0
    _given: float = 0.0

    @contextlib.contextmanager
    def often(self) -> Iterator[None]:
        """Inside the block threads wait for a short time."""
        with self._lock:
            self._checks += 1
            if self._checks == 1:
                self._given = sys.getswitchinterval()
                if self._given > OFTEN:
                    sys.setswitchinterval(OFTEN)
        try:
            yield
        finally:
            with self._lock:
                self._checks -= 1
                if not self._checks and abs(sys.getswitchinterval() - OFTEN) < _SAME:
                    sys.setswitchinterval(self._given + _SAME / 2)  # it is cut


SWITCHES: Final = Switches()
