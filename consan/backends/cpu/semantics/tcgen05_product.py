"""The arithmetic of tcgen05.mma: operands as numbers, products, accumulators (PTX ISA, "TensorCore 5th Generation MMA Instructions").

As in ops_matrix.py, floating products are exact, summed with the accumulator in f64 and rounded once for each instruction, to f32 or
f16; the chip's order and rounding are unspecified, so results agree to a few units in the last place of the largest term. Integers are
exact, then wrapped or clamped. A copy of A, of scale factors or of metadata that a part of the lanes needs is read from those lanes, so a
copy that the program forgot shows in the results.

Nothing says what the upper half of a cell gets when D is f16: it gets zeros. With a zero-column mask the columns of B are taken
after the shift, and the mask applies to the columns of D.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from . import tcgen05_layouts as layouts
from .matrix import six_bits
from .ops_matrix import ACCUMULATORS, ELEMENTS
from .ops_minifloat import FORMATS
from .ops_rounding import F64
from .ops_sparse import scale_factors
from .tcgen05_descriptors import NARROW, MatrixProduct, ScaleFactors
from .tcgen05_layouts import LaneBlock

Array = npt.NDArray[Any]
A_COLUMNS = 8  # of A in tensor memory: 32 bytes of K


def bytes_of(element: str) -> int:
    """Bytes of an element in memory, or of its container."""
    return max(1, ELEMENTS[element].bits // 8) if element in ELEMENTS else 1


def per_chunk(found: MatrixProduct, element: str) -> int:
    """Elements in 16 bytes."""
    return 32 if found.packed else 16 // bytes_of(element)


# Elements ----------------------------------------------------------------------------------------------------------------


def in_shared(found: MatrixProduct, element: str, chunks: Array, mn_major: bool) -> Array:
    """Numbers [rows, K] from chunks of shared memory, [rows, chunks], or [chunks, K] if MN-major."""
    raw = np.ascontiguousarray(chunks)
    if mn_major:
        numbers = ELEMENTS[element].decode(raw[..., None].view(ELEMENTS[element].dtype))
        return np.asarray(numbers.transpose(0, 2, 1).reshape(-1, raw.shape[1]))
    octets = raw.view(np.uint8).reshape(len(raw), -1)
    if found.packed:
        return _mini(element, _nibbles(octets))
    if element not in NARROW:
        return np.asarray(ELEMENTS[element].decode(octets.view(ELEMENTS[element].dtype)))
    lines = octets.reshape(len(raw), -1, 16)  # 16 elements and their padding
    codes = _nibbles(lines[..., :8]) if element == "e2m1" else six_bits(lines[..., :12])
    return _mini(element, codes.reshape(len(raw), -1))


def in_tensor(found: MatrixProduct, element: str, words: Array) -> Array:
    """Numbers [rows, K] from columns of tensor memory, [rows, columns]."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    if found.packed:
        return _mini(element, _nibbles(octets))
    if element in NARROW:
        return _mini(element, octets >> 2 & 15 if element == "e2m1" else octets & 63)
    return np.asarray(ELEMENTS[element].decode(octets.view(ELEMENTS[element].dtype)))


@lru_cache(maxsize=8)
def _table(element: str) -> Array:
    return FORMATS[element].decoded.astype(F64)


def _mini(element: str, codes: Array) -> Array:
    return np.asarray(_table(element)[codes])


def _nibbles(octets: Array) -> Array:
    return np.stack([octets & 15, octets >> 4], -1).reshape(*octets.shape[:-1], -1)


# One instruction -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorCell:
    """An address in tensor memory."""

    lane: int
    column: int

    @classmethod
    def of(cls, address: int) -> TensorCell:
        """The lane and column of an address."""
        return cls(address >> 16 & 0xFFFF, address & 0xFFFF)


@dataclass(eq=False)
class Execution:
    """One product about to be computed: `cells`: the tensor memory of each CTA that takes part; `b`: the chunks of B in each of them."""

    product: MatrixProduct
    cells: list[Array]
    d: TensorCell
    a: TensorCell | list[Array]
    b: list[Array]
    keep: bool
    scale_d: int = 0
    disabled: Array | None = None  # lanes that are not written: [CTAs, 128]
    meta: TensorCell = TensorCell(0, 0)
    sfa: TensorCell = TensorCell(0, 0)
    sfb: TensorCell = TensorCell(0, 0)
    zero: int = 0  # zero-column mask descriptor

    def run(self) -> None:
        """Compute it."""
        columns = self._columns()
        found, a = self.product, self.a
        rows = [in_shared(found, found.a, each, found.mn_major_a) for each in a] if isinstance(a, list) else []
        for block in layouts.blocks(found):
            left, right = rows[block.cta][block.rows] if rows else self._from_tensor(block), columns[block.part]
            if found.form.sparse:
                left = self._spread(left, block)
            if found.scales is not None:
                left, right = self._scaled(left, right, block, found.scales)
            result = np.matmul(left.astype(F64, copy=False), right.astype(F64, copy=False).T)
            self._accumulate(block, -result if found.negate else result)

    def _columns(self) -> Array:
        """B as numbers [N, K]."""
        found = self.product
        b = np.concatenate([in_shared(found, found.b, each, found.mn_major_b) for each in self.b])
        if not self.zero:
            return b
        shift = self.zero >> 56 & 63
        b = b[shift : shift + found.n].copy()
        b[zero_columns(self.zero, found.m, found.n)] = 0
        return np.asarray(b)

    def _from_tensor(self, block: LaneBlock) -> Array:
        assert isinstance(self.a, TensorCell)
        lanes = self.a.lane + block.lanes
        return in_tensor(self.product, self.product.a, self.cells[block.cta][lanes, self.a.column : self.a.column + A_COLUMNS])

    def _spread(self, a: Array, block: LaneBlock) -> Array:
        """Sparse rows [rows, K / 2] as dense ones. Each chunk has two positions, of elements or of pairs (kind tf32: one, of two)."""
        found = self.product
        lane, column, bit = layouts.metadata(found, block)
        words = self.cells[block.cta][self.meta.lane + lane, self.meta.column + column]
        index = words >> bit.astype(np.uint32) & np.uint32(15)
        unit = layouts.chunk_elements(found) // 4 or 1
        chunks, place = index.shape[1], np.stack([index & 3, index >> 2], -1).astype(np.intp)  # the positions of a chunk
        if found.form.kind == "tf32":
            place, unit = place[..., :1] >> 1, 1
        values = a.reshape(len(a), chunks, place.shape[2], unit)
        dense = np.zeros((len(a), chunks, found.k // chunks // unit, unit), a.dtype)
        np.put_along_axis(dense, place[..., None], values, axis=2)
        return dense.reshape(len(a), found.k)

    def _scaled(self, a: Array, b: Array, block: LaneBlock, scales: ScaleFactors) -> tuple[Array, Array]:
        found, cells = self.product, self.cells[block.cta]
        split = found.form.pair and found.m == 128
        (lane_a, column_a), (lane_b, column_b) = layouts.factor_words(block, split)
        of_a = _factors(cells[lane_a, self.sfa.column + column_a], scales, scales.first_a)
        of_b = _factors(cells[lane_b, self.sfb.column + column_b], scales, scales.first_b)
        width = found.k // scales.count
        return a * np.repeat(of_a, width, axis=1), b * np.repeat(of_b, width, axis=1)

    def _accumulate(self, block: LaneBlock, result: Array) -> None:
        found, cells = self.product, self.cells[block.cta]
        lanes = self.d.lane + block.lanes
        if self.disabled is not None:
            enabled = ~self.disabled[block.cta, lanes]
            lanes, result = lanes[enabled], result[enabled]
        part = slice(self.d.column, self.d.column + block.columns)
        if self.keep:
            result = result + np.ldexp(_numbers(found.d, cells[lanes, part]), -self.scale_d)
        if found.d == "s32":
            limits = np.iinfo(np.int32)  # sums stay below 2**53: exact in f64
            result = (np.clip(result, limits.min, limits.max) if found.saturate else result).astype(np.int64)
        finished = ACCUMULATORS[found.d].finish(result)
        cells[lanes, part] = finished.view(np.uint16 if found.d == "f16" else np.uint32)


def move_down(cells: list[Array], lanes: int, at: TensorCell) -> None:
    """Move the rows of a matrix of 32 bytes a row by one, in so many lanes of each tensor memory: not beyond 32 lanes."""
    columns = slice(at.column, at.column + A_COLUMNS)
    for each in cells:
        for first in range(at.lane, at.lane + lanes, 32):
            each[first : first + 31, columns] = each[first + 1 : first + 32, columns].copy()


def _factors(words: Array, scales: ScaleFactors, first: int) -> Array:
    """The factors of rows [rows, factors] from a column of tensor memory. `first`: the first byte of a word that is one."""
    octets = np.ascontiguousarray(words)[:, None].view(np.uint8)
    return scale_factors(scales.element, octets[:, first : first + scales.count])


def _numbers(word: str, cells: Array) -> Array:
    """The elements of D in cells, as numbers."""
    if word == "f16":
        return np.asarray((cells & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(F64))
    return np.asarray(np.ascontiguousarray(cells).view(np.float32 if word == "f32" else np.int32).astype(F64))


def zero_columns(descriptor: int, m: int, n: int) -> Array:
    """The columns that a zero-column mask descriptor makes zero, as bools [N] (Table 45).

    The table and its examples exchange the two spans; the examples decide: runs of (bits 48-55) + 1 columns that are used and runs of
    (bits 40-47) + 1 columns that are zero take turns, the zeros first where First Span is 1.
    """
    if not descriptor >> 39 & 1:
        return np.zeros(n, np.bool_)
    parts = 128 // m
    zero, use = (descriptor >> 40 & 0xFF) + 1, (descriptor >> 48 & 0xFF) + 1
    return np.concatenate([_pattern(n // parts, zero, use, descriptor >> 32 + i & 1, descriptor >> 8 * i & 0xFF) for i in range(parts)])


def _pattern(count: int, zero: int, use: int, zero_first: int, skipped: int) -> Array:
    position = (np.arange(count) + skipped + (0 if zero_first else zero)) % (zero + use)
    return np.asarray(position < zero)


def tensor_places(run: Execution) -> Iterator[tuple[str, TensorCell, int, int]]:
    """The operands in tensor memory, each with its address, the lanes and the columns that it reaches."""
    found = run.product
    reach = max(int(block.lanes[-1]) for block in layouts.blocks(found)) + 1
    yield "D", run.d, reach, max(block.columns for block in layouts.blocks(found))
    if isinstance(run.a, TensorCell):
        yield "A", run.a, reach, A_COLUMNS
    if found.form.sparse:
        yield "the metadata", run.meta, reach, 1 + found.selector if found.form.kind in ("f16", "tf32") else 2
    if found.scales is not None:
        rows = (found.m // found.ctas, max(block.columns for block in layouts.blocks(found)))
        for name, place, count in (("the scale factors of A", run.sfa, rows[0]), ("the scale factors of B", run.sfb, rows[1])):
            yield name, TensorCell(0, place.column), 128, -(-count // 32)
