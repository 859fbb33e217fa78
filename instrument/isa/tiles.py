"""Matrices in memory of `wmma` (PTX ISA "Matrix Shape", "Matrix Data-types", "Matrix Storage for WMMA")."""

from __future__ import annotations

import re
from collections.abc import Mapping

from consan.dataclass import dataclass

__all__ = ["Tile", "extents_of", "tile_of"]

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_BITS = {"b1": 1, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64}


@dataclass(frozen=True)
class Tile:
    """A matrix. `bits`: of an element; `by_row`: rows are contiguous in memory, else columns."""

    rows: int
    columns: int
    bits: int
    by_row: bool

    @property
    def lines(self) -> int:
        """The contiguous rows or columns."""
        return self.rows if self.by_row else self.columns

    @property
    def elements(self) -> int:
        """The elements of a line."""
        return self.columns if self.by_row else self.rows


def extents_of(shape: str) -> tuple[int, int, int]:
    """m, n and k of a product, such as "m16n16k16"."""
    found = _SHAPE.match(shape)
    if found is None:
        raise ValueError(f"{shape!r} is no shape of a product")
    m, n, k = map(int, found.groups())
    return m, n, k


def tile_of(words: Mapping[str, str]) -> Tile:
    """The matrix that a `wmma.load` or `wmma.store` accesses. `words`: the opcode's modifiers (Row.modifiers)."""
    m, n, k = extents_of(words["shape"])
    rows, columns = {"a": (m, k), "b": (k, n)}.get(words.get("matrix", ""), (m, n))
    return Tile(rows, columns, _BITS[words["type"]], words["layout"] == "row")
