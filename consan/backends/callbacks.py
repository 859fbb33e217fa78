"""The calls of the CUDA driver that the process makes, whoever makes them, by callbacks of CUPTI.

CUPTI calls a function of ours behind each call of the driver, on the thread that has made it: calls of CuPy, of torch, of a library, and
those of the CUDA runtime, however it is linked. So all calls that order streams are seen, and none is missed because a framework has
another name for it. Calls of consan's own are left out (`driver.OWN`).

CUPTI comes with torch, with Triton and with the CUDA toolkit. It has one subscriber in a process: where a profiler is it, nothing is
followed, and a profiler that starts later is refused.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import re
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from consan._errors import ConsanError
from consan.backends import driver as api
from consan.backends.base import FollowedLaunch
from consan.backends.call_filter import ALLOCATES, DRIVER_API, NOTHING_NOTED, CallFilter, CallForm, CallKind, NotedCall, filter_of, forms_of
from consan.backends.contexts import ProcessMemory, look_where_launches_point
from consan.backends.cost import COST

_EXIT: Final = 1  # CUPTI_API_EXIT
_OUT_OF_MEMORY: Final = 2  # CUDA_ERROR_OUT_OF_MEMORY
_TAKEN: Final = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
_STREAM_NON_BLOCKING: Final = 1  # CU_STREAM_NON_BLOCKING
_A_LAUNCH: Final = "cuLaunchKernel"
_LAUNCHED: Final = struct.Struct("<QQ")  # of a launch that is noted
_SHAPE: Final = (0,) * 7  # of that launch, which is not noted
_WAITS: Final = frozenset((CallKind.WAIT, CallKind.COPY_WAIT))
_WITH_ATTRIBUTES: Final = "cuLaunchKernelEx"
_ANOTHER: Final = 1  # stands for the thread of a call that was noted
_MEMORY_TYPE: Final = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
NO_LIBRARY: Final = "CUPTI is not installed"
TAKEN: Final = "a profiler has subscribed to CUPTI"


class DriverCall(NamedTuple):
    """A call that has succeeded. `name`: without its version; `per_thread`: stream 0 is the thread's own default stream.

    `values`: the parameters, if the listener knows their layout (`CallSource.follow`); `thread`: 0 if it is the one that tells.
    `noted`: it was made some time before; of a launch no more is known than its kernel and its stream.
    """

    name: str
    values: tuple[int, ...] = ()
    per_thread: bool = False
    context: int = 0
    thread: int = 0
    noted: bool = False
    waited: bool = False  # of a noted call: the host has waited for the stream
    programmatic: bool = False  # a launch that may start while the one before it runs
    records: bool = False  # a launch that records an event by an attribute
    process: int = 0  # 0: this one


class Listener(Protocol):
    """The functions that are called after each call of the driver. `lock`: is held while calls are read and reported."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """It can be held more than once by one thread."""

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


def refused(status: int) -> str:
    """Why CUPTI does not work, by what it has said; empty if it does."""
    return "" if not status else TAKEN if status == _TAKEN else f"CUPTI does not work here (error {status})"


class DriverFacts:
    """A driver's knowledge of handles and addresses. A subclass can ask one."""

    def status(self, function: str, *arguments: Any) -> int:
        """Call a function of the driver, and return what it says; not 0 where there is none yet."""
        raise NotImplementedError

    def blocks(self, stream: int) -> bool:
        """Whether a stream and the legacy default stream wait for each other."""
        flags = ctypes.c_uint()
        return bool(self.status("cuStreamGetFlags", ctypes.c_void_p(stream), ctypes.byref(flags))) or not flags.value & _STREAM_NON_BLOCKING

    def is_captured(self, stream: int) -> bool:
        """Whether a stream, which is no default stream, is being captured. To ask for its flags would end that, in any mode."""
        status = ctypes.c_int()
        return not self.status("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status)) and status.value != 0

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
        self._pending: deque[NotedCall] = deque()  # that are taken and not reported
        self._reading = False

    def follow(self, listener: Listener, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> str:
        """Call a listener behind each call whose name matters, from now on. Returns why it is not called; empty if it is.

        All listeners of a process have the same names and layouts: the first one's.
        """
        if self.why_not is None:
            self.why_not = self._subscribe(matters, layouts)
        if not self.why_not:
            self.note(None)
            self._listeners.add(listener)
            look_where_launches_point()
            self._ends_order(over=False)
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
        launches = (number for number, form in self._forms.items() if (form.name, form.per_thread) == (_A_LAUNCH, False))
        self._launch = next(launches, None)
        if self._filter is not None:
            for number, form in self._forms.items():
                self._filter.follow(number, form.rule() | ({} if self._matters(form.name) else {"kind": CallKind.ALLOCATION}))

    def _enable(self, library: ctypes.CDLL, subscriber: ctypes.c_void_p) -> str:
        status = 0
        for number in self._forms:
            status = status or library.cuptiEnableCallback(1, subscriber, DRIVER_API, number)
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
        call = DriverCall(form.name, form.read(data.params) if data.params else (), form.per_thread, data.context or 0)
        if form.name == _WITH_ATTRIBUTES and data.params:
            call = call._replace(programmatic=is_programmatic(data.params), records=records_event(data.params))
        with self._in_order():
            self.tell_all()
            self.read_noted()
            self.memory.called(call.name, call.values)
            for each in list(self._listeners):
                each.called(call)

    def _in_order(self) -> AbstractContextManager[Any]:
        """Inside the block no other thread reports calls to the one listener for whom calls are noted."""
        listeners = list(self._listeners)
        return listeners[0].lock if len(listeners) == 1 else contextlib.nullcontext()

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

    @property
    def serves_alone(self) -> bool:
        """See `CallSource`."""
        return self._filter is not None and len(self._listeners) == 1

    def followed_launch(self) -> FollowedLaunch | None:
        """See `CallSource`."""
        known = self._filter
        if known is None or self._launch is None or known.value("everywhere"):
            return None
        if known.context_of_notes is not None:
            return FollowedLaunch(known.address, known.context_of_notes, self._launch)
        return FollowedLaunch(known.address, NOTHING_NOTED, known.value("reported")) if self.serves_alone else None

    def note(self, context: int | None, streams: Sequence[int] | None = None) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            with self._in_order():
                before = self._filter.context_of_notes
                self._tell_noted(self._filter.note(context if len(self._listeners) == 1 else None, streams), before or 0)

    def ends_order(self) -> None:
        """See `CallSource`."""
        self._ends_order(over=len(self._listeners) == 1)

    def _ends_order(self, *, over: bool) -> None:
        if self._filter is not None:
            self._filter.ends_order(over=over)

    def read_noted(self) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            with self._in_order():
                if calls := self._filter.taken():
                    self._tell_noted(calls, self._filter.context_of_notes or 0)

    def _tell_noted(self, calls: list[NotedCall], context: int) -> None:
        """Report calls in their order: those that are taken meanwhile come behind them."""
        self._pending.extend(calls)
        if self._reading:
            return
        self._reading = True
        try:
            listeners = list(self._listeners)
            while self._pending:
                call = self._noted_call(self._pending.popleft(), context)
                self.memory.called(call.name, call.values)
                for each in listeners:
                    each.called(call)
        finally:
            self._reading = False
            self._pending.clear()

    def _noted_call(self, noted: NotedCall, context: int) -> DriverCall:
        form = self._forms[noted.number]
        if noted.kind == CallKind.LAUNCH:
            kernel, stream = _LAUNCHED.unpack_from(noted.parameters)
            return DriverCall(_A_LAUNCH, (kernel, *_SHAPE, stream, 0, 0), False, context, _ANOTHER, True)
        waited = noted.kind in _WAITS
        return DriverCall(form.name, form.layout.unpack_from(noted.parameters), False, context, _ANOTHER, True, waited)

    def count_kernel(self, handle: int) -> bool:
        """See `CallSource`."""
        return self._filter is not None and self._filter.count_kernel(handle)

    def name_kernel(self, handle: int) -> None:
        """See `CallSource`."""
        if self._filter is not None:
            self._filter.name_kernel(handle)

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
    return any(each.id == api.ATTRIBUTE_PROGRAMMATIC and each.value.programmatic for each in _attributes(params))


def records_event(params: int) -> bool:
    """Whether a launch with attributes records an event by one of them."""
    return any(each.id in api.ATTRIBUTE_EVENTS for each in _attributes(params))


def _attributes(params: int) -> list[Any]:
    at = ctypes.c_void_p.from_address(params).value
    config = api.LaunchConfig.from_address(at) if at else api.LaunchConfig()
    return [config.attributes[each] for each in range(config.count)]


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
