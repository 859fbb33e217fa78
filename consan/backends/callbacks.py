"""The calls of the CUDA driver that the process makes, whoever makes them, by callbacks of CUPTI.

CUPTI calls a function of ours behind each call of the driver, on the thread that has made it: calls of CuPy, of torch, of a library, and
those of the CUDA runtime, however it is linked. So all calls that order streams are seen, and none is missed because a framework has
another name for it. Calls of consan's own are left out (`driver.OWN`).

CUPTI comes with torch, with Triton and with the CUDA toolkit. It has one subscriber in a process: where a profiler is it, nothing is
followed, and a profiler that starts later is refused.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import re
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from consan._errors import ConsanError
from consan.backends import driver as api
from consan.backends.base import FollowedLaunch
from consan.backends.call_filter import KERNELS, KINDS, MOST_CALLBACKS, CallFilter, CallKind, NotedCall, filter_of
from consan.backends.contexts import ProcessMemory
from consan.backends.cost import COST

_DRIVER_API, _EXIT = 1, 1  # CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_EXIT
_OUT_OF_MEMORY: Final = 2  # CUDA_ERROR_OUT_OF_MEMORY
ALLOCATES: Final = re.compile("cuMem(Alloc|AllocPitch|AllocManaged|Create|AllocAsync|AllocFromPoolAsync)$")
_TAKEN: Final = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
_FORM: Final = re.compile(r"(?P<full>(?P<name>cu\w+?)(_v\d+)?)(?P<per_thread>_pt(?:sz|ds))?$")
_STREAM_NON_BLOCKING: Final = 1  # CU_STREAM_NON_BLOCKING
_BEHIND: Final = {"O": 0, "C": 32}  # bytes from a pointer to its value
_STREAMS: Final = {"S": -1, "C": 32}  # the stream, or bytes to it from a pointer that is there
_A_LAUNCH: Final = ("cuLaunchKernel", (0,) * 11)  # in the default stream
_WITH_ATTRIBUTES: Final = "cuLaunchKernelEx"
_ANOTHER: Final = 1  # stands for the thread of a call that was noted
_MEMORY_TYPE: Final = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
NO_LIBRARY: Final = "CUPTI is not installed"
TAKEN: Final = "a profiler has subscribed to CUPTI"


@dataclass(frozen=True)
class DriverCall:
    """A call that has succeeded. `name`: without its version; `per_thread`: stream 0 is the thread's own default stream.

    `values`: the parameters, if the listener knows their layout (`CallSource.follow`); `thread`: 0 if it is the one that tells.
    `noted`: it was made some time before, in the legacy default stream; of a launch no more is known.
    """

    name: str
    values: tuple[int, ...] = ()
    per_thread: bool = False
    context: int = 0
    thread: int = 0
    noted: bool = False
    waited: bool = False  # of a noted call: the host has waited for the stream
    programmatic: bool = False  # a launch that may start while the one before it runs


class Listener(Protocol):
    """The functions that are called after each call of the driver."""

    def called(self, call: DriverCall) -> None:
        """A call has succeeded."""

    def missed(self, why: str) -> None:
        """A call was not understood."""

    def lacks_memory(self) -> None:
        """The device had no memory for the program. Frameworks free what they can, and ask again."""


class CallbackData(ctypes.Structure):
    """`CUptiCallbackData`."""

    _fields_ = (
        ("site", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("params", ctypes.c_void_p),
        ("status", ctypes.POINTER(ctypes.c_int)),
        ("symbol", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
    )


_Callback: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(CallbackData))


@dataclass(frozen=True)
class CallForm:
    """A function of the driver. `layout`: of its parameters, if they are known.

    `pointer`: the place of one that points to its value, in bytes, and how far before the value it points. `stream`: the place of the
    stream, and how far behind a pointer that is there (less than 0: it is there itself).
    """

    name: str
    per_thread: bool
    layout: struct.Struct = struct.Struct("")  # noqa: RUF009 - immutable
    pointer: tuple[int, int] | None = None
    stream: tuple[int, int] | None = None
    kernel: tuple[int, int] = (-1, -1)  # the place of a kernel's handle (`KERNELS`)

    @classmethod
    def of(cls, name: str, per_thread: bool, text: str, full: str = "") -> CallForm:
        """By the characters of a layout (`CallSource.follow`). `full`: the name with its version."""
        kernel = KERNELS.get(full, KERNELS.get(name, (-1, -1)))
        layout = struct.Struct(re.sub("[OCS]", "P", text))
        return cls(name, per_thread, layout, _place_of(_BEHIND, text), None if per_thread else _place_of(_STREAMS, text), kernel)

    @property
    def nbytes(self) -> int:
        """The bytes of its parameters."""
        return self.layout.size

    def rule(self) -> dict[str, int]:
        """The facts about it that C needs (`CallRule`)."""
        at, within = self.stream or (-1, -1)
        kind = CallKind.AT_ONCE if self.per_thread else KINDS.get(self.name, CallKind.AT_ONCE)
        allocates = ALLOCATES.match(self.name) is not None
        kernel, inside = self.kernel
        names = {"kernel": kernel + 1, "inside": inside}
        return {"behind": at + 1, "within": within, "kind": kind, "nbytes": self.nbytes, "allocates": allocates, **names}

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
    """Where a layout has one of these characters, in bytes, and what stands for it."""
    found = re.search("|".join(parts), text)
    return None if found is None else (struct.calcsize(re.sub("[OCS]", "P", f"{text[: found.start()]}0P")), parts[found[0]])


def forms_of(library: Any, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> dict[int, CallForm]:
    """The functions that matter, by the numbers that CUPTI gives them."""
    found, forms = ctypes.c_char_p(), dict[int, CallForm]()
    for number in range(1, MOST_CALLBACKS):
        if library.cuptiGetCallbackName(_DRIVER_API, number, ctypes.byref(found)):
            break
        form = _FORM.match((found.value or b"").decode())
        if form is not None and matters(form["name"]):
            forms[number] = CallForm.of(form["name"], form["per_thread"] is not None, layouts.get(form["name"], ""), form["full"])
    return forms


def refused(status: int) -> str:
    """Why CUPTI does not work, by what it has said; empty if it does."""
    return "" if not status else TAKEN if status == _TAKEN else f"CUPTI does not work here (error {status})"


class DriverFacts:
    """What a driver knows of handles and addresses. A subclass can ask one."""

    def status(self, function: str, *arguments: Any) -> int:
        """Call a function of the driver, and return what it says; not 0 where there is none yet."""
        raise NotImplementedError

    def blocks(self, stream: int) -> bool:
        """Whether a stream and the legacy default stream wait for each other."""
        flags = ctypes.c_uint()
        return bool(self.status("cuStreamGetFlags", ctypes.c_void_p(stream), ctypes.byref(flags))) or not flags.value & _STREAM_NON_BLOCKING

    def is_registered(self, address: int) -> bool:
        """Whether the driver knows the memory at an address: it is no pageable memory of the host."""
        kind = ctypes.c_uint()
        return not self.status("cuPointerGetAttribute", ctypes.byref(kind), _MEMORY_TYPE, ctypes.c_uint64(address))


class DriverCalls(DriverFacts):
    """The calls of this process (`CallSource`)."""

    def __init__(self) -> None:
        self.memory = ProcessMemory(self.status)
        self._listeners: weakref.WeakSet[Any] = weakref.WeakSet()
        self._forms: dict[int, CallForm] = {}
        self._launch: int | None = None  # the number of cuLaunchKernel
        self._matters: Callable[[str], bool] = lambda name: False
        self._callback = _Callback(self._called)
        self._filter: CallFilter | None = None
        self._library: ctypes.CDLL | None = None
        self.why_not: str | None = None  # why nothing is followed; None: nobody has asked yet

    def follow(self, listener: Listener, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> str:
        """Call a listener behind each call whose name matters, from now on. Returns why it is not called; empty if it is.

        All listeners of a process have the same names and layouts: the first one's.
        """
        if self.why_not is None:
            self.why_not = self._subscribe(matters, layouts)
        if not self.why_not:
            self.note(None)
            self._listeners.add(listener)
        return self.why_not

    def _subscribe(self, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> str:
        why = NO_LIBRARY
        for path in libraries():
            try:
                library, subscriber = ctypes.CDLL(path), ctypes.c_void_p()
                status = library.cuptiSubscribe(ctypes.byref(subscriber), *self._entry())
            except (OSError, AttributeError):
                continue
            if status == _TAKEN:
                return TAKEN
            why = refused(status)
            if not status:
                self._library, self._matters = library, functools.cache(matters)
                self._forms = forms_of(library, lambda name: matters(name) or ALLOCATES.match(name) is not None, layouts)
                self._follow_forms()
                return self._enable(library, subscriber)
        return why

    def _entry(self) -> tuple[Any, Any]:
        """The function that CUPTI calls, and its argument."""
        self._filter = self._filter or filter_of(self._callback, attribute_function())
        return (self._callback, None) if self._filter is None else (self._filter.function, self._filter.argument)

    def _follow_forms(self) -> None:
        launches = (number for number, form in self._forms.items() if (form.name, form.per_thread) == (_A_LAUNCH[0], False))
        self._launch = next(launches, None)
        if self._filter is not None:
            for number, form in self._forms.items():
                self._filter.follow(number, form.rule() | ({} if self._matters(form.name) else {"kind": CallKind.ALLOCATION}))

    def _enable(self, library: ctypes.CDLL, subscriber: ctypes.c_void_p) -> str:
        status = 0
        for number in self._forms:
            status = status or library.cuptiEnableCallback(1, subscriber, _DRIVER_API, number)
        if status or not self._forms:
            library.cuptiUnsubscribe(subscriber)
            return f"CUPTI does not work here (error {status})"
        atexit.register(library.cuptiUnsubscribe, subscriber)  # what the driver is asked behind it finds no interpreter
        return ""

    def _called(self, _: int, __: int, number: int, data: Any) -> None:
        if api.OWN.depth or data[0].site != _EXIT:
            return
        try:
            with COST.working():
                self._tell(number, data[0])
        except Exception as error:  # it cannot pass through the driver
            for each in list(self._listeners):
                each.missed(f"{type(error).__name__}: {error}")

    def _tell(self, number: int, data: CallbackData) -> None:
        form = self._forms[number]
        if data.status and data.status[0]:
            if data.status[0] == _OUT_OF_MEMORY and ALLOCATES.match(form.name):
                for each in list(self._listeners):
                    each.lacks_memory()
            return
        if not self._matters(form.name):
            return
        self.tell_all()
        self.read_noted()
        call = DriverCall(form.name, form.read(data.params) if data.params else (), form.per_thread, data.context or 0)
        if form.name == _WITH_ATTRIBUTES and data.params:
            call = replace(call, programmatic=is_programmatic(data.params))
        self.memory.called(call.name, call.values)
        for each in list(self._listeners):
            each.called(call)

    reads_attributes = True

    def pass_over(self, stream: int, context: int, graph: int = 0) -> None:
        """See `CallSource`."""
        if self._filter is not None and len(self._listeners) == 1:
            self._filter.pass_over(stream, context, graph)

    def tell_all(self) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            self._filter.tell_all()

    @property
    def notes(self) -> bool:
        """See `CallSource`."""
        return self._filter is not None and self._filter.context_of_notes is not None

    def followed_launch(self) -> FollowedLaunch | None:
        """See `CallSource`."""
        if self._filter is None or self._launch is None or (context := self._filter.context_of_notes) is None:
            return None
        return FollowedLaunch(self._filter.address, context, self._launch)

    def note(self, context: int | None) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            before = self._filter.context_of_notes
            self._tell_noted(self._filter.note(context if len(self._listeners) == 1 else None), before or 0)

    def read_noted(self) -> None:
        """See `CallSource`."""
        if self._filter is not None and (calls := self._filter.taken()):
            self._tell_noted(calls, self._filter.context_of_notes or 0)

    def _tell_noted(self, calls: list[NotedCall], context: int) -> None:
        for noted in calls:
            form = self._forms[noted.number]
            call = DriverCall(*_A_LAUNCH) if noted.kind is CallKind.LAUNCH else DriverCall(form.name, form.unpacked(noted.parameters))
            call = replace(call, context=context, thread=_ANOTHER, noted=True, waited=noted.kind is CallKind.WAIT)
            self.memory.called(call.name, call.values)
            for each in list(self._listeners):
                each.called(call)

    def count_kernel(self, handle: int) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            self._filter.count_kernel(handle)

    def taken_count(self, handle: int) -> int:
        """See `CallSource`."""
        return 0 if self._filter is None else self._filter.taken_count(handle)

    def status(self, function: str, *arguments: Any) -> int:
        """Ask the driver."""
        return api.driver().status(function, *arguments)

    def kernel(self, function: int) -> str:
        """The name of a kernel; empty where the driver does not give it (before 12.3)."""
        name = ctypes.c_char_p()
        for ask in filter(api.driver().has, ("cuFuncGetName", "cuKernelGetName")):  # a launch takes either handle
            if not self.status(ask, ctypes.byref(name), ctypes.c_void_p(function)):
                return (name.value or b"").decode(errors="replace")
        return ""


CALLS: Final = DriverCalls()


def is_programmatic(params: int) -> bool:
    """Whether a launch with attributes is a programmatic dependent one.

    `params`: the address of its parameters. The first points to its configuration.
    """
    at = ctypes.c_void_p.from_address(params).value
    config = api.LaunchConfig.from_address(at) if at else api.LaunchConfig()
    given = (config.attributes[each] for each in range(config.count))
    return any(each.id == api.ATTRIBUTE_PROGRAMMATIC and each.value.programmatic for each in given)


def attribute_function() -> Any:
    """The driver's `cuPointerGetAttribute`; None: there is no driver."""
    try:
        return api.driver().function("cuPointerGetAttribute")
    except ConsanError:
        return None


def libraries() -> Iterator[str]:
    """Possible paths of CUPTI: the one that the process has loaded, those of packages, and that of the toolkit."""
    try:
        mapped = Path("/proc/self/maps").read_text()
    except OSError:
        mapped = ""
    yield from dict.fromkeys(re.findall(r"/\S*/libcupti\.so\S*", mapped))
    for package, place in (("nvidia", "*/lib/libcupti.so.*"), ("triton", "backends/nvidia/lib/cupti*/libcupti.so*")):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec is not None else ():
            yield from map(str, sorted(Path(folder).glob(place), reverse=True))
    yield from ("libcupti.so", "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so")
