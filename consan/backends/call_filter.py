"""The function that CUPTI calls, in C: it drops calls, notes calls, or hands them to Python, and does not wait for the interpreter.

Dropped are calls that failed, consan's own, and launches that add nothing to the order of streams. A program of a framework makes hundreds
of launches in a row in one stream, and consan does not know their accesses. The first one stands for all; and so it does of launches of one
graph. The listener names the stream (`pass_over`), until it wants all calls again (`tell_all`).

Noted are calls for the legacy default stream while the program has no other (`note`): launches, copies, memsets, events and waits. Until
there is a second stream nothing can run at the same time. Python reads them before the next call that it gets (`taken`), when there is
no room left, or when it needs the order.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from consan._errors import EnvironmentFailure
from consan.backends.driver import OWN
from consan.toolchain.host_library import C, HostLibrary

_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
FILTER: Final = HostLibrary("calls", "to follow the driver's calls", C, "consan.backends", "calls.c", _OPTIONS)
_NOTHING: Final = (1 << 64) - 1
MOST_CALLBACKS: Final = 1 << 12
_MOST_NOTED, _WORDS = 1 << 10, 4


class CallKind(enum.IntEnum):
    """The ways in which the function handles a call, in the order of calls.c."""

    AT_ONCE = 0  # Python hears of it at once
    LAUNCH = enum.auto()  # of a kernel whose accesses are not known
    GRAPH = enum.auto()  # a graph is launched
    OPERATION = enum.auto()  # on memory of the device
    COPY = enum.auto()  # the same; the host waits for it if one side is pageable memory
    EVENT = enum.auto()  # an event is recorded
    EVENT_USE = enum.auto()  # the host has waited for an event, or it is destroyed
    WAIT = enum.auto()  # the host has waited for all of the stream
    FREE = enum.auto()  # the same, if there is something to free
    ALLOCATION = enum.auto()  # of interest only if it fails


_SET: Final = {f"cuMemset{bits}{form}": CallKind.OPERATION for bits in ("D8", "D16", "D32") for form in ("", "Async")}
KINDS: Final = {
    **_SET,
    **dict.fromkeys(("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"), CallKind.LAUNCH),
    **dict.fromkeys(("cuMemcpyDtoD", "cuMemcpyDtoDAsync"), CallKind.OPERATION),
    **dict.fromkeys(("cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyAsync"), CallKind.COPY),
    **dict.fromkeys(("cuMemcpy", "cuMemcpyDtoH", "cuStreamSynchronize", "cuStreamQuery", "cuCtxSynchronize"), CallKind.WAIT),
    **dict.fromkeys(("cuMemFree", "cuMemFreeHost"), CallKind.FREE),
    **dict.fromkeys(("cuEventSynchronize", "cuEventQuery", "cuEventDestroy"), CallKind.EVENT_USE),
    "cuEventRecord": CallKind.EVENT,
    "cuGraphLaunch": CallKind.GRAPH,
}
"""By the name of the function. Their streams are marked in the layouts (`CallSource.follow`)."""


class CallRule(ctypes.Structure):
    """The facts about a call.

    `behind`: the bytes before its stream, plus one; `within`: -1, or how far behind an address.
    """

    _fields_ = (
        ("behind", ctypes.c_uint32),
        ("within", ctypes.c_int32),
        ("kind", ctypes.c_uint32),
        ("nbytes", ctypes.c_uint32),
        ("allocates", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class NotedCall:
    """A call that was noted: its number, its kind, and its parameters. Those of a launch are not used."""

    number: int
    kind: CallKind
    parameters: bytes


class _NotedCall(ctypes.Structure):
    _fields_ = (("number", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("words", ctypes.c_uint64 * _WORDS))


class _Filter(ctypes.Structure):
    _fields_ = (
        ("tell", ctypes.c_void_p),
        ("attribute", ctypes.c_void_p),
        ("stream", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
        ("graph", ctypes.c_uint64),
        ("notes", ctypes.c_uint64),
        ("busy", ctypes.c_uint8),
        ("launched", ctypes.c_uint32),
        ("operations", ctypes.c_uint32),
        ("events", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("rules", CallRule * MOST_CALLBACKS),
        ("noted", _NotedCall * _MOST_NOTED),
    )


class CallFilter:
    """Calls a function of Python for each call of the driver but those that are dropped or noted.

    `attribute`: the driver's `cuPointerGetAttribute`, or None. Raises `EnvironmentFailure` without C.
    """

    def __init__(self, tell: Any, attribute: Any = None) -> None:
        self._tell = tell, attribute  # kept: C has their addresses only
        place = None if attribute is None else ctypes.cast(attribute, ctypes.c_void_p)
        self._state = _Filter(tell=ctypes.cast(tell, ctypes.c_void_p), attribute=place, stream=_NOTHING, notes=_NOTHING)
        library = FILTER.load()
        library.consan_own_calls.restype = ctypes.c_void_p
        self.function, self._take = library.consan_called, library.consan_take_noted
        self._take.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
        self.argument = ctypes.byref(self._state)
        self._taken = (_NotedCall * _MOST_NOTED)()
        OWN.count_in(library.consan_own_calls)

    def follows(self, rules: Iterable[tuple[int, CallRule]]) -> None:
        """The calls, by their numbers."""
        for number, rule in rules:
            self._state.rules[number] = rule

    def pass_over(self, stream: int, context: int, graph: int) -> None:
        """Drop launches into a stream, of kernels (`graph` is 0) or of an executable graph."""
        self.tell_all()
        self._state.context, self._state.graph = context, graph
        self._state.stream = stream

    def tell_all(self) -> None:
        """Drop no launches."""
        self._state.stream = _NOTHING

    @property
    def context_of_notes(self) -> int | None:
        """The context whose calls are noted; None: no calls are."""
        return None if self._state.notes == _NOTHING else int(self._state.notes)

    def note(self, context: int | None) -> list[NotedCall]:
        """Note calls of a context from now on; None: hand all to Python. Gives what was noted until now."""
        return list(self._read(_NOTHING if context is None else context))

    def taken(self) -> list[NotedCall]:
        """The calls that are noted. They are noted no more."""
        return list(self._read(self._state.notes)) if self._state.count else []

    def _read(self, context: int) -> Iterator[NotedCall]:
        count = self._take(ctypes.addressof(self._state), ctypes.addressof(self._taken), context)
        for call in self._taken[:count]:
            yield NotedCall(call.number, CallKind(call.kind), bytes(call.words))


def filter_of(tell: Any, attribute: Any = None) -> CallFilter | None:
    """A filter before a function. None: there is no C here."""
    try:
        return CallFilter(tell, attribute)
    except (EnvironmentFailure, OSError):
        return None
