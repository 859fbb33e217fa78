"""Others that reach the memory of a backend's process: its other GPUs, and other processes.

CUDA Driver API, "Context Management", "Unified Addressing", "Memory Management" (IPC), "Virtual Memory Management", "Stream Ordered Memory
Allocator", "Multicast Object Management". Memory is shared with other processes if this one has opened what another one has exported, or
has exported its own: others may have opened that since. So it is with memory that a multicast object reaches. The type of a handle (a file
descriptor, a fabric handle) makes no difference.

Not known: calls that nobody has seen, as before CUPTI was subscribed to. An exported pool counts once a pointer into it is exported.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from consan.backends import driver as api
from consan.backends.armed import armed_functions
from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.backends.base import Backend

_MEMORY_TYPE, _IS_MANAGED, _ORDINAL, _RANGE_START, _RANGE_SIZE = 2, 8, 9, 11, 12  # CU_POINTER_ATTRIBUTE_*
_HOST: Final = 1  # CU_MEMORYTYPE_HOST
_SMALLEST_ADDRESS: Final = 1 << 16
HOST_MEMORY: Final = "the host, which each GPU reaches"

OF_ANOTHER: Final = "memory of another process"
EXPORTED: Final = "memory that another process may have opened"
PEERS: Final = "cuCtxEnablePeerAccess"
Span = tuple[int, int]
"""The addresses from one to another, which is behind the last."""


class CudaContexts:
    """The questions of one backend, which has one device and one context, about the others."""

    def __init__(self, driver: api.Driver, device: int, context: ctypes.c_void_p) -> None:
        self._driver, self.device, self._context = driver, device, context
        self.own = context.value or 0
        self.refusal = ""  # why launches in this context cannot be checked
        self.several = False  # the process has used another context
        self.opens: Callable[[int], Backend] | None = None

    @functools.cached_property
    def alone(self) -> bool:
        """Whether the process sees one GPU, and so no memory of another one."""
        return self._driver.integer("cuDeviceGetCount") <= 1

    def other(self) -> int:
        """The context of the calling thread, if it is another one than the backend's; 0 if it is the same, or there is none."""
        found = ctypes.c_void_p()
        self._driver.call("cuCtxGetCurrent", ctypes.byref(found))
        if found.value in (None, self._context.value):
            return 0
        self.several = True
        return found.value or 0

    def holder(self, address: int) -> str:
        """Another holder of the memory at an address: a GPU, or the host; empty: there is none, or it is no address."""
        if address < _SMALLEST_ADDRESS or (ordinal := self._attribute(_ORDINAL, address)) is None:
            return ""
        if ordinal != self.device:
            return f"GPU {ordinal}"
        of_host = self.several and (self._attribute(_MEMORY_TYPE, address) == _HOST or self._attribute(_IS_MANAGED, address))
        return HOST_MEMORY if of_host else ""

    def _attribute(self, number: int, address: int) -> int | None:
        value = ctypes.c_int()
        failed = self._driver.status("cuPointerGetAttribute", ctypes.byref(value), number, ctypes.c_uint64(address))
        return None if failed else value.value


def look_where_launches_point() -> None:
    """C makes none of the armed launches from now on, so that Python looks (session/comparing/peers.py)."""
    if (functions := armed_functions()) is not None:
        functions.shares(more=True)


@dataclass
class ProcessMemory:
    """The memory that is shared now. `status`: calls a function of the driver, and returns its status."""

    status: Callable[..., int]
    peers: bool = False  # the program has enabled peer access
    shared: bool = False  # memory was opened or exported
    changes: int = 0  # of what is shared, or may be
    _looks: bool = False  # where launches point
    _opened: dict[int, str] = field(default_factory=dict)  # by an address in it: what it is
    _spans: dict[int, Span] = field(default_factory=dict)  # of these, where the driver was asked
    _mapped: dict[int, tuple[int, int]] = field(default_factory=dict)  # by the first address: the end and the number of the handle
    _handles: dict[int, str] = field(default_factory=dict)  # that are shared, by number: what they are
    _same: dict[int, int] = field(default_factory=dict)  # by number: the handle with which the same memory was mapped
    _found: list[tuple[Span, str]] | None = None  # all that is shared; None: there was a call since
    _old: Iterator[int] = field(default_factory=lambda: itertools.count(-1, -1))  # numbers of handles whose number was given again

    def called(self, name: str, values: tuple[int, ...]) -> None:
        """The program has made a call of the driver."""
        row = _ROWS.get(name)
        if row is not None:
            row[1](self, *values)
            self._found, self.changes = None, self.changes + 1
            if self.shared and not self._looks:
                self._looks = True
                look_where_launches_point()

    def holder(self, address: int) -> str:
        """Whose memory an address is in, if it is shared; empty: it is not."""
        return next((what for (begin, end), what in self._all() if begin <= address < end), "") if self.shared else ""

    def touched(self, addresses: Any, nbytes: Any) -> bool:
        """Whether one of these accesses (NumPy arrays of first addresses and of bytes) is to shared memory."""
        return any(bool(((addresses < end) & (addresses + nbytes > begin)).any()) for (begin, end), _ in self._all())

    def _all(self) -> list[tuple[Span, str]]:
        found = self._found
        if found is None:
            found = [(self._span(address), what) for address, what in list(self._opened.items())]
            mapped = ((begin, end, self._handles.get(handle)) for begin, (end, handle) in list(self._mapped.items()))
            found += [((begin, end), what) for begin, end, what in mapped if what is not None]
            self._found = found
        return found

    def _span(self, address: int) -> Span:
        """The allocation that an address is in. For one that the driver does not know: this byte."""
        if address not in self._spans:
            begin, size = ctypes.c_uint64(), ctypes.c_uint64()
            asked = ((_RANGE_START, begin), (_RANGE_SIZE, size))
            if any(self.status("cuPointerGetAttribute", ctypes.byref(to), number, ctypes.c_uint64(address)) for number, to in asked):
                return address, address + 1
            self._spans[address] = begin.value, begin.value + size.value
        return self._spans[address]

    def _opens(self, address: int, what: str) -> None:
        self.shared = True
        self._opened[address] = what
        self._spans.pop(address, None)

    def _imported(self, address: int) -> None:
        self._opens(address, OF_ANOTHER)

    def _exported(self, _: int, address: int) -> None:
        if not self.holder(address):
            self._opens(address, EXPORTED)

    def _freed(self, address: int, *_: int) -> None:
        """The memory at an address is no more. Its addresses may be given again."""
        for each in [each for each in self._opened if address in (each, self._span(each)[0])]:
            del self._opened[each]
            self._spans.pop(each, None)

    def _new_handle(self, handle: int) -> None:
        """The driver gives the number of a handle that was released: what was mapped with that one has another number from now on."""
        self._same.pop(handle, None)
        old, what = next(self._old), self._handles.pop(handle, None)
        self._mapped = {begin: (end, old if of == handle else of) for begin, (end, of) in self._mapped.items()}
        if what is not None:
            self._handles[old] = what

    def _imported_handle(self, handle: int) -> None:
        self._new_handle(handle)
        self.shared, self._handles[handle] = True, OF_ANOTHER

    def _exported_handle(self, _: int, handle: int) -> None:
        self.shared = True
        self._handles.setdefault(self._same.get(handle, handle), EXPORTED)

    def _bound(self, _: int, __: int, *places: int) -> None:
        """A multicast object reaches the memory of a handle. Its place among the parameters is another one from version 2 on."""
        for each in places:
            self._exported_handle(0, each)

    def _bound_address(self, _: int, __: int, *places: int) -> None:
        for each in places:
            self._exported(0, each)

    def _retained(self, handle: int, address: int) -> None:
        """The program has another handle of the memory that is mapped at an address."""
        mapped = next((of for begin, (end, of) in self._mapped.items() if begin <= address < end), handle)
        if mapped != handle:
            self._new_handle(handle)
            self._same[handle] = mapped

    def _maps(self, begin: int, nbytes: int, _: int, handle: int) -> None:
        self._mapped[begin] = begin + nbytes, self._same.get(handle, handle)

    def _unmaps(self, begin: int, nbytes: int) -> None:
        self._mapped = {first: mapped for first, mapped in self._mapped.items() if not begin <= first < begin + nbytes}

    def _enables_peers(self) -> None:
        self.peers = True


_ROWS: Final[Mapping[str, tuple[str, Callable[..., None]]]] = {
    PEERS: ("", ProcessMemory._enables_peers),
    "cuIpcOpenMemHandle": ("O", ProcessMemory._imported),
    "cuIpcGetMemHandle": ("PP", ProcessMemory._exported),
    "cuIpcCloseMemHandle": ("P", ProcessMemory._freed),
    "cuMemPoolImportPointer": ("O", ProcessMemory._imported),
    "cuMemPoolExportPointer": ("PP", ProcessMemory._exported),
    "cuMemFree": ("P", ProcessMemory._freed),
    "cuMemFreeAsync": ("PP", ProcessMemory._freed),
    "cuMemCreate": ("O", ProcessMemory._new_handle),
    "cuMulticastCreate": ("O", ProcessMemory._imported_handle),
    "cuMemImportFromShareableHandle": ("O", ProcessMemory._imported_handle),
    "cuMemExportToShareableHandle": ("PQ", ProcessMemory._exported_handle),
    "cuMemRetainAllocationHandle": ("OP", ProcessMemory._retained),
    "cuMemGetHandleForAddressRange": ("PP", ProcessMemory._exported),
    "cuMulticastBindMem": ("QNQQ", ProcessMemory._bound),
    "cuMulticastBindAddr": ("QNPP", ProcessMemory._bound_address),
    "cuMemMap": ("PNNQ", ProcessMemory._maps),
    "cuMemUnmap": ("PN", ProcessMemory._unmaps),
}
NOTHING: Final = ProcessMemory(lambda *_: 1)
"""For a process whose calls nobody sees."""
LAYOUTS: Final = {name: row[0] for name, row in _ROWS.items()}
"""The parameters that are read, as `CallSource.follow` has them."""
