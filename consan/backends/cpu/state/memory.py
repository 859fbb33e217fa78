"""Device memory: one sparse anonymous mapping that holds global memory, shared windows and local memory.

A global address is GLOBAL_BASE plus the offset in the mapping, so a host view of any allocation costs nothing. Shared and
local memory are seen by threads through windows of the generic address space (PTX ISA, "Generic Addressing"): every CTA
sees its shared memory at SHARED_WINDOW and every thread its local memory at LOCAL_WINDOW; only the machine knows where in
the mapping they really are. In a cluster the rank of a CTA stands in bits 24 and up of an address of its shared memory, in
the window as in the 32-bit address, as on sm_90. Red zones between allocations make small overruns fall on nothing.

Not handled: peer devices, managed memory, texture memory.
"""

from __future__ import annotations

import bisect
import gc
import mmap
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan._errors import EnvironmentFailure, UsageError
from consan.dataclass import dataclass

Array = npt.NDArray[np.generic]

GLOBAL_BASE = 0x7F00_0000_0000
HANDLE = 0xFFFF_FFFF  # the bits of a handle that count
SHARED_WINDOW = 0x7E00_0000_0000
LOCAL_WINDOW = 0x7E80_0000_0000
CODE_BASE = 0x7D00_0000_0000
WINDOW_SIZE = 1 << 32
RANK_SHIFT = 24  # where the rank of a CTA stands in a shared::cluster address
RESERVED_SHARED = 1024  # sm_90 keeps the first KiB of every CTA's shared memory for itself
RED_ZONE = 256

_PAGE = mmap.PAGESIZE
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
# 16-byte units are moved as complex128: the widest plain NumPy item, copied bit for bit by take and by fancy assignment.
UNIT_DTYPES = (np.uint8, np.uint16, np.uint32, np.uint64, np.complex128)


def unit_views(raw: npt.NDArray[np.uint8]) -> tuple[Array, ...]:
    """The same bytes as arrays of 1, 2, 4, 8 and 16-byte units."""
    return tuple(raw.view(dtype) for dtype in UNIT_DTYPES)


@dataclass
class Allocation:
    """A range of device memory that threads may touch."""

    address: int
    nbytes: int
    name: str
    views: tuple[Array, ...] = field(repr=False)
    separate: bool = False  # consan's own, far from all other buffers

    @property
    def end(self) -> int:
        """First address after the allocation."""
        return self.address + self.nbytes


def _map(sizes: tuple[int, ...]) -> mmap.mmap:
    why: object = None
    for attempt, size in enumerate((sizes[0], *sizes)):
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        except (OSError, ValueError) as error:
            why = error
        if not attempt:
            gc.collect()  # machines that nobody uses any more hold addresses until then
    raise EnvironmentFailure(
        f"cannot reserve address space for the virtual machine's memory ({why}; is virtual memory limited, are there too many mappings?)"
    )


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


MOST_FREED = 1024  # allocations


class Arena:
    """The mapping, its free list and the table of live allocations."""

    SIZES = (1 << 38, 1 << 36, 1 << 34, 1 << 32, 1 << 30)

    def __init__(self, mapping: mmap.mmap | None = None) -> None:
        self._map = mapping or _map(self.SIZES)
        self.raw: npt.NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self.views = unit_views(self.raw)
        self.surfaces: dict[int, npt.NDArray[np.uint8]] = {}  # of a launch: their bytes, by names (semantics/surfaces.py)
        self.textures: dict[int, Any] = {}  # texture objects by their handles (consan/textures)
        self.surface_objects: dict[int, Any] = {}  # by the bits of their handles that names of surfaces have
        self.references: dict[int, str] = {}  # texture references by their handles: the low bits of their addresses
        self.bound: dict[str, Any] = {}  # their textures
        self._free: list[tuple[int, int]] = [(_PAGE, self.raw.size - _PAGE)]  # (offset, size), sorted
        self._reserved: dict[int, int] = {}  # offset -> reserved size
        self._starts: list[int] = []  # addresses of live allocations, sorted
        self._live: list[Allocation] = []
        self._freed: deque[tuple[int, int]] = deque(maxlen=MOST_FREED)  # begin and end of what lived

    def texture(self, handle: int) -> Any:
        """The texture of an object, or the one that is bound to a reference; None for other handles."""
        return self.textures.get(handle) or self.bound.get(self.references.get(handle & HANDLE, ""))

    def reserve(self, nbytes: int, align: int = 256) -> int:
        """Take `nbytes` out of the free list and return their offset; the memory reads as zero."""
        align = max(align, _PAGE if nbytes >= _PAGE else 256)
        for index, (start, size) in enumerate(self._free):
            offset = _align(start, align)
            used = offset + _align(nbytes + RED_ZONE, 256) - start
            if used <= size:
                self._free[index : index + 1] = [(start + used, size - used)] if used < size else []
                if offset > start:
                    self._give_back(start, offset - start)
                self._reserved[offset] = start + used - offset
                return offset
        raise UsageError(f"the virtual machine is out of memory: {nbytes} bytes asked for")

    def reserve_separate(self, nbytes: int, align: int = 256) -> int:
        """As `reserve`, at the far end of the address space, where no overrun of another buffer reaches."""
        step = max(align, _PAGE)
        for index, (start, size) in reversed(list(enumerate(self._free))):
            offset = (start + size - _align(nbytes + RED_ZONE, _PAGE)) // step * step
            if offset > start:
                self._free[index] = (start, offset - start)
                self._reserved[offset] = start + size - offset
                return offset
        raise UsageError(f"the virtual machine is out of memory: {nbytes} bytes asked for")

    def release(self, offset: int) -> None:
        """Return what `reserve` gave; its pages go back to the operating system and read as zero again."""
        size = self._reserved.pop(offset)
        self._zero(offset, size)
        self._give_back(offset, size)

    def _zero(self, offset: int, size: int) -> None:
        first, last = _align(offset, _PAGE), (offset + size) // _PAGE * _PAGE
        if last > first:
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)
            self.raw[offset:first] = 0
            self.raw[last : offset + size] = 0
        else:
            self.raw[offset : offset + size] = 0

    def wipe(self) -> None:
        """All memory reads as zero again; what is reserved stays reserved."""
        for offset, size in self._reserved.items():
            self._zero(offset, size)

    def _give_back(self, offset: int, size: int) -> None:
        index = bisect.bisect_left(self._free, (offset, 0))
        self._free.insert(index, (offset, size))
        for left in (index, index - 1):
            if 0 <= left < len(self._free) - 1:
                (a, a_size), (b, b_size) = self._free[left : left + 2]
                if a + a_size == b:
                    self._free[left : left + 2] = [(a, a_size + b_size)]

    def alloc(self, nbytes: int, align: int = 256, name: str = "", *, separate: bool = False) -> Allocation:
        """A new allocation that threads may touch."""
        offset = (self.reserve_separate if separate else self.reserve)(nbytes, align)
        raw = self.raw[offset : offset + _align(max(nbytes, 1), 16)]
        allocation = Allocation(GLOBAL_BASE + offset, nbytes, name, unit_views(raw), separate)
        self.show(allocation)
        return allocation

    def show(self, allocation: Allocation) -> None:
        """Threads may touch an allocation."""
        index = bisect.bisect_left(self._starts, allocation.address)
        self._starts.insert(index, allocation.address)
        self._live.insert(index, allocation)

    def hide(self, allocation: Allocation) -> None:
        """No thread may touch an allocation, whose place is kept for it."""
        index = bisect.bisect_left(self._starts, allocation.address)
        del self._starts[index], self._live[index]

    @property
    def allocations(self) -> list[Allocation]:
        """Those that live, but consan's own."""
        return [each for each in self._live if not each.separate]

    def contents(self, most: int) -> list[tuple[int, npt.NDArray[np.uint8]]]:
        """The bytes of the allocations, but those of consan, by address; nothing if it is more than `most` bytes."""
        kept = self.allocations
        fits = sum(each.nbytes for each in kept) <= most
        return [(each.address, self.span(each.address, each.nbytes).copy()) for each in kept if fits]

    def saved(self, most: int) -> Callable[[], None] | None:
        """Keep what the allocations hold, but those of consan: the result brings it back. None: it is more than `most` bytes."""
        contents, kept = self.contents(most), self.allocations
        if len(contents) < len(kept):
            return None

        def restore() -> None:
            for (address, before), allocation in zip(contents, kept, strict=True):
                if self.find(address) is allocation:  # not freed since, as garbage of an earlier launch may be
                    self.span(address, before.nbytes)[...] = before

        return restore

    def free(self, address: int) -> None:
        """Forget the allocation that starts at `address`."""
        index = bisect.bisect_left(self._starts, address)
        if index == len(self._starts) or self._starts[index] != address:
            raise UsageError(f"free of {address:#x}: no allocation starts there")
        self._freed.append((address, self._live[index].end))
        self.hide(self._live[index])
        self.release(address - GLOBAL_BASE)

    def was_freed(self, address: int, params: Collection[int]) -> bool:
        """Whether an allocation held `address` that was freed, and none does now.

        A launch with a parameter that points to the allocation before it has gone beyond that one, unless one points to what was freed
        and is nobody's now: memory that is taken again is its new allocation's.
        """
        ranges = [(begin, end) for begin, end in self._freed if begin <= address < end]
        index = bisect.bisect_right(self._starts, address) - 1
        before = self._live[index] if index >= 0 else None
        if not ranges or (before is not None and address < before.end):
            return False
        beyond = before is not None and any(before.address <= each < before.end for each in params)
        return not beyond or any(begin <= each < end and self.find(each) is None for each in params for begin, end in ranges)

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._live[index].end:
            return self._live[index]
        return None

    def valid(self, addresses: npt.NDArray[np.uint64], nbytes: int | npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of the accesses of `nbytes` (of all, or of each) at `addresses` lie within one live allocation each."""
        if not self._starts:
            return np.zeros(addresses.shape, np.bool_)
        starts = np.array(self._starts, np.uint64)
        ends = np.array([a.end for a in self._live], np.uint64)
        index = np.searchsorted(starts, addresses, side="right") - 1
        return np.asarray((index >= 0) & (addresses <= ends[index] - np.asarray(nbytes, np.uint64)))

    def span(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Host view of device bytes."""
        allocation = self.find(address)
        if allocation is None or address + nbytes > allocation.end:
            raise UsageError(f"{nbytes} bytes at {address:#x} are not inside one allocation of the virtual machine")
        offset = address - GLOBAL_BASE
        return self.raw[offset : offset + nbytes]
