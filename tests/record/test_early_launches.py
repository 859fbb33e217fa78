"""Launches that repeat before calls of the driver are noted: C looks before and behind them, and Python whether they add nothing."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from armed_support import Program, bench_launch, opened
from cupti_support import Cupti
from planted import plant

from consan.adapters import cupy_driver
from consan.adapters.triton import gpu
from consan.backends import armed, call_filter, callbacks, contexts
from consan.backends.armed import ArmedFunctions
from consan.backends.call_filter import FILTER
from consan.backends.callbacks import DriverCall, DriverCalls
from consan.session import repeated_launch
from consan.session.comparing import followed_streams
from consan.session.comparing.driver_calls import LAYOUTS, ProgramOrder
from consan.session.frameworks import Frameworks
from consan.toolchain.host_library import loaded

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


WAYS = pytest.mark.parametrize("given", ["triton adds", "cupy waits"])


@WAYS
def test_c_makes_them_before_calls_are_noted(early: Callable[[str], Early], given: str) -> None:
    one = early(given)
    made = one.program.learn() + 2
    one.program.launch(2)
    python = one.program.python
    assert not one.calls.notes
    assert (one.program.launch(10), one.launches_heard(5)) == (10, 0)
    assert one.program.python == python
    assert one.program.counts() == ("clean", made + 15)


@WAYS
def test_behind_a_call_that_is_heard_python_looks_twice(early: Callable[[str], Early], given: str) -> None:
    """The call may have changed the order of streams; C sees only that there was one."""
    one = early(given)
    one.program.learn()
    one.program.launch(2)
    python = one.program.python
    one.call("cuEventDestroy", EVENT)
    one.program.launch(10)
    assert python < one.program.python <= python + 3


@WAYS
def test_not_where_a_kernel_may_begin_early(early: Callable[[str], Early], given: str) -> None:
    """Such a kernel makes streams of its launches, and the driver is not called when it is loaded."""
    one = early(given)
    one.program.learn()
    one.program.launch(2)
    frameworks, python = one.program.session.frameworks, one.program.python
    frameworks.streams.chain(frameworks.comparisons)
    one.program.launch(10)
    assert one.program.python == python + 10


class Other:
    """Somebody else who listens."""

    lock = threading.RLock()

    def called(self, call: DriverCall) -> None: ...

    def missed(self, why: str) -> None: ...

    def lacks_memory(self) -> None: ...


@WAYS
def test_not_where_another_session_listens(early: Callable[[str], Early], given: str) -> None:
    one = early(given)
    one.program.learn()
    one.program.launch(2)
    python, other = one.program.python, Other()
    one.calls.follow(other, lambda name: True, LAYOUTS)
    one.program.launch(10)
    assert one.program.python == python + 10


def test_behind_an_event_the_first_is_placed(early: Callable[[str], Early]) -> None:
    """Something may wait for the event, so it is to be known that there is a launch behind it."""
    one = early("triton adds")
    one.program.learn()
    timeline = one.program.session.frameworks.streams.concurrent.timeline
    one.call("cuEventRecord", EVENT, 0)
    before = timeline.count
    one.program.launch()
    assert timeline.count == before + 1
    assert one.program.launch(3) >= 2
    assert timeline.count == before + 1


def test_behind_an_event_one_that_cannot_be_placed_takes_the_long_way(early: Callable[[str], Early]) -> None:
    one = early("triton adds")
    one.program.learn()
    one.call("cuEventRecord", EVENT, 0)
    with pytest.MonkeyPatch.context() as until:
        until.setattr(Frameworks, "among_streams", lambda *_: None)
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
    for _ in range(FIRST):
        one.call("cuEventDestroy", EVENT)
    assert one.calls.notes
    one.program.launch(3)
    python = one.program.python
    assert one.program.launch(10) == 10
    assert one.program.python == python


FAULTS: dict[str, tuple[str, str, Any]] = {
    "what stands between": (
        "idle = placed or frameworks.streams.adds_nothing(stream)",
        "idle = True",
        test_behind_an_event_one_that_cannot_be_placed_takes_the_long_way,
    ),
    "an event": (
        "frameworks.launched_again(self.prepared, self.launch, placed)",
        "pass",
        test_behind_an_event_the_first_is_placed,
    ),
    "a second stream": (
        "frameworks.launched_again(self.prepared, self.launch, placed)",
        "pass",
        test_behind_a_second_stream_they_are_placed,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, early: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = FAULTS[fault]
    plant(monkeypatch, repeated_launch, old, new)
    with pytest.raises(AssertionError):
        test(early)


GUARDS: dict[str, tuple[Any, str, str, Callable[..., None]]] = {
    "not before calls are noted": (
        callbacks,
        " if self.serves_alone else None",
        " if False else None",
        test_c_makes_them_before_calls_are_noted,
    ),
    "calls that are heard": (
        call_filter,
        "return int(self._state[name])",
        "return 0",
        test_behind_a_call_that_is_heard_python_looks_twice,
    ),
    "for ever": (
        *(repeated_launch, "c_sees = self._by_words and", "c_sees = False and"),
        test_behind_a_call_that_is_heard_python_looks_twice,
    ),
    "a kernel that may begin early": (
        followed_streams,
        "            self.several = self.looks_at_global\n            look_where_launches_point()\n",
        "            self.several = self.looks_at_global\n",
        test_not_where_a_kernel_may_begin_early,
    ),
    "another session": (
        callbacks,
        "            self._listeners.add(listener)\n            look_where_launches_point()\n",
        "            self._listeners.add(listener)\n",
        test_not_where_another_session_listens,
    ),
}


@WAYS
@pytest.mark.parametrize("guard", GUARDS)
def test_a_fault_of_a_guard(guard: str, given: str, early: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, test = GUARDS[guard]
    plant(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        test(early, given)


@pytest.mark.parametrize("given", ["cupy waits"])
def test_a_fault_of_c(given: str, early: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    """C does not see that there was a call."""
    sources, seen = FILTER.sources(), " && load(&filter->reported) == armed->call"
    assert sources["armed.h"].count(seen) == 1
    library = loaded(FILTER.compiled(sources | {"armed.h": sources["armed.h"].replace(seen, "")}), "faulty")
    monkeypatch.setattr(type(FILTER), "load", lambda _: library)
    functions = ArmedFunctions(library)
    for user in (armed, contexts, cupy_driver, gpu, repeated_launch):
        monkeypatch.setattr(user, "armed_functions", lambda: functions)
    with pytest.raises(AssertionError):
        test_behind_a_call_that_is_heard_python_looks_twice(early, given)
