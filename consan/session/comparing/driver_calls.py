"""The order that calls of the driver give a program's work (CUDA Driver API, "Stream Management", "Event Management").

A call that waits for the host's sake is taken for an order of all that it may wait for: `cuMemFree` waits for the device, and a copy to
pageable memory for its stream. A call that may order streams and has no row here ends the comparison, with its name as the reason.

Not followed: what host functions in a stream (`cuLaunchHostFunc`) tell to other threads. What is before one may be over for the host: a
race with it is no finding, and makes the report incomplete. A framework's runtime waits for its own functions (program_streams.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from consan.backends import contexts as memory_of_processes
from consan.backends.base import THREAD_STREAM
from consan.dataclass import dataclass
from consan.session.comparing.array_rows import rows_between
from consan.session.comparing.followed_streams import FollowedStreams
from consan.session.comparing.program_streams import ProgramStream, is_of_runtime

if TYPE_CHECKING:
    from consan.backends.callbacks import DriverCall
    from consan.checker.compiled.concurrent_launches import Rows
    from consan.session.comparing.captures import Captures, WorkPlace
    from consan.session.comparing.comparisons import Comparisons
    from consan.session.modules.device import Device

__all__ = ["LAYOUTS", "FollowedStreams", "ProgramOrder", "follow", "matters"]
_MATTERS: Final = re.compile(
    r"cu(Stream|Event|Launch|Mem(cpy|set|Free|AllocAsync|AllocFromPool|BatchDecompress)|Graph(?!ics)|(Green)?Ctx(Record|Wait|Synchronize)"
    r"|EGL|WaitExternal|SignalExternal|IpcOpenEvent|GreenCtxStream)"
)
_IDLE: Final = re.compile(
    r"Get|Attribute|Priority|UserObject|DebugDot|Upload|IsCapturing|Enabled|ElapsedTime|cuEventCreate$|cuGraphCreate|AttachMem"
    r"|ConditionalHandle|FindInClone"
)
_CREATES: Final = "WithPriority"
_NON_BLOCKING, _EXTERNAL = 1, 1  # CU_STREAM_NON_BLOCKING, CU_EVENT_RECORD_EXTERNAL
_NOT_SEEN: Final = "the calls of its driver are not seen"
_ALTERS: Final = re.compile(r"cuGraph(Exec)?(Kernel|ChildGraph)?NodeSetParams")  # they may change the parameters of a kernel's node


Meaning = Callable[["ProgramOrder", "DriverCall"], None]


def matters(name: str) -> bool:
    """Whether a call may order streams, or puts work into one."""
    return name in LAYOUTS or (_MATTERS.match(name) is not None and _IDLE.search(name.removesuffix(_CREATES)) is None)


@dataclass(eq=False)
class ProgramOrder:
    """The order of one program's work, by its calls."""

    streams: FollowedStreams
    give_back: Callable[[], None]  # memory of the device that consan holds

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Is held while calls are reported."""
        return self.streams.lock

    @property
    def captures(self) -> Captures:
        """The graphs that are captured."""
        return self.streams.captures

    def called(self, call: DriverCall) -> None:
        """The program has made a call."""
        if call.noted:  # many are
            with self.streams.lock:
                if not self.streams.seen.why:
                    self.streams.enter(call.context)
                    _ROWS[call.name][1](self, call)
            return
        self.captures.altered = self.captures.altered or _ALTERS.fullmatch(call.name) is not None
        self.captures.counted.called(call)
        if self.streams.seen.why:
            return
        with self.streams.lock:
            self.streams.enter(call.context, peers=call.name == memory_of_processes.PEERS)
            row = _ROWS.get(call.name)
            if row is None:
                self.streams.stops(f"the program calls {call.name}, whose order is not followed")
            else:
                row[1](self, call)
                self.streams.heard(call.context)

    def missed(self, why: str) -> None:
        """A call was not understood."""
        self.streams.stops(why)

    def lacks_memory(self) -> None:
        """The device had no memory for the program."""
        self.give_back()

    def handle(self, call: DriverCall, at: int | None) -> int:
        """The stream that is a parameter of a call, or the default stream."""
        handle = 0 if at is None else call.values[at]
        return self.streams.key(THREAD_STREAM if call.per_thread and not handle else handle, call.thread)

    def place(self, call: DriverCall, at: int | None) -> WorkPlace:
        """Where the work of a call goes."""
        return self.captures.place(self.handle(call, at))

    def did(self, call: DriverCall, name: str, at: int | None, rows: Rows | None) -> WorkPlace:
        """The program has put something into a stream."""
        place = self.place(call, at)
        self.streams.did(name, place, rows, here=not call.thread)
        return place

    def host_waits(self, place: WorkPlace) -> None:
        """The host has waited for a stream."""
        if isinstance(place.stream, ProgramStream):  # work in a capture is not waited for
            self.streams.host_waits(place.stream)


def follow(comparisons: Comparisons, device: Device, *, looks_at_global: bool) -> FollowedStreams:
    """The streams of a session's program, by the driver's calls from now on. Where these are not seen, the streams know why."""
    streams, calls, contexts = FollowedStreams(comparisons, looks_at_global), device.backend.calls, device.backend.contexts
    if contexts is not None:
        streams.opened(contexts.own, contexts.device, comparisons)
    streams.order = ProgramOrder(streams, device.give_back)
    if looks_at_global:
        why = _NOT_SEEN if calls is None else calls.follow(streams.order, matters, LAYOUTS)
        if calls is None or why:
            streams.stops(why)
        else:
            streams.facts, streams.concurrent.timeline.changed = calls, calls.tell_all
            if calls.memory.peers:
                streams.reaches_others()
    return streams


def _pass(order: ProgramOrder, call: DriverCall) -> None:
    """Nothing follows."""


def _stream_made(order: ProgramOrder, call: DriverCall) -> None:
    handle, flags = call.values[:2]
    order.streams.gone(handle)
    order.streams.make(blocking=not flags & _NON_BLOCKING, handle=handle)


def _stream_gone(order: ProgramOrder, call: DriverCall) -> None:
    order.streams.gone(call.values[0])


def _recorded(order: ProgramOrder, call: DriverCall) -> None:
    if len(call.values) > 2 and call.values[2] & _EXTERNAL:
        order.streams.stops("a node of a graph records an event")
    order.captures.record(call.values[0], order.place(call, 1))


def _event_gone(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.events.pop(call.values[0], None)


def _waits(order: ProgramOrder, call: DriverCall) -> None:
    if call.values[2] & _EXTERNAL:
        order.streams.stops("a node of a graph waits for an event")
    order.captures.wait(call.values[1], order.handle(call, 0))


def _event_passed(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.passed(call.values[0])


def _stream_passed(order: ProgramOrder, call: DriverCall) -> None:
    order.host_waits(order.place(call, 0))


def _all_passed(order: ProgramOrder, call: DriverCall) -> None:
    order.streams.synchronize()


def _free(order: ProgramOrder, call: DriverCall) -> None:
    if call.values[0]:  # libraries free nothing, to make the driver begin
        order.streams.synchronize_all()  # its memory may be of any context


def _host_function(order: ProgramOrder, call: DriverCall) -> None:
    place = order.place(call, 0)
    if is_of_runtime(call.values[1], call.process):
        order.host_waits(place)
    elif isinstance(place.stream, ProgramStream):  # the host may know it from now on, in a way that nobody sees
        order.streams.perhaps_over(place.stream.record())


@dataclass(frozen=True)
class _Launches:
    """A kernel is launched: the numbers of the parameters that are its handle and its stream."""

    function: int
    stream: int

    def __call__(self, order: ProgramOrder, call: DriverCall) -> None:
        """Nothing is known of its accesses, unless the session makes the launch."""
        if call.records:
            order.streams.launch_records_event()
        if order.streams.made_by_us and not call.noted:
            order.streams.own.programmatic = order.streams.own.programmatic or call.programmatic
            return
        place, name = order.place(call, self.stream), order.streams.kernel(call.values[self.function], there=not call.noted)
        if not order.streams.is_stood_for(place):
            order.did(call, name, self.stream, None)
        if not (call.per_thread or call.noted) and call.values[self.stream] != THREAD_STREAM:
            order.streams.pass_over(place, call.values[self.stream], call.context)


def _capture_begins(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.begin(call.values[0])


def _capture_ends(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.end(*call.values)


def _instantiated(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.instantiate(call.values[1], call.values[0])


def _graph_launched(order: ProgramOrder, call: DriverCall) -> None:
    executable, stream = call.values
    at_once = not (call.per_thread or call.noted) and stream != THREAD_STREAM
    if order.captures.launch(executable, order.place(call, 1)) and at_once:
        order.streams.pass_over_graph(executable, stream, call.context)


def _graph_gone(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.graphs.pop(call.values[0], None)


def _executable_changed(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.executables.pop(call.values[0], None)


def _node_added(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.graphs.pop(call.values[1], None)


def _nodes_changed(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.graphs.clear()


def _freed(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.freed(call.values[0], order.place(call, 1))


def _allocated(order: ProgramOrder, call: DriverCall) -> None:
    order.captures.allocated(*call.values[:2])


@dataclass(frozen=True)
class _Copies:
    """A copy. `stream`: the number of that parameter; None: the default stream. `places`: those of target, source and bytes.

    `to_host`: the call returns when the copy is over, if it is no call for a stream.
    """

    stream: int | None
    to_host: bool
    places: tuple[int, int, int] = (0, 1, 2)

    def __call__(self, order: ProgramOrder, call: DriverCall) -> None:
        """Put the copy into its stream. The host waits for one to or from pageable memory."""
        to, source, nbytes = (call.values[each] for each in self.places)
        place = order.did(call, "a copy of memory", self.stream, rows_between([(source, source + nbytes)], [(to, to + nbytes)]))
        if place.capture is not None:  # the driver is asked nothing meanwhile
            return
        if call.noted:  # memory that it copied may be gone
            if call.waited:
                order.host_waits(place)
            return
        if (self.stream is None and self.to_host) or not all(map(order.streams.is_registered, (to, source))):
            order.host_waits(place)


@dataclass(frozen=True)
class _Sets:
    """A range of memory is set. `size`: bytes of an element."""

    size: int
    stream: int | None

    def __call__(self, order: ProgramOrder, call: DriverCall) -> None:
        """Put it into its stream."""
        to, nbytes = call.values[0], call.values[2] * self.size
        order.did(call, "a memset", self.stream, rows_between([], [(to, to + nbytes)]))


@dataclass(frozen=True)
class _Unknown:
    """An operation whose accesses are not read. `waits`: the host may wait for it."""

    stream: int | None
    waits: bool

    def __call__(self, order: ProgramOrder, call: DriverCall) -> None:
        """Put it into its stream."""
        place = order.did(call, call.name, self.stream, None)
        if self.waits:
            order.host_waits(place)


_Row = tuple[str, Meaning]  # the layout of the parameters (consan/backends/callbacks.py), and what follows


def _of_each(form: str, parts: str, row: _Row) -> dict[str, _Row]:
    """Rows for all names of one form."""
    return {form.format(part): row for part in parts.split()}


_ROWS: Final[Mapping[str, _Row]] = {
    **{name: (layout, _pass) for name, layout in memory_of_processes.LAYOUTS.items()},
    "cuStreamCreate": ("OI", _stream_made),
    "cuStreamCreateWithPriority": ("OIi", _stream_made),
    "cuStreamDestroy": ("P", _stream_gone),
    "cuStreamWaitEvent": ("SPI", _waits),
    "cuStreamSynchronize": ("S", _stream_passed),
    "cuStreamQuery": ("S", _stream_passed),
    "cuEventRecord": ("PS", _recorded),
    "cuEventRecordWithFlags": ("PSI", _recorded),
    "cuEventSynchronize": ("P", _event_passed),
    "cuEventQuery": ("P", _event_passed),
    "cuEventDestroy": ("P", _event_gone),
    "cuCtxSynchronize": ("", _all_passed),
    "cuMemFree": ("P", _free),
    "cuMemFreeHost": ("P", _free),
    "cuMemFreeAsync": ("PP", _freed),
    "cuMemAllocAsync": ("ONP", _allocated),
    "cuMemAllocFromPoolAsync": ("ONPP", _allocated),
    "cuLaunchHostFunc": ("PPP", _host_function),
    "cuStreamAddCallback": ("PPPI", _host_function),
    "cuLaunchKernel": ("P7ISPP", _Launches(0, 8)),
    "cuLaunchCooperativeKernel": ("P7ISP", _Launches(0, 8)),
    "cuLaunchKernelEx": ("CPPP", _Launches(1, 0)),
    "cuStreamBeginCapture": ("PI", _capture_begins),
    "cuStreamEndCapture": ("PO", _capture_ends),
    "cuGraphLaunch": ("PS", _graph_launched),
    "cuGraphExecDestroy": ("P", _executable_changed),
    "cuGraphExecUpdate": ("PP", _executable_changed),
    "cuGraphDestroy": ("P", _graph_gone),
    "cuGraphClone": ("OP", _pass),
    **_of_each("cuGraphInstantiate{}", "WithFlags WithParams", ("OP", _instantiated)),
    "cuGraphInstantiate": ("OP", _instantiated),
    "cuGraphExecNodeSetParams": ("P", _executable_changed),
    **_of_each("cuGraphExec{}NodeSetParams", "Kernel ChildGraph Memcpy Memset Host", ("P", _executable_changed)),
    **_of_each("cuGraphAdd{}Node", "Kernel Memcpy Memset Host Empty MemAlloc MemFree", ("PP", _node_added)),
    "cuGraphAddChildGraphNode": ("PPPNP", _node_added),
    "cuGraphNodeSetParams": ("", _nodes_changed),
    **_of_each("cuGraph{}NodeSetParams", "Kernel Memcpy Memset Host", ("", _nodes_changed)),
    **_of_each("cuGraph{}", "AddDependencies RemoveDependencies DestroyNode", ("", _nodes_changed)),
    "cuMemcpy": ("PPN", _Copies(None, to_host=True)),
    "cuMemcpyHtoD": ("PPN", _Copies(None, to_host=False)),
    "cuMemcpyDtoH": ("PPN", _Copies(None, to_host=True)),
    "cuMemcpyDtoD": ("PPN", _Copies(None, to_host=False)),
    **_of_each("cuMemcpy{}Async", "HtoD DtoH DtoD", ("PPNS", _Copies(3, to_host=False))),
    "cuMemcpyAsync": ("PPNS", _Copies(3, to_host=False)),
    "cuMemcpyPeer": ("P", _free),  # it comes after all, and before all
    "cuMemcpyPeerAsync": ("PPPPNS", _Copies(5, to_host=False, places=(0, 2, 4))),
    "cuMemsetD8": ("PBN", _Sets(1, None)),
    "cuMemsetD16": ("PHN", _Sets(2, None)),
    "cuMemsetD32": ("PIN", _Sets(4, None)),
    "cuMemsetD8Async": ("PBNS", _Sets(1, 3)),
    "cuMemsetD16Async": ("PHNS", _Sets(2, 3)),
    "cuMemsetD32Async": ("PINS", _Sets(4, 3)),
    **_of_each("cuMemsetD2D{}", "8 16 32", ("", _Unknown(None, waits=False))),
    "cuMemsetD2D8Async": ("PNBNNP", _Unknown(5, waits=False)),
    "cuMemsetD2D16Async": ("PNHNNP", _Unknown(5, waits=False)),
    "cuMemsetD2D32Async": ("PNINNP", _Unknown(5, waits=False)),
    **_of_each("cuMemcpy{}", "2D 2DUnaligned 3D DtoA AtoD HtoA AtoH AtoA", ("", _Unknown(None, waits=True))),
    **_of_each("cuMemcpy{}Async", "2D 3D", ("PP", _Unknown(1, waits=True))),
    "cuMemcpyHtoAAsync": ("PNPNP", _Unknown(4, waits=True)),
    "cuMemcpyAtoHAsync": ("PPNNP", _Unknown(4, waits=True)),
    "cuMemBatchDecompressAsync": ("PNIPP", _Unknown(4, waits=False)),
}
LAYOUTS: Final = {name: row[0] for name, row in _ROWS.items()}
