"""Graphs that a program captures on a GPU, and launches (CUDA Programming Guide, "CUDA Graphs"; SEMANTICS 12, R-GM14).

Work that is put into a captured stream becomes a node. Nodes are ordered as the streams of the capture are, by the events that are recorded
and waited for in it. Nodes without an order are compared when they are captured. A launch of the graph puts all nodes behind what its
stream was given before, with the order that they have; launches of one executable graph come one after the other.

The accesses of a launch into a graph are known only if they are proven.

Not followed: graphs that a program makes node by node, those that it changes, those of many nodes (nothing is known of their launches), and
events that are nodes (driver_calls.py ends the comparison).
"""

from __future__ import annotations

import functools
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple

from consan.dataclass import dataclass
from consan.session.comparing.concurrent_launches import ConcurrentLaunches
from consan.session.comparing.counted_graphs import CountedGraphs, CountedNode
from consan.session.comparing.pairs.done import GraphNode
from consan.session.comparing.streams import NONE, Event, Numbers, Stream

if TYPE_CHECKING:
    from consan.session.comparing.followed_streams import FollowedStreams

_UNKNOWN: Final = "a graph that was not captured as a whole, or was changed,"


@dataclass(eq=False)
class Capture:
    """A graph that is being captured. `whole`: all that was put into it is in `concurrent`; `began`: the stream that it began with.

    `counted`: its nodes whose launches are counted (counted_graphs.py); None: they cannot be.
    """

    began: int
    counted: list[CountedNode] | None = None
    concurrent: ConcurrentLaunches = field(default_factory=lambda: ConcurrentLaunches(required=False, of_program=True))
    streams: dict[int, Stream] = field(default_factory=dict)
    whole: bool = True


class WorkPlace(NamedTuple):
    """Where work goes: a stream of the program, or one of a graph that is being captured."""

    concurrent: ConcurrentLaunches
    stream: Stream
    capture: Capture | None = None


@dataclass
class Executable:
    """A graph that can be launched. `nodes`: None if they are not known.

    `last`: the launch that stands for the last one; `over`: what is over behind it.
    """

    nodes: tuple[GraphNode, ...] | None
    last: Numbers = NONE
    over: Numbers = NONE


@dataclass(eq=False)
class Captures:
    """The captures, the graphs and the events of a program, by their handles."""

    program: FollowedStreams
    events: dict[int, tuple[Capture | None, Event]] = field(default_factory=dict)
    graphs: dict[int, tuple[GraphNode, ...]] = field(default_factory=dict)
    executables: dict[int, Executable] = field(default_factory=dict)
    altered: bool = False  # the program has changed parameters of a kernel's node
    _captured: dict[int, Capture] = field(default_factory=dict)  # by the handles of their streams

    @functools.cached_property
    def counted(self) -> CountedGraphs:
        """The graphs whose launches are counted."""
        return CountedGraphs(self)

    def place(self, handle: int) -> WorkPlace:
        """Where work in a stream goes."""
        capture = self._captured.get(handle)
        if capture is None and self.program.is_captured_unseen(handle):
            self._join(handle, capture := Capture(handle, whole=False))
        if capture is None:
            return WorkPlace(self.program.concurrent, self.program.of(handle))
        return WorkPlace(capture.concurrent, capture.streams[handle], capture)

    @property
    def there_are_some(self) -> bool:
        """Whether a stream is captured."""
        return bool(self._captured)

    def begin(self, handle: int) -> None:
        """A stream is captured from now on."""
        self._join(handle, Capture(handle, [] if self.counted.serves else None))

    def of(self, handle: int) -> Capture | None:
        """The capture that a stream is in."""
        return self._captured.get(handle)

    def _join(self, handle: int, capture: Capture) -> None:
        """The driver is asked nothing of the stream: a query may end its capture."""
        self._captured[handle] = capture
        capture.streams.setdefault(handle, Stream()).edge = self.program.edge_of(handle)

    def end(self, handle: int, graph: int) -> None:
        """A capture has ended in a graph."""
        capture = self._captured.get(handle)
        self._captured = {key: each for key, each in self._captured.items() if each is not capture}
        nodes = capture.concurrent.nodes() if capture is not None and capture.whole else None
        if nodes is not None:
            self.graphs[graph] = nodes

    def record(self, event: int, place: WorkPlace) -> None:
        """An event is recorded."""
        self.events[event] = place.capture, place.stream.record()
        self.program.marked = True

    def wait(self, event: int, handle: int) -> None:
        """A stream waits for an event. One that waits for an event of a capture becomes part of that."""
        (capture, reached), own = self._reached(event), self._captured.get(handle)
        if capture is None and own is not None:
            own.whole = False
        elif capture is not None and capture in self._captured.values():
            self._join(handle, capture)
            capture.streams[handle].wait(reached)
        elif capture is None:
            self.program.of(handle).wait(reached)

    def passed(self, event: int) -> None:
        """The host knows that an event is reached."""
        capture, reached = self._reached(event)
        if capture is None:
            self.program.host_waits_for(reached)

    def _reached(self, event: int) -> tuple[Capture | None, Event]:
        """The work that an event stands for. One that nobody has seen being recorded may stand for all that was done so far."""
        found = self.events.get(event)
        if found is None:
            timeline = self.program.concurrent.timeline
            timeline.note_event()
            return None, Event(timeline.everything)
        return found

    def instantiate(self, graph: int, executable: int) -> None:
        """A graph can be launched."""
        self.executables[executable] = Executable(self.graphs.get(graph))

    def launch(self, executable: int, place: WorkPlace) -> bool:
        """A graph is launched. Returns whether it may be launched in the same stream again, right behind this launch, without a report.

        A launch with the order of an earlier one of the same graph has the same accesses: the earlier one stands for both.
        """
        found = self.executables.get(executable) or Executable(None)
        if found.nodes is None or place.capture is not None:
            self.program.did(_UNKNOWN, place, None, here=False)
            return False
        concurrent = self.program.concurrent
        if not (found.last and concurrent.timeline.in_turn(place.stream, found.last)):
            before = found.last
            found.last, found.over = concurrent.graph_launched(self.program.comparisons, found.nodes, place.stream, found.over)
            concurrent.timeline.host_waits(before)  # the new launch comes after them, and has the same accesses
        return True

    def allocated(self, address: int, nbytes: int) -> None:
        """Memory was given in the order of a stream."""
        self.program.allocations[address] = nbytes

    def freed(self, address: int, place: WorkPlace) -> None:
        """Memory was freed in the order of a stream: what is there next is other memory, and the driver orders its use."""
        nbytes = self.program.allocations.pop(address, 0)
        if place.capture is None and nbytes:
            self.program.concurrent.detached(address, nbytes)
