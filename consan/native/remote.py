"""The GPU of another process: the CUDA backend, over a driver library whose functions are orders to that process.

The context is the one that the program uses, and is current in the thread that obeys. Everything goes on a stream of consan's own:
work on the legacy stream would wait for the program's, and is not allowed while the program captures a graph.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from consan.backends.base import Dim3, HostBytes
from consan.backends.contexts import OneContext
from consan.backends.cuda import CudaBackend, CudaModule
from consan.backends.cuda_memory import RING_FLAGS
from consan.backends.driver import Driver
from consan.backends.driver_values import host_bytes, pointer
from consan.backends.streams import RELAXED
from consan.dataclass import dataclass
from consan.native.orders import Orders, RemoteLibrary, shared_pages
from consan.native.wire import Message, MessageKind, call
from consan.native.work import RemoteWork


@dataclass(eq=False)
class NativeModule(CudaModule):
    """A module that the program has loaded; `library`: as a library, which belongs to no context."""

    library: bool = False
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)  # that were looked up: address and size


class ClientBackend(CudaBackend):
    """The GPU of a process that obeys orders, in its context."""

    ordered_streams = ()  # its own stream waits for none

    def __init__(self, orders: Orders, context: int) -> None:
        self._orders, self.found_context = orders, context
        self._unsettled = False  # whether the device may still lack what was written
        super().__init__(driver=Driver(RemoteLibrary(orders)))
        self.contexts = OneContext(self._driver, self._device, self.context)
        self._name = super().device_name
        self._mapped: list[mmap.mmap] = []
        self.work = RemoteWork(self, self._driver)
        self.launching = False  # a launch of the program has its log, or is asking for one

    @property
    def device_name(self) -> str:
        """The device's marketing name, also after the process has ended."""
        return self._name

    def _open(self, ordinal: int) -> tuple[int, ctypes.c_void_p]:
        """The context that is there, and its device. The thread that obeys keeps the context: nobody else has that thread."""
        del ordinal
        context = ctypes.c_void_p(self.found_context)
        self._driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(RELAXED)))
        self._driver.call("cuCtxPushCurrent_v2", context)
        return self._driver.integer("cuCtxGetDevice"), context

    def leave(self) -> None:
        """Take the context from the thread that obeys."""
        self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    @contextlib.contextmanager
    def within(self, context: int) -> Iterator[None]:
        """Inside the block the thread that obeys is in another context of the program."""
        self._driver.call("cuCtxPushCurrent_v2", ctypes.c_void_p(context))
        try:
            yield
        finally:
            self.leave()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Its context is the obeying thread's."""
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
        if not self.launching:
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
        found = self._orders(call("cuFuncGetName", [0, function], 1, b"", scratch=8, input_at=8, output=8))
        if found.a or not (place := int.from_bytes(found.data, "little")):
            return ""
        return self._orders(Message(MessageKind.TEXT, place)).data.decode(errors="replace")

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
