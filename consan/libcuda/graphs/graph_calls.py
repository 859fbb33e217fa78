"""Calls that capture work in graphs, make graphs node by node, and launch them (driver API, "Graph Management").

Nodes that run functions of the host are in host_calls.py, those that allocate in graph_memory_calls.py, those with a condition in
conditional_calls.py.

Not handled: attributes of kernel nodes, edges of programmatic dependents, external semaphores, and questions for parameters of nodes.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls, memory_calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.graphs.graph import ChildGraph, DriverGraph, DriverNode, GraphExecutable, StreamCapture
from consan.libcuda.graphs.node_types import CHILD, EMPTY, KERNEL, MEMCPY, MEMSET, NodeType, NodeWork
from consan.libcuda.launch_calls import DriverLaunch, kernel_work

_LEGACY: Final = (0, 1)  # handles of the default stream, which cannot be captured
_KERNEL: Final = struct.Struct("<Q7I4x3Q")  # CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory; parameters, extra; CUkernel
_MEMSET: Final = struct.Struct("<2Q2I2Q")  # CUDA_MEMSET_NODE_PARAMS: address, pitch, value, element; width, height
_INSTANTIATED: Final = struct.pack("<Qi", 0, 0)  # CUDA_GRAPH_INSTANTIATE_PARAMS, from byte 16: node with an error, result


# -- capture -------------------------------------------------------------------------------------------------------------------------------


def _begin(driver: StandInDriver, stream: int, graph: DriverGraph, after: Iterable[DriverNode]) -> None:
    if stream in _LEGACY:
        raise CallFailed(calls.CAPTURE_UNSUPPORTED, "the default stream cannot be captured")
    if stream in driver.captures:
        raise CallFailed(calls.INVALID_VALUE)
    StreamCapture(driver, graph, stream).join(stream, after)


@serves("Q i", "cuStreamBeginCapture_v2")
def _begin_new(driver: StandInDriver, stream: int, mode: int) -> None:
    graph = DriverGraph()
    driver.made(graph)
    _begin(driver, stream, graph, ())


@serves("Q Q Q Q Q i", "cuStreamBeginCaptureToGraph")
def _begin_in(driver: StandInDriver, stream: int, graph: int, after: int, edges: int, count: int, mode: int) -> None:
    _begin(driver, stream, driver.of(graph, DriverGraph), nodes_at(driver, after, count))


@serves("Q >Q", "cuStreamEndCapture")
def _end(driver: StandInDriver, stream: int) -> int:
    capture = _captured(driver, stream)
    if capture is None or capture.origin != stream:
        raise CallFailed(calls.CAPTURE_UNMATCHED)
    driver.captures = {each: other for each, other in driver.captures.items() if other is not capture}
    if not capture.joined():
        raise CallFailed(calls.CAPTURE_UNJOINED, "the capture ends, and its stream does not wait for another one that belongs to it")
    return capture.graph.handle


def _captured(driver: StandInDriver, stream: int) -> StreamCapture | None:
    found: Any = driver.captures.get(stream)
    return found  # type: ignore[no-any-return]


def graph_of(driver: StandInDriver, stream: int) -> int:
    """The handle of the graph that a stream is captured in; 0: none."""
    capture = _captured(driver, stream)
    return capture.graph.handle if capture is not None else 0


def join_all(driver: StandInDriver, stream: int) -> None:
    """A captured stream waits for all others of its capture."""
    capture = _captured(driver, stream)
    if capture is not None:
        capture.join(stream, itertools.chain(*capture.ends.values()))


@serves("Q >i", "cuStreamIsCapturing")
def _is_capturing(driver: StandInDriver, stream: int) -> int:
    return int(stream in driver.captures)


_MOST_ENDS: Final = 512  # nodes for which the library has an array: the last word of a call that asks for them (source/graph_arrays.h)
_WORDS: Final = " ".join("Q" * 16)


@serves(_WORDS, "cuStreamGetCaptureInfo_v2")
def _info(driver: StandInDriver, stream: int, status: int, identity: int, graph: int, ends: int, count: int, *more: int) -> None:
    capture = _captured(driver, stream)
    driver.memory.write(status, struct.pack("<i", capture is not None))
    nodes = capture.ends[stream] if capture is not None else []
    if ends and len(nodes) > _MOST_ENDS:
        raise CallFailed(calls.NOT_SUPPORTED, f"a stream of a capture comes after more than {_MOST_ENDS} nodes")
    if ends and nodes:
        driver.memory.write(more[-1], struct.pack(f"<{len(nodes)}Q", *(each.handle for each in nodes)))
    handle = graph_of(driver, stream)
    for place, value in ((identity, handle), (graph, handle), (ends, more[-1] if nodes else 0), (count, len(nodes))):
        if place:
            driver.memory.write(place, struct.pack("<Q", value))


@serves(_WORDS, "cuStreamGetCaptureInfo_v3")
def _info_with_edges(
    driver: StandInDriver, stream: int, status: int, identity: int, graph: int, ends: int, edges: int, count: int, *more: int
) -> None:
    """All edges are plain ones."""
    _info(driver, stream, status, identity, graph, ends, count, *more)
    if edges:
        driver.memory.write(edges, bytes(8))


_SETS: Final = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES


@serves("Q Q Q I", "cuStreamUpdateCaptureDependencies")
def _update_ends(driver: StandInDriver, stream: int, nodes: int, count: int, flags: int) -> None:
    capture = _captured(driver, stream)
    if capture is None:
        raise CallFailed(calls.CAPTURE_UNMATCHED)
    if flags & _SETS:
        capture.ends[stream] = []
    capture.join(stream, nodes_at(driver, nodes, count))


@serves("Q Q Q Q I", "cuStreamUpdateCaptureDependencies_v2", *(f"_cudaStreamUpdateCaptureDependencies{end}" for end in ("", "_v2")))
def _update_ends_and_edges(driver: StandInDriver, stream: int, nodes: int, edges: int, count: int, flags: int) -> None:
    """Versions without edges have their number there: as in node_calls.py."""
    older = 0 < edges < 1 << 32
    _update_ends(driver, stream, nodes, *((edges, count) if older else (count, flags)))


def resume(driver: StandInDriver, stream: int, handle: int) -> None:
    """Go on with a capture that has ended, behind all of its nodes."""
    graph = driver.of(handle, DriverGraph)
    inner = set(itertools.chain(*(node.after for node in graph.nodes)))
    _begin(driver, stream, graph, [node for node in graph.nodes if node not in inner])


accepted("Q", "cuThreadExchangeStreamCaptureMode")  # the mode says which calls fail meanwhile

# -- graphs and their nodes ----------------------------------------------------------------------------------------------------------------

accepted("Q", "cuGraphDestroy", "cuGraphExecDestroy")
accepted("Q Q", "cuGraphUpload")


@dataclass(eq=False)
class UserObject:
    """An object that a graph keeps for its nodes, as arguments of kernels. Graphs are never destroyed here, so it is not either."""

    handle: int = 0


accepted("Q I", "cuUserObjectRetain", "cuUserObjectRelease")
accepted("Q Q I I", "cuGraphRetainUserObject", "cuGraphReleaseUserObject")


@serves(">Q Q Q I I", "cuUserObjectCreate")
def _user_object(driver: StandInDriver, given: int, destroy: int, count: int, flags: int) -> int:
    return driver.made(UserObject())


def nodes_at(driver: StandInDriver, place: int, count: int) -> list[DriverNode]:
    """The nodes whose handles are at an address. Raises CallFailed."""
    handles = struct.unpack(f"<{count}Q", driver.memory.read(place, 8 * count)) if count else ()
    return [driver.of(each, DriverNode) for each in handles]


@serves(">Q I", "cuGraphCreate")
def _create(driver: StandInDriver, flags: int) -> int:
    return driver.made(DriverGraph())


@serves(">Q Q", "cuGraphClone")
def _clone(driver: StandInDriver, graph: int) -> int:
    return driver.of(graph, DriverGraph).copied(driver).handle  # type: ignore[no-any-return]


def adds(work_of: NodeWork, *names: str, layout: str = "Q", node_type: NodeType | None = None) -> None:
    """These calls add a node, which does what its parameters say: mostly those at an address. `node_type`: that of cuGraphAddNode."""

    @serves(f">Q Q Q Q {layout}", *names)
    def add(driver: StandInDriver, graph: int, after: int, count: int, *params: int) -> int:
        return driver.of(graph, DriverGraph).add(driver, work_of(driver, *params), nodes_at(driver, after, count)).handle  # type: ignore[no-any-return]

    if node_type is not None:
        node_type.works[names[0].startswith("_")] = work_of


def sets(work_of: NodeWork, node: str, executable: str, layout: str = "Q") -> None:
    """These calls change what a node does, in its graph or in an executable one."""

    @serves(f"Q {layout}", node)
    def change(driver: StandInDriver, node: int, *params: int) -> None:
        driver.of(node, DriverNode).work = work_of(driver, *params)

    @serves(f"Q Q {layout}", executable)
    def change_executable(driver: StandInDriver, executable: int, node: int, *params: int) -> None:
        driver.of(executable, GraphExecutable).change(driver.of(node, DriverNode), work_of(driver, *params))


def kernel_node(driver: StandInDriver, place: int, kernel_of: Callable[[StandInDriver, int], int] | None = None) -> StreamWork:
    """The launch that the parameters of a kernel node ask for. Raises CallFailed. `kernel_of`: gives the kernel of a host function."""
    function, x, y, z, bx, by, bz, shared, params, extra, kernel = _KERNEL.unpack(driver.memory.read(place, _KERNEL.size))
    handle = kernel_of(driver, function) if kernel_of is not None else function or kernel
    return kernel_work(driver, handle, DriverLaunch((x, y, z), (bx, by, bz), shared, 0), params, extra)


def memset_node(driver: StandInDriver, place: int) -> StreamWork:
    """The fill that the parameters of a memset node describe."""
    address, pitch, value, element, width, height = _MEMSET.unpack(driver.memory.read(place, _MEMSET.size))
    rows = [memory_calls.filling(driver, element, address + row * pitch, value, width) for row in range(height)]
    return _all(rows)


def _all(works: Sequence[StreamWork]) -> StreamWork:
    def work(stream: Any) -> None:
        for each in works:
            each(stream)

    return work


def child_node(driver: StandInDriver, graph: int) -> StreamWork:
    """The launch of another graph. Raises CallFailed."""
    return ChildGraph(driver, driver.of(graph, DriverGraph))


def _empty_node(driver: StandInDriver, *params: int) -> StreamWork:
    return _all(())


adds(kernel_node, "cuGraphAddKernelNode_v2", "cuGraphAddKernelNode", node_type=KERNEL)
adds(memset_node, "cuGraphAddMemsetNode", node_type=MEMSET)
adds(memory_calls.copy_node, "cuGraphAddMemcpyNode", node_type=MEMCPY)
adds(child_node, "cuGraphAddChildGraphNode", node_type=CHILD)
adds(_empty_node, "cuGraphAddEmptyNode", node_type=EMPTY)
sets(kernel_node, "cuGraphKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams_v2")
sets(memory_calls.copy_node, "cuGraphMemcpyNodeSetParams", "cuGraphExecMemcpyNodeSetParams")
sets(memset_node, "cuGraphMemsetNodeSetParams", "cuGraphExecMemsetNodeSetParams")


@serves("Q Q Q", "cuGraphGetNodes")
def _all_nodes(driver: StandInDriver, graph: int, places: int, count: int) -> None:
    tell_nodes(driver, driver.of(graph, DriverGraph).nodes, places, count)


def tell_nodes(driver: StandInDriver, nodes: Sequence[DriverNode], places: int, count: int) -> None:
    """Write the handles of nodes at an address, as far as there is room, and their number; without an address the number alone."""
    if places:
        (room,) = struct.unpack("<Q", driver.memory.read(count, 8))
        nodes = nodes[:room]
        driver.memory.write(places, struct.pack(f"<{len(nodes)}Q", *(each.handle for each in nodes)))
    driver.memory.write(count, struct.pack("<Q", len(nodes)))


# -- graphs that can be launched -----------------------------------------------------------------------------------------------------------


@serves(">Q Q", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags")
def _instantiate(driver: StandInDriver, graph: int) -> int:
    return driver.made(GraphExecutable(driver.of(graph, DriverGraph)))


@serves(">Q Q Q", "cuGraphInstantiateWithParams")
def _instantiate_as(driver: StandInDriver, graph: int, params: int) -> int:
    driver.memory.write(params + 16, _INSTANTIATED)
    return _instantiate(driver, graph)  # type: ignore[no-any-return]


@serves("Q Q Q", "cuGraphExecUpdate_v2")
def _update(driver: StandInDriver, executable: int, graph: int, result: int) -> None:
    driver.of(executable, GraphExecutable).become(driver.of(graph, DriverGraph))
    driver.memory.write(result, bytes(4))


@serves("Q Q", "cuGraphLaunch")
def _launch(driver: StandInDriver, executable: int, stream: int) -> None:
    found = driver.of(executable, GraphExecutable)
    driver.work(stream, lambda current: found.launch(driver.session.streams, current))
