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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import EnvironmentFailure
from consan.backends.driver import MADE, OWN
from consan.instrument.layouts.cpp import enumeration, structure
from consan.instrument.layouts.records import Records, dtype
from consan.toolchain.host_library import C, HostLibrary

_NOTHING: Final = (1 << 64) - 1
MOST_CALLBACKS: Final = 1 << 12
_MOST_NOTED, _WORDS = 1 << 10, 4
PIECES, NUMBERS = 2, 8  # of the work around a launch
_KERNELS: Final = 1 << 14  # places for those whose launches are counted


class CallKind(enum.IntEnum):
    """The ways in which the function handles a call, as calls.c has them."""

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
KERNELS: Final = {
    **dict.fromkeys(("cuLaunchKernel", "cuLaunchCooperativeKernel"), (0, -1)),
    "cuLaunchKernelEx": (8, -1),
    **{f"cuGraph{form}KernelNode{what}": (at, 0) for form, what, at in (("Add", "", 32), ("", "SetParams", 8), ("Exec", "SetParams", 16))},
    "cuGraphAddNode": (32, 16),
    "cuGraphAddNode_v2": (40, 16),
    "cuGraphNodeSetParams": (8, 16),
    "cuGraphExecNodeSetParams": (16, 16),
}
"""Where the handle of a kernel is among the parameters, in bytes, and how far behind an address that is there (-1: it is there itself).

By the name of the function, with its version where that has another place. The parameters of other nodes have no such handle there.
"""


RECORDS: Final = Records()
CALL_RULE: Final = RECORDS.record(
    "CallRule",
    "the facts about a call",
    """
    u32 behind     the bytes before its stream among the parameters, plus one; 0: it has none
    i32 within     there is an address, and the stream is so many bytes behind it; less than 0: it is the stream
    u32 kind       CallKind
    u32 nbytes     of its parameters
    u32 allocates  it is reported if the device has no memory for it
    u32 kernel     the bytes before the kernel's handle among the parameters, plus one; 0: it names none
    i32 inside     there is an address, and the handle is so many bytes behind it; less than 0: it is the handle
    """,
)
NOTED: Final = RECORDS.record(
    "NotedCall",
    "a call that is noted",
    f"""
    u32 number         of the function
    u32 kind           CallKind
    u64 words[{_WORDS}]  its parameters
    """,
)
COUNTED: Final = RECORDS.record(
    "CountedKernel",
    "a kernel that is to be launched by nobody but its framework",
    """
    u64 handle  0: the place is free
    u64 count   of its launches that others have made
    """,
)
STATE: Final = RECORDS.record(
    "Filter",
    "what the function knows",
    f"""
    *mut:Tell tell            Python's function
    *mut:Attribute attribute  cuPointerGetAttribute, or null
    u64 stream                launches into it are dropped; none: all ones
    u64 context               of that stream
    u64 graph                 0: launches of kernels are dropped; else those of this executable graph
    u64 notes                 the context whose calls are noted; none: all ones
    u32 busy                  held by who uses the fields below
    u32 launched              a launch is noted, and no event behind it
    u32 operations            noted
    u32 events                noted
    u32 count                 of noted calls
    u32 unused                -
    CallRule rules[{MOST_CALLBACKS}]  by the numbers of the functions
    NotedCall noted[{_MOST_NOTED}]    -
    CountedKernel kernels[{_KERNELS}]  by a hash of their handles
    """,
)
PIECE: Final = RECORDS.record(
    "Piece",
    "bytes of the device that are written before a launch",
    """
    u64 address   -
    *void source  null: the bytes are set to zero
    u64 nbytes    0: there is no piece
    """,
)
FUNCTIONS: Final = RECORDS.record(
    "DriverFunctions",
    "functions of the driver; their names are the meanings",
    """
    *mut:GetCurrent get_current    cuCtxGetCurrent
    *mut:Push push                 cuCtxPushCurrent_v2
    *mut:Pop pop                   cuCtxPopCurrent_v2
    *mut:IsCapturing is_capturing  cuStreamIsCapturing
    *mut:Set set                   cuMemsetD8Async
    *mut:Copy copy                 cuMemcpyHtoDAsync_v2
    *mut:Record record             cuEventRecord
    *mut:Launch launch             cuLaunchKernel
    """,
)
AROUND: Final = RECORDS.record(
    "Around",
    "the work before and behind a launch (around.h)",
    f"""
    *DriverFunctions driver  -
    *mut:void context        -
    Piece clears[{PIECES}]   -
    Piece copies[{PIECES}]   -
    *mut:void begun          an event
    *mut:void ended          an event
    *mut:void function       a kernel behind the launch
    u32 ctas                 of this kernel
    u32 threads              of a CTA
    u32 count                of parameters
    u32 unused               -
    u64 numbers[{NUMBERS}]   the parameters
    """,
)
_NUMBERS: Final = {
    "MOST_CALLBACKS": MOST_CALLBACKS,
    "MOST_NOTED": _MOST_NOTED,
    "KERNELS": _KERNELS,
    "WORDS": _WORDS,
    "PIECES": PIECES,
    "NUMBERS": NUMBERS,
}


def header() -> str:
    """The text of layouts.h, which calls.c includes. It declares the types of functions before."""
    scalars = [f"typedef {text}_t {name};" for name, text in (("u64", "uint64"), ("u32", "uint32"), ("i32", "int32"))]
    numbers = [f"#define {name} {value}" for name, value in _NUMBERS.items()]
    structures = [line for each in RECORDS.values() for line in structure(each)]
    lines = ["// Generated from consan/backends/call_filter.py; do not edit.", "#include <assert.h>", *scalars, *numbers]
    return "\n".join([*lines, enumeration("CallKind", "", CallKind), *structures]) + "\n"


def _generated() -> dict[str, str]:
    return {"layouts.h": header()}


_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
FILTER: Final = HostLibrary("calls", "to follow the driver's calls", C, "consan.backends", "calls.c", _OPTIONS, generated=_generated)


@dataclass(frozen=True)
class NotedCall:
    """A call that was noted: its number, its kind, and its parameters. Those of a launch are not used."""

    number: int
    kind: CallKind
    parameters: bytes


class CallFilter:
    """Calls a function of Python for each call of the driver but those that are dropped or noted.

    `attribute`: the driver's `cuPointerGetAttribute`, or None. Raises `EnvironmentFailure` without C.
    """

    def __init__(self, tell: Any, attribute: Any = None) -> None:
        self._tell = tell, attribute  # kept: C has their addresses only
        self._state: npt.NDArray[np.void] = np.zeros((), dtype(STATE))
        self._state["tell"] = ctypes.cast(tell, ctypes.c_void_p).value
        self._state["attribute"] = 0 if attribute is None else ctypes.cast(attribute, ctypes.c_void_p).value
        self._state["stream"] = self._state["notes"] = _NOTHING
        library = FILTER.load()
        library.consan_own_calls.restype = library.consan_made_launches.restype = ctypes.c_void_p
        self._count, self._counted = library.consan_count_kernel, library.consan_take_count
        self._count.argtypes = self._counted.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        self._counted.restype = ctypes.c_uint64
        self.function, self._take = library.consan_called, library.consan_take_noted
        self._take.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
        self.argument = ctypes.c_void_p(self._state.ctypes.data)
        self._taken: npt.NDArray[np.void] = np.zeros(_MOST_NOTED, dtype(NOTED))
        OWN.count_in(library.consan_own_calls)
        MADE.count_in(library.consan_made_launches)

    @property
    def address(self) -> int:
        """The address of its state."""
        return int(self._state.ctypes.data)

    def follow(self, number: int, rule: Mapping[str, int]) -> None:
        """A call, by its number: the fields of its `CallRule`."""
        for name, value in rule.items():
            self._state["rules"][name][number] = value

    def count_kernel(self, handle: int) -> None:
        """Count launches of a kernel from now on, by whoever is no framework (`MADE`). With thousands of kernels, later ones are not."""
        self._count(self.argument, handle)

    def taken_count(self, handle: int) -> int:
        """The launches of a kernel since this was called last."""
        return int(self._counted(self.argument, handle))

    def pass_over(self, stream: int, context: int, graph: int) -> None:
        """Drop launches into a stream, of kernels (`graph` is 0) or of an executable graph."""
        self.tell_all()
        self._state["context"], self._state["graph"] = context, graph
        self._state["stream"] = stream

    def tell_all(self) -> None:
        """Drop no launches."""
        self._state["stream"] = _NOTHING

    @property
    def context_of_notes(self) -> int | None:
        """The context whose calls are noted; None: no calls are."""
        notes = int(self._state["notes"])
        return None if notes == _NOTHING else notes

    def note(self, context: int | None) -> list[NotedCall]:
        """Note calls of a context from now on; None: hand all to Python. Gives what was noted until now."""
        return list(self._read(_NOTHING if context is None else context))

    def taken(self) -> list[NotedCall]:
        """The calls that are noted. They are noted no more."""
        return list(self._read(int(self._state["notes"]))) if self._state["count"] else []

    def _read(self, context: int) -> Iterator[NotedCall]:
        count = self._take(self.argument, self._taken.ctypes.data, context)
        for call in self._taken[:count]:
            yield NotedCall(int(call["number"]), CallKind(call["kind"]), call["words"].tobytes())


def filter_of(tell: Any, attribute: Any = None) -> CallFilter | None:
    """A filter before a function. None: there is no C here."""
    try:
        return CallFilter(tell, attribute)
    except (EnvironmentFailure, OSError):
        return None
