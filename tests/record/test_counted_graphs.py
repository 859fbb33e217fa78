"""Nodes that are only counted: the calls of the driver say it, and the graph is that of the program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cupti_support import Cupti
from leaving_support import slow_clock
from planted import plant
from streams_support import Streams
from test_background import Framework
from test_known_nodes import STREAM, launch, warm

from consan.backends import callbacks
from consan.backends.callbacks import DriverCalls
from consan.session import known_in_graphs
from consan.session.comparing import counted_graphs
from consan.session.comparing.driver_calls import LAYOUTS
from consan.session.executing import graph_nodes

ADDS = """
extern "C" __global__ void adds(unsigned* out, int number) { out[blockIdx.x * 96 + threadIdx.x] = number + threadIdx.x; }
extern "C" __global__ void waits(unsigned* out, int racy) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    if (!racy) __syncthreads();
    out[blockIdx.x * 96 + threadIdx.x] = values[95 - threadIdx.x];
}
"""
EXECUTABLE, OTHER = 0x5000, 0x5100
MORE = ("cuGraphAddNode", "cuGraphAddNode_v2")


class Program:
    """A program that captures graphs and launches them. Its calls are reported; what a graph does on the device is not of interest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slow_clock(monkeypatch)
        self.cupti = Cupti(names=(*LAYOUTS, *MORE))
        monkeypatch.setattr(callbacks, "libraries", lambda: ["cupti"])
        monkeypatch.setattr(callbacks, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda _: self.cupti}))
        monkeypatch.setattr(DriverCalls, "kernel", lambda *_: "fast")
        monkeypatch.setattr(DriverCalls, "blocks", lambda *_: False)
        backend = Streams()
        self.calls = backend.calls = DriverCalls()  # type: ignore[assignment]
        self.framework = Framework(backend, ADDS, global_memory="auto")
        self.graphs = 0x4000

    def call(self, name: str, *words: int) -> None:
        self.cupti.called(name, *words)

    def made(self, name: str, handle: int, *words: int) -> int:
        """A call that writes a handle to the address that is its first parameter."""
        there = ctypes.c_uint64(handle)
        self.call(name, ctypes.addressof(there), *words)
        return handle

    def capture(self, *numbers: int, entry: str = "waits", nodes: int = 1) -> int:
        """A graph of a launch with each of these numbers. `nodes`: what each puts into the stream."""
        self.call("cuStreamBeginCapture", STREAM, 0)
        self.framework.backend.captured[STREAM] = []
        for number in numbers:
            launch(self.framework, number, STREAM, entry)
        put = self.framework.backend.captured.pop(STREAM)
        assert len(put) == nodes * len(numbers)
        self.graphs += 0x10
        there = ctypes.c_uint64(self.graphs)
        self.call("cuStreamEndCapture", STREAM, ctypes.addressof(there))
        return self.graphs

    def instantiate(self, graph: int, executable: int = EXECUTABLE) -> None:
        self.made("cuGraphInstantiateWithFlags", executable, graph, 0)

    def replay(self, times: int, executable: int = EXECUTABLE, stream: int = 0) -> None:
        for _ in range(times):
            self.call("cuGraphLaunch", executable, stream)

    def launches(self) -> int:
        report = self.framework.session.report()
        assert report.verdict == "clean", report.incomplete
        return sum(kernel.launches for kernel in report.kernels)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def warmed(program: Program, entry: str = "waits") -> int:
    """A graph of two launches whose kernel was launched once before."""
    warm(program.framework, entry=entry)
    return program.capture(0, 0, entry=entry)


@pytest.mark.parametrize("entry", ["waits", "adds"])
def test_nothing_stands_beside_the_kernels(entry: str, program: Program) -> None:
    program.instantiate(warmed(program, entry))
    program.replay(5)
    assert program.launches() == 11


@pytest.mark.parametrize("entry", ["waits", "adds"])
def test_each_report_counts_its_own(entry: str, program: Program) -> None:
    program.instantiate(warmed(program, entry))
    program.replay(2)
    first = program.framework.session.take()
    assert first is not None
    assert sum(kernel.launches for kernel in first.kernels) == 5
    program.replay(3)
    assert program.launches() == 6


def test_two_executables_of_one_graph(program: Program) -> None:
    graph = warmed(program)
    program.call("cuGraphDestroy", program.made("cuGraphClone", 0x4800, graph))
    program.instantiate(graph)
    program.instantiate(graph, OTHER)
    program.replay(2)
    program.replay(3, OTHER)
    assert program.launches() == 11


def test_a_copy_and_a_part_of_another_graph(program: Program) -> None:
    graph = warmed(program)
    copy = program.made("cuGraphClone", 0x4800, graph)
    program.made("cuGraphAddChildGraphNode", 0x4900, copy, 0, 0, graph)
    program.instantiate(copy)
    program.replay(3)
    assert program.launches() == 1 + 3 * 4


def test_an_executable_that_becomes_another_graph(program: Program) -> None:
    graph = warmed(program)
    program.instantiate(graph)
    program.replay(2)
    program.call("cuGraphExecUpdate", EXECUTABLE, program.capture(0), 0)
    program.replay(3)
    assert program.launches() == 1 + 2 * 2 + 3


def test_handles_are_used_again(program: Program) -> None:
    """The second graph has none of the nodes of the first."""
    graph = warmed(program)
    program.instantiate(graph)
    program.replay(2)
    program.call("cuGraphExecDestroy", EXECUTABLE)
    program.call("cuGraphDestroy", graph)
    program.replay(7)  # by whoever has the handle now
    program.instantiate(graph)
    program.replay(4)
    assert program.launches() == 5


def test_a_capture_that_did_not_end_leaves_nothing(program: Program) -> None:
    warm(program.framework)
    program.capture(0)
    program.call("cuStreamBeginCapture", STREAM, 0)
    program.framework.backend.captured[STREAM] = []
    launch(program.framework, 0, STREAM)
    program.framework.backend.captured.pop(STREAM)
    program.framework.session.followed.stops("something was not understood")
    program.instantiate(program.capture(0, nodes=2))  # a kernel counts this one, and nothing runs here
    program.replay(3)
    assert sum(kernel.launches for kernel in program.framework.session.report().kernels) == 1


def test_order_is_not_needed(program: Program) -> None:
    """Calls are looked at though launches are not compared any more."""
    graph = warmed(program)
    program.framework.session.followed.stops("something was not understood")
    program.instantiate(graph)
    program.replay(4)
    report = program.framework.session.report()
    assert sum(kernel.launches for kernel in report.kernels) == 9


@pytest.mark.parametrize("how", ["cuGraphAddNode_v2", "cuGraphDestroyNode", "a capture"])
def test_uses_that_are_not_counted(how: str, program: Program) -> None:
    program.instantiate(warmed(program))
    program.replay(2)
    if how == "a capture":
        program.call("cuStreamBeginCapture", STREAM, 0)
        program.replay(1, stream=STREAM)
    else:
        params = ctypes.create_string_buffer(256)  # C looks for a kernel there
        program.call(how, 0x4900, 0, 0, 0, 0, ctypes.addressof(params))
    report = program.framework.session.report()
    assert report.verdict == "incomplete"
    assert any("launches of graphs are not counted" in why for why in report.incomplete)


def test_without_room_they_are_counted_by_a_kernel(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_graphs, "MOST_EXECUTABLES", 0)
    warm(program.framework)
    program.call("cuStreamBeginCapture", STREAM, 0)
    program.framework.backend.captured[STREAM] = []
    launch(program.framework, 0, STREAM)
    assert len(program.framework.backend.captured.pop(STREAM)) == 2


def test_a_racy_launch_has_a_log(program: Program) -> None:
    warm(program.framework)
    program.capture(1, nodes=3)


def test_a_check_that_does_not_stand(program: Program) -> None:
    launch(program.framework, 1)
    program.instantiate(program.capture(1))
    program.replay(3)
    report = program.framework.session.report()
    assert "3 launches of waits could not be recorded" in " ".join(report.incomplete)


FAULTS: dict[str, tuple[Any, str, str, Callable[..., None]]] = {
    "not counted": (counted_graphs, "node.launches += times", "pass", test_an_executable_that_becomes_another_graph),
    "in later reports again": (graph_nodes, "known.counted, launches", "0, launches", test_each_report_counts_its_own),
    "copies": (
        counted_graphs,
        "self._has(values[0], self._graphs.get(values[1], ()))",
        "pass",
        test_a_copy_and_a_part_of_another_graph,
    ),
    "parts": (counted_graphs, "self._graphs.get(values[1], ()) + self", "self", test_a_copy_and_a_part_of_another_graph),
    "a graph that is gone": (counted_graphs, "self._graphs.pop(values[0], None)", "pass", test_handles_are_used_again),
    "an executable that is gone": (counted_graphs, "self._becomes(values[0], ())", "pass", test_handles_are_used_again),
    "an executable that becomes another": (
        counted_graphs,
        "        self._take(executable)\n        self._executables.pop",
        "        self._executables.pop",
        test_an_executable_that_becomes_another_graph,
    ),
    "a capture that did not end": (counted_graphs, "self._left(values[0])", "pass", test_a_capture_that_did_not_end_leaves_nothing),
    "nodes are added": (counted_graphs, 'call.name.removesuffix("_v2")', '""', test_uses_that_are_not_counted),
    "no room": (counted_graphs, " and len(self._used) < MOST_EXECUTABLES", "", test_without_room_they_are_counted_by_a_kernel),
    "what it adds": (
        known_in_graphs,
        "            count(times)\n",
        "            pass\n",
        test_each_report_counts_its_own,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, test = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        test(program=program, **_given(test, monkeypatch))


def _given(test: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    given = {"entry": "adds", "how": "cuGraphAddNode_v2", "monkeypatch": monkeypatch}
    return {name: value for name, value in given.items() if name in test.__code__.co_varnames[: test.__code__.co_argcount]}
