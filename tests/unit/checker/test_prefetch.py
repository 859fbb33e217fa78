"""Work done ahead: waited for where it runs, dropped where it has not begun, and its errors stay with it."""

from __future__ import annotations

import sys
import threading

import pytest
from planted import plant

from consan.checker.logs import prefetch
from consan.instrument.switches import OFTEN

_WAIT = 10.0


def test_work_that_runs_is_waited_for() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        begun.set()
        may_end.wait(_WAIT)
        done.append(1)

    task = prefetch.later(work)
    assert begun.wait(_WAIT)
    threading.Timer(0.05, may_end.set).start()
    prefetch.settle([task])
    assert done == [1]


def test_work_that_has_not_begun_is_dropped() -> None:
    may_end, done = threading.Event(), list[int]()
    busy = [prefetch.later(lambda: may_end.wait(_WAIT)) for _ in range(prefetch.THREADS)]
    late = prefetch.later(lambda: done.append(1))
    prefetch.settle([late])
    may_end.set()
    prefetch.settle(busy)
    prefetch.later(lambda: None).result(_WAIT)
    assert not done


def test_an_error_stays_with_the_task() -> None:
    task = prefetch.later(lambda: 1 // 0)
    assert isinstance(task.exception(_WAIT), ZeroDivisionError)
    prefetch.settle([task])


def test_the_program_waits_for_the_interpreter_for_a_short_time_only() -> None:
    assert _interval() < 2 * OFTEN < sys.getswitchinterval()


def test_a_fault_makes_it_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, prefetch, "with SWITCHES.often(), no_collection():", "with no_collection():")
    assert _interval() > 2 * OFTEN


def _interval() -> float:
    """The interval while a task runs, in threads of their own."""
    workers = prefetch.WorkersAhead()
    found = list[float]()
    task: prefetch.Future[object] = prefetch.Future()
    workers.tasks.put((task, lambda: found.append(sys.getswitchinterval())))
    task.result(_WAIT)
    workers.end()
    return found[0]
