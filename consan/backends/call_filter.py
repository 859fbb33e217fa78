"""The function that CUPTI calls, in C. It drops launches that add nothing to the order of streams, and does not wait for the interpreter.

A program of a framework makes hundreds of launches in a row in one stream, and consan does not know their accesses. The first one stands
for all. The listener names the stream (`pass_over`), until it wants all calls again (`tell_all`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, Final

from consan._errors import EnvironmentFailure
from consan.toolchain.host_library import C, HostLibrary

_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
FILTER: Final = HostLibrary("calls", "to follow the driver's calls", C, "consan.backends", "calls.c", _OPTIONS)
_NOTHING: Final = (1 << 64) - 1
MOST_CALLBACKS: Final = 1 << 12


class _StreamPlace(ctypes.Structure):
    _fields_ = (("behind", ctypes.c_uint32), ("within", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (
        ("tell", ctypes.c_void_p),
        ("stream", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
        ("places", _StreamPlace * MOST_CALLBACKS),
    )


class CallFilter:
    """Calls a function of Python for each call of the driver but those that are passed over. Raises `EnvironmentFailure` without C."""

    def __init__(self, tell: Any) -> None:
        self._tell = tell  # kept: C has its address only
        self._state = _Filter(tell=ctypes.cast(tell, ctypes.c_void_p), stream=_NOTHING)
        self.function = FILTER.load().consan_called
        self.argument = ctypes.byref(self._state)

    def launches(self, places: Iterable[tuple[int, int, int]]) -> None:
        """The calls that are launches: their numbers, where the stream is among the parameters, in bytes, and how far behind an address
        that is there (less than 0: it is the stream itself)."""
        for number, at, within in places:
            self._state.places[number] = _StreamPlace(at + 1, within)

    def pass_over(self, stream: int, context: int) -> None:
        """Drop launches into a stream."""
        self._state.context = context
        self._state.stream = stream

    def tell_all(self) -> None:
        """Drop nothing."""
        self._state.stream = _NOTHING


def filter_of(tell: Any) -> CallFilter | None:
    """A filter before a function. None: there is no C here."""
    try:
        return CallFilter(tell)
    except (EnvironmentFailure, OSError):
        return None
