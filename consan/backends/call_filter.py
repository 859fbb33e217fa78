"""The function that CUPTI calls, in C: it drops calls, notes calls, or hands them to Python, and does not wait for the interpreter.

Dropped are calls that failed, consan's own, and launches that add nothing to the order of streams: some by frameworks (`driver.QUIET`), and
those that others stand for. A program makes hundreds of launches in a row in one stream, and consan does not know their accesses: the first
one stands for all. So it does for launches of one graph. The listener names the stream (`pass_over`), until it wants all (`tell_all`).

Noted are calls for the legacy default stream while the program has no other (`note`): launches, copies, memsets, events and waits. Until
there is a second stream nothing can run at the same time, and few of them have an effect. Then calls for all streams that Python knows
are noted, but copies and memsets: the report names their lines. Python reads what is noted before the next call that it gets, when
there is no room left, or when it needs the order.
"""

from __future__ import annotations

import ctypes
import enum
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consan._errors import EnvironmentFailure
from consan.backends.driver import MADE, OWN, QUIET
from consan.dataclass import dataclass
from consan.instrument.layouts.cpp import enumeration, structure
from consan.instrument.layouts.records import Records, dtype
from consan.toolchain.host_library import C, HostLibrary

DRIVER_API: Final = 1  # CUPTI_CB_DOMAIN_DRIVER_API
ALLOCATES: Final = re.compile("cuMem(Alloc|AllocPitch|AllocManaged|Create|AllocAsync|AllocFromPoolAsync)$")
_FORM: Final = re.compile(r"(?P<full>(?P<name>cu\w+?)(_v\d+)?)(?P<per_thread>_pt(?:sz|ds))?$")
_BEHIND: Final = {"O": 0, "C": 32}  # bytes from a pointer to its value
_STREAMS: Final = {"S": -1, "C": 32}  # the stream, or bytes to it from a pointer that is there
NOTHING_NOTED: Final = (1 << 64) - 1
MOST_CALLBACKS: Final = 1 << 12
MOST_NOTED, _WORDS, MOST_STREAMS = 1 << 10, 4, 1 << 7
PIECES, NUMBERS = 2, 8  # of the work around a launch
_KERNELS: Final = 1 << 14  # places for those that Python knows
_NOTED: Final = struct.Struct(f"<II{_WORDS * 8}s")


class CallKind(enum.IntEnum):
    """The ways in which the function handles a call, as calls.c has them."""

    AT_ONCE = 0  # Python hears of it at once
    LAUNCH = enum.auto()  # of a kernel whose accesses are not known
    GRAPH = enum.auto()  # a graph is launched
    OPERATION = enum.auto()  # on memory of the device
    COPY = enum.auto()  # the same; the host waits for it if one side is pageable memory
    EVENT = enum.auto()  # an event is recorded
    EVENT_USE = enum.auto()  # the host has waited for an event, or it is destroyed
    EVENT_WAIT = enum.auto()  # a stream waits for an event
    WAIT = enum.auto()  # the host has waited for all of the stream
    COPY_WAIT = enum.auto()  # the same, for a copy in it
    FREE = enum.auto()  # the same, if there is something to free
    ALLOCATION = enum.auto()  # of interest only if it fails


_SET: Final = {f"cuMemset{bits}{form}": CallKind.OPERATION for bits in ("D8", "D16", "D32") for form in ("", "Async")}
KINDS: Final = {
    **_SET,
    **dict.fromkeys(("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"), CallKind.LAUNCH),
    **dict.fromkeys(("cuMemcpyDtoD", "cuMemcpyDtoDAsync"), CallKind.OPERATION),
    **dict.fromkeys(("cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyAsync"), CallKind.COPY),
    **dict.fromkeys(("cuStreamSynchronize", "cuStreamQuery", "cuCtxSynchronize"), CallKind.WAIT),
    **dict.fromkeys(("cuMemcpy", "cuMemcpyDtoH"), CallKind.COPY_WAIT),
    **dict.fromkeys(("cuMemFree", "cuMemFreeHost"), CallKind.FREE),
    **dict.fromkeys(("cuEventSynchronize", "cuEventQuery", "cuEventDestroy"), CallKind.EVENT_USE),
    **dict.fromkeys(("cuEventRecord", "cuEventRecordWithFlags"), CallKind.EVENT),
    "cuStreamWaitEvent": CallKind.EVENT_WAIT,
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
    "cuGraphLaunch": (0, -1),
}
"""The place of a kernel's handle among the parameters, in bytes, and its distance from an address that is there (-1: it is there itself).

By the name of the function, with its version where that has another place. The parameters of other nodes have no such handle there. An
executable graph stands for its kernels: its launches are counted as theirs are.
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
    u64 words[{_WORDS}]  its parameters; of a launch its kernel and its stream
    """,
)
SEEN: Final = RECORDS.record(
    "SeenKernel",
    "a kernel that Python knows",
    """
    u64 handle   0: the place is free
    u64 count    of its launches that others than its framework have made
    u32 counted  they are counted
    u32 named    Python knows its name
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
    u64 reported              so many calls: to Python, at once
    u32 busy                  held by who uses the fields below
    u32 launched              a launch is noted, and no event behind it
    u32 operations            noted
    u32 events                noted
    u32 count                 of noted calls
    u32 everywhere            calls for all of these streams are noted, and for the legacy default stream; else for that one alone
    u32 over                  nobody needs the order of streams any more
    u32 stream_count          -
    u64 streams[{MOST_STREAMS}]  their handles
    CallRule rules[{MOST_CALLBACKS}]  by the numbers of the functions
    NotedCall noted[{MOST_NOTED}]    -
    SeenKernel kernels[{_KERNELS}]  by a hash of their handles
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
    "MOST_NOTED": MOST_NOTED,
    "MOST_STREAMS": MOST_STREAMS,
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


_FORMS: Final = {  # what they give, and how many words they get behind the filter
    "consan_count_kernel": (ctypes.c_int, 1),
    "consan_name_kernel": (None, 1),
    "consan_take_count": (ctypes.c_uint64, 1),
    "consan_pass_over": (None, 3),
    "consan_take": (ctypes.c_uint32, 1),
    "consan_take_noted": (ctypes.c_uint32, 5),
}
_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
FILTER: Final = HostLibrary("calls", "to follow the driver's calls", C, "consan.backends", "calls.c", _OPTIONS, generated=_generated)


class NotedCall(NamedTuple):
    """A call that was noted: its number, its kind, and its parameters. Those of a launch are its kernel and its stream."""

    number: int
    kind: int
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
        self._state["stream"] = self._state["notes"] = NOTHING_NOTED
        library = FILTER.load()
        for calls, place in ((OWN, library.consan_own_calls), (MADE, library.consan_made_launches), (QUIET, library.consan_quiet_launches)):
            place.restype = ctypes.c_void_p
            calls.count_in(place)
        self._functions = {name: _function(library, name, *form) for name, form in _FORMS.items()}
        self.function = library.consan_called
        self.argument = ctypes.c_void_p(self._state.ctypes.data)
        self._taken = ctypes.create_string_buffer(MOST_NOTED * _NOTED.size)
        self.context_of_notes: int | None = None  # the context whose calls are noted; None: no calls are

    def _call(self, name: str, *given: int) -> Any:
        return self._functions[name](self.argument, *given)

    @property
    def address(self) -> int:
        """The address of its state."""
        return int(self._state.ctypes.data)

    def follow(self, number: int, rule: Mapping[str, int]) -> None:
        """A call, by its number: the fields of its `CallRule`."""
        for name, value in rule.items():
            self._state["rules"][name][number] = value

    def count_kernel(self, handle: int) -> bool:
        """Count launches of a kernel from now on, by whoever is no framework (`MADE`); or of a graph. False: there is no room."""
        return bool(self._call("consan_count_kernel", handle))

    def name_kernel(self, handle: int) -> None:
        """The name of a kernel is known: its launches can be noted in all streams."""
        self._call("consan_name_kernel", handle)

    def taken_count(self, handle: int) -> int:
        """The launches since this was called last."""
        return int(self._call("consan_take_count", handle))

    def pass_over(self, stream: int, context: int, graph: int) -> None:
        """Drop launches into a stream, of kernels (`graph` is 0) or of an executable graph, if nothing is noted."""
        self._call("consan_pass_over", stream, context, graph)

    def tell_all(self) -> None:
        """Drop no launches."""
        self._state["stream"] = NOTHING_NOTED

    def ends_order(self, *, over: bool) -> None:
        """Drop all calls that only order streams, or none."""
        self._state["over"] = over

    def value(self, name: str) -> int:
        """The value of a field."""
        return int(self._state[name])

    def note(self, context: int | None, streams: Sequence[int] | None = None) -> list[NotedCall]:
        """Note calls of a context from now on; None: hand all to Python. Gives what was noted until now.

        `streams`: note calls for these, too. With hundreds, those for the others are not noted.
        """
        handles = (streams or ())[:MOST_STREAMS]
        given = (ctypes.c_uint64 * len(handles))(*handles)
        self.context_of_notes = context
        place, notes = ctypes.addressof, NOTHING_NOTED if context is None else context
        return self._read(self._call("consan_take_noted", place(self._taken), notes, streams is not None, place(given), len(handles)))

    def taken(self) -> list[NotedCall]:
        """The calls that are noted. They are noted no more."""
        return self._read(self._call("consan_take", ctypes.addressof(self._taken))) if self._state["count"] else []

    def _read(self, count: int) -> list[NotedCall]:
        return list(map(NotedCall._make, _NOTED.iter_unpack(memoryview(self._taken)[: count * _NOTED.size])))


def _function(library: ctypes.CDLL, name: str, result: Any, words: int) -> Any:
    function = library[name]  # one of its own: `restype` of an attribute is everybody's
    function.restype, function.argtypes = result, (ctypes.c_void_p, *(ctypes.c_uint64,) * words)
    return function


def filter_of(tell: Any, attribute: Any = None) -> CallFilter | None:
    """A filter before a function. None: there is no C here."""
    try:
        return CallFilter(tell, attribute)
    except (EnvironmentFailure, OSError):
        return None


@dataclass(frozen=True)
class CallForm:
    """A function of the driver. `layout`: of its parameters, if they are known; `pointer`: the place of one that points to its value, in
    bytes, and how far before the value it points; `stream`: the place of the stream, and how far behind a pointer that is there (less than
    0: it is there itself).
    """

    name: str
    per_thread: bool
    layout: struct.Struct = struct.Struct("")
    pointer: tuple[int, int] | None = None
    stream: tuple[int, int] | None = None
    kernel: tuple[int, int] = (-1, -1)  # the place of a kernel's handle (`KERNELS`)

    @classmethod
    def of(cls, name: str, per_thread: bool, text: str, full: str = "") -> CallForm:
        """By the characters of a layout (`CallSource.follow`). `full`: the name with its version."""
        kernel, layout = KERNELS.get(full, KERNELS.get(name, (-1, -1))), struct.Struct(re.sub("[OCS]", "P", text))
        return cls(name, per_thread, layout, _place_of(_BEHIND, text), None if per_thread else _place_of(_STREAMS, text), kernel)

    @property
    def nbytes(self) -> int:
        """The bytes of its parameters."""
        return self.layout.size

    @property
    def kind(self) -> CallKind:
        """The way in which it is handled."""
        return CallKind.AT_ONCE if self.per_thread else KINDS.get(self.name, CallKind.AT_ONCE)

    def rule(self) -> dict[str, int]:
        """The facts about it that C needs (`CallRule`)."""
        at, within = self.stream or (-1, -1)
        names = {"allocates": ALLOCATES.match(self.name) is not None, "kernel": self.kernel[0] + 1, "inside": self.kernel[1]}
        return {"behind": at + 1, "within": within, "kind": self.kind, "nbytes": self.nbytes, **names}

    def unpacked(self, data: bytes) -> tuple[int, ...]:
        """The parameters, where the value is in place of its pointer."""
        return self.layout.unpack(data[: self.nbytes])

    def read(self, at: int) -> tuple[int, ...]:
        """The parameters at an address."""
        data = bytearray(ctypes.string_at(at, self.nbytes))
        if self.pointer is not None:
            place, behind = self.pointer
            pointer = int.from_bytes(data[place : place + 8], "little")
            data[place : place + 8] = ctypes.string_at(pointer + behind, 8) if pointer else bytes(8)
        return self.unpacked(bytes(data))


def _place_of(parts: Mapping[str, int], text: str) -> tuple[int, int] | None:
    """The place of one of these characters in a layout, in bytes, and its number among `parts`."""
    found = re.search("|".join(parts), text)
    return None if found is None else (struct.calcsize(re.sub("[OCS]", "P", f"{text[: found.start()]}0P")), parts[found[0]])


def forms_of(library: Any, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> dict[int, CallForm]:
    """The functions that matter, by the numbers that CUPTI gives them."""
    found, forms = ctypes.c_char_p(), dict[int, CallForm]()
    for number in range(1, MOST_CALLBACKS):
        if library.cuptiGetCallbackName(DRIVER_API, number, ctypes.byref(found)):
            break
        form = _FORM.match((found.value or b"").decode())
        if form is not None and matters(form["name"]):
            forms[number] = CallForm.of(form["name"], form["per_thread"] is not None, layouts.get(form["name"], ""), form["full"])
    return forms
