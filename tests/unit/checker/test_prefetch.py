"""Work done ahead: waited for where it runs, dropped where it has not begun, and its errors stay with it."""

from __future__ import annotations

import threading

from consan.checker.logs import prefetch

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
