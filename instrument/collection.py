"""Holds Python's search for reference cycles back while a module is read or decoded.

The trees of a module are large and live long, and nothing of them is garbage: to search them again and again takes as long as to make them.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator


class _Held:
    """How many blocks hold the search back, in all threads."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._enabled = threading.Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            if not self._blocks:
                self._enabled = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._enabled:
                gc.enable()


_HELD = _Held()


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No search for cycles within the block, or within the function that it decorates."""
    _HELD.begin()
    try:
        yield
    finally:
        _HELD.end()
