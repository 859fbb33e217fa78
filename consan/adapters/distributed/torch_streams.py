"""Streams and events of `torch.cuda` on the virtual machine.

Each launch is over before its call returns. The streams hold which launches would be over on a GPU
(consan/session/comparing/program_streams.py). As in torch, the default stream is the legacy one, and all others are non-blocking.

Not handled: CUDA graphs, priorities, and memory that torch's caching allocator gives to another stream.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final

from consan.session.comparing.program_streams import ProgramStream, ProgramStreams
from consan.session.comparing.streams import Event as Reached

_EDGE: Final = " (second.wait_stream(first))"


class CurrentStream:
    """The current stream of each thread in a session."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def get(self, device: int | None = None) -> ProgramStream:
        """The stream of this thread on a device, or on the current one."""
        stream: ProgramStream = self.session.streams.current(device=device)
        return stream

    def set(self, stream: ProgramStream) -> None:
        """Make a stream the current one of this thread."""
        self.session.streams.choose(stream)

    def place_of(self, device: Any) -> int:
        """The device that a program names, or the rank that runs, which has one."""
        streams = self.session.streams
        number = device_number(device) if streams.places.rank is None and streams.places.devices > 1 else None
        return streams.here if number is None else number

    def device_of(self, stream: ProgramStream) -> int:
        """The number of the device of a stream; a rank has one."""
        return stream.context if self.session.streams.places.rank is None else 0

    def classes(self) -> dict[str, type]:
        """`torch.cuda.Stream`, `ExternalStream` and `Event` of this session."""
        of_session = {"now": self}
        event = type("Event", (TorchEvent,), of_session)
        stream = type("Stream", (TorchStream,), {**of_session, "event": event})
        return {"Stream": stream, "ExternalStream": type("ExternalStream", (_External, stream), {}), "Event": event}

    def functions(self) -> dict[str, Any]:
        """The names of `torch.cuda` that concern streams."""
        classes, streams = self.classes(), self.session.streams
        stream: Any = classes["Stream"]
        return {
            **classes,
            "current_stream": lambda device=None: stream(of=self.get(self.place_of(device))),
            "default_stream": lambda device=None: stream(of=streams.default_of(self.place_of(device))),
            "set_stream": lambda stream: self.set(stream.order),
            "stream": lambda stream: nullcontext() if stream is None else stream,
        }


def device_number(device: Any) -> int | None:
    """The number of a device: of an integer, a name such as "cuda:1", or a device of torch. None: the current one."""
    number = device if isinstance(device, int) else str(device or "").partition(":")[2]
    return int(number) if str(number).isdigit() else None


class TorchStream:
    """`torch.cuda.Stream`."""

    now: CurrentStream
    event: type[TorchEvent]
    priority = 0

    def __init__(self, device: Any = None, priority: int = 0, *, of: ProgramStream | None = None, **kwargs: Any) -> None:
        self.order = of or self.now.session.streams.make(blocking=False, edge=_EDGE, device=self.now.place_of(device))
        self._outside: list[tuple[int, ProgramStream]] = []  # devices and their streams that the blocks of `with` have replaced

    @property
    def device_index(self) -> int:
        """The number of its device."""
        return self.now.device_of(self.order)

    @property
    def cuda_stream(self) -> int:
        """The handle."""
        return self.order.handle

    def __enter__(self) -> TorchStream:
        before = self.now.get(self.order.context)
        self._outside.append((self.now.session.streams.places.use(self.order.context), before))
        self.now.set(self.order)
        return self

    def __exit__(self, *exc: object) -> None:
        device, stream = self._outside.pop()
        self.now.set(stream)
        self.now.session.streams.places.use(device)

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


def stream_functions(streams: ProgramStreams) -> dict[str, Any]:
    """The same names for a replacement of torch."""
    return CurrentStream(SimpleNamespace(streams=streams)).functions()


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
