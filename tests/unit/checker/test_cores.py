"""Calls in threads: results in the order of the tasks, errors, how many run at a time, and calls that begin while the process ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from consan.checker.compiled.cores import Calls

AT_THE_END = """
import atexit, concurrent.futures.thread, itertools
from consan.checker.compiled.cores import Calls
atexit.register(lambda: print(Calls(divmod, [(7, 2), (9, 4)], 2).results()))
"""


def test_results_are_in_the_order_of_the_tasks() -> None:
    def late(number: int) -> int:
        time.sleep(0.02 * (number == 0))
        return number

    assert Calls(late, [(number,) for number in range(9)], 3).results() == list(range(9))
    assert Calls(late, [], 3).results() == []


def test_no_more_run_at_a_time() -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def one() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.005)
        with lock:
            running[0] -= 1

    Calls(one, [()] * 12, 3).results()
    assert 1 < most[0] <= 3


def test_an_error_is_raised_and_ends_the_calls() -> None:
    called = list[int]()

    def some(number: int) -> int:
        called.append(number)
        return 1 // (number - 2)

    with pytest.raises(ZeroDivisionError):
        Calls(some, [(number,) for number in range(9)], 1).results()
    assert called == [0, 1, 2]


def test_calls_begin_while_the_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[(3, 1), (2, 1)]\n", "")
