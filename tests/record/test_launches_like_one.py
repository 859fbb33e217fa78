"""Launches like one that is checked now run as they are, wait for nothing, and count as that one does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from armed_support import Program, bench_launch
from planted import plant
from test_known_launches import PLAIN, known, launched

from consan.backends.cuda import CudaBackend
from consan.checker.logs import earlier
from consan.session import frameworks, repeated_launch
from consan.session.executing import background, in_flight, in_flight_launch, recording
from consan.session.executing.judging import Judge
from consan.session.planning.options import SessionOptions
from consan.session.planning.switches import OFTEN

WHY = "they were made while a launch with the same parameters was checked, which does not stand for them"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@dataclass
class Held:
    """A program whose checks end when the test says so. `made`: launches so far; the last one ran as it is."""

    program: Program
    end: threading.Event
    made: int = 0

    def learn(self) -> None:
        while launched(self.program) != PLAIN:
            self.launch()
            assert self.made < 20, "no launch runs as it is"

    def launch(self, times: int = 1) -> None:
        self.program.launch(times)
        self.made += times

    def report(self) -> Any:
        self.end.set()
        return self.program.session.report()


@pytest.fixture
def held(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Held]]:
    """Opens a program. `result`: of its checks; None: as they are."""
    opened: list[Held] = []

    def open_program(given: str = "triton waits", result: Callable[..., Any] | None = None) -> Held:
        opened.append(Held(known(given, library, monkeypatch), threading.Event()))
        as_it_is, end = Judge.examined, opened[-1].end

        def examined(*asked: Any) -> Any:
            if threading.current_thread().name != "consan-checks":  # the program waits for this one
                return as_it_is(*asked)
            end.wait(20)
            return (result or as_it_is)(*asked)

        monkeypatch.setattr(Judge, "examined", examined)
        return opened[-1]

    yield open_program
    for each in opened:
        each.end.set()
        each.program.close()


def refused(*_: object) -> None:
    raise ValueError("the check fails")


@pytest.mark.parametrize("given", ["cupy waits", "triton waits", "cupy turns", "triton turns"])
def test_they_count_as_the_one_that_is_checked(held: Callable[..., Held], given: str) -> None:
    one = held(given)
    one.learn()
    one.launch(30)
    assert launched(one.program) == PLAIN
    report = one.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("clean", one.made)


def test_they_wait_for_the_interpreter_for_a_short_time(held: Callable[..., Held]) -> None:
    assert _becomes(short=False)  # checks of earlier tests are over
    one = held()
    one.learn()
    assert _becomes(short=True)
    one.report()
    assert _becomes(short=False)


def _becomes(*, short: bool) -> bool:
    """Whether the interval is short soon, or as Python has it."""
    for _ in range(100):
        if (sys.getswitchinterval() < 2 * OFTEN) is short:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("given", ["cupy turns", "triton turns"])
def test_once_the_check_has_ended_they_are_known(held: Callable[..., Held], given: str) -> None:
    one = held(given)
    one.learn()
    one.launch(2)
    one.end.set()
    one.program.session.frameworks.background.wait(one.program.session.frameworks.background.sent[-1])
    one.made += 5
    assert one.program.repeats(5) == 5, "none of them has a log"
    assert launched(one.program) == PLAIN
    assert sum(kernel.launches for kernel in one.report().kernels) == one.made


def test_other_bytes_have_a_log(held: Callable[..., Held]) -> None:
    one = held("triton turns")
    one.learn()
    one.program.values[2].value = 5
    one.launch()
    assert launched(one.program) != PLAIN
    one.program.values[2].value = 0
    assert sum(kernel.launches for kernel in one.report().kernels) == one.made


def test_what_data_decide_has_a_log(held: Callable[..., Held]) -> None:
    one = held("triton picks")
    one.launch(10)
    assert launched(one.program) != PLAIN


def test_a_check_that_does_not_stand_for_them(held: Callable[..., Held]) -> None:
    one = held(result=refused)
    one.learn()
    one.launch(4)
    report = one.report()
    assert report.verdict == "incomplete"
    assert any(WHY in why for why in report.incomplete), report.incomplete


@pytest.mark.parametrize("given", ["cupy waits", "triton waits"])
def test_once_the_check_has_failed_they_have_logs(held: Callable[..., Held], given: str) -> None:
    one = held(given, result=refused)
    one.learn()
    one.launch(2)
    assert one.program.launch(2) == 2, "C makes them"
    one.made += 2
    one.end.set()
    one.program.session.frameworks.background.wait(one.program.session.frameworks.background.sent[-1])
    one.launch()
    assert launched(one.program) != PLAIN
    assert sum(kernel.launches for kernel in one.report().kernels) < one.made


def test_the_second_launch_waits_neither_for_a_module_nor_for_a_hash(held: Callable[..., Held]) -> None:
    """The first one loads the kernel as it is, and the thread that checks reads which histories are known."""
    program, load, hashed = held("triton waits").program, CudaBackend.load, list[str]()
    loads: list[str] = []

    def loaded(backend: CudaBackend, ptx: str, **how: Any) -> Any:
        loads.append(ptx)
        return load(backend, ptx, **how)

    with pytest.MonkeyPatch.context() as until:
        until.setattr(CudaBackend, "load", loaded)
        until.setattr(SessionOptions, "remembers", True)
        until.setattr(earlier, "fingerprint", lambda: hashed.append(threading.current_thread().name) or "")
        program.launch()
        assert program.prepared.plain in loads
        first = len(loads)
        program.launch()
        assert len(loads) == first
        assert threading.main_thread().name not in hashed


FAULTS: dict[str, tuple[Any, str, str, str, Callable[..., None]]] = {
    "they are not counted": (
        repeated_launch,
        "LaunchesLikeOne.tell",
        "sum(times.values())",
        "0",
        test_they_count_as_the_one_that_is_checked,
    ),
    "all bytes are equal": (
        *(repeated_launch, "LaunchesLikeOne.covers", " and ((args is not None and args is self._decided) or self.checked.decides(args))"),
        *("", test_other_bytes_have_a_log),
    ),
    "C does not see the end of the check": (
        *(repeated_launch, "LaunchesLikeOne.lends", ", over=account.over", ""),
        test_once_the_check_has_failed_they_have_logs,
    ),
    "C takes all bytes for equal": (
        *(repeated_launch, "LaunchesLikeOne.lends", "deciding(self.checked.memory.decided_by, self.checked.args)", "()"),
        test_other_bytes_have_a_log,
    ),
    "the end of the check is not seen": (
        *(repeated_launch, "LaunchesLikeOne.covers", "self.checked.is_checked_now and ", ""),
        test_once_the_check_has_failed_they_have_logs,
    ),
    "the first one behind the check has a log": (
        *(frameworks, "Frameworks.known_now", "None if found is before else found", "None"),
        test_once_the_check_has_ended_they_are_known,
    ),
    "all checks stand": (
        *(in_flight_launch, "ReceiptGroup.stands_for_like", "checked is None or checked.unended or checked.by_address or stopped"),
        *("False", test_a_check_that_does_not_stand_for_them),
    ),
    "they wait for the interpreter": (
        *(background, "Background._examined", "SWITCHES.often(), ", ""),
        test_they_wait_for_the_interpreter_for_a_short_time,
    ),
    "the second one loads the kernel as it is": (
        *(repeated_launch, "LaunchesLikeOne.of", "if not prepared.plain_loaded:", "if False:"),
        test_the_second_launch_waits_neither_for_a_module_nor_for_a_hash,
    ),
    "a launch hashes what its replays depend on": (
        *(
            recording,
            "Recording._earlier_of",
            "= Earlier(prepared.recorded)",
            "= Earlier(prepared.recorded); self._earlier[prepared.number]._known",
        ),
        test_the_second_launch_waits_neither_for_a_module_nor_for_a_hash,
    ),
    "they are forgotten": (
        *(in_flight, "Repeating.counts_like", "if sent in self.background.sent or not sent.like:", "if True:"),
        test_a_check_that_does_not_stand_for_them,
    ),
}


WITH_BOTH = (test_they_count_as_the_one_that_is_checked, test_once_the_check_has_failed_they_have_logs)
WITH_TURNS = (test_once_the_check_has_ended_they_are_known,)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, held: Callable[..., Held], monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, old, new, test = FAULTS[fault]
    plant(monkeypatch, module, old, new, name)
    with pytest.raises(AssertionError):
        test(held, **{"given": "cupy waits"} if test in WITH_BOTH else {"given": "cupy turns"} if test in WITH_TURNS else {})
