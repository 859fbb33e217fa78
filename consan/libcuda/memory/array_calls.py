"""Arrays of the runtime and of the driver ("Texture Memory", "Surface Memory"), in device memory that no kernel has the address of.

A mipmapped array is an array for each of its levels.

Not handled: sparse arrays.
"""

from __future__ import annotations

import struct
from math import prod
from typing import Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver
from consan.libcuda.memory_calls import DevicePlane, Ends, Plane, copied, rows_of

_CHANNELS: Final = struct.Struct("<5i")  # cudaChannelFormatDesc: bits of each, and the kind
_KINDS: Final = "suf"
_FORMATS: Final = {1: "u8", 2: "u16", 3: "u32", 8: "s8", 9: "s16", 10: "s32", 16: "f16", 32: "f32"}  # CUarray_format
_PLANE, _BOX = struct.Struct("<2Q2I"), struct.Struct("<3Q3I4x")  # CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR
_LAYERED, _CUBE = 1, 4  # flags


@dataclass(frozen=True)
class Elements:
    """The elements of an array, or of linear memory: the type of a channel, as consan.Texture calls it, and their number."""

    type: str
    channels: int

    @property
    def nbytes(self) -> int:
        """Bytes of an element."""
        return self.channels * int(self.type[1:]) // 8

    @classmethod
    def described(cls, data: bytes) -> Elements:
        """By a cudaChannelFormatDesc. Raises CallFailed."""
        *bits, kind = _CHANNELS.unpack(data[: _CHANNELS.size])
        used = [each for each in bits if each]
        if len(set(used)) != 1 or not 0 <= kind < len(_KINDS):
            raise CallFailed(calls.INVALID_VALUE)
        return cls(f"{_KINDS[kind]}{used[0]}", len(used))

    @classmethod
    def formatted(cls, code: int, channels: int) -> Elements:
        """By a CUarray_format. Raises CallFailed."""
        if code not in _FORMATS or channels not in (1, 2, 4):
            raise CallFailed(calls.INVALID_VALUE)
        return cls(_FORMATS[code], channels)


@dataclass(eq=False)
class DeviceArray(DevicePlane):
    """An array. `extents`: innermost first, without layers. `layers`: 0 without; of a cube: its faces."""

    address: int
    elements: Elements
    extents: tuple[int, ...]
    layers: int
    cube: bool
    flags: int = 0
    handle: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.extents) * max(1, self.layers) * self.elements.nbytes

    @property
    def plane(self) -> Plane:
        """It as an end of a copy."""
        return Plane(self.address, self.extents[0] * self.elements.nbytes, self.extents[1] if len(self.extents) > 1 else 1)


def _made(driver: StandInDriver, elements: Elements, sizes: tuple[int, int, int], flags: int = 0) -> int:
    layers = sizes[2] if flags & (_LAYERED | _CUBE) else 0
    extents = tuple(size for size in (sizes[:2] if layers else sizes) if size)
    made = DeviceArray(0, elements, extents, layers, bool(flags & _CUBE), flags)
    made.address = driver.allocate(made.nbytes)
    return driver.made(made)


@serves(">Q Q Q Q I", "_cudaMallocArray")
def _plane(driver: StandInDriver, channels: int, width: int, height: int, flags: int) -> int:
    return _made(driver, Elements.described(driver.memory.read(channels, _CHANNELS.size)), (width, height, 0), flags)


@serves(">Q Q Q Q Q I", "_cudaMalloc3DArray")
def _box(driver: StandInDriver, channels: int, width: int, height: int, depth: int, flags: int) -> int:
    return _made(driver, Elements.described(driver.memory.read(channels, _CHANNELS.size)), (width, height, depth), flags)


@serves(">Q Q", "cuArrayCreate_v2")
def _plane_of_driver(driver: StandInDriver, place: int) -> int:
    width, height, code, channels = _PLANE.unpack(driver.memory.read(place, _PLANE.size))
    return _made(driver, Elements.formatted(code, channels), (width, height, 0))


@serves(">Q Q", "cuArray3DCreate_v2")
def _box_of_driver(driver: StandInDriver, place: int) -> int:
    width, height, depth, code, channels, flags = _BOX.unpack(driver.memory.read(place, _BOX.size))
    return _made(driver, Elements.formatted(code, channels), (width, height, depth), flags)


@dataclass(eq=False)
class MipmappedArray:
    """An array of several levels: the handles of their arrays."""

    levels: list[int]
    handle: int = 0


def _made_levels(driver: StandInDriver, elements: Elements, sizes: tuple[int, int, int], count: int, flags: int) -> int:
    """Each level has half of the extents of the one before, and at least one element; all have the same layers."""
    width, height, depth = sizes
    layered = flags & (_LAYERED | _CUBE)
    if not 0 < count <= max(width, height, 1 if layered else depth).bit_length():
        raise CallFailed(calls.INVALID_VALUE)
    below = [tuple(size and max(1, size >> level) for size in sizes) for level in range(count)]
    levels = [_made(driver, elements, (x, y, depth if layered else z), flags) for x, y, z in below]
    return driver.made(MipmappedArray(levels))


@serves(">Q Q Q Q Q I I", "_cudaMallocMipmappedArray")
def _mipmapped(driver: StandInDriver, channels: int, width: int, height: int, depth: int, count: int, flags: int) -> int:
    elements = Elements.described(driver.memory.read(channels, _CHANNELS.size))
    return _made_levels(driver, elements, (width, height, depth), count, flags)


@serves(">Q Q I", "cuMipmappedArrayCreate")
def _mipmapped_of_driver(driver: StandInDriver, place: int, count: int) -> int:
    width, height, depth, code, channels, flags = _BOX.unpack(driver.memory.read(place, _BOX.size))
    return _made_levels(driver, Elements.formatted(code, channels), (width, height, depth), count, flags)


@serves(">Q Q I", "_cudaGetMipmappedArrayLevel", "cuMipmappedArrayGetLevel")
def _level(driver: StandInDriver, array: int, level: int) -> int:
    levels = driver.of(array, MipmappedArray).levels
    if level >= len(levels):
        raise CallFailed(calls.INVALID_VALUE)
    return int(levels[level])


@serves("Q", "_cudaFreeMipmappedArray", "cuMipmappedArrayDestroy")
def _free_levels(driver: StandInDriver, array: int) -> None:
    for level in driver.of(array, MipmappedArray).levels if array else ():
        _free(driver, level)


@serves("Q Q Q Q", "_cudaArrayGetInfo")
def _information(driver: StandInDriver, channels: int, extent: int, flags: int, array: int) -> None:
    found = driver.of(array, DeviceArray)
    if channels:
        _tell_channels(driver, channels, array)
    if extent:
        depth = found.layers or (found.extents[2] if len(found.extents) > 2 else 0)
        driver.memory.write(extent, struct.pack("<3Q", found.extents[0], found.extents[1] if len(found.extents) > 1 else 0, depth))
    if flags:
        driver.memory.write(flags, struct.pack("<I", found.flags))


@serves("Q Q", "_cudaGetChannelDesc")
def _tell_channels(driver: StandInDriver, place: int, array: int) -> None:
    elements = driver.of(array, DeviceArray).elements
    bits = [int(elements.type[1:])] * elements.channels + [0] * (4 - elements.channels)
    driver.memory.write(place, _CHANNELS.pack(*bits, _KINDS.index(elements.type[0])))


@serves("Q", "_cudaFreeArray", "cuArrayDestroy")
def _free(driver: StandInDriver, array: int) -> None:
    if array:
        driver.session.streams.synchronize()
        driver.free(driver.of(array, DeviceArray).address)


def end_of(driver: StandInDriver, array: int, x: int, y: int, z: int = 0) -> Plane:
    """The end of a copy that begins at a position of an array. `x`: bytes. Raises CallFailed."""
    found: DeviceArray = driver.of(array, DeviceArray)
    return found.plane.moved(x, y, z)


@serves("Q Q Q Q", "cuMemcpyHtoA_v2")
def _to_array(driver: StandInDriver, array: int, x: int, source: int, nbytes: int) -> None:
    copied(driver, [(end_of(driver, array, x, 0).address, source)], nbytes, 0, Ends(True, False), waits=True)


@serves("Q Q Q Q", "cuMemcpyAtoH_v2")
def _to_host(driver: StandInDriver, to: int, array: int, x: int, nbytes: int) -> None:
    copied(driver, [(to, end_of(driver, array, x, 0).address)], nbytes, 0, Ends(False, True), waits=True)


_HOST_OR_DEVICE: Final = {1: False, 2: False, 3: True, 4: None}  # cudaMemcpyKind: whether the other end is the device's


def _other(kind: int) -> bool | None:
    if kind not in _HOST_OR_DEVICE:
        raise CallFailed(21)  # cudaErrorInvalidMemcpyDirection
    return _HOST_OR_DEVICE[kind]


@serves("Q Q Q Q Q i", "_cudaMemcpyToArray")
def _to(driver: StandInDriver, array: int, x: int, y: int, source: int, nbytes: int, kind: int) -> None:
    copied(driver, [(end_of(driver, array, x, y).address, source)], nbytes, 0, Ends(True, _other(kind)), waits=True)


@serves("Q Q Q Q Q i", "_cudaMemcpyFromArray")
def _from(driver: StandInDriver, to: int, array: int, x: int, y: int, nbytes: int, kind: int) -> None:
    copied(driver, [(to, end_of(driver, array, x, y).address)], nbytes, 0, Ends(_other(kind), True), waits=True)


def _rows_to(
    driver: StandInDriver, array: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int, *stream: int
) -> None:
    rows = rows_of(end_of(driver, array, x, y), Plane(source, pitch), height, 1)
    copied(driver, rows, width, stream[0] if stream else 0, Ends(True, _other(kind)), waits=not stream)


def _rows_from(
    driver: StandInDriver, to: int, pitch: int, array: int, x: int, y: int, width: int, height: int, kind: int, *stream: int
) -> None:
    rows = rows_of(Plane(to, pitch), end_of(driver, array, x, y), height, 1)
    copied(driver, rows, width, stream[0] if stream else 0, Ends(_other(kind), True), waits=not stream)


for _name, _function in (("To", _rows_to), ("From", _rows_from)):
    serves("Q Q Q Q Q Q Q i", f"_cudaMemcpy2D{_name}Array")(_function)
    serves("Q Q Q Q Q Q Q i Q", f"_cudaMemcpy2D{_name}ArrayAsync")(_function)
