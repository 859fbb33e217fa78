"""Exact reference arithmetic for the tests of the instruction semantics: Python integers and fractions, one element at a time.

Shares nothing with the product code: formats are described by their parameters, values are Fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """An IEEE-like binary format."""

    exponent_bits: int
    mantissa_bits: int

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    def is_nan(self, word: int) -> bool:
        return word & (self.sign - 1) > self.infinity

    def is_inf(self, word: int) -> bool:
        return word & (self.sign - 1) == self.infinity

    def value(self, word: int) -> Fraction:
        """Exact value of a finite word."""
        magnitude = word & (self.sign - 1)
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude & ((1 << self.mantissa_bits) - 1)
        if exponent:
            mantissa |= 1 << self.mantissa_bits
        unit = Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa_bits)
        return (-1 if word & self.sign else 1) * mantissa * unit

    def round(self, value: Fraction, mode: str = "rn", zero_sign: bool = False) -> int:
        """The word nearest to an exact value in a rounding mode; `zero_sign` is the sign of an exact zero."""
        if value == 0:
            return self.sign if zero_sign else 0
        negative, size = value < 0, abs(value)
        exponent = max(_log2(size), 1 - self.bias)
        scaled = size / Fraction(2) ** (exponent - self.mantissa_bits)
        whole = _round_up(scaled, mode, negative)
        word = whole if exponent == 1 - self.bias else whole + ((exponent + self.bias - 1) << self.mantissa_bits)
        if word >= self.infinity:
            word = self._overflow(mode, negative)
        return word | (self.sign if negative else 0)

    def _overflow(self, mode: str, negative: bool) -> int:
        to_infinity = mode in ("rn", "rna") or (mode == "rp" and not negative) or (mode == "rm" and negative)
        return self.infinity if to_infinity else self.infinity - 1


def _log2(size: Fraction) -> int:
    """Floor of the binary logarithm."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def _round_up(scaled: Fraction, mode: str, negative: bool) -> int:
    floor = math.floor(scaled)
    rest = scaled - floor
    if rest == 0:
        return floor
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and floor % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rm": negative,
        "rp": not negative,
    }[mode]
    return floor + up


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def wrap(value: int, bits: int, signed: bool) -> int:
    """An integer modulo 2**bits, in the range of the type."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def clamp(value: int, bits: int, signed: bool) -> int:
    low, high = limits(bits, signed)
    return min(max(value, low), high)


def limits(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
