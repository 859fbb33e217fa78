"""Streams and events of `torch.cuda` on the virtual machine.

Each launch is over before its call returns. The streams hold which launches would be over on a GPU
(consan/session/comparing/program_streams.py). As in torch, the default stream is the legacy one, and all others are non-blocking.

Not handled: CUDA graphs, priorities, and memory that torch's caching allocator gives to another stream.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from consan.session.comparing.program_streams import ProgramStream
from consan.session.comparing.streams import Event as Reached

_EDGE: Final = " (second.wait_stream(first))"


class CurrentStream:
    """The current stream of each thread in a session."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._chosen = threading.local()

    def get(self) -> ProgramStream:
        """The stream of this thread."""
        stream: ProgramStream = getattr(self._chosen, "stream", self.session.streams.default)
        return stream

    def set(self, stream: ProgramStream) -> None:
        """Make a stream the current one of this thread."""
        self._chosen.stream = stream

    def classes(self) -> dict[str, type]:
        """`torch.cuda.Stream`, `ExternalStream` and `Event` of this session."""
        of_session = {"now": self}
        event = type("Event", (TorchEvent,), of_session)
        stream = type("Stream", (TorchStream,), {**of_session, "event": event})
        return {"Stream": stream, "ExternalStream": type("ExternalStream", (_External, stream), {}), "Event": event}


class TorchStream:
    """`torch.cuda.Stream`."""

    now: CurrentStream
    event: type[TorchEvent]
    priority = device_index = 0

    def __init__(self, device: Any = None, priority: int = 0, *, of: ProgramStream | None = None, **kwargs: Any) -> None:
        self.order = of or self.now.session.streams.make(blocking=False, edge=_EDGE)
        self._outside: list[ProgramStream] = []  # the streams that the blocks of `with` have replaced

    @property
    def cuda_stream(self) -> int:
        """The handle."""
        return self.order.handle

    def __enter__(self) -> TorchStream:
        self._outside.append(self.now.get())
        self.now.set(self.order)
        return self

    def __exit__(self, *exc: object) -> None:
        self.now.set(self._outside.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TorchStream) and self.order is other.order

    def __hash__(self) -> int:
        return hash(self.order)

    def synchronize(self) -> None:
        """Let the host wait."""
        self.now.session.streams.host_waits(self.order)

    def query(self) -> bool:
        """Whether all is over. The answer is yes, and the host knows it from then on."""
        self.synchronize()
        return True

    def wait_event(self, event: TorchEvent) -> None:
        """Let what follows come after an event."""
        event.wait(self)

    def wait_stream(self, stream: TorchStream) -> None:
        """Let what follows come after all that another stream was given so far."""
        self.order.wait(stream.order)

    def record_event(self, event: TorchEvent | None = None) -> TorchEvent:
        """Record an event now."""
        event = event or self.event()
        event.record(self)
        return event


class _External:
    """A stream by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        now: CurrentStream = self.now  # type: ignore[attr-defined]
        super().__init__(of=now.session.streams.of(int(stream_ptr), _EDGE))  # type: ignore[call-arg]


class TorchEvent:
    """`torch.cuda.Event` without a clock."""

    now: CurrentStream

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._reached: Reached | None = None

    def record(self, stream: TorchStream | None = None) -> None:
        """Record in a stream, or in the current one."""
        self._reached = (self.now.get() if stream is None else stream.order).record()

    def wait(self, stream: TorchStream | None = None) -> None:
        """Let what a stream, or the current one, is given from now on come after the event."""
        if self._reached is not None:
            (self.now.get() if stream is None else stream.order).wait(self._reached)

    def synchronize(self) -> None:
        """Let the host wait."""
        if self._reached is not None:
            self.now.session.streams.host_waits_for(self._reached)

    def query(self) -> bool:
        """Whether it is reached. The answer is yes, and the host knows it from then on."""
        self.synchronize()
        return True

    def elapsed_time(self, end: Any) -> float:
        """Not a number: a virtual machine's times mean nothing."""
        return float("nan")
