"""Other threads do work that will be wanted soon, while the assembler, the driver or the kernel runs.

The caller that wants a result waits for a task that runs, and does the work itself if the task has not begun. So no result depends on
whether a task ran.
The threads are daemons: `consan run` waits for the program's own threads at its end, and these never end.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from consan.instrument.collection import no_collection

THREADS = 2

_Task = tuple[Future[object], Callable[[], object]]


class _Workers:
    """Threads that take tasks from a queue."""

    def __init__(self) -> None:
        self.tasks: queue.Queue[_Task] = queue.Queue()
        for number in range(THREADS):
            threading.Thread(target=self._work, name=f"consan-ahead-{number}", daemon=True).start()
        atexit.register(self.end)

    def _work(self) -> None:
        while True:
            future, work = self.tasks.get()
            try:
                with no_collection():  # who waits for the task may hold a lock that objects of the program want when they are freed
                    if future.set_running_or_notify_cancel():
                        future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                self.tasks.task_done()

    def end(self) -> None:
        """Drop the tasks that have not begun, and wait for the others: the interpreter must not end under native code."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.tasks.get_nowait()[0].cancel()
                self.tasks.task_done()
        self.tasks.join()


@functools.cache
def _workers() -> _Workers:
    return _Workers()


os.register_at_fork(after_in_child=_workers.cache_clear)  # a fork has none of the threads


def later(work: Callable[[], object]) -> Future[object]:
    """Begin a task. One that has not begun when the program ends is left out."""
    future: Future[object] = Future()
    _workers().tasks.put((future, work))
    return future


def settle(tasks: Iterable[Future[object]]) -> None:
    """Wait for the tasks that run, and drop those that have not begun. The error of a task stays with it."""
    for task in tasks:
        if not task.cancel():
            task.exception()
