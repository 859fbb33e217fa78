"""The arithmetic of wgmma: forms, fragments in registers, matrices in shared memory, products.

PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" and "wgmma.mma_async". Per warp, with lane = 4 g + t: register
2 c + h of A holds row 8 h + g, columns 4 p c + p t + j for each of the p elements j in a register; element 4 j + 2 h + b of D,
counted over all registers, holds row 8 h + g, column 8 j + 2 t + b.

A sparse product has twice the depth. Its A is stored as half a row, in the layout of a dense A. Metadata has 4 bits for each
chunk of a row, of four elements or of two (tf32): the places of the elements that are stored ("Sparse matrix storage"). With 8
bits an element a lane has those of half a row, else of half of two rows, and the selector names the pair of lanes in each four
that has them (`_places`).

Arithmetic is that of `mma` in ops_matrix.py: floating products are exact, summed with the accumulator in f64 and rounded once
per instruction to f32 or f16; integers are exact, then wrapped or clamped. The chip's order of accumulation is unspecified and
differs: results agree to a few units in the last place of the largest term.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .descriptors import K_MAJOR
from .ops_matrix import ACCUMULATORS, ELEMENTS, Element
from .ops_rounding import F64

Array = npt.NDArray[Any]
ROWS = 16  # of A and D, for each warp

# K, types of D, and the number of constant operands that follow scale-d: signs of A and B, and for 16 bits their orders.
_FLOATS: dict[tuple[str, str], tuple[int, tuple[str, ...], int]] = {
    ("f16", "f16"): (16, ("f16", "f32"), 4),
    ("bf16", "bf16"): (16, ("f32",), 4),
    ("tf32", "tf32"): (8, ("f32",), 2),
    **{(a, b): (32, ("f16", "f32"), 2) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")},
}
_INTEGERS: dict[tuple[str, str], tuple[int, tuple[str, ...], int]] = {
    **{(a, b): (32, ("s32",), 0) for a in ("s8", "u8") for b in ("s8", "u8")},
    ("b1", "b1"): (256, ("s32",), 0),
}
_TYPES = _FLOATS | _INTEGERS
_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_S32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Form:
    """One form of wgmma.mma_async."""

    n: int
    d: str
    a: Element
    b: Element
    negate: bool  # the product as a whole: two signs cancel
    major_a: int
    major_b: int
    satfinite: bool
    sparse: bool = False

    @property
    def depth(self) -> int:
        """Elements of K."""
        return (256 // self.b.bits) << self.sparse

    def spread(self, a: Array, metadata: Array, selector: int) -> Array:
        """A [warps, 16, K] from the elements [warps, 16, K / 2] that are stored, and the metadata [warps, 32] of the lanes."""
        chunks = self.depth // (2 if self.a.bits == 32 else 4)
        found = _places(metadata, selector, whole=self.a.bits == 8)
        places = (found & 3)[..., None] >> 1 if self.a.bits == 32 else np.stack([found & 3, found >> 2], -1)
        dense = np.zeros((len(a), ROWS, chunks, self.depth // chunks), a.dtype)
        np.put_along_axis(dense, places.astype(np.intp), a.reshape(len(a), ROWS, chunks, -1), axis=-1)
        return dense.reshape(len(a), ROWS, self.depth)

    @property
    def count_d(self) -> int:
        """Registers of the accumulator."""
        return self.n // (2 * ACCUMULATORS[self.d].per)

    def fragment_a(self, words: Array) -> Array:
        """A [warps, 16, K] from registers [4, warps, 32]."""
        warps = words.shape[1]
        numbers = self.a.decode(words.view(self.a.dtype).reshape(2, 2, warps, 8, 4, -1))  # c h warp g t j
        return np.asarray(numbers.transpose(2, 1, 3, 0, 4, 5).reshape(warps, ROWS, -1))

    def fragment_d(self, words: Array) -> Array:
        """D [warps, 16, N] from registers [count, warps, 32], as numbers to calculate with."""
        accumulator = ACCUMULATORS[self.d]
        warps, blocks = words.shape[1], self.n // 8
        numbers = words.view(accumulator.dtype).astype(accumulator.carrier)
        if accumulator.per == 2:
            split = numbers.reshape(blocks, 2, warps, 8, 4, 2).transpose(2, 1, 3, 0, 4, 5)  # j h warp g t b
        else:
            split = numbers.reshape(blocks, 2, 2, warps, 8, 4).transpose(3, 1, 4, 0, 5, 2)  # j h b warp g t
        return np.asarray(split.reshape(warps, ROWS, self.n))

    def registers_of(self, result: Array) -> Array:
        """Registers [count, lanes] from D [warps, 16, N]."""
        accumulator = ACCUMULATORS[self.d]
        warps, blocks = len(result), self.n // 8
        if self.satfinite:
            result = np.clip(result, _S32.min, _S32.max)
        split = accumulator.finish(result).reshape(warps, 2, 8, blocks, 4, 2)  # warp h g j t b
        order = (3, 1, 0, 2, 4, 5) if accumulator.per == 2 else (3, 1, 5, 0, 2, 4)
        return np.ascontiguousarray(split.transpose(order)).view(np.uint32).reshape(self.count_d, -1)


def _places(metadata: Array, selector: int, *, whole: bool) -> Array:
    """The four bits of each chunk [warps, 16, chunks]. `whole`: each lane has half of one row; else of rows g and g + 8.

    ISA "Matrix fragments for warpgroup-level multiply-accumulate operation with sparse matrix A": its figures, as CuTe's
    `ELayout_64x64`, `ELayout_64x32` and `ELayout_64x16` have them in text.
    """
    bits = metadata[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    lanes = bits.reshape(len(metadata), 8, 2, 2, 8)  # warp g, two bits of t
    if whole:
        return np.asarray(lanes.transpose(0, 3, 1, 2, 4).reshape(len(metadata), ROWS, -1))
    halves = lanes[:, :, selector].reshape(len(metadata), 8, 2, 2, 4)  # warp g t h
    return np.asarray(halves.transpose(0, 3, 1, 2, 4).reshape(len(metadata), ROWS, -1))


def selectors(form: Form) -> tuple[int, ...]:
    """The values of the sparsity selector that are defined."""
    return (0,) if form.a.bits == 8 else (0, 1)


def form_of(modifiers: tuple[str, ...], from_registers: bool, constants: list[int], *, sparse: bool = False) -> Form | None:
    """The form that the modifiers of an opcode name, with the constant operands that follow scale-d; None if there is none."""
    words = [word for word in modifiers if word not in ("sp", "sync", "aligned", "satfinite")]
    shape, (d, a, b) = _SHAPE.match(words[0]), words[1:4]
    assert shape is not None
    depth, results, operands = _TYPES.get((a, b), (0, (), 0))
    integer, satfinite = (a, b) in _INTEGERS, "satfinite" in modifiers
    n, k = map(int, shape.groups())
    exact = len(constants) == operands - (from_registers and operands == 4)
    exact = exact and k == depth << sparse and not (sparse and a == "b1")
    if not exact or d not in results or not _columns_exist(n, integer) or (satfinite and a[1:] != "8"):
        return None
    signs, orders = constants[:2], constants[2:]
    major_a = orders.pop(0) if len(orders) == 2 else K_MAJOR
    major_b = orders[0] if orders else K_MAJOR
    if not {1, -1}.issuperset(signs) or not {0, 1}.issuperset((major_a, major_b)):
        return None
    return Form(n, d, ELEMENTS[a], ELEMENTS[b], signs.count(-1) == 1, major_a, major_b, satfinite, sparse)


def _columns_exist(n: int, integer: bool) -> bool:
    return n % 8 == 0 and 8 <= n <= 256 and (not integer or n <= 32 or n % 16 == 0)


def matrix_of(chunks: Array, element: Element, major: int) -> Array:
    """Numbers [..., rows, K] from chunks [..., rows, chunks of a row], or [..., chunks of a column, K]."""
    numbers = element.decode(chunks[..., None].view(element.dtype))
    if major == K_MAJOR:
        return numbers.reshape(*chunks.shape[:-1], -1)
    swapped = np.swapaxes(numbers, -1, -2)
    return swapped.reshape(*chunks.shape[:-2], -1, chunks.shape[-1])


def multiply(form: Form, a: Array, b: Array, which: Array) -> Array:
    """Products [warps, 16, N] of A [warps, 16, K] and, for each warp, one of several B [matrices, N, K]."""
    result = np.empty((len(a), ROWS, form.n), F64)
    factors = a.astype(F64, copy=False)
    for number, columns in enumerate(_transposed(b)):
        mine = which == number
        if mine.any():
            result[mine] = (factors[mine].reshape(-1, a.shape[-1]) @ columns).reshape(-1, ROWS, form.n)
    if form.negate:
        np.negative(result, result)
    # integer sums are below 2**53: exact in f64, whose matrix product is the fast one
    return result.astype(ACCUMULATORS[form.d].carrier, copy=False)


def _transposed(b: Array) -> Iterable[Array]:
    return (matrix.T.astype(F64, copy=False) for matrix in b)
