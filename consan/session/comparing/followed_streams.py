"""The streams of a program on a GPU, whose order the calls of the driver give (SEMANTICS 12, R-GM14).

Why the driver's calls (consan/backends/callbacks.py) and not the methods of each framework: a library makes calls of its own, and an edge
that nobody has seen would make a race of two launches that are ordered. All frameworks and all libraries call the driver, and
driver_calls.py names each call that may order streams and is not understood: nothing is compared from then on, and the report says why.

Why not the times of the device: two launches that overlap have no edge, but few that have no edge overlap. A launch whose global memory is
recorded is compared when it has been checked, beside the program; with another GPU or process in the order the host waits for it.

C notes most calls, and Python reads them in order (call_filter.py). Kernels are recorded once there is a second stream. A launch of
unknown accesses (machine code, a large one, one of many) is compared with nothing: each kernel that may run beside it has that as a reason.

Not followed: host threads (what one of them waits for, all know; one that gets the number of another that has ended gets its default
stream, too), and an order by memory that the host polls.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan.backends.base import DEFAULT_STREAMS, THREAD_STREAM, CallSource, FollowedLaunch
from consan.backends.contexts import NOTHING, ProcessMemory, look_where_launches_point
from consan.checker.compiled.concurrent_launches import Rows
from consan.dataclass import dataclass
from consan.reports.decoding.launch_race import OperationSide
from consan.reports.source.names import function_name
from consan.session.comparing import concurrent_launches
from consan.session.comparing.captures import Capture, Captures
from consan.session.comparing.comparisons import Comparisons, StreamsSeen
from consan.session.comparing.process_log import ProcessExchanges, ProcessLog
from consan.session.comparing.program_streams import Blocking, ProgramStream, ProgramStreams, caller
from consan.session.comparing.streams import NONE, Numbers

if TYPE_CHECKING:
    from consan.session.comparing.captures import WorkPlace
    from consan.session.comparing.counted_graphs import CountedNode
    from consan.session.comparing.driver_calls import ProgramOrder
    from consan.session.comparing.launch_memory import LaunchShape
    from consan.session.modules.prepared import Prepared

MOST_EARLY: Final = 64  # operations that are kept while there is one stream
FIRST_CALLS: Final = 256  # Python gets these at once: the report names the program's lines that made them
_EVENTS: Final = (
    "a launch records an event by an attribute (programmaticEvent, launchCompletionEvent): what waits for it may run beside the launch,"
    " and was not compared"
)
_EARLY: Final = "what the program did before it had a second stream"
_LEGACY: Final = 1  # its two lowest bits are those of no handle of another stream
_THREAD_BITS: Final = 64
EDGE: Final = " (cudaEventRecord, cudaStreamWaitEvent)"


class _Making(threading.local):
    depth = 0
    programmatic = False  # the launch is a programmatic dependent one


@dataclass(eq=False)
class FollowedStreams(ProgramStreams):
    """The streams of one session's program. `facts`: None while nobody follows the driver's calls."""

    facts: CallSource | None = None
    order: ProgramOrder | None = None
    several: bool = False  # streams
    context: int = 0  # the number of that in which the call or the launch is made that is looked at
    allocations: dict[int, int] = field(default_factory=dict)  # in the order of streams: address and bytes
    _calls: int = 0  # that were heard of at once
    marked: bool = False  # an event was recorded since the last launch whose accesses are not known
    _early: int = -1  # the number of that launch
    _contexts: dict[int, int] = field(default_factory=dict)  # their numbers
    _used: set[int] = field(default_factory=set)  # the numbers of those that the program has used
    _names: dict[int, str] = field(default_factory=dict)  # of kernels that nobody records, by their handles
    own: _Making = field(default_factory=_Making)  # `depth`: how many launches this thread is in whose accesses the session knows

    def __post_init__(self) -> None:
        super().__post_init__()
        self.concurrent.of_program = True
        self.seen, self.captures, self.exchanges = StreamsSeen([self.comparisons]), Captures(self), ProcessExchanges(self)

    @property
    def several_devices(self) -> bool:
        """Whether the program has used several contexts."""
        return len(self._used) > 1

    def enter(self, context: int, *, peers: bool = False) -> int:
        """A call or a launch is made in a context of the driver. Its number: 0 is that of the first one. `peers`: it may reach another."""
        if context:
            self._use(self._numbered(context))
        if peers:
            self.reaches_others()
        return self.context

    def _numbered(self, context: int) -> int:
        return self._contexts.setdefault(context, len(self._contexts))

    def _use(self, number: int) -> None:
        """The program makes a call or a launch in a context."""
        self.context = number
        if number not in self._used:
            self._used.add(number)
            look_where_launches_point()
            if self.several_devices and len(self.seen.comparisons) > 1:
                self.reaches_others()

    def reaches_others(self) -> None:
        """Launches may reach another GPU from now on."""
        self.second()
        for each in self.seen.comparisons:
            each.accesses.peers = True

    def second(self) -> None:
        """There is another stream from now on, or launches may reach another GPU."""
        if not self.several:
            self._stop_noting()
            self.several = self.looks_at_global
            look_where_launches_point()

    def opened(self, context: int, device: int, comparisons: Comparisons) -> int:
        """Launches in a context are compared. Its number. `device`: that of its GPU.

        The session's own is the first one. The program may use others alone, as a rank does whose GPU is not the first.
        """
        with self.lock:
            self.read_noted()
            number = self._numbered(context)
            self.concurrent.devices[number] = device
            if comparisons is not self.comparisons:
                self.seen.comparisons.append(comparisons)
                self._use(number)
                if self.several_devices:
                    self.reaches_others()
            return number

    @property
    def with_processes(self) -> ProcessMemory:
        """The memory that the process shares with others, as far as its calls are seen."""
        return NOTHING if self.facts is None else self.facts.memory

    def chain(self, by: Comparisons) -> None:
        """There is a kernel that may start while the launch before it runs, or lets the next one start."""
        self.second()
        by.accesses.chained = self.facts is not None and self.facts.reads_attributes

    @property
    def log(self) -> ProcessLog | None:
        """The facts that other processes are to know. None: no memory is shared with any."""
        return self.concurrent.log

    def shares(self, rank: int, world: int) -> ProcessLog:
        """From now on memory is shared with other processes. Each process is a rank."""
        with self.lock:
            self.read_noted()
            if self.concurrent.log is None:
                self.concurrent.log = ProcessLog(rank, world)
                self.reaches_others()
            return self.concurrent.log

    def compares_in(self, handle: int, context: int = 0) -> bool:
        """Whether the launch that is about to be made in a stream is compared. The stream may be one that the program has kept for long."""
        with self.lock:
            self._use(context)
            if not self.needs_none and not (self.noting and handle in DEFAULT_STREAMS):
                self.captures.place(handle)
            return self.compares

    @property
    def compares(self) -> bool:
        """Whether launches are compared: the accesses of the next one are wanted."""
        return self.several and self.facts is not None and not self.seen.why

    @property
    def made_by_us(self) -> bool:
        """Whether this thread is within a launch whose accesses the session knows."""
        return self.own.depth > 0

    def make(self, *, blocking: bool, edge: str = "", handle: int = 0, device: int | None = None) -> ProgramStream:
        """The program makes a stream, or uses one that it has made before."""
        self._stop_noting()  # whose streams are those that are known
        self.second()
        return self.keep(ProgramStream(self, Blocking.YES if blocking else Blocking.NO, handle, edge or EDGE, self.context))

    def of(self, handle: int, edge: str = "") -> ProgramStream:
        """The stream with a handle. A thread's own default stream is that of the calling thread."""
        with self.lock:
            key = self.key(handle)
            found = self._known.get(key)
            if found is None and key % 4 == _LEGACY:
                found = self.keep(ProgramStream(self, Blocking.DEFAULT, key, EDGE, self.context))
            elif found is None:
                blocking = self.facts is None or key % 4 == THREAD_STREAM or self.facts.blocks(key)
                found = self.make(blocking=blocking, handle=key)
            found.edge = edge or found.edge
            return found

    def is_captured_unseen(self, handle: int) -> bool:
        """Whether a stream that nobody knows is in a capture, which began before anybody followed the calls."""
        return handle % 4 == 0 and handle not in (*self._known, 0) and self.facts is not None and self.facts.is_captured(handle)

    def key(self, handle: int, thread: int = 0) -> int:
        """The key of a stream in the context that is looked at: each one has default streams of its own. `thread`: 0 is this one."""
        if handle == THREAD_STREAM:
            return ((self.context << _THREAD_BITS) + (thread or threading.get_ident())) << 2 | THREAD_STREAM
        return self.context << 2 | _LEGACY if self.context and handle in DEFAULT_STREAMS else handle

    def synchronize(self) -> None:
        """The host waits for all that was done in the context."""
        if not self.several_devices:
            super().synchronize()
            return
        with self.lock:
            timeline = self.concurrent.timeline
            for number in timeline.everything:
                if (stream := self.concurrent.stream_of(number)) is not None and stream.context == self.context:
                    timeline.host_waits(timeline.running.get(number, NONE))

    synchronize_all = ProgramStreams.synchronize  # of every context

    def _host_knows(self, over: Numbers) -> None:
        super()._host_knows(over)
        if self.log is not None:
            self.log.waited(self.concurrent.timeline.everything)

    def edge_of(self, handle: int) -> str:
        """How the program lets a stream wait for another one."""
        return known.edge if (known := self._known.get(handle)) is not None else EDGE

    def gone(self, handle: int) -> None:
        """A stream is destroyed: its handle may be given again. The work it has begun goes on.

        cuBLAS makes a stream and destroys it at once. If nothing of it runs and the default stream alone is left, there is one again.
        """
        with self.lock:
            self._stop_noting()
            found = self._known.pop(handle, None)
            alone = not self.several_devices and set(self._known.values()) == {self.default}
            if found is not None and alone and not self.concurrent.timeline.left(found.over):
                self.several, self.marked = False, True  # no earlier operation stands for what comes now

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Inside the block `framework_launched` reports this thread's launch, and not the driver's call."""
        self.own.depth += 1
        self.own.programmatic = False
        try:
            yield
        finally:
            self.own.depth -= 1

    def framework_launched(
        self, by: Comparisons, prepared: Prepared, shape: LaunchShape, stream: int, edge: str, context: int = 0
    ) -> Rows | None:
        """A framework has made a launch, whose accesses the recording has kept if they are known. Returns them if it is compared."""
        with self.lock:
            if not self.noting:
                self.read_noted()
            self._use(context)
            self.seen.launched(self.key(stream))
            if self.noting and stream in DEFAULT_STREAMS:  # its call of the driver is noted
                return None
            if self.facts is not None and not self.seen.why:
                place = self.captures.place(self.key(stream))
                place.stream.edge = edge or place.stream.edge
                if by.accesses.awaited is not None:
                    by.accesses.awaited.compare = lambda: self.concurrent.compare_awaited(self.lock)
                if not self._is_early(place, None):
                    return place.concurrent.launched(by, prepared, shape, place.stream, programmatic=self.own.programmatic)
            return None

    def launch_records_event(self) -> None:
        """A launch has recorded an event by an attribute."""
        if self.looks_at_global:
            self.comparisons.incomplete(_EVENTS)

    def adds_nothing(self, stream: int) -> bool:
        """Whether a launch like an earlier one in a stream adds nothing: there is no other stream, or the driver's call is noted."""
        if self.facts is None or self.seen.why or (stream in DEFAULT_STREAMS and self.noting):
            return True
        return not (self.several or self.marked) and self._early in self.concurrent.timeline.running

    def drops(self, *, placed: bool) -> bool:
        """Whether C drops the call of a launch that adds nothing, which is one more call until many are noted.

        `placed`: the session gives it its place, so nobody needs the call.
        """
        dropped = self.facts is not None and (placed or self._calls <= FIRST_CALLS) and self.facts.serves_alone
        self._calls += dropped
        return dropped

    def capture_of(self, stream: int) -> Capture | None:
        """The capture that began with a stream. None: there is none, or calls are not followed that may change the order of its nodes."""
        capture = None if self.needs_none else self.captures.place(stream).capture
        return capture if capture is not None and capture.began == stream else None

    def counted_in(self, stream: int) -> list[CountedNode] | None:
        """The nodes of the capture that a stream is in whose launches are counted. None: there is no such capture."""
        capture = None if self.needs_none else self.captures.of(stream)
        return None if capture is None else capture.counted

    def in_c(self, stream: int) -> tuple[bool, FollowedLaunch | None]:
        """Whether C may make launches into a stream, and how it notes them. None: nobody needs their calls, or Python makes them.

        It may where nobody needs them, or for the default stream, while it is the only one.
        """
        if self.facts is None or self.seen.why or self.several or stream not in DEFAULT_STREAMS:
            return self.needs_none, None
        found = self.facts.followed_launch()
        return found is not None, found

    @property
    def needs_none(self) -> bool:
        """Whether calls are not followed, or not any more."""
        return self.facts is None or bool(self.seen.why)

    def did(self, name: str, place: WorkPlace, rows: Rows | None, *, here: bool) -> None:
        """The program has put something else into a stream, `here`: by the line of Python that runs. `rows`: None if they are not known."""
        with self.lock:
            if not self._is_early(place, rows):
                place.concurrent.operated(self.comparisons, OperationSide(name, *(caller() if here else ("", 0))), place.stream, rows)

    def is_stood_for(self, place: WorkPlace) -> bool:
        """Whether the last operation stands for one more, of unknown accesses: it is such a one, and stands right before it."""
        with self.lock:
            return place.capture is None and place.concurrent.ends_unknown(place.stream)

    def pass_over(self, place: WorkPlace, handle: int, context: int) -> None:
        """Hear no more of launches into a stream while what it was given last stands for them."""
        with self.lock:
            if self.facts is not None and self.is_stood_for(place):
                self.facts.pass_over(handle, context)

    def pass_over_graph(self, executable: int, handle: int, context: int) -> None:
        """Hear no more of launches of a graph while its last one stands for them."""
        if self.facts is not None:
            self.facts.pass_over(handle, context, executable)

    def heard(self, context: int) -> None:
        """Python has got a call. If there have been many, later ones are noted."""
        self._calls += 1
        if self.captures.there_are_some or self.seen.why:
            self._stop_noting()
        elif self.facts is not None and not self.facts.notes and self._calls > FIRST_CALLS and context:
            handles = [each.handle for each in self._known.values() if each.handle % 4 == 0]
            self.facts.note(context, handles if self.several else None)

    @property
    def noting(self) -> bool:
        """Whether calls for the default stream are noted, because there is no other."""
        return self.facts is not None and self.facts.notes and not self.several

    def _stop_noting(self) -> None:
        if self.facts is not None and self.facts.notes:
            self.facts.note(None)

    def read_noted(self) -> None:
        """Place the noted calls before what the caller does."""
        if self.facts is not None:
            self.facts.read_noted()

    def kernel(self, function: int, *, there: bool) -> str:
        """The name of a kernel that nobody records. `there`: it is loaded now."""
        found = self._names.get(function)
        if found is None and self.facts is not None and there:
            found = self._names[function] = function_name(self.facts.kernel(function))
            self.facts.name_kernel(function)
        return found or "a kernel"

    def is_registered(self, address: int) -> bool:
        """Whether the driver knows the memory at an address: it is no pageable memory of the host."""
        assert self.facts is not None
        return self.facts.is_registered(address)

    def stops(self, why: str) -> None:
        """Compare nothing from now on: an edge may be missing."""
        with self.lock:
            self.seen.stops(why)
            look_where_launches_point()
            if self.facts is not None:
                self.facts.ends_order()
            self.concurrent.timeline.host_waits(self.concurrent.timeline.everything)

    def _is_early(self, place: WorkPlace, rows: Rows | None) -> bool:
        """While there is one stream, one launch whose accesses are not known stands for those that follow, up to the next event.

        If there are many, those that all streams come behind are passed by.
        """
        running = self.concurrent.timeline.running
        if len(running) >= concurrent_launches.MOST_OF_PROGRAM and place.capture is None:
            self.concurrent.pass_by(dict.fromkeys(self._known.values()))
        if self.several or place.capture is not None or (rows is not None and len(running) < MOST_EARLY):
            return False
        if self._early not in running or self.marked:
            if len(running) >= MOST_EARLY:
                self.concurrent.timeline.host_waits(Numbers(running))
            self._early, self.marked = self.concurrent.timeline.count, False
            self.concurrent.operated(self.comparisons, OperationSide(_EARLY, "", 0), place.stream, None)
        return True
