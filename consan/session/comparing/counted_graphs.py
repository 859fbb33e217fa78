"""Launches of graphs whose nodes are only counted (executing/graph_nodes.py): the function that CUPTI calls counts them.

So such a graph is that of the program: a kernel that counts, even one for which no node waits, makes a graph of one line one of two. Nodes
belong to the capture, to the graph that comes of it, to copies of this and graphs that have it as a part, and to what is instantiated from
these. Calls are looked at here though the comparison of launches has ended.

Not counted: launches by the device; those of a graph whose nodes are removed, exchanged, or added by `cuGraphAddNode`, or that is launched
into another capture: the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.backends.callbacks import DriverCall
    from consan.session.comparing.captures import Captures

MOST_EXECUTABLES: Final = 1 << 12  # of a process: C has no room for more
_LOSES: Final = re.compile(
    r"cuGraph(AddNode|DestroyNode|ExecChildGraphNodeSetParams|ChildGraphNodeSetParams|NodeSetParams|ExecNodeSetParams)"
)
_IN_CAPTURE: Final = "cuGraphLaunch, in a capture"


@dataclass(eq=False)
class CountedNode:
    """A node. `launches`: of the graphs that have it."""

    launches: int = 0


Nodes = tuple[CountedNode, ...]


@dataclass(eq=False)
class CountedGraphs:
    """Those of a program, by their handles. `lost`: the call since which launches may be missing."""

    captures: Captures
    lost: str = ""
    _graphs: dict[int, Nodes] = field(default_factory=dict)
    _executables: dict[int, Nodes] = field(default_factory=dict)
    _used: set[int] = field(default_factory=set)  # handles of executables

    @property
    def serves(self) -> bool:
        """Whether launches of graphs that are captured now are counted."""
        facts = self.captures.program.facts
        return facts is not None and facts.serves_alone and not self.lost and len(self._used) < MOST_EXECUTABLES

    def called(self, call: DriverCall) -> None:
        """The program has made a call."""
        if not (self.serves or self._graphs or self._executables):
            return
        meaning = _ROWS.get(call.name)
        if meaning is not None:
            meaning(self, call.values)
        elif self._graphs and _LOSES.fullmatch(call.name.removesuffix("_v2")):
            self.lost = self.lost or call.name

    def take(self) -> str:
        """Count the launches up to now. Gives `lost`."""
        for executable in self._executables:
            self._take(executable)
        return self.lost

    def _take(self, executable: int) -> None:
        facts = self.captures.program.facts
        times = 0 if facts is None else facts.taken_count(executable)
        for node in self._executables.get(executable, ()):
            node.launches += times

    def begins(self, values: tuple[int, ...]) -> None:
        """A stream is captured."""
        self._left(values[0])

    def ends(self, values: tuple[int, ...]) -> None:
        """A capture has ended in a graph."""
        stream, graph = values
        self._has(graph, self._left(stream))

    def _left(self, stream: int) -> Nodes:
        capture = self.captures.of(stream)
        if capture is None or not capture.counted:
            return ()
        nodes, capture.counted = tuple(capture.counted), []
        return nodes

    def _has(self, graph: int, nodes: Nodes) -> None:
        if nodes:
            self._graphs[graph] = nodes
        else:
            self._graphs.pop(graph, None)

    def cloned(self, values: tuple[int, ...]) -> None:
        """A graph is a copy of another one."""
        self._has(values[0], self._graphs.get(values[1], ()))

    def added(self, values: tuple[int, ...]) -> None:
        """A graph has become part of another one."""
        self._has(values[1], self._graphs.get(values[1], ()) + self._graphs.get(values[4], ()))

    def gone(self, values: tuple[int, ...]) -> None:
        """A graph is no more."""
        self._graphs.pop(values[0], None)

    def instantiated(self, values: tuple[int, ...]) -> None:
        """A graph can be launched, or another one by the same handle."""
        executable, graph = values[:2]
        self._becomes(executable, self._graphs.get(graph, ()))

    def _becomes(self, executable: int, nodes: Nodes) -> None:
        self._take(executable)
        self._executables.pop(executable, None)
        facts = self.captures.program.facts
        if nodes and facts is not None:
            if not facts.count_kernel(executable):
                self.lost = self.lost or "cuGraphInstantiate, too often"
            facts.taken_count(executable)  # those of an earlier one with this handle
            self._used.add(executable)
            self._executables[executable] = nodes

    def destroyed(self, values: tuple[int, ...]) -> None:
        """It cannot be launched any more."""
        self._becomes(values[0], ())

    def launched(self, values: tuple[int, ...]) -> None:
        """A graph is launched: into a capture it becomes a part of another one."""
        if self._executables.get(values[0]) and self.captures.of(values[1]) is not None:
            self.lost = self.lost or _IN_CAPTURE


_ROWS: Final[Mapping[str, Callable[[CountedGraphs, tuple[int, ...]], None]]] = {
    "cuStreamBeginCapture": CountedGraphs.begins,
    "cuStreamEndCapture": CountedGraphs.ends,
    "cuGraphClone": CountedGraphs.cloned,
    "cuGraphAddChildGraphNode": CountedGraphs.added,
    "cuGraphDestroy": CountedGraphs.gone,
    **dict.fromkeys(("cuGraphInstantiate", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams"), CountedGraphs.instantiated),
    "cuGraphExecUpdate": CountedGraphs.instantiated,
    "cuGraphExecDestroy": CountedGraphs.destroyed,
    "cuGraphLaunch": CountedGraphs.launched,
}
