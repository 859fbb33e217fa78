"""Conversions with random bits: PTX ISA "cvt" with .rs.

A value is rounded away from zero if the sum of its discarded fraction and the random bits carries. The ISA says which random bits
each operand gets: 13 for f16, 16 for all other formats, those of e2m1 from the same byte of both halves of `rbits`. Not in its text, and
not tried on a chip: that the bits line up with the highest discarded ones where more are discarded, and the order of e2m1's two bytes.
"""

from __future__ import annotations

import numpy as np

from .ops_base import Array, Op, Operations, lane
from .ops_half import pack, round_bf16, round_f16
from .ops_minifloat import FORMATS, Mini
from .ops_rounding import F32, F64

U16, U32 = np.uint16, np.uint32
# Bits of the fraction, and of the exponent of the smallest normal value.
_HALVES = {"f16": (10, -14), "bf16": (7, -126)}
_LARGEST = {"f16": 65504.0, "bf16": float.fromhex("0x1.fep127")}


def _steps(x: Array, random: Array, bits: int, fraction: int, smallest: int) -> Array:
    """The magnitude of each f32, rounded with `bits` random bits to a format's fraction; NaN and infinity as they are."""
    size = np.abs(np.asarray(x).astype(F64))
    finite = np.isfinite(size)
    exponent = np.maximum(np.frexp(np.where(finite, size, 1))[1] - 1, smallest) - fraction
    scaled = np.ldexp(np.where(finite, size, 0), -exponent)
    whole = np.floor(scaled)
    rounded = np.ldexp(whole + (scaled - whole + np.ldexp(random.astype(F64), -bits) >= 1), exponent)
    return np.asarray(np.where(finite, rounded, size))


def _signed(x: Array, size: Array, relu: str) -> Array:
    signed = np.copysign(size, x)
    return np.asarray(np.where(x <= 0, 0, signed) if relu else signed)


def _to_half(relu: str, satfinite: str, dest: str) -> Op:
    name = dest.removesuffix("x2")
    bits, narrow = (13, round_f16) if name == "f16" else (16, lambda x: round_bf16(x.astype(F32)))

    def one(x: Array, random: Array) -> Array:
        size = _steps(x, random & U32((1 << bits) - 1), bits, *_HALVES[name])
        return narrow(_signed(x, np.minimum(size, _LARGEST[name]) if satfinite else size, relu))

    return lane("f32 f32 b32", dest, lambda a, b, r: pack(np.stack([one(b, r), one(a, r >> U32(16))], axis=-1)))


def _both_bytes(random: Array, shift: int) -> Array:
    """The same byte of both halves, that of the upper half first."""
    return np.asarray((random >> U32(8 + shift) & U32(0xFF00)) | (random >> U32(shift) & U32(0xFF)))


def _code(form: Mini, x: Array, random: Array, relu: str) -> Array:
    size = _steps(x, random, 16, form.mantissa, 1 - form.bias)
    return form.encode(_signed(x, size, relu).astype(F32))


def _to_four(relu: str, dest: str) -> Op:
    form, wide = FORMATS[dest.removesuffix("x4")], dest != "e2m1x4"
    dtype, distance = (U32, 8) if wide else (U16, 4)

    def fn(a: Array, b: Array, e: Array, f: Array, random: Array) -> Array:
        first, last = (random >> U32(16), random & U32(0xFFFF)) if wide else (_both_bytes(random, 8), _both_bytes(random, 0))
        codes = [_code(form, x, r, relu).astype(dtype) for x, r in ((a, first), (b, first), (e, last), (f, last))]
        return np.asarray(codes[0] << dtype(3 * distance) | codes[1] << dtype(2 * distance) | codes[2] << dtype(distance) | codes[3])

    return lane("f32 f32 f32 f32 b32", "b32" if wide else "b16", fn)


OPERATIONS: Operations = {
    "cvt.rs{.relu}{.satfinite}.fp16x2type.f32": _to_half,
    **{f"cvt.rs{{.relu}}.satfinite.{types}.f32": _to_four for types in ("f8x4type", "f6x4type", "f4x4type")},
}
