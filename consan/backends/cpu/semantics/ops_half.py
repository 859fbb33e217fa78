"""Half precision arithmetic: PTX ISA "Half Precision Floating Point Instructions".

f16, f16x2, bf16, bf16x2. An operand is widened to f32 (f64 for fma), computed there, and rounded once: f32 has
more than twice the bits, so sums are exact enough, and fma goes through rounding to odd. NaN results are the canonical 0x7fff.
The NaN of fma.oob is the one that the machine's tensor loads fill with; any operand counts, though "either" may leave out the third.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from consan.dataclass import dataclass

from .ops_base import CANONICAL_NAN, Array, DType, Function, Op, Operations, any_true, bits, lane
from .ops_rounding import F32, F64, flush, odd_sum, saturate, to_f32_odd

U16, U32 = np.uint16, np.uint32
OOB_NAN = U16(0x7FF7)  # not documented; Hopper's


@dataclass(frozen=True)
class Half:
    """One 16-bit format: how to read it as f32 and how to round f32 (exact, or rounded to odd) to it, as raw or float16."""

    name: str
    widen: Callable[[Array], Array]
    round: Callable[[Array], Array]
    dtype: DType


def widen_bf16(a: Array) -> Array:
    """bf16 is the upper half of an f32."""
    return np.asarray(a.astype(U32) << U32(16)).view(F32)


def round_bf16(x: Array) -> Array:
    """f32 to bf16, nearest even, canonical NaN."""
    word = bits(x)
    rounded = ((word + (U32(0x7FFF) + ((word >> U32(16)) & U32(1)))) >> U32(16)).astype(U16)
    nan = np.isnan(x)
    return np.asarray(np.where(nan, U16(CANONICAL_NAN["bf16"]), rounded) if any_true(nan) else rounded)


def round_f16(x: Array) -> Array:
    """f32 or f64 to f16, nearest even, canonical NaN."""
    rounded = np.asarray(x.astype(np.float16))
    nan = np.isnan(x)
    if any_true(nan):
        rounded.view(U16)[nan] = CANONICAL_NAN["f16"]
    return rounded


def widen_f16(a: Array) -> Array:
    """f16 to f32, by way of f64: NumPy's direct loop takes twice as long as the two."""
    return np.asarray(a).astype(F64).astype(F32)


HALVES: dict[str, Half] = {
    "f16": Half("f16", widen_f16, round_f16, np.dtype(np.float16)),
    "bf16": Half("bf16", widen_bf16, round_bf16, np.dtype(np.uint16)),
}


@dataclass(frozen=True)
class PackedType:
    """A packed type: its element's name and how the engine's raw word is viewed as elements."""

    element: str
    dtype: DType


PACKED: dict[str, PackedType] = {"f16x2": PackedType("f16", np.dtype(np.float16)), "bf16x2": PackedType("bf16", np.dtype(np.uint16))}


def unpack(a: Array, word: str) -> Array:
    """Elements of packed words on a trailing axis, lowest first."""
    dtype = PACKED[word].dtype
    return np.ascontiguousarray(a)[..., None].view(dtype) if np.ndim(a) else np.asarray(a).reshape(1).view(dtype)


def pack(elements: Array) -> Array:
    """The raw words of elements on a trailing axis of two."""
    return np.ascontiguousarray(elements).view(U32)[..., 0]


def lift(word: str, arity: int, make: Callable[[Half], Function]) -> Op:
    """An Op for a half type, or for its packed form, from a function of the element format."""
    if word in HALVES:
        return lane((word,) * arity, word, make(HALVES[word]))
    fn = make(HALVES[PACKED[word].element])
    return lane((word,) * arity, word, lambda *operands: pack(fn(*(unpack(x, word) for x in operands))))


# add, sub, mul, fma ----------------------------------------------------------------------------------------------


def _add(half: Half, a: Array, b: Array) -> Array:
    return half.widen(a) + half.widen(b)


def _sub(half: Half, a: Array, b: Array) -> Array:
    return half.widen(a) - half.widen(b)


def _mul(half: Half, a: Array, b: Array) -> Array:
    # bf16 too: a product that f32 rounds (below 2**-149) is less than half of the smallest bf16, so its last bits cannot matter
    return half.widen(a) * half.widen(b)


def _fma(half: Half, a: Array, b: Array, c: Array) -> Array:
    if half.name == "f16":
        # f64 drops bits of the sum only where it spans more than 53: then one term is below any half unit of the f16 result, and
        # the other is no halfway case (c is an f16; a halfway product and the smallest c span 42 bits)
        return a.astype(F64) * b.astype(F64) + c.astype(F64)
    product = half.widen(a).astype(F64) * half.widen(b).astype(F64)
    return to_f32_odd(odd_sum(product, half.widen(c).astype(F64)))


ARITHMETIC: dict[str, tuple[Callable[..., Array], int]] = {"add": (_add, 2), "sub": (_sub, 2), "mul": (_mul, 2), "fma": (_fma, 3)}


def flush_half(x: Array) -> Array:
    """Flush subnormals of the 16-bit format f16; bf16 has no .ftz arithmetic."""
    return flush(x) if x.dtype == np.float16 else x


def relu(x: Array) -> Array:
    """max(x, +0) with NaN kept (.relu), on f32."""
    return np.where(x <= 0, x.dtype.type(0), x)


def _after(half: Half, sat: str, clamp: str, ftz: str, x: Array) -> Array:
    """Modifiers of a result that is still wide: clamping and rounding commute, since the bounds are representable."""
    x = saturate(x) if sat else x
    x = relu(x) if clamp else x
    rounded = half.round(x)
    return flush_half(rounded) if ftz else rounded


def _arithmetic(name: str, ftz: str, sat: str, clamp: str, word: str) -> Op:
    compute, arity = ARITHMETIC[name]
    before = flush_half if ftz else np.asarray

    def make(half: Half) -> Function:
        return lambda *operands: _after(half, sat, clamp, ftz, compute(half, *map(before, operands)))

    return lift(word, arity, make)


def _without_outside(clamp: str, word: str) -> Op:
    """fma.oob: 0 where an operand lay outside of its tensor."""

    def make(half: Half) -> Function:
        def fn(*operands: Array) -> Array:
            outside = np.logical_or.reduce([bits(each) == OOB_NAN for each in operands])
            return np.where(outside, half.dtype.type(0), _after(half, "", clamp, "", _fma(half, *operands)))

        return fn

    return lift(word, 3, make)


# neg, abs, min, max ----------------------------------------------------------------------------------------------

SIGNS: dict[str, dict[str, tuple[np.ufunc, int]]] = {
    "neg": {"f16": (np.bitwise_xor, 0x8000), "f16x2": (np.bitwise_xor, 0x80008000)},
    "abs": {"f16": (np.bitwise_and, 0x7FFF), "f16x2": (np.bitwise_and, 0x7FFF7FFF)},
}


def _sign(name: str, ftz: str, word: str) -> Op:
    ufunc, mask = SIGNS[name][word.removeprefix("b")]
    raw = "b32" if word.endswith("x2") else "b16"
    constant = (U32 if raw == "b32" else U16)(mask)
    if not ftz:
        return lane(raw, raw, lambda a: ufunc(a, constant))
    ufunc16, mask16 = SIGNS[name]["f16"]
    return lift(word, 1, lambda half: lambda a: np.asarray(ufunc16(bits(flush(a)), U16(mask16))).view(np.float16))


def extreme(name: str, keep_nan: bool, a: Array, b: Array) -> Array:
    """min or max of floats: -0 below +0, NaN only if both (or, with .NaN, either) operand is one. Payloads are the caller's."""
    result = np.asarray(EXTREMES[name, keep_nan](a, b))
    zero = result == 0
    if any_true(zero):
        merge = np.bitwise_or if name == "min" else np.bitwise_and
        both = np.asarray(merge(bits(np.asarray(a)), bits(np.asarray(b)))).view(result.dtype)
        result = np.where(zero & (a == 0) & (b == 0), both, result)
    return result


EXTREMES: dict[tuple[str, bool], np.ufunc] = {
    ("min", False): np.fmin,
    ("max", False): np.fmax,
    ("min", True): np.minimum,
    ("max", True): np.maximum,
}


def extreme_signed(name: str, keep_nan: bool, a: Array, b: Array) -> Array:
    """.xorsign.abs: the magnitude is the extreme of the magnitudes, the sign the XOR of the signs."""
    result = extreme(name, keep_nan, np.abs(a), np.abs(b))
    negative = np.signbit(a) ^ np.signbit(b)
    return np.where(negative, -result, result)


def _extreme(name: str, ftz: str, nan: str, signed: str, word: str) -> Op:
    choose = partial(extreme_signed if signed else extreme, name, bool(nan))

    def make(half: Half) -> Function:
        # f32 holds both formats exactly and orders them the same
        def fn(a: Array, b: Array) -> Array:
            a, b = (flush_half(a), flush_half(b)) if ftz else (a, b)
            return half.round(choose(half.widen(a), half.widen(b)))

        return fn

    return lift(word, 2, make)


# ex2, tanh -------------------------------------------------------------------------------------------------------


def _unary(function: Function, ftz: str, word: str) -> Op:
    def make(half: Half) -> Function:
        return lambda a: half.round(_flushed(function(_flushed(half.widen(a), ftz)), ftz))

    return lift(word, 1, make)


def _flushed(x: Array, ftz: str) -> Array:
    return flush(x) if ftz else x


def _sums(name: str) -> Operations:
    return {
        f"{name}{{.rn}}{{.ftz}}{{.sat}}.h": lambda _rn, ftz, sat, word: _arithmetic(name, ftz, sat, "", word),
        f"{name}{{.rn}}.bh": lambda _rn, word: _arithmetic(name, "", "", "", word),
    }


def _extremes(name: str) -> Operations:
    return {
        f"{name}{{.ftz}}{{.NaN}}{{.xorsign.abs}}.h": lambda ftz, nan, signed, _abs, word: _extreme(name, ftz, nan, signed, word),
        f"{name}{{.NaN}}{{.xorsign.abs}}.bh": lambda nan, signed, _abs, word: _extreme(name, "", nan, signed, word),
    }


OPERATIONS: Operations = {
    **{form: build for name in ("add", "sub", "mul") for form, build in _sums(name).items()},
    "fma.rn{.ftz}{.sat}.h": lambda ftz, sat, word: _arithmetic("fma", ftz, sat, "", word),
    "fma.rn{.ftz}.relu.h": lambda ftz, word: _arithmetic("fma", ftz, "", "relu", word),
    "fma.rn{.relu}.bh": lambda relu, word: _arithmetic("fma", "", "", relu, word),
    "fma.rn.oob{.relu}.any": _without_outside,
    **{f"{name}{{.ftz}}.h": partial(_sign, name) for name in SIGNS},
    **{f"{name}.bh": partial(_sign, name, "") for name in SIGNS},
    **{form: build for name in ("min", "max") for form, build in _extremes(name).items()},
    "tanh.approx.any": partial(_unary, np.tanh, ""),
    "ex2.approx.h": partial(_unary, np.exp2, ""),
    "ex2.approx.ftz.bh": partial(_unary, np.exp2, "ftz"),
}
