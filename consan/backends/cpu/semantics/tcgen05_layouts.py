"""The layouts of tcgen05's operands in tensor memory: fragments of ld and st, rows of cp, accumulators, scale factors, sparsity metadata.

PTX ISA, "Data Movement Shape", "Data Path Layout Organization", "Scale Factor A ID", "Sparse Matrices". Lanes and columns are relative
to the operand's address. The ISA shows most of this in figures only; tests compare it with CUTLASS's layouts.

Inferred, since neither says it: metadata of products with M = 64 or of layout C lies in the lanes of their rows of A; with `.ws`, in every
copy of A. A sparsity selector of 1 is the column behind the one of the address, as Mosaic of JAX uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .tcgen05_descriptors import MatrixProduct

Array = npt.NDArray[Any]
QUARTER = 32  # lanes that one warp reaches

# ld and st -----------------------------------------------------------------------------------------------------------


def registers(shape: str, count: int) -> int:
    """Registers of a thread (Table 49)."""
    return count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)


@lru_cache(maxsize=64)
def fragment(shape: str, count: int) -> tuple[Array, Array]:
    """Lane and column of each register of each thread: [32, registers] each. The second half of 16x32bx2 is relative to its own address."""
    thread, register = np.arange(32)[:, None], np.arange(registers(shape, count))
    rows, columns = {
        "32x32b": (thread, register),
        "16x64b": (thread // 4 + 8 * (thread & 1), (thread >> 1 & 1) + 2 * register),
        "16x128b": (thread // 4 + 8 * (register & 1), (thread & 3) + 4 * (register >> 1)),
        "16x256b": (thread // 4 + 8 * (register >> 1 & 1), (register & 1) + 2 * (thread & 3) + 8 * (register >> 2)),
        "16x32bx2": (thread % 16, register),
    }[shape]
    whole = (32, len(register))
    return np.broadcast_to(rows, whole), np.broadcast_to(columns, whole)


# cp ------------------------------------------------------------------------------------------------------------------


def copied_lanes(shape: str, warps: str) -> Array:
    """The lanes that get each row of the source: [rows, copies]."""
    row = np.arange(int(shape.partition("x")[0]))[:, None]
    if shape == "4x256b":
        return 32 * row
    if warps == "warpx4":
        return row + 32 * np.arange(4)
    if warps == "warpx2::02_13":
        return row + 64 * np.arange(2)
    if warps == "warpx2::01_23":
        return row + 32 * (row >= 32) + 32 * np.arange(2)
    return row


# Accumulators and A ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LaneBlock:
    """A part of D: in the CTA `cta` of the pair, the rows of that CTA from `row` on lie in `lanes`, the columns from `column` on at 0."""

    cta: int
    row: int
    lanes: Array
    column: int
    columns: int

    @property
    def rows(self) -> slice:
        """Its rows, among those of its CTA."""
        return slice(self.row, self.row + len(self.lanes))

    @property
    def part(self) -> slice:
        """Its columns of D."""
        return slice(self.column, self.column + self.columns)


def _halved(rows: int) -> Array:
    """Layouts C and F: 16 rows in each quarter."""
    row = np.arange(rows)
    return row // 16 * 32 + row % 16


@lru_cache(maxsize=256)
def blocks(found: MatrixProduct) -> tuple[LaneBlock, ...]:
    """D in tensor memory (layouts A to G). Block-scaled products: a block for each quarter of the lanes."""
    rows = found.m // found.ctas
    if found.form.ws or (found.form.pair and rows == 64 and not found.form.sparse):
        copies = 128 // rows  # layouts B, E, G (and D): the columns are dealt out to parts of the lanes
        parts = [(np.arange(rows) + copy * rows, copy * found.n // copies, found.n // copies) for copy in range(copies)]
    else:
        parts = [(_halved(rows) if rows == 64 else np.arange(rows), 0, found.n)]
    whole = [LaneBlock(cta, 0, *part) for cta in range(found.ctas) for part in parts]
    return tuple(whole) if found.scales is None else tuple(each for block in whole for each in _quarters(block))


def _quarters(block: LaneBlock) -> Iterator[LaneBlock]:
    for first in range(0, len(block.lanes), QUARTER):
        yield LaneBlock(block.cta, block.row + first, block.lanes[first : first + QUARTER], block.column, block.columns)


# Scale factors and metadata ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def factor_words(block: LaneBlock, split: bool) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Lanes and columns of the words that hold the factors of the rows of A and of the columns of D of a block.

    The block lies in one quarter of the lanes and reads the copy of the factors there. `split`: SFB of a pair with M = 128.
    """
    quarter = int(block.lanes[0]) // QUARTER * QUARTER
    row = block.row + np.arange(len(block.lanes))
    column = np.arange(block.columns) + (0 if split else block.column)
    return (quarter + row % 32, row // 32), (quarter + column % 32, column // 32)


@lru_cache(maxsize=64)
def metadata(found: MatrixProduct, block: LaneBlock) -> tuple[Array, Array, Array]:
    """Lane, column and first bit of the 4-bit index of each chunk of each row of a block: [rows, chunks] each."""
    chunk = np.arange(found.k // chunk_elements(found))
    row = block.rows.start + np.arange(len(block.lanes))[:, None]
    if found.form.kind not in ("f16", "tf32"):
        return np.broadcast_to(block.lanes[:, None], (len(row), len(chunk))), chunk // 8 + 0 * row, 4 * (chunk % 8) + 0 * row
    base = block.lanes[np.arange(len(row)) // 16 * 16][:, None]  # 16 rows share the words of their 16 lanes
    return base + row % 8 + 8 * (chunk // 4), found.selector + 0 * (row + chunk), 4 * (chunk % 4 + 4 * (row // 8 % 2))


def chunk_elements(found: MatrixProduct) -> int:
    """Elements of a dense row that one index is about."""
    return {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(found.form.kind, 4)
