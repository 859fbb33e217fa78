"""The stand-in's session and its device memory.

Arrays live in the virtual machine's memory: a `DeviceMemory` owns a block and offers it to NumPy through `__array_interface__`, so every
view of it keeps it alive through NumPy's own `base` chain, and it is freed (a later access is out of bounds) with the last view.

Not handled: CuPy's memory pool, except its reuse of memory in a stream (consan/session/comparing/freed_memory.py): a pool would hide a use
after free.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from consan._errors import InternalError
from consan.adapters.base import SessionLike
from consan.dataclass import dataclass
from consan.session.comparing.array_rows import Placed
from consan.session.comparing.program_streams import ProgramStream

HostArray = npt.NDArray[Any]
_FRAMEWORK: Final = "cupy"


class MachineLike(Protocol):
    """The memory side of `consan.backends.cpu.Machine`."""

    def alloc(self, nbytes: int) -> int:
        """Reserve memory."""

    def free(self, addr: int) -> None:
        """Give it back."""

    def view(self, addr: int, dtype: Any, count: int) -> HostArray:
        """NumPy array over it, without a copy."""


@dataclass(eq=False)
class StandinContext:
    """The state that the stand-in's modules share."""

    session: SessionLike
    machine: MachineLike
    modules: dict[Any, Any] = field(default_factory=dict)  # compiled by `kernels.load`


_current: list[StandinContext] = []


def enter(context: StandinContext) -> None:
    """Make a context the current one."""
    _current.append(context)


def leave() -> None:
    """Drop the current context."""
    if _current:
        _current.pop()


def current() -> StandinContext:
    """The context of this process; an error after the session has ended."""
    if not _current:
        raise InternalError("consan's CuPy stand-in was used after its session ended")
    return _current[-1]


def current_stream(device: int | None = None) -> ProgramStream:
    """The current stream of this thread on a device, or on the current one."""
    stream: ProgramStream = current().session.streams.current(_FRAMEWORK, device)
    return stream


def use_stream(stream: ProgramStream) -> None:
    """Make a stream the current one of this thread."""
    current().session.streams.choose(stream, _FRAMEWORK)


def host_waits(stream: ProgramStream | None = None) -> None:
    """Let the host wait for a stream, or for the current one."""
    current().session.streams.host_waits(stream or current_stream())


def operated(
    name: str, reads: Iterable[Any] = (), writes: Iterable[Any] = (), stream: ProgramStream | None = None, *, known: bool = True
) -> None:
    """Report an operation on NumPy arrays to the session. Those in device memory count. Not `known`: others may be touched, too."""
    places = ([each for array in given for each in _placed(array)] for given in (reads, writes))
    current().session.streams.operated(name, stream or current_stream(), *places, known=known)


def _placed(array: Any) -> Iterator[Placed]:
    owner = owner_of(array) if isinstance(array, np.ndarray) else None
    if owner is not None:
        yield int(array.__array_interface__["data"][0]) - owner.host + owner.address, array


class DeviceMemory:
    """A block of the virtual machine's global memory, freed with the last NumPy view of it."""

    def __init__(self, nbytes: int) -> None:
        self._machine, self._streams, self._stream = current().machine, current().session.streams, current_stream()
        self.nbytes, self.device = nbytes, self._streams.places.here
        self.address = self._machine.alloc(max(nbytes, 1))
        # The view keeps the machine's memory mapped for as long as the block is reachable.
        self._view = self._machine.view(self.address, np.uint8, max(nbytes, 1))
        self.host = int(self._view.__array_interface__["data"][0])
        self._streams.given(self.address, max(nbytes, 1), self._stream)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self.host, False), "shape": (max(self.nbytes, 1),), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        if hasattr(self, "_view"):
            self._streams.freed(self.address, max(self.nbytes, 1), self._stream)
            self._machine.free(self.address)


class Window:
    """Device memory that something else owns (a module's global): viewed, never freed."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.address, self.nbytes, self.device = address, nbytes, current().session.streams.places.here
        self._view = current().machine.view(address, np.uint8, nbytes)
        self.host = int(self._view.__array_interface__["data"][0])
        self.__array_interface__ = {"data": (self.host, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


class MemoryPointer:
    """`cupy.cuda.MemoryPointer`: an owner and an offset."""

    def __init__(self, mem: Any, offset: int = 0) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        """The device address."""
        return int(self.mem.address) + self.offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    def __int__(self) -> int:
        return self.ptr

    def copy_from(self, source: Any, size: int) -> None:
        """Copy bytes from another pointer or from a host address."""
        self.copy_from_async(source, size)

    def copy_from_async(self, source: Any, size: int, stream: Any = None) -> None:
        """The same in a stream."""
        origin = source.mem.host + source.offset if isinstance(source, MemoryPointer) else int(source)
        bytes_at(self.mem.host + self.offset, size)[...] = bytes_at(origin, size)
        reads = [source.bytes(size)] if isinstance(source, MemoryPointer) else []
        operated("a copy of memory", reads, [self.bytes(size)], None if stream is None else stream.order)

    copy_from_device = copy_from_host = copy_from
    copy_from_device_async = copy_from_host_async = copy_from_async

    def bytes(self, size: int) -> HostArray:
        """The memory from here on."""
        found: HostArray = np.asarray(self.mem)[self.offset : self.offset + size]
        return found

    def memset(self, value: int, size: int) -> None:
        """Fill bytes."""
        self.memset_async(value, size)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """The same in a stream."""
        bytes_at(self.mem.host + self.offset, size)[...] = value
        operated("memset", writes=[self.bytes(size)], stream=None if stream is None else stream.order)


def bytes_at(address: int, size: int) -> HostArray:
    """Host memory as an array of bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def owner_of(host: HostArray) -> DeviceMemory | Window | None:
    """The block that a NumPy array lies in, found through its bases."""
    base: Any = host
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, (DeviceMemory, Window)) else None


def empty_host(shape: Any, dtype: Any, order: str = "C") -> HostArray:
    """An uninitialised NumPy array over new device memory."""
    kind = np.dtype(dtype)
    extents = tuple(int(extent) for extent in np.atleast_1d(np.asarray(shape, dtype=np.int64)))
    nbytes = int(np.prod(extents, dtype=np.int64)) * kind.itemsize
    block: HostArray = np.asarray(DeviceMemory(nbytes))[:nbytes]
    typed: HostArray = block.view(kind)
    return typed.reshape(extents, order="F" if order == "F" else "C")


def to_device(host: HostArray) -> HostArray:
    """Copy an array into new device memory, keeping Fortran order."""
    fortran = host.flags.f_contiguous and not host.flags.c_contiguous
    result = empty_host(host.shape, host.dtype, "F" if fortran else "C")
    result[...] = host
    operated("a new array", writes=[result])
    return result
