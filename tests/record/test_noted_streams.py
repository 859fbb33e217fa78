"""Calls for several streams that C notes mean the same as those that Python gets at once (SEMANTICS 12, R-GM14)."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

import pytest
from noted_support import EVENT, Program
from planted import plant

from consan.backends import call_filter, callbacks
from consan.backends.call_filter import FILTER
from consan.session.comparing import followed_streams
from consan.session.comparing.driver_calls import ProgramOrder

STREAMS, EVENTS, KERNELS = (0, 0x100, 0x200, 0x300), tuple(range(EVENT, EVENT + 3)), (9, 10)
Case = Callable[[Program], None]


def begun(monkeypatch: pytest.MonkeyPatch, *, note: bool) -> Program:
    """A program with streams, events and kernels that Python knows."""
    program = Program(monkeypatch, note=note)
    for each in STREAMS[1:]:
        program.stream(each)
    for stream, kernel in zip(STREAMS, KERNELS, strict=False):
        program.foreign(stream, kernel)
    program.call("cuCtxSynchronize")
    return program


def graph(program: Program, number: int) -> int:
    """An executable graph of one launch, which was captured in the second stream."""
    made, executable = ctypes.c_uint64(0x5000 + number), ctypes.c_uint64(0x6000 + number)
    program.call("cuStreamBeginCapture", STREAMS[1], 0)
    program.framework.capturing.add(STREAMS[1])
    program.framework.launch("fills", stream=STREAMS[1], out=4 * number)
    program.framework.capturing.clear()
    program.call("cuStreamEndCapture", STREAMS[1], ctypes.addressof(made))
    program.call("cuGraphInstantiateWithFlags", ctypes.addressof(executable), made.value, 0)
    return executable.value


def heard(program: Program, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that Python gets at once from now on."""
    names, known = list[str](), ProgramOrder.called

    def called(order: ProgramOrder, call: callbacks.DriverCall) -> None:
        names.extend([] if call.noted else [call.name])
        known(order, call)

    monkeypatch.setattr(ProgramOrder, "called", called)
    return names


def launches_around(between: Case, *, first: str = "exchanges") -> Case:
    """Two launches in two streams that write the same bytes, and what stands between."""

    def program_of(program: Program) -> None:
        program.launch(STREAMS[1], first, 1)
        between(program)
        program.launch(STREAMS[2], first, 1, out=4)

    return program_of


def an_edge(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[2])


def an_edge_with_flags(program: Program) -> None:
    program.call("cuEventRecordWithFlags", EVENT, STREAMS[1], 0)
    program.wait(EVENT, STREAMS[2])


def recorded_again(program: Program) -> None:
    an_edge(program)
    program.call("cuEventRecord", EVENT, STREAMS[3])


def recorded_again_before(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.call("cuEventRecord", EVENT, STREAMS[2])
    program.wait(EVENT, STREAMS[2])


def recorded_again_at_last(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[2])
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[2])


def the_other_way(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[2])
    program.wait(EVENT, STREAMS[1])


def by_a_third_stream(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[3])
    program.call("cuEventRecord", EVENT + 1, STREAMS[3])
    program.wait(EVENT + 1, STREAMS[2])


def the_host_waits_for_the_stream(program: Program) -> None:
    program.call("cuStreamSynchronize", STREAMS[1])


def the_host_waits_for_the_other_stream(program: Program) -> None:
    program.call("cuStreamSynchronize", STREAMS[2])


def the_host_waits_for_the_event(program: Program) -> None:
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.call("cuEventQuery", EVENT)


def the_host_waits_for_all(program: Program) -> None:
    program.call("cuCtxSynchronize")


def memory_is_freed(program: Program) -> None:
    program.call("cuMemFree", 0x5000)


def nothing_is_freed(program: Program) -> None:
    program.call("cuMemFree", 0)


def a_foreign_kernel(program: Program) -> None:
    """One that comes behind the first launch and before the second is beside none of them."""
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[3])
    program.foreign(STREAMS[3])
    program.foreign(STREAMS[3], 10)
    program.call("cuEventRecord", EVENT, STREAMS[3])
    program.wait(EVENT, STREAMS[2])


def many_edges(program: Program) -> None:
    """More than there is room for."""
    for number in range(call_filter.MOST_NOTED):
        program.call("cuEventRecord", EVENT + number % 2, STREAMS[1])
        program.wait(EVENT + number % 2, STREAMS[3])
    program.wait(EVENT + 1, STREAMS[2])


_EDGES: Final = (an_edge, an_edge_with_flags, recorded_again, recorded_again_at_last, by_a_third_stream, a_foreign_kernel, many_edges)
_WAITS: Final = (the_host_waits_for_the_stream, the_host_waits_for_the_event, the_host_waits_for_all, memory_is_freed)
_NO_EDGES: Final = (recorded_again_before, the_other_way, the_host_waits_for_the_other_stream, nothing_is_freed)
ORDERED: dict[Case, bool] = {**dict.fromkeys((*_EDGES, *_WAITS), True), **dict.fromkeys(_NO_EDGES, False)}


@pytest.mark.parametrize("between", ORDERED, ids=lambda case: case.__name__)
def test_what_is_noted_orders_launches(between: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    program = begun(monkeypatch, note=True)
    names = heard(program, monkeypatch)
    launches_around(between)(program)
    room = "cuEventRecord" if between is many_edges else ""  # the first call behind the last room, and no others
    assert set(names) <= {"cuLaunchKernel", room}
    assert names.count("cuLaunchKernel") == 2
    verdict, findings, gaps, _ = program.outcome()
    assert (verdict, bool(findings)) == (("clean", False) if ORDERED[between] else ("violations", True))
    assert not gaps


def a_foreign_kernel_beside(program: Program) -> None:
    program.foreign(STREAMS[3], 10)
    program.call("cuEventRecord", EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[2])


def two_foreign_kernels(program: Program) -> None:
    """The second of them is beside the launch, the first is before it."""
    program.foreign(STREAMS[1])
    program.foreign(STREAMS[3])
    program.launch(STREAMS[1], "exchanges", 1)


def foreign_behind_the_event(program: Program) -> None:
    program.foreign(STREAMS[3])
    program.call("cuEventRecord", EVENT, STREAMS[3])
    program.foreign(STREAMS[3])
    program.wait(EVENT, STREAMS[1])
    program.wait(EVENT, STREAMS[2])


@pytest.mark.parametrize("between", [a_foreign_kernel_beside, foreign_behind_the_event])
def test_a_kernel_that_is_noted_is_named(between: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    program = begun(monkeypatch, note=True)
    launches_around(between)(program)
    assert "all accesses of fast are not known" in str(program.outcome()[2])


def test_what_python_does_not_know_is_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose name it does not have, a stream that it has not seen, a copy whose line it wants, and a capture."""
    program = begun(monkeypatch, note=True)
    names = heard(program, monkeypatch)
    for _ in range(3):
        program.foreign(STREAMS[1], 11)  # from the second one on it is known
        program.call("cuEventRecord", EVENT, STREAMS[1])
        program.call("cuEventRecord", EVENT, 0x400)
    program.memset(STREAMS[1])
    program.call("cuMemcpyDtoH", 0x1000, 0x2000, 64)
    assert names == ["cuLaunchKernel", "cuEventRecord", "cuMemsetD8Async", "cuMemcpyDtoH"]
    program.call("cuStreamBeginCapture", STREAMS[1], 0)
    program.call("cuEventRecord", EVENT, STREAMS[2])
    program.call("cuStreamEndCapture", STREAMS[1], 0)
    program.call("cuEventRecord", EVENT, STREAMS[2])
    assert names[4:] == ["cuStreamBeginCapture", "cuEventRecord", "cuStreamEndCapture"]


def test_a_stream_that_is_gone_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls for the old one come before, and the new one is another stream."""
    outcomes = []
    for note in (False, True):
        with monkeypatch.context() as inside:
            program = begun(inside, note=note)
            program.launch(STREAMS[1], "exchanges", 1)
            program.call("cuEventRecord", EVENT, STREAMS[1])
            program.call("cuStreamDestroy", STREAMS[1])
            program.stream(STREAMS[1])
            program.call("cuEventRecord", EVENT + 1, STREAMS[1])
            program.wait(EVENT + 1, STREAMS[2])
            program.launch(STREAMS[2], "exchanges", 1, out=4)
            program.wait(EVENT, STREAMS[3])
            program.launch(STREAMS[3], "exchanges", 1, out=8)
            outcomes.append(program.outcome())
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == "violations"


def graphs_in_turn(program: Program) -> None:
    """The second time nothing is new; behind the event they are beside the launch."""
    executables = [graph(program, number) for number in range(2)]
    for _ in range(3):
        for each in executables:
            program.call("cuGraphLaunch", each, STREAMS[3])
    program.call("cuEventRecord", EVENT, STREAMS[3])
    program.wait(EVENT, STREAMS[2])
    for each in executables:
        program.call("cuGraphLaunch", each, STREAMS[3])
    program.launch(STREAMS[2], "fills", 0, out=8)


def test_graphs_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for note in (False, True):
        with monkeypatch.context() as inside:
            program = begun(inside, note=note)
            names = heard(program, inside)
            graphs_in_turn(program)
            outcomes.append(program.outcome())
    assert names.count("cuGraphLaunch") == 0
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == "violations"


def test_nothing_is_heard_where_the_order_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what may change a graph. What frees memory is noted."""
    program = begun(monkeypatch, note=True)
    names = heard(program, monkeypatch)
    program.call("cuEventRecordWithFlags", EVENT, STREAMS[1], 1)
    program.framework.session.followed.read_noted()
    for _ in range(3):
        program.foreign(STREAMS[1], 12)
        program.memset(STREAMS[2])
        program.call("cuEventRecord", EVENT, 0x400)
        program.call("cuMemFree", 0x5000)
    program.call("cuGraphKernelNodeSetParams", 0x77)
    assert names == ["cuGraphKernelNodeSetParams"]
    program.launch(STREAMS[1])
    program.launch(STREAMS[2])
    assert "a node of a graph records an event" in str(program.outcome()[2])


def random_steps(seed: int) -> list[tuple[object, ...]]:
    """Calls of a program. C can note most of them."""
    rng = random.Random(seed)
    streams, events = lambda: rng.choice(STREAMS), lambda: rng.choice(EVENTS)
    makers: dict[Callable[[], tuple[object, ...]], int] = {
        lambda: ("launch", streams(), rng.choice(["fills", "exchanges"]), 1, rng.choice([0, 4, 1024])): 4,
        lambda: ("foreign", streams(), rng.choice((*KERNELS, 11))): 4,
        lambda: ("call", "cuEventRecord", events(), streams()): 8,
        lambda: ("wait", events(), streams()): 8,
        lambda: ("call", "cuStreamSynchronize", streams()): 1,
        lambda: ("call", rng.choice(["cuEventQuery", "cuEventSynchronize", "cuEventDestroy"]), events()): 1,
        lambda: ("call", "cuCtxSynchronize"): 0,
        lambda: ("memset", streams()): 1,
        lambda: ("call", "cuGraphLaunch", rng.choice((0x6000, 0x6001)), streams()): 4,
    }
    return [make() for make in rng.choices(list(makers), list(makers.values()), k=rng.randint(10, 40))]


def compared(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The findings of the same calls, heard at once and noted."""
    outcomes = []
    for note in (False, True):
        with monkeypatch.context() as inside:
            program = begun(inside, note=note)
            for number in range(2):
                graph(program, number)
            for method, *given in random_steps(seed):
                getattr(program, str(method))(*given)
            outcomes.append(program.outcome())
    return outcomes


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 100))])
def test_random_calls_mean_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, noted = compared(seed, monkeypatch)
    assert noted == heard


def foreign_at_the_end(program: Program) -> None:
    """No launch that is compared stands behind it."""
    program.launch(STREAMS[2], "exchanges", 1)
    program.foreign(STREAMS[3])


def foreign_behind_an_edge(program: Program) -> None:
    """The second launch of the kernel is behind the edge, and beside the other stream's."""
    program.foreign(STREAMS[3], 11)  # heard at once: those behind it in its stream are passed over
    program.call("cuEventRecord", EVENT, STREAMS[3])
    program.wait(EVENT, STREAMS[1])
    program.foreign(STREAMS[3], 11)
    program.launch(STREAMS[1], "exchanges", 1)


def called_by_another_thread(program: Program) -> None:
    """Between the driver's call and the place of its launch in the order."""
    program.launch(STREAMS[1], "exchanges", 1)
    backend, known = program.framework.backend, program.framework.backend.launch

    def launch(*given: Any, **options: Any) -> None:
        known(*given, **options)
        an_edge(program)

    backend.launch = launch  # type: ignore[method-assign]
    program.launch(STREAMS[2], "exchanges", 1, out=4)


_APPENDS: Final = "(last && memcmp(last, call, sizeof *call) == 0) || append(filter, call)"
_READS: Final = "if not self.noting:\n                self.read_noted()"
_ROOM: Final = "if (filter->count == MOST_NOTED) return "
# Faults in calls.c or in a module: the text, its replacement, and the program that shows the fault.
FAULTS: dict[str, tuple[ModuleType | None, str, str, Case]] = {
    "an event is lost": (None, _APPENDS, f"call->words[1] == 0x100 || {_APPENDS}", launches_around(recorded_again_at_last)),
    "a wait is lost": (None, _APPENDS, f"call->kind == EVENT_WAIT || {_APPENDS}", launches_around(an_edge)),
    "two streams are one": (None, "last->words[1] == call->words[1]", "last->kind", two_foreign_kernels),
    "events of two streams are one": (
        None,
        "memcmp(last, call, sizeof *call)",
        "memcmp(last, call, 16)",
        launches_around(recorded_again_before),
    ),
    "what has no room is lost": (None, f"{_ROOM}false;", f"{_ROOM}true;", launches_around(many_edges)),
    "graphs behind an event are dropped": (
        None,
        "if ((before->kind != GRAPH && before->kind != LAUNCH) || before->words[1] != call->words[1]) return false;",
        "",
        graphs_in_turn,
    ),
    "own launches are noted": (None, "made_launches > 0 ? NULL : seen_kernel", "seen_kernel", launches_around(nothing_is_freed)),
    "launches behind an event are dropped": (
        None,
        "    store(&filter->stream, UINT64_MAX);\n    bool done = (uintptr_t)",
        "    bool done = (uintptr_t)",
        foreign_behind_an_edge,
    ),
    "calls are read behind a launch": (followed_streams, _READS, "", called_by_another_thread),
}


def broken(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """A fault in calls.c."""
    text = FILTER.sources()["calls.c"]
    assert text.count(old) == 1, old
    changed = {**FILTER.generated(), "calls.c": text.replace(old, new)}
    monkeypatch.setattr(call_filter, "FILTER", replace(FILTER, generated=lambda: changed))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[name]
    outcomes = []
    for faulty in (False, True):
        with monkeypatch.context() as inside:
            if faulty:
                broken(inside, old, new) if module is None else plant(inside, module, old, new)
            program = begun(inside, note=True)
            case(program)
            outcomes.append(program.outcome())
    assert outcomes[0] != outcomes[1]
