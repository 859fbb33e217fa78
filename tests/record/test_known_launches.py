"""Known launches (planning/decided.py): they run as they are, all are counted, and no other launch is taken for one."""

from __future__ import annotations

import inspect
import time
from typing import Any

import pytest
from armed_support import Program, bench_launch, opened

from consan.adapters import cupy_driver
from consan.adapters.triton import gpu
from consan.backends import armed
from consan.backends.armed import ArmedFunctions
from consan.backends.call_filter import FILTER
from consan.instrument.ptx import parse
from consan.instrument.record import record, rewrite
from consan.instrument.record.recorded import DecidingBytes
from consan.session import repeated_launch
from consan.session.executing import judging
from consan.session.global_looks import GlobalLooks
from consan.toolchain.host_library import loaded
from consan.toolchain.nvrtc import compile_ptx

PLAIN = 99  # the handle of the kernel as it is


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.fixture(params=["cupy waits", "triton waits"])
def program(request: pytest.FixtureRequest, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Program:
    return known(request.param, library, monkeypatch)


on_turns = pytest.mark.parametrize("program", ["cupy turns", "triton turns"], indirect=True)


def known(given: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Program:
    """A program with a kernel as it is that has a handle of its own. The device leaves a receipt in which `n` is 0."""
    made = opened(given, library, monkeypatch, **more)
    function = made.backend.function
    plain = made.prepared.plain_loaded
    monkeypatch.setattr(made.backend, "function", lambda *asked: PLAIN if asked[0] in plain.values() else function(*asked))
    made.values[2].value = 0
    return made


def launched(program: Program) -> int:
    """The handle of the kernel that was launched last."""
    return program.function if program.way == "triton" else program.library.function


def learn(program: Program) -> int:
    """Launch until the kernel as it is is launched. Gives how many were made."""
    for times in range(1, 100):
        program.launch()
        if launched(program) == PLAIN:
            return times
        time.sleep(0.02)  # for the thread that checks
    raise AssertionError("no launch is known")


def test_what_decides() -> None:
    recorded = record(parse(compile_ptx(bench_launch.SOURCE, arch="sm_90a").ptx), global_races=False, leaves=True)
    found = {each.name: each.compact for each in recorded.kernels if each.compact is not None}
    assert {name: (compact.hashes, [each.parameter for each in compact.decides]) for name, compact in found.items() if name != "adds"} == {
        "waits": (False, []),
        "picks": (True, []),
        "turns": (False, [2]),
        "sums": (False, []),
    }
    assert {name: compact.ends for name, compact in found.items()} == {
        "waits": True,
        "turns": True,
        "adds": True,
        "picks": False,
        "sums": False,
    }


@pytest.mark.parametrize("program", ["cupy waits", "triton waits", "cupy turns", "triton turns"], indirect=True)
def test_they_run_as_they_are_and_are_counted(program: Program) -> None:
    made, before = learn(program), program.library.calls
    program.launch(500)
    assert launched(program) == PLAIN
    assert program.library.calls - before <= 2 * 500 + 10, "a launch, and a look at the context"
    assert program.counts() == ("clean", made + 500)


@on_turns
def test_other_bytes_are_not_known(program: Program) -> None:
    made = learn(program)
    program.launch(5)
    program.values[2].value = 5
    program.launch(5)
    assert launched(program) != PLAIN
    program.values[2].value = 0
    program.launch(5)
    assert launched(program) == PLAIN
    assert program.counts() == ("clean", made + 15)


@on_turns
def test_where_most_are_not_known_they_have_logs(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = learn(program)
    monkeypatch.setattr(repeated_launch, "MOST_UNKNOWN", 3)
    program.values[2].value = 5
    program.launch(20)
    assert launched(program) != PLAIN
    assert program.launch(5) == 5, "C makes them, with logs"
    assert program.counts() == ("clean", made + 25)


@on_turns
def test_no_proof_is_asked_for_without_global_memory(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()
    monkeypatch.setattr(GlobalLooks, "may_tell", lambda *_: False)
    monkeypatch.setattr(GlobalLooks, "counts", lambda *given: asked.append(given))
    made = learn(program)
    asked.clear()  # of launches that took the long way
    program.launch(5)
    assert program.counts() == ("clean", made + 5)
    assert asked == []


@pytest.mark.parametrize("program", ["cupy picks", "triton picks"], indirect=True)
def test_what_data_decide_is_not_known(program: Program) -> None:
    made = program.learn()
    program.launch(20)
    assert launched(program) != PLAIN
    assert program.counts() == ("clean", made + 20)


@pytest.mark.parametrize("way", ["cupy", "triton"])
@pytest.mark.parametrize(("kernel", "limit"), [("sums", None), ("turns", 3.0)])
def test_a_launch_that_ends_as_one_did_needs_no_log(
    way: str, kernel: str, limit: float | None, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = known(f"{way} {kernel}", library, monkeypatch, timeout=limit)
    learn(program)


def stays_recorded(way: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter that decides nothing else says how often threads go round a loop."""
    program = known(f"{way} sums", library, monkeypatch, timeout=3.0)
    made = program.learn()
    for number in (0, 1 << 30, 0):
        program.values[2].value = number
        program.launch(5)
        assert launched(program) != PLAIN
    assert program.counts() == ("clean", made + 15)


@pytest.mark.parametrize("way", ["cupy", "triton"])
def test_a_launch_that_may_exceed_the_time_limit_has_a_log(
    way: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays_recorded(way, library, monkeypatch)


@pytest.mark.parametrize("loops", ["all are decided", "none is seen"])
def test_a_fault_that_takes_loops_for_decided(loops: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    if loops == "all are decided":
        monkeypatch.setattr(rewrite, "loops_without", lambda *_: False)
    else:
        monkeypatch.setattr(judging, "may_be_stopped", lambda *_, **how: False)
    with pytest.raises(AssertionError):
        stays_recorded("triton", library, monkeypatch)


def test_after_a_report_they_are_new(program: Program) -> None:
    learn(program)
    program.session.report()
    program.launch()
    assert launched(program) != PLAIN
    assert program.counts()[0] == "clean"


# -- planted faults --------------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[str, str, str, Any]] = {
    "all bytes are equal": ("each->value, each->nbytes) != 0", "each->value, 0) != 0", "cupy turns", test_other_bytes_are_not_known),
    "the recorded kernel is launched": (
        "armed->instead ? armed->instead : function",
        "function",
        "cupy waits",
        test_they_run_as_they_are_and_are_counted,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, given, test = FAULTS[fault]
    sources = FILTER.sources()
    assert sources["armed.h"].count(old) == 1
    functions = ArmedFunctions(loaded(FILTER.compiled(sources | {"armed.h": sources["armed.h"].replace(old, new)}), "faulty"))
    for user in (armed, cupy_driver, gpu, repeated_launch):
        monkeypatch.setattr(user, "armed_functions", lambda: functions)
    _fails(test, known(given, library, monkeypatch), monkeypatch)


def test_a_fault_of_python(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecidingBytes, "within", lambda *_: bytes(4))
    _fails(test_other_bytes_are_not_known, known("triton turns", library, monkeypatch), monkeypatch)


def _fails(test: Any, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(test).parameters else {}
    with pytest.raises(AssertionError):
        test(program, **more)
    program.session.report()
