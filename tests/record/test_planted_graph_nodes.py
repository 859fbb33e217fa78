"""Faults planted in the nodes of graphs change what the report says of graphs that are launched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from leaving_support import slow_clock
from planted import plant
from streams_support import Streams
from test_background import Framework
from test_graph_nodes import READS, capture

from consan.session.executing import graph_nodes

pytestmark = pytest.mark.slow

Outcome = tuple[str, tuple[tuple[str, int], ...], tuple[str, ...]]


def _outcome(framework: Framework) -> Outcome:
    report = framework.session.report()
    ran = tuple((kernel.name, kernel.launches) for kernel in report.kernels if kernel.launches)
    return report.verdict, ran, tuple(sorted(finding.kind for finding in report.findings))


def _repeated(framework: Framework) -> None:
    graph = capture(framework)
    for _ in range(3):
        framework.backend.replay(graph, 3)


def _not_launched(framework: Framework) -> None:
    capture(framework)


def _without_a_receipt(framework: Framework) -> None:
    graph = capture(framework)
    framework.backend.replay(graph, 3)
    framework.backend.replay(graph[:-1], 3)


def _two_nodes(framework: Framework) -> None:
    framework.backend.replay(capture(framework, nodes=2), 3)


def _altered(framework: Framework) -> None:
    framework.backend.replay(capture(framework), 3)
    framework.session.followed.captures.altered = True


def _differing(framework: Framework) -> None:
    graph = capture(framework, entry="reads")
    for value in (1, 0):
        framework.backend.write(framework.out, value.to_bytes(4, "little"))
        framework.backend.replay(graph, 3)
        framework.backend.synchronize()


def _reported_twice(framework: Framework) -> None:
    graph = capture(framework)
    framework.backend.replay(graph, 3)
    framework.session.take()
    framework.backend.replay(graph, 3)


def _two_graphs(framework: Framework) -> None:
    graphs = [capture(framework, followed=True) for _ in range(2)]
    for graph in (*graphs, graphs[1]):
        framework.backend.replay(graph, 3)


def _not_followed(framework: Framework) -> None:
    capture(framework)
    framework.backend.replay(capture(framework), 3)


# What is replaced by what, in `GraphNodes`, and the program that shows it.
FAULTS: dict[str, tuple[str, str, str, Callable[[Framework], None]]] = {
    "the log is cleared": ("arm", "if nbytes <= MOST_CLEARED]", "if not nbytes]", _repeated),
    "launches are counted": ("_put_front", "receipts.put_front(front, node, clears)", "pass", _repeated),
    "a front for each capture": ("_put_front", "shared[0] is capture", "True", _two_graphs),
    "a front for each node": ("_put_front", "if capture is not None:", "if True:", _not_followed),
    "receipts are counted": ("ended", ", counts=True)", ")", _repeated),
    "a receipt is asked for": ("ended", "self.device.receipts.ask(", "(lambda *_, counts: None)(", _repeated),
    "variables": ("begun", "self.device.backend.poke(address, data)", "pass", _repeated),
    "a module for each node": ("begun", "handle=None, ", "", _two_nodes),
    "nodes that were launched": ("settle", "node.slip.counts != node.counted", "True", _not_launched),
    "changed parameters": ("settle", "if altered:", "if False:", _altered),
    "launches without a receipt": ("_look", "begun != runs", "begun < runs", _without_a_receipt),
    "launches that differ": ("_look", "if changes:", "if False:", _differing),
    "launches of earlier reports": ("_look", "(new - old for", "(new for", _reported_twice),
    "equal launches": ("_look", "runs - 1)", "runs)", _repeated),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, old, new, program = FAULTS[rule]
    slow_clock(monkeypatch)

    def run() -> Outcome:
        framework = Framework(Streams(), *[READS] * (program is _differing))
        program(framework)
        return _outcome(framework)

    right = run()
    plant(monkeypatch, graph_nodes, old, new, f"GraphNodes.{method}")
    assert run() != right
