"""Exact reference arithmetic for the tests of the instruction semantics: Python integers and fractions, one element at a time.

The arithmetic shares nothing with the product code: formats are described by their parameters, values are Fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.semantics.ops import DTYPES, Op, canonicalize, semantics

Array = npt.NDArray[Any]


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


# Running an opcode on random and special operands ---------------------------------------------------------------------

LANES = 600


def op_of(opcode: str, *, operands: int | None = None) -> Op:
    """The Op of an opcode text, which must exist."""
    op = semantics(tuple(opcode.split(".")), sources=operands)
    assert op is not None, f"no semantics for {opcode}"
    return op


def run(op: Op, *operands: Array) -> tuple[Array, ...]:
    """Results of an Op as a tuple, with NumPy's warnings off as in the engine, and operands proven untouched."""
    before = [x.tobytes() for x in operands]
    with np.errstate(all="ignore"):
        result = op.fn(*operands)
        results = result if isinstance(result, tuple) else (result,)
        if op.ufunc is not None:
            _check_ufunc(op, operands, results[0])
    assert [x.tobytes() for x in operands] == before, "an operand was written"
    for values, word in zip(results, op.dests, strict=True):
        assert values.dtype == DTYPES[word]
    return tuple(np.asarray(values) for values in results)


def _check_ufunc(op: Op, operands: tuple[Array, ...], expected: Array) -> None:
    """The fast path must store exactly what fn returns (up to NaN payloads where that is declared)."""
    assert op.ufunc is not None
    out = np.empty(np.shape(expected), DTYPES[op.dests[0]])
    op.ufunc(*operands, out=out)
    if op.canonical_nan:
        canonicalize(out, op.dests[0])
    assert out.tobytes() == np.asarray(expected).tobytes()


def signed(word: str) -> bool:
    return word[0] == "s"


def width(word: str) -> int:
    return DTYPES[word].itemsize * 8


def integers(word: str, rng: np.random.Generator, count: int = LANES) -> Array:
    """Random integers of all magnitudes, and the corners."""
    bits = width(word)
    special = np.array([0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0xAA, 31, 32, 33, 63, 64, 255], np.uint64)
    values = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> rng.integers(0, 64, count).astype(np.uint64)
    values = np.where(rng.integers(0, 4, count) == 0, rng.choice(special, count), values)
    flip = rng.integers(0, 2, count).astype(bool)
    return np.where(flip, ~values, values).astype(f"u{bits // 8}").view(DTYPES[word])


def floats(word: str, rng: np.random.Generator, count: int = LANES, spread: int = 20) -> Array:
    """Words of a float format: random bits, values near one, few-bit significands (for ties), and the corners."""
    form = FORMATS[word]
    total = 1 + form.exponent_bits + form.mantissa_bits
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> np.uint64(64 - total)
    near = (form.bias + rng.integers(-min(spread, form.bias - 1), min(spread, form.bias - 1), count)).astype(np.uint64)
    tame = (bits & ~np.uint64(form.infinity)) | (near << np.uint64(form.mantissa_bits))
    tame = np.where(rng.integers(0, 3, count) == 0, tame & ~np.uint64((1 << (form.mantissa_bits - 3)) - 1), tame)
    one = form.bias << form.mantissa_bits
    corners = np.array([0, 1, form.infinity - 1, form.infinity, form.infinity + 1, one, one + 1, 1 << form.mantissa_bits], np.uint64)
    special = rng.choice(corners, count) | (rng.integers(0, 2, count).astype(np.uint64) << np.uint64(total - 1))
    kind = rng.integers(0, 4, count)
    words = np.where(kind == 0, bits, np.where(kind == 1, special, tame))
    return words.astype(f"u{total // 8}").view(DTYPES[word])


def as_words(values: Array) -> list[int]:
    """Raw words of an array of any dtype, as Python integers."""
    return [int(x) for x in np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").reshape(-1)]
