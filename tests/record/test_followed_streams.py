"""The order of streams by the calls of the driver: launches of frameworks without an edge are compared, on a GPU that is made up."""

from __future__ import annotations

import ctypes
import os
import re
import threading

import pytest
from followed_programs import EDGES, ENTRY, NO_EDGES, captured, host_function, launched_behind, nothing, two_graphs, two_launches
from framework_support import FakeCalls, Framework, gap
from leaving_support import slow_clock

from consan.session.comparing import concurrent_launches, driver_calls, program_streams
from consan.session.comparing.followed_streams import MOST_EARLY


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)


def kinds(framework: Framework) -> list[str]:
    report = framework.report()
    assert (report.verdict, "global-memory" in report.checked) == (("violations", "clean")[not report.findings], True), gap(report)
    return [finding.kind for finding in report.findings]


@pytest.mark.parametrize("edge", EDGES)
def test_launches_with_an_edge_are_clean(edge: str) -> None:
    assert kinds(two_launches(EDGES[edge])) == []


@pytest.mark.parametrize("of_runtime", [False, True])
def test_a_function_of_the_host_may_show_that_a_launch_is_over(of_runtime: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework's runtime waits for its own ones (XLA)."""
    monkeypatch.setattr(driver_calls, "is_of_runtime", lambda function, process: of_runtime)
    report = two_launches(host_function).report()
    unseen = any("in a way that consan does not see" in why for why in report.incomplete)
    assert (report.verdict, unseen) == (("clean", False) if of_runtime else ("incomplete", True)), report.incomplete


def test_functions_of_a_runtime_are_known_by_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    function = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value
    assert function is not None
    for process, pattern, expected in ((0, "/libc", True), (os.getpid(), "/libc", True), (0, "/libcuda", False)):
        monkeypatch.setattr(program_streams, "RUNTIMES", re.compile(pattern))
        program_streams.is_of_runtime.cache_clear()
        assert program_streams.is_of_runtime(function, process) is expected
    program_streams.is_of_runtime.cache_clear()


@pytest.mark.parametrize("edge", NO_EDGES)
def test_launches_without_an_edge_race(edge: str) -> None:
    framework = two_launches(NO_EDGES[edge])
    assert kinds(framework) == ["global-race"]
    (finding,) = framework.report().findings
    assert (finding.kernel, finding.count, finding.ctas, finding.hazard) == (ENTRY, 127, 2, "WAW")
    assert finding.message.startswith(f"stream 2 does not wait for stream 1: {ENTRY} and {ENTRY} touch the same bytes")
    assert "(cudaEventRecord, cudaStreamWaitEvent)" in finding.fix


@pytest.mark.parametrize(("flags", "ordered"), [(0, True), (1, False)])
def test_the_legacy_default_stream_orders_blocking_streams(flags: int, ordered: bool) -> None:
    assert kinds(two_launches(nothing, flags=flags, default=True)) == ["global-race"] * (not ordered)
    between = two_launches(lambda framework, first, second: framework.calls.call("cuMemsetD8", 1 << 40, 0, 4), flags=flags)
    assert kinds(between) == ["global-race"] * (not ordered)


def test_streams_of_which_nobody_saw_the_beginning() -> None:
    """The driver knows whether they block."""
    for blocking in (True, False):
        framework = Framework(calls=FakeCalls())
        framework.calls.non_blocking |= set() if blocking else {0x77}
        framework.launch(ENTRY, 1, stream=0x77)
        framework.calls.call("cuMemsetD8", 1 << 40, 0, 4)
        framework.launch(ENTRY, 1, stream=framework.calls.stream(0), out=4)
        assert kinds(framework) == ["global-race"] * (not blocking)


def test_a_stream_with_the_handle_of_one_that_is_gone() -> None:
    framework = Framework(calls=FakeCalls())
    first, other = framework.calls.stream(), framework.calls.stream()
    framework.launch(ENTRY, 1, stream=first)
    framework.calls.call("cuStreamDestroy", first)
    framework.launch(ENTRY, 1, stream=first, out=4)
    framework.calls.edge(first, other)
    framework.launch(ENTRY, 1, stream=other, out=8)
    assert framework.report().findings[0].count == 127 + 126  # only the first launch is beside the others
    assert kinds(framework) == ["global-race"]


def test_default_streams_of_threads_are_apart() -> None:
    """While the first thread is there, the second one has another number."""

    def launch() -> None:
        framework.launch(ENTRY, 1, stream=2)
        launched.set()
        ends.wait(30)

    framework, launched, ends = Framework(calls=FakeCalls()), threading.Event(), threading.Event()
    framework.calls.stream()
    thread = threading.Thread(target=launch)
    thread.start()
    launched.wait(30)
    framework.launch(ENTRY, 1, stream=2, out=4)
    ends.set()
    thread.join()
    assert kinds(framework) == ["global-race"]


@pytest.mark.parametrize(
    ("name", "values", "races"),
    [
        ("cuMemcpyDtoHAsync", (1 << 50, 0, 64), True),
        ("cuMemcpyDtoDAsync", (1 << 50, 0, 64), True),
        ("cuMemcpyHtoDAsync", (0, 1 << 50, 64), True),
        ("cuMemcpyHtoDAsync", (1 << 50, 0, 64), True),
        ("cuMemcpyDtoDAsync", (1 << 50, 1 << 51, 64), False),
        ("cuMemsetD32Async", (0, 1, 16), True),
    ],
)
def test_copies_beside_a_launch(name: str, values: tuple[int, int, int], races: bool) -> None:
    """A zero stands for the array that the launch writes."""
    for edge in (False, True):
        framework = Framework(calls=FakeCalls())
        first, second = framework.calls.stream(), framework.calls.stream()
        framework.launch(ENTRY, 1, stream=first)
        if edge:
            framework.calls.edge(first, second)
        memset = name.startswith("cuMemset")
        framework.calls.call(name, values[0] or framework.out, values[1] if memset else values[1] or framework.out, values[2], second)
        assert kinds(framework) == ["global-race"] * (races and not edge)


def test_a_copy_to_pageable_memory_is_waited_for() -> None:
    def copy(framework: Framework, first: int, second: int) -> None:
        framework.calls.pageable.add(1 << 50)
        framework.calls.call("cuMemcpyDtoHAsync", 1 << 50, 1 << 51, 64, first)

    assert kinds(two_launches(copy)) == []


def test_a_kernel_of_which_nothing_is_known() -> None:
    """A library's kernel in another stream: what runs beside it is not compared."""
    for edge in (False, True):
        framework = Framework(calls=FakeCalls())
        first, second = framework.calls.stream(), framework.calls.stream()
        framework.calls.call("cuLaunchKernel", 1, 1, 1, 1, 32, 1, 1, 0, first, 0, 0)
        if edge:
            framework.calls.edge(first, second)
        framework.launch(ENTRY, 1, stream=second)
        report = framework.report()
        why = "and what may run at the same time in another stream: all accesses of fast are not known"
        assert (why in gap(report)) is not edge, gap(report)
        assert report.verdict == "clean"


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("cuStreamWaitValue32", (1, 2, 3), "the program calls cuStreamWaitValue32, whose order is not followed"),
        ("cuStreamBatchMemOp", (), "the program calls cuStreamBatchMemOp"),
        ("cuWaitExternalSemaphoresAsync", (), "the program calls cuWaitExternalSemaphoresAsync"),
        ("cuGraphAddEventRecordNode", (), "the program calls cuGraphAddEventRecordNode"),
        ("cuStreamWaitEvent", (1, 2, 1), "a node of a graph waits for an event"),
    ],
)
def test_nothing_is_compared_where_an_edge_may_be_missing(name: str, values: tuple[int, ...], why: str) -> None:
    framework = two_launches(lambda framework, first, second: framework.calls.call(name, *values))
    report = framework.report()
    assert not report.findings
    assert gap(report).endswith(f"launches of different streams are not compared on a GPU: {why}") or why in gap(report)
    assert (report.verdict, "global-memory" in report.checked) == ("incomplete", False)
    framework.session.take()
    framework.launch(ENTRY, 1)
    assert "global-memory" in framework.report().checked  # one stream


def test_a_wait_for_another_context() -> None:
    assert kinds(two_launches(lambda framework, first, second: framework.calls.call("cuCtxSynchronize", context=2))) == ["global-race"]


def test_where_the_calls_are_not_seen() -> None:
    framework = Framework(calls=FakeCalls("a profiler has subscribed to CUPTI"))
    for stream in (5, 7):
        framework.launch(ENTRY, 1, stream=stream)
    report = framework.report()
    assert report.verdict == "incomplete"
    assert "launches of different streams are not compared on a GPU: a profiler has subscribed to CUPTI" in gap(report)


def test_calls_that_order_nothing_do_not_matter() -> None:
    names = "cuStreamGetFlags cuStreamIsCapturing cuEventCreate cuEventElapsedTime cuGraphGetNodes cuMemAlloc cuModuleLoadData"
    calls = FakeCalls()
    Framework(calls=calls)
    assert not [name for name in names.split() if calls.matters(name)]


def test_one_launch_stands_for_the_early_ones() -> None:
    for edge in (None, 0, 1):
        framework = Framework(calls=FakeCalls())
        events = []
        for _ in range(2):
            for _ in range(3):
                framework.launch("fills")
            events.append(framework.calls.event(0))
        assert len(framework.session.followed.concurrent.timeline.running) == 2
        other = framework.calls.stream()
        if edge is not None:
            framework.calls.call("cuStreamWaitEvent", other, events[edge], 0)
        framework.launch("fills", stream=other)
        why = "all accesses of what the program did before it had a second stream are not known"
        assert (why in gap(framework.report())) is (edge != 1), gap(framework.report())


def test_few_early_operations_are_kept() -> None:
    """The oldest go, and one without known accesses stands for them."""
    framework = Framework(calls=FakeCalls())
    for _ in range(2 * MOST_EARLY):
        framework.calls.call("cuMemsetD8", 1 << 50, 0, 4)
    assert len(framework.session.followed.concurrent.timeline.running) <= MOST_EARLY
    framework.launch("fills", stream=framework.calls.stream())
    assert "all accesses of what the program did before it had a second stream are not known" in gap(framework.report())


def test_a_long_program_leaves_the_oldest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrent_launches, "MOST_OF_PROGRAM", 3)
    framework = Framework(calls=FakeCalls())
    first, second = framework.calls.stream(), framework.calls.stream()
    framework.launch(ENTRY, 1, stream=first)
    for _ in range(3):
        framework.calls.call("cuMemsetD8Async", 1 << 50, 0, 4, first)
    framework.launch(ENTRY, 1, stream=second, out=4)
    report = framework.report()
    assert not report.findings
    assert "it was compared with no later ones" in gap(report)


def test_a_launch_of_which_nothing_is_known_stands_for_those_right_behind_it() -> None:
    """Until an event is recorded, the host waits, or another operation comes between."""
    framework = Framework(calls=FakeCalls())
    first, second = framework.calls.stream(), framework.calls.stream()

    def unknown(stream: int, times: int = 5) -> None:
        for _ in range(times):
            framework.calls.call("cuLaunchKernel", 1, *[1] * 7, stream, 0, 0)

    timeline = framework.session.followed.concurrent.timeline
    unknown(first)
    assert timeline.count == 1
    for between, more in [
        (lambda: None, 0),
        (lambda: framework.calls.event(first), 1),
        (lambda: framework.calls.event(second), 1),
        (lambda: framework.calls.call("cuStreamSynchronize", first), 1),
        (lambda: unknown(second), 2),
    ]:
        count = timeline.count
        between()
        unknown(first)
        assert timeline.count == count + more


def test_when_launches_are_passed_over() -> None:
    """Behind one without known accesses, until something else happens to the program's streams."""
    framework = Framework(calls=FakeCalls())
    first, second = framework.calls.stream(), framework.calls.stream()
    unknown = ("cuLaunchKernel", 1, *[1] * 7, first, 0, 0)
    framework.calls.call(*unknown)
    assert framework.calls.passed == (first, 1)
    framework.launch(ENTRY, 1, stream=second)
    assert framework.calls.passed is None
    framework.calls.call(*unknown)
    assert framework.calls.passed == (first, 1)
    framework.calls.call("cuMemsetD8Async", 1 << 50, 0, 4, first)
    assert framework.calls.passed is None
    framework.calls.call("cuStreamBeginCapture", first, 0)
    framework.calls.call(*unknown)
    assert framework.calls.passed is None


def test_an_event_between_launches_of_which_nothing_is_known() -> None:
    """It is no order for the later one."""
    for event_first in (True, False):
        framework = Framework(calls=FakeCalls())
        first, second = framework.calls.stream(), framework.calls.stream()
        unknown = ("cuLaunchKernel", 1, *[1] * 7, first, 0, 0)
        framework.calls.call(*unknown)
        event = framework.calls.event(first) if event_first else 0
        framework.calls.call(*unknown)
        framework.calls.call("cuStreamWaitEvent", second, event or framework.calls.event(first), 0)
        framework.launch(ENTRY, 1, stream=second)
        assert ("all accesses of fast are not known" in gap(framework.report())) is event_first


LOADS = """
extern "C" __global__ void fills(unsigned* out, unsigned* from, int) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (from[at] == 7) out[at] = at;
}
"""


def test_what_a_text_and_its_parameters_tell_is_compared() -> None:
    """Launches that are proven need no log for the comparison. By themselves large ones are looked at in slices."""
    for ctas in (2, 1 << 11):
        for edge in ("nothing", "event"):
            framework = Framework(calls=FakeCalls(), trace_memory=1 << 19)
            first, second = framework.calls.stream(), framework.calls.stream()
            framework.backend.launch = lambda *given, **how: None  # type: ignore[method-assign]
            framework.launch(ctas=ctas, stream=first)
            framework.settle()  # what it leaves to later slices is known
            {**EDGES, **NO_EDGES}[edge](framework, first, second)
            framework.launch(ctas=ctas, stream=second, out=16)
            found = [finding for finding in framework.report().findings if finding.hazard == "WAW"]
            assert "not compared" not in gap(framework.report())
            assert framework.exchanged == [ctas > 2] * 2
            begin = framework.out + 16
            accesses = [(each.op, each.line, each.bytes, each.block) for finding in found for each in finding.accesses]
            assert accesses == [("st.global.u32", 5, (begin, begin + 4), None)] * 2 * (edge == "nothing")


def test_accesses_that_a_launch_may_leave_out_are_no_race() -> None:
    for out in (0, 1 << 10):
        framework = Framework(LOADS, calls=FakeCalls())
        for at in (0, out):
            framework.launch(stream=framework.calls.stream(), out=at)
        report = framework.report()
        assert not report.findings
        why = "and what may run at the same time in another stream: all its accesses are not known"
        assert (why in gap(report)) is (out == 0), gap(report)


# -- graphs ---------------------------------------------------------------------------------------------------------------------


def test_nodes_of_a_graph() -> None:
    for edge in (False, True):
        framework, executable = captured(edge)
        stream = framework.calls.stream()
        for _ in range(3):
            framework.calls.call("cuGraphLaunch", executable, stream)
        found = framework.report().findings
        assert [(each.kind, each.situation, each.count) for each in found] == [("global-race", "no-stream-edge", 1)] * (not edge)


def test_a_launch_of_a_graph_stands_for_those_that_are_like_it() -> None:
    """Other launches of its stream may come between. An event or a wait of the host between them ends this."""
    framework, executable = captured(True)
    calls, timeline = framework.calls, framework.session.frameworks.streams.concurrent.timeline
    stream = calls.stream()
    calls.call("cuGraphLaunch", executable, stream)
    assert calls.passed == (stream, 1, executable)
    for between in (lambda: None, lambda: framework.launch(stream=stream, out=1 << 10)):
        between()
        begun = timeline.count
        calls.call("cuGraphLaunch", executable, stream)
        assert (timeline.count, calls.passed) == (begun, (stream, 1, executable))
    for between in (
        lambda: calls.event(stream),
        lambda: calls.call("cuStreamSynchronize", stream),
        lambda: calls.edge(calls.stream(), stream),
    ):
        between()
        begun = timeline.count
        calls.call("cuGraphLaunch", executable, stream)
        assert timeline.count == begun + 2
        assert len(timeline.running) <= 4  # its nodes, and the other launch: what it stands for is not kept
    assert not framework.report().findings


@pytest.mark.parametrize("point", ["event", "an event that nobody saw", "query"])
def test_a_graph_that_is_launched_again_behind_a_point_that_another_stream_waits_for(point: str) -> None:
    found = launched_behind(point).report().findings
    assert {each.situation for each in found} == {"no-stream-edge"}


@pytest.mark.parametrize("edge", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_graph_beside_a_launch(edge: bool, before: bool) -> None:
    framework, executable = captured(True)
    calls = framework.calls
    of_graph, other = calls.stream(), calls.stream()
    steps = [lambda: calls.call("cuGraphLaunch", executable, of_graph), lambda: framework.launch(stream=other, out=8)]
    streams = [of_graph, other]
    steps[before]()
    if edge:
        calls.edge(streams[before], streams[not before])
    steps[not before]()
    found = framework.report().findings
    assert {each.situation for each in found} == ({"no-stream-edge"} if not edge else set())
    assert sum(each.count for each in found) == 2 * (not edge)  # with each node


def test_launches_of_one_executable_graph_are_ordered() -> None:
    framework, executable = captured(True)
    for _ in range(2):
        framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    assert not framework.report().findings
    graph = two_graphs()
    assert {each.situation for each in graph.report().findings} == {"no-stream-edge"}


@pytest.mark.parametrize("change", ["none", "executable", "node", "update", "made"])
def test_a_graph_that_is_not_known(change: str) -> None:
    """What runs beside it is not compared; what comes after it is."""
    framework, executable = captured(True)
    calls = framework.calls
    if change == "executable":
        calls.call("cuGraphExecKernelNodeSetParams", executable)
    elif change == "update":
        calls.call("cuGraphExecUpdate", executable)
    elif change == "node":
        calls.call("cuGraphKernelNodeSetParams")
        executable = calls.given("cuGraphInstantiate", 0x1234)
    elif change == "made":
        calls.call("cuGraphAddKernelNode", 0, 0x77)
        executable = calls.given("cuGraphInstantiate", 0x77)
    of_graph, other = calls.stream(), calls.stream()
    calls.call("cuGraphLaunch", executable, of_graph)
    framework.launch(stream=other, out=1 << 10)
    report = framework.report()
    why = "all accesses of a graph that was not captured as a whole, or was changed, are not known"
    assert not report.findings
    assert (why in gap(report)) is (change != "none"), gap(report)


def test_a_launch_into_a_graph_whose_accesses_are_not_known() -> None:
    framework, executable = captured(False, entry=ENTRY, number=1)
    framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    report = framework.report()
    assert not report.findings
    assert "and what may run at the same time in another stream: all its accesses are not known" in gap(report)


@pytest.mark.parametrize("most", [8, 1])
def test_a_graph_of_many_nodes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of its nodes are kept: nothing of it is known."""
    monkeypatch.setattr(concurrent_launches, "MOST_OF_PROGRAM", most)
    framework, executable = captured(True)
    framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    framework.launch(stream=framework.calls.stream(), out=8)
    report = framework.report()
    assert ("all accesses of a graph that was not captured as a whole" in gap(report)) is (most == 1), gap(report)
    assert bool(report.findings) is (most == 8)
