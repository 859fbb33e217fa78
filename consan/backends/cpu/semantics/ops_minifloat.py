"""Conversions to and from the packed 8-, 6- and 4-bit floats: PTX ISA "cvt", formats e4m3, e5m2, e2m3, e3m2, e2m1 and ue8m0.

A format is the sorted table of its non-negative finite values, so the code of a rounded value is its index there. All narrowing
forms are .satfinite: beyond the largest value (infinity too) the result is that value; NaN becomes the format's NaN, or the
largest value where it has none. s2f6x2 is in ops_fixed, .rs in ops_stochastic.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from consan.dataclass import dataclass

from .ops_base import Array, Function, Op, Operations, lane
from .ops_half import PACKED, pack, round_bf16, round_f16, unpack
from .ops_rounding import F32, F64, round_to

U8, U16, U32 = np.uint8, np.uint16, np.uint32


@dataclass(frozen=True)
class Mini:
    """A small float format: fields, how many codes of the positive half are finite, and its NaN code if it has one."""

    exponent: int
    mantissa: int
    bias: int
    finite: int
    nan: int | None

    @cached_property
    def values(self) -> Array:
        """The finite non-negative values, ascending; the index is the code."""
        code = np.arange(self.finite)
        exponent, fraction = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        significand = fraction + (exponent > 0) * (1 << self.mantissa)
        return np.asarray(np.ldexp(significand.astype(F64), np.maximum(exponent, 1) - self.bias - self.mantissa))

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @cached_property
    def decoded(self) -> Array:
        """f32 value of each of the 256 bytes (unused high bits ignored)."""
        table = np.full(256, np.nan, F32)
        for byte in range(256):
            code = byte & (self.sign - 1)
            if code < self.finite:
                table[byte] = -self.values[code] if byte & self.sign else self.values[code]
            elif self.nan is not None and code == self.finite and self.mantissa == 2:
                table[byte] = -np.inf if byte & self.sign else np.inf
        return table

    def encode(self, x: Array) -> Array:
        """Codes of f32 values, nearest even, saturating."""
        rounded = round_to(np.abs(np.asarray(x).astype(F64)), self.mantissa + 1, 1 - self.bias - self.mantissa, "rn")
        code = np.searchsorted(self.values, np.minimum(rounded, self.values[-1])).astype(U8)
        code = code | np.where(np.signbit(x), U8(self.sign), U8(0))
        return np.asarray(np.where(np.isnan(x), U8(self.finite - 1 if self.nan is None else self.nan), code))


FORMATS: dict[str, Mini] = {
    "e4m3": Mini(4, 3, 7, 0x7F, 0x7F),
    "e5m2": Mini(5, 2, 15, 0x7C, 0x7F),
    "e2m3": Mini(2, 3, 1, 0x20, None),
    "e3m2": Mini(3, 2, 3, 0x20, None),
    "e2m1": Mini(2, 1, 1, 0x08, None),
}
PAIRS = tuple(f"{name}x2" for name in FORMATS)
PAIR_CLASSES = ("f8x2type", "f6x2type", "f4x2type")
# Register word of a pair and the distance between its elements.
HOLDER: dict[str, tuple[str, int]] = dict.fromkeys(PAIRS, ("b16", 8)) | {"e2m1x2": ("b8", 4)}
HOLDER_DTYPE = {"b8": U8, "b16": U16}


def _join(name: str, high: Array, low: Array) -> Array:
    word, distance = HOLDER[name]
    dtype = HOLDER_DTYPE[word]
    return np.asarray((high.astype(dtype) << dtype(distance)) | low.astype(dtype))


def _encoder(relu: str, name: str) -> Function:
    encode = FORMATS[name.removesuffix("x2")].encode
    return (lambda x: encode(np.where(x <= 0, F32(0), x))) if relu else encode


def _from_f32(relu: str, name: str) -> Op:
    encode = _encoder(relu, name)
    return lane("f32 f32", HOLDER[name][0], lambda a, b: _join(name, encode(a), encode(b)))


def _from_half(relu: str, name: str, source: str) -> Op:
    encode = _encoder(relu, name)

    def fn(a: Array) -> Array:
        elements = widen(a, source)
        return _join(name, encode(elements[..., 1]), encode(elements[..., 0]))

    return lane(source, HOLDER[name][0], fn)


def widen(a: Array, word: str) -> Array:
    """Elements of a packed half word as f32, on a trailing axis."""
    elements = unpack(a, word)
    return elements.astype(F32) if PACKED[word].element == "f16" else np.asarray(elements.astype(U32) << U32(16)).view(F32)


def _to_half(relu: str, dest: str, name: str) -> Op | None:
    if dest != "f16x2":
        return None
    table = FORMATS[name.removesuffix("x2")].decoded
    word, distance = HOLDER[name]
    mask = (1 << 8) - 1 if distance == 8 else 15

    def fn(a: Array) -> Array:
        values = np.stack([table[a & mask], table[(a >> distance) & mask]], axis=-1)
        return pack(round_f16(np.where(values <= 0, F32(0), values) if relu else values))

    return lane(word, "f16x2", fn)


# ue8m0: a power of two, code 255 is NaN -------------------------------------------------------------------------------


def _encode_scale(x: Array, mode: str) -> Array:
    size = np.abs(np.asarray(x).astype(F64))
    mantissa, exponent = np.frexp(size)
    power = exponent - 1 + ((mantissa > 0.5) if mode == "rp" else 0)
    code = np.where(size == 0, 0, np.clip(power + 127, 0, 254))
    return np.where(np.isnan(x), 255, np.where(np.isinf(x), 254, code)).astype(U8)


def _scale_from_f32(mode: str, _sat: str) -> Op:
    return lane("f32 f32", "b16", lambda a, b: _join("e4m3x2", _encode_scale(a, mode), _encode_scale(b, mode)))


def _scale_from_bf16(mode: str, _sat: str) -> Op:
    def fn(a: Array) -> Array:
        code = _encode_scale(widen(a, "bf16x2"), mode)
        return _join("e4m3x2", code[..., 1], code[..., 0])

    return lane("bf16x2", "b16", fn)


def _bf16_from_scale(a: Array) -> Array:
    code = np.stack([a & U16(255), a >> U16(8)], axis=-1)
    value = np.where(code == 255, F32(np.nan), np.ldexp(F32(1), code.astype(np.int32) - 127))
    return pack(round_bf16(value.astype(F32)))


OPERATIONS: Operations = {
    **{f"cvt.rn.satfinite{{.relu}}.{types}.f32": _from_f32 for types in PAIR_CLASSES},
    **{f"cvt.rn.satfinite{{.relu}}.{types}.fp16x2type": _from_half for types in PAIR_CLASSES},
    **{f"cvt.rn{{.relu}}.fp16x2type.{types}": _to_half for types in PAIR_CLASSES},
    "cvt.frnd3{.satfinite}.ue8m0x2.f32": _scale_from_f32,
    "cvt.frnd3{.satfinite}.ue8m0x2.bf16x2": _scale_from_bf16,
    "cvt.rn.bf16x2.ue8m0x2": lambda: lane("b16", "bf16x2", _bf16_from_scale),
}
