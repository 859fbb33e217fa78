"""Conditional nodes of graphs on the stand-in driver: what runs, and a condition that is set in no order with its node."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace

import pytest
from reversed_tile import HEADER
from test_graphs import ADD, Graphs
from test_libcuda import Program, Word

from consan.libcuda import calls, library
from consan.libcuda.graphs.conditional_calls import IF, SWITCH, WHILE
from consan.session.session import Session

KERNEL, CONDITIONAL, ASSIGNS_DEFAULT = 0, 13, 1
# Each launch sets the condition to what is left of the first number in memory, which is one less then.
DECIDE = """.extern .func cudaGraphSetConditional
(
    .param .b64 handle,
    .param .b32 value
)
;
.visible .entry decide(.param .u64 to, .param .u64 condition) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [condition];
    ld.global.u32 %r1, [%rd1];
    sub.u32 %r2, %r1, 1;
    st.global.u32 [%rd1], %r2;
    {
    .param .b64 param0;
    st.param.b64 [param0], %rd2;
    .param .b32 param1;
    st.param.b32 [param1], %r2;
    call.uni
    cudaGraphSetConditional,
    (
    param0,
    param1
    );
    }
    ret;
}
"""


class ConditionalGraphs(Graphs):
    """A graph with a condition, a kernel that sets it, and a number from which that counts down."""

    def __init__(self) -> None:
        super().__init__()
        module = self("cuModuleLoadData", ctypes.c_char_p((HEADER + DECIDE).encode()))
        self.decide, self.number = self("cuModuleGetFunction", module, ctypes.c_char_p(b"decide")), self("cuMemAlloc_v2", 4)
        self.graph = self("cuGraphCreate", 0)
        self.condition = self("cuGraphConditionalHandleCreate", self.graph, 0, 1, ASSIGNS_DEFAULT)

    def add_kernel(self, graph: int, kernel: int, *values: int, after: int = 0) -> int:
        words = [Word(value) for value in values]
        places = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        threads = 1 if kernel == self.decide else 128
        shape = (1 | 1 << 32, 1 | threads << 32, 1 | 1 << 32, 0)
        return self._added(graph, after, KERNEL, kernel, *shape, ctypes.addressof(places), 0, 0)

    def conditional(self, kind: int, count: int, after: int = 0) -> list[int]:
        """The graphs of a new node."""
        self._added(self.graph, after, CONDITIONAL, self.condition, kind | count << 32, 0, 0)
        return list((Word * count).from_address(self.params[4]))

    def _added(self, graph: int, after: int, kind: int, *words: int) -> int:
        self.params = (Word * 32)(kind, 0, *words)
        return self("cuGraphAddNode_v2", graph, (Word * 1)(after), 0, 1 if after else 0, self.params)

    def ran(self, number: int) -> set[int]:
        """The numbers that the kernel has counted, once the graph has run from this one."""
        self.do("cuMemsetD32_v2", self.number, number, 1)
        self.do("cuCtxSynchronize")
        self.do("cuGraphLaunch", self("cuGraphInstantiateWithFlags", self.graph, 0), self.origin)
        return self.counted


@pytest.fixture
def program(session: Session) -> Iterator[ConditionalGraphs]:
    library.enter(session)
    yield ConditionalGraphs()
    library.leave()


def test_a_while_node_runs_as_long_as_its_graph_sets_the_condition(program: ConditionalGraphs, session: Session) -> None:
    (body,) = program.conditional(WHILE, 1)
    node = program.add_kernel(body, program.kernel, program.memory)
    program.add_kernel(body, program.decide, program.number, program.condition, after=node)
    assert (program.ran(3), program.ran(2)) == ({3}, {5}), "the default value is set at each launch"
    assert session.report().verdict == "clean"


@pytest.mark.parametrize("racy", [False, True])
def test_the_order_of_a_node_and_what_sets_its_condition(program: ConditionalGraphs, session: Session, racy: bool) -> None:
    node = program.add_kernel(program.graph, program.decide, program.number, program.condition)
    (body,) = program.conditional(IF, 1, after=0 if racy else node)
    program.add_kernel(body, program.kernel, program.memory)
    assert program.ran(2) == {1}
    report = session.report()
    assert (report.verdict, {each.kind for each in report.findings}) == (("violations", {"global-race"}) if racy else ("clean", set()))


@pytest.mark.parametrize(("kind", "value", "expected"), [(IF, 1, 1), (IF, 0, 2), (SWITCH, 0, 1), (SWITCH, 1, 2), (SWITCH, 2, 0)])
def test_which_of_two_graphs_runs(program: ConditionalGraphs, session: Session, kind: int, value: int, expected: int) -> None:
    node = program.add_kernel(program.graph, program.decide, program.number, program.condition)
    first, second = program.conditional(kind, 2, after=node)
    program.add_kernel(first, program.kernel, program.memory)
    for _ in range(2):
        node = program.add_kernel(second, program.kernel, program.memory, after=0 if _ == 0 else node)
    assert (program.ran(value + 1), session.report().verdict) == ({expected}, "clean")


def test_two_nodes_of_a_body_without_an_order_are_compared(program: ConditionalGraphs, session: Session) -> None:
    (body,) = program.conditional(IF, 1)
    for _ in range(2):
        program.add_kernel(body, program.kernel, program.memory)
    program.ran(1)
    assert {each.kind for each in session.report().findings} == {"global-race"}


@pytest.mark.parametrize("kind", [IF, "child"])
def test_graphs_within_two_executables_are_in_no_order(program: ConditionalGraphs, session: Session, kind: int | str) -> None:
    """Each executable graph has its own copy of the graphs that its nodes launch."""
    if kind == "child":
        body = program("cuGraphCreate", 0)
        program.add_kernel(body, program.kernel, program.memory)
        program("cuGraphAddChildGraphNode", program.graph, 0, 0, body)
    else:
        (body,) = program.conditional(IF, 1)
        program.add_kernel(body, program.kernel, program.memory)
    for stream in (program.origin, program.other):
        program.do("cuGraphLaunch", program("cuGraphInstantiateWithFlags", program.graph, 0), stream)
    kernels = {each.kernel for each in session.report().findings if each.kind == "global-race"}
    assert "add" in kernels


def test_what_a_conditional_node_does_not_permit(program: ConditionalGraphs) -> None:
    def code(condition: int, kind: int, count: int) -> int:
        return program.code(
            "cuGraphAddNode_v2", ctypes.byref(Word()), program.graph, 0, 0, 0, (Word * 32)(13, 0, condition, kind | count << 32)
        )

    assert [code(program.condition, WHILE, 2), code(program.condition, IF, 3), code(program.condition, 3, 1)] == [calls.INVALID_VALUE] * 3
    assert code(program.memory, IF, 1) == calls.INVALID_HANDLE


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("racy", [False, True])
def test_edges_of_both_versions(program: ConditionalGraphs, session: Session, newest: bool, racy: bool) -> None:
    first, second = (program.add_kernel(program.graph, program.kernel, program.memory) for _ in range(2))
    if not racy:
        edges = (0, 1) if newest else (1,)
        program.do("cuGraphAddDependencies_v2", program.graph, (Word * 1)(first), (Word * 1)(second), *edges)
    program.ran(1)
    assert {each.kind for each in session.report().findings} == ({"global-race"} if racy else set())


def test_a_node_that_a_capture_goes_on_behind(program: ConditionalGraphs, session: Session) -> None:
    """As the runtime's manual adds nodes to a graph that is captured."""
    status, graph, ends, count = ctypes.c_int(), Word(), Word(), Word()
    program.do("cuStreamBeginCapture_v2", program.origin, 0)
    program.add(program.origin)
    program.do(
        "cuStreamGetCaptureInfo_v3",
        program.origin,
        ctypes.byref(status),
        0,
        ctypes.byref(graph),
        ctypes.byref(ends),
        0,
        ctypes.byref(count),
    )
    (node,) = (Word * count.value).from_address(ends.value)
    added = program.add_kernel(graph.value, program.kernel, program.memory, after=node)
    program.do("cuStreamUpdateCaptureDependencies_v2", program.origin, (Word * 1)(added), 0, 1, 1)
    program.add(program.origin)
    program.do("cuGraphLaunch", program.ended(), program.third)
    assert (program.counted, session.report().verdict) == ({3}, "clean")


def test_nodes_without_an_order_in_a_program_that_makes_no_stream(session: Session) -> None:
    library.enter(session)
    try:
        program = Program()
        module = program("cuModuleLoadData", ctypes.c_char_p((HEADER + ADD).encode()))
        memory, graph, child = program("cuMemAlloc_v2", 512), program("cuGraphCreate", 0), program("cuGraphCreate", 0)
        address = Word(memory)
        places = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        kernel = program("cuModuleGetFunction", module, ctypes.c_char_p(b"add"))
        words = (Word * 8)(kernel, 1 | 1 << 32, 1 | 128 << 32, 1 | 1 << 32, 0, ctypes.addressof(places), 0, 0)
        program("cuGraphAddKernelNode_v2", child, 0, 0, words)
        program("cuGraphAddChildGraphNode", graph, 0, 0, child)
        program("cuGraphAddMemsetNode", graph, 0, 0, (Word * 5)(memory, 0, 5 | 4 << 32, 128, 1), 0)
        program.do("cuGraphLaunch", program("cuGraphInstantiateWithFlags", graph, 0), 0)
        report = session.report()
    finally:
        library.leave()
    assert (report.verdict, {each.kind for each in report.findings}) == ("violations", {"global-race"}), report.incomplete


@pytest.mark.parametrize("racy", [False, True])
def test_a_condition_within_a_body(program: ConditionalGraphs, session: Session, racy: bool) -> None:
    """The inner node's graph runs in each round, as its condition is the number that is left."""
    (body,) = program.conditional(WHILE, 1)
    outer, program.graph, graph = program.condition, body, program.graph
    inner = program.condition = program("cuGraphConditionalHandleCreate", body, 0, 0, 0)
    node = program.add_kernel(body, program.decide, program.number, inner)
    (of_inner,) = program.conditional(IF, 1, after=0 if racy else node)
    program.add_kernel(of_inner, program.kernel, program.memory)
    program.add_kernel(body, program.decide, program.number, outer, after=node)
    program.graph = graph
    counted = program.ran(6)
    assert racy or counted == {3}, "6 becomes 4, 2, 0"
    report = session.report()
    assert (report.verdict, {each.kind for each in report.findings}) == (("violations", {"global-race"}) if racy else ("clean", set()))


@pytest.mark.parametrize("racy", [False, True])
def test_nodes_of_events_order_two_graphs(program: ConditionalGraphs, session: Session, racy: bool) -> None:
    second = program("cuGraphCreate", 0)
    node = program.add_kernel(program.graph, program.kernel, program.memory)
    program("cuGraphAddEventRecordNode", program.graph, (Word * 1)(node), 0 if racy else 1, program.event)
    wait = program("cuGraphAddEventWaitNode", second, 0, 0, program.event)
    program.add_kernel(second, program.kernel, program.memory, after=wait)
    for graph, stream in ((program.graph, program.origin), (second, program.other)):
        program.do("cuGraphLaunch", program("cuGraphInstantiateWithFlags", graph, 0), stream)
    assert {each.kind for each in session.report().findings} == ({"global-race"} if racy else set())


@pytest.mark.parametrize("change", ["", "an edge goes", "a node goes", "a node fills"])
def test_nodes_and_edges_that_change(program: ConditionalGraphs, session: Session, change: str) -> None:
    graph = program.graph
    first = program.add_kernel(graph, program.kernel, program.memory)
    second = program.add_kernel(graph, program.kernel, program.memory, after=first)
    if change == "an edge goes":
        program.do("cuGraphRemoveDependencies_v2", graph, (Word * 1)(first), (Word * 1)(second), 0, 1)
    if change == "a node goes":
        program.do("cuGraphDestroyNode", first)
    if change == "a node fills":
        program.do("cuGraphNodeSetParams", second, (Word * 32)(2, 0, program.memory, 0, 7 | 4 << 32, 128, 1))
    roots, count = (Word * 2)(), Word(2)
    program.do("cuGraphGetRootNodes", graph, roots, ctypes.byref(count))
    assert [*roots][: count.value] == {"an edge goes": [first, second], "a node goes": [second]}.get(change, [first])
    before, count = (Word * 2)(), Word(2)
    program.do("cuGraphNodeGetDependencies_v2", second, before, 0, ctypes.byref(count))
    assert [*before][: count.value] == ([first] if change in ("", "a node fills") else [])
    counted = program.ran(1)
    assert change == "an edge goes" or counted == {{"a node goes": 1, "a node fills": 7}.get(change, 2)}
    assert {each.kind for each in session.report().findings} == ({"global-race"} if change == "an edge goes" else set())


def test_edges_of_programmatic_dependents_are_refused(program: ConditionalGraphs, session: Session) -> None:
    first, second = (program.add_kernel(program.graph, program.kernel, program.memory) for _ in range(2))
    ends = (Word * 1)(first), (Word * 1)(second)
    assert program.code("cuGraphAddDependencies_v2", program.graph, *ends, (ctypes.c_ubyte * 8)(1, 0, 1), 1) == calls.NOT_SUPPORTED
    assert program.code("cuGraphNodeGetDependencies_v2", second, 0, (ctypes.c_ubyte * 8)(), ctypes.byref(Word(1))) == calls.NOT_SUPPORTED
    assert session.report().verdict == "incomplete"


def test_a_while_node_that_does_not_end(program: ConditionalGraphs, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing sets the condition: the time limit of a launch ends it."""
    monkeypatch.setattr(session, "options", replace(session.options, timeout=0.2))
    (body,) = program.conditional(WHILE, 1)
    program.add_kernel(body, program.kernel, program.memory)
    executable = program("cuGraphInstantiateWithFlags", program.graph, 0)
    assert program.code("cuGraphLaunch", executable, program.origin) == calls.UNKNOWN
    report = session.report()
    assert report.verdict == "incomplete"
    assert any("did not end within --timeout (0.2 s)" in why for why in report.incomplete), report.incomplete
