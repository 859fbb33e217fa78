"""How often Python looks for cycles of objects that nothing else uses.

Objects that consan imports and reads live to the end of the process, so a command seldom looks (one search takes 50 ms behind the imports
of a session). A program that it runs has the thresholds that Python gives it, and its searches leave out what was there before it began,
until a large module is read (consan/instrument/collection.py).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

_SELDOM: Final = (200_000, 10, 10)
_GIVEN: Final = gc.get_threshold()


def collect_seldom() -> None:
    """From now on, in this process."""
    gc.set_threshold(*_SELDOM)


@contextlib.contextmanager
def collecting_as_given() -> Iterator[None]:
    """Inside the block a program runs: as if `collect_seldom` was not called."""
    if gc.get_threshold() != _SELDOM:
        yield
        return
    gc.freeze()
    gc.set_threshold(*_GIVEN)
    try:
        yield
    finally:
        gc.set_threshold(*_SELDOM)
