"""f32 and f64 arithmetic against exact fractions, and the approximations against their stated bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from ops_reference import FORMATS, Format, as_words, floats, op_of, run

Exact = Callable[..., tuple[Fraction, bool]]
MODES = ("rn", "rz", "rm", "rp")
NAN = 0x7FFFFFFF


def exact_sum(values: list[Fraction], signs: list[bool], mode: str) -> tuple[Fraction, bool]:
    """A sum and the sign of a zero result."""
    both_zero = not any(values) and signs[0] == signs[1]
    return values[0] + values[1], signs[0] if both_zero else mode == "rm"


def add(v: list[Fraction], s: list[bool], mode: str) -> tuple[Fraction, bool]:
    return exact_sum(v, s, mode)


def sub(v: list[Fraction], s: list[bool], mode: str) -> tuple[Fraction, bool]:
    return exact_sum([v[0], -v[1]], [s[0], not s[1]], mode)


def mul(v: list[Fraction], s: list[bool], _mode: str) -> tuple[Fraction, bool]:
    return v[0] * v[1], s[0] != s[1]


def fma(v: list[Fraction], s: list[bool], mode: str) -> tuple[Fraction, bool]:
    return exact_sum([v[0] * v[1], v[2]], [s[0] != s[1], s[2]], mode)


def div(v: list[Fraction], s: list[bool], _mode: str) -> tuple[Fraction, bool]:
    return v[0] / v[1], s[0] != s[1]


def rcp(v: list[Fraction], s: list[bool], _mode: str) -> tuple[Fraction, bool]:
    return 1 / v[0], s[0]


def check_exact(opcode: str, word: str, arity: int, exact: Exact, mode: str, *, count: int = 600, spread: int = 20) -> None:
    """Finite operands only: the result is the exact value rounded once. Infinities and NaN have their own tests."""
    form = FORMATS[word]
    rng = np.random.default_rng(11)
    operands = [floats(word, rng, count, spread) for _ in range(arity)]
    got = as_words(run(op_of(opcode), *operands)[0])
    tested = 0
    for lane, result in zip(zip(*map(as_words, operands), strict=True), got, strict=True):
        if any(form.is_nan(w) or form.is_inf(w) for w in lane):
            continue
        try:
            value, zero_sign = exact([form.value(w) for w in lane], [bool(w & form.sign) for w in lane], mode)
        except ZeroDivisionError:
            continue
        tested += 1
        assert result == form.round(value, mode, zero_sign), f"{opcode} of {[hex(w) for w in lane]} is {result:#x}"
    assert tested > count // 3


BINARY: dict[str, Exact] = {"add": add, "sub": sub, "mul": mul}


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["", *MODES])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, mode: str, word: str) -> None:
    check_exact(".".join(filter(None, (name, mode, word))), word, 2, BINARY[name], mode or "rn")


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["fma", "mad"])
def test_fused(name: str, mode: str, word: str) -> None:
    check_exact(f"{name}.{mode}.{word}", word, 3, fma, mode, count=1500)


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_division(mode: str, word: str) -> None:
    check_exact(f"div.{mode}.{word}", word, 2, div, mode)
    check_exact(f"rcp.{mode}.{word}", word, 1, rcp, mode)


def test_fma_is_not_rounded_twice() -> None:
    """The f64 sum is exactly halfway between two f32, but the exact value is not."""
    one = Fraction(1)
    a, b = one + Fraction(1, 2**23), one + Fraction(1, 2**23)
    product = a * b  # 1 + 2**-22 + 2**-46
    c = Fraction(2) ** 24
    c_low = np.float32(c)
    got = run(op_of("fma.rn.f32"), *(np.array([float(x)], np.float32) for x in (a, b)), np.array([c_low]))[0]
    assert as_words(got) == [FORMATS["f32"].round(product + c)]
    halfway = [float.fromhex("0x1.000002p0"), float.fromhex("0x1.fffffep-26"), float.fromhex("0x1p0")]
    operands = [np.array([x], np.float32) for x in halfway]
    value = Fraction(halfway[0]) * Fraction(halfway[1]) + Fraction(halfway[2])
    assert as_words(run(op_of("fma.rn.f32"), *operands)[0]) == [FORMATS["f32"].round(value)]


def near_ties(form: Format, rng: np.random.Generator, count: int, *, subnormal: bool) -> list[tuple[int, int, int]]:
    """Operands whose product is close to half a unit of c: a = 1 + i ulp, b = 2**-k (1 - i ulp), scaled down for a subnormal c."""
    m, lanes = form.mantissa_bits, []
    split = (form.bias + m) // 2 if subnormal else 0  # a gets this share of the scaling, b the rest
    rest = form.bias - 1 - split if subnormal else 0
    for _ in range(count):
        i = int(rng.integers(1, 40))
        below = int(rng.integers(0, 3)) * i + int(rng.integers(0, 2))
        a = ((form.bias - split) << m) + i
        b = ((form.bias - rest - m - 2) << m) + ((1 << m) - below)
        c = (0 if subnormal else form.bias << m) + int(rng.integers(0, 1 << (m - 3)))
        lanes.append((a, b, c))
    return lanes


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("subnormal", [False, True])
def test_fma_near_ties(word: str, subnormal: bool) -> None:
    form = FORMATS[word]
    lanes = near_ties(form, np.random.default_rng(3), 500, subnormal=subnormal)
    dtype = word.replace("f", "float")
    operands = [np.array(column, dtype.replace("float", "uint")).view(dtype) for column in zip(*lanes, strict=True)]
    got = as_words(run(op_of(f"fma.rn.{word}"), *operands)[0])
    assert got == [form.round(form.value(a) * form.value(b) + form.value(c)) for a, b, c in lanes]


def exact_root(word: int, form: Format, mode: str) -> int:
    """Square root with 200 bits, sticky if inexact, then rounded."""
    value = form.value(word)
    scale = 1 << 600
    square = value * scale * scale
    root = math.isqrt(square.numerator // square.denominator)
    exact = Fraction(root, scale)
    return form.round(exact if exact * exact == value else exact + Fraction(1, 4 * scale), mode)


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_sqrt(mode: str, word: str) -> None:
    form = FORMATS[word]
    operand = np.abs(floats(word, np.random.default_rng(5), 300))
    got = as_words(run(op_of(f"sqrt.{mode}.{word}"), operand)[0])
    for w, result in zip(as_words(operand), got, strict=True):
        if w and w < form.infinity:
            assert result == exact_root(w, form, mode), hex(w)


# Special values --------------------------------------------------------------------------------------------------


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint32).view(np.float32)


INF, MINUS_INF, ONE, PAYLOAD = 0x7F800000, 0xFF800000, 0x3F800000, 0xFFC12345


@pytest.mark.parametrize(
    ("opcode", "operands"),
    [
        ("add.f32", (INF, MINUS_INF)),
        ("add.f32", (PAYLOAD, ONE)),
        ("sub.rn.f32", (INF, INF)),
        ("mul.f32", (0, INF)),
        ("mul.rz.f32", (0, INF)),
        ("div.rn.f32", (0, 0)),
        ("div.rp.f32", (INF, INF)),
        ("div.full.f32", (0, 0)),
        ("fma.rn.f32", (INF, ONE, MINUS_INF)),
        ("fma.rz.f32", (ONE, PAYLOAD, ONE)),
        ("sqrt.rn.f32", (0xBF800000,)),
        ("rcp.rn.f32", (PAYLOAD,)),
        ("rcp.approx.f32", (PAYLOAD,)),
        ("rsqrt.approx.f32", (0xBF800000,)),
        ("sin.approx.f32", (INF,)),
        ("cos.approx.f32", (MINUS_INF,)),
        ("lg2.approx.f32", (0xBF800000,)),
        ("ex2.approx.f32", (PAYLOAD,)),
        ("tanh.approx.f32", (PAYLOAD,)),
        ("min.f32", (PAYLOAD, PAYLOAD)),
        ("max.NaN.f32", (PAYLOAD, ONE)),
    ],
)
def test_canonical_nan(opcode: str, operands: tuple[int, ...]) -> None:
    assert as_words(run(op_of(opcode), *(words(w) for w in operands))[0]) == [NAN]


@pytest.mark.parametrize("mode", MODES)
def test_infinities(mode: str) -> None:
    inf, one, zero = words(INF), words(ONE), words(0)
    assert as_words(run(op_of(f"add.{mode}.f32"), inf, one)[0]) == [INF]
    assert as_words(run(op_of(f"fma.{mode}.f32"), inf, one, one)[0]) == [INF]
    assert as_words(run(op_of(f"fma.{mode}.f64"), *(np.array([x]) for x in (1e308, 1e308, -np.inf)))[0]) == [0xFFF0000000000000]
    assert as_words(run(op_of(f"div.{mode}.f32"), one, zero)[0]) == [INF]
    assert as_words(run(op_of(f"rcp.{mode}.f32"), words(MINUS_INF))[0]) == [0x80000000]


def test_flush_to_zero() -> None:
    tiny, minus, one = words(1), words(0x80000001), words(ONE)
    assert as_words(run(op_of("add.ftz.f32"), tiny, tiny)[0]) == [0]
    assert as_words(run(op_of("add.f32"), tiny, tiny)[0]) == [2]
    assert as_words(run(op_of("mul.rn.ftz.f32"), minus, one)[0]) == [0x80000000]
    assert as_words(run(op_of("fma.rn.ftz.f32"), words(0x00800000), words(0x3F000000), words(0))[0]) == [0]  # the result is flushed too
    assert as_words(run(op_of("rcp.approx.ftz.f32"), tiny)[0]) == [INF]
    assert as_words(run(op_of("abs.ftz.f32"), minus)[0]) == [0]
    assert as_words(run(op_of("max.ftz.f32"), tiny, words(0))[0]) == [0]


def test_saturation() -> None:
    a = np.array([-1.0, 0.25, 7.0, np.nan, np.inf, -0.0], np.float32)
    want = [0, 0x3E800000, ONE, 0, ONE, 0]
    assert as_words(run(op_of("add.sat.f32"), a, words(0x80000000))[0]) == want
    assert as_words(run(op_of("fma.rn.sat.f32"), a, words(ONE), words(0x80000000))[0]) == want
    assert as_words(run(op_of("mul.ftz.sat.f32"), a, words(ONE))[0]) == want


# min, max, signs, tests ------------------------------------------------------------------------------------------


def chosen(name: str, form: Format, a: int, b: int, keep_nan: bool) -> int | None:
    """The ISA's min_num and min_nan on raw words; None is a NaN."""
    nans = form.is_nan(a), form.is_nan(b)
    if all(nans) or (keep_nan and any(nans)):
        return None
    if any(nans):
        return b if nans[0] else a
    key = [(-(w & (form.sign - 1)) - 1 if w & form.sign else w) for w in (a, b)]
    return a if (key[0] < key[1]) == (name == "min") else b


@pytest.mark.parametrize("word", ["f32", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes(name: str, word: str) -> None:
    form, rng = FORMATS[word], np.random.default_rng(6)
    a, b = floats(word, rng, 2000), floats(word, rng, 2000)
    for modifier in ("", "NaN.") if word == "f32" else ("",):
        got = as_words(run(op_of(f"{name}.{modifier}{word}"), a, b)[0])
        for x, y, result in zip(as_words(a), as_words(b), got, strict=True):
            want = chosen(name, form, x, y, bool(modifier))
            assert form.is_nan(result) if want is None else result == want


def test_extreme_with_signs() -> None:
    a, b = np.array([-3, 2, -5, np.nan], np.float32), np.array([2, 7, -1, -4], np.float32)
    assert run(op_of("max.xorsign.abs.f32"), a, b)[0].tolist() == [-3, 7, 5, -4]
    assert run(op_of("min.xorsign.abs.f32"), a, b)[0].tolist()[:3] == [-2, 2, 1]


def test_three_inputs() -> None:
    a, b, c = (np.array([x], np.float32) for x in (3, -1, 2))
    assert run(op_of("min.f32", operands=3), a, b, c)[0].tolist() == [-1]
    assert run(op_of("max.f32", operands=3), a, b, c)[0].tolist() == [3]
    assert run(op_of("max.abs.f32"), b, b, -a)[0].tolist() == [3]


def test_signs() -> None:
    for word, bits in (("f32", 32), ("f64", 64)):
        a = floats(word, np.random.default_rng(7))
        assert as_words(run(op_of(f"neg.{word}"), a)[0]) == [w ^ 1 << (bits - 1) for w in as_words(a)]
        assert as_words(run(op_of(f"abs.{word}"), a)[0]) == [w & (1 << (bits - 1)) - 1 for w in as_words(a)]
        b = floats(word, np.random.default_rng(8))
        top = 1 << (bits - 1)
        want = [(x & top) | (y & (top - 1)) for x, y in zip(as_words(a), as_words(b), strict=True)]
        assert as_words(run(op_of(f"copysign.{word}"), a, b)[0]) == want


@pytest.mark.parametrize("word", ["f32", "f64"])
def test_testp(word: str) -> None:
    form = FORMATS[word]
    a = floats(word, np.random.default_rng(9))
    ws = as_words(a)
    subnormal = [0 < (w & (form.sign - 1)) < (1 << form.mantissa_bits) for w in ws]
    finite = [w & (form.sign - 1) < form.infinity for w in ws]
    want = {
        "finite": finite,
        "infinite": [form.is_inf(w) for w in ws],
        "number": [not form.is_nan(w) for w in ws],
        "notanumber": [form.is_nan(w) for w in ws],
        "subnormal": subnormal,
        "normal": [f and not s for f, s in zip(finite, subnormal, strict=True)],
    }
    for name, expected in want.items():
        assert run(op_of(f"testp.{name}.{word}"), a)[0].tolist() == expected


def test_packed_and_mixed() -> None:
    rng = np.random.default_rng(10)
    a, b, c = (floats("f32", rng, 64) for _ in range(3))
    packed = [np.ascontiguousarray(x.reshape(-1, 2)).view(np.uint64)[:, 0] for x in (a, b, c)]
    got = run(op_of("fma.rn.f32x2"), *packed)[0]
    assert as_words(got.view(np.float32)) == as_words(run(op_of("fma.rn.f32"), a, b, c)[0])
    got = run(op_of("add.rz.ftz.f32x2"), *packed[:2])[0]
    assert as_words(got.view(np.float32)) == as_words(run(op_of("add.rz.ftz.f32"), a, b)[0])
    half = floats("f16", rng, 64)
    assert as_words(run(op_of("add.rm.f32.f16"), half, c)[0]) == as_words(run(op_of("add.rm.f32"), half.astype(np.float32), c)[0])
    brain = floats("bf16", rng, 64)
    wide = (brain.astype(np.uint32) << 16).view(np.float32)
    assert as_words(run(op_of("fma.rn.f32.bf16"), brain, brain, c)[0]) == as_words(run(op_of("fma.rn.f32"), wide, wide, c)[0])
    assert as_words(run(op_of("sub.sat.f32.bf16"), brain, c)[0]) == as_words(run(op_of("sub.sat.f32"), wide, c)[0])


# Approximations --------------------------------------------------------------------------------------------------

UNARY: dict[str, tuple[Callable[[float], float], float, float, str]] = {
    # function, lower and upper end of the tested range, bound of the ISA
    "rcp.approx.f32": (lambda x: 1 / x, 1e-30, 1e30, "rel 2**-23"),
    "sqrt.approx.f32": (math.sqrt, 1e-30, 1e30, "rel 2**-23"),
    "rsqrt.approx.f32": (lambda x: 1 / math.sqrt(x), 1e-30, 1e30, "rel 2**-22.9"),
    "sin.approx.f32": (math.sin, -6.28, 6.28, "abs 2**-20.5"),
    "cos.approx.f32": (math.cos, -6.28, 6.28, "abs 2**-20.5"),
    "lg2.approx.f32": (math.log2, 2.0, 1e30, "rel 2**-22"),
    "ex2.approx.f32": (lambda x: 2.0**x, -120.0, 120.0, "rel 2**-22"),
    "tanh.approx.f32": (math.tanh, -10.0, 10.0, "rel 2**-11"),
}


@pytest.mark.parametrize("opcode", UNARY)
def test_approximation_bounds(opcode: str) -> None:
    function, low, high, bound = UNARY[opcode]
    kind, _, power = bound.partition(" 2**")
    rng = np.random.default_rng(12)
    x = rng.uniform(low, high, 2000).astype(np.float32)
    got = run(op_of(opcode), x)[0]
    for a, r in zip(x, got, strict=True):
        want = function(float(a))
        scale = abs(want) if kind == "rel" else 1.0
        assert abs(float(r) - want) <= 2.0 ** float(power) * scale
    flushed = run(op_of(opcode.replace(".f32", ".ftz.f32")), x)[0] if opcode != "tanh.approx.f32" else got
    assert as_words(flushed) == as_words(got)


@pytest.mark.parametrize(
    ("opcode", "operand", "want"),
    [
        ("rcp.approx.f32", MINUS_INF, 0x80000000),
        ("rcp.approx.f32", 0x80000000, MINUS_INF),
        ("sqrt.approx.f32", 0x80000000, 0x80000000),
        ("rsqrt.approx.f32", 0x80000000, MINUS_INF),
        ("rsqrt.approx.f32", INF, 0),
        ("lg2.approx.f32", 0x80000000, MINUS_INF),
        ("lg2.approx.ftz.f32", 1, MINUS_INF),
        ("ex2.approx.f32", MINUS_INF, 0),
        ("ex2.approx.ftz.f32", 0x80000001, ONE),
        ("sin.approx.f32", 0x80000000, 0x80000000),
        ("tanh.approx.f32", INF, ONE),
    ],
)
def test_special_operands(opcode: str, operand: int, want: int) -> None:
    assert as_words(run(op_of(opcode), words(operand))[0]) == [want]


def test_division_approximations() -> None:
    a, b = np.array([1, 1, np.inf, -1], np.float32), np.array([3, 2.0**127, 2.0**127, 2.0**127], np.float32)
    assert as_words(run(op_of("div.approx.f32"), a, b)[0]) == [0x3EAAAAAB, 0, NAN, 0x80000000]
    assert run(op_of("div.full.f32"), a[:2], b[:2])[0].tolist() == [np.float32(1 / 3), 2.0**-127]


def test_gross_f64() -> None:
    x = np.array([3.0, -0.0, 1e-310, np.inf, np.nan])
    for opcode, exact in (("rcp.approx.ftz.f64", 1 / 3), ("rsqrt.approx.ftz.f64", 3**-0.5)):
        got = run(op_of(opcode), x)[0]
        assert abs(got[0] - exact) < exact * 2.0**-19
        assert as_words(got)[1:] == [0xFFF0000000000000, 0x7FF0000000000000, 0, 0x7FFFFFFF00000000]
        assert as_words(got)[0] & 0xFFFFFFFF == 0
    assert run(op_of("rsqrt.approx.f64"), np.array([4.0]))[0].tolist() == [0.5]
