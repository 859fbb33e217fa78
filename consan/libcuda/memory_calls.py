"""Calls that copy and fill memory, and accesses of the program's own code to memory that it shares with the device."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import DriverContext, StandInDriver, StreamWork
from consan.session.comparing.array_rows import rows_between

_HOST, _DEVICE, _ARRAY, _UNIFIED = 1, 2, 3, 4  # CUmemorytype


@dataclass(frozen=True)
class Ends:
    """Whether the two ends of a copy are device memory; None: by their addresses."""

    to: bool | None = None
    source: bool | None = None


_ANY, TO_DEVICE, TO_HOST, WITHIN = Ends(), Ends(True, False), Ends(False, True), Ends(True, True)


def copier(ends: Ends, *, waits: bool) -> Callable[..., None]:
    """A call that copies between these ends. `waits`: the host waits for it, as it does for each one to pageable memory."""

    def copy(driver: StandInDriver, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        copied(driver, [(to, source)], nbytes, stream, ends, waits=waits)

    return copy


def copied(driver: StandInDriver, rows: list[tuple[int, int]], nbytes: int, stream: int, ends: Ends, *, waits: bool) -> None:
    """Copy so many bytes in each row: where they go, and whence they come."""
    driver.work(stream, copying(driver, rows, nbytes, ends, waits=waits, captured=stream in driver.captures))


def copying(
    driver: StandInDriver, rows: list[tuple[int, int]], nbytes: int, ends: Ends, *, waits: bool = False, captured: bool = True
) -> StreamWork:
    """A copy as work of a stream. `captured`: as a node of a graph, for which no host waits."""

    def work(current: Any) -> None:
        done = [_copied_row(driver, to, source, nbytes, ends) for to, source in rows]
        reads, writes = ([one for each in done for one in each[end]] for end in (0, 1))
        to_pageable = bool(nbytes) and not (writes or captured)
        if rows:
            _operated(driver, _named(driver, *rows[0], ends), current, reads, writes, waits=waits or to_pageable)

    return work


def _copied_row(driver: StandInDriver, to: int, source: int, nbytes: int, ends: Ends) -> tuple[list[Any], list[Any]]:
    """Copy a row: what is read and written of memory that work in streams uses."""
    reads, writes = _device_bytes(driver, source, nbytes, ends.source), _device_bytes(driver, to, nbytes, ends.to)
    data = reads[0][1] if reads else np.frombuffer(driver.memory.read(source, nbytes), np.uint8)
    if writes:
        writes[0][1][...] = data
    else:
        driver.memory.write(to, data.tobytes())
    return reads or _pinned_bytes(driver, source, data), writes or _pinned_bytes(driver, to, data)


def _named(driver: StandInDriver, to: int, source: int, ends: Ends) -> str:
    """A copy, by what the call says of its ends, or by where they lie."""
    if not (driver.is_device(to) if ends.to is None else ends.to):
        return "the copy to the host"
    return "the copy within the device" if (driver.is_device(source) if ends.source is None else ends.source) else "the copy to the device"


def _device_bytes(driver: StandInDriver, address: int, nbytes: int, known: bool | None) -> list[Any]:
    """The bytes at an end of a copy, if it is device memory."""
    found = driver.allocation(address) if known is False else None
    device = driver.is_device(address) if known is None else known or (found is not None and found[0] in driver.special.managed)
    return [(address, driver.view(address, nbytes))] if device and nbytes else []


def _pinned_bytes(driver: StandInDriver, address: int, data: Any) -> list[Any]:
    """The bytes at an end of a copy, if it is pinned memory: the copy may run beside others."""
    return [(address, data)] if data.size and driver.special.pinned_at(address) else []


@serves("Q Q Q Q Q", "cuMemcpyPeer")
def copied_between(driver: StandInDriver, to: int, one: int, source: int, other: int, nbytes: int) -> None:
    """A copy between two devices without a stream: it comes behind all that was done there, and before all that follows."""
    streams, devices = driver.session.streams, [driver.of(each, DriverContext).device for each in (one, other)]
    current, all_streams = driver.stream(0), [each for device in dict.fromkeys([*devices, driver.device]) for each in streams.on(device)]
    for each in all_streams:
        current.wait(each)
    copied(driver, [(to, source)], nbytes, 0, WITHIN, waits=False)
    for each in all_streams:
        each.wait(current)


@serves("Q Q Q Q Q Q", "cuMemcpyPeerAsync")
def _copied_in_stream(driver: StandInDriver, to: int, one: int, source: int, other: int, nbytes: int, stream: int) -> None:
    copied(driver, [(to, source)], nbytes, stream, WITHIN, waits=False)


def _operated(driver: StandInDriver, name: str, stream: Any, reads: list[Any], writes: list[Any], *, waits: bool) -> None:
    driver.session.streams.operated(name, stream, reads, writes)
    if waits:
        driver.session.streams.host_waits(stream)


@dataclass(frozen=True)
class Plane:
    """An end of a copy of rows; `height` of them make a slice."""

    address: int
    pitch: int
    height: int = 1

    def at(self, y: int, z: int) -> int:
        """The address of a row of a slice."""
        return self.address + (z * self.height + y) * self.pitch

    def moved(self, x: int, y: int, z: int) -> Plane:
        """The end that begins at a position of this one. `x`: bytes."""
        return Plane(self.at(y, z) + x, self.pitch, self.height)


class DevicePlane(ABC):
    """An object of the device that is an end of copies by its handle (memory/array_calls.py)."""

    @property
    @abstractmethod
    def plane(self) -> Plane:
        """Its address, and the distances of its rows and slices."""


def rows_of(to: Plane, source: Plane, height: int, depth: int) -> list[tuple[int, int]]:
    """The rows of a copy between two ends."""
    return [(to.at(y, z), source.at(y, z)) for z in range(depth) for y in range(height)]


def _described(driver: StandInDriver, place: int, dimensions: int) -> tuple[list[tuple[int, int]], int, Ends]:
    """The rows, their bytes and the ends of a copy that a CUDA_MEMCPY2D or a CUDA_MEMCPY3D at an address describes. Raises CallFailed."""
    of_end = {2: 7, 3: 11}[dimensions]
    words = struct.unpack(f"<{2 * of_end + dimensions}Q", driver.memory.read(place, 8 * (2 * of_end + dimensions)))
    (source, of_source), (to, of_to) = (_end(driver, words[at : at + of_end], dimensions) for at in (0, of_end))
    width, height, *depth = words[2 * of_end :]
    return rows_of(to, source, height, depth[0] if depth else 1), width, Ends(of_to, of_source)


def _end(driver: StandInDriver, words: tuple[int, ...], dimensions: int) -> tuple[Plane, bool | None]:
    """An end of a copy, and whether it is device memory; None: by its address."""
    x, y, z = (*words[:dimensions], 0)[:3]
    kind, host, device, array, *rest = words[2:] if dimensions == 2 else words[4:]
    kind &= 0xFFFFFFFF  # the rest is padding
    if kind == _ARRAY:
        planar: DevicePlane = driver.of(array, DevicePlane)
        return planar.plane.moved(x, y, z), True
    if kind not in _OF_KIND:
        raise CallFailed(calls.INVALID_VALUE)
    pitch, height = (rest[0], 1) if dimensions == 2 else rest[1:3]
    return Plane(host if kind == _HOST else device, pitch, height).moved(x, y, z), _OF_KIND[kind]


_OF_KIND: Final = {_HOST: False, _DEVICE: True, _UNIFIED: None}


def _copied_as(dimensions: int, *, waits: bool) -> Callable[..., None]:
    def copy(driver: StandInDriver, place: int, stream: int = 0) -> None:
        rows, nbytes, ends = _described(driver, place, dimensions)
        copied(driver, rows, nbytes, stream, ends, waits=waits)

    return copy


for _dimensions in (2, 3):
    serves("Q", f"cuMemcpy{_dimensions}D_v2", *("cuMemcpy2DUnaligned_v2",) * (_dimensions == 2))(_copied_as(_dimensions, waits=True))
    serves("Q Q", f"cuMemcpy{_dimensions}DAsync_v2")(_copied_as(_dimensions, waits=False))


def copy_node(driver: StandInDriver, place: int) -> StreamWork:
    """The copy of a node of a graph, by a CUDA_MEMCPY3D at an address. Raises CallFailed."""
    return copying(driver, *_described(driver, place, 3))


for _name, _ends in (("cuMemcpy", _ANY), ("cuMemcpyHtoD", TO_DEVICE), ("cuMemcpyDtoH", TO_HOST), ("cuMemcpyDtoD", WITHIN)):
    _version = "" if _name == "cuMemcpy" else "_v2"
    serves("Q Q Q", f"{_name}{_version}")(copier(_ends, waits=_ends is not WITHIN))
    serves("Q Q Q Q", f"{_name}Async{_version}")(copier(_ends, waits=False))


def _filled(element: int) -> Callable[..., None]:
    def fill(driver: StandInDriver, address: int, value: int, count: int, stream: int = 0) -> None:
        driver.work(stream, filling(driver, element, address, value, count))

    return fill


def filling(driver: StandInDriver, element: int, address: int, value: int, count: int) -> StreamWork:
    """Let `count` elements of so many bytes have a value."""

    def work(stream: Any) -> None:
        data = (value & (1 << 8 * element) - 1).to_bytes(element, "little")
        view = driver.view(address, count * element)
        view.reshape(count, element)[...] = np.frombuffer(data, np.uint8)
        _operated(driver, "the memset", stream, [], [(address, view)], waits=False)

    return work


def _filled_rows(element: int) -> Callable[..., None]:
    def fill(driver: StandInDriver, address: int, pitch: int, value: int, width: int, height: int, stream: int = 0) -> None:
        for row in range(height):
            _filled(element)(driver, address + row * pitch, value, width, stream)

    return fill


for _bits in (8, 16, 32):
    serves("Q I Q", f"cuMemsetD{_bits}_v2")(_filled(_bits // 8))
    serves("Q I Q Q", f"cuMemsetD{_bits}Async")(_filled(_bits // 8))
    serves("Q Q I Q Q", f"cuMemsetD2D{_bits}_v2")(_filled_rows(_bits // 8))
    serves("Q Q I Q Q Q", f"cuMemsetD2D{_bits}Async")(_filled_rows(_bits // 8))

# -- what the program's own code does to managed and pinned memory (source/watched.h) -----------------------------------------------------

_READ_ONLY, CLOSED = 1, 2  # how pages are closed
_MOST: Final = 256  # ranges
TOUCHED: Final = struct.Struct("<2Q")  # the address of a byte, and whether it was written
accepted("", "_consan_ends")


def shared_blocks(driver: StandInDriver) -> list[tuple[int, int]]:
    """Managed and pinned memory: begin and end of each block, sorted. None in a Python process."""
    if driver.memory.is_own:
        return []
    managed = ((begin, begin + nbytes) for begin, nbytes in driver.managed_blocks())
    return sorted([*managed, *driver.special.shared.values()])


def in_flight(driver: StandInDriver) -> Iterator[tuple[int, int, int]]:
    """The ranges of managed and pinned memory that work of the device may still use: begin, bytes, and how their pages are closed."""
    if not (driver.special.managed or driver.special.shared):
        return
    with driver.lock:
        blocks = shared_blocks(driver)
        found = [*driver.session.streams.in_flight(blocks)] if not driver.host.held_back else [(*each, True) for each in blocks]
    for begin, end, writes in found[:_MOST]:
        yield begin, end - begin, CLOSED if writes else _READ_ONLY


def rows_of_touched(touched: bytes) -> Any:
    """Accesses of the program's own code."""
    bytes_of: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
    for address, writes in TOUCHED.iter_unpack(touched):
        bytes_of[bool(writes)].append((address, address + 1))
    return rows_between(*bytes_of)


@serves("Q Q", "_consan_touched")
def _touched(driver: StandInDriver, place: int, count: int) -> None:
    driver.session.streams.host_touched(rows_of_touched(driver.memory.read(place, count * TOUCHED.size)))
