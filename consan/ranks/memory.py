"""The memory that ranks share: symmetric allocations, one array of each rank, and the tables of their addresses.

On the host an allocation is an array. A program passes it to kernels as such, as an array of a peer, or by a table of addresses, whose own
address is a number. A launch gets all allocations, wherever its arguments point, and tables with the addresses of their copies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

Array = npt.NDArray[Any]
PAD_BYTES: Final = 2048  # of the signals of an allocation
_ALIGNMENT: Final = 128


@dataclass(eq=False)
class SymmetricArray:
    """An array and the signals of one rank. `name`: what the program calls it."""

    rank: int
    name: str
    bytes: Array
    signals: Array
    element: int = 1  # bytes


@dataclass(eq=False)
class SymmetricWindow:
    """One allocation of all ranks, and tables of their addresses."""

    number: int
    ranks: list[SymmetricArray]
    buffers: Array
    signals: Array
    arrived: dict[tuple[int, int, int], Any] = field(default_factory=dict)  # signals of the host: by sender, receiver and channel

    @property
    def tables(self) -> tuple[Array, Array]:
        """Tables of addresses of the host."""
        return self.buffers, self.signals


@dataclass
class SymmetricMemory:
    """All that the ranks share."""

    own: list[SymmetricArray] = field(default_factory=list)
    windows: list[SymmetricWindow] = field(default_factory=list)

    def allocate(self, rank: int, nbytes: int, name: str, element: int = 1) -> SymmetricArray:
        """Memory of a rank, filled with zeros."""
        made = SymmetricArray(rank, name, _aligned(nbytes), _aligned(PAD_BYTES), element)
        self.own.append(made)
        return made

    def holding(self, address: int) -> SymmetricArray | None:
        """The allocation that an address of the host is in."""
        return next((each for each in self.own if address_of(each.bytes) <= address < address_of(each.bytes) + each.bytes.nbytes), None)

    def join(self, allocations: list[SymmetricArray]) -> SymmetricWindow:
        """The window of one allocation of each rank."""
        known = next((each for each in self.windows if each.ranks == allocations), None)
        if known is not None:
            return known
        made = SymmetricWindow(len(self.windows), allocations, _table(a.bytes for a in allocations), _table(a.signals for a in allocations))
        self.windows.append(made)
        return made

    def named(self) -> Iterator[tuple[str, Array, int]]:
        """All arrays with what a report calls them, and the bytes of an element."""
        for each in self.own:
            yield f'symmetric buffer "{each.name}", rank {each.rank}', each.bytes, each.element
            yield f'signal pad of "{each.name}", rank {each.rank}', each.signals, 4

    def of(self, rank: int) -> list[tuple[int, Array]]:
        """The addresses and arrays of a rank."""
        return [(address_of(array), array) for each in self.own if each.rank == rank for array in (each.bytes, each.signals)]

    def placed(self) -> Iterator[tuple[int, Array]]:
        """The addresses and arrays of all ranks."""
        return ((address_of(array), array) for _, array, _ in self.named())

    def tables(self) -> list[Array]:
        """All tables."""
        return [table for window in self.windows for table in window.tables]

    def is_address(self, value: Any) -> bool:
        """Whether a number is the address of something here, which a kernel gets as a number."""
        arrays = (*self.tables(), *(array for _, array, _ in self.named()))
        return type(value) is int and any(address_of(each) <= value < address_of(each) + each.nbytes for each in arrays)

    def write_tables(self, address: Callable[[int], int], write: Callable[[int, Array], None]) -> None:
        """Give the copies of the tables the addresses of the copies."""
        for table in self.tables():
            write(address(address_of(table)), np.array([address(int(each)) for each in table], np.uint64))


def address_of(array: Array) -> int:
    """The address of the first byte."""
    return int(array.__array_interface__["data"][0])


def bytes_of(begin: int, end: int) -> Array:
    """The host's memory. Somebody else keeps it."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (end - begin)).from_address(begin))


def _aligned(nbytes: int) -> Array:
    whole = np.zeros(max(nbytes, 1) + _ALIGNMENT, np.uint8)
    begin = -address_of(whole) % _ALIGNMENT
    return whole[begin : begin + max(nbytes, 1)]


def _table(arrays: Iterator[Array]) -> Array:
    """A table, which nothing is copied back to."""
    addresses = np.array([address_of(each) for each in arrays], np.uint64)
    table = _aligned(addresses.nbytes)
    table[:] = addresses.view(np.uint8)
    whole: Any = table.base
    whole.flags.writeable = False
    return table.view(np.uint64)
