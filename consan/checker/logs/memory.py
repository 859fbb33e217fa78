"""Device memory for logs: what one launch gives back serves the next.

To allocate a gigabyte and to free it takes longer than most kernels. Only a little is kept, and given back
when the program lacks memory (`Device.give_back`). Where many launches are in flight at a time, their small pieces are allocated together.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Any, Final

from consan._errors import EnvironmentFailure
from consan.dataclass import dataclass

SMALLER = "a smaller launch needs less: --ctas N, smaller sizes; --trace-memory gives more"  # where logs have no room
MOST_RETAINED = 256 << 20  # bytes in sum
_MOST_TIMES, _SMALL = 2, 1 << 20  # a piece that is more than twice as large as its user needs is left for others, if it is no small one
_TOGETHER: Final = 1 << 20  # bytes of pieces that are allocated together
_ALIGNED: Final = 256
_FRESH: Final = 1.0  # seconds for which the amount of free memory is believed: an allocation that fails is not the end
MOST_RESULTS, MOST_DATA = 64, 1 << 22  # results that are kept, and bytes of what each was made of
MOST_GRIDS, MOST_GRID = 8, 1 << 24  # the same of launches whose global memory was looked at


@dataclass
class Recalled:
    """Results, each with the data that it was made of. `most`: that are kept; `most_data`: bytes of the data of one."""

    most: int
    most_data: int = MOST_DATA
    _results: dict[Hashable, tuple[bytes, Any]] = field(default_factory=dict)  # least recently used first

    def of(self, key: Hashable, data: bytes, make: Callable[[], Any]) -> Any:
        """The result of `make` for some data. The last one of each key is kept."""
        before = self._results.pop(key, None)
        result = before[1] if before is not None and before[0] == data else make()
        if len(data) <= self.most_data:
            self._results[key] = (data, result)
            while len(self._results) > self.most:
                del self._results[next(iter(self._results))]
        return result


@dataclass
class _Block:
    """Pieces that were allocated together. `left`: those that are in use or kept."""

    address: int
    left: int


@dataclass
class LogMemory:
    """The memory of one device. If the backend gives zeroed memory at no cost, nothing is kept. Threads share it."""

    backend: Any
    most_retained: int = MOST_RETAINED  # bytes in sum that are kept
    _retained: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # bytes and addresses, by what they are for
    _sizes: dict[int, int] = field(default_factory=dict)  # of what is in use
    _blocks: dict[int, _Block] = field(default_factory=dict)  # of pieces that have others beside them
    _free: tuple[int, float] = (0, -_FRESH)  # bytes of the device, and when they were free
    _modules: dict[str, Any] = field(default_factory=dict)
    groups: Recalled = field(default_factory=functools.partial(Recalled, MOST_RESULTS))  # the clusters of launches
    grids: Recalled = field(default_factory=functools.partial(Recalled, MOST_GRIDS, MOST_GRID))  # looks at global memory
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, name: str, nbytes: int, *, clear: bool = True) -> int:
        """Memory, at least a byte. It is zeroed, unless its user does not need that: to clear a gigabyte takes longer than most kernels."""
        nbytes = max(nbytes, 1)
        with self._lock:
            pieces = self._retained.get(name, [])
            if pieces and pieces[-1][0] == _aligned(nbytes):  # as for a launch like the one before
                size, address = pieces.pop()
            else:
                size, address = self._fitting(pieces, nbytes) or self._new(name, nbytes)
            self._sizes[address] = size
        if clear and not self.backend.allocates_zeros:
            self.backend.fill(address, 0, nbytes)
        return address

    @staticmethod
    def _fitting(pieces: list[tuple[int, int]], nbytes: int) -> tuple[int, int] | None:
        """Take the smallest piece that fits. None: there is none."""
        most = max(_MOST_TIMES * nbytes, _SMALL)
        found = min((piece for piece in pieces if nbytes <= piece[0] <= most), default=None)
        if found is not None:
            pieces.remove(found)
        return found

    def give(self, name: str, address: int) -> None:
        """Take memory back."""
        with self._lock:
            size = self._sizes.pop(address)
            if self.backend.allocates_zeros or self.used + size > self.most_retained:
                self._freed(address)
            else:
                self._retained.setdefault(name, []).append((size, address))
                self._shrink(self.most_retained - self.used)

    @property
    def used(self) -> int:
        """Bytes that are in use."""
        return sum(self._sizes.values())

    def free_bytes(self) -> int:
        """Memory of the device that was free a moment ago."""
        if time.monotonic() > self._free[1] + _FRESH:
            self._free = self.backend.free_bytes(), time.monotonic()
        return self._free[0]

    def module(self, ptx: str) -> Any:
        """A module of consan's own, loaded once."""
        if ptx not in self._modules:
            self._modules[ptx] = self.backend.load(ptx)
        return self._modules[ptx]

    def close(self) -> None:
        """Free what is kept."""
        while self._modules:
            self.backend.unload(self._modules.popitem()[1])
        self.release()

    def release(self) -> None:
        """Free what is not in use."""
        with self._lock:
            self._shrink(0)

    def _new(self, name: str, nbytes: int) -> tuple[int, int]:
        """The bytes and the address of a new piece. As many as are in use are allocated with it, and kept."""
        size = _aligned(nbytes)
        alike = sum(_aligned(each) == size for each in self._sizes.values())
        count = min(alike, _TOGETHER // size, (self.most_retained - self.used) // size)
        if count <= 1 or self.backend.allocates_zeros:
            return nbytes, self._allocated(nbytes)
        block = _Block(self._allocated(count * size), count)
        first, *others = range(block.address, block.address + count * size, size)
        self._blocks |= dict.fromkeys((first, *others), block)
        self._retained.setdefault(name, []).extend((size, each) for each in others)
        return size, first

    def _freed(self, address: int) -> None:
        """Free a piece: the last one of those that were allocated together frees all."""
        block = self._blocks.pop(address, None) or _Block(address, 1)
        block.left -= 1
        if not block.left:
            self.backend.free(block.address)

    def _allocated(self, nbytes: int) -> int:
        """New memory, in place of what is kept where both would be too much."""
        self._shrink(self.most_retained - self.used - nbytes)
        try:
            return int(self.backend.alloc_separate(nbytes))
        except EnvironmentFailure:
            self.release()
            return int(self.backend.alloc_separate(nbytes))

    def _shrink(self, most: int) -> None:
        """Keep at most so many bytes, of each kind those that were given back last."""
        retained = sum(size for pieces in self._retained.values() for size, _ in pieces)
        for pieces in self._retained.values():
            while pieces and retained > most:
                size, address = pieces.pop(0)
                retained -= size
                self._freed(address)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED
