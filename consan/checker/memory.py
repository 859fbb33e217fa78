"""Device memory for logs: what one launch gives back serves the next.

To allocate a gigabyte and to free it takes longer than most kernels. Not handled: a program that needs the kept memory for itself does
not get it before the device is closed, so only a little is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

MOST_KEPT = 4 << 30  # bytes in sum
MOST_RESULTS, MOST_DATA = 64, 1 << 22  # results that are kept, and bytes of what each was made of


@dataclass
class LogMemory:
    """The memory of one device. Where the backend gives zeroed memory, which costs nothing, nothing is kept."""

    backend: Any
    _kept: dict[str, tuple[int, int]] = field(default_factory=dict)  # address and bytes, by what it is for
    _sizes: dict[int, int] = field(default_factory=dict)  # of what is in use
    _modules: dict[str, Any] = field(default_factory=dict)
    _results: dict[Hashable, tuple[bytes, Any]] = field(default_factory=dict)  # least recently used first

    def take(self, name: str, nbytes: int, *, clear: bool = True) -> int:
        """Memory, at least a byte. It is zeroed, unless its user does not need that: to clear a gigabyte takes longer than most kernels."""
        nbytes = max(nbytes, 1)
        address, size = self._kept.pop(name, (0, 0))
        if size < nbytes:
            self._free(address)
            self._free_kept()
            address, size = self.backend.alloc_apart(nbytes), nbytes
        self._sizes[address] = size
        if clear and not self.backend.allocates_zeros:
            self.backend.fill(address, 0, nbytes)
        return int(address)

    def give(self, name: str, address: int) -> None:
        """Take memory back."""
        size = self._sizes.pop(address)
        others = sum(kept for _, kept in self._kept.values())
        if self.backend.allocates_zeros or name in self._kept or others + size > MOST_KEPT:
            self._free(address)
        else:
            self._kept[name] = (address, size)

    def module(self, ptx: str) -> Any:
        """A module of consan's own, loaded once."""
        if ptx not in self._modules:
            self._modules[ptx] = self.backend.load(ptx)
        return self._modules[ptx]

    def recalled(self, key: Hashable, data: bytes, make: Callable[[], Any]) -> Any:
        """What `make` makes of some data. It is kept for the last data of each key."""
        before = self._results.pop(key, None)
        result = before[1] if before is not None and before[0] == data else make()
        if len(data) <= MOST_DATA:
            self._results[key] = (data, result)
            while len(self._results) > MOST_RESULTS:
                del self._results[next(iter(self._results))]
        return result

    def close(self) -> None:
        """Free what is kept."""
        while self._modules:
            self.backend.unload(self._modules.popitem()[1])
        self._free_kept()

    def _free_kept(self) -> None:
        while self._kept:
            self._free(self._kept.popitem()[1][0])

    def _free(self, address: int) -> None:
        if address:
            self.backend.free(address)
