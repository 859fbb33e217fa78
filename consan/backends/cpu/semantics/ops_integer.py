"""Integer arithmetic: PTX ISA "Integer Arithmetic Instructions" (add to max, sad, dp4a, dp2a) and "Extended-Precision".

Wrap-around arithmetic runs on unsigned words. Choices where the ISA leaves the result to the machine: x / 0 and x % 0 are all ones
(what ptxas' expansion returns), remainders have the dividend's sign, and MIN / -1 wraps to MIN.
Does not handle the video instructions (ops_video).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .ops_base import Array, DType, Function, Op, Operations, bits_of, from_ufunc, lane, unsigned

U32, U64, I64 = np.uint32, np.uint64, np.int64

WIDE_WORDS = ("u16", "u32", "s16", "s32")
PAIRS = ("u16x2", "s16x2")
HALF = {"u16x2": np.dtype(np.uint16), "s16x2": np.dtype(np.int16)}
LIMITS = {word: np.iinfo(f"int{bits_of(word)}") for word in ("s16", "s32", "s64")}
DOUBLE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}

WRAPPING: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
# the same as minimum and maximum on integers, and unlike them free to take the output as a positional argument
EXTREME: dict[str, np.ufunc] = {"min": np.fmin, "max": np.fmax}

_32, _LOW32 = U64(32), U64(0xFFFFFFFF)


# add, sub, min, max ------------------------------------------------------------------------------------------------


def _wrapping(name: str, word: str) -> Op:
    return from_ufunc(WRAPPING[name], unsigned(word))


def _saturating(name: str, _sat: str) -> Op:
    ufunc, limits = WRAPPING[name], LIMITS["s32"]

    def fn(a: Array, b: Array) -> Array:
        return np.asarray(np.clip(ufunc(a, b, dtype=I64), limits.min, limits.max).astype(np.int32))

    return lane("s32 s32", "s32", fn)


def halves(fn: Function, word: str) -> Function:
    """Apply `fn` to the two 16-bit halves of packed words: a view, no shifting."""
    dtype = HALF[word]

    def packed(*operands: Array) -> Array:
        return np.asarray(fn(*(split(x, dtype) for x in operands))).view(U32)[..., 0]

    return packed


def split(x: Array, dtype: DType) -> Array:
    """View packed words as a trailing axis of elements, lowest first."""
    return np.ascontiguousarray(x)[..., None].view(dtype) if np.ndim(x) else np.asarray(x).reshape(1).view(dtype)


def _packed(name: str, word: str) -> Op:
    return lane("b32 b32", "b32", halves({**WRAPPING, **EXTREME}[name], word))


def _relu_min(name: str, word: str) -> Op:
    ufunc = EXTREME[name]
    if word == "s32":
        return lane("s32 s32", "s32", lambda a, b: np.maximum(ufunc(a, b), np.int32(0)))
    return lane("b32 b32", "b32", halves(lambda a, b: np.maximum(ufunc(a, b), np.int16(0)), word))


# mul, mad ----------------------------------------------------------------------------------------------------------


def high_u64(a: Array, b: Array) -> Array:
    """Upper half of the 128-bit product."""
    a_low, a_high, b_low, b_high = a & _LOW32, a >> _32, b & _LOW32, b >> _32
    cross = a_high * b_low + ((a_low * b_low) >> _32)
    other = a_low * b_high + (cross & _LOW32)
    return np.asarray(a_high * b_high + (cross >> _32) + (other >> _32))


def high_s64(a: Array, b: Array) -> Array:
    """Upper half of the signed 128-bit product: each negative operand subtracts the other one."""
    x, y = a.astype(U64), b.astype(U64)
    high = high_u64(x, y) - np.where(a < 0, y, U64(0)) - np.where(b < 0, x, U64(0))
    return high.astype(I64)


def _high_narrow(word: str) -> Function:
    double, single, shift = np.dtype(_np_name(DOUBLE[word])), np.dtype(_np_name(word)), bits_of(word)
    return lambda a, b: (np.multiply(a, b, dtype=double) >> double.type(shift)).astype(single)


def _np_name(word: str) -> str:
    return ("int" if word[0] == "s" else "uint") + word[1:]


HIGH: dict[str, Function] = {**{word: _high_narrow(word) for word in WIDE_WORDS}, "u64": high_u64, "s64": high_s64}


def _mul(mode: str, word: str) -> Op | None:
    if mode == "lo":
        return from_ufunc(np.multiply, unsigned(word))
    if mode == "hi":
        return lane((word, word), word, HIGH[word])
    if word not in DOUBLE:
        return None
    return lane((word, word), DOUBLE[word], partial(np.multiply, dtype=np.dtype(_np_name(DOUBLE[word]))))


def _mad(mode: str, word: str) -> Op | None:
    if mode == "lo":
        return lane((unsigned(word),) * 3, unsigned(word), lambda a, b, c: a * b + c)
    if mode == "hi":
        high = HIGH[word]
        return lane((word,) * 3, word, lambda a, b, c: high(a, b) + c)
    if word not in DOUBLE:
        return None
    double = np.dtype(_np_name(DOUBLE[word]))
    return lane((word, word, DOUBLE[word]), DOUBLE[word], lambda a, b, c: np.multiply(a, b, dtype=double) + c)


def _mad_sat() -> Op:
    limits = LIMITS["s32"]

    def fn(a: Array, b: Array, c: Array) -> Array:
        return np.asarray(np.clip(HIGH["s32"](a, b).astype(I64) + c, limits.min, limits.max).astype(np.int32))

    return lane("s32 s32 s32", "s32", fn)


def _product24(word: str) -> Function:
    """48-bit product of the low 24 bits, as int64 or uint64."""
    if word == "u32":
        mask = U32(0xFFFFFF)
        return lambda a, b: np.multiply(a & mask, b & mask, dtype=U64)
    eight = np.int32(8)
    return lambda a, b: np.multiply((a << eight) >> eight, (b << eight) >> eight, dtype=I64)


def _mul24(mode: str, word: str) -> Function:
    product, shift = _product24(word), 16 if mode == "hi" else 0
    dtype = np.dtype(_np_name(word))
    return lambda a, b: (product(a, b) >> shift).astype(dtype)


def _mul24_op(mode: str, word: str) -> Op:
    return lane((word, word), word, _mul24(mode, word))


def _mad24_op(mode: str, word: str) -> Op:
    product = _mul24(mode, word)
    return lane((word,) * 3, word, lambda a, b, c: product(a, b) + c)


def _mad24_sat() -> Op:
    product, limits = _mul24("hi", "s32"), LIMITS["s32"]
    return lane("s32 s32 s32", "s32", lambda a, b, c: np.clip(product(a, b).astype(I64) + c, limits.min, limits.max).astype(np.int32))


# div, rem, abs, neg, sad -------------------------------------------------------------------------------------------


def _magnitude(a: Array, dtype: DType) -> Array:
    return np.abs(a).astype(dtype)  # |MIN| wraps to MIN, whose unsigned reading is right


def quotient(a: Array, b: Array) -> Array:
    """Truncating division; all ones for a zero divisor."""
    if a.dtype.kind == "u":
        result = np.asarray(np.floor_divide(a, b))
    else:
        size = np.dtype(f"u{a.dtype.name}")
        whole = np.floor_divide(_magnitude(a, size), _magnitude(b, size)).astype(a.dtype)
        result = np.where((a ^ b) < 0, -whole, whole)
    return _all_ones_for_zero(result, b)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the dividend's sign; all ones for a zero divisor."""
    if a.dtype.kind == "u":
        result = np.asarray(np.remainder(a, b))
    else:
        size = np.dtype(f"u{a.dtype.name}")
        rest = np.remainder(_magnitude(a, size), _magnitude(b, size)).astype(a.dtype)
        result = np.where(a < 0, -rest, rest)
    return _all_ones_for_zero(result, b)


def _all_ones_for_zero(result: Array, divisor: Array) -> Array:
    if np.count_nonzero(divisor) == np.size(divisor):
        return result
    return np.where(divisor == 0, ~result.dtype.type(0), result)


def _division(name: str, word: str) -> Op:
    return lane((word, word), word, {"div": quotient, "rem": remainder}[name])


def _abs(word: str) -> Op:
    return from_ufunc(np.absolute, word)


def _neg(word: str) -> Op:
    return from_ufunc(np.negative, unsigned(word))


def _sad(word: str) -> Op:
    same = np.dtype(f"uint{bits_of(word)}")

    def fn(a: Array, b: Array, c: Array) -> Array:
        return np.asarray(np.maximum(a, b).astype(same) - np.minimum(a, b).astype(same) + c)

    return lane((word, word, unsigned(word)), unsigned(word), fn)


# dp4a, dp2a --------------------------------------------------------------------------------------------------------

BYTES = {"u32": np.dtype(np.uint8), "s32": np.dtype(np.int8)}
SHORTS = {"u32": np.dtype(np.uint16), "s32": np.dtype(np.int16)}


def _dp4a(first: str, second: str) -> Op:
    def fn(a: Array, b: Array, c: Array) -> Array:
        products = split(a, BYTES[first]).astype(I64) * split(b, BYTES[second])
        return np.asarray((products.sum(axis=-1) + c).astype(U32))

    return lane("b32 b32 u32", "u32", fn)


def _dp2a(mode: str, first: str, second: str) -> Op:
    part = slice(0, 2) if mode == "lo" else slice(2, 4)

    def fn(a: Array, b: Array, c: Array) -> Array:
        products = split(a, SHORTS[first]).astype(I64) * split(b, BYTES[second])[..., part]
        return np.asarray((products.sum(axis=-1) + c).astype(U32))

    return lane("b32 b32 u32", "u32", fn)


# Extended precision ------------------------------------------------------------------------------------------------


def _sum_with_carry(a: Array, b: Array, carry: Array | None = None) -> tuple[Array, Array]:
    total = np.asarray(a + b)
    out = total < a
    if carry is None:
        return total, out
    full = np.asarray(total + carry)
    return full, out | (full < total)


def _difference_with_borrow(a: Array, b: Array, borrow: Array | None = None) -> tuple[Array, Array]:
    rest = np.asarray(a - b)
    out = a < b
    if borrow is None:
        return rest, out
    return np.asarray(rest - borrow), out | (rest < borrow)


CARRY = {"add": _sum_with_carry, "sub": _difference_with_borrow}


def _carry_out(name: str, word: str) -> Op:
    same = unsigned(word)
    return lane((same, same), (same, "cc"), CARRY[name])


def _carry_in(name: str, out: str, word: str) -> Op:
    same, fn = unsigned(word), CARRY[name]
    if out:
        return lane((same, same, "cc"), (same, "cc"), fn)
    return lane((same, same, "cc"), same, lambda a, b, carry: fn(a, b, carry)[0])


def _multiplied(mode: str, word: str) -> Function:
    """The chosen half of the product as an unsigned word; signed operands only matter for the upper half."""
    same = np.dtype(f"uint{bits_of(word)}")
    if mode == "lo":
        return lambda a, b: a.astype(same) * b.astype(same)
    high = HIGH[word]
    return lambda a, b: high(a, b).astype(same)


def _mad_carry_out(mode: str, word: str) -> Op | None:
    if not mode:
        return None
    product = _multiplied(mode, word)
    return lane((word, word, unsigned(word)), (unsigned(word), "cc"), lambda a, b, c: _sum_with_carry(product(a, b), c))


def _mad_carry_in(mode: str, out: str, word: str) -> Op | None:
    if not mode:
        return None
    product = _multiplied(mode, word)
    sources = (word, word, unsigned(word), "cc")
    if out:
        return lane(sources, (unsigned(word), "cc"), lambda a, b, c, carry: _sum_with_carry(product(a, b), c, carry))
    return lane(sources, unsigned(word), lambda a, b, c, carry: product(a, b) + c + carry)


def _sum(name: str, word: str) -> Op:
    return _packed(name, word) if word in PAIRS else _wrapping(name, word)


def _extreme(name: str, word: str) -> Op:
    return _packed(name, word) if word in PAIRS else from_ufunc(EXTREME[name], word)


def _extreme_relu(name: str, relu: str, word: str) -> Op:
    return _relu_min(name, word) if relu else _extreme(name, word)


OPERATIONS: Operations = {
    **{f"{name}.type": partial(_sum, name) for name in ("add", "sub")},
    **{f"{name}{{.sat}}.s32": partial(_saturating, name) for name in ("add", "sub")},
    **{f"{name}.atype": partial(_extreme, name) for name in EXTREME},
    **{f"{name}{{.relu}}.btype": partial(_extreme_relu, name) for name in EXTREME},
    "mul.mode.type": _mul,
    "mad.mode.type": _mad,
    "mad.hi.sat.s32": _mad_sat,
    "mul24.mode.type": _mul24_op,
    "mad24.mode.type": _mad24_op,
    "mad24.hi.sat.s32": _mad24_sat,
    **{f"{name}.type": partial(_division, name) for name in ("div", "rem")},
    "abs.type": _abs,
    "neg.type": _neg,
    "sad.type": _sad,
    "dp4a.type.type": _dp4a,
    "dp2a.mode.type.type": _dp2a,
    **{f"{name}.cc.type": partial(_carry_out, name) for name in CARRY},
    **{f"{name}c{{.cc}}.type": partial(_carry_in, name) for name in CARRY},
    "mad{.hi,.lo}.cc.type": _mad_carry_out,
    "madc{.hi,.lo}{.cc}.type": _mad_carry_in,
}
