"""Calls about streams and events: the order of the program's work, as the session follows it."""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver
from consan.session.comparing.streams import Numbers

_NON_BLOCKING: Final = 1
_EXTERNAL: Final = 1  # the flag of an event that is a node of a graph
EDGE: Final = " (cuStreamWaitEvent(second, event) behind cuEventRecord(event, first))"
_NUMBA_EDGE: Final = " (event.record(first), then event.wait(second))"
_CORE_EDGE: Final = " (second.wait(first.record()))"
_NUMBA: Final = ("numba", "numba_cuda", "numba_cuda_mlir")
_CORE: Final = "cuda.core"


@dataclass(eq=False)
class EventHandle:
    """An event of the program: what is over once it is reached, and the host's clock when it was recorded.

    `captured`: the capture that it belongs to, and the nodes before it.
    """

    handle: int = 0
    reached: Any = None
    seconds: float = 0.0
    captured: tuple[Any, list[Any]] | None = None

    def record(self, stream: Any) -> None:
        """It is recorded in a stream of the session."""
        self.seconds, self.reached, self.captured = time.perf_counter(), stream.record(), None

    def begun(self, stream: Any, *, waited: bool) -> None:
        """The launch that a stream of the session was given last has recorded it by an attribute (`Stream.begun`)."""
        self.seconds, self.reached, self.captured = time.perf_counter(), stream.begun(waited=waited), None

    def wait(self, stream: Any) -> None:
        """A stream of the session waits for it."""
        if self.reached is not None:
            stream.wait(self.reached)


@serves(">Q I", "cuStreamCreate", "cuStreamCreateWithPriority")
def create(driver: StandInDriver, flags: int, edge: str = "") -> int:
    """A new stream: its handle."""
    return int(driver.session.streams.make(blocking=not flags & _NON_BLOCKING, edge=edge or _edge()).handle)


def _edge() -> str:
    """The program's way to let one stream wait for another. Calls of cuda.core are machine code, and leave no frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _NUMBA:
            return _NUMBA_EDGE
        frame = frame.f_back
    return _CORE_EDGE if _CORE in sys.modules else EDGE


accepted("Q", "cuStreamDestroy_v2")


@serves("Q", "cuStreamSynchronize")
def _synchronize(driver: StandInDriver, stream: int) -> None:
    if stream in driver.captures:
        raise CallFailed(calls.CAPTURE_UNSUPPORTED)
    driver.session.streams.host_waits(driver.stream(stream))


@serves("Q", "cuStreamQuery")
def _query_stream(driver: StandInDriver, stream: int) -> None:
    if stream not in driver.captures:
        _query(driver, driver.stream(stream).before)
    _synchronize(driver, stream)


def _query(driver: StandInDriver, over: Numbers) -> None:
    """A GPU may not be done with what the host asks for: the first question is answered so, and orders nothing."""
    if not driver.session.streams.is_over(over):
        raise CallFailed(calls.NOT_READY)


@serves("Q Q I", "cuStreamWaitEvent")
def _wait(driver: StandInDriver, stream: int, event: int, flags: int) -> None:
    found, own = driver.of(event, EventHandle), driver.captures.get(stream)
    if flags & _EXTERNAL or (found.captured is None and own is None):
        driver.work(stream, found.wait)
    elif found.captured is None or own not in (None, found.captured[0]):
        raise CallFailed(calls.CAPTURE_ISOLATION)
    else:
        capture, nodes = found.captured
        capture.join(stream, nodes)


@serves("Q >I", "cuStreamGetFlags")
def _flags(driver: StandInDriver, stream: int) -> int:
    return 0


@serves("Q >i", "cuStreamGetPriority")
def _zero(driver: StandInDriver, stream: int) -> int:
    return 0


@serves("Q >i", "cuStreamGetDevice")
def _device(driver: StandInDriver, stream: int) -> int:
    return int(driver.stream(stream).context)


@serves("Q >Q", "cuStreamGetCtx")
def _context(driver: StandInDriver, stream: int) -> int:
    device = _device(driver, stream)
    return driver.stack[-1] if driver.stack and driver.device == device else driver.primary(device)


@serves("Q >Q", "cuStreamGetId")
def _id(driver: StandInDriver, stream: int) -> int:
    return stream or 1


@serves(">Q I", "cuEventCreate")
def event(driver: StandInDriver, flags: int) -> int:
    """A new event: its handle."""
    return driver.made(EventHandle())


accepted("Q", "cuEventDestroy_v2")


@serves("Q Q I", "cuEventRecordWithFlags")
def _record(driver: StandInDriver, event: int, stream: int, flags: int) -> None:
    found, capture = driver.of(event, EventHandle), driver.captures.get(stream)
    if capture is None or flags & _EXTERNAL:
        driver.work(stream, found.record)
    else:
        found.captured = capture, list(capture.ends[stream])


@serves("Q Q", "cuEventRecord")
def _record_plainly(driver: StandInDriver, event: int, stream: int) -> None:
    _record(driver, event, stream, 0)


@serves("Q", "cuEventSynchronize")
def _reach(driver: StandInDriver, event: int) -> None:
    found = driver.of(event, EventHandle)
    if found.captured is not None:
        raise CallFailed(calls.CAPTURED_EVENT)
    if found.reached is not None:
        driver.session.streams.host_waits_for(found.reached)


@serves("Q", "cuEventQuery")
def _query_event(driver: StandInDriver, event: int) -> None:
    reached = driver.of(event, EventHandle).reached
    if reached is not None:
        _query(driver, reached.over)
    _reach(driver, event)


@serves(">f Q Q", "cuEventElapsedTime", "cuEventElapsedTime_v2")
def _elapsed(driver: StandInDriver, first: int, second: int) -> float:
    begin, end = driver.of(first, EventHandle), driver.of(second, EventHandle)
    if begin.reached is None or end.reached is None:
        raise CallFailed(calls.INVALID_HANDLE)
    return float((end.seconds - begin.seconds) * 1e3)
