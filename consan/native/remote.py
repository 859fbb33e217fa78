"""The GPU of another process: the CUDA backend, over a driver library whose functions are orders to that process.

The context is the one that the program uses, and is current in the thread that obeys. Everything goes on a stream of consan's own:
work on the legacy stream would wait for the program's, and is not allowed while the program captures a graph.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import mmap
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from consan.backends.base import DeviceLost, Dim3, HostBytes
from consan.backends.callbacks import MEMORY_TYPE, STREAM_NON_BLOCKING
from consan.backends.cuda import RING_FLAGS, CudaBackend, CudaModule
from consan.backends.driver import Driver
from consan.backends.driver_values import host_bytes, pointer
from consan.backends.streams import RELAXED
from consan.native.wire import Broken, Malformed, Message, MessageKind, call, encoded, receive, send
from consan.native.work import RemoteWork

# What each argument is. n: a number. o: what the function writes. b: what it reads and writes. s: a text. I<k>, O<k>: host bytes that it
# reads or writes; argument k is their number.
_SIGNATURES: Final = {
    "cuCtxGetDevice": "o",
    "cuCtxPopCurrent_v2": "o",
    "cuCtxPushCurrent_v2": "n",
    "cuCtxSynchronize": "",
    "cuDeviceGetAttribute": "o n n",
    "cuDeviceGetName": "o n n",
    "cuDevicePrimaryCtxRetain": "o n",
    "cuDeviceTotalMem_v2": "o n",
    "cuDriverGetVersion": "o",
    "cuEventCreate": "o n",
    "cuEventDestroy_v2": "n",
    "cuEventQuery": "n",
    "cuEventRecord": "n n",
    "cuFuncGetAttribute": "o n n",
    "cuPointerGetAttribute": "o n n",
    "cuStreamGetFlags": "n o",
    "cuFuncSetAttribute": "n n n",
    "cuLaunchKernel": "n n n n n n n n n n n",
    "cuLibraryGetGlobal": "o o n s",
    "cuMemAlloc_v2": "o n",
    "cuMemFree_v2": "n",
    "cuMemGetInfo_v2": "o o",
    "cuMemcpyDtoD_v2": "n n n",
    "cuMemcpyDtoHAsync_v2": "O2 n n n",
    "cuMemcpyDtoH_v2": "O2 n n",
    "cuMemcpyHtoDAsync_v2": "n I2 n n",
    "cuMemHostGetDevicePointer_v2": "o n n",
    "cuMemHostRegister_v2": "n n n",
    "cuMemsetD8Async": "n n n n",
    "cuModuleGetFunction": "o n s",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": "o n n n",
    "cuModuleGetGlobal_v2": "o o n s",
    "cuModuleLoadDataEx": "o s n n n",
    "cuStreamCreate": "o n",
    "cuStreamIsCapturing": "n o",
    "cuStreamSynchronize": "n",
    "cuStreamWaitEvent": "n n n",
    "cuThreadExchangeStreamCaptureMode": "b",
}
_NAMES: Final = ("cuGetErrorName", "cuGetErrorString")  # they give the address of a text
# Nobody waits for their answers.
_POSTED: Final = frozenset(("cuEventRecord", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cuStreamWaitEvent"))
_MOST_POSTED: Final = 64  # orders: their answers must fit into the socket's buffer, and
_MOST_KEPT: Final = 1 << 20  # bytes
_FRESH: Final = 1.0  # seconds for which the amount of free memory is believed: an allocation that fails is not the end
ENDED: Final = "the end of the process"


class Orders:
    """The connection on which a process takes orders. Raises `DeviceLost` when the process has ended.

    To wake the other process costs more than most orders take. So those that only write are kept, and go with the next that is waited for.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.RLock()  # threads of consan give orders beside each other
        self._kept = bytearray()
        self._unanswered = 0
        self._failed = 0

    def __call__(self, order: Message, file: int | None = None) -> Message:
        """Give an order, with an open file if it needs one, and wait for the answer."""
        with self._lock:
            kept, self._kept = bytes(self._kept), bytearray()
            try:
                send(self._connection, order, file, before=kept)
                while self._unanswered:
                    self._unanswered -= 1
                    self._failed = self._answer().a or self._failed
                return self._answer()
            except Broken:
                raise DeviceLost("the program has ended", code=0, name=ENDED) from None

    @property
    def are_kept(self) -> bool:
        """Whether some have not gone."""
        return bool(self._kept)

    def _answer(self) -> Message:
        answer = receive(self._connection)
        if answer.kind is not MessageKind.ANSWER:
            raise Malformed("no answer")
        return answer

    def post(self, order: Message) -> None:
        """Give an order whose answer is looked at later (`failed`)."""
        with self._lock:
            self._kept += encoded(order)
            self._unanswered += 1
            if self._unanswered >= _MOST_POSTED or len(self._kept) >= _MOST_KEPT:
                self(call("cuCtxGetDevice", [0], 1, b"", scratch=8, input_at=8, output=8))

    def failed(self) -> int:
        """The status of a posted order that has failed, once; 0 if there is none."""
        failed, self._failed = self._failed, 0
        return failed


class RemoteLibrary:
    """`libcuda.so.1` of another process: its functions take the arguments that ctypes would."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name in _NAMES:
            return lambda code, text: self._named(name, code, text)
        if name not in _SIGNATURES:
            raise AttributeError(name)
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> int:
        letters = _SIGNATURES[name].split()
        given = [_argument(letter, value, arguments) for letter, value in zip(letters, arguments, strict=True)]
        ordered = sorted((i for i, each in enumerate(given) if each.scratch), key=lambda i: "OBI".index(given[i].scratch))
        numbers, pointers, place, data = [each.number for each in given], 0, 0, bytearray()
        ends = {"O": 0, "B": 0, "I": 0}
        for i in ordered:
            numbers[i], pointers = place, pointers | 1 << i
            place += given[i].size
            ends |= {given[i].scratch: place}
            data += given[i].bytes
        output = max(ends["O"], ends["B"])
        order = call(name, numbers, pointers, bytes(data), scratch=place, input_at=place - len(data), output=output)
        if name in _POSTED:
            self._orders.post(order)
            return 0
        answer = self._orders(order)
        for i in ordered:
            if given[i].scratch != "I":
                part = answer.data[numbers[i] : numbers[i] + given[i].size]
                ctypes.memmove(given[i].address, part, len(part))
        return self._orders.failed() or answer.a

    def _named(self, name: str, code: int, text: Any) -> int:
        place = ctypes.c_uint64()
        status = self._orders(call(name, [code, 0], 2, b"", scratch=8, input_at=8, output=8))
        place.value = int.from_bytes(status.data, "little")
        if status.a or not place.value:
            return 1
        _target(text).value = self._orders(Message(MessageKind.TEXT, place.value)).data
        return 0


class _Argument:
    """One argument: a number, or `size` bytes of scratch memory that stand for those at `address` here."""

    def __init__(self, number: int = 0, *, scratch: str = "", address: int = 0, size: int = 0) -> None:
        self.number, self.scratch, self.address, self.size = number, scratch, address, size

    @property
    def bytes(self) -> bytes:
        """The bytes that the function reads."""
        return ctypes.string_at(self.address, self.size) if self.scratch in ("B", "I") else b""


def _argument(letter: str, value: Any, all_of_them: tuple[Any, ...]) -> _Argument:
    if letter == "n":
        return _Argument(_number(value) & (1 << 64) - 1)
    if letter == "s":
        text = ctypes.create_string_buffer(value)
        found = _Argument(scratch="I", address=ctypes.addressof(text), size=len(text))
        found.keep = text  # type: ignore[attr-defined]
        return found
    if letter in "ob":
        target = _target(value)
        return _Argument(scratch=letter.upper(), address=ctypes.addressof(target), size=ctypes.sizeof(target))
    return _Argument(scratch=letter[0], address=_number(value), size=_number(all_of_them[int(letter[1:])]))


def _number(value: Any) -> int:
    return int((value if isinstance(value, int | None) else value.value) or 0)


def _target(value: Any) -> Any:
    """The object that `byref` refers to; arrays are given as they are."""
    return getattr(value, "_obj", value)


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
        self._name = super().device_name
        self._mapped: list[mmap.mmap] = []
        self.work = RemoteWork(self, self._driver)
        self._free, self._free_at = 0, -_FRESH
        self.launching = False  # a launch of the program has its log, or is asking for one
        self.without_log = False  # what it launches now cannot be waited for

    @functools.cached_property
    def memory_bytes(self) -> int:
        """Total device memory."""
        return super().memory_bytes

    def free_bytes(self) -> int:
        """Device memory that was free a moment ago."""
        if time.monotonic() > self._free_at + _FRESH:
            self._free, self._free_at = super().free_bytes(), time.monotonic()
        return self._free

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

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device, behind the work on its default stream."""
        self._driver.call("cuMemcpyDtoD_v2", target, source, nbytes)

    def copy_apart(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device on consan's stream, by the next `settle`: another stream may be captured."""
        self.write(target, self.peek(source, nbytes))

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

    def capturing(self, stream: int | None) -> bool:
        """Whether launches on a stream become nodes of a graph, or cannot be waited for."""
        return self.without_log or super().capturing(stream)

    def launch(self, handle: CudaModule, entry: str, grid: Dim3, block: Dim3, args: Sequence[bytes], **how: Any) -> None:
        """Launch a kernel of consan's own, whose parameters have at most 64 bits each, on its stream."""
        del how
        assert self.work is not None
        numbers = [int.from_bytes(value, "little") for value in args]
        self.work.launch(handle, entry, math.prod(grid), math.prod(block), numbers, self._control.value or 0)
        self._unsettled = True

    def stream_blocks(self, stream: int) -> bool:
        """Whether a stream and the legacy default stream wait for each other."""
        flags = ctypes.c_uint()
        return bool(self._driver.status("cuStreamGetFlags", stream, ctypes.byref(flags))) or not flags.value & STREAM_NON_BLOCKING

    def is_registered(self, address: int) -> bool:
        """Whether the driver knows the memory at an address."""
        kind = ctypes.c_uint()
        return not self._driver.status("cuPointerGetAttribute", ctypes.byref(kind), MEMORY_TYPE, address)

    def name_of(self, function: int) -> str:
        """A kernel's name; empty if the driver does not tell."""
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


def primary_context(orders: Orders) -> int:
    """The context that the runtime uses on the first device."""
    context = ctypes.c_void_p()
    Driver(RemoteLibrary(orders)).call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    return context.value or 0


def shared_pages(orders: Orders, nbytes: int) -> tuple[mmap.mmap, int]:
    """Zeroed pages of this process that another one maps too, and their address there."""
    size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    handle = os.memfd_create("consan")
    try:
        os.ftruncate(handle, size)
        pages = mmap.mmap(handle, size)
        # The driver pins memory of such a file; it would refuse that of a file on a disk.
        address = orders(Message(MessageKind.MAP, size), handle).a
    finally:
        os.close(handle)
    if not address:
        raise DeviceLost("the program cannot map consan's memory", code=0, name="the lack of shared memory")
    return pages, address
