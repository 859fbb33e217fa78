"""Matrix descriptors of wgmma: which bytes of shared memory an operand is made of.

PTX ISA, "Asynchronous warpgroup level matrix shared memory layout": "Matrix Descriptor Format", "Strides", "Canonical Layouts".
Everything here is arithmetic on numbers, without state of the machine, so that it can be ported to another language.

An operand is a matrix of `rows` (64 of A, N of B) by K elements, in whole chunks of 16 bytes: a chunk is 16 / element_bytes
neighbours along the major direction. With T elements in a chunk, W chunks in a line of the swizzle pattern (1, 2, 4 or 8 for
modes none, 32, 64 and 128 bytes), and all divisions rounding down:

    K-major, chunk c of row r:      none        start + (r % 8) * 16 + (r / 8) * stride + c * leading
                                    swizzled    start + (r % 8) * 16 W + (r / 8) * stride + c * 16
    MN-major, chunk q = r / T       none        start + (k % 8) * 16 + (k / 8) * leading + q * stride
    of rows qT .. qT+T-1 at k:      swizzled    start + (k % 8) * 16 W + (k / 8) * stride + (q / W) * leading + (q % W) * 16

A swizzled address then has its lowest chunk bits changed by the number of the 128-byte line that it lies in:

    address ^= (((address >> 7) - base_offset) & (W - 1)) << 4

The line is that of the address itself, not of an offset from the start: that is why programs step along K by adding to the
start address inside a pattern. `leading` has no meaning for a swizzled K-major operand.

Not handled: sums beyond 256 KiB (they do not wrap around here). The effect of a base offset other than 0 is inferred from the
ISA's formula for it, which says where the pattern starts; no program of the test corpus uses one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

Array = npt.NDArray[Any]
CHUNK = 16
K_MAJOR, MN_MAJOR = 0, 1  # the values of imm-trans-a and imm-trans-b
_WIDTHS = np.array([1, 8, 4, 2], np.int64)  # chunks in a line of the pattern, by swizzle mode


@dataclass(frozen=True)
class Fields:
    """The fields of descriptors, in bytes; `width` in chunks."""

    start: Array
    leading: Array
    stride: Array
    base: Array
    width: Array


def _offset(descriptor: Array, bit: int) -> Array:
    return np.asarray((descriptor >> np.uint64(bit) & np.uint64(0x3FFF)) << np.uint64(4)).astype(np.int64)


def fields(descriptor: npt.ArrayLike) -> Fields:
    """The fields of an array of descriptors."""
    d = np.asarray(descriptor, np.uint64)
    base = (d >> np.uint64(49) & np.uint64(7)).astype(np.int64)
    return Fields(_offset(d, 0), _offset(d, 16), _offset(d, 32), base, _WIDTHS[(d >> np.uint64(62)).astype(np.intp)])


def _linear(f: Fields, line: Array, chunk: Array, major: int) -> Array:
    """Addresses before swizzling. `line`: row if K-major, k if MN-major; `chunk`: number of the chunk along the other direction."""
    inner, outer = line % 8 * CHUNK * f.width, line // 8
    if major == K_MAJOR:
        along = np.where(f.width == 1, chunk * f.leading, chunk * CHUNK)
        return np.asarray(f.start + inner + outer * f.stride + along)
    plain = outer * f.leading + chunk * f.stride
    swizzled = outer * f.stride + chunk // f.width * f.leading + chunk % f.width * CHUNK
    return np.asarray(f.start + inner + np.where(f.width == 1, plain, swizzled))


def chunk_addresses(descriptor: npt.ArrayLike, rows: int, elements: int, element_bytes: int, major: int, first: npt.ArrayLike = 0) -> Array:
    """Addresses of the chunks of `rows` rows from `first` on (a number per descriptor) and `elements` elements of K.

    Shape: that of `descriptor`, then [rows, chunks of a row] if K-major, else [chunks of a column, elements].
    """
    per = CHUNK // element_bytes
    f = fields(np.asarray(descriptor, np.uint64)[..., None, None])
    begin = np.asarray(first, np.int64)[..., None, None]
    if major == K_MAJOR:
        line, chunk = begin + np.arange(rows)[:, None], np.arange(-(-elements // per))
    else:
        line, chunk = np.arange(elements), begin // per + np.arange(-(-rows // per))[:, None]
    address = _linear(f, line, chunk, major)
    return np.asarray(address ^ ((address >> 7) - f.base & f.width - 1) << 4)
