"""Nodes of graphs that are known to do what a checked launch did: they are the kernel as it is, and their launches are counted."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

import pytest
from leaving_support import slow_clock
from planted import plant
from streams_support import Streams
from test_background import BLOCK, GRID, Framework

from consan.reports.verdict import coverage
from consan.session import known_in_graphs
from consan.session.executing import graph_nodes, in_flight_launch
from consan.session.framework_launch import FrameworkLaunch

STREAM = 7
RECORDED, KNOWN = 3, 2  # what a captured launch puts into the stream: a front, the kernel, and, if it is recorded, a receipt
Graph = list[Callable[[], bool]]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Streams:
    slow_clock(monkeypatch)
    return Streams()


def launch(framework: Framework, number: int, stream: int = 0, entry: str = "waits", grid: tuple[int, int, int] = GRID) -> None:
    """A launch whose parameters are known."""
    values = (framework.out.to_bytes(8, "little"), number.to_bytes(4, "little"))
    given = FrameworkLaunch(entry, grid, BLOCK, (1, 1, 1), stream, framework.module, args=lambda: values)
    with framework.session.framework_launch(framework.prepared, given) as module:
        framework.backend.launch(module or framework.module, entry, grid, BLOCK, values, stream=stream)


def warm(framework: Framework, number: int = 0, entry: str = "waits") -> None:
    """Launch, and wait until the launch was checked."""
    launch(framework, number, entry=entry)
    framework.backend.advance(0)
    framework.session.frameworks.background.look()
    time.sleep(0.2)  # for the thread that checks


def capture(framework: Framework, *numbers: int, entry: str = "waits", grid: tuple[int, int, int] = GRID) -> Graph:
    """A graph of a launch with each of these numbers."""
    framework.backend.captured[STREAM] = []
    for number in numbers:
        launch(framework, number, STREAM, entry, grid)
    return framework.backend.captured.pop(STREAM)


def replay(framework: Framework, graph: Graph, times: int = 1) -> None:
    for _ in range(times):
        framework.backend.replay(graph, 3)


def test_a_known_launch_is_only_counted(backend: Streams) -> None:
    framework = Framework(backend)
    warm(framework)
    graph = capture(framework, 0, 0)
    assert len(graph) == 2 * KNOWN
    replay(framework, graph, 5)
    assert framework.counts() == ("clean", 11, 22, 1)


@pytest.mark.parametrize("global_memory", ["auto", "off"])
def test_global_memory_is_proven_for_these_parameters(global_memory: str, backend: Streams) -> None:
    framework = Framework(backend, global_memory=global_memory)
    warm(framework)
    graph = capture(framework, 0)
    assert len(graph) == KNOWN
    replay(framework, graph, 3)
    report = framework.session.report()
    (row,) = coverage.rows(report)
    seen = global_memory == "off"  # else launches of two streams would be compared, whose order nobody sees here
    assert (report.verdict, len(report.incomplete), row.launches) == ("clean" if seen else "incomplete", not seen, 4)
    assert row.checked == (4 if global_memory == "auto" else 0)


def test_another_value_that_decides_is_recorded(backend: Streams) -> None:
    framework = Framework(backend)
    warm(framework)
    graph = capture(framework, 1)
    assert len(graph) == RECORDED
    replay(framework, graph)
    assert framework.counts()[0] == "violations"


def test_what_memory_decides_another_grid_and_what_has_a_finding_are_recorded(backend: Streams) -> None:
    framework = Framework(backend)
    for number, entry in ((0, "waits"), (1, "waits"), (1, "scatters")):
        warm(framework, number, entry)
    assert len(capture(framework, 1)) == RECORDED
    assert len(capture(framework, 1, entry="scatters")) == RECORDED
    assert len(capture(framework, 0, grid=(1, 1, 1))) == RECORDED
    assert len(capture(framework, 0)) == KNOWN


def test_a_kernel_that_was_never_launched_is_recorded(backend: Streams) -> None:
    assert len(capture(Framework(backend), 0)) == RECORDED


def test_a_capture_waits_for_no_check(backend: Streams) -> None:
    """Its launches count as that one's, whose check ends later."""
    framework = Framework(backend)
    launch(framework, 0)  # the device has not begun it
    graph = capture(framework, 0)
    assert len(graph) == KNOWN
    assert len(capture(framework, 1)) == RECORDED, "another value decides that"
    replay(framework, graph, 3)
    first = framework.session.take()
    assert first is not None
    assert (first.verdict, sum(kernel.launches for kernel in first.kernels)) == ("clean", 4)
    replay(framework, graph, 2)
    assert framework.counts()[:2] == ("clean", 2), "later reports know it, too"


def test_a_check_that_does_not_stand_for_nodes_makes_the_report_incomplete(backend: Streams) -> None:
    framework = Framework(backend)
    launch(framework, 1)
    graph = capture(framework, 1)
    assert len(graph) == KNOWN
    replay(framework, graph, 3)
    report = framework.session.report()
    assert (report.verdict, len(report.findings)) == ("violations", 1)
    reasons = " ".join(report.incomplete)
    assert "3 launches of waits could not be recorded" in reasons
    assert "which does not stand for others" in reasons


@pytest.mark.parametrize("number", [0, 1])
def test_a_node_keeps_no_argument_of_the_program(number: int, backend: Streams) -> None:
    """PyTorch refuses a capture behind which a tensor of its pool is alive."""
    framework = Framework(backend)
    warm(framework)
    assert len(_captured_with_a_tensor(framework, number)) == (KNOWN, RECORDED)[number]


def _captured_with_a_tensor(framework: Framework, number: int) -> Graph:
    """A graph of a launch whose argument is freed."""
    tensor = Tensor()
    alive = weakref.ref(tensor)
    values = (framework.out.to_bytes(8, "little"), number.to_bytes(4, "little"))

    def read(tensor: Tensor = tensor) -> tuple[bytes, bytes]:
        return values if isinstance(tensor, Tensor) else ()

    framework.backend.captured[STREAM] = []
    given = FrameworkLaunch("waits", GRID, BLOCK, (1, 1, 1), STREAM, framework.module, args=read)
    with framework.session.framework_launch(framework.prepared, given) as module:
        framework.backend.launch(module or framework.module, "waits", GRID, BLOCK, values, stream=STREAM)
    del tensor, read, given
    assert alive() is None
    return framework.backend.captured.pop(STREAM)


class Tensor:
    """An argument."""


def test_nothing_is_known_of_a_device_that_is_lost(backend: Streams) -> None:
    framework = Framework(backend)
    warm(framework)
    graph = capture(framework, 0)
    replay(framework, graph)
    framework.session.device.lost = True
    assert any(reason.startswith("waits left no log") for reason in framework.session.report().incomplete)


def test_each_report_counts_its_own_launches(backend: Streams) -> None:
    framework = Framework(backend)
    warm(framework)
    graph = capture(framework, 0)
    replay(framework, graph, 2)
    first = framework.session.take()
    assert first is not None
    assert sum(kernel.launches for kernel in first.kernels) == 3
    replay(framework, graph, 4)
    assert framework.counts()[:2] == ("clean", 4)


def test_a_launch_that_the_driver_refuses_is_not_counted(backend: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(backend)
    warm(framework)
    with monkeypatch.context() as inside:
        inside.setattr(backend, "launch", _refuse)
        with pytest.raises(ValueError, match="refused"):
            capture(framework, 0)
    replay(framework, backend.captured.pop(STREAM))
    assert framework.counts()[:2] == ("clean", 1)


def _refuse(*_: object, **__: object) -> None:
    raise ValueError("refused")


def test_changed_parameters_of_nodes_make_the_report_incomplete(backend: Streams) -> None:
    framework = Framework(backend)
    warm(framework)
    replay(framework, capture(framework, 0))
    framework.session.followed.captures.altered = True
    assert framework.session.report().verdict == "incomplete"


# A module, a class and its method there, a text of it and its replacement, and a program whose outcome changes.
FAULTS = {
    "bytes that decide": (
        known_in_graphs,
        "KnownInGraphs",
        "_account",
        "decided.of(args)",
        "next(iter(decided._accounts.values()), None)",
        (0, 1),
    ),
    "launches are counted": (graph_nodes, "GraphNodes", "_count", "known.tell(known.counted - before)", "pass", (0, 0)),
    "those of earlier reports": (
        graph_nodes,
        "GraphNodes",
        "_count",
        "known.counted - before",
        "known.counted",
        (0, 0),
    ),
    "proofs": (known_in_graphs, "KnownInGraphs", "teller", "self.looks.counts(prepared, kept, args, times)", "pass", (0, 0)),
    "bytes that decide beside a check": (
        in_flight_launch,
        "InFlightLaunch",
        "decides",
        "each.within(args or ()) == each.within(given or ())",
        "True",
        (0, 1),
    ),
    "a check that does not stand": (
        known_in_graphs,
        "KnownInGraphs",
        "teller",
        "account is None or not account.serves_alike()",
        "account is None",
        (1, 1),
    ),
}
UNDER_WAY = {"bytes that decide beside a check", "a check that does not stand"}  # the check has not ended at the capture


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, owner, method, old, new, (before, captured) = FAULTS[fault]
    slow_clock(monkeypatch)

    def run() -> list[tuple[object, ...]]:
        framework, found = Framework(Streams(), global_memory="auto"), list[tuple[object, ...]]()
        (launch if fault in UNDER_WAY else warm)(framework, before)
        graph = capture(framework, captured)
        for _ in range(2):
            replay(framework, graph)
            report = framework.session.take()
            found += [] if report is None else [(report.verdict, row.launches, row.checked) for row in coverage.rows(report)]
        return found

    right = run()
    plant(monkeypatch, module, old, new, f"{owner}.{method}".lstrip("."))
    assert run() != right
