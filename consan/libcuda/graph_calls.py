"""Calls that capture work in graphs, make graphs node by node, and launch them (driver API, "Graph Management").

A node is what its call would do in a stream. A launch of a graph does it in the launch's stream, and in streams of the graph where nodes
have no order. So nodes without an order are compared as work of two streams is, and launches of one graph come one after the other.

Nodes that run functions of the host are in host_calls.py, those that allocate in memory/graph_memory_calls.py.
Not handled: attributes of kernel nodes.
Conditional nodes are there for adapters only: `cudaGraphSetConditional` of a program's own kernels is in a library of machine code.
"""

from __future__ import annotations

import graphlib
import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls, memory_calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.launch_calls import DriverLaunch, kernel_work
from consan.libcuda.stream_calls import EDGE

_LEGACY: Final = (0, 1)  # handles of the default stream, which cannot be captured
_KERNEL: Final = struct.Struct("<Q7I4x3Q")  # CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory; parameters, extra; CUkernel
_MEMSET: Final = struct.Struct("<2Q2I2Q")  # CUDA_MEMSET_NODE_PARAMS: address, pitch, value, element; width, height
_INSTANTIATED: Final = struct.pack("<Qi", 0, 0)  # CUDA_GRAPH_INSTANTIATE_PARAMS, from byte 16: node with an error, result


@dataclass(eq=False)
class DriverNode:
    """A node: what it does in a stream, and the nodes that it comes after."""

    work: StreamWork
    after: list[DriverNode]
    handle: int = 0


@dataclass(eq=False)
class DriverGraph:
    """A graph of the program."""

    nodes: list[DriverNode] = field(default_factory=list)
    handle: int = 0

    def add(self, driver: StandInDriver, work: StreamWork, after: Iterable[DriverNode]) -> DriverNode:
        """A new node."""
        self.nodes.append(DriverNode(work, list(after)))
        driver.made(self.nodes[-1])
        return self.nodes[-1]


@dataclass(eq=False)
class StreamCapture:
    """A capture that goes on. `ends`: the nodes that each stream's next one comes after."""

    driver: StandInDriver
    graph: DriverGraph
    origin: int
    ends: dict[int, list[DriverNode]] = field(default_factory=dict)

    def add(self, stream: int, work: StreamWork) -> None:
        """Work that a stream of the capture is given becomes a node."""
        self.ends[stream] = [self.graph.add(self.driver, work, self.ends[stream])]

    def join(self, stream: int, after: Iterable[DriverNode]) -> None:
        """Later work of a stream comes after these nodes, too; the stream belongs to the capture."""
        known = self.ends.setdefault(stream, [])
        known += [each for each in after if each not in known]
        self.driver.captures[stream] = self

    def joined(self) -> bool:
        """Whether the origin comes after all that was captured in other streams."""
        reached, waiting = set[DriverNode](), [*self.ends[self.origin]]
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += node.after
        return all(node in reached for node in itertools.chain(*self.ends.values()))


class GraphExecutable:
    """A graph as it was when it was instantiated."""

    def __init__(self, graph: DriverGraph) -> None:
        self.handle, self.works = 0, dict[DriverNode, StreamWork]()
        self._after, self._lanes = dict[DriverNode, tuple[DriverNode, ...]](), dict[DriverNode, int]()
        self._streams: list[Any] = []  # those of lanes 1, 2 ...; lane 0 is the stream of a launch
        self._end: Any = None  # of the last launch
        self.become(graph)

    def become(self, graph: DriverGraph) -> None:
        """Take the nodes that a graph has now. Raises CallFailed."""
        self._after = {node: tuple(node.after) for node in graph.nodes}
        try:
            order = list(graphlib.TopologicalSorter(self._after).static_order())
        except graphlib.CycleError:
            raise CallFailed(calls.INVALID_VALUE, "the nodes of a graph wait for each other") from None
        self.works = {node: node.work for node in order}
        last = dict[int, DriverNode]()  # of each lane
        for node in order:
            goes_on = (lane for lane, each in last.items() if each in self._after[node])
            lane = self._lanes[node] = next(goes_on, len(last))
            last[lane] = node

    def launch(self, streams: Any, origin: Any) -> None:
        """Do the work of all nodes, behind what a stream was given so far."""
        if self._end is not None:
            origin.wait(self._end)
        begin, ends = origin.record(), dict[DriverNode, Any]()
        for node, work in self.works.items():
            lane = self._lanes[node]
            stream = self._stream(streams, lane, origin.edge or EDGE) if lane else origin
            for each in self._after[node]:
                if self._lanes[each] != lane:
                    stream.wait(ends[each])
            if lane and not self._after[node]:
                stream.wait(begin)
            work(stream)
            ends[node] = stream.record()
        for node, end in ends.items():
            if self._lanes[node]:
                origin.wait(end)
        self._end = origin.record()

    def _stream(self, streams: Any, lane: int, edge: str) -> Any:
        while len(self._streams) < lane:
            self._streams.append(streams.make(blocking=False, edge=edge))
        return self._streams[lane - 1]


class GraphCondition:
    """The condition of a conditional node: a word of device memory, as it was when a kernel of the driver last read it."""

    def __init__(self, driver: StandInDriver, address: int) -> None:
        self._driver, self._address, self._value = driver, address, False

    def read(self, stream: Any) -> None:
        """A stream of the session reads the word."""
        word = self._driver.view(self._address, 4)
        self._value = bool(word.any())
        self._driver.session.streams.operated("the condition of a graph's node", stream, [(self._address, word)], [])

    def choose(self, on_true: DriverGraph | None, on_false: DriverGraph | None) -> StreamWork:
        """A node that launches one of two graphs."""
        bodies = _Body(self._driver, on_false), _Body(self._driver, on_true)

        def work(stream: Any) -> None:
            bodies[self._value].launch(stream)

        return work

    def repeat(self, graph: DriverGraph) -> StreamWork:
        """A node that launches a graph as long as the condition holds. The graph has to read it again."""
        body = _Body(self._driver, graph)

        def work(stream: Any) -> None:
            while self._value:
                body.launch(stream)

        return work


class _Body:
    """The graph of a conditional node. It is captured once the node is there."""

    def __init__(self, driver: StandInDriver, graph: DriverGraph | None) -> None:
        self._driver, self._graph = driver, graph
        self._executable: GraphExecutable | None = None

    def launch(self, stream: Any) -> None:
        if self._graph is not None:
            self._executable = self._executable or GraphExecutable(self._graph)
            self._executable.launch(self._driver.session.streams, stream)


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
    _begin(driver, stream, driver.of(graph, DriverGraph), _nodes(driver, after, count))


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


@serves("Q Q Q Q Q Q", "cuStreamGetCaptureInfo_v2")
def _info(driver: StandInDriver, stream: int, status: int, identity: int, graph: int, ends: int, count: int) -> None:
    capture = _captured(driver, stream)
    if capture is not None and ends:
        raise CallFailed(calls.NOT_SUPPORTED, "consan's stand-in driver does not give the nodes of a capture")
    handle = graph_of(driver, stream)
    driver.memory.write(status, struct.pack("<i", capture is not None))
    for place, value in ((identity, handle), (graph, handle), (count, 0)):
        if place:
            driver.memory.write(place, struct.pack("<Q", value))


@serves("Q Q Q Q Q Q Q", "cuStreamGetCaptureInfo_v3")
def _info_with_edges(driver: StandInDriver, stream: int, *places: int) -> None:
    _info(driver, stream, *places[:4], places[5])


def resume(driver: StandInDriver, stream: int, handle: int) -> None:
    """Go on with a capture that has ended, behind all of its nodes."""
    graph = driver.of(handle, DriverGraph)
    inner = set(itertools.chain(*(node.after for node in graph.nodes)))
    _begin(driver, stream, graph, [node for node in graph.nodes if node not in inner])


accepted("Q", "cuThreadExchangeStreamCaptureMode")  # the mode says which calls fail meanwhile

# -- graphs and their nodes ----------------------------------------------------------------------------------------------------------------

accepted("Q", "cuGraphDestroy", "cuGraphExecDestroy")
accepted("Q Q", "cuGraphUpload")


def _nodes(driver: StandInDriver, place: int, count: int) -> list[DriverNode]:
    """The nodes whose handles are at an address. Raises CallFailed."""
    handles = struct.unpack(f"<{count}Q", driver.memory.read(place, 8 * count)) if count else ()
    return [driver.of(each, DriverNode) for each in handles]


@serves(">Q I", "cuGraphCreate")
def _create(driver: StandInDriver, flags: int) -> int:
    return driver.made(DriverGraph())


@serves(">Q Q", "cuGraphClone")
def _clone(driver: StandInDriver, graph: int) -> int:
    """A graph whose nodes do the same as these do now."""
    made, copies = DriverGraph(), dict[DriverNode, DriverNode]()
    for node in driver.of(graph, DriverGraph).nodes:
        copies[node] = made.add(driver, node.work, ())
    for node, copy in copies.items():
        copy.after += [copies[each] for each in node.after]
    return driver.made(made)


NodeWork = Callable[..., StreamWork]


def adds(work_of: NodeWork, *names: str, layout: str = "Q") -> None:
    """These calls add a node, which does what its parameters say: mostly those at an address."""

    @serves(f">Q Q Q Q {layout}", *names)
    def add(driver: StandInDriver, graph: int, after: int, count: int, *params: int) -> int:
        return driver.of(graph, DriverGraph).add(driver, work_of(driver, *params), _nodes(driver, after, count)).handle  # type: ignore[no-any-return]


def sets(work_of: NodeWork, node: str, executable: str, layout: str = "Q") -> None:
    """These calls change what a node does, in its graph or in an executable one."""

    @serves(f"Q {layout}", node)
    def change(driver: StandInDriver, node: int, *params: int) -> None:
        driver.of(node, DriverNode).work = work_of(driver, *params)

    @serves(f"Q Q {layout}", executable)
    def change_executable(driver: StandInDriver, executable: int, node: int, *params: int) -> None:
        works = driver.of(executable, GraphExecutable).works
        if (found := driver.of(node, DriverNode)) not in works:
            raise CallFailed(calls.INVALID_VALUE)
        works[found] = work_of(driver, *params)


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
    child = GraphExecutable(driver.of(graph, DriverGraph))
    return lambda stream: child.launch(driver.session.streams, stream)


def _empty_node(driver: StandInDriver, params: int) -> StreamWork:
    return _all(())


adds(kernel_node, "cuGraphAddKernelNode_v2", "cuGraphAddKernelNode")
adds(memset_node, "cuGraphAddMemsetNode")
adds(memory_calls.copy_node, "cuGraphAddMemcpyNode")
adds(child_node, "cuGraphAddChildGraphNode")
adds(_empty_node, "cuGraphAddEmptyNode")
sets(kernel_node, "cuGraphKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams_v2")
sets(memory_calls.copy_node, "cuGraphMemcpyNodeSetParams", "cuGraphExecMemcpyNodeSetParams")
sets(memset_node, "cuGraphMemsetNodeSetParams", "cuGraphExecMemsetNodeSetParams")


@serves("Q Q Q Q", "cuGraphAddDependencies")
def _depend(driver: StandInDriver, graph: int, before: int, after: int, count: int, *more: int) -> None:
    for first, second in zip(_nodes(driver, before, count), _nodes(driver, after, count), strict=True):
        second.after.append(first)


@serves("Q Q Q", "cuGraphGetNodes")
def _all_nodes(driver: StandInDriver, graph: int, places: int, count: int) -> None:
    nodes = driver.of(graph, DriverGraph).nodes
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
