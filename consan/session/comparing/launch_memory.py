"""The memory that a launch may reach, and where its bytes are for a comparison with others (SEMANTICS 12, R-GM14)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import Retained, RetainedFlag, Rows
from consan.dataclass import dataclass
from consan.reports.model import Dim3
from consan.session.comparing.array_rows import HOST, ROWS, ByRows, rows_touched

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared
    from consan.session.planning.proofs import LaunchBytes

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Copied:
    """An array of the host, and where its copy was on the device."""

    array: npt.NDArray[Any]
    address: int

    def inside(self, rows: Rows) -> Mask:
        """Which accesses begin in the copy."""
        found: Mask = (rows["device"] >= self.address) & (rows["device"] < self.address + self.array.nbytes)
        return found

    def move(self, rows: Rows) -> None:
        """Let the addresses of accesses be those in the array."""
        inside = self.inside(rows)
        element, byte = np.divmod((rows["device"][inside] - np.uint64(self.address)).astype(np.int64), self.array.itemsize)
        index = np.unravel_index(element, self.array.shape)
        offsets = sum((each * step for each, step in zip(index, self.array.strides, strict=True)), byte)
        rows["address"][inside] = (offsets + int(self.array.__array_interface__["data"][0])).astype(np.uint64) + np.uint64(HOST)


@dataclass(frozen=True)
class Memory:
    """The memory that the parameters of a launch refer to. `shared`: also memory that others own, by its address.

    `owners`: objects that keep the arrays where they are. `variables`: addresses and sizes of the module's, which all its launches have.
    """

    arrays: Sequence[Copied]
    shared: bool
    owners: Sequence[Any] = ()
    variables: Sequence[tuple[int, int]] = ()

    @property
    def by_address(self) -> bool:
        """Whether the bytes of the device are the same for all launches."""
        return self.shared and not (self.arrays or self.variables)

    def rows(self, retained: Rows) -> Rows:
        """Accesses by their places. Those of memory that no other launch has are left out."""
        rows = np.empty(len(retained), ROWS)
        as_bytes = rows.view(np.uint8).reshape(len(rows), ROWS.itemsize)
        as_bytes[:, : retained.itemsize] = np.ascontiguousarray(retained).view(np.uint8).reshape(len(rows), retained.itemsize)
        rows["device"] = rows["address"]
        if self.by_address:
            return rows
        ours = np.zeros(len(rows), np.bool_)
        for each in self.arrays:
            each.move(rows)
            ours |= each.inside(rows)
        for begin, size in self.variables:
            ours |= (rows["device"] >= begin) & (rows["device"] < begin + size)
        return rows if self.shared else rows[ours]


MOST_WAITED: Final = 64  # launches with the same accesses, at whose begin nothing else runs


@dataclass(frozen=True)
class KnownAccesses:
    """The accesses of launches that have no log. `form`: of the module, whose sites they name. `times`: counts them."""

    retained: Retained
    form: Prepared
    times: Iterator[int] = field(default_factory=itertools.count)

    @property
    def waits(self) -> bool:
        """Whether the next one waits for all that runs, so that others know when it began. Two that race do so early in most programs."""
        return next(self.times) < MOST_WAITED

    @classmethod
    def of(cls, retained: Retained | None, form: Prepared) -> KnownAccesses | None:
        """The same accesses as those of a launch that was recorded. None: it has flags, whose values later ones may not have."""
        flags = None if retained is None else retained.peer_flags
        if retained is None or retained.waited or flags is None or len(flags.rows):
            return None
        rows = retained.rows.copy()
        rows["flags"] &= ~np.uint32(RetainedFlag.HAS_VALUE)  # others may store other values
        return cls(replace(retained, rows=rows), form)


@dataclass(frozen=True)
class LaunchShape:
    """A launch without its accesses. `memory` keeps the arrays alive, whose places are compared. `reaches`: how it reaches other GPUs."""

    entry: str
    grid: Dim3
    block: Dim3
    memory: Memory
    footprint: LaunchBytes | None = None  # the bytes that it touches, where its text and its parameters determine them
    reaches: str = ""

    def rows(self, retained: Retained | None, placed: ByRows[Rows]) -> Rows | None:
        """Its accesses by their places; None: they are not known. `placed`: those of launches by addresses, by what they have retained."""
        if self.footprint is not None:
            return rows_touched(self.footprint.touched, self.footprint.begins())
        if retained is None or not self.memory.by_address:
            return None if retained is None else self.memory.rows(retained.rows)
        return placed.of(retained.rows, (), lambda: self.memory.rows(retained.rows))
