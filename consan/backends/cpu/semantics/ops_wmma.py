"""wmma.mma (PTX ISA "Matrix multiply-accumulate operation using wmma instructions").

Which elements of a matrix a lane holds is unspecified. Here, the fragments of a warp one after the other are the matrix row by row, and
again from its beginning where they have room for more elements than it has (f16); B of elements below a byte is column by column.
wmma.py loads and stores them so. Arithmetic is that of ops_matrix.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from consan.instrument.isa.tiles import extents_of

from .ops_base import Array, DType, Function, Op, Operations, warp
from .ops_matrix import ACCUMULATORS, ELEMENTS, WARPS, Element, fused, multiply, multiply_integers, popcount_product, saturated

_REGISTERS_OF_F16 = 8  # of A and B, whatever the shape


def _count(element: Element, name: str, size: int) -> int:
    """The registers of a fragment; 0 of a shape that does not exist for the type."""
    if name != "f16":
        return size // (32 * element.per)
    return _REGISTERS_OF_F16 if size <= _REGISTERS_OF_F16 * 32 * element.per else 0


def _matrix(registers: tuple[Array, ...], dtype: DType, warps: int, rows: int, items: int) -> Array:
    """A matrix as registers hold it: [warps, rows, items of a row]. An item holds one element, or several smaller ones."""
    side_by_side = np.empty((warps, 32, len(registers)), registers[0].dtype)
    for i, register in enumerate(registers):
        side_by_side[..., i] = register
    return side_by_side.reshape(warps, -1).view(dtype)[:, : rows * items].reshape(warps, rows, items)


def _items(element: Element, columns: int) -> int:
    return columns * element.bits // (8 * element.dtype.itemsize)


def _build(shape: str, types: tuple[str, str, str, str], sums: Function, finish: Callable[[Array], Array] | None = None) -> Op | None:
    m, n, k = extents_of(shape)
    d_type, a_type, b_type, c_type = types
    first, second, accumulator, result = ELEMENTS[a_type], ELEMENTS[b_type], ACCUMULATORS[c_type], ACCUMULATORS[d_type]
    counts = _count(first, a_type, m * k), _count(second, b_type, k * n), m * n // (32 * accumulator.per)
    if not all(counts):
        return None
    end_a, end_b = counts[0], counts[0] + counts[1]

    def fn(mask: Array, *registers: Array) -> tuple[Array, ...]:
        if len(mask) > WARPS:
            parts = [fn(mask[i : i + WARPS], *(x[i : i + WARPS] for x in registers)) for i in range(0, len(mask), WARPS)]
            return tuple(np.concatenate(words) for words in zip(*parts, strict=True))
        warps = len(mask)
        a = first.decode(_matrix(registers[:end_a], first.dtype, warps, m, _items(first, k)))
        lines, along = (n, k) if second.bits < 8 else (k, n)
        b = second.decode(_matrix(registers[end_a:end_b], second.dtype, warps, lines, _items(second, along)))
        b = b.transpose(0, 2, 1) if second.bits < 8 else b
        c = _matrix(registers[end_b:], accumulator.dtype, warps, m, n).astype(accumulator.carrier)
        flat = (finish or result.finish)(sums(a, b, c)).reshape(warps, 32, -1)
        words = flat.view(np.uint32) if result.per == 2 else flat
        return tuple(words[..., i] for i in range(words.shape[-1]))

    sources = (first.register,) * counts[0] + (second.register,) * counts[1] + (accumulator.register,) * counts[2]
    return warp(sources, (result.register,) * (m * n // (32 * result.per)), fn)


def _half(_a: str, _b: str, shape: str, d: str, c: str) -> Op | None:
    return _build(shape, (d, "f16", "f16", c), multiply)


def _alternate(_a: str, _b: str, shape: str, a: str, b: str) -> Op | None:
    return _build(shape, ("f32", a, b, "f32"), multiply)


def _integer(_a: str, _b: str, shape: str, a: str, b: str, satfinite: str) -> Op | None:
    return _build(shape, ("s32", a, b, "s32"), multiply_integers, saturated if satfinite else None)


def _bits(operation: str, shape: str) -> Op | None:
    return _build(shape, ("s32", "b1", "b1", "s32"), popcount_product(operation))


def _double(_a: str, _b: str, shape: str, mode: str) -> Op | None:
    return _build(shape, ("f64", "f64", "f64", "f64"), fused(mode or "rn"))


OPERATIONS: Operations = {
    "wmma.mma.sync.aligned.alayout.blayout.shape.fp.fp": _half,
    "wmma.mma.sync.aligned.alayout.blayout.shape.s32.integer.integer.s32{.satfinite}": _integer,
    "wmma.mma.sync.aligned.alayout.blayout.shape.f32.alternate.alternate.f32": _alternate,
    "wmma.mma.bitOp.popc.sync.aligned.row.col.shape.s32.b1.b1.s32": _bits,
    "wmma.mma.sync.aligned.alayout.blayout.shape{.rnd}.f64.f64.f64.f64": _double,
}
