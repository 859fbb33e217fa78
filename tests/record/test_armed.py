"""Launches that C makes: all are counted, what is not equal is left to Python, and nothing is used after it was taken back."""

from __future__ import annotations

import ctypes
import inspect
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consan.adapters import cupy_driver
from consan.backends import armed
from consan.backends.armed import ArmedFunctions, FollowedLaunch, armed_functions
from consan.backends.call_filter import FILTER, CallFilter, CallKind
from consan.session.executing import time_limit
from consan.session.executing.judging import Judge
from consan.toolchain.host_library import loaded

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import bench_launch


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


class Program(bench_launch.Program):
    """A program of CuPy. `python`: launches that C has not made."""

    def __init__(self, library: bench_launch.NullLibrary, kernel: str) -> None:
        super().__init__(library, kernel, "auto")
        self.python = 0
        _, self._checked = self.cupy()

    def sees(self, ours: Any) -> Any:
        def counted(*given: Any) -> int:
            self.python += 1
            return int(ours(*given))

        return counted

    def launch(self, times: int = 1) -> int:
        """Returns how many of them C has made."""
        before, self.status = self.python, 0
        for _ in range(times):
            self.status = self._checked()
        return times - (self.python - before)

    def learn(self) -> int:
        """Launch until C makes a launch. Gives how many were made."""
        for times in range(1, 100):
            if self.launch():
                return times
            time.sleep(0.02)  # for the thread that checks
        raise AssertionError("C makes no launch")

    def counts(self) -> tuple[str, int]:
        """The verdict, and launches."""
        report = self.session.report()
        return report.verdict, sum(kernel.launches for kernel in report.kernels)

    def switch(self, name: str, value: int) -> None:
        """Set a variable of the driver."""
        self.library.set(name, value)


def launches_examined(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that are examined from now on."""
    examined, known = list[Any](), Judge.examined
    monkeypatch.setattr(Judge, "examined", lambda *given: examined.append(given) or known(*given))
    return examined


@pytest.fixture(params=["waits", "adds"])
def program(request: pytest.FixtureRequest, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 60.0)  # its look takes launches back
    monkeypatch.setattr(Judge, "examined", Judge.examined)  # the program replaces it
    made = Program(library, request.param)
    yield made
    for name in ("null_sum", "null_status", "null_late"):
        made.switch(name, 0)
    made.session.close()


def test_all_are_counted(program: Program) -> None:
    made = program.learn()
    assert program.launch(500) == 500
    assert program.counts() == ("clean", made + 500)
    again = program.learn()
    assert program.counts()[1] in (again, made + 500 + again)


def test_other_parameters_are_left_to_python(program: Program) -> None:
    made = program.learn()
    program.values[2].value = 5
    assert program.launch() == 0
    assert program.launch(20) >= 18
    assert program.counts() == ("clean", made + 21)


def test_a_launch_that_the_driver_refuses_is_not_counted(program: Program) -> None:
    made = program.learn()
    program.switch("null_status", 700)
    assert program.launch() == 1
    assert program.status == 700
    program.switch("null_status", 0)
    assert program.launch(5) == 5
    assert program.counts() == ("clean", made + 5)


def test_a_report_takes_launches_back(program: Program) -> None:
    program.learn()
    program.launch(5)
    program.session.report()
    assert program.launch() == 0


@pytest.mark.parametrize("program", ["waits"], indirect=True)
def test_another_receipt_is_examined(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program.learn()
    examined = launches_examined(monkeypatch)
    program.switch("null_sum", 7)
    assert program.launch() == 1
    program.switch("null_sum", 0)
    assert program.launch() == 0, "C has seen the receipt"
    assert program.launch(50) >= 48
    assert program.counts() == ("clean", made + 52)
    assert len(examined) == 1


@pytest.mark.parametrize("program", ["waits"], indirect=True)
def test_receipts_that_come_late(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program.learn()
    examined = launches_examined(monkeypatch)
    program.switch("null_late", 1)
    for times in range(6):
        program.switch("null_sum", 7 * (times == 3))
        program.launch()
        program.switch("null_sum", 0)
        program.launch(4)
        program.library.null_deliver()
    program.switch("null_late", 0)
    assert program.launch(20) >= 10
    assert program.counts() == ("clean", made + 50)
    assert len(examined) == 1, "one launch had another receipt"


@pytest.mark.parametrize("program", ["waits"], indirect=True)
def test_the_look_at_the_clock_takes_launches_back(program: Program) -> None:
    made = program.learn()
    program.switch("null_late", 1)
    assert program.launch() == 1
    background = program.session.frameworks.background
    assert len(background.time_limit.out()) == 1
    program.switch("null_late", 0)
    program.library.null_deliver()
    assert program.launch() == 0
    assert program.counts() == ("clean", made + 2)


# -- how a launch is noted -------------------------------------------------------------------------------------------------------

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3)
TELL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
KEY, CALL, CONTEXT = (7, 1, 1, 1, 32, 1, 1, 0, 0), 3, 0x1000


def test_a_launch_is_noted_as_the_callback_would_do_it(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "examined", Judge.examined)  # the program replaces it
    functions = armed_functions()
    assert isinstance(functions, ArmedFunctions)
    made, heard = list[str](), list[int]()
    real, otherwise = (KERNEL(lambda *_, name=name: made.append(name) or 0) for name in ("C", "Python"))
    launch, program = KERNEL(functions.replaces(real, otherwise)), bench_launch.Program(library, "adds", "off")
    python = TELL(lambda *given: heard.append(1))
    calls = CallFilter(python)
    calls.follow(CALL, {"behind": 1, "within": -1, "kind": CallKind.LAUNCH})
    calls.note(CONTEXT)
    launches = functions.arm(KEY, program.backend.work.here, (), (), b"", 0, FollowedLaunch(calls.address, CONTEXT, CALL))
    shape = (*KEY[:8], None, None, None)
    assert [launch(*shape), launch(*shape)] == [0, 0]
    assert [call.kind for call in calls.note(CONTEXT + 1)] == [CallKind.LAUNCH], "one stands for all"
    launch(*shape)
    assert made == ["C", "C", "Python"]
    assert launches is not None
    taken = launches.take_back()
    assert taken is not None
    assert (taken.launches, launches.take_back()) == (2, None)
    calls.note(CONTEXT)
    launch(*shape)
    assert made[-1] == "Python"
    program.session.close()


# -- planted faults --------------------------------------------------------------------------------------------------------------

NOTED = test_a_launch_is_noted_as_the_callback_would_do_it
FAULTS: dict[str, tuple[str, str, str, Any]] = {
    "no parameters are compared": (
        "armed->sizes[at]) != 0) return false",
        "0) != 0) return false",
        "adds",
        test_other_parameters_are_left_to_python,
    ),
    "all receipts are equal": (
        "armed->receipt_bytes) != 0) return false",
        "0) != 0) return false",
        "waits",
        test_another_receipt_is_examined,
    ),
    "a receipt has always come": ("slot->number && atomic_load", "false && atomic_load", "waits", test_receipts_that_come_late),
    "one slot for all": ("if (!armed->slots[armed->last].number) return", "return", "waits", test_receipts_that_come_late),
    "launches are not counted": ("armed->launches++;", "", "adds", test_all_are_counted),
    "equal ones are not counted": ("armed->equal++;", "", "waits", test_all_are_counted),
    "a refused launch is counted": ("if (!status) finish", "finish", "adds", test_a_launch_that_the_driver_refuses_is_not_counted),
    "another context": ("load(&filter->notes) == armed->notes && note", "note", "", NOTED),
    "it is not noted": ("note(filter, (uint32_t)armed->call, LAUNCH, &unknown)", "true", "", NOTED),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, kernel, test = FAULTS[fault]
    sources = FILTER.sources()
    assert sources["armed.h"].count(old) == 1
    functions = ArmedFunctions(loaded(FILTER.compiled(sources | {"armed.h": sources["armed.h"].replace(old, new)}), "faulty"))
    for user in (armed, cupy_driver, sys.modules[__name__]):
        monkeypatch.setattr(user, "armed_functions", lambda: functions)
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 60.0)
    monkeypatch.setattr(Judge, "examined", Judge.examined)
    given = {"program": Program(library, kernel)} if kernel else {"library": library}
    try:
        with pytest.raises((AssertionError, IndexError)):
            test(**given, **{"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(test).parameters else {})
    finally:
        for name in ("null_sum", "null_status", "null_late"):
            library.set(name, 0)
