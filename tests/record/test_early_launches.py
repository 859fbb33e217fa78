"""Launches that repeat before calls of the driver are noted: C looks before and behind them, and Python whether they add nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from armed_support import Program, bench_launch, opened
from cupti_support import Cupti
from planted import plant

from consan.backends import callbacks
from consan.backends.callbacks import DriverCall, DriverCalls
from consan.session import repeated_launch
from consan.session.comparing import followed_streams
from consan.session.comparing.driver_calls import LAYOUTS, ProgramOrder

EVENT, FIRST = 0x900, 40


class Early:
    """A program whose calls CUPTI reports, which is made up. `heard`: launches that Python gets at once."""

    def __init__(self, given: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cupti, self.heard = Cupti(names=tuple(LAYOUTS)), 0
        monkeypatch.setattr(callbacks, "libraries", lambda: ["cupti"])
        monkeypatch.setattr(callbacks, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda _: self.cupti}))
        monkeypatch.setattr(followed_streams, "FIRST_CALLS", FIRST)
        monkeypatch.setattr(DriverCalls, "kernel", lambda *_: "fast")
        called = ProgramOrder.called

        def counted(order: ProgramOrder, call: DriverCall) -> None:
            self.heard += call.name == "cuLaunchKernel" and not call.noted
            called(order, call)

        monkeypatch.setattr(ProgramOrder, "called", counted)
        self.calls = DriverCalls()
        self.program: Program = opened(given, library, monkeypatch, calls=self.calls)
        assert self.program.backend.contexts is not None
        self.cupti.context = self.program.backend.contexts.own
        if self.program.way == "triton":  # those of CuPy are made by C, to the driver
            self.program.launches = lambda: self.call("cuLaunchKernel", 7, 0, 0, 0, 0, 0, 0, 0)

    def call(self, name: str, *words: int) -> None:
        self.cupti.called(name, *words)

    def launches_heard(self, times: int) -> int:
        before = self.heard
        self.program.launch(times)
        return self.heard - before


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.fixture
def early(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Early]]:
    made: list[Early] = []

    def begin(given: str) -> Early:
        made.append(Early(given, library, monkeypatch))
        return made[-1]

    yield begin
    for each in made:
        each.program.close()


def test_c_helps_before_calls_are_noted(early: Callable[[str], Early]) -> None:
    one = early("triton adds")
    made = one.program.learn()
    assert not one.calls.notes
    assert (one.program.launch(10), one.launches_heard(5)) == (10, 0)
    assert one.program.counts() == ("clean", made + 15)


def test_behind_an_event_the_first_is_placed(early: Callable[[str], Early]) -> None:
    """Something may wait for the event, so it is to be known that there is a launch behind it."""
    one = early("triton adds")
    one.program.learn()
    one.call("cuEventRecord", EVENT, 0)
    assert one.program.launch() == 0
    assert one.program.launch(3) >= 2


def test_behind_a_second_stream_they_are_placed(early: Callable[[str], Early]) -> None:
    one = early("triton adds")
    one.program.learn()
    handle = ctypes.c_uint64(0x770)
    one.call("cuStreamCreate", ctypes.addressof(handle), 1)
    timeline = one.program.session.frameworks.streams.concurrent.timeline
    before = timeline.count
    one.program.launch(5)
    assert timeline.count == before + 5


def test_once_calls_are_noted_c_makes_them(early: Callable[[str], Early]) -> None:
    one = early("cupy waits")
    one.program.learn()
    helped = one.program.helped
    assert helped > 0
    for _ in range(FIRST):
        one.call("cuEventDestroy", EVENT)
    assert one.calls.notes
    one.program.launch(2)
    python = one.program.python
    assert one.program.launch(10) == 10
    assert one.program.python == python


FAULTS: dict[str, tuple[str, str, Any]] = {
    "what stands between": (
        "idle = placed or frameworks.streams.adds_nothing(stream)",
        "idle = True",
        test_behind_an_event_the_first_is_placed,
    ),
    "a second stream": (
        "frameworks.launched_again(self.prepared, self.launch, shape)",
        "pass",
        test_behind_a_second_stream_they_are_placed,
    ),
    "only once calls are noted": (
        "self._differs() or (key",
        "self._differs() or not streams.may_arm(stream) or (key",
        test_c_helps_before_calls_are_noted,
    ),
    "for ever": (
        "c_sees = self._early and frameworks.streams.may_arm(stream)",
        "c_sees = False",
        test_once_calls_are_noted_c_makes_them,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, early: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = FAULTS[fault]
    plant(monkeypatch, repeated_launch, old, new)
    with pytest.raises(AssertionError):
        test(early)
