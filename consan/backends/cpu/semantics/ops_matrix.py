"""Warp matrix instructions on registers: mma.sync and movmatrix.

PTX ISA "Matrix multiply-accumulate operation using mma instruction". The fragment layouts of all m8n8 and m16n8 shapes follow one
rule (lane = 4*group + t, `per` elements in a register): register r of A holds row group + 8*(r & 1 if M is 16), columns
4*per*(r >> 1) + per*t + j; register r of B holds rows 4*per*r + per*t + j of column group; the accumulators hold columns 2*t, 2*t+1 of row
group, then of row group + 8.

Arithmetic: floating products are exact and summed with C in f64, then rounded once to f32 (or f16). The ISA leaves order, rounding and
subnormals open ("at least single precision"); tensor cores truncate aligned partial sums, so the hardware may differ by a few units in
the last place of the largest term (about k * 2**-23 of it). Integer forms are exact; .f64 accumulates with fused multiply-add in
order of k; the documented contract is one rounding per step.
ops_sparse.py has m8n8k4 with f16, sparse forms (mma.sp), kinds and block scaling; ops_wmma.py has wmma.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from consan.dataclass import dataclass

from .ops_base import Array, DType, Function, Op, Operations, canonicalize, warp
from .ops_half import widen_bf16
from .ops_minifloat import FORMATS
from .ops_rounding import F32, F64, fma64

U32, I64 = np.uint32, np.int64
WARPS = 32  # warps at a time: see ops_base.BLOCK
GROUP, THREAD = np.arange(32) >> 2, np.arange(32) & 3


@dataclass(frozen=True)
class Element:
    """A multiplicand type: its width, the register word that carries it, and how a word's elements become numbers."""

    bits: int
    register: str
    dtype: DType
    decode: Callable[[Array], Array]

    @property
    def per(self) -> int:
        """Elements in one register."""
        return max(1, 32 // self.bits)


def _nibbles(signed: bool) -> Callable[[Array], Array]:
    """4-bit elements: a byte holds two, the lower first."""

    def decode(a: Array) -> Array:
        both = np.stack([a & 15, a >> 4], axis=-1).reshape(*a.shape[:-1], -1).astype(I64)
        return np.where(both > 7, both - 16, both) if signed else both

    return decode


def _bit_elements(a: Array) -> Array:
    return np.unpackbits(a, axis=-1, bitorder="little").astype(I64)


def _tf32(a: Array) -> Array:
    """The tensor core ignores the lower 13 bits of the register."""
    return np.asarray(a & U32(0xFFFFE000)).view(F32).astype(F64)


def _mini(name: str) -> Callable[[Array], Array]:
    table = FORMATS[name].decoded.astype(F64)
    return lambda a: table[a]


def _as_f64(a: Array) -> Array:
    return a.astype(F64)


def _as_i64(a: Array) -> Array:
    return a.astype(I64)


def _bf16(a: Array) -> Array:
    return widen_bf16(a).astype(F64)


ELEMENTS: dict[str, Element] = {
    "f16": Element(16, "b32", np.dtype(np.float16), _as_f64),
    "bf16": Element(16, "b32", np.dtype(np.uint16), _bf16),
    "tf32": Element(32, "b32", np.dtype(np.uint32), _tf32),
    "f64": Element(64, "f64", np.dtype(np.float64), _as_f64),
    "s8": Element(8, "b32", np.dtype(np.int8), _as_i64),
    "u8": Element(8, "b32", np.dtype(np.uint8), _as_i64),
    "s4": Element(4, "b32", np.dtype(np.uint8), _nibbles(signed=True)),
    "u4": Element(4, "b32", np.dtype(np.uint8), _nibbles(signed=False)),
    "b1": Element(1, "b32", np.dtype(np.uint8), _bit_elements),
    "e4m3": Element(8, "b32", np.dtype(np.uint8), _mini("e4m3")),
    "e5m2": Element(8, "b32", np.dtype(np.uint8), _mini("e5m2")),
}


@dataclass(frozen=True)
class MatrixShape:
    """m, n and k of an instruction."""

    m: int
    n: int
    k: int


SHAPES: dict[str, MatrixShape] = {
    f"m{m}n8k{k}": MatrixShape(m, 8, k) for m, ks in ((8, (4, 16, 32, 128)), (16, (4, 8, 16, 32, 64, 128, 256))) for k in ks
}


# Gathering fragments into matrices ---------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def a_index(shape: MatrixShape, per: int) -> Array:
    """Flat position (lane * elements + element) of A[row, column] in the fragments, shape [m, k]."""
    rows = shape.m // 8
    count = shape.m * shape.k // 32
    index = np.empty((shape.m, shape.k), np.intp)
    for e in range(count):
        register, j = divmod(e, per)
        row = GROUP + 8 * (register % rows)
        index[row, 4 * per * (register // rows) + per * THREAD + j] = np.arange(32) * count + e
    return index


@lru_cache(maxsize=256)
def b_index(shape: MatrixShape, per: int) -> Array:
    """Flat position of B[row, column], shape [k, n]."""
    count = shape.k * shape.n // 32
    index = np.empty((shape.k, shape.n), np.intp)
    for e in range(count):
        register, j = divmod(e, per)
        index[4 * per * register + per * THREAD + j, GROUP] = np.arange(32) * count + e
    return index


@lru_cache(maxsize=256)
def c_index(shape: MatrixShape) -> Array:
    """Flat position of C[row, column], shape [m, n]."""
    count = shape.m * shape.n // 32
    index = np.empty((shape.m, shape.n), np.intp)
    for e in range(count):
        index[GROUP + 8 * (e >> 1), 2 * THREAD + (e & 1)] = np.arange(32) * count + e
    return index


@lru_cache(maxsize=256)
def _c_scatter(shape: MatrixShape) -> Array:
    """Inverse of c_index: for each (lane, element) its position in the row-major matrix."""
    return np.argsort(c_index(shape).reshape(-1))


def _fragment(registers: tuple[Array, ...], dtype: DType, shape: tuple[int, ...]) -> Array:
    """Registers side by side, viewed as elements: [W, 32, elements]."""
    side_by_side = np.empty((*shape, len(registers)), registers[0].dtype)
    for i, register in enumerate(registers):
        side_by_side[..., i] = register
    return side_by_side.view(dtype)


def matrix_of(registers: tuple[Array, ...], element: Element, index: Array, shape: tuple[int, ...]) -> Array:
    """The numbers [W, rows, columns] of a matrix that has its elements in these places of the fragments."""
    numbers = element.decode(_fragment(registers, element.dtype, shape))
    flat = numbers.reshape(shape[0], -1)
    return np.take(flat, index, axis=1)


# Accumulators ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accumulator:
    """Type of C and D: register word, element dtype of a register, elements in it, and how a sum is rounded."""

    register: str
    dtype: DType
    per: int
    carrier: DType
    finish: Callable[[Array], Array]


def _finish_f32(x: Array) -> Array:
    return canonicalize(x.astype(F32), "f32")


def _finish_f16(x: Array) -> Array:
    return canonicalize(x.astype(np.float16), "f16")


def _finish_s32(x: Array) -> Array:
    return x.astype(np.int32)


def saturated(x: Array) -> Array:
    """Sums clamped to 32 bits."""
    return np.clip(x, -(1 << 31), (1 << 31) - 1).astype(np.int32)


ACCUMULATORS: dict[str, Accumulator] = {
    "f32": Accumulator("f32", np.dtype(F32), 1, np.dtype(F64), _finish_f32),
    "f16": Accumulator("b32", np.dtype(np.float16), 2, np.dtype(F64), _finish_f16),
    "s32": Accumulator("s32", np.dtype(np.int32), 1, np.dtype(I64), _finish_s32),
    "f64": Accumulator("f64", np.dtype(F64), 1, np.dtype(F64), np.asarray),
}


def read_c(registers: tuple[Array, ...], accumulator: Accumulator, size: MatrixShape, shape: tuple[int, ...]) -> Array:
    """The numbers of C [W, m, n]."""
    numbers = _fragment(registers, accumulator.dtype, shape).astype(accumulator.carrier)
    return np.take(numbers.reshape(shape[0], -1), c_index(size), axis=1)


def write_d(matrix: Array, accumulator: Accumulator, size: MatrixShape, finish: Callable[[Array], Array]) -> tuple[Array, ...]:
    """The registers of D [W, m, n]."""
    warps = matrix.shape[0]
    flat = np.take(finish(matrix).reshape(warps, -1), _c_scatter(size), axis=1)
    elements = flat.reshape(warps, 32, size.m * size.n // 32)
    if accumulator.per == 2:
        elements = elements.view(U32)
    return tuple(elements[..., i] for i in range(elements.shape[-1]))


# Products ----------------------------------------------------------------------------------------------------------


def multiply(a: Array, b: Array, c: Array) -> Array:
    """A x B + C of matrices [W, M, K], [W, K, N] and [W, M, N]."""
    return np.asarray(np.matmul(a, b) + c)


def multiply_integers(a: Array, b: Array, c: Array) -> Array:
    """The same for integers."""
    # exact in f64 (products below 2**16, at most 256 of them), and the matrix product of f64 is the fast one
    return np.asarray(np.matmul(a.astype(F64), b.astype(F64)).astype(I64) + c)


def fused(mode: str) -> Function:
    """The same by fused multiply-add, with a rounding mode."""

    def product(a: Array, b: Array, c: Array) -> Array:
        for k in range(a.shape[-1]):
            column, row = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
            c = fma64(column, row, c, mode)
        return c

    return product


def popcount_product(operation: str) -> Function:
    """The count of bits that a row of A and a column of B have in common, or in which they differ, and C."""

    def product(a: Array, b: Array, c: Array) -> Array:
        both = np.matmul(a.astype(F64), b.astype(F64)).astype(I64)
        if operation == "and":
            return np.asarray(both + c)
        return np.asarray(a.sum(axis=2, keepdims=True) + b.sum(axis=1, keepdims=True) - 2 * both + c)

    return product


def _build(
    size: MatrixShape, types: tuple[str, str, str, str], product: Function, finish: Callable[[Array], Array] | None = None
) -> Op | None:
    """The Op of one shape and type combination; operands are the registers of A, then B, then C."""
    d_type, a_type, b_type, c_type = types
    first, second, accumulator, result = ELEMENTS[a_type], ELEMENTS[b_type], ACCUMULATORS[c_type], ACCUMULATORS[d_type]
    counts = [
        size.m * size.k // (32 * first.per),
        size.k * size.n // (32 * second.per),
        size.m * size.n // (32 * accumulator.per),
    ]
    if not all(counts) or first.bits != second.bits:
        return None
    in_a, in_b = a_index(size, first.per), b_index(size, second.per)
    end_a, end_b = counts[0], counts[0] + counts[1]

    def fn(mask: Array, *registers: Array) -> tuple[Array, ...]:
        if len(mask) > WARPS:
            parts = [fn(mask[i : i + WARPS], *(x[i : i + WARPS] for x in registers)) for i in range(0, len(mask), WARPS)]
            return tuple(np.concatenate(words) for words in zip(*parts, strict=True))
        shape = mask.shape
        a = matrix_of(registers[:end_a], first, in_a, shape)
        b = matrix_of(registers[end_a:end_b], second, in_b, shape)
        c = read_c(registers[end_b:], accumulator, size, shape)
        return write_d(product(a, b, c), result, size, finish or result.finish)

    sources = (first.register,) * counts[0] + (second.register,) * counts[1] + (accumulator.register,) * counts[2]
    return warp(sources, (result.register,) * (size.m * size.n // (32 * result.per)), fn)


# The forms of mma -----------------------------------------------------------------------------------------------------


def _float(shape: str, d: str, a: str, b: str, c: str) -> Op | None:
    return _build(SHAPES[shape], (d, a, b, c), multiply)


def _integer(shape: str, satfinite: str, a: str, b: str) -> Op | None:
    return _build(SHAPES[shape], ("s32", a, b, "s32"), multiply_integers, saturated if satfinite else None)


def _bits(shape: str, operation: str) -> Op | None:
    return _build(SHAPES[shape], ("s32", "b1", "b1", "s32"), popcount_product(operation))


def _double(shape: str, mode: str) -> Op | None:
    return _build(SHAPES[shape], ("f64", "f64", "f64", "f64"), fused(mode or "rn"))


# movmatrix -----------------------------------------------------------------------------------------------------------


def _transpose(_mask: Array, a: Array) -> Array:
    """8x8 matrix of b16, one register per lane: row lane / 4, columns 2 * (lane % 4) and the next."""
    halves = np.ascontiguousarray(np.broadcast_to(a, _mask.shape)).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(halves.transpose(0, 2, 1)).reshape(-1, 64).view(U32)


def _half(shape: str, d: str, c: str) -> Op | None:
    return _float(shape, d, "f16", "f16", c)


OPERATIONS: Operations = {
    "mma.sync.aligned.half_shape.row.col.fp.f16.f16.fp": _half,
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32": lambda: _float("m16n8k4", "f32", "tf32", "tf32", "f32"),
    "mma.sync.aligned.m16n8k8.row.col.f32.alternate.alternate.f32": lambda a, b: _float("m16n8k8", "f32", a, b, "f32"),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": lambda: _float("m16n8k16", "f32", "bf16", "bf16", "f32"),
    "mma.sync.aligned.f8_shape.row.col.fp.f8.f8.fp": _float,
    "mma.sync.aligned.byte_shape.row.col{.satfinite}.s32.byte.byte.s32": _integer,
    "mma.sync.aligned.nibble_shape.row.col{.satfinite}.s32.nibble.nibble.s32": _integer,
    "mma.sync.aligned.bit_shape.row.col.s32.b1.b1.s32.bitOp.popc": _bits,
    "mma.sync.aligned.f64_shape.row.col.f64.f64.f64.f64{.rnd}": _double,
    "movmatrix.sync.aligned.m8n8.trans.b16": lambda: warp("b32", "b32", _transpose),
}
