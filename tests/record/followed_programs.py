"""Programs of several streams for a GPU that is made up: two launches of one kernel with something between them, and graphs."""

from __future__ import annotations

from collections.abc import Callable

from framework_support import FakeCalls, Framework

ENTRY = "exchanges"  # its accesses are not proven
Between = Callable[[Framework, int, int], None]


def two_launches(between: Between, *, flags: int = 1, entry: str = ENTRY, number: int = 1, default: bool = False) -> Framework:
    """Two launches of a kernel that write the same bytes, in two streams."""
    framework = Framework(calls=FakeCalls())
    first, second = 0 if default else framework.calls.stream(flags), framework.calls.stream(flags)
    framework.launch(entry, number, stream=first)
    between(framework, first, second)
    framework.launch(entry, number, stream=second, out=4)  # other values for the same words
    return framework


def nothing(framework: Framework, first: int, second: int) -> None:
    """There is no edge."""


EDGES: dict[str, Between] = {
    "event": lambda framework, first, second: framework.calls.edge(first, second),
    "stream": lambda framework, first, second: framework.calls.call("cuStreamSynchronize", first),
    "query": lambda framework, first, second: framework.calls.call("cuStreamQuery", first),
    "event, host": lambda framework, first, second: framework.calls.call("cuEventSynchronize", framework.calls.event(first)),
    "event, query": lambda framework, first, second: framework.calls.call("cuEventQuery", framework.calls.event(first)),
    "context": lambda framework, first, second: framework.calls.call("cuCtxSynchronize"),
    "free": lambda framework, first, second: framework.calls.call("cuMemFree", 1),
}


def host_function(framework: Framework, first: int, second: int) -> None:
    """It may show the host that the first launch is over."""
    framework.calls.call("cuLaunchHostFunc", first, 1, 1)


NO_EDGES: dict[str, Between] = {
    "nothing": nothing,
    "other way": lambda framework, first, second: framework.calls.edge(second, first),
    "recorded again": lambda framework, first, second: (
        framework.calls.call("cuEventRecord", event := framework.calls.event(first), second),
        framework.calls.call("cuStreamWaitEvent", second, event, 0),
    )[0],
    "other stream": lambda framework, first, second: framework.calls.call("cuStreamSynchronize", second),
    "allocation": lambda framework, first, second: framework.calls.call("cuMemAlloc", 1, 1),
}


EDGES |= {
    "an event that nobody saw": lambda framework, first, second: framework.calls.call("cuStreamWaitEvent", second, 0x99, 0),
    "host, an event that nobody saw": lambda framework, first, second: framework.calls.call("cuEventSynchronize", 0x99),
}


def captured(edge: bool, *, entry: str = "fills", number: int = 0) -> tuple[Framework, int]:
    """A graph with two launches that write the same bytes, in two streams. `edge`: from the first to the second."""
    framework = Framework(calls=FakeCalls())
    calls = framework.calls
    first, second = calls.stream(), calls.stream()
    calls.call("cuStreamBeginCapture", first, 0)
    framework.capturing |= {first, second}
    if not edge:
        calls.edge(first, second)
    framework.launch(entry, number, stream=first)
    if edge:
        calls.edge(first, second)
    framework.launch(entry, number, stream=second, out=4)
    calls.edge(second, first)
    graph = calls.given("cuStreamEndCapture", first, first=False)
    framework.capturing.clear()
    return framework, calls.given("cuGraphInstantiateWithFlags", graph, 0)


def two_graphs() -> Framework:
    """Two executable graphs of one graph, in two streams."""
    framework = Framework(calls=FakeCalls())
    calls = framework.calls
    first = calls.stream()
    calls.call("cuStreamBeginCapture", first, 0)
    framework.capturing.add(first)
    framework.launch(stream=first)
    graph = calls.given("cuStreamEndCapture", first, first=False)
    framework.capturing.clear()
    for _ in range(2):
        calls.call("cuGraphLaunch", calls.given("cuGraphInstantiate", graph), calls.stream())
    return framework


def launched_behind(point: str) -> Framework:
    """A graph is launched, another stream waits for that launch, and the graph is launched again, beside a launch in the other stream."""
    framework, executable = captured(True)
    calls = framework.calls
    of_graph, other = calls.stream(), calls.stream()
    calls.call("cuGraphLaunch", executable, of_graph)
    points = {
        "event": lambda: calls.edge(of_graph, other),
        "an event that nobody saw": lambda: calls.call("cuStreamWaitEvent", other, 0x99, 0),
        "query": lambda: calls.call("cuStreamSynchronize", of_graph),
    }
    points[point]()
    calls.call("cuGraphLaunch", executable, of_graph)
    framework.launch(stream=other, out=8)
    return framework
