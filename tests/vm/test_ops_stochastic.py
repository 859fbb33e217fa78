"""Conversions with random bits against exact fractions: away from zero exactly where the discarded part and the random bits carry."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ops_reference import FORMATS, as_words, floats, op_of, run
from test_ops_convert import MINI, mini_value

RNG = np.random.default_rng


def up_or_down(values: list[Fraction], size: Fraction, random: int, bits: int) -> int:
    """The index of the value that `size` is rounded to: of its two neighbours among ascending `values`."""
    low = max(index for index, value in enumerate(values) if value <= size)
    if low + 1 == len(values):
        return low
    fraction = (size - values[low]) / (values[low + 1] - values[low])
    return low + (fraction * 2**bits + random >= 2**bits)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", MINI)
def test_four_values(name: str, relu: str) -> None:
    exponent_bits, mantissa_bits, _, largest, nan = MINI[name]
    values, sign = [mini_value(name, code) for code in range(largest + 1)], 1 << (exponent_bits + mantissa_bits)
    form, rng = FORMATS["f32"], RNG(11)
    near = (rng.standard_normal((4, 400)) * np.exp2(rng.integers(-12, 12, (4, 400)))).astype(np.float32)
    sources = [np.concatenate([row, floats("f32", rng, 40, 4)]) for row in near]
    count = len(sources[0])
    sources = [row[:count] for row in sources]
    random = rng.integers(0, 1 << 32, count).astype(np.uint32)

    def one(word: int, bits: int) -> int:
        if form.is_nan(word):
            return largest if nan is None else nan
        if word & form.sign and relu:
            return 0
        size = values[-1] if form.is_inf(word) else abs(form.value(word))
        return up_or_down(values, min(size, values[-1]), bits, 16) | sign * bool(word & form.sign)

    got = as_words(run(op_of(f"cvt.rs{relu}.satfinite.{name}x4.f32"), *sources, random)[0])
    shift, words = 4 if name == "e2m1" else 8, [as_words(row) for row in sources]
    for k, r in enumerate(random.tolist()):
        high, low = r >> 16, r & 0xFFFF
        if name == "e2m1":
            high, low = (r >> 24 << 8) | (r >> 8 & 255), (r >> 16 & 255) << 8 | (r & 255)
        a, b, e, f = (one(row[k], bits) for row, bits in zip(words, (high, high, low, low), strict=True))
        assert got[k] == a << 3 * shift | b << 2 * shift | e << shift | f


@pytest.mark.parametrize("saturate", ["", ".satfinite"])
@pytest.mark.parametrize(("name", "bits", "discarded"), [("f16", 13, 13), ("bf16", 16, 16)])
def test_pairs(name: str, bits: int, discarded: int, saturate: str) -> None:
    """Normal results: the carry of the ISA's integer addition. Overflow is infinity, or the largest value with .satfinite."""
    rng, half = RNG(12), FORMATS[name]
    a, b = ((rng.standard_normal(500) * np.exp2(rng.integers(-8, 8, 500))).astype(np.float32) for _ in range(2))
    a, b = (np.where(np.abs(x) < 2**-14, np.float32(1), x) for x in (a, b))
    random = rng.integers(0, 1 << 32, 500).astype(np.uint32)

    def one(word: int, r: int) -> int:
        size = (word & 0x7FFFFFFF) + (r & ((1 << bits) - 1))  # the carry goes into the kept fraction, and on into the exponent
        kept = np.uint32(size >> discarded << discarded).view(np.float32)
        return half.round(Fraction(float(kept)), "rn", False) | half.sign * (word >> 31)

    got = as_words(run(op_of(f"cvt.rs{saturate}.{name}x2.f32"), a, b, random)[0])
    assert got == [one(x, r >> 16) << 16 | one(y, r) for x, y, r in zip(as_words(a), as_words(b), random.tolist(), strict=True)]
    largest = np.array([np.finfo(np.float32).max, -np.inf, np.nan], np.float32)
    got = as_words(run(op_of(f"cvt.rs{saturate}.{name}x2.f32"), largest, largest, np.full(3, 2**32 - 1, np.uint32))[0])
    top = half.infinity - bool(saturate)
    assert [w & 0xFFFF for w in got] == [top, top | half.sign, 0x7FFF]


def test_the_chance_of_rounding_up_is_the_discarded_fraction() -> None:
    random = np.arange(1 << 16, dtype=np.uint32)
    x = np.full(1 << 16, 1 + 0.3 / 8, np.float32)  # e4m3 has steps of 1/8 here
    got = run(op_of("cvt.rs.satfinite.e4m3x4.f32"), x, x, x, x, random)[0] & np.uint32(0xFF)
    ups = int((got == 0x39).sum())
    assert ups + int((got == 0x38).sum()) == 1 << 16
    assert abs(ups / (1 << 16) - 0.3) < 1e-4
