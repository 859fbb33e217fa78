"""The calls of launches that repeat and add nothing to the order of streams: C drops them, and the report is the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from framework_support import BLOCK
from noted_support import EVENT, Program
from planted import plant

from consan.backends import call_filter, callbacks
from consan.backends.callbacks import DriverCall
from consan.session import repeated_launch
from consan.session.comparing import followed_streams
from consan.session.comparing.driver_calls import ProgramOrder
from consan.session.framework_launch import FrameworkLaunch
from consan.session.repeated_launch import NOT_REPEATED


class Repeating(Program):
    """Its launches repeat. `heard`: the calls that Python gets; `short`: how many launches took the prepared way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: int = 1 << 30) -> None:
        super().__init__(monkeypatch, note=False)
        monkeypatch.setattr(followed_streams, "FIRST_CALLS", first)
        self.heard, self.short = list[DriverCall](), 0
        called = ProgramOrder.called
        monkeypatch.setattr(ProgramOrder, "called", lambda order, call: self.heard.append(call) or called(order, call))
        self.launch(0)

    def again(self, stream: int = 0, hook: Any = None) -> None:
        framework = self.framework
        launch = FrameworkLaunch("fills", (2, 1, 1), BLOCK, (1, 1, 1), stream, framework.module)
        values = [framework.out.to_bytes(8, "little"), framework.source.to_bytes(8, "little"), bytes(4)]

        def make() -> None:
            if hook is not None:
                hook()
            framework.backend.launch(framework.module, "fills", launch.grid, BLOCK, values, stream=stream)

        repeated = framework.session.frameworks.repeated(framework.prepared, launch)
        made = repeated is not None and repeated.make(lambda: tuple(values), make, ()) is not NOT_REPEATED
        self.short += made
        if not made:
            self.launch(stream)

    def launches_heard(self, times: int, **how: Any) -> int:
        before = len(self.heard)
        for _ in range(times):
            self.again(**how)
        return sum(call.name == "cuLaunchKernel" and not call.noted for call in self.heard[before:])


def test_they_are_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Repeating(monkeypatch)
    assert (program.launches_heard(20), program.short) == (0, 20)
    report = program.framework.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("clean", 21)


def test_all_else_within_a_launch_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook of the framework copies, and records an event."""
    program = Repeating(monkeypatch)
    program.again(hook=lambda: (program.memset(), program.call("cuEventRecord", EVENT, 0)))
    assert [call.name for call in program.heard[-2:]] == ["cuMemsetD8Async", "cuEventRecord"]
    timeline = program.framework.session.frameworks.streams.concurrent.timeline
    before = timeline.count
    program.again()  # something may wait for that event
    assert (timeline.count, program.short) == (before + 1, 2)


def test_many_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Repeating(monkeypatch, first=10)
    assert program.launches_heard(20) <= 2
    assert (program.calls.notes, program.short) == (True, 20)


def test_two_sessions_hear_them(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Repeating(monkeypatch)

    class Other:
        lock = program.framework.session.frameworks.streams.lock

        def called(self, call: DriverCall) -> None:
            """Nothing is known of the launch here."""

    other = Other()
    program.calls.follow(other, lambda _: True, {})  # type: ignore[arg-type]
    assert program.launches_heard(3) == 3


def raced(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Launches of one stream, then one beside them in another."""
    program = Repeating(monkeypatch)
    assert program.launches_heard(5) == 0
    program.launch(program.stream())
    program.again()
    return program.outcome()


def test_a_second_stream_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert raced(monkeypatch)[0] != "clean"


def test_those_that_have_their_place_are_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a second stream: the session gives each launch its place. It hears the first one."""
    program = Repeating(monkeypatch)
    program.launch(program.stream())
    program.again()
    assert (program.launches_heard(5), program.short) == (0, 6)


def test_programmatic_ones_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Repeating(monkeypatch)
    program.launch(program.stream())
    own = program.framework.session.frameworks.streams.own
    assert program.launches_heard(3, hook=lambda: setattr(own, "programmatic", True)) == 3


FAULTS = {
    "after many, too": (followed_streams, "(placed or self._calls <= FIRST_CALLS) and ", "", test_many_are_noted),
    "those that have their place": (
        repeated_launch,
        "(placed is None or self._in_turn)",
        "placed is None",
        test_those_that_have_their_place_are_not_heard,
    ),
    "programmatic ones": (repeated_launch, "(placed is None or self._in_turn)", "True", test_programmatic_ones_are_heard),
    "programmatic ones, later": (repeated_launch, "args, not own.programmatic", "args, True", test_programmatic_ones_are_heard),
    "not one more call": (followed_streams, "        self._calls += dropped\n", "", test_many_are_noted),
    "beside another listener": (
        callbacks,
        "return self._filter is not None and len(self._listeners) == 1",
        "return True",
        test_two_sessions_hear_them,
    ),
    "none": (
        repeated_launch,
        "if (placed is None or self._in_turn) and streams.drops(placed=placed is not None) else _HEARD",
        "if False else _HEARD",
        test_they_are_not_heard,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, test = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        test(monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "test"),
    [
        ("rule->kind == LAUNCH && quiet_launches > 0", "quiet_launches > 0", test_all_else_within_a_launch_is_heard),
        ("rule->kind == LAUNCH && quiet_launches > 0", "rule->kind == LAUNCH", test_two_sessions_hear_them),
    ],
    ids=["other calls", "all launches"],
)
def test_a_fault_in_c(old: str, new: str, test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = call_filter.FILTER.sources()["calls.c"]
    assert text.count(old) == 1
    changed = {**call_filter.FILTER.generated(), "calls.c": text.replace(old, new)}
    monkeypatch.setattr(call_filter, "FILTER", replace(call_filter.FILTER, generated=lambda: changed))
    with pytest.raises(AssertionError):
        test(monkeypatch)
