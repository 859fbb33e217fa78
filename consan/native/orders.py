"""Orders to a process that uses the GPU, and its driver library as functions that are orders.

To wake the other process costs more than most orders take. So those that only write are kept, and go with the next that is waited for.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from consan.backends.base import DeviceLost
from consan.backends.driver import Driver
from consan.native.wire import Broken, Malformed, Message, MessageKind, call, encoded, receive, send

# The kinds of arguments. n: a number. o: what the function writes. b: what it reads and writes. s: a text. I<k>, O<k>: host bytes that it
# reads or writes; argument k is their number.
_SIGNATURES: Final = {
    "cuCtxGetDevice": "o",
    "cuCtxSetCurrent": "n",
    "cuCtxSynchronize": "",
    "cuDeviceGetAttribute": "o n n",
    "cuDeviceGetCount": "o",
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
    "cuMemGetAddressRange_v2": "o o n",
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
ENDED: Final = "the end of the process"


class Orders:
    """The connection on which a process takes orders. Raises `DeviceLost` when the process has ended."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.lock = threading.RLock()  # threads of consan give orders at the same time
        self._kept = bytearray()
        self._unanswered = 0
        self._failed = 0
        self._context = 0  # that of the thread that obeys

    def __call__(self, order: Message, file: int | None = None, *, context: int = 0) -> Message:
        """Give an order, with an open file if it needs one, and wait for the answer. `context`: as `post` has it."""
        with self.lock:
            self._enter(context)
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
        """Whether some have not gone. Those that another thread has sent with its own are obeyed by then."""
        with self.lock:
            return bool(self._kept)

    def _answer(self) -> Message:
        answer = receive(self._connection)
        if answer.kind is not MessageKind.ANSWER:
            raise Malformed("no answer")
        return answer

    def post(self, order: Message, *, context: int = 0) -> None:
        """Give an order whose answer is looked at later (`failed`). `context`: in which it is obeyed; 0: in any."""
        with self.lock:
            self._enter(context)
            self._kept += encoded(order)
            self._unanswered += 1
            if self._unanswered >= _MOST_POSTED or len(self._kept) >= _MOST_KEPT:
                self(call("cuCtxGetDevice", [0], 1, b"", scratch=8, input_at=8, output=8))

    def _enter(self, context: int) -> None:
        if context and context != self._context:
            self._context = context
            self.post(_current(context))

    def leave(self) -> None:
        """Let the thread that obeys be in no context: one that ends must be in no thread."""
        with self.lock:
            if self._context:
                self._context = 0
                self(_current(0))

    def failed(self) -> int:
        """The status of a posted order that has failed, once; 0 if there is none."""
        failed, self._failed = self._failed, 0
        return failed


def _current(context: int) -> Message:
    return call("cuCtxSetCurrent", [context], 0, b"", scratch=0, input_at=0, output=0)


class RemoteLibrary:
    """`libcuda.so.1` of another process, in one of its contexts (0: in any): its functions take the arguments that ctypes would."""

    def __init__(self, orders: Orders, context: int = 0) -> None:
        self._orders, self._context = orders, context

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
            self._orders.post(order, context=self._context)
            return 0
        answer = self._orders(order, context=self._context)
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


def name_of(orders: Orders, function: int) -> str:
    """A kernel's name; empty if the driver does not give it."""
    found = orders(call("cuFuncGetName", [0, function], 1, b"", scratch=8, input_at=8, output=8))
    if found.a or not (place := int.from_bytes(found.data, "little")):
        return ""
    return orders(Message(MessageKind.TEXT, place)).data.decode(errors="replace")


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
