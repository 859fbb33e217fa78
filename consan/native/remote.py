"""The GPUs of another process: the CUDA backend, over a driver library whose functions are orders to that process.

The program may use several contexts, as a rule one for each GPU. Each has a backend, and is current in the thread that obeys while an
order of that backend is obeyed. Everything goes on a stream of consan's own: work on the legacy stream would wait for the program's, and
is not allowed while the program captures a graph.

Orders for work in streams are kept, and go together: `ClientBackend.settle` sends them before the program goes on. The arguments of a
kernel lie in pages that both processes map, and stay as they are for the next few kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from consan.backends.base import Backend, Dim3, HostBytes
from consan.backends.contexts import CudaContexts
from consan.backends.cuda import CudaBackend, CudaModule
from consan.backends.cuda_memory import RING_FLAGS
from consan.backends.driver import Driver
from consan.backends.driver_values import host_bytes, pointer
from consan.backends.streams import RELAXED
from consan.backends.work import CudaWork
from consan.dataclass import dataclass
from consan.native.orders import Orders, RemoteLibrary, name_of, shared_pages
from consan.native.wire import Message

_BLOCK, _VALUES = 128, 64  # bytes: numbers, then the pointers to them
_BLOCKS: Final = mmap.PAGESIZE // _BLOCK


@dataclass(eq=False)
class Asking:
    """The request of the process that is being answered."""

    context: int = 0  # in which it was made, or for which; 0: it is not known
    launching: bool = False  # it is a launch that has its log, or waits for one


@dataclass(eq=False)
class NativeModule(CudaModule):
    """A module that the program has loaded; `library`: as a library, which belongs to no context."""

    library: bool = False
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)  # that were looked up: address and size


class RemoteContexts(CudaContexts):
    """The same for a process that obeys orders: the context is that of its request."""

    def __init__(self, driver: Driver, device: int, context: ctypes.c_void_p, asking: Asking, opens: Callable[[int], Backend]) -> None:
        super().__init__(driver, device, context)
        self._asking, self.opens = asking, opens

    def other(self) -> int:
        """The context of the request, if it is another one than the backend's."""
        context = self._asking.context
        if context in (0, self.own):
            return 0
        self.several = True
        return context


class ClientBackend(CudaBackend):
    """The GPU of a process that obeys orders, in one of its contexts."""

    ordered_streams = ()  # its own stream waits for none

    def __init__(self, orders: Orders, context: int, asking: Asking) -> None:
        self._orders, self._asking, self.found = orders, asking, context
        self._unsettled = False  # whether the device may still lack what was written
        super().__init__(driver=Driver(RemoteLibrary(orders, context)))
        opens = functools.partial(ClientBackend, orders, asking=asking)
        self.contexts = RemoteContexts(self._driver, self._device, self.context, asking, opens)
        self._name = super().device_name
        self._mapped: list[mmap.mmap] = []
        self.work = RemoteWork(self, self._driver)

    @property
    def device_name(self) -> str:
        """The device's marketing name, also after the process has ended."""
        return self._name

    def _open(self, ordinal: int) -> tuple[int, ctypes.c_void_p]:
        """The context that is there, and its device."""
        del ordinal
        self._driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(RELAXED)))
        return self._driver.integer("cuCtxGetDevice"), ctypes.c_void_p(self.found)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Each order says its context."""
        yield

    def write(self, address: int, data: Any) -> None:
        """Copy host bytes to the device, on consan's stream, by the next `settle`. The driver has read them when the call returns."""
        source = host_bytes(data)
        self._driver.call("cuMemcpyHtoDAsync_v2", address, pointer(source), source.size, self._control)
        self._unsettled = True

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range, on consan's stream, by the next `settle`."""
        if nbytes:
            self._driver.call("cuMemsetD8Async", address, value, nbytes, self._control)
            self._unsettled = True

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy bytes of the device to the host."""
        self.settle()
        return super().read(address, nbytes)

    def settle(self) -> None:
        """Wait until the device has what was written: a launch of the program on another stream must find it. Kept orders go."""
        with self._orders.lock:
            if self._unsettled:
                self._unsettled = False
                self._driver.call("cuStreamSynchronize", self._control)
            elif self._orders.are_kept:
                self._driver.call("cuCtxGetDevice", ctypes.byref(ctypes.c_int()))

    def shared_pages(self, nbytes: int) -> tuple[mmap.mmap, int]:
        """Zeroed pages of this process that the other one maps too, and their address there."""
        pages, address = shared_pages(self._orders, nbytes)
        self._mapped.append(pages)
        return pages, address

    def host_ring(self, nbytes: int) -> tuple[int, HostBytes]:
        """Zeroed pages that both processes and the device map: (device address, view). They outlive the other process."""
        pages, host = self.shared_pages(nbytes)
        address = ctypes.c_uint64()
        with self.current():
            self._driver.call("cuMemHostRegister_v2", host, len(pages), RING_FLAGS)
            self._driver.call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), host, 0)
        return address.value, np.frombuffer(pages, np.uint8)[:nbytes]

    def symbol(self, handle: CudaModule, name: str) -> tuple[int, int]:
        """Address and size of a global variable; of a library, in this context."""
        if not isinstance(handle, NativeModule):
            return super().symbol(handle, name)
        if name not in handle.symbols:
            place = (self.global_of(handle.handle, name, library=True), 0) if handle.library else super().symbol(handle, name)
            handle.symbols[name] = place
        return handle.symbols[name]

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait for all work; during a launch of the program only for that of its stream: another one may be captured."""
        self.settle()
        if not self._asking.launching:
            return super().synchronize(timeout)
        return self._streams.over(math.inf if timeout is None else time.monotonic() + timeout)

    def ends(self, timeout: float | None, longest: float) -> bool:
        """The user ends a program that hangs, unless there is a time limit."""
        return self.synchronize(timeout)

    def launch(self, handle: CudaModule, entry: str, grid: Dim3, block: Dim3, args: Sequence[bytes], **how: Any) -> None:
        """Launch a kernel of consan's own, whose parameters have at most 64 bits each, on its stream."""
        del how
        assert self.work is not None
        numbers = [int.from_bytes(value, "little") for value in args]
        self.work.launch(handle, entry, math.prod(grid), math.prod(block), numbers, self._control.value or 0)
        self._unsettled = True

    def status(self, function: str, *arguments: Any) -> int:
        """Call a function of the driver, and return what it says."""
        return self._driver.status(function, *arguments)

    def name_of(self, function: int) -> str:
        """A kernel's name; empty if the driver does not give it."""
        return name_of(self._orders, function)

    def global_of(self, handle: int, name: str, *, library: bool) -> int:
        """Address of a global variable of a module, or of a library in this context."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        function = "cuLibraryGetGlobal" if library else "cuModuleGetGlobal_v2"
        with self.current():
            self._driver.call(function, ctypes.byref(address), ctypes.byref(size), handle, name.encode())
        return address.value

    def ask(self, order: Message) -> Message:
        """Give an order, and wait for the answer."""
        return self._orders(order)


class RemoteWork(CudaWork):
    """The work of one process."""

    vanishes = True

    def __init__(self, backend: ClientBackend, driver: Driver) -> None:
        super().__init__(backend, driver)
        self._pages: tuple[mmap.mmap, int] | None = None
        self._client, self._next = backend, 0

    def launch_aside(self, *given: Any) -> None:
        """In order: the nodes of a capture are not known here."""
        self.launch(*given)

    def parameters(self, numbers: Sequence[int]) -> Any:
        """Pointers to the numbers, in the other process."""
        if self._pages is None:
            self._pages = self._client.shared_pages(mmap.PAGESIZE)
        page, address = self._pages
        self._next = (self._next + 1) % _BLOCKS
        begin = self._next * _BLOCK
        for at, number in enumerate(numbers):
            page[begin + 8 * at : begin + 8 * at + 8] = number.to_bytes(8, "little")
            pointer = address + begin + 8 * at
            page[begin + _VALUES + 8 * at : begin + _VALUES + 8 * at + 8] = pointer.to_bytes(8, "little")
        return address + begin + _VALUES
