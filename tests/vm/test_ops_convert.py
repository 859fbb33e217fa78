"""Conversions against exact fractions and integers, in every combination of types."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from ops_reference import FORMATS, Format, as_words, clamp, floats, integers, limits, op_of, run, signed, width, wrap

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


@pytest.mark.parametrize("dest", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer(dest: str, source: str) -> None:
    a = integers(source, np.random.default_rng(1))
    plain = run(op_of(f"cvt.{dest}.{source}"), a)[0].tolist()
    assert plain == [wrap(int(x), width(dest), signed(dest)) for x in a]
    clamped = run(op_of(f"cvt.sat.{dest}.{source}"), a)[0].tolist()
    assert clamped == [clamp(int(x), width(dest), signed(dest)) for x in a]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dest", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(source: str, dest: str, mode: str) -> None:
    a = integers(source, np.random.default_rng(2))
    got = as_words(run(op_of(f"cvt.{mode}.{dest}.{source}"), a)[0])
    assert got == [FORMATS[dest].round(Fraction(int(x)), mode) for x in a]


def halfway_integers(dest: Format) -> list[int]:
    """64-bit integers around the midpoint of neighbours, where a sticky bit decides."""
    unit = 1 << (62 - dest.mantissa_bits)
    base = 1 << 62
    return [base + k * unit + unit // 2 + d for k in range(4) for d in (-1, 0, 1)]


@pytest.mark.parametrize("dest", FLOATS)
def test_long_integers_round_once(dest: str) -> None:
    form = FORMATS[dest]
    values = halfway_integers(form)
    for word, sign in (("u64", 1), ("s64", 1), ("s64", -1)):
        a = np.array([sign * v for v in values], word.replace("u", "uint").replace("s", "int"))
        for mode in MODES:
            got = as_words(run(op_of(f"cvt.{mode}.{dest}.{word}"), a)[0])
            assert got == [form.round(Fraction(int(x)), mode) for x in a]


ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def nan_integer(source: str, dest: str) -> int:
    if source != "f64" and width(dest) != 64:
        return 0
    return limits(width(dest), True)[0] if signed(dest) else 1 << (width(dest) - 1)


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dest", INTEGERS)
def test_float_to_integer(source: str, dest: str, mode: str) -> None:
    form = FORMATS[source]
    a = floats(source, np.random.default_rng(3), 400, 70 if form.bias > 70 else 14)
    low, high = limits(width(dest), signed(dest))
    got = run(op_of(f"cvt.{mode}.{dest}.{source}"), a)[0].tolist()
    for w, result in zip(as_words(a), got, strict=True):
        if form.is_nan(w):
            want = nan_integer(source, dest)
        elif form.is_inf(w):
            want = low if w & form.sign else high
        else:
            want = clamp(ROUND[mode](form.value(w)), width(dest), signed(dest))
        assert result == want, hex(w)


def test_float_to_integer_flushes() -> None:
    tiny = np.array([1e-40], np.float32)
    assert run(op_of("cvt.rpi.s32.f32"), tiny)[0].tolist() == [1]
    assert run(op_of("cvt.rpi.ftz.s32.f32"), tiny)[0].tolist() == [0]


def narrowings() -> list[tuple[str, str]]:
    rank = {"f16": 0, "bf16": 0, "f32": 1, "f64": 2}
    return [(d, s) for d in FLOATS for s in FLOATS if d != s and rank[d] <= rank[s]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dest", "source"), narrowings())
def test_narrowing(dest: str, source: str, mode: str) -> None:
    form, small = FORMATS[source], FORMATS[dest]
    a = floats(source, np.random.default_rng(4), 1500, 30)
    got = as_words(run(op_of(f"cvt.{mode}.{dest}.{source}"), a)[0])
    for w, result in zip(as_words(a), got, strict=True):
        if form.is_nan(w):
            want = CANONICAL[dest]
        elif form.is_inf(w):
            want = small.infinity | (small.sign if w & form.sign else 0)
        else:
            want = small.round(form.value(w), mode, bool(w & form.sign))
        assert result == want, hex(w)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("dest", "source"), [("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16"), ("f64", "f32")])
def test_widening_is_exact(dest: str, source: str, step: int) -> None:
    """One value in so many."""
    form, wide = FORMATS[source], FORMATS[dest]
    total = 1 + form.exponent_bits + form.mantissa_bits
    a = np.arange(0, 1 << 16, step, dtype=np.uint16).view(floats(source, np.random.default_rng(0), 1).dtype) if total == 16 else None
    a = floats(source, np.random.default_rng(5)) if a is None else a
    got = as_words(run(op_of(f"cvt.{dest}.{source}"), a)[0])
    for w, result in zip(as_words(a), got, strict=True):
        if form.is_nan(w):
            assert wide.is_nan(result)
        elif form.is_inf(w):
            assert result == wide.infinity | (wide.sign if w & form.sign else 0)
        else:
            assert result == wide.round(form.value(w), "rn", bool(w & form.sign))


@pytest.mark.parametrize("word", FLOATS)
@pytest.mark.parametrize("mode", ROUND)
def test_round_to_integral(word: str, mode: str) -> None:
    form = FORMATS[word]
    a = floats(word, np.random.default_rng(6), 600, 12)
    got = as_words(run(op_of(f"cvt.{mode}.{word}.{word}"), a)[0])
    for w, result in zip(as_words(a), got, strict=True):
        if form.is_nan(w) or form.is_inf(w):
            assert form.is_nan(result) == form.is_nan(w)
        else:
            assert result == form.round(Fraction(ROUND[mode](form.value(w))), "rn", bool(w & form.sign))


def test_flush_and_saturate() -> None:
    x = np.array([-1.0, 0.25, 3.0, np.nan, 1e-40], np.float32)
    assert as_words(run(op_of("cvt.sat.f32.f32"), x)[0]) == [0, 0x3E800000, 0x3F800000, 0, as_words(x)[4]]
    assert as_words(run(op_of("cvt.ftz.f32.f32"), x[4:])[0]) == [0]
    assert as_words(run(op_of("cvt.rn.sat.f16.f32"), x)[0]) == [0, 0x3400, 0x3C00, 0, 0]
    assert as_words(run(op_of("cvt.rn.ftz.f32.f64"), np.array([1e-40, -1e-40]))[0]) == [0, 0x80000000]
    assert as_words(run(op_of("cvt.ftz.f64.f32"), x[4:])[0]) == [0]
    assert as_words(run(op_of("cvt.rni.ftz.f32.f32"), np.array([2.5, -0.4], np.float32))[0]) == [0x40000000, 0x80000000]
    assert as_words(run(op_of("cvt.rn.sat.f32.s32"), np.array([-4, 0, 9], np.int32))[0]) == [0, 0, 0x3F800000]


# Clamped, packed, tf32 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("satfinite", ["", ".satfinite"])
def test_packed_halves(word: str, mode: str, relu: str, satfinite: str) -> None:
    form, small = FORMATS["f32"], FORMATS[word]
    rng = np.random.default_rng(7)
    a, b = floats("f32", rng, 500, 120), floats("f32", rng, 500, 20)

    def one(w: int) -> int:
        if form.is_nan(w):
            return 0x7FFF
        negative = bool(w & form.sign)
        if negative and relu:
            return 0
        infinite = form.is_inf(w)
        word_ = small.infinity | small.sign * negative if infinite else small.round(form.value(w), mode, negative)
        return (small.infinity - 1) | small.sign * negative if satfinite and small.is_inf(word_) else word_

    got = as_words(run(op_of(f"cvt.{mode}{relu}{satfinite}.{word}x2.f32"), a, b)[0])
    assert got == [one(x) << 16 | one(y) for x, y in zip(as_words(a), as_words(b), strict=True)]
    single = as_words(run(op_of(f"cvt.{mode}{relu}{satfinite}.{word}.f32"), a)[0])
    assert single == [one(x) for x in as_words(a)]


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32(mode: str) -> None:
    form, small = FORMATS["f32"], Format(8, 10)
    a = floats("f32", np.random.default_rng(8), 2000)
    got = as_words(run(op_of(f"cvt.{mode}.tf32.f32"), a)[0])
    for w, result in zip(as_words(a), got, strict=True):
        if form.is_nan(w):
            assert result == 0x7FFFFFFF
        elif form.is_inf(w):
            assert result == w
        else:
            assert result == small.round(form.value(w), mode, bool(w & form.sign)) << 13
    huge = np.array([np.finfo(np.float32).max, -np.inf], np.float32)
    assert as_words(run(op_of(f"cvt.{mode}.satfinite.tf32.f32"), huge)[0]) == [0x7F7FE000, 0xFF7FE000]


def test_tf32_relu() -> None:
    a = np.array([-1.0, 1.5, np.nan], np.float32)
    assert as_words(run(op_of("cvt.rn.relu.tf32.f32"), a)[0]) == [0, 0x3FC00000, 0x7FFFFFFF]


# Small formats -----------------------------------------------------------------------------------------------------

MINI = {
    # exponent bits, mantissa bits, bias, largest finite code, NaN code
    "e4m3": (4, 3, 7, 0x7E, 0x7F),
    "e5m2": (5, 2, 15, 0x7B, 0x7F),
    "e2m3": (2, 3, 1, 0x1F, None),
    "e3m2": (3, 2, 3, 0x1F, None),
    "e2m1": (2, 1, 1, 0x07, None),
}


def mini_value(name: str, code: int) -> Fraction:
    exponent_bits, mantissa_bits, bias, _, _ = MINI[name]
    magnitude = code & ((1 << (exponent_bits + mantissa_bits)) - 1)
    exponent, fraction = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    size = (fraction + (1 << mantissa_bits) * (exponent > 0)) * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)
    return -size if code >> (exponent_bits + mantissa_bits) & 1 else size


def nearest_code(name: str, value: Fraction, negative: bool) -> int:
    """The closest finite code, ties to an even code; saturating."""
    exponent_bits, mantissa_bits, _, largest, _ = MINI[name]
    best = min(range(largest + 1), key=lambda code: (abs(mini_value(name, code) - abs(value)), code & 1))
    return best | (1 << (exponent_bits + mantissa_bits)) * negative


@pytest.mark.parametrize("name", MINI)
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_to_small_formats(name: str, relu: str) -> None:
    shift = 4 if name == "e2m1" else 8
    form, (_, _, _, largest, nan) = FORMATS["f32"], MINI[name]
    rng = np.random.default_rng(9)
    a, b = floats("f32", rng, 300, 10), floats("f32", rng, 300, 10)

    def one(w: int, form: Format = form) -> int:
        if form.is_nan(w):
            return largest if nan is None else nan
        negative = bool(w & form.sign)
        if negative and relu:
            return 0
        return nearest_code(name, Fraction(10**9) if form.is_inf(w) else form.value(w), negative)

    got = as_words(run(op_of(f"cvt.rn.satfinite{relu}.{name}x2.f32"), a, b)[0])
    assert got == [one(x) << shift | one(y) for x, y in zip(as_words(a), as_words(b), strict=True)]
    for half in ("f16", "bf16"):
        elements = floats(half, rng, 200, 9)
        pairs = np.ascontiguousarray(elements.reshape(-1, 2)).view(np.uint32)[:, 0]
        got = as_words(run(op_of(f"cvt.rn.satfinite{relu}.{name}x2.{half}x2"), pairs)[0])
        assert got == [one(x >> 16, FORMATS[half]) << shift | one(x & 0xFFFF, FORMATS[half]) for x in as_words(pairs)]


@pytest.mark.parametrize("name", MINI)
def test_from_small_formats(name: str) -> None:
    """Every code decodes to its value in both halves."""
    exponent_bits, mantissa_bits, _, largest, nan = MINI[name]
    sign = 1 << (exponent_bits + mantissa_bits)
    codes = np.arange(2 * sign)
    holder = np.uint8 if name == "e2m1" else np.uint16
    packed = (codes << (4 if name == "e2m1" else 8) | codes[::-1]).astype(holder)
    got = as_words(run(op_of(f"cvt.rn.f16x2.{name}x2"), packed)[0])
    half = FORMATS["f16"]

    def one(code: int) -> int:
        magnitude = code & (sign - 1)
        if magnitude > largest:
            return half.infinity | 0x8000 * (code >= sign) if name == "e5m2" and magnitude == 0x7C else 0x7FFF
        return half.round(mini_value(name, code), "rn", code >= sign)

    assert got == [one(int(c)) << 16 | one(int(d)) for c, d in zip(codes, codes[::-1], strict=True)]
    assert nan is None or 0x7FFF in [w & 0xFFFF for w in got]


def test_scales() -> None:
    a = np.array([1.0, 3.0, 0.0, np.inf, np.nan, 2.0**-140], np.float32)
    assert [w & 0xFF for w in as_words(run(op_of("cvt.rz.ue8m0x2.f32"), a, a)[0])] == [127, 128, 0, 254, 255, 0]
    assert [w >> 8 for w in as_words(run(op_of("cvt.rp.satfinite.ue8m0x2.f32"), a, a)[0])] == [127, 129, 0, 254, 255, 0]
    assert as_words(run(op_of("cvt.rz.ue8m0x2.bf16x2"), np.array([0x40403F80], np.uint32))[0]) == [128 << 8 | 127]
    assert as_words(run(op_of("cvt.rn.bf16x2.ue8m0x2"), np.array([127 << 8 | 255], np.uint16))[0]) == [0x3F807FFF]


def test_cvt_pack() -> None:
    a, b = np.array([70000, -5, 3], np.int32), np.array([-70000, 5, 300], np.int32)
    assert as_words(run(op_of("cvt.pack.sat.s16.s32"), a, b)[0]) == [0x7FFF8000, 0xFFFB0005, 0x0003012C]
    assert as_words(run(op_of("cvt.pack.sat.u16.s32"), a, b)[0]) == [0xFFFF0000, 0x00000005, 0x0003012C]
    c = np.full(3, 0xAABBCCDD, np.uint32)
    assert as_words(run(op_of("cvt.pack.sat.u8.s32.b32"), a, b, c)[0]) == [0xCCDDFF00, 0xCCDD0005, 0xCCDD03FF]
    assert as_words(run(op_of("cvt.pack.sat.s8.s32.b32"), a, b, c)[0]) == [0xCCDD7F80, 0xCCDDFB05, 0xCCDD037F]
    assert as_words(run(op_of("cvt.pack.sat.u4.s32.b32"), a, b, c)[0]) == [0xBBCCDDF0, 0xBBCCDD05, 0xBBCCDD3F]
    assert as_words(run(op_of("cvt.pack.sat.s2.s32.b32"), a, b, c)[0]) == [0xABBCCDD6, 0xABBCCDD9, 0xABBCCDD5]


def test_fixed_point() -> None:
    """Each code is a multiple of 1 / 64; numbers between go to the nearest, halves to the even one."""
    codes = np.arange(256)
    numbers = codes.astype(np.uint8).view(np.int8) / 64.0
    low = np.full(256, 0.5, np.float32)
    made = run(op_of("cvt.rn.satfinite.s2f6x2.f32"), numbers.astype(np.float32), low)[0]
    assert as_words(made) == [code << 8 | 32 for code in codes]
    back = run(op_of("cvt.rn.bf16x2.s2f6x2"), np.asarray(made))[0]
    assert [word & 0xFFFF for word in as_words(back)] == [0x3F00] * 256
    np.testing.assert_array_equal((np.array(as_words(back), np.uint32) & 0xFFFF0000).view(np.float32), numbers)
    assert as_words(run(op_of("cvt.rn.satfinite.s2f6x2.bf16x2"), np.asarray(back))[0]) == as_words(made)


def test_fixed_point_that_is_rounded_scaled_or_too_large() -> None:
    given = np.array([0.5 / 64, 1.5 / 64, 9, -9, -1, np.nan, np.inf], np.float32)
    zero, scale = np.zeros(7, np.float32), np.full(7, 128 << 8 | 127, np.uint16)
    assert as_words(run(op_of("cvt.rn.satfinite.s2f6x2.f32"), zero, given)[0]) == [0, 2, 127, 128, 192, 127, 127]
    assert as_words(run(op_of("cvt.rn.satfinite.relu.s2f6x2.f32"), zero, given)[0]) == [0, 2, 127, 0, 0, 127, 127]
    halved = run(op_of("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32"), given[4:5], given[4:5], scale[:1])[0]
    assert as_words(halved) == [(256 - 32) << 8 | 192]
    doubled = run(op_of("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2"), np.array([64 << 8 | 64], np.uint16), scale[:1])[0]
    assert as_words(doubled) == [0x40003F80]
    largest = np.array([128 << 8 | 64], np.uint16), np.array([254 << 8 | 255], np.uint16)
    assert as_words(run(op_of("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.s2f6x2"), *largest)[0]) == [0xFF7F7FFF]
    assert as_words(run(op_of("cvt.rn.relu.scaled::n2::ue8m0.bf16x2.s2f6x2"), *largest)[0]) == [0x7FFF]
