"""Graphs of the program: their nodes, captures that go on, and graphs that can be launched.

A node is what its call would do in a stream. A launch of a graph does it in the launch's stream, and in streams of the graph where nodes
have no order. So nodes without an order are compared as work of two streams is, and launches of one graph come one after the other.
"""

from __future__ import annotations

import graphlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.stream_calls import EDGE


class NestedWork(ABC):
    """The work of a node that launches graphs. Each executable graph has its own of them: launches of two are in no order."""

    @abstractmethod
    def instantiated(self) -> StreamWork:
        """The work for one executable graph. Raises CallFailed."""

    def __call__(self, stream: Any) -> None:
        """Do it once."""
        self.instantiated()(stream)


class SetAtLaunch(ABC):
    """A value that each launch of a graph sets before its nodes run (conditional_calls.py)."""

    @abstractmethod
    def set(self, stream: Any) -> None:
        """Set it, in a stream of the session."""


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
    set_at_launch: list[SetAtLaunch] = field(default_factory=list)
    handle: int = 0
    captured: bool = False  # its edges follow from events

    def add(self, driver: StandInDriver, work: StreamWork, after: Iterable[DriverNode]) -> DriverNode:
        """A new node."""
        self.nodes.append(DriverNode(work, list(after)))
        driver.made(self.nodes[-1])
        return self.nodes[-1]

    def copied(self, driver: StandInDriver) -> DriverGraph:
        """A graph whose nodes do the same as these do now."""
        made, copies = DriverGraph(set_at_launch=list(self.set_at_launch), captured=self.captured), dict[DriverNode, DriverNode]()
        for node in self.nodes:
            copies[node] = made.add(driver, node.work, ())
        for node, copy in copies.items():
            copy.after += [copies[each] for each in node.after]
        driver.made(made)
        return made


@dataclass(eq=False)
class StreamCapture:
    """A capture that goes on. `ends`: the nodes that each stream's next one comes after."""

    driver: StandInDriver
    graph: DriverGraph
    origin: int
    ends: dict[int, list[DriverNode]] = field(default_factory=dict)

    def add(self, stream: int, work: StreamWork) -> None:
        """Work that a stream of the capture is given becomes a node."""
        self.graph.captured = True
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
        self.handle, self.works, self._set_at_launch = 0, dict[DriverNode, StreamWork](), list[SetAtLaunch]()
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
        self._captured = graph.captured
        self.works, self._set_at_launch = {node: _for_one(node.work) for node in order}, list(graph.set_at_launch)
        last = dict[int, DriverNode]()  # of each lane
        for node in order:
            goes_on = (lane for lane, each in last.items() if each in self._after[node])
            lane = self._lanes[node] = next(goes_on, len(last))
            last[lane] = node
        if len(last) > 1 and not graph.captured:  # then a race of two nodes is one of two streams of the graph
            self._lanes |= {node: 1 + self._lanes[node] for node in order}

    def change(self, node: DriverNode, work: StreamWork) -> None:
        """Let a node do something else from the next launch on. Raises CallFailed."""
        if node not in self.works:
            raise CallFailed(calls.INVALID_VALUE)
        self.works[node] = _for_one(work)

    def launch(self, streams: Any, origin: Any) -> None:
        """Do the work of all nodes, behind what a stream was given so far."""
        if self._end is not None:
            origin.wait(self._end)
        for value in self._set_at_launch:
            value.set(origin)
        self._make_streams(streams, origin.edge or EDGE)
        begin, ends = origin.record(), dict[DriverNode, Any]()
        for node, work in self.works.items():
            lane = self._lanes[node]
            stream = self._streams[lane - 1] if lane else origin
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

    def _make_streams(self, streams: Any, edge: str) -> None:
        """All of them come before the first node: the accesses of a launch are kept from the second stream on."""
        while len(self._streams) < max(self._lanes.values(), default=0):
            self._streams.append(streams.make(blocking=False, edge=edge))
            self._streams[-1].graph = None if self._captured else self


def _for_one(work: StreamWork) -> StreamWork:
    return work.instantiated() if isinstance(work, NestedWork) else work


class ChildGraph(NestedWork):
    """The launch of another graph, as that is now."""

    def __init__(self, driver: StandInDriver, graph: DriverGraph) -> None:
        self._driver, self._graph = driver, graph.copied(driver)

    def instantiated(self) -> StreamWork:
        """The work for one executable graph."""
        child = GraphExecutable(self._graph)
        return lambda stream: child.launch(self._driver.session.streams, stream)
