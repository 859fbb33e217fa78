"""Work that somebody will want soon, done by another thread beside what comes before: the assembler, the driver, the kernel.

Who wants a result waits for it if it is being made, and makes it otherwise. So nothing depends on whether a task ran.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

THREADS = 2


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="consan-ahead")


def later(work: Callable[[], object]) -> Future[object]:
    """Begin a task. One that has not begun when the program ends is left out."""
    return _pool().submit(lambda: work() if threading.main_thread().is_alive() else None)


def settle(tasks: Iterable[Future[object]]) -> None:
    """Wait for the tasks that run, and drop those that have not begun. Who does the work again meets the error of one that failed."""
    for task in tasks:
        if not task.cancel():
            task.exception()
