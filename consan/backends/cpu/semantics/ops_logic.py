"""Logic, shifts and bit fields: PTX ISA "Logic and Shift Instructions", popc to bmsk of "Integer Arithmetic", prmt.

NumPy defines shifts by at least the width as PTX clamps them (zero, or the sign), also for counts that read as negative, so plain
shifts are ufuncs. The look-up table of lop3 and the selector of prmt are immediates in practice: both are compiled once and cached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from .ops_base import Array, Function, Op, Operations, from_ufunc, lane

U8, U32, U64 = np.uint8, np.uint32, np.uint64

LOGICAL: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
COMBINE: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


# and, or, xor, not, cnot, shifts ---------------------------------------------------------------------------------


def _not(word: str) -> Op:
    return from_ufunc(np.logical_not if word == "pred" else np.invert, word)


def _cnot(word: str) -> Op:
    return lane(word, word, lambda a: (a == 0).astype(a.dtype))


def _shl(word: str) -> Op:
    return _shift(np.left_shift, word, "u32")


def _shr(word: str) -> Op:
    # A signed count keeps the loop at the operand's width; as s32, counts from 2**31 are negative, which NumPy also clamps.
    return _shift(np.right_shift, word, "s32" if word[0] == "s" else "u32")


def _shift(ufunc: np.ufunc, word: str, count: str) -> Op:
    if word.endswith("16"):
        return lane((word, count), word, lambda a, b: ufunc(a, b).astype(a.dtype))
    return lane((word, count), word, ufunc, ufunc=ufunc)


def _funnel(direction: str, mode: str) -> Op:
    def amount(c: Array) -> Array:
        return np.asarray(np.minimum(c, U32(32)) if mode == "clamp" else c & U32(31))

    def left(a: Array, b: Array, c: Array) -> Array:
        n = amount(c)
        return np.asarray((b << n) | (a >> (U32(32) - n)))

    def right(a: Array, b: Array, c: Array) -> Array:
        n = amount(c)
        return np.asarray((b << (U32(32) - n)) | (a >> n))

    return lane("b32 b32 u32", "b32", left if direction == "l" else right)


# lop3 ------------------------------------------------------------------------------------------------------------

Binary = Callable[[Array, Array], Array]

# Index: the values of f(b, c) for (b, c) = (0,0), (0,1), (1,0), (1,1), lowest bit first.
TWO_INPUT: tuple[Binary, ...] = (
    lambda b, c: np.zeros_like(b),
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: ~np.zeros_like(b),
)


@lru_cache(maxsize=256)
def lut_function(lut: int) -> Function:
    """The three-input function of an immLut: a selects between two functions of (b, c), simplified where they are related."""
    low, high = lut & 15, lut >> 4
    if low == high:
        return lambda a, b, c: TWO_INPUT[low](b, c)
    if low == 0:
        return lambda a, b, c: a & TWO_INPUT[high](b, c)
    if high == 15:
        return lambda a, b, c: a | TWO_INPUT[low](b, c)
    if high == 15 - low:
        return lambda a, b, c: a ^ TWO_INPUT[low](b, c)
    return lambda a, b, c: TWO_INPUT[low](b, c) ^ (a & TWO_INPUT[low ^ high](b, c))


def lop3(a: Array, b: Array, c: Array, lut: Array) -> Array:
    """Any three-input logical operation."""
    result: Array = lut_function(int(lut.flat[0]) & 0xFF)(a, b, c)
    return result


def _lop3_pred(operation: str) -> Op:
    combine = COMBINE[operation]

    def fn(a: Array, b: Array, c: Array, lut: Array, q: Array) -> tuple[Array, Array]:
        result = lop3(a, b, c, lut)
        return result, combine(result != 0, q)

    return lane("b32 b32 b32 b32 pred", "b32 pred", fn)


# Counting and searching ------------------------------------------------------------------------------------------


def _popcount_words(a: Array) -> Array:
    """Set bits, without NumPy 2's bitwise_count: the classic sum of ever wider fields."""
    x = a.astype(U64)
    x = x - ((x >> U64(1)) & U64(0x5555555555555555))
    x = (x & U64(0x3333333333333333)) + ((x >> U64(2)) & U64(0x3333333333333333))
    x = (x + (x >> U64(4))) & U64(0x0F0F0F0F0F0F0F0F)
    return np.asarray((x * U64(0x0101010101010101)) >> U64(56))


_count: Function = getattr(np, "bitwise_count", _popcount_words)


def popcount(a: Array) -> Array:
    """Number of set bits, as u32."""
    return np.asarray(_count(a)).astype(U32)


def bit_length(a: Array) -> Array:
    """Position of the highest set bit plus one, 0 for 0, as u32 (exact: each 32-bit half is exact in f64)."""
    if a.dtype.itemsize <= 4:
        return np.frexp(a.astype(np.float64))[1].astype(U32)
    high = (a >> U64(32)).astype(np.float64)
    low = (a & U64(0xFFFFFFFF)).astype(np.float64)
    return np.asarray(np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1]).astype(U32))


def _clz(word: str) -> Op:
    width = U32(int(word[1:]))
    return lane(word, "u32", lambda a: width - bit_length(a))


def _bfind(shiftamt: str, word: str) -> Op:
    unsigned, top = np.dtype(f"uint{word[1:]}"), U32(int(word[1:]) - 1)

    def fn(a: Array) -> Array:
        found = bit_length((np.where(a < 0, ~a, a) if word[0] == "s" else a).astype(unsigned)) - U32(1)
        return np.asarray(np.where(found == U32(0xFFFFFFFF), found, top - found) if shiftamt else found)

    return lane(word, "u32", fn)


def fns(mask: Array, base: Array, offset: Array) -> Array:
    """The offset-th set bit from `base` on (downwards for a negative offset); all ones when there is none."""
    position = np.arange(32, dtype=np.int32)
    set_bits = ((mask[..., None] >> position.astype(U32)) & U32(1)).astype(bool)
    start = base.astype(np.int32)[..., None]
    ahead = set_bits & np.where(offset[..., None] > 0, position >= start, position <= start)
    up = np.cumsum(ahead, axis=-1)
    down = np.cumsum(ahead[..., ::-1], axis=-1)[..., ::-1]
    wanted = np.abs(offset.astype(np.int64))[..., None]
    hit = ahead & (np.where(offset[..., None] > 0, up, down) == wanted)
    hit = np.where(offset[..., None] == 0, set_bits & (position == start), hit)
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1), 0xFFFFFFFF).astype(U32)


def _fns(mask: Array, base: Array, offset: Array) -> Array:
    return fns(*np.broadcast_arrays(mask, base, offset))


SWAPS: tuple[tuple[int, int], ...] = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))


def brev(a: Array) -> Array:
    """Bit reversal: swap neighbours within bytes, then the bytes."""
    dtype = a.dtype.type
    x = a
    for shift, pattern in SWAPS:
        mask, count = dtype(pattern & int(np.iinfo(a.dtype).max)), dtype(shift)
        x = ((x >> count) & mask) | ((x & mask) << count)
    return np.asarray(np.asarray(x).byteswap())


# Bit fields ------------------------------------------------------------------------------------------------------


def _bfe(word: str) -> Op:
    width = int(word[1:])
    wide = np.dtype(f"uint{width}").type
    full, one, top, byte = wide(width), wide(1), wide(width - 1), wide(255)

    def unsigned(a: Array, b: Array, c: Array) -> Array:
        return np.asarray((a >> (b & byte)) & ((one << (c & byte)) - one))

    def signed(a: Array, b: Array, c: Array) -> Array:
        pos, length = b & byte, c & byte
        kept = np.minimum(length, full - np.minimum(pos, full))
        mask = (one << kept) - one
        sign = (a >> np.minimum(pos + np.maximum(length, one) - one, top)) & one & (length != 0)
        return np.asarray(((a >> pos) & mask) | ((wide(0) - sign) & ~mask))

    def fn(a: Array, b: Array, c: Array) -> Array:
        return (signed if word[0] == "s" else unsigned)(a, b.astype(wide), c.astype(wide))

    return lane((f"u{width}", "u32", "u32"), f"u{width}", fn)


def _bfi(word: str) -> Op:
    wide = np.dtype(f"uint{word[1:]}").type
    one, byte = wide(1), U32(255)

    def fn(a: Array, b: Array, c: Array, d: Array) -> Array:
        pos = c & byte
        mask = ((one << (d & byte)) - one) << pos
        return np.asarray(((a << pos) & mask) | (b & ~mask))

    return lane((word, word, "u32", "u32"), word, fn)


def _szext(mode: str, word: str) -> Op:
    one = U32(1)

    def fn(a: Array, b: Array) -> Array:
        width = b & U32(31)
        mask = ~U32(0) << width
        if mode == "clamp":
            mask = np.where(b >= 32, U32(0), mask)
        sign = (a >> ((width - one) & U32(31))) & one & (width != 0) if word == "s32" else U32(0)
        return np.asarray((a & ~mask) | ((U32(0) - sign) & mask))

    return lane("u32 u32", "u32", fn)


def _bmsk(mode: str) -> Op:
    ones = ~U32(0)

    def fn(a: Array, b: Array) -> Array:
        first, width = a & U32(31), b & U32(31)
        low = ones << first
        high = ones << (first + width)
        if mode == "clamp":
            low = np.where(a >= 32, U32(0), low)
            high = np.where(b >= 32, U32(0), high)
        return np.asarray(low & ~high)

    return lane("u32 u32", "u32", fn)


# prmt ------------------------------------------------------------------------------------------------------------

PRMT_MODES: dict[str, tuple[int, ...]] = {
    # four selectors per value of c[1:0], written as in the ISA's table: d.b3 first
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def permute(a: Array, b: Array, selector: Array) -> Array:
    """prmt.b32 without a mode."""
    if selector.size == 1:
        return _permute_fixed(a, b, int(selector.flat[0]) & 0xFFFF)
    source = (b.astype(U64) << U64(32)) | a
    result: Array = np.zeros(np.broadcast_shapes(source.shape, selector.shape), U32)
    for i in range(4):
        choice = (selector >> U32(4 * i)) & U32(15)
        byte = (source >> (U64(8) * (choice & U32(7)))).astype(U8)
        sign = (byte >> U8(7)) * U8(255)
        result |= np.where(choice & U32(8), sign, byte).astype(U32) << U32(8 * i)
    return result


def _permute_fixed(a: Array, b: Array, selector: int) -> Array:
    if not selector & 0x8888:
        result = None
        for word, shift, amount, mask in _moves(selector):
            moved = shift((a, b)[word], amount) & mask
            result = moved if result is None else result | moved
        return np.asarray(result)
    pair = np.empty((*np.broadcast_shapes(a.shape, b.shape), 2), U32)
    pair[..., 0], pair[..., 1] = a, b
    columns, signs = _selection(selector)
    picked = np.take(pair.view(U8), columns, axis=-1)
    for column in signs:
        picked[..., column] = (picked[..., column] >> U8(7)) * U8(255)
    return np.asarray(picked.view(U32)[..., 0])


@lru_cache(maxsize=4096)
def _moves(selector: int) -> list[tuple[int, np.ufunc, np.uint32, np.uint32]]:
    """Bytes that keep their order move together: (source word, shift, by how much, mask) for each such group."""
    masks: dict[tuple[int, int], int] = {}
    for i in range(4):
        byte = selector >> (4 * i) & 7
        key = byte >> 2, (byte & 3) - i
        masks[key] = masks.get(key, 0) | 0xFF << (8 * i)
    return [
        (word, np.right_shift if distance > 0 else np.left_shift, U32(8 * abs(distance)), U32(mask))
        for (word, distance), mask in masks.items()
    ]


@lru_cache(maxsize=4096)
def _selection(selector: int) -> tuple[list[int], list[int]]:
    nibbles = [selector >> (4 * i) & 15 for i in range(4)]
    return [nibble & 7 for nibble in nibbles], [i for i, nibble in enumerate(nibbles) if nibble & 8]


def _prmt(mode: str) -> Op:
    if not mode:
        return lane("b32 b32 b32", "b32", permute)
    table = np.array(PRMT_MODES[mode], U32)
    return lane("b32 b32 b32", "b32", lambda a, b, c: permute(a, b, np.asarray(table[c & U32(3)])))


OPERATIONS: Operations = {
    **{f"{name}.type": partial(from_ufunc, ufunc) for name, ufunc in LOGICAL.items()},
    "not.type": _not,
    "cnot.type": _cnot,
    "shl.type": _shl,
    "shr.type": _shr,
    "shf.direction.mode.b32": _funnel,
    "lop3.b32": lambda: lane("b32 b32 b32 b32", "b32", lop3),
    "lop3.op.b32": _lop3_pred,
    "popc.type": lambda word: lane(word, "u32", popcount),
    "clz.type": _clz,
    "bfind{.shiftamt}.type": _bfind,
    "fns.b32": lambda: lane("b32 u32 s32", "b32", _fns),
    "brev.type": lambda word: lane(word, word, brev),
    "bfe.type": _bfe,
    "bfi.type": _bfi,
    "szext.mode.type": _szext,
    "bmsk.mode.b32": _bmsk,
    "prmt.b32{.mode}": _prmt,
}
