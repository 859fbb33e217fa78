"""Graphs of a program on the stand-in driver: captured, or made node by node; what is in order, and what is compared."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from reversed_tile import HEADER
from test_libcuda import Program, Word

from consan.libcuda import calls, host_calls, library
from consan.session.session import Session

# Each thread adds one to its number in memory.
ADD = """.visible .entry add(.param .u64 to) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


class Graphs(Program):
    """A program with a kernel, memory, and three streams."""

    def __init__(self) -> None:
        super().__init__()
        module = self("cuModuleLoadData", ctypes.c_char_p((HEADER + ADD).encode()))
        self.kernel, self.memory = self("cuModuleGetFunction", module, ctypes.c_char_p(b"add")), self("cuMemAlloc_v2", 512)
        self.do("cuMemsetD32_v2", self.memory, 0, 128)
        self.do("cuCtxSynchronize")
        self.origin, self.other, self.third = (self("cuStreamCreate", 1) for _ in range(3))
        self.event = self("cuEventCreate", 2)

    @contextlib.contextmanager
    def kernel_words(self) -> Iterator[ctypes.Array[Word]]:
        """The parameters of a node that launches the kernel: the call reads them."""
        address = Word(self.memory)
        places = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        yield (Word * 8)(self.kernel, 1 | 1 << 32, 1 | 128 << 32, 1 | 1 << 32, 0, ctypes.addressof(places), 0, 0)

    def add(self, stream: int) -> None:
        assert self.launch(self.kernel, self.memory, stream=stream) == 0

    def let(self, second: int, first: int) -> None:
        self.do("cuEventRecord", self.event, first)
        self.do("cuStreamWaitEvent", second, self.event, 0)

    def ended(self) -> int:
        graph = Word()
        self.do("cuStreamEndCapture", self.origin, ctypes.byref(graph))
        return self("cuGraphInstantiateWithFlags", graph.value, 0)

    @property
    def counted(self) -> set[int]:
        found = np.zeros(128, np.uint32)
        self.do("cuCtxSynchronize")
        self.do("cuMemcpyDtoH_v2", found.ctypes.data, self.memory, 512)
        return {*found.tolist()}


@pytest.fixture
def program(session: Session) -> Iterator[Graphs]:
    library.enter(session)
    yield Graphs()
    library.leave()


@pytest.mark.parametrize("racy", [False, True])
def test_a_captured_fork_is_compared_when_the_graph_is_launched(program: Graphs, session: Session, racy: bool) -> None:
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.let(program.other, program.origin)
    program.add(program.other)
    if not racy:
        program.let(program.origin, program.other)
    program.add(program.origin)
    program.let(program.origin, program.other)
    executable = program.ended()
    assert program.counted == {0}
    for _ in range(2):
        program.do("cuGraphLaunch", executable, program.third)
    assert program.counted == {4}
    report = session.report()
    assert (report.verdict, {each.kind for each in report.findings}) == (("violations", {"global-race"}) if racy else ("clean", set()))


def test_launches_of_a_graph_in_two_streams_are_in_order(program: Graphs, session: Session) -> None:
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.add(program.origin)
    executable = program.ended()
    for stream in (program.other, program.third):
        program.do("cuGraphLaunch", executable, stream)
    assert (program.counted, session.report().verdict) == ({2}, "clean")


def test_a_launch_beside_a_graph_is_compared_with_it(program: Graphs, session: Session) -> None:
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.add(program.origin)
    program.do("cuGraphLaunch", program.ended(), program.other)
    program.add(program.third)
    assert {each.kind for each in session.report().findings} == {"global-race"}


@pytest.mark.parametrize("racy", [False, True])
def test_a_graph_that_is_made_node_by_node(program: Graphs, session: Session, racy: bool) -> None:
    graph = program("cuGraphCreate", 0)
    fill = (Word * 5)(program.memory, 0, 5 | 4 << 32, 128, 1)
    first = program("cuGraphAddMemsetNode", graph, 0, 0, fill, 0)
    with program.kernel_words() as words:
        second = program("cuGraphAddKernelNode_v2", graph, 0, 0, words)
    if not racy:
        program.do("cuGraphAddDependencies", graph, (Word * 1)(first), (Word * 1)(second), 1)
    graph = program("cuGraphClone", graph)
    program.do("cuGraphLaunch", program("cuGraphInstantiateWithFlags", graph, 0), program.origin)
    assert racy or program.counted == {6}
    report = session.report()
    assert (report.verdict, {each.kind for each in report.findings}) == (("violations", {"global-race"}) if racy else ("clean", set()))


def copy_words(to: int, source: int, *, pitch: int, width: int, height: int, depth: int = 1, x: int = 0) -> ctypes.Array[Word]:
    """A CUDA_MEMCPY3D between two places of the device. `x`: bytes that its source is behind the beginning of each row."""
    of_source = (x, 0, 0, 0, 2, 0, source, 0, 0, pitch, height)
    return (Word * 25)(*of_source, 0, 0, 0, 0, 2, 0, to, 0, 0, pitch, height, width, height, depth)


@pytest.mark.parametrize("racy", [False, True])
def test_a_node_that_copies(program: Graphs, session: Session, racy: bool) -> None:
    graph, other = program("cuGraphCreate", 0), program("cuMemAlloc_v2", 512)
    with program.kernel_words() as words:
        node = program("cuGraphAddKernelNode_v2", graph, 0, 0, words)
    copy = copy_words(other, program.memory, pitch=512, width=512, height=1)
    program("cuGraphAddMemcpyNode", graph, (Word * 1)(node), 0 if racy else 1, copy, 0)
    program.do("cuGraphLaunch", program("cuGraphInstantiateWithFlags", graph, 0), program.origin)
    program.do("cuCtxSynchronize")
    found = np.zeros(128, np.uint32)
    program.do("cuMemcpyDtoH_v2", found.ctypes.data, other, 512)
    assert {(each.kind, each.hazard) for each in session.report().findings} == ({("global-race", "RAW")} if racy else set())
    assert racy or set(found.tolist()) == {1}


@pytest.mark.parametrize("edges", ["all", "no allocation", "no use"])
def test_nodes_that_allocate_and_free(program: Graphs, session: Session, edges: str) -> None:
    graph, params = program("cuGraphCreate", 0), (Word * 15)()
    params[13] = 512
    allocation = program("cuGraphAddMemAllocNode", graph, 0, 0, params)
    fill = (Word * 5)(params[14], 0, 5 | 4 << 32, 128, 1)
    use = program("cuGraphAddMemsetNode", graph, (Word * 1)(allocation), 0 if edges == "no allocation" else 1, fill, 0)
    last = allocation if edges == "no use" else use
    program("cuGraphAddMemFreeNode", graph, (Word * 1)(last), 1, params[14])
    executable = program("cuGraphInstantiateWithFlags", graph, 0)
    for stream in (program.origin, program.other):
        program.do("cuGraphLaunch", executable, stream)
    assert {each.kind for each in session.report().findings} == (set() if edges == "all" else {"global-race"})


def test_what_a_capture_does_not_permit(program: Graphs) -> None:
    status = ctypes.c_int()
    assert program.code("cuStreamBeginCapture_v2", 0, 0) == calls.CAPTURE_UNSUPPORTED, "the default stream"
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.do("cuStreamIsCapturing", program.origin, ctypes.byref(status))
    assert (status.value, program.code("cuStreamSynchronize", program.origin)) == (1, calls.CAPTURE_UNSUPPORTED)
    assert program.code("cuLaunchHostFunc", program.origin, None, None) == calls.INVALID_VALUE
    assert program.code("cuStreamAddCallback", program.origin, ctypes.c_void_p(8), None, 0) == calls.CAPTURE_UNSUPPORTED
    program.let(program.other, program.origin)
    assert program.code("cuEventSynchronize", program.event) == calls.CAPTURED_EVENT
    program.add(program.other)
    assert program.code("cuStreamEndCapture", program.other, ctypes.byref(Word())) == calls.CAPTURE_UNMATCHED
    assert program.code("cuStreamEndCapture", program.origin, ctypes.byref(Word())) == calls.CAPTURE_UNJOINED
    program.do("cuStreamIsCapturing", program.origin, ctypes.byref(status))
    assert status.value == 0


@pytest.mark.parametrize("order", ["", "a function of the host", "a function of a runtime", "its stream"])
def test_a_function_of_the_host_orders_its_stream_alone(
    program: Graphs, session: Session, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host may wait for a value that a function stores, and nobody sees that. XLA does so for its own functions."""
    monkeypatch.setattr(host_calls, "is_of_runtime", lambda function: order == "a function of a runtime")
    called: list[object] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
    program.add(program.origin)
    if order:
        program.do("cuLaunchHostFunc", program.origin, function, None)
    program.add(program.origin if order == "its stream" else program.other)
    report = session.report()
    assert report.verdict == {"": "violations", "a function of the host": "incomplete"}.get(order, "clean")
    assert called == [None] * bool(order)


def test_a_captured_function_of_the_host_runs_with_its_graph(program: Graphs) -> None:
    called: list[object] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.do("cuLaunchHostFunc", program.origin, function, None)
    executable = program.ended()
    assert called == []
    for _ in range(2):
        program.do("cuGraphLaunch", executable, program.third)
    assert called == [None, None]


def test_a_graph_keeps_objects_of_the_program(program: Graphs) -> None:
    """As cuda.core does for the arguments of a node: each object has a handle of its own, and is there as long as its graph is."""
    graph = program("cuGraphCreate", 0)
    objects = [program("cuUserObjectCreate", 0, 0, 1, 1) for _ in range(2)]
    assert 0 != objects[0] != objects[1]
    for each in objects:
        program.do("cuUserObjectRetain", each, 1)
        program.do("cuGraphRetainUserObject", graph, each, 1, 1)
        program.do("cuUserObjectRelease", each, 1)
        program.do("cuGraphReleaseUserObject", graph, each, 1)
    program.do("cuGraphDestroy", graph)
