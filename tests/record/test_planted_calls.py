"""Faults planted in the order of streams on a GPU change what is found in the programs of followed_programs.py."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from followed_programs import EDGES, ENTRY, NO_EDGES, captured, host_function, launched_behind, nothing, two_graphs, two_launches
from framework_support import FakeCalls, Framework, gap
from leaving_support import slow_clock
from planted import plant

from consan.session.comparing import array_rows, captures, concurrent_launches, driver_calls, followed_streams, streams

COPY = "cuMemcpyDtoDAsync"


def _between(name: str) -> Callable[[], Framework]:
    return lambda: two_launches({**EDGES, **NO_EDGES}[name])


def _free_of_nothing() -> Framework:
    return two_launches(lambda framework, first, second: framework.calls.call("cuMemFree", 0))


def _pageable(registered: bool = False) -> Framework:
    def copy(framework: Framework, first: int, second: int) -> None:
        framework.calls.pageable |= set() if registered else {1 << 50}
        framework.calls.call("cuMemcpyDtoHAsync", 1 << 50, 1 << 51, 64, first)

    return two_launches(copy)


def _blocking() -> Framework:
    return two_launches(nothing, flags=0, default=True)


def _with_a_copy(name: str, to: int, source: int) -> Framework:
    framework = Framework(calls=FakeCalls())
    first, second = framework.calls.stream(), framework.calls.stream()
    framework.launch(ENTRY, 1, stream=first)
    framework.calls.call(name, to or framework.out, source or framework.out, 64, second)
    return framework


def _unknown() -> Framework:
    return two_launches(lambda framework, first, second: framework.calls.call("cuStreamWaitValue32", 1, 2, 3))


def _handle_again() -> Framework:
    return two_launches(lambda framework, first, second: framework.calls.call("cuStreamDestroy", second))


def _graph(edge: bool) -> Framework:
    framework, executable = captured(edge)
    framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    return framework


def _graph_then_launch(edge: bool) -> Framework:
    framework, executable = captured(True)
    of_graph, other = framework.calls.stream(), framework.calls.stream()
    framework.calls.call("cuGraphLaunch", executable, of_graph)
    if edge:
        framework.calls.edge(of_graph, other)
    framework.launch(stream=other, out=8)
    return framework


def _one_executable() -> Framework:
    framework, executable = captured(True)
    for _ in range(2):
        framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    return framework


def _changed_graph() -> Framework:
    framework, executable = captured(True)
    framework.calls.call("cuGraphExecKernelNodeSetParams", executable)
    framework.calls.call("cuGraphLaunch", executable, framework.calls.stream())
    framework.launch(stream=framework.calls.stream(), out=1 << 10)
    return framework


def _by_text() -> Framework:
    return two_launches(nothing, entry="fills", number=0)


def _early() -> Framework:
    framework = Framework(calls=FakeCalls())
    framework.calls.non_blocking.add(0x70)
    framework.launch(ENTRY, 1, stream=0x70)
    framework.launch(ENTRY, 1, stream=framework.calls.stream(), out=4)
    return framework


def _perhaps() -> Framework:
    framework = Framework(
        'extern "C" __global__ void fills(unsigned* out, unsigned* from, int) { if (from[threadIdx.x] == 7) out[threadIdx.x] = 1; }',
        calls=FakeCalls(),
    )
    for _ in range(2):
        framework.launch(stream=framework.calls.stream())
    return framework


def _never_launched() -> Framework:
    framework, _ = captured(True)
    framework.launch(stream=framework.calls.stream(), out=8)
    return framework


# The function that changes, what is replaced by what in it, and the program that shows it.
FAULTS: dict[str, tuple[ModuleType, str, str, str, Callable[[], Framework]]] = {
    "waits": (driver_calls, "_waits", "order.captures.wait(call.values[1], order.handle(call, 0))", "pass", _between("event")),
    "what an event is recorded in": (driver_calls, "_recorded", "order.place(call, 1)", "order.place(call, None)", _between("event")),
    "events recorded again": (
        captures,
        "Captures.record",
        "self.events[event] =",
        "self.events.setdefault(event, None) or",
        _between("recorded again"),
    ),
    "host and stream": (driver_calls, "_stream_passed", "order.host_waits(order.place(call, 0))", "pass", _between("stream")),
    "host and event": (driver_calls, "_event_passed", "order.captures.passed(call.values[0])", "pass", _between("event, host")),
    "host and device": (driver_calls, "_all_passed", "order.streams.synchronize()", "pass", _between("context")),
    "freed memory": (driver_calls, "_free", "order.streams.synchronize_all()", "pass", _between("free")),
    "nothing is freed": (driver_calls, "_free", "if call.values[0]:", "if True:", _free_of_nothing),
    "host functions": (
        driver_calls,
        "_host_function",
        "order.streams.perhaps_over(place.stream.record())",
        "pass",
        lambda: two_launches(host_function),
    ),
    "pageable memory": (driver_calls, "_Copies.__call__", "or not all(map(order.streams.is_registered, (to, source)))", "", _pageable),
    "memory that is not pageable": (
        driver_calls,
        "_Copies.__call__",
        "or not all(map(order.streams.is_registered, (to, source)))",
        "or True",
        lambda: _pageable(registered=True),
    ),
    "copies read": (driver_calls, "_Copies.__call__", "[(source, source + nbytes)]", "[]", lambda: _with_a_copy(COPY, 1 << 50, 0)),
    "copies write": (driver_calls, "_Copies.__call__", "[(to, to + nbytes)]", "[]", lambda: _with_a_copy(COPY, 0, 1 << 50)),
    "the size of what is set": (
        driver_calls,
        "_Sets.__call__",
        "call.values[2] * self.size",
        "0",
        lambda: _with_a_copy("cuMemsetD8Async", 0, 1),
    ),
    "blocking streams": (driver_calls, "_stream_made", "not flags & _NON_BLOCKING", "False", _blocking),
    "non-blocking streams": (
        driver_calls,
        "_stream_made",
        "not flags & _NON_BLOCKING",
        "True",
        lambda: two_launches(nothing, default=True),
    ),
    "calls without a row": (driver_calls, "ProgramOrder.called", 'self.streams.stops(f"the', 'str(f"the', _unknown),
    "an event that nobody saw": (
        captures,
        "Captures._reached",
        "Event(timeline.everything)",
        "Event(NONE)",
        _between("an event that nobody saw"),
    ),
    "nodes of a graph": (captures, "Captures.place", "if capture is None:", "if True:", _never_launched),
    "edges of a graph": (captures, "Captures.wait", "capture.streams[handle].wait(reached)", "pass", lambda: _graph(edge=True)),
    "the nodes of a launch": (captures, "Captures.end", "capture.concurrent.nodes()", "()", lambda: _graph_then_launch(edge=False)),
    "behind a graph": (
        concurrent_launches,
        "ConcurrentLaunches.graph_launched",
        "stream=stream",
        "stream=node.done.stream",
        lambda: _graph_then_launch(edge=True),
    ),
    "launches of one executable graph": (
        captures,
        "Captures.launch",
        "place.stream, found.over",
        "place.stream, NONE",
        _one_executable,
    ),
    "an event behind a launch of a graph": (
        streams,
        "LaunchOrder.in_turn",
        "max(self.recorded, self.turn[1])",
        "self.turn[1]",
        lambda: launched_behind("event"),
    ),
    "an event that nobody saw behind a launch of a graph": (
        captures,
        "Captures._reached",
        "timeline.note_event()",
        "pass",
        lambda: launched_behind("an event that nobody saw"),
    ),
    "a wait behind a launch of a graph": (
        streams,
        "LaunchOrder.in_turn",
        "numbers <= self.everything and ",
        "",
        lambda: launched_behind("query"),
    ),
    "two executable graphs": (
        captures,
        "Captures.instantiate",
        "Executable(self.graphs.get(graph))",
        "self.executables.setdefault(0, Executable(self.graphs.get(graph)))",
        two_graphs,
    ),
    "graphs that change": (
        driver_calls,
        "_executable_changed",
        "order.captures.executables.pop(call.values[0], None)",
        "pass",
        _changed_graph,
    ),
    "streams that were there before": (followed_streams, "FollowedStreams.compares_in", "self.captures.place(handle)", "pass", _early),
    "what a text tells": (array_rows, "rows_touched", "RetainedFlag.WRITES if each.form.writes else", "", _by_text),
    "bytes that may be left out": (
        array_rows,
        "rows_touched",
        "RetainedFlag(0) if each.certain else RetainedFlag.POSSIBLE",
        "RetainedFlag(0)",
        _perhaps,
    ),
}


def outcome(framework: Framework) -> tuple[list[tuple[str, int]], bool]:
    report = framework.report()
    return [(finding.situation, finding.count) for finding in report.findings], "not known" in gap(report) or "compared" in gap(report)


@pytest.mark.slow
@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)
    module, name, old, new, program = FAULTS[rule]
    right = outcome(program())
    plant(monkeypatch, module, old, new, name)
    assert outcome(program()) != right
