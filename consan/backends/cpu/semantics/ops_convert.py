"""Conversions between u8 ... s64, f16, bf16, f32, f64 and tf32: PTX ISA "Data Movement and Conversion Instructions: cvt".

Every conversion that involves a float goes through an f64 that is exact or rounded to odd, so that the last step is the only rounding,
in any mode; the conversions that compilers emit most have a direct form. Float to integer saturates; NaN becomes 0, or
1 << (width - 1) when the source is f64 or the destination 64 bits wide ("Integer Notes"). NaN becomes the canonical NaN of f16, bf16
and f32 results. The 8-, 6- and 4-bit packed formats are in ops_minifloat.
Stochastic rounding (.rs) and packed formats have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .ops_base import DTYPES, Array, Function, Op, Operations, bits, canonicalize, lane
from .ops_half import round_bf16, round_f16, widen_bf16, widen_f16
from .ops_rounding import F32, F64, INTEGRAL, directed, flush, narrow, odd, saturate, to_f32_odd, two_sum

U16, U32, U64, I64 = np.uint16, np.uint32, np.uint64, np.int64

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
ROUNDING = ("rn", "rz", "rm", "rp")
RANK = {"f16": 0, "bf16": 0, "f32": 1, "f64": 2}
TO_INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}

MAX_FINITE = {"f16": 65504.0, "bf16": float(np.array(0x7F7F0000, U32).view(F32)), "tf32": float(np.array(0x7F7FE000, U32).view(F32))}


# Reading a float as exact f64, and writing f64 (exact, or rounded to odd) in a mode ---------------------------------

READ: dict[str, Function] = {
    "f16": lambda a: np.asarray(a).astype(F64),
    "bf16": lambda a: widen_bf16(a).astype(F64),
    "f32": lambda a: np.asarray(a).astype(F64),
    "f64": np.asarray,
}


def _write_f16(x: Array, mode: str) -> Array:
    near = x.astype(np.float16)
    return canonicalize(np.array(near if mode == "rn" else directed(near, x - near, mode)), "f16")


def _write_bf16(x: Array, mode: str) -> Array:
    return bf16_of_odd(to_f32_odd(x), mode)


def bf16_of_odd(x: Array, mode: str) -> Array:
    """f32 (exact, or rounded to odd) to bf16 in a mode: cut the word, then step away from zero where the mode asks for it."""
    if mode == "rn":
        return round_bf16(x)
    word = bits(x)
    cut = (word >> U32(16)).astype(U16)
    if mode != "rz":
        negative = np.signbit(x)
        cut = cut + ((word & U32(0xFFFF)) != 0) * (negative if mode == "rm" else ~negative)
    return np.asarray(np.where(np.isnan(x), U16(0x7FFF), cut).astype(U16))


def _write_f32(x: Array, mode: str) -> Array:
    return canonicalize(np.array(narrow(x, mode)), "f32")


WRITE: dict[str, Callable[[Array, str], Array]] = {
    "f16": _write_f16,
    "bf16": _write_bf16,
    "f32": _write_f32,
    "f64": lambda x, mode: x,
}

# Same result as READ then WRITE, in one step.
DIRECT: dict[tuple[str, str, str], Function] = {
    ("rn", "f16", "f32"): round_f16,
    ("rn", "bf16", "f32"): round_bf16,
    ("rn", "f32", "f64"): lambda a: canonicalize(np.asarray(a).astype(F32), "f32"),
    ("", "f32", "f16"): lambda a: canonicalize(widen_f16(a), "f32"),
    ("", "f32", "bf16"): widen_bf16,
    ("", "f64", "f32"): lambda a: np.asarray(a).astype(F64),
}


# Integers --------------------------------------------------------------------------------------------------------


def _integer(sat: str, dest: str, source: str) -> Op:
    dtype = DTYPES[dest]
    if not sat:
        # a cast that keeps signedness is one ufunc with a casting output
        same_kind = np.can_cast(DTYPES[source], dtype, "same_kind")
        return lane(source, dest, lambda a: a.astype(dtype), ufunc=np.positive if same_kind else None)
    have, want = np.iinfo(DTYPES[source]), np.iinfo(dtype)
    low, high = have.dtype.type(max(have.min, want.min)), have.dtype.type(min(have.max, want.max))
    return lane(source, dest, lambda a: np.clip(a, low, high).astype(dtype))


def _from_integer(mode: str, _ftz: str, sat: str, dest: str, source: str) -> Op:
    after = saturate if sat else _identity
    if mode == "rn" and dest in ("f32", "f64"):
        dtype = DTYPES[dest]
        ufunc = None if sat else np.positive
        return lane(source, dest, lambda a: after(np.asarray(a).astype(dtype)), ufunc=ufunc)
    if dest == "f64":
        return lane(source, dest, lambda a: after(_long_to_f64(a, mode)))
    write = WRITE[dest]
    return lane(source, dest, lambda a: after(write(_odd_f64(a), mode)))


def _identity(x: Array) -> Array:
    return x


def _parts(a: Array) -> tuple[Array, Array]:
    """An integer as the rounded f64 and its exact error."""
    if a.dtype.itemsize < 8:
        exact = a.astype(F64)
        return exact, np.zeros_like(exact)
    high = (a >> a.dtype.type(32)).astype(F64) * F64(2.0**32)
    return two_sum(high, (a & a.dtype.type(0xFFFFFFFF)).astype(F64))


def _odd_f64(a: Array) -> Array:
    return odd(*_parts(a))


def _long_to_f64(a: Array, mode: str) -> Array:
    return directed(*_parts(a), mode)


# Float to integer ------------------------------------------------------------------------------------------------


def _to_integer(mode: str, ftz: str, _sat: str, dest: str, source: str) -> Op:
    whole = INTEGRAL[TO_INTEGRAL[mode]]
    info = np.iinfo(DTYPES[dest])
    wide = source == "f64" or info.bits == 64
    nan = (1 << (info.bits - 1)) * (-1 if info.min < 0 else 1) if wide else 0
    read = READ[source] if source in ("f16", "bf16") else np.asarray

    def fn(a: Array) -> Array:
        x = read(a)
        return clamp_to_integer(whole(flush(x) if ftz else x), info, nan)

    return lane(source, dest, fn)


def clamp_to_integer(whole: Array, info: np.iinfo, nan: int) -> Array:
    """Integral floats to an integer type, saturating; the exclusive upper limit is a power of two, hence exact in every format."""
    whole = np.asarray(whole)
    low, top = whole.dtype.type(info.min), whole.dtype.type(float(info.max + 1))
    inside = (whole >= low) & (whole < top)
    if np.count_nonzero(inside) == inside.size:
        return whole.astype(info.dtype)
    outside = np.where(whole >= top, info.dtype.type(info.max), info.dtype.type(info.min))
    outside = np.where(np.isnan(whole), info.dtype.type(nan), outside)
    return np.where(inside, np.where(inside, whole, 0).astype(info.dtype), outside)


# Float to float --------------------------------------------------------------------------------------------------


def _float(mode: str, ftz: str, sat: str, dest: str, source: str) -> Op:
    fn = DIRECT.get((mode, dest, source)) or _general(mode, dest, source)
    return lane(source, dest, _modified(fn, ftz, sat, dest, source))


def _general(mode: str, dest: str, source: str) -> Function:
    read, write = READ[source], WRITE[dest]
    return lambda a: write(read(a), mode or "rn")


def _modified(fn: Function, ftz: str, sat: str, dest: str, source: str) -> Function:
    """Flush f32 inputs and results, clamp the result."""
    if ftz and source == "f32":
        fn = _after(flush, fn)
    if ftz and dest == "f32":
        fn = _after(fn, flush)
    return _after(fn, saturate) if sat else fn


def _after(first: Function, second: Function) -> Function:
    return lambda *operands: second(first(*operands))


def _same(ftz: str, sat: str, word: str) -> Op:
    fn = _modified(_identity, ftz, sat, word, word)
    return lane(word, word, lambda a: canonicalize(np.array(fn(a)), "f32") if word == "f32" else fn(a))


def _integral(mode: str, ftz: str, sat: str, word: str) -> Op:
    """Round to an integral value in the same format; bf16 through f32, whose integral values below 2**8 are bf16 values."""
    whole = INTEGRAL[TO_INTEGRAL[mode]]
    fn: Function = (lambda a: round_bf16(whole(widen_bf16(a)))) if word == "bf16" else whole
    if word in ("f16", "f32"):
        fn = _after(fn, lambda x: canonicalize(np.array(x), word))
    return lane(word, word, _modified(fn, ftz, sat, word, word))


# Clamped and packed forms: cvt.frnd2{.relu}{.satfinite} ---------------------------------------------------------------


def _clamped(mode: str, relu: str, satfinite: str, word: str) -> Function:
    """f32 to f16, bf16 or tf32 with .relu and .satfinite, which act on the exact value: both bounds are representable."""
    write: Function = DIRECT.get((mode, word, "f32")) or partial(NARROW[word], mode=mode)

    def fn(a: Array) -> Array:
        if relu:
            a = np.where(a <= 0, F32(0), a)
        if satfinite:
            limit = F32(MAX_FINITE[word])
            a = np.where(np.abs(a) > limit, np.copysign(limit, a), a)
        return np.asarray(write(a))

    return fn


def _tf32(a: Array, mode: str) -> Array:
    """Keep 10 bits of mantissa; the result stays in an f32 word."""
    word = bits(a)
    nudge: dict[str, Array] = {
        "rna": np.asarray(U32(0x1000)),
        "rn": U32(0xFFF) + ((word >> U32(13)) & U32(1)),
        "rz": np.asarray(U32(0)),
    }
    return np.asarray(np.where(np.isnan(a), U32(0x7FFFFFFF), (word + nudge[mode]) & ~U32(0x1FFF)))


NARROW: dict[str, Callable[..., Array]] = {
    "f16": lambda a, mode: _write_f16(np.asarray(a).astype(F64), mode),
    "bf16": bf16_of_odd,
    "tf32": _tf32,
}


def _narrow_half(mode: str, relu: str, satfinite: str, word: str) -> Op:
    return lane("f32", word, _clamped(mode, relu, satfinite, word))


def _narrow_pair(mode: str, relu: str, satfinite: str, word: str) -> Op:
    """d = {a in the upper half, b in the lower}."""
    convert = _clamped(mode, relu, satfinite, word.removesuffix("x2"))

    def fn(a: Array, b: Array) -> Array:
        high, low = bits(convert(a)).astype(U32), bits(convert(b)).astype(U32)
        return np.asarray((high << U32(16)) | low)

    return lane("f32 f32", word, fn)


def _narrow_tf32(mode: str, satfinite: str, relu: str) -> Op:
    return lane("f32", "b32", _clamped(mode, relu, satfinite, "tf32"))


# cvt.pack --------------------------------------------------------------------------------------------------------


def _saturated(word: str) -> Callable[[Array], Array]:
    width = int(word[1:])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if word[0] == "s" else (0, (1 << width) - 1)
    mask = U32((1 << width) - 1)
    return lambda a: np.clip(a, np.int32(low), np.int32(high)).astype(U32) & mask


def _pack16(word: str) -> Op:
    narrowed = _saturated(word)
    return lane("s32 s32", "u32", lambda a, b: (narrowed(a) << U32(16)) | narrowed(b))


def _pack_small(word: str) -> Op:
    narrowed, width = _saturated(word), U32(int(word[1:]))
    return lane("s32 s32 b32", "u32", lambda a, b, c: (c << (width * U32(2))) | (narrowed(a) << width) | narrowed(b))


# The general form ------------------------------------------------------------------------------------------------


def _convert(mode: str, ftz: str, sat: str, dest: str, source: str) -> Op | None:
    """The table leaves to the machine which types need a rounding modifier, and of which kind."""
    if source in INTEGERS and dest in INTEGERS:
        return None if mode or ftz else _integer(sat, dest, source)
    if source in INTEGERS:
        return _from_integer(mode, ftz, sat, dest, source) if mode in ROUNDING else None
    if dest in INTEGERS:
        return _to_integer(mode, ftz, sat, dest, source) if mode in TO_INTEGRAL else None
    if dest == source:
        return _within(mode, ftz, sat, dest)
    narrows = RANK[dest] <= RANK[source]  # widening is exact; f16 to bf16 is not
    return _float(mode, ftz, sat, dest, source) if (mode in ROUNDING if narrows else not mode) else None


def _within(mode: str, ftz: str, sat: str, word: str) -> Op | None:
    if not mode:
        return _same(ftz, sat, word)
    return _integral(mode, ftz, sat, word) if mode in TO_INTEGRAL else None


OPERATIONS: Operations = {
    "cvt{.round}{.ftz}{.sat}.dtype.atype": _convert,
    "cvt.frnd2{.relu}{.satfinite}.half.f32": _narrow_half,
    "cvt.frnd2{.relu}{.satfinite}.fp16x2type.f32": _narrow_pair,
    "cvt.rna{.satfinite}.tf32.f32": lambda satfinite: _narrow_tf32("rna", satfinite, ""),
    "cvt.frnd2{.satfinite}{.relu}.tf32.f32": _narrow_tf32,
    "cvt.pack.sat.to16.s32": _pack16,
    "cvt.pack.sat.to8.s32.b32": _pack_small,
}
