"""Calls for nodes of every type, and for edges between nodes.

The newest versions of some calls have the kinds of edges before the number of them. Programs that hold a copy of the runtime, of either
version, use the same names: a number is small, and an address is not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.graphs import graph_calls
from consan.libcuda.graphs.graph import DriverGraph, DriverNode
from consan.libcuda.graphs.node_types import RECORD, WAIT, described
from consan.libcuda.stream_calls import EventHandle

_EDGE: Final = struct.Struct("<3B5x")  # CUgraphEdgeData: ports, and the type
_MOST: Final = 1 << 32  # no number of nodes is as large


def _plain(driver: StandInDriver, edges: int, count: int) -> None:
    """Raises CallFailed for edges that are no plain order."""
    if edges and any(any(each) for each in _EDGE.iter_unpack(driver.memory.read(edges, count * _EDGE.size))):
        raise CallFailed(calls.NOT_SUPPORTED, "edges of programmatic dependents (CUgraphEdgeData) are not served without a GPU")


def _adds_any(names: Iterable[str], *, runtime: bool) -> None:
    @serves(">Q Q Q Q Q Q", *names)
    def add(driver: StandInDriver, graph: int, after: int, edges: int, count: int, params: int) -> int:
        if count >= _MOST:  # an older version
            edges, count, params = 0, edges, count
        _plain(driver, edges, count)
        work, before = described(driver, params, runtime=runtime), graph_calls.nodes_at(driver, after, count)
        return int(driver.of(graph, DriverGraph).add(driver, work, before).handle)


_VERSIONS: Final = "", "_v2"
for _runtime in (False, True):
    _adds_any([f"{'_cuda' if _runtime else 'cu'}GraphAddNode{version}" for version in _VERSIONS], runtime=_runtime)
    graph_calls.sets(
        lambda driver, params, runtime=_runtime: described(driver, params, runtime=runtime),
        *("_cudaGraphNodeSetParams", "_cudaGraphExecNodeSetParams") if _runtime else ("cuGraphNodeSetParams", "cuGraphExecNodeSetParams"),
    )


def _wait_node(driver: StandInDriver, event: int) -> StreamWork:
    found: EventHandle = driver.of(event, EventHandle)
    return found.wait


def _record_node(driver: StandInDriver, event: int) -> StreamWork:
    found: EventHandle = driver.of(event, EventHandle)
    return found.record


for _of in ("cu", "_cuda"):
    graph_calls.adds(_wait_node, f"{_of}GraphAddEventWaitNode", node_type=WAIT)
    graph_calls.adds(_record_node, f"{_of}GraphAddEventRecordNode", node_type=RECORD)

# -- edges -------------------------------------------------------------------------------------------------------------------------------


def _pairs(driver: StandInDriver, before: int, after: int, edges: int, count: int) -> list[tuple[DriverNode, DriverNode]]:
    """The ends of edges, whose kinds are at `edges`; in the older version it is their number."""
    if edges and edges < _MOST:
        edges, count = 0, edges
    if not before or not after:
        return []
    _plain(driver, edges, count)
    return list(zip(graph_calls.nodes_at(driver, before, count), graph_calls.nodes_at(driver, after, count), strict=True))


@serves("Q Q Q Q Q", *(f"{of}GraphAddDependencies{version}" for of in ("cu", "_cuda") for version in _VERSIONS))
def _depend(driver: StandInDriver, graph: int, *given: int) -> None:
    for first, second in _pairs(driver, *given):
        second.after.append(first)


@serves("Q Q Q Q Q", *(f"{of}GraphRemoveDependencies{version}" for of in ("cu", "_cuda") for version in _VERSIONS))
def _depend_no_more(driver: StandInDriver, graph: int, *given: int) -> None:
    for first, second in _pairs(driver, *given):
        second.after.remove(first)


@serves("Q", "cuGraphDestroyNode", "_cudaGraphDestroyNode")
def _destroy(driver: StandInDriver, node: int) -> None:
    found = driver.of(node, DriverNode)
    for graph in [each for each in driver.handles.values() if isinstance(each, DriverGraph) and found in each.nodes]:
        graph.nodes.remove(found)
        for each in graph.nodes:
            each.after = [other for other in each.after if other is not found]


@serves("Q Q Q", "cuGraphGetRootNodes", "_cudaGraphGetRootNodes")
def _roots(driver: StandInDriver, graph: int, places: int, count: int) -> None:
    graph_calls.tell_nodes(driver, [node for node in driver.of(graph, DriverGraph).nodes if not node.after], places, count)


@serves("Q Q Q Q", "cuGraphNodeGetDependencies_v2", *(f"_cudaGraphNodeGetDependencies{version}" for version in _VERSIONS))
def _before(driver: StandInDriver, node: int, places: int, edges: int, count: int) -> None:
    if edges:  # or, in the older version, the number of nodes
        raise CallFailed(calls.NOT_SUPPORTED, "the kinds of edges (CUgraphEdgeData) are not served without a GPU")
    graph_calls.tell_nodes(driver, driver.of(node, DriverNode).after, places, count)
