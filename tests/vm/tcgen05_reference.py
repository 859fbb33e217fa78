"""What the PTX ISA and CUTLASS say of tcgen05, element by element and apart from the machine's own code.

Formats and layouts were checked against the ISA's canonical layouts (9.7.16.3.3, figures 188 to 192) and CUTLASS's `tmem_frg`,
`tmem_sf_frg`, `tmem_e_frg` and `Copy_Traits<SM100_TMEM_LOAD_*>`. Addresses of operands are bytes in one CTA's shared memory; cells are
(lane, column).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# Swizzle mode -> row bytes, B, M, S of Swizzle<B, M, S>.
SWIZZLE = {0: (16, 0, 4, 3), 1: (128, 2, 5, 2), 2: (128, 3, 4, 3), 4: (64, 2, 4, 3), 6: (32, 1, 4, 3)}


def swizzled(address: int, mode: int) -> int:
    """An address after the XOR."""
    _, b, m, s = SWIZZLE[mode]
    return address ^ (((address >> (m + s)) & ((1 << b) - 1)) << m)


@dataclass(frozen=True)
class Layout:
    """An operand in shared memory; offsets in bytes. `size`: bytes of an element, or of its container."""

    start: int
    leading: int
    stride: int
    mode: int
    mn_major: bool
    size: int

    @property
    def descriptor(self) -> int:
        """The shared memory descriptor."""
        return self.start >> 4 | (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | 1 << 46 | self.mode << 61

    def address(self, mn: int, k: int) -> int:
        """Byte address of element (mn, k); a packed K-major row counts k in bytes."""
        row = SWIZZLE[self.mode][0]
        if not self.mn_major:
            at = k * self.size
            offset = mn % 8 * row + mn // 8 * self.stride + (at if self.mode else at % 16 + at // 16 * self.leading)
        else:
            e, g = row // self.size, 4 if self.mode == 1 else 8
            x, y = (self.leading, self.stride) if self.mode else (self.stride, self.leading)
            offset = mn % e * self.size + mn // e * x + k % g * row + k // g * y
        return swizzled(self.start + offset, self.mode)


def tile(start: int, size: int, mode: int, mn_major: bool, rows: int, depth: int) -> tuple[Layout, int]:
    """A layout for rows x depth elements, and its end. A K-major swizzled tile has whole rows of the pattern."""
    row = SWIZZLE[mode][0]
    if not mn_major:
        if mode:
            return Layout(start, 16, 8 * row, mode, False, size), start + rows * row
        chunks = -(-depth * size // 16)
        return Layout(start, rows * 16, 128, 0, False, size), start + chunks * rows * 16
    e, g = row // size, 4 if mode == 1 else 8
    pattern, groups = g * row, -(-depth // g)
    wide = -(-rows // e)
    if mode:
        return Layout(start, pattern * groups, pattern, mode, True, size), start + pattern * groups * wide
    return Layout(start, pattern * wide, pattern, 0, True, size), start + pattern * wide * groups


def put(image: Array, layout: Layout, octets: Array, origin: int) -> None:
    """Put a matrix [rows, depth, size] of bytes into an image of shared memory that starts at address `origin`."""
    for mn in range(octets.shape[0]):
        for k in range(octets.shape[1]):
            at = layout.address(mn, k) - origin
            image[at : at + layout.size] = octets[mn, k]


# Tensor memory -------------------------------------------------------------------------------------------------------------


def d_cell(m_n: tuple[int, int], m: int, n: int, group: int = 1, *, ws: bool = False, sparse: bool = False) -> tuple[int, int, int]:
    """(CTA of the pair, lane, column) of D[m, n], relative to the address of D."""
    rows, columns = m_n
    if group == 2:
        if rows == 256:
            return m // 128, m % 128, n
        row = m % 64
        if sparse:
            return m // 64, row // 16 * 32 + row % 16, n
        return m // 64, row + 64 * (n >= columns // 2), n % (columns // 2)
    if rows == 128:
        return 0, m, n
    if rows == 64:
        return (0, m + 64 * (n >= columns // 2), n % (columns // 2)) if ws else (0, m // 16 * 32 + m % 16, n)
    return 0, m + 32 * (n // (columns // 4)), n % (columns // 4)


def ld_cell(shape: str, lane: int, register: int, half: int = 0) -> tuple[int, int]:
    """(row, column) that a lane reads into a register, relative to the address."""
    match shape:
        case "32x32b":
            return lane, register
        case "16x64b":
            return lane // 4 + 8 * (lane & 1), (lane >> 1 & 1) + 2 * register
        case "16x128b":
            return lane // 4 + 8 * (register & 1), (lane & 3) + 4 * (register >> 1)
        case "16x256b":
            return lane // 4 + 8 * (register >> 1 & 1), (register & 1) + 2 * (lane & 3) + 8 * (register >> 2)
        case _:
            return lane % 16, register + lane // 16 * half


def cp_lanes(shape: str, row: int) -> list[int]:
    """The lanes that get a row of the source of a copy."""
    match shape:
        case "4x256b":
            return [32 * row]
        case "64x128b.warpx2::02_13":
            return [row, row + 64]
        case "64x128b.warpx2::01_23":
            return [row, row + 32] if row < 32 else [row + 32, row + 64]
        case "32x128b.warpx4":
            return [row + 32 * quarter for quarter in range(4)]
        case _:
            return [row]


def factor_cells(row: int, j: int, first: int = 0, *, split: bool = False, rows: int = 128) -> list[tuple[int, int, int]]:
    """[(lane, column, byte)] of factor j of a row of A, or of a column of B. `split`: of B, in a pair with M = 128."""
    half = 0
    if split:
        half, row = divmod(row, rows // 2)
    quarters = (2 * half, 2 * half + 1) if split else range(4)
    return [(row % 32 + 32 * quarter, row // 32, first + j) for quarter in quarters]


def meta_cell(kind: str, m: int, chunk: int) -> tuple[int, int, int]:
    """(lane, column, nibble) of the index of a chunk of row m, M = 128 in each CTA."""
    if kind in ("f16", "tf32"):
        return m % 8 + 16 * (m // 16) + 8 * (chunk // 4), 0, chunk % 4 + 4 * (m // 8 % 2)
    return m, chunk // 8, chunk % 8


# Instruction descriptors -----------------------------------------------------------------------------------------------------

TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}


def plain(
    d: str, a: str, b: str, m: int, n: int, *, major: tuple[int, int] = (0, 0), negate: int = 0, sparse: int = 0, saturate: int = 0
) -> int:
    """A descriptor of the kinds without scale factors."""
    fields = sparse << 2 | saturate << 3 | RESULTS[d] << 4 | TYPES[a] << 7 | TYPES[b] << 10
    return fields | negate << 13 | major[0] << 15 | major[1] << 16 | n >> 3 << 17 | m >> 4 << 24


def scaled(
    a: str, b: str, m: int, n: int, *, ids: tuple[int, int] = (0, 0), scale: str = "ue8m0", packed: bool = False, sparse: int = 0
) -> int:
    """A descriptor of the kinds with scale factors."""
    types = 1 << 7 | 1 << 10 if packed else TYPES[a] << 7 | TYPES[b] << 10
    return sparse << 2 | ids[1] << 4 | types | n >> 3 << 17 | (scale == "ue8m0") << 23 | m >> 7 << 27 | ids[0] << 29


# Elements ------------------------------------------------------------------------------------------------------------------

_FIELDS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
NARROW = {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def value(word: str, code: int) -> float:
    """A small float from its code (finite ones)."""
    exponent_bits, mantissa_bits, bias = _FIELDS[word]
    sign, fraction = code >> exponent_bits + mantissa_bits & 1, code & (1 << mantissa_bits) - 1
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    number = (fraction + (1 << mantissa_bits) * (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
    return -number if sign else number


def values(word: str, codes: Array) -> Array:
    """Small floats from their codes."""
    table = np.array([value(word, code) for code in range(1 << sum(_FIELDS[word][:2]) + 1)])
    return np.asarray(table[codes])


def bits_of(codes: Array, width: int) -> Array:
    """The bytes of rows of codes of some bits each, lowest first."""
    bits = (codes[..., None] >> np.arange(width) & 1).astype(np.uint8)
    return np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def padded(codes: Array, width: int) -> Array:
    """Rows of 16-element chunks in 16 bytes: the data, then padding (here 0xEE)."""
    rows = codes.reshape(len(codes), -1, 16)
    out = np.full(rows.shape, 0xEE, np.uint8)
    out[..., : 2 * width] = bits_of(rows, width)
    return out.reshape(len(codes), -1)
