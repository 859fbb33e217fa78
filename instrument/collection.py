"""Holds Python's search for reference cycles back while a module is read or decoded.

The trees of a module are large and live long, and nothing of them is garbage: to search them again and again takes as long as to make them.
Behind it they are old objects. Else the next search would go through all of them, for 10 ms, in whichever thread of the program it comes.
So is then what consan has put apart before the program began (consan/process/collector.py); what the program puts apart stays there.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Final

MANY: Final = 1 << 14  # new objects


class _Held:
    """How many blocks hold the search back, in all threads."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._enabled = threading.Lock(), 0, False
        self.frozen = -1  # objects that no search looked at when the first block began; -1: none has
        self.of_program = False  # the program has put objects apart

    def begin(self) -> None:
        with self._lock:
            if not self._blocks:
                self._enabled = gc.isenabled()
                self.frozen = gc.get_freeze_count() if self.frozen < 0 else self.frozen
                gc.disable()
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._enabled:
                if gc.get_count()[0] > MANY and not self._has_frozen():
                    gc.freeze()
                    gc.unfreeze()  # into the oldest generation
                gc.enable()

    def _has_frozen(self) -> bool:
        """Whether the program has put objects apart. Python counts them one by one, so nobody asks again once it has."""
        self.of_program = self.of_program or gc.get_freeze_count() > self.frozen
        return self.of_program


HELD = _Held()


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No search for cycles within the block, or within the function that it decorates."""
    HELD.begin()
    try:
        yield
    finally:
        HELD.end()
