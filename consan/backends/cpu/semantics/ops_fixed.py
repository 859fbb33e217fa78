"""Conversions of pairs of fixed-point numbers, 8 bits with 6 bits of fraction: PTX ISA "cvt", format s2f6x2, "Fixed-point Data format".

A number is divided by its scale, which is a power of two, and rounded to the nearest one; beyond the largest magnitude the result is the
largest of its sign, -2 or 127 / 64. NaN becomes the largest number.
"""

from __future__ import annotations

import numpy as np

from .ops_base import Array, Function, Op, Operations, lane
from .ops_half import pack, relu, round_bf16
from .ops_minifloat import widen
from .ops_rounding import F32, F64

U8, U16 = np.uint8, np.uint16
FRACTION, LOWEST, HIGHEST = 6, -128, 127
BIAS, NO_SCALE = 127, 255  # of ue8m0; the code of NaN
LARGEST_BF16 = float.fromhex("0x1.fep127")


def _bytes(a: Array) -> Array:
    """The two bytes of a word on a trailing axis, lowest first."""
    return np.stack([a & U16(255), a >> U16(8)], axis=-1)


def _scales(scale: Array) -> Array:
    code = _bytes(scale)
    return np.where(code == NO_SCALE, np.nan, np.ldexp(1.0, code.astype(np.int64) - BIAS))


def _encoder(clamp: str) -> Function:
    def encode(values: Array) -> Array:
        wide = relu(values.astype(F64)) if clamp else values.astype(F64)
        steps = np.clip(np.rint(np.ldexp(wide, FRACTION)), LOWEST, HIGHEST)
        codes = np.where(np.isnan(steps), HIGHEST, steps).astype(np.int64).astype(U8)
        return np.asarray(codes[..., 1].astype(U16) << U16(8) | codes[..., 0])

    return encode


def _from_f32(clamp: str, scaled: str) -> Op:
    encode = _encoder(clamp)
    if not scaled:
        return lane("f32 f32", "b16", lambda a, b: encode(np.stack([b, a], axis=-1)))
    return lane("f32 f32 b16", "b16", lambda a, b, scale: encode(np.stack([b, a], axis=-1).astype(F64) / _scales(scale)))


def _from_bf16(clamp: str, scaled: str) -> Op:
    encode = _encoder(clamp)
    if not scaled:
        return lane("bf16x2", "b16", lambda a: encode(widen(a, "bf16x2")))
    return lane("bf16x2 b16", "b16", lambda a, scale: encode(widen(a, "bf16x2").astype(F64) / _scales(scale)))


def _to_bf16(saturated: str, clamp: str, scaled: str) -> Op:
    def finish(values: Array) -> Array:
        wide = relu(values) if clamp else values
        wide = np.clip(wide, -LARGEST_BF16, LARGEST_BF16) if saturated else wide
        return pack(round_bf16(wide.astype(F32)))

    def numbers(a: Array) -> Array:
        return np.ldexp(_bytes(a).astype(U8).view(np.int8).astype(F64), -FRACTION)

    if not scaled:
        return lane("b16", "bf16x2", lambda a: finish(numbers(a)))
    return lane("b16 b16", "bf16x2", lambda a, scale: finish(numbers(a) * _scales(scale)))


OPERATIONS: Operations = {
    "cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.f32": _from_f32,
    "cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.bf16x2": _from_bf16,
    "cvt.rn{.satfinite}{.relu}{.scaled::n2::ue8m0}.bf16x2.s2f6x2": _to_bf16,
}
