"""Launches that a framework puts into a graph: recorded, and looked at when the graph was launched."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from leaving_support import slow_clock
from planted import plant
from streams_support import LOOPS, Streams
from test_background import BLOCK, GRID, Framework

from consan.checker.logs import log_lines, receipts
from consan.checker.logs.launch import Launch
from consan.reports.model import Report
from consan.session.comparing.captures import Capture
from consan.session.executing import graph_nodes, watch
from consan.session.executing.launch_check import LaunchCheck
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import unknown

# The race depends on a value that the program writes between the launches of the graph.
READS = """
extern "C" __global__ void reads(unsigned* out, int) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    if (out[0] != 1) __syncthreads();
    out[96 + threadIdx.x] = values[95 - threadIdx.x];
}
"""


STORES = """
extern "C" __global__ void stores(unsigned* out, int) {
    __shared__ unsigned value;
    value = out[threadIdx.x];
    __syncthreads();
    out[96 + threadIdx.x] = value;
}
"""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Streams:
    slow_clock(monkeypatch)
    return Streams()


def capture(
    framework: Framework, number: int = 0, entry: str = "waits", nodes: int = 1, *, followed: bool = False, tells: bool = False
) -> list[Callable[[], bool]]:
    """`followed`: consan knows that the nodes come one behind the other. `tells`: and their parameters."""
    backend, stream, known = framework.backend, 7, Capture(7) if followed else None
    framework.session.followed.capture_of = lambda stream: known  # type: ignore[method-assign]
    backend.captured[stream] = []
    for _ in range(nodes):
        values = (framework.out.to_bytes(8, "little"), number.to_bytes(4, "little"))
        args = (lambda values=values: values) if tells else unknown
        launch = FrameworkLaunch(entry, GRID, BLOCK, (1, 1, 1), stream, framework.module, args=args)
        with framework.session.framework_launch(framework.prepared, launch) as module:
            backend.launch(module or framework.module, entry, GRID, BLOCK, values, stream=stream)
    return backend.captured.pop(stream)


@pytest.mark.parametrize(("number", "verdict"), [(0, "clean"), (1, "violations")])
def test_the_launches_of_a_graph_are_recorded(number: int, verdict: str, backend: Streams) -> None:
    framework = Framework(backend)
    graph = capture(framework, number)
    for _ in range(10):
        backend.replay(graph, 3)
    assert framework.counts() == (verdict, 10, 20, 1)
    report = framework.session.report()
    assert {kernel.engine for kernel in report.kernels if kernel.launches} == {"record"}
    assert [finding.kind for finding in report.findings] == ["data-race"] * number


@pytest.mark.parametrize(("number", "verdict"), [(0, "clean"), (1, "violations")])
def test_nodes_of_a_capture_share_what_comes_before_them(
    number: int, verdict: str, backend: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The front has room for two nodes here: the third gets another one."""
    monkeypatch.setattr(receipts, "MOST_OF_FRONT", 2)
    framework = Framework(backend)
    graph, other = (capture(framework, number, nodes=nodes, followed=True) for nodes in (3, 1))
    assert (len(graph), len(other)) == (2 + 3 + 3, 3), "fronts, kernels, receipts"
    for stream in (3, 4):
        backend.replay(graph, stream)
        backend.synchronize()
    backend.replay(other, 5)
    assert framework.counts()[:3] == (verdict, 7, 14)


def test_the_log_of_a_node_has_what_its_parameters_let_it_store(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "SMALL_BYTES", 1 << 12)
    framework, used = Framework(backend), list[int]()
    for tells in (True, False):
        graph, before = capture(framework, 3, "scatters", nodes=2, tells=tells), sum(used)
        used.append(framework.session.device.logs.used - before)
        backend.replay(graph, 3)
    assert used[0] < 1 << 16 < 1 << 26 < used[1]
    assert framework.counts()[:2] == ("clean", 4)


def test_a_large_log_is_cleared_by_the_device(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_nodes, "MOST_CLEARED", 0)
    framework = Framework(backend)
    graph = capture(framework)
    assert len(graph) > 3
    for _ in range(3):
        backend.replay(graph, 3)
    assert framework.counts()[:3] == ("clean", 3, 6)


def test_a_graph_that_is_not_launched_has_no_launches(backend: Streams) -> None:
    framework = Framework(backend)
    capture(framework)
    assert framework.counts()[1] == 0


def test_nodes_and_other_launches_do_not_share_a_log(backend: Streams) -> None:
    framework = Framework(backend)
    graph = capture(framework, 1, nodes=2)
    framework.launch(0)
    backend.replay(graph, 3)
    framework.launch(0)
    backend.replay(graph, 3)
    assert framework.counts()[:3] == ("violations", 6, 12)


def test_launches_that_differ_make_the_report_incomplete(backend: Streams) -> None:
    framework = Framework(backend, READS)
    graph = capture(framework, entry="reads")
    for value in (0, 1, 0):
        backend.write(framework.out, value.to_bytes(4, "little"))
        backend.replay(graph, 3)
        backend.synchronize()
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert "of 3 launches in a graph 2 differ from the one before or ran beside it, and the last was checked" in report.incomplete[0]


def test_launches_whose_receipts_do_not_decide_are_not_counted_as_equal(backend: Streams) -> None:
    framework = Framework(backend, STORES)
    graph = capture(framework, entry="stores")
    for value in (1, 0, 0):  # unequal stores race, and a receipt does not show what was stored
        backend.write(framework.out, value.to_bytes(4, "little"))
        backend.replay(graph, 3)
        backend.synchronize()
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert "of 3 launches in a graph the last was checked: their receipts do not decide what they did" in report.incomplete[0]


def test_a_graph_is_launched_again_after_a_report(backend: Streams) -> None:
    framework = Framework(backend)
    graph = capture(framework)
    backend.replay(graph, 3)
    first = framework.session.take()
    assert first is not None
    assert first.verdict == "clean"
    backend.replay(graph, 3)
    backend.replay(graph, 3)
    assert framework.counts() == ("clean", 2, 4, 1)


def of_three_nodes(backend: Streams) -> Report:
    framework = Framework(backend)
    backend.replay(capture(framework, nodes=3), 3)
    return framework.session.report()


def test_nodes_that_are_too_many_run_as_they_are(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_nodes, "MOST_NODES", 2)
    report = of_three_nodes(backend)
    assert report.verdict == "incomplete"
    assert "more than 1,024 nodes" in " ".join(report.incomplete)


@pytest.mark.parametrize("fault", [False, True])
def test_the_logs_of_nodes_may_have_what_one_launch_may(backend: Streams, monkeypatch: pytest.MonkeyPatch, fault: bool) -> None:
    """More than the constant, where the device has much memory: a share of that."""
    if fault:
        plant(monkeypatch, graph_nodes, "max(MOST_BYTES, memory.most_bytes)", "MOST_BYTES")
    monkeypatch.setattr(graph_nodes, "MOST_BYTES", 0)
    report = of_three_nodes(backend)
    assert ("have no room" in " ".join(report.incomplete), report.verdict) == (fault, "incomplete" if fault else "clean")


def test_launches_that_record_nothing_are_counted(backend: Streams) -> None:
    framework = Framework(backend, 'extern "C" __global__ void plain(unsigned* out, int) { out[threadIdx.x] = 1; }')
    graph = capture(framework, entry="plain")
    for _ in range(10):
        backend.replay(graph, 3)
    assert framework.counts()[:3] == ("clean", 10, 20)


def test_a_graph_beside_itself_makes_the_report_incomplete(backend: Streams) -> None:
    """As when the program makes two executable graphs of one capture."""
    framework = Framework(backend)
    graph = capture(framework)
    for stream in (3, 4):
        backend.replay(graph, stream)
    backend.advance(3, len(graph) - 1)
    backend.advance(4, 1)
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert "waits left no log" in " ".join(report.incomplete), "the second has cleared what the receipt of the first works in"


def test_launches_without_a_receipt_make_the_report_incomplete(backend: Streams) -> None:
    framework = Framework(backend)
    graph = capture(framework)
    backend.replay(graph, 3)
    backend.replay(graph[:-1], 3)
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert "waits left no log" in " ".join(report.incomplete)


@pytest.mark.parametrize("call", ["cuGraphExecKernelNodeSetParams", "cuGraphKernelNodeSetParams", "cuGraphNodeSetParams"])
def test_parameters_that_the_program_changes_make_the_report_incomplete(call: str, backend: Streams) -> None:
    framework = Framework(backend)
    backend.replay(capture(framework), 3)
    order = framework.session.followed.order
    assert order is not None
    order.called(SimpleNamespace(name=call, values=(1,), context=0, noted=False))  # type: ignore[arg-type]
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert "the program changes parameters of graph nodes" in " ".join(report.incomplete)


@pytest.mark.parametrize("call", ["cuGraphExecMemcpyNodeSetParams", "cuGraphMemsetNodeSetParams"])
def test_parameters_of_other_nodes_do_not_concern_kernels(call: str, backend: Streams) -> None:
    framework = Framework(backend)
    backend.replay(capture(framework), 3)
    order = framework.session.followed.order
    assert order is not None
    order.called(SimpleNamespace(name=call, values=(1,), context=0, noted=False))  # type: ignore[arg-type]
    assert framework.counts()[:2] == ("clean", 1)


def stopped(backend: Streams) -> None:
    """A launch of a graph exceeds the time limit, in a stream that nobody has named. Its node serves later ones."""
    framework = Framework(backend, LOOPS, timeout=0.2)
    graph, everything = capture(framework, 1 << 14), backend.synchronize
    backend.hung, backend.told = 0, False
    backend.ends = lambda timeout, longest: everything(timeout)  # type: ignore[method-assign]
    backend.synchronize = lambda timeout=None: True  # type: ignore[method-assign]
    backend.replay(graph, 3)
    report = framework.session.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("incomplete", 1)
    assert [why[:49] for why in report.incomplete] == ["waits did not run to its end: stopped after 0.2 s"], report.incomplete
    framework.session.take()
    backend.hung = None
    backend.replay(graph, 3)
    assert framework.counts()[:2] == ("clean", 1)


def test_a_kernel_that_hangs_in_a_graph_is_stopped(backend: Streams) -> None:
    stopped(backend)


@pytest.mark.parametrize("fault", ["no node is stopped", "nodes remain stopped", "the end is lost", "only named streams are waited for"])
def test_a_fault_in_the_stop(fault: str, backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no node is stopped":
        monkeypatch.setattr(LaunchCheck, "can_leave", False)
    elif fault == "only named streams are waited for":
        plant(monkeypatch, watch, "self._is_over(max(LEAVING, patience))", "self._backend.synchronize(max(LEAVING, patience))")
    elif fault == "nodes remain stopped":
        stop = Launch.stop
        monkeypatch.setattr(Launch, "stop", lambda launch, *, leave=True: stop(launch) if leave else None)
    else:
        monkeypatch.setattr(LaunchCheck, "ends_by", lambda *_, hangs: None)
    monkeypatch.setattr(watch, "LEAVING", 0.1)
    with pytest.raises(AssertionError):
        stopped(backend)


def test_a_kernel_that_does_not_leave_a_graph_leaves_no_log(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LEAVING", 0.1)
    framework = Framework(backend, LOOPS, timeout=0.2)
    graph = capture(framework, 1 << 14)
    backend.hung, backend.told = 0, False
    monkeypatch.setattr(backend, "poke", lambda address, data: None)
    backend.replay(graph, 3)
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert any("did not react to the request to stop" in why for why in report.incomplete), report.incomplete
