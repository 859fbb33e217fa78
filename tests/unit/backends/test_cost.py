"""The clock of consan's own time, with a time that the test controls, and the count of GPU memory."""

from __future__ import annotations

import threading

import pytest

from consan.backends.cost import CostMeter
from consan.reports.formats.phrases import summary
from consan.reports.model import Cost, Report
from consan.reports.verdict.combination import combine


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_counts_between_the_doors_and_not_in_the_programs_own_calls() -> None:
    clock = Clock()
    cost = CostMeter(clock)
    clock.now += 5  # the program
    with cost.working():
        clock.now += 1
        with cost.working():  # a door behind a door
            clock.now += 2
        with cost.outside():
            clock.now += 10  # the launch itself
            with cost.working():  # the driver calls back
                clock.now += 4
        clock.now += 8
        assert cost.seconds == 15  # also before the door is left
    clock.now += 3
    assert (cost.seconds, cost.elapsed) == (15, 33)
    cost.restart()
    assert (cost.seconds, cost.elapsed) == (0, 0)


def test_a_process_is_busy_while_it_computes_and_never_longer_than_the_clock_says() -> None:
    clock, computed = Clock(), Clock()
    cost = CostMeter(clock, computed)
    clock.now += 10
    computed.now += 4
    assert cost.busy == 4
    computed.now += 40  # several threads
    assert cost.busy == 10
    cost.restart()
    assert cost.busy == 0


def test_a_door_is_left_when_an_error_passes_it() -> None:
    clock = Clock()
    cost = CostMeter(clock)

    def fails() -> None:
        with cost.working():
            clock.now += 1
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fails()
    clock.now += 1
    assert cost.seconds == 1


def test_each_thread_has_its_own_doors() -> None:
    clock = Clock()
    cost = CostMeter(clock)

    def other() -> None:
        with cost.working():
            clock.now += 2

    with cost.working():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert cost.seconds == 4  # both threads worked in these two seconds


def test_memory_is_the_most_at_one_time() -> None:
    cost, owner = CostMeter(), object()
    assert cost.took(owner, 64, 100) == 64
    cost.took(owner, 256, 50)
    cost.gave(owner, 64)
    cost.gave(owner, 64)  # and what was never seen
    cost.took(owner, 64, 60)
    assert cost.most_bytes == 150
    cost.restart()
    assert cost.most_bytes == 110
    other = object()
    cost.took(other, 64, 10)  # an address of another process
    cost.gave(owner, 64)
    assert cost.most_bytes == 120


def test_the_report_says_it_in_one_line() -> None:
    report = Report("clean", "cpu", cost=Cost(1.23, 61.0, (180 << 20) - 5))
    assert ("cost", "consan's own time: 1.2 s of 61.0 s; GPU memory 180 MiB") in list(summary(report))
    assert "cost" not in dict(summary(Report("clean", "cpu")))
    both = combine([report, Report("clean", "cpu"), Report("clean", "cpu", cost=Cost(1, 2))])
    assert both.cost == Cost(2.23, 63.0, (180 << 20) - 5)
    assert ("cost", "consan's own time: 1.0 s of 2.0 s") in list(summary(Report("clean", "cpu", cost=Cost(1, 2))))
