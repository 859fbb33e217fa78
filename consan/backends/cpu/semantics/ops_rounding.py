"""Correct rounding with NumPy: fused multiply-add, directed rounding, flush to zero, saturation.

Follows PTX ISA "Rounding Modifiers" and the notes of add, mul, fma, div, rcp, sqrt. The tools are error-free transformations
(TwoSum, Veltkamp/Dekker product) and rounding to odd: a value rounded to odd with at least two spare bits may be rounded again, in
any mode, as if it were exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd", 2008).

f32 works in f64, where products are exact. f64 works with pairs of f64; elements whose exponents leave the range in which the
transformations are error-free are computed one by one with Python integers. NaN payloads are the caller's (`canonicalize`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .ops_base import Array, any_true, bits, canonicalize

F32, F64, U64, I64 = np.float32, np.float64, np.uint64, np.int64

_TINY32 = F32(2.0**-126)
_TINY = {4: F32(2.0**-126), 8: F64(2.0**-1022), 2: np.float16(2.0**-14)}
_LOW_BITS = U64(0x1FFFFFFF)  # the bits of an f64 that an f32 drops
_HALFWAY = U64(0x10000000)
_SPLIT = F64(2.0**27 + 1)  # Veltkamp's constant for 53 bits
_SAFE_LOW, _SAFE_HIGH = 2.0**-400, 2.0**400  # products, squares and their error terms stay normal


def flush(x: Array) -> Array:
    """Sign-preserving flush of subnormals to zero (.ftz)."""
    small = np.abs(x) < _TINY[x.dtype.itemsize]
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if any_true(small) else x


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN and -0 become +0 (.sat)."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    clamped: Array = np.fmin(np.fmax(x, zero), one) + zero
    return clamped


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its exact error (TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def odd(total: Array, error: Array) -> Array:
    """Round to odd: `total` is the nearest value, `error` (same exact sign) what is missing; NaN errors leave it alone."""
    inexact = error != 0
    if not any_true(inexact):
        return total
    inexact &= np.isfinite(error) & np.isfinite(total)
    away = inexact & ((error < 0) != (total < 0))
    word = bits(total) - away.astype(U64)
    return np.asarray((word | inexact).view(F64))


def odd_sum(a: Array, b: Array) -> Array:
    """a + b rounded to odd, in f64."""
    return odd(*two_sum(a, b))


def to_f32_odd(x: Array) -> Array:
    """f64 to f32 rounded to odd, so that it may be rounded again to bf16, f16 or tf32."""
    near = np.asarray(x).astype(F32)
    wide = near.astype(F64)
    inexact = wide != x
    away = np.abs(wide) > np.abs(x)
    word = (bits(near) - away) | inexact
    return np.where(np.isnan(x), near, word.astype(np.uint32).view(F32))


def step(x: Array, up: Array, down: Array) -> Array:
    """The neighbour of x above where `up`, below where `down`, else x."""
    if not (any_true(up) or any_true(down)):
        return x
    top = x.dtype.type(np.inf)
    return np.where(up, np.nextafter(x, top), np.where(down, np.nextafter(x, -top), x))


def directed(near: Array, error: Array, mode: str) -> Array:
    """Correct the nearest value to a directed mode, given the sign of (exact - near). A NaN error means exact."""
    if mode == "rn":
        return near
    low, high = error < 0, error > 0
    no = np.zeros_like(low)
    if mode == "rm":
        return step(near, no, low)
    if mode == "rp":
        return step(near, high, no)
    negative = np.signbit(near)
    return step(near, high & negative, low & ~negative)


def narrow(x: Array, mode: str) -> Array:
    """f64 (exact, or rounded to odd) to f32 in any mode."""
    near = np.asarray(x.astype(F32))
    if mode == "rn":
        return near
    return directed(near, np.subtract(x, near, dtype=F64), mode)


# f32 ----------------------------------------------------------------------------------------------------------------


def fma32(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """Fused multiply-add of f32, correctly rounded, with the canonical NaN.

    The product is exact in f64; the sum is rounded there once. Rounding it again to f32 can only go wrong where the f64 sum is
    exactly halfway between two f32 values, or where the result is subnormal (another halfway). Only such arrays take the slow path.
    """
    product = np.asarray(a.astype(F64) * b.astype(F64))
    if mode != "rn":
        return canonicalize(np.array(_fma32_slow(product, c, mode)), "f32")
    total = np.asarray(product + c.astype(F64))
    result = total.astype(F32)
    normal = np.abs(result) >= _TINY32
    all_normal = np.count_nonzero(normal) == normal.size
    # exact zeros and NaN are right already; any other value that is not normal is subnormal, or underflowed to zero
    lost = not all_normal and any_true(~normal & (total != 0) & (total == total))
    if lost or any_true((total.view(U64) & _LOW_BITS) == _HALFWAY):
        result = _fma32_slow(product, c, mode)
    return result if all_normal else canonicalize(np.asarray(result), "f32")


def _fma32_slow(product: Array, c: Array, mode: str) -> Array:
    wide = c.astype(F64)
    return _down_zero(narrow(odd_sum(product, wide), mode), product, wide, mode)


def _down_zero(result: Array, a: Array, b: Array, mode: str) -> Array:
    """x + -x is -0 when rounding down (IEEE 754, 6.3)."""
    if mode != "rm":
        return result
    cancelled = (result == 0) & (a == -b) & (np.signbit(a) != np.signbit(b))
    return np.where(cancelled, result.dtype.type(-0.0), result)


def add32(a: Array, b: Array, mode: str) -> Array:
    """Sum of two f32 in a directed mode."""
    x, y = a.astype(F64), b.astype(F64)
    return _down_zero(narrow(odd_sum(x, y), mode), x, y, mode)


def mul32(a: Array, b: Array, mode: str) -> Array:
    """Product of two f32 in a directed mode."""
    return narrow(np.multiply(a, b, dtype=F64), mode)


def div32(a: Array, b: Array, mode: str) -> Array:
    """Quotient of two f32: the native division is correctly rounded, the exact residual corrects the directed modes."""
    near = np.asarray(np.divide(a, b))
    if mode == "rn":
        return near
    return directed(near, _quotient_error(near.astype(F64), a.astype(F64), b.astype(F64)), mode)


def _quotient_error(near: Array, a: Array, b: Array) -> Array:
    """Sign of a/b - near, where near*b is exact; an overflowed quotient is below infinity."""
    residual = a - near * b
    error = np.where(b < 0, -residual, residual)
    overflow = np.isinf(near) & np.isfinite(a) & (b != 0)
    return np.where(overflow, -near, error)


def sqrt32(a: Array, mode: str) -> Array:
    """Square root of f32."""
    near = np.asarray(np.sqrt(a))
    if mode == "rn":
        return near
    wide = near.astype(F64)
    return directed(near, a.astype(F64) - wide * wide, mode)


# f64 ----------------------------------------------------------------------------------------------------------------


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its exact error (Dekker); exact while the operands are in the safe range."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Array) -> tuple[Array, Array]:
    big = a * _SPLIT
    high = big - (big - a)
    return high, a - high


def _safe(*operands: Array) -> Array:
    """Elements whose operands are all zero-free and far from overflow and underflow."""
    result: Any = True
    for x in operands:
        size = np.abs(x)
        result = result & (size >= _SAFE_LOW) & (size <= _SAFE_HIGH)
    return np.asarray(result)


def _patched(result: Array, safe: Array, mode: str, exact: Callable[..., Fraction], native: Array, operands: tuple[Array, ...]) -> Array:
    """Replace the elements outside the safe range.

    With an infinity or NaN among the operands, or a zero among the first two, IEEE arithmetic is exact: `native`.
    The rest is computed one by one; an exact zero is native again, since its sign is that of IEEE arithmetic.
    """
    if safe.all():
        return result
    trivial = ~np.all([np.isfinite(x) for x in map(np.asarray, np.broadcast_arrays(*operands))], axis=0)
    for x in operands[:2]:
        trivial = trivial | (x == 0)
    columns = [column.reshape(-1) for column in np.broadcast_arrays(*operands)]
    out = np.where(safe, result, native)
    flat = out.reshape(-1)
    for i in np.flatnonzero(~safe & ~trivial):
        value = exact(*(float(column[i]) for column in columns))
        if value:
            flat[i] = round_fraction(value, mode)
    return out


def round_fraction(value: Fraction, mode: str) -> float:
    """A non-zero exact value as f64, in any mode."""
    try:
        near = float(value)
    except OverflowError:
        near = float("inf") if value > 0 else float("-inf")
    error = np.asarray(-near if np.isinf(near) else _sign(value - Fraction(near)))
    if near == 0:
        near = 0.0 if value > 0 else -0.0
    return float(directed(np.asarray(F64(near)), error, mode))


def _sign(value: Fraction) -> float:
    return float((value > 0) - (value < 0))


def fma64(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """Fused multiply-add of f64, correctly rounded (Boldo and Melquiond, algorithm Fma)."""
    native = a * b + c
    product, low = two_product(a, b)
    high, low = two_sum(c, low)
    top, middle = two_sum(product, high)
    near, error = two_sum(top, odd_sum(low, middle))
    result = _down_zero(directed(near, error, mode), product, c, mode)
    magnitude = np.abs(result)
    safe = _safe(a, b) & (np.abs(c) <= _SAFE_HIGH) & (magnitude >= _SAFE_LOW)
    return _patched(result, safe, mode, _exact_fma, _native_fma(native, a, b, c, mode), (a, b, c))


def _native_fma(native: Array, a: Array, b: Array, c: Array, mode: str) -> Array:
    """The result of an element with an infinity, a NaN, a zero product or an exact cancellation."""
    lone = np.isinf(c) & np.isfinite(a) & np.isfinite(b)
    return _down_zero(np.where(lone, c, native), a * b, c, mode)


def _exact_fma(a: float, b: float, c: float) -> Fraction:
    return Fraction(a) * Fraction(b) + Fraction(c)


def add64(a: Array, b: Array, mode: str) -> Array:
    """Sum of two f64 in a directed mode; TwoSum is exact unless the sum overflows, whose error sign is known."""
    total, error = two_sum(a, b)
    overflow = np.isinf(total) & np.isfinite(a) & np.isfinite(b)
    return _down_zero(directed(total, np.where(overflow, -total, error), mode), a, b, mode)


def mul64(a: Array, b: Array, mode: str) -> Array:
    """Product of two f64 in a directed mode."""
    product, error = two_product(a, b)
    return _patched(directed(product, error, mode), _safe(a, b), mode, _exact_product, a * b, (a, b))


def _exact_product(a: float, b: float) -> Fraction:
    return Fraction(a) * Fraction(b)


def div64(a: Array, b: Array, mode: str) -> Array:
    """Quotient of two f64."""
    near = np.asarray(np.divide(a, b))
    if mode == "rn":
        return near
    product, low = two_product(near, b)
    residual = (a - product) - low
    error = np.where(b < 0, -residual, residual)
    return _patched(directed(near, error, mode), _safe(a, b), mode, _exact_quotient, near, (a, b))


def _exact_quotient(a: float, b: float) -> Fraction:
    return Fraction(a) / Fraction(b)


def sqrt64(a: Array, mode: str) -> Array:
    """Square root of f64. Below the safe range the operand is scaled by a power of four, which no rounding notices."""
    near = np.asarray(np.sqrt(a))
    if mode == "rn":
        return near
    small = np.abs(a) < _SAFE_LOW
    big = np.abs(a) > _SAFE_HIGH
    scale = np.where(small, -600, np.where(big, 300, 0))
    scaled = np.ldexp(a, -2 * scale)
    root = np.sqrt(scaled)
    product, low = two_product(root, root)
    return np.ldexp(directed(root, (scaled - product) - low, mode), scale)


# Any small format ---------------------------------------------------------------------------------------------------

INTEGRAL: dict[str, np.ufunc] = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}


def away(x: Array) -> Array:
    """Nearest integer, halves away from zero (.rna)."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def round_to(x: Array, precision: int, lowest: int, mode: str) -> Array:
    """Round an f64 (exact, or to odd) to `precision` bits with no bit below 2**lowest; overflow is the caller's."""
    exponent = np.frexp(x)[1].astype(I64)
    unit = np.maximum(exponent - precision, lowest)
    scaled = np.ldexp(x, -unit)
    whole = away(scaled) if mode == "rna" else INTEGRAL[mode](scaled)
    return np.asarray(np.ldexp(whole, unit))
