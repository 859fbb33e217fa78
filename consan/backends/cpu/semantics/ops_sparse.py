"""The forms of mma that ops_matrix.py lacks: sparse A (mma.sp), .kind with elements below 8 bits, block scaling, and m8n8k4 of f16.

PTX ISA "Matrix multiply-accumulate operation using mma.sp instruction with sparse matrix A" and "Block Scaling for mma.sync". A sparse A
is stored as half a row, in the layout of a dense A. Its metadata has 4 bits for each chunk of a row: the places of the two elements (or
two pairs of 4-bit elements) of four that are stored, or of the one of two (tf32). With 16 or 32 bits an element, a lane has the
metadata of rows g and g + 8, else of one of them; the selector names the lane, or pair of lanes, of each four that has it (`_places`).

A scale factor multiplies a chunk of a row of A, or of a column of B. The factors of rows g and g + 8 of A are in the two lanes that
`thread-id-a` names, those of column g of B in the lane `thread-id-b`, as CuTe's `SFALayout` and `SFBLayout` have them in text.
Arithmetic is that of ops_matrix.py. Selectors beyond those that the ISA defines are undefined; here they are taken modulo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from consan.dataclass import dataclass

from .ops_base import Array, Op, Operations, warp
from .ops_matrix import (
    ACCUMULATORS,
    ELEMENTS,
    SHAPES,
    WARPS,
    Element,
    MatrixShape,
    a_index,
    b_index,
    matrix_of,
    multiply,
    multiply_integers,
    read_c,
    saturated,
    write_d,
)
from .ops_minifloat import FORMATS
from .ops_rounding import F64

U8 = np.dtype(np.uint8)
QUAD, ROWS = 4, 16  # lanes that share the metadata of two rows; rows of A
_LANES_OF_8 = np.arange(32).reshape(8, QUAD)


def _table(name: str) -> Array:
    return FORMATS[name].decoded.astype(F64)


def _in_container(name: str, shift: int, mask: int) -> Element:
    """An element of fewer bits in a byte of its own."""
    table = _table(name)
    return Element(8, "b32", U8, lambda a: table[a >> shift & mask])


def _packed_e2m1(a: Array) -> Array:
    return _table("e2m1")[np.stack([a & 15, a >> 4], axis=-1).reshape(*a.shape[:-1], -1)]


_KINDS = {name: ELEMENTS[name] for name in ("e4m3", "e5m2")} | {
    "e3m2": _in_container("e3m2", 0, 63),
    "e2m3": _in_container("e2m3", 0, 63),
    "e2m1": _in_container("e2m1", 2, 15),
}
_PACKED = Element(4, "b32", U8, _packed_e2m1)


def scale_factors(word: str, codes: Array) -> Array:
    """Scale factors from their bytes: ue4m3, or ue8m0 (powers of two; the last code is NaN)."""
    if word == "ue4m3":
        return np.asarray(_table("e4m3")[codes & 0x7F])
    return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


@dataclass(frozen=True)
class Scales:
    """The factors of a block-scaled product: their type, and how many a row of A and a column of B have."""

    word: str
    count: int

    def of(self, data: Array, byte: Array, lanes: Array) -> Array:
        """The factors [warps, lanes given, count], from registers [warps, 32]."""
        first = byte[:, :1, None].astype(np.int64) & 3
        words = np.take_along_axis(data, lanes, axis=1)[..., None]
        places = (first + np.arange(self.count)) & 3
        return scale_factors(self.word, (words >> (8 * places).astype(np.uint32) & np.uint32(0xFF)).astype(np.uint8))

    def scaled(self, a: Array, b: Array, given: list[Array]) -> tuple[Array, Array]:
        """A [warps, 16, K] and B [warps, K, 8] times their factors. `given`: the six operands."""
        data_a, byte_a, thread_a, data_b, byte_b, thread_b = given
        pair = thread_a[:, :1].astype(np.int64) % 2 * 2
        lanes_a = np.concatenate([_LANES_OF_8[:, 0] + pair, _LANES_OF_8[:, 0] + pair + 1], axis=1)  # rows 0 to 7, then 8 to 15
        lanes_b = _LANES_OF_8[:, 0] + thread_b[:, :1].astype(np.int64) % QUAD
        each = a.shape[-1] // self.count
        of_a = np.repeat(self.of(data_a, byte_a, lanes_a), each, axis=2)
        of_b = np.repeat(self.of(data_b, byte_b, lanes_b), each, axis=2)
        return a * of_a, b * of_b.transpose(0, 2, 1)


def _places(metadata: Array, selector: Array, chunks: int, *, whole: bool) -> Array:
    """The four bits of each chunk [warps, 16, chunks]. `whole`: a lane has those of one row, else of rows g and g + 8."""
    bits = metadata[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    half = chunks // 2 if chunks == ROWS else chunks
    rows = np.arange(ROWS)[:, None]
    columns = np.arange(chunks)[None]
    if whole:
        lane, place = rows // 8 + columns // half * 2, columns % half
        several = 1 if chunks == ROWS else 2  # lanes of a quad that have all of it
    else:
        lane, place = np.broadcast_to(columns // 4, (ROWS, chunks)), columns % 4 + rows // 8 * 4
        several = max(1, chunks // 4)
    first = 0 if chunks == ROWS else selector[:, :1, None].astype(np.int64) * several % QUAD
    lanes = rows % 8 * QUAD + lane + first
    return np.asarray(bits[np.arange(len(bits))[:, None, None], lanes, place])


def spread(a: Array, metadata: Array, selector: Array, bits: int) -> Array:
    """A [warps, 16, K] from its stored half, by metadata and selector [warps, 32]. `bits`: of an element."""
    depth, unit = 2 * a.shape[-1], 2 if bits == 4 else 1  # unit: elements that are there, or not, together
    chunk = 2 if bits == 32 else 4 * unit
    found = _places(metadata, selector, depth // chunk, whole=bits <= 8)
    places = (found & 3)[..., None] >> 1 if bits == 32 else np.stack([found & 3, found >> 2], axis=-1)
    dense = np.zeros((len(a), ROWS, depth // chunk, chunk // unit, unit), a.dtype)
    stored = a.reshape(len(a), ROWS, depth // chunk, -1, unit)
    np.put_along_axis(dense, np.broadcast_to(places[..., None], stored.shape).astype(np.intp), stored, axis=3)
    return dense.reshape(len(a), ROWS, depth)


@dataclass(frozen=True)
class WarpProduct:
    """One form: its shape, types, and what it has beside three matrices."""

    size: MatrixShape
    d: str
    a: Element
    b: Element
    c: str
    sparse: bool = False
    scales: Scales | None = None
    finish: Callable[[Array], Array] | None = None

    @property
    def stored(self) -> MatrixShape:
        """The shape of A as registers hold it."""
        return MatrixShape(self.size.m, self.size.n, self.size.k // (1 + self.sparse))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The registers of A, B and C, and of the metadata and its selector."""
        m, n, k = self.size.m, self.size.n, self.size.k
        return self.stored.k * m // (32 * self.a.per), k * n // (32 * self.b.per), m * n // (32 * ACCUMULATORS[self.c].per), 2 * self.sparse

    def sources(self) -> Iterator[str]:
        """The words of the source registers."""
        in_a, in_b, in_c, more = self.counts
        yield from ("b32",) * (in_a + in_b)
        yield from (ACCUMULATORS[self.c].register,) * in_c
        yield from ("b32",) * more
        yield from ("b32", "u16", "u16") * (2 if self.scales is not None else 0)

    def __call__(self, mask: Array, *registers: Array) -> tuple[Array, ...]:
        """The registers of D."""
        if len(mask) > WARPS:
            parts = [self(mask[i : i + WARPS], *(x[i : i + WARPS] for x in registers)) for i in range(0, len(mask), WARPS)]
            return tuple(np.concatenate(words) for words in zip(*parts, strict=True))
        shape, ends = mask.shape, np.cumsum(self.counts)
        a = matrix_of(registers[: ends[0]], self.a, a_index(self.stored, self.a.per), shape)
        b = matrix_of(registers[ends[0] : ends[1]], self.b, b_index(self.size, self.b.per), shape)
        c = read_c(registers[ends[1] : ends[2]], ACCUMULATORS[self.c], self.size, shape)
        if self.sparse:
            a = spread(a, registers[ends[2]], registers[ends[2] + 1], self.a.bits)
        if self.scales is not None:
            a, b = self.scales.scaled(a, b, list(registers[ends[3] :]))
        result, sums = ACCUMULATORS[self.d], multiply_integers if self.d == "s32" else multiply
        return write_d(sums(a, b, c), result, self.size, self.finish or result.finish)

    def op(self) -> Op | None:
        """The operation on warps; None where a matrix has no whole register, or a sparse form has sums of two types."""
        if not all(self.counts[:3]) or (self.sparse and self.d != self.c):
            return None
        result = ACCUMULATORS[self.d]
        return warp(self.sources(), (result.register,) * (self.size.m * self.size.n // (32 * result.per)), self)


# The forms -----------------------------------------------------------------------------------------------------------------


def _sparse(_variant: str, shape: str, d: str, a: str, b: str, c: str) -> Op | None:
    return WarpProduct(SHAPES[shape], d, ELEMENTS[a], ELEMENTS[b], c, sparse=True).op()


def _sparse_integer(_variant: str, shape: str, satfinite: str, a: str, b: str) -> Op | None:
    finish = saturated if satfinite else None
    return WarpProduct(SHAPES[shape], "s32", ELEMENTS[a], ELEMENTS[b], "s32", sparse=True, finish=finish).op()


def _kind(shape: str, d: str, a: str, b: str, c: str, *, sparse: bool, scales: Scales | None = None) -> Op | None:
    return WarpProduct(SHAPES[shape], d, _KINDS[a], _KINDS[b], c, sparse, scales).op()


def _packed(shape: str, factor_type: str, vector: str, *, sparse: bool) -> Op | None:
    """e2m1: a byte holds two. Without a word there are two factors."""
    count = int(vector.removeprefix("scale_vec::")[0]) if vector else 2
    if factor_type == "ue4m3" and count != 4:
        return None
    return WarpProduct(SHAPES[shape], "f32", _PACKED, _PACKED, "f32", sparse, Scales(factor_type, count)).op()


def _ordered(variant: str, op: Op | None) -> Op | None:
    """Kinds have no sparse form without ordered metadata."""
    return op if variant == "sp::ordered_metadata" else None


# m8n8k4 ---------------------------------------------------------------------------------------------------------------------

_LANE, _ITEM = np.arange(32)[:, None], np.arange(8)[None]
_COMPUTATION, _HIGH, _PLACE = _LANE % 16 // 4, _LANE // 16 * 4, _LANE % 4  # of a lane; each computation has a low and a high group


def _quads(registers: tuple[Array, ...], dtype: str, row: Array, column: Array, shape: tuple[int, int]) -> Array:
    """Four matrices [warps, 4, *shape] from the elements of the lanes, which have these rows and columns."""
    elements = np.ascontiguousarray(np.stack(registers, axis=-1)).view(dtype)
    out = np.empty((len(elements), 4, *shape), F64)
    out[:, np.broadcast_to(_COMPUTATION, elements.shape[1:]), row + 0 * column, column + 0 * row] = elements
    return out


def _of_accumulator(word: str) -> tuple[Array, Array]:
    """The row and column of each lane's elements of C or D."""
    if word == "f16":
        return _PLACE + _HIGH + 0 * _ITEM, _ITEM + 0 * _LANE
    return (_LANE & 1) + (_ITEM & 2) + _HIGH, (_ITEM & 4) + (_LANE & 2) + (_ITEM & 1)


def _volta(layout_a: str, layout_b: str, d: str, c: str) -> Op | None:
    """ISA "Matrix Fragments for mma.m8n8k4 with .f16 floating point type": four products, of two groups of four lanes each."""
    four = _ITEM[:, :4]
    places = _PLACE + _HIGH + 0 * four, four + 0 * _LANE  # along the major dimension of A by rows, of B by columns
    swapped = four + _HIGH, _PLACE + 0 * four
    row_a, column_a = places if layout_a == "row" else swapped
    column_b, row_b = places if layout_b == "col" else swapped
    given, result = ACCUMULATORS[c], ACCUMULATORS[d]
    count = 8 // given.per

    def fn(_mask: Array, *registers: Array) -> tuple[Array, ...]:
        a = _quads(registers[:2], "f2", row_a, column_a, (8, 4))
        b = _quads(registers[2:4], "f2", row_b, column_b, (4, 8))
        sums = np.matmul(a, b) + _quads(registers[4:], given.dtype.str, *_of_accumulator(c), (8, 8))
        rows, columns = _of_accumulator(d)
        elements = np.ascontiguousarray(result.finish(sums)[:, np.broadcast_to(_COMPUTATION, rows.shape), rows, columns])
        words = elements.view(np.uint32) if result.per == 2 else elements
        return tuple(words[..., i] for i in range(words.shape[-1]))

    return warp(("b32",) * 4 + (given.register,) * count, (result.register,) * (8 // result.per), fn)


_DENSE, _SPARSE = "mma.sync.aligned", "mma.spvariant.sync.aligned"
_MX8, _MX4, _NVF4 = (f"kind::{each}.block_scale" for each in ("mxf8f6f4", "mxf4", "mxf4nvf4"))
_ONE = Scales("ue8m0", 1)
OPERATIONS: Operations = {
    f"{_DENSE}.m8n8k4.alayout.blayout.fp.f16.f16.fp": _volta,
    f"{_DENSE}.m16n8k32.row.col.kind::f8f6f4.fp.f8f6f4.f8f6f4.fp": lambda d, a, b, c: _kind("m16n8k32", d, a, b, c, sparse=False),
    f"{_DENSE}.m16n8k32.row.col.{_MX8}{{.scale_vec::1X}}.f32.f8f6f4.f8f6f4.f32.ue8m0": lambda _, a, b: _kind(
        "m16n8k32", "f32", a, b, "f32", sparse=False, scales=_ONE
    ),
    f"{_DENSE}.m16n8k64.row.col.{_MX4}{{.scale_vec::2X}}.f32.e2m1.e2m1.f32.ue8m0": lambda v: _packed("m16n8k64", "ue8m0", v, sparse=False),
    f"{_DENSE}.m16n8k64.row.col.{_NVF4}.scale_vec.f32.e2m1.e2m1.f32.stype": lambda v, word: _packed("m16n8k64", word, v, sparse=False),
    f"{_SPARSE}.half_shape.row.col.fp.f16.f16.fp": lambda v, shape, d, c: _sparse(v, shape, d, "f16", "f16", c),
    f"{_SPARSE}.half_shape.row.col.f32.bf16.bf16.f32": lambda v, shape: _sparse(v, shape, "f32", "bf16", "bf16", "f32"),
    f"{_SPARSE}.tf32_shape.row.col.f32.tf32.tf32.f32": lambda v, shape: _sparse(v, shape, "f32", "tf32", "tf32", "f32"),
    f"{_SPARSE}.m16n8k64.row.col.f32.f8.f8.f32": lambda v, a, b: _sparse(v, "m16n8k64", "f32", a, b, "f32"),
    f"{_SPARSE}.byte_shape.row.col{{.satfinite}}.s32.byte.byte.s32": _sparse_integer,
    f"{_SPARSE}.nibble_shape.row.col{{.satfinite}}.s32.nibble.nibble.s32": _sparse_integer,
    f"{_SPARSE}.m16n8k64.row.col.kind::f8f6f4.fp.f8f6f4.f8f6f4.fp": lambda v, d, a, b, c: _ordered(
        v, _kind("m16n8k64", d, a, b, c, sparse=True)
    ),
    f"{_SPARSE}.m16n8k64.row.col.{_MX8}{{.scale_vec::1X}}.f32.f8f6f4.f8f6f4.f32.ue8m0": lambda v, _, a, b: _ordered(
        v, _kind("m16n8k64", "f32", a, b, "f32", sparse=True, scales=_ONE)
    ),
    f"{_SPARSE}.m16n8k128.row.col.{_MX4}{{.scale_vec::2X}}.f32.e2m1.e2m1.f32.ue8m0": lambda v, n: _ordered(
        v, _packed("m16n8k128", "ue8m0", n, sparse=True)
    ),
    f"{_SPARSE}.m16n8k128.row.col.{_NVF4}.scale_vec.f32.e2m1.e2m1.f32.stype": lambda v, n, word: _ordered(
        v, _packed("m16n8k128", word, n, sparse=True)
    ),
}
