"""Replays in other threads, on all cores: they are compiled code. The caller ends them when their time is over, or at a signal.

The caller may hold a lock of its session, and objects of the program that are freed may want it: these threads search for no cycles.
They start at any time, also while the process ends, and nothing is left of them: executors of Python's library refuse the former, and its
pools take longer to start and to end than many a launch takes to be looked at.
"""

from __future__ import annotations

import _thread
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from consan.checker.compiled.patience import Patience
from consan.instrument.collection import no_collection

_SHORT = 1 << 18  # bytes of logs whose replays take less time than threads take to start
_Result = TypeVar("_Result")


class Calls(Generic[_Result]):
    """Calls of a function, one for each task, in `most` threads at a time. A call that raises ends them: no further one begins."""

    def __init__(self, call: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], most: int) -> None:
        self._call, self._tasks = call, tasks
        self._turns, self._results = itertools.count(), dict[int, _Result]()
        self._error: BaseException | None = None
        self._lock, self._done = threading.Lock(), threading.Event()
        self._running = min(len(tasks), most)
        if not self._running:
            self._done.set()
        for _ in range(self._running):
            _thread.start_new_thread(self._work, ())

    def wait(self, seconds: float | None = None) -> bool:
        """Whether all calls are over, after so many seconds at most."""
        return self._done.wait(seconds)

    def results(self) -> list[_Result]:
        """The results of all calls, in the order of the tasks. Raises the error of a call that has failed."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return [self._results[at] for at in range(len(self._tasks))]

    def _work(self) -> None:
        try:
            for turn in self._turns:
                if turn >= len(self._tasks) or self._error is not None:
                    break
                self._results[turn] = self._call(*self._tasks[turn])
        except BaseException as error:  # raised where the results are wanted
            self._error = error
        with self._lock:
            self._running -= 1
            if not self._running:
                self._done.set()


def replayed(
    replay: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], nbytes: int, patience: Patience, *, most: int = os.cpu_count() or 1
) -> list[_Result]:
    """The results of tasks whose logs have so many bytes. `most`: at a time."""
    if nbytes < _SHORT:
        return list(itertools.starmap(replay, tasks))
    with no_collection():
        calls = Calls(replay, tasks, most)
        patience.wait(calls.wait)
        return calls.results()


def computed(compute: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], nbytes: int) -> list[_Result]:
    """The results of tasks that store so many bytes. Ctrl-C leaves them: what they write to must live as long as `compute`."""
    if nbytes < _SHORT or len(tasks) < 2:
        return list(itertools.starmap(compute, tasks))
    with no_collection():
        return Calls(compute, tasks, os.cpu_count() or 1).results()
