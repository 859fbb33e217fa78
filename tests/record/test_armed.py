"""Launches that C makes: all are counted, what is not equal is left to Python, and nothing is used after it was taken back."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import inspect
import sys
import threading
import time
from typing import Any

import pytest
from armed_support import Program, bench_launch, launches_examined, opened

from consan.adapters import cupy_driver
from consan.adapters.triton import gpu
from consan.backends import armed
from consan.backends.armed import ArmedFunctions, Arming, FollowedLaunch, Lent, armed_functions
from consan.backends.call_filter import FILTER, CallFilter, CallKind
from consan.session import repeated_launch
from consan.session.comparing.peers import PeerMemory
from consan.session.executing.in_flight import Slot
from consan.session.executing.judging import Judge
from consan.session.global_looks import GlobalLooks
from consan.toolchain.host_library import loaded


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.fixture(params=["cupy picks", "cupy adds", "triton picks", "triton adds", "core adds"])
def program(request: pytest.FixtureRequest, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Program:
    return opened(request.param, library, monkeypatch)


on_picks = pytest.mark.parametrize("program", ["cupy picks", "triton picks"], indirect=True)


def test_all_are_counted(program: Program) -> None:
    made = program.learn()
    assert program.launch(500) == 500
    assert program.counts() == ("clean", made + 500)
    again = program.learn()
    assert program.counts()[1] in (again, made + 500 + again)


def test_launches_are_counted_by_their_parameters(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made, counted = program.learn(), collections.Counter[int]()
    monkeypatch.setattr(GlobalLooks, "counts", lambda *given: counted.update({int.from_bytes(given[3][2], "little"): given[4]}))
    values, most = [*range(10, 150), 12, 3], 140
    for value in values:
        program.values[2].value = value
        assert program.launch() == 1
    program.session.frameworks.tell_repeated()
    assert (len(counted), counted[10], counted[12]) == (most + 1, 1, 2)
    assert program.counts() == ("clean", made + len(values))


def test_a_launch_that_the_driver_refuses_is_not_counted(program: Program) -> None:
    made, launches = program.learn(), program.launches
    program.switch("null_status", 700)
    program.launches = lambda: 1 // 0
    with contextlib.suppress(ZeroDivisionError):
        assert program.launch() == 1
        assert program.status == 700
    program.switch("null_status", 0)
    program.launches = launches
    assert program.launch(5) == 5
    assert program.counts() == ("clean" if program.way == "cupy" else "incomplete", made + 5), "an exception is a reason"


@pytest.mark.parametrize("program", ["triton picks", "core adds"], indirect=True)
def test_a_launch_that_is_taken_back_while_it_is_made(program: Program) -> None:
    made, launches, background = program.learn(), program.launches, program.session.frameworks.background

    def taken_back() -> None:
        background.repeating.take_out()  # as the look at the clock does
        program.session.frameworks.tell_repeated()
        assert all(slot.owner.lends() is None for slot in background.last.values() if isinstance(slot, Slot)), "its slot is in use"
        program.launches = launches

    program.launches = taken_back
    assert program.launch(3) == 3, "it is armed again"
    assert program.launch(20) >= 18
    assert program.counts() == ("clean", made + 23)


def test_a_module_whose_variables_another_launch_changes(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened("triton picks", library, monkeypatch)
    program.learn()
    last = program.session.frameworks.background.last
    ((symbol, slot),) = ((symbol, slot) for symbol, slot in last.items() if isinstance(slot, Slot))
    slot.owner.take_back()
    assert slot.owner.lends() is not None
    monkeypatch.setitem(last, symbol, object())
    assert slot.owner.lends() is None


def test_another_stream(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened("cupy picks", library, monkeypatch, stream=0x5000)
    made = program.learn()
    assert program.launch(20) == 20
    assert program.counts() == ("clean", made + 20)


def test_a_report_takes_launches_back(program: Program) -> None:
    program.learn()
    program.launch(5)
    program.session.report()
    assert program.launch() == 0


@on_picks
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


@on_picks
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


@on_picks
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


def test_a_full_queue_does_not_keep_python_out(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened("cupy adds", library, monkeypatch)
    made = program.learn()
    threads = [threading.Thread(target=each, daemon=True) for each in (program.launch, program.session.frameworks.tell_repeated)]
    program.switch("null_full", 1)
    try:
        threads[0].start()
        while library.get("null_full") != -1:
            time.sleep(0.01)
        threads[1].start()
        threads[1].join(10)
        assert not threads[1].is_alive(), "it waits for the driver"
    finally:
        program.switch("null_full", 0)
    threads[0].join()
    assert program.counts() == ("clean", made + 1)


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
    followed = FollowedLaunch(calls.address, CONTEXT, CALL)
    launches = functions.arm(Arming(functions, KEY, (), program.backend.work.here, followed, functions.shares()), Lent(()))
    shape = (*KEY[:8], None, None, None)
    assert [launch(*shape), launch(*shape)] == [0, 0]
    assert [call.kind for call in calls.note(CONTEXT + 1)] == [CallKind.LAUNCH], "one stands for all"
    launch(*shape)
    assert made == ["C", "C", "Python"]
    assert launches is not None
    assert launches.begin() is None, "it would be noted for another context"
    taken = launches.take_back()
    assert taken is not None
    assert (taken.launches, launches.take_back()) == ({(): 2}, None)
    calls.note(CONTEXT)
    launch(*shape)
    assert made[-1] == "Python"
    program.session.close()


def test_memory_that_is_shared_later_is_looked_at_by_python(program: Program) -> None:
    made, functions = program.learn(), armed_functions()
    assert functions is not None
    assert program.launch(2) == 2
    functions.shares(more=True)
    before = program.python
    program.launch(2)
    assert program.python == before + (0 if program.way == "core" else 2), "Python makes those of the other in any case"
    assert program.counts() == ("clean", made + 4)


@pytest.mark.parametrize("program", ["cupy adds", "triton adds"], indirect=True)
def test_c_makes_no_launch_while_memory_is_shared(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeerMemory, "shares", True)
    program.launch(5)
    assert program.python == 5
    assert program.counts() == ("clean", 5)


# -- planted faults --------------------------------------------------------------------------------------------------------------

NOTED = test_a_launch_is_noted_as_the_callback_would_do_it
FAULTS: dict[str, tuple[str, str, str, Any]] = {
    "no parameters are compared": (
        "set, armed->sizes[at]) != 0) return false",
        "set, 0) != 0) return false",
        "cupy adds",
        test_launches_are_counted_by_their_parameters,
    ),
    "all sets are one": (
        "armed->set = armed->set_count++",
        "armed->set = 0",
        "cupy adds",
        test_launches_are_counted_by_their_parameters,
    ),
    "all receipts are equal": (
        "armed->receipt_bytes) != 0) return false",
        "0) != 0) return false",
        "cupy picks",
        test_another_receipt_is_examined,
    ),
    "a receipt has always come": ("slot->number && atomic_load", "false && atomic_load", "cupy picks", test_receipts_that_come_late),
    "the driver is waited for with the lock": (
        "alone = !slot",
        "alone = false",
        "",
        test_a_full_queue_does_not_keep_python_out,
    ),
    "one slot for all": ("if (!armed->slots[armed->last].number) return", "return", "cupy picks", test_receipts_that_come_late),
    "launches are not counted": ("armed->times[set]++", "0", "cupy adds", test_all_are_counted),
    "equal ones are not counted": ("armed->equal++;", "", "cupy picks", test_all_are_counted),
    "a refused launch is counted": (
        "if (status && find",
        "if (0 && find",
        "cupy adds",
        test_a_launch_that_the_driver_refuses_is_not_counted,
    ),
    "a refused launch is followed": ("if (!status) finish", "finish", "cupy picks", test_a_launch_that_the_driver_refuses_is_not_counted),
    "a refused launch has a receipt": ("if (made) finish", "finish", "triton picks", test_a_launch_that_the_driver_refuses_is_not_counted),
    "a launch that is made is free": (
        "*result++ = armed->busy",
        "*result++ = 0",
        "triton picks",
        test_a_launch_that_is_taken_back_while_it_is_made,
    ),
    "another context": ("notes_launches(armed) && note(filter, &call)", "note(filter, &call)", "", NOTED),
    "it is not noted": ("notes_launches(armed) && note(filter, &call)", "notes_launches(armed)", "", NOTED),
    "memory is shared": (
        "armed->sharings == atomic_load(&sharings) && ",
        "",
        "cupy adds",
        test_memory_that_is_shared_later_is_looked_at_by_python,
    ),
    "a launch that is begun is not noted": ("load(&armed->filter->notes) == armed->notes", "true", "", NOTED),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, given, test = FAULTS[fault]
    sources = FILTER.sources()
    assert sources["armed.h"].count(old) == 1
    functions = ArmedFunctions(loaded(FILTER.compiled(sources | {"armed.h": sources["armed.h"].replace(old, new)}), "faulty"))
    for user in (armed, cupy_driver, gpu, repeated_launch, sys.modules[__name__]):
        monkeypatch.setattr(user, "armed_functions", lambda: functions)
    wanted = inspect.signature(test).parameters
    program = opened(given, library, monkeypatch) if given else None
    made = {"library": library} if program is None else {"program": program}
    try:
        with pytest.raises((AssertionError, IndexError, KeyError)):
            test(**made, **{"monkeypatch": monkeypatch} if "monkeypatch" in wanted else {})
    finally:
        for name in ("null_sum", "null_status", "null_late"):
            library.set(name, 0)
