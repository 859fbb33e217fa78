"""No thread that a caller waits for frees what the program leaves to Python's search for cycles: the caller may hold a lock of its
session, and a framework's array that is freed calls the driver, which wants that lock.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from consan.checker.compiled.cores import computed, replayed
from consan.checker.compiled.patience import Patience
from consan.checker.logs import prefetch

_LARGE, _WAIT = 1 << 20, 10.0
WAYS: dict[str, Callable[[Callable[[int], None]], object]] = {
    "replays": lambda task: replayed(task, [(0,), (1,)], _LARGE, Patience(_WAIT)),
    "computed logs": lambda task: computed(task, [(0,), (1,)], _LARGE),
    "work ahead": lambda task: prefetch.later(lambda: task(0)).result(_WAIT),
}


class Freed:
    """An object of the program in a cycle. The thread that frees it waits for the lock of the caller; nobody waits for long."""

    lock = threading.RLock()
    stuck: list[int]

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        if not self.stuck and self.lock.acquire(timeout=1.0):
            self.lock.release()
        else:
            self.stuck.append(1)


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(50, 1, 1)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("way", WAYS)
def test_nobody_waits_for_a_thread_that_frees_what_the_program_leaves(way: str) -> None:
    Freed.stuck = []

    def task(_number: int) -> None:
        kept = [Freed() for _ in range(500)]
        kept.clear()
        [[] for _ in range(2000)]

    with Freed.lock:
        WAYS[way](task)
    gc.collect()
    assert not Freed.stuck
