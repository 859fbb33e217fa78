"""What the PTX ISA says of wgmma, element by element and apart from the machine's own code: layouts, fragments, encodings.

The layouts are the canonical ones of "Asynchronous warpgroup level matrix shared memory layout", written as the CuTe tuples
of its table: an offset in elements is a sum over mixed-radix digits of the coordinates, then a swizzle of the byte address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MODES = {0: 0, 32: 3, 64: 2, 128: 1}  # swizzle in bytes -> descriptor field
BITS = {0: 0, 32: 1, 64: 2, 128: 3}  # -> B of Swizzle<B, 4, 3>


@dataclass(frozen=True)
class Layout:
    """A matrix of rows (M or N) x depth (K) in shared memory at `base`, `nbytes` per element, with its two byte offsets."""

    base: int
    nbytes: int
    swizzle: int
    mn_major: bool
    leading: int
    stride: int
    base_offset: int = 0

    @property
    def descriptor(self) -> int:
        """The matrix descriptor."""
        fields = self.base >> 4 | (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | self.base_offset << 49
        return fields | MODES[self.swizzle] << 62

    def linear(self, mn: int, k: int) -> int:
        """Byte offset of an element in the canonical layout without swizzling."""
        t = 16 // self.nbytes
        w = max(1, self.swizzle // 16)
        lbo, sbo = self.leading // self.nbytes, self.stride // self.nbytes
        if not self.mn_major:
            # ((8,m),(T,2k)) : ((wT,SBO),(1,LBO or T))
            offset = mn % 8 * w * t + mn // 8 * sbo + k % t + k // t * (t if self.swizzle else lbo)
        elif self.swizzle:
            # ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO))
            offset = mn % t + mn // t % w * t + mn // (t * w) * lbo + k % 8 * w * t + k // 8 * sbo
        else:
            # ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO))
            offset = mn % t + mn // t * sbo + k % 8 * t + k // 8 * lbo
        return offset * self.nbytes

    def address(self, mn: int, k: int) -> int:
        """Byte address of an element."""
        where = self.base + self.linear(mn, k)
        pattern = where - (self.base_offset << 7)
        return where ^ (pattern >> 7 & ((1 << BITS[self.swizzle]) - 1)) << 4


def tile(base: int, nbytes: int, swizzle: int, mn_major: bool, rows: int, slices: int) -> tuple[Layout, int, int]:
    """A layout with gaps that hold nothing, what a step of 32 bytes (or its elements) along K adds to the address, and its end."""
    per = 16 // nbytes
    depth = slices * 2 * per  # elements of K
    w = swizzle // 16
    if not swizzle:
        if mn_major:
            stride = 144
            leading = stride * -(-rows // per) + 16
            return Layout(base, nbytes, 0, True, leading, stride), leading * (depth // 8 // slices), base + leading * (depth // 8)
        leading = 144
        stride = leading * 2 * slices + 32
        return Layout(base, nbytes, 0, False, leading, stride), 2 * leading, base + stride * (rows // 8)
    pattern = 128 * w
    if not mn_major:
        return Layout(base, nbytes, swizzle, False, 16, 2 * pattern), 32, base + 2 * pattern * (rows // 8)
    leading = pattern * (-(-depth // 8) + 1)
    step = pattern * (depth // 8 // slices)
    return Layout(base, nbytes, swizzle, True, leading, pattern), step, base + leading * -(-rows // (per * w))


def slices_of(swizzle: int, *, mn_major: bool) -> int:
    """How many k-slices fit without leaving a line of the pattern (K-major); two are enough elsewhere."""
    return 2 if mn_major else {32: 1, 128: 4}.get(swizzle, 2)


def store(image: Array, layout: Layout, codes: Array, origin: int) -> None:
    """Put a matrix [rows, depth] of element codes into an image of shared memory that starts at address `origin`."""
    rows, depth = codes.shape
    raw = np.ascontiguousarray(codes).view(np.uint8).reshape(rows, depth, layout.nbytes)
    for mn in range(rows):
        for k in range(depth):
            at = layout.address(mn, k) - origin
            image[at : at + layout.nbytes] = raw[mn, k]


# Encodings: small integers are exact in every type --------------------------------------------------------------------

_E4M3 = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48}
_E5M2 = {0: 0x00, 1: 0x3C, 2: 0x40, 3: 0x42, 4: 0x44}


def _mini(table: dict[int, int]) -> Callable[[Array], Array]:
    return lambda x: np.array([table[abs(int(v))] | (0x80 if v < 0 else 0) for v in x.flat], np.uint8).reshape(x.shape)


def _tf32(x: Array) -> Array:
    noise = np.arange(x.size, dtype=np.uint32).reshape(x.shape) & np.uint32(0x1FFF)  # the low 13 bits do not count
    return x.astype(np.float32).view(np.uint32) | noise


ENCODE: dict[str, Callable[[Array], Array]] = {
    "f16": lambda x: x.astype(np.float16).view(np.uint16),
    "bf16": lambda x: (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16),
    "tf32": _tf32,
    "e4m3": _mini(_E4M3),
    "e5m2": _mini(_E5M2),
    "s8": lambda x: x.astype(np.int8).view(np.uint8),
    "u8": lambda x: x.astype(np.uint8),
}
NBYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


# Fragments in registers -----------------------------------------------------------------------------------------------


def fragment_a(codes: Array) -> Array:
    """The four registers [4, 128] of each thread for A [64, K] of element codes (figures of "Register Fragments")."""
    per = 4 // codes.itemsize
    words = np.zeros((4, 128, per), codes.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for register in range(4):
            row = 16 * warp + lane // 4 + 8 * (register % 2)
            column = lane % 4 * per + 4 * per * (register // 2)
            words[register, thread] = codes[row, column : column + per]
    return words.view(np.uint32)[..., 0]


def matrix_d(registers: Array, half: bool) -> Array:
    """D [64, N] from each thread's registers [128, count]."""
    values = registers.view(np.float16) if half else registers
    columns = values.shape[1] * 2
    d = np.zeros((64, columns), values.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(values.shape[1]):
            d[16 * warp + lane // 4 + 8 * (i // 2 % 2), i // 4 * 8 + lane % 4 * 2 + i % 2] = values[thread, i]
    return d


# Sparse A: of each chunk of a row some elements are stored ("Sparse matrix storage", and the figures of the metadata operand) --------


def _chunk(a_type: str) -> tuple[int, int]:
    """Elements of a chunk, and how many are stored."""
    return (2, 1) if a_type == "tf32" else (4, 2)


def sparse(rng: np.random.Generator, a: Array, a_type: str) -> tuple[Array, Array]:
    """A [64, K] with zeros where nothing is stored, and the places [64, chunks, stored] of what is."""
    length, stored = _chunk(a_type)
    places = np.sort(np.argsort(rng.random((64, a.shape[1] // length, length)), axis=-1)[..., :stored], axis=-1)
    dense = np.zeros_like(a)
    for row, chunk, which in np.ndindex(places.shape):
        column = chunk * length + places[row, chunk, which]
        dense[row, column] = a[row, column]
    return dense, places


def packed(dense: Array, places: Array, a_type: str) -> Array:
    """The stored elements [64, K / 2]."""
    length, _ = _chunk(a_type)
    columns = places + length * np.arange(places.shape[1])[:, None]
    return np.take_along_axis(dense, columns.reshape(64, -1), axis=1)


def metadata(places: Array, a_type: str, selector: int) -> Array:
    """The metadata register [128] of each thread; noise in threads that the selector leaves out."""

    def four_bits(row: int, chunk: int) -> int:
        at = places[row, chunk]
        return (0b0100, 0b1110)[at[0]] if a_type == "tf32" else int(at[0] | at[1] << 2)

    words = np.full(128, 0x5A5A5A5A, np.uint32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        row, place = 16 * warp + lane // 4, lane % 4
        if NBYTES[a_type] == 1:  # figures 180 and 181: T0 and T1 have the first half of rows g and g + 8, T2 and T3 the second
            found = [four_bits(row + 8 * (place % 2), 8 * (place // 2) + i) for i in range(8)]
        elif place // 2 == selector:  # figures 176 and 178: each of the two has half of the columns of both rows
            found = [four_bits(row + 8 * (i // 4), 4 * (place % 2) + i % 4) for i in range(8)]
        else:
            continue
        words[thread] = sum(bits << 4 * i for i, bits in enumerate(found))
    return words
