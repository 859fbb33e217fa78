"""Places the arguments of a launch: the one way from a value to the bytes of its parameter, its memory on the device, and its name.

The caller says what the arguments are (consan/api, the adapters, ...). Here host memory is copied to the device and back, and the
buffers that the launch was given are kept, for the names in its report.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.backends.base import Backend
from consan.dataclass import dataclass
from consan.reports.source.variables import Argument
from consan.tensormap.argument import TensorMap
from consan.tensormap.description import TensorMapInfo
from consan.tensormap.rules import validate
from consan.textures.argument import HANDLE_BYTES, Texture

Array = npt.NDArray[Any]
_ALIGNMENT = 256


@dataclass(frozen=True)
class OnDevice:
    """An argument that refers to device memory: the bytes of its parameter, and the buffer. `nbytes` None: nobody knows its size.

    `element`: the bytes of an element; 1 where they are not known.
    """

    data: bytes
    begin: int
    nbytes: int | None
    element: int = 1


@dataclass(frozen=True)
class ArrayStruct:
    """A struct that is passed by value: the address of an array's copy, then these bytes."""

    array: Array
    rest: bytes

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return 8 + len(self.rest)


@dataclass(frozen=True)
class PackedStruct:
    """A struct that is passed by value: members with their offsets. The bytes between them are zero."""

    members: tuple[tuple[int, Value], ...]
    nbytes: int


def extents_of(shape: Sequence[int], strides: Sequence[int] | None = None, integer: str = "<i4") -> bytes:
    """Sizes, then strides in elements (None: contiguous), padded as in a struct that begins with a pointer."""
    steps = strides if strides is not None else [prod(shape[at:]) for at in range(1, len(shape) + 1)]
    data = np.array([*shape, *steps], integer).tobytes()
    return data.ljust(-(-len(data) // 8) * 8, b"\0")


def pointer(address: int, nbytes: int | None = None, element: int = 1) -> OnDevice:
    """A pointer to the begin of a buffer."""
    return OnDevice(address.to_bytes(8, "little"), address, nbytes, element)


@dataclass(frozen=True)
class Symmetric:
    """Symmetric memory: an array of each rank, equal in size. As an argument it is that of the rank; NVSHMEM reaches the others."""

    arrays: Sequence[Array]

    def __post_init__(self) -> None:
        """Raise UsageError unless the arrays are alike."""
        if (
            not self.arrays
            or len({(each.nbytes, each.dtype) for each in self.arrays}) > 1
            or len(set(map(id, self.arrays))) < len(self.arrays)
        ):
            raise UsageError(f"{type(self).__name__}: expected an array of each rank, with the same size and type")


@dataclass(frozen=True)
class Multicast(Symmetric):
    """A multimem address (PTX ISA 8.2.3): the memory of each rank lies behind it. For launches of several ranks."""


Value = bytes | Array | ArrayStruct | PackedStruct | TensorMap | Texture | OnDevice | Multicast


@dataclass(frozen=True)
class _Copy:
    """A host array and its copy: it begins `shift` bytes into its allocation."""

    array: Array
    address: int
    shift: int
    owned: bool = True  # else it lies in an allocation of several


def is_bound(value: Any) -> bool:
    """Whether a value is bound to a texture reference of the module: it is placed, and no parameter."""
    return isinstance(value, Texture) and bool(value.info.reference)


def room_of(window: Symmetric) -> int:
    """The bytes that one rank's part of symmetric memory takes. Something is left free behind it."""
    return -(-window.arrays[0].nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT


def _same(one: Symmetric, other: Symmetric) -> bool:
    return list(map(id, one.arrays)) == list(map(id, other.arrays))


class Placement:
    """The arguments of a launch on a device. An array that is given twice has one copy."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._copies: list[_Copy] = []
        self._scratch: list[int] = []
        self._textures: list[int] = []
        self._windows: list[tuple[Symmetric, int]] = []  # each with its multimem address
        self.rank_memory = 0  # where symmetric memory of the ranks begins; 0: there is none
        self.owns_all = True  # no parameter refers to memory of others
        self.buffers: list[Argument] = []  # those of the parameters that have a label

    def parameters(self, values: Iterable[Value], label: str) -> list[bytes]:
        """The bytes of each parameter; the report calls them `label` and a number from one."""
        found = [(self.parameter(value, f"{label} {number}"), is_bound(value)) for number, value in enumerate(values, 1)]
        return [data for data, bound in found if not bound]

    def parameter(self, value: Value, label: str = "", name: str = "") -> bytes:
        """The bytes of a parameter: a value unchanged, an array as its copy's address, a struct that begins with one, a tensor map."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, PackedStruct):
            return self._packed(value, label, name)
        if isinstance(value, Texture):
            return self.texture(value).to_bytes(HANDLE_BYTES, "little")
        self.owns_all &= not isinstance(value, OnDevice) and not (isinstance(value, TensorMap) and value.on_device)
        if isinstance(value, TensorMap):
            return self._mapped(value, label, name)
        if isinstance(value, Multicast):
            return self._multicast(value, label)
        if isinstance(value, ArrayStruct):
            return self.parameter(value.array, label, name) + value.rest
        found = value if isinstance(value, OnDevice) else pointer(self.address(value), value.nbytes, value.itemsize)
        if label and found.nbytes is not None:
            self.buffers.append(Argument(label, found.begin, found.nbytes, name, found.element))
        return found.data

    def _mapped(self, value: TensorMap, label: str, name: str) -> bytes:
        """A tensor map, and the name of the array behind it."""
        if value.on_device:
            return self.tensor_map(value.info)
        array, address = value.array, self.address(value.array)
        if label:
            self.buffers.append(Argument(label, address, array.nbytes, name, array.itemsize))
        return self.tensor_map(value.at(address))

    def lay_out(self, windows: Iterable[Symmetric], stride: int, above: int) -> None:
        """Place symmetric memory of the ranks, at equal distances, before any argument names it: that of a rank is one piece.

        `above`: how many bytes the memory of rank 0 is above its multimem address.
        """
        given = list(windows)
        self.rank_memory = begin = self.scratch(stride * max((len(each.arrays) for each in given), default=0))
        for window in given:
            if any(copy.array is array for array in window.arrays for copy in self._copies):
                raise UsageError("an array is a part of two symmetric allocations")
            self._windows.append((window, begin - above))
            for rank, array in enumerate(window.arrays):
                self._copies.append(_Copy(array, begin + rank * stride, 0, owned=False))
                self._backend.write(begin + rank * stride, np.ascontiguousarray(array))
            begin += room_of(window)

    def _multicast(self, value: Multicast, label: str) -> bytes:
        address = next((address for window, address in self._windows if _same(window, value)), None)
        if address is None:
            raise UsageError("Multicast: a multimem address needs a launch of several ranks, with an array of each")
        if label:
            argument = label.rpartition(", ")[2]
            named = [(f"memory of rank {rank} behind {argument}", self.address(array), array) for rank, array in enumerate(value.arrays)]
            self.buffers += [Argument(name, address, array.nbytes, "", array.itemsize) for name, address, array in named]
        return address.to_bytes(8, "little")

    def _packed(self, value: PackedStruct, label: str, name: str) -> bytes:
        data = bytearray(value.nbytes)
        for offset, member in value.members:
            part = self.parameter(member, label, name)
            data[offset : offset + len(part)] = part
        return bytes(data)

    def tensor_map(self, info: TensorMapInfo) -> bytes:
        """The bytes of a tensor map. UsageError if the driver would refuse it."""
        validate(info)
        return self._backend.tensor_map(info)

    def texture(self, value: Texture) -> int:
        """The handle of a texture object. Its array in the sense of CUDA is a copy of its own: no address reaches that."""
        if value.info.memory == "array":
            address = self.scratch(value.array.nbytes)
            self._backend.write(address, np.ascontiguousarray(value.array))
        else:
            address = self.address(value.array)
        self._textures.append(self._backend.make_texture(value.at(address)))
        return self._textures[-1]

    def address(self, array: Array, alignment: int = 1) -> int:
        """The address of the array's copy. The first request makes the copy, as far beyond a multiple of `alignment` as the array is."""
        for copy in self._copies:
            if copy.array is array:
                return copy.address
        shift = int(array.__array_interface__["data"][0]) % alignment
        address = self._backend.alloc(array.nbytes + shift) + shift
        self._copies.append(_Copy(array, address, shift))
        self._backend.write(address, np.ascontiguousarray(array))
        return address

    def scratch(self, nbytes: int) -> int:
        """Device memory that the launch needs beside its arguments."""
        self._scratch.append(self._backend.alloc(nbytes))
        return self._scratch[-1]

    def read(self, array: Array) -> Array:
        """The contents of the array's copy on the device."""
        return np.frombuffer(self._backend.read(self.address(array), array.nbytes), array.dtype).reshape(array.shape)

    @property
    def copies(self) -> list[tuple[Array, int]]:
        """The arrays, and where their copies are."""
        return [(copy.array, copy.address) for copy in self._copies]

    def contents(self) -> list[bytes]:
        """The bytes of all copies on the device."""
        return [self._backend.read(copy.address, copy.array.nbytes) for copy in self._copies]

    def put(self, contents: Sequence[bytes]) -> None:
        """Give the copies what `contents` has returned."""
        for copy, data in zip(self._copies, contents, strict=True):
            self._backend.write(copy.address, data)

    @property
    def restore(self) -> Callable[[], None] | None:
        """Restores the contents that all buffers had before a launch; None if some are not known here."""
        return self.refresh if self.owns_all else None

    def refresh(self) -> None:
        """Copy the arrays to the device again."""
        for copy in self._copies:
            self._backend.write(copy.address, np.ascontiguousarray(copy.array))

    def copy_back(self) -> None:
        """Copy the contents of the copies back to their arrays, except to read-only ones."""
        for copy in self._copies:
            if copy.array.flags.writeable:
                copy.array[...] = self.read(copy.array)

    def free(self) -> None:
        """Free the copies, the scratch memory and the texture objects."""
        for handle in self._textures:
            self._backend.free_texture(handle)
        self._textures.clear()
        for address in (*(copy.address - copy.shift for copy in self._copies if copy.owned), *self._scratch):
            self._backend.free(address)
        self._copies.clear()
        self._scratch.clear()
        self._windows.clear()


class Launches(Protocol):
    """The part of a session that a placement needs."""

    @property
    def backend(self) -> Any:
        """The device: a `Backend`."""

    @property
    def device_lost(self) -> bool:
        """Whether nothing can be read back or freed."""


@contextlib.contextmanager
def placed(session: Launches) -> Iterator[Placement]:
    """A placement for the launch inside of the block. At its end arrays have the kernel's results, and the copies are freed."""
    placement = Placement(session.backend)
    try:
        yield placement
        if not session.device_lost:
            placement.copy_back()
    finally:
        if not session.device_lost:
            placement.free()
