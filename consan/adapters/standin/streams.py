"""Streams and events of the stand-in: `cupy.cuda.Stream`, `ExternalStream`, `Event`.

Each launch is over before its call returns. The streams hold which launches would be over on a GPU
(consan/session/comparing/program_streams.py): the session compares those that may run at the same time there.

Not handled: stream capture and graphs (`NotInStandin`), priorities.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

from consan.adapters.standin.array import NotInStandin
from consan.adapters.standin.context import current, current_stream, host_waits, use_stream
from consan.adapters.standin.device import CUDARuntimeError
from consan.backends.base import THREAD_STREAM
from consan.session.comparing.program_streams import ProgramStream
from consan.session.comparing.streams import Event as Reached

_EDGE: Final = " (second.wait_event(first.record()))"


class Stream:
    """`cupy.cuda.Stream`."""

    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None) -> None:
        self.is_non_blocking = non_blocking
        self.ptr = 0 if null else THREAD_STREAM if ptds else current().session.streams.make(blocking=not non_blocking, edge=_EDGE).handle
        self._outside: list[ProgramStream] = []  # the streams that the blocks of `with` have replaced

    @property
    def device_id(self) -> int:
        """The number of its device."""
        return self.order.context

    @property
    def order(self) -> ProgramStream:
        """The session's stream."""
        found: ProgramStream = current().session.streams.of(self.ptr, _EDGE)
        return found

    @property
    def done(self) -> bool:
        """Whether all is over. The first answer may be no (`LaunchOrder.is_over`); once it is yes, the host knows it."""
        is_over: bool = current().session.streams.is_over(self.order.before)
        if is_over:
            self.synchronize()
        return is_over

    def __enter__(self) -> Stream:
        self._outside.append(current_stream())
        return self.use()

    def __exit__(self, *exc: object) -> None:
        use_stream(self._outside.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def use(self) -> Stream:
        """Make it current."""
        use_stream(self.order)
        return self

    def synchronize(self) -> None:
        """Let the host wait."""
        host_waits(self.order)

    def wait_event(self, event: Event) -> None:
        """Let what follows come after an event. One that was never recorded is passed at once."""
        if event.reached is not None:
            self.order.wait(event.reached)

    def record(self, event: Event | None = None) -> Event:
        """Record an event now."""
        event = event or Event()
        event.record(self)
        return event

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        """Call a function of the host behind the stream's work."""
        self.synchronize()
        callback(arg)

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any) -> None:
        """The same, with the stream and a status."""
        self.synchronize()
        callback(self, 0, arg)

    def begin_capture(self, mode: Any = None) -> NoReturn:
        """Graphs are not part of the stand-in."""
        raise NotInStandin("cupy.cuda.Stream.begin_capture")


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


class ExternalStream(Stream):
    """`cupy.cuda.ExternalStream`: a stream by its handle."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(null=True)
        self.ptr = int(ptr)


class Event:
    """`cupy.cuda.Event`: the point of a stream, and the host's clock when it was recorded."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.ptr = id(self)
        self.seconds: float | None = None
        self.reached: Reached | None = None

    @property
    def done(self) -> bool:
        """Whether it is reached. The first answer may be no; once it is yes, the host knows it."""
        is_over: bool = self.reached is None or current().session.streams.is_over(self.reached.over)
        if is_over:
            self.synchronize()
        return is_over

    def record(self, stream: Stream | None = None) -> None:
        """Record in a stream, or in the current one."""
        self.seconds = time.perf_counter()
        self.reached = (current_stream() if stream is None else stream.order).record()

    def synchronize(self) -> None:
        """Let the host wait."""
        if self.reached is not None:
            current().session.streams.host_waits_for(self.reached)


def get_current_stream(device_id: int = -1) -> Stream:
    """The current stream of this thread on a device, or on the current one."""
    handle = current_stream(None if device_id < 0 else device_id).handle
    return ExternalStream(handle) if handle else Stream.null


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds of host time between two events."""
    if start_event.seconds is None or end_event.seconds is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return (end_event.seconds - start_event.seconds) * 1e3
