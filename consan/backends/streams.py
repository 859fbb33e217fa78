"""Streams with work that a backend waits for: events behind what is queued, polled so that Ctrl-C and time limits work.

The context must be current.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator

from consan.backends import driver as api
from consan.backends.base import DEFAULT_STREAMS

_EVENT_DISABLE_TIMING = 2
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: the calls of a thread are no part of a capture
_SHORTEST_NAP, _LONGEST_NAP = 20e-6, 0.005


class _Outside(threading.local):
    entered = False


class Streams:
    """The last event of each stream, by the stream's handle."""

    def __init__(self, driver: api.Driver) -> None:
        self._driver = driver
        self._events: dict[int, ctypes.c_void_p] = {}
        self._awaited: set[int] = set()  # streams whose event may not have come
        self._outside = _Outside()  # whether this thread is within `outside_captures`

    def watch(self, stream: int) -> None:
        """Note an event behind the work queued so far."""
        if self.capturing(stream):
            return
        event = self._events.get(stream)
        if event is None:
            event = self._events[stream] = self._driver.create("cuEventCreate", _EVENT_DISABLE_TIMING)
        self._driver.call("cuEventRecord", event, ctypes.c_void_p(stream))
        self._awaited.add(stream)

    def capturing(self, stream: int) -> bool:
        """Whether a stream is captured."""
        # The legacy default stream cannot be captured, and a query during another stream's capture would invalidate that capture.
        if stream in DEFAULT_STREAMS:
            return False
        status = ctypes.c_int()
        self._driver.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    @contextlib.contextmanager
    def outside_captures(self) -> Iterator[None]:
        """Inside the block this thread's calls are no part of a capture, and do not end one. Blocks may nest."""
        if self._outside.entered:
            yield
            return
        mode = ctypes.c_int(RELAXED)
        self._driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        self._outside.entered = True
        try:
            yield
        finally:
            self._outside.entered = False
            self._driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def over(self, deadline: float) -> bool:
        """Wait for all events; False if one has not come by the deadline."""
        started = time.monotonic()
        while not all(map(self._done, list(self._awaited))):
            now = time.monotonic()
            if now >= deadline:
                return False
            time.sleep(min(max(_SHORTEST_NAP, (now - started) / 20), _LONGEST_NAP))  # at most a twentieth late
        return True

    def _done(self, stream: int) -> bool:
        code = self._driver.status("cuEventQuery", self._events[stream])
        if code not in (0, api.NOT_READY):
            raise self._driver.error(code, "cuEventQuery")
        if code == 0:
            self._awaited.discard(stream)
        return code == 0

    def close(self) -> None:
        """Destroy the events."""
        for event in self._events.values():
            self._driver.call("cuEventDestroy_v2", event)
        self._events.clear()
        self._awaited.clear()
