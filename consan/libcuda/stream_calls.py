"""Calls about streams and events: the order of the program's work, as the session follows it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver

_NON_BLOCKING: Final = 1
_EDGE: Final = " (cuStreamWaitEvent(second, event) behind cuEventRecord(event, first))"


@dataclass(eq=False)
class EventHandle:
    """An event of the program: what is over once it is reached, and the host's clock when it was recorded."""

    handle: int = 0
    reached: Any = None
    seconds: float = 0.0


@serves(">Q I", "cuStreamCreate", "cuStreamCreateWithPriority")
def create(driver: StandInDriver, flags: int) -> int:
    """A new stream: its handle."""
    return int(driver.session.streams.make(blocking=not flags & _NON_BLOCKING, edge=_EDGE).handle)


accepted("Q", "cuStreamDestroy_v2")


@serves("Q", "cuStreamSynchronize", "cuStreamQuery")
def _synchronize(driver: StandInDriver, stream: int) -> None:
    driver.session.streams.host_waits(driver.session.streams.of(stream))


@serves("Q Q I", "cuStreamWaitEvent")
def _wait(driver: StandInDriver, stream: int, event: int, flags: int) -> None:
    reached = driver.of(event, EventHandle).reached
    if reached is not None:
        driver.session.streams.of(stream).wait(reached)


@serves("Q >I", "cuStreamGetFlags")
def _flags(driver: StandInDriver, stream: int) -> int:
    return 0


@serves("Q >i", "cuStreamGetPriority", "cuStreamGetDevice", "cuStreamIsCapturing", "cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v3")
def _zero(driver: StandInDriver, stream: int) -> int:
    return 0


@serves("Q >Q", "cuStreamGetCtx")
def _context(driver: StandInDriver, stream: int) -> int:
    return driver.stack[-1] if driver.stack else driver.primary


@serves("Q >Q", "cuStreamGetId")
def _id(driver: StandInDriver, stream: int) -> int:
    return stream or 1


@serves(">Q I", "cuEventCreate")
def event(driver: StandInDriver, flags: int) -> int:
    """A new event: its handle."""
    return driver.made(EventHandle())


accepted("Q", "cuEventDestroy_v2")


@serves("Q Q", "cuEventRecord", "cuEventRecordWithFlags")
def _record(driver: StandInDriver, event: int, stream: int) -> None:
    found = driver.of(event, EventHandle)
    found.seconds, found.reached = time.perf_counter(), driver.session.streams.of(stream).record()


@serves("Q", "cuEventSynchronize", "cuEventQuery")
def _reach(driver: StandInDriver, event: int) -> None:
    reached = driver.of(event, EventHandle).reached
    if reached is not None:
        driver.session.streams.host_waits_for(reached)


@serves(">f Q Q", "cuEventElapsedTime", "cuEventElapsedTime_v2")
def _elapsed(driver: StandInDriver, first: int, second: int) -> float:
    begin, end = driver.of(first, EventHandle), driver.of(second, EventHandle)
    if begin.reached is None or end.reached is None:
        raise CallFailed(calls.INVALID_HANDLE)
    return float((end.seconds - begin.seconds) * 1e3)
