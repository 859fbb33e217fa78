"""Half precision arithmetic against exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from ops_reference import FORMATS, as_words, floats, op_of, run
from test_ops_float import add, chosen, fma, mul, sub

OPERATIONS: dict[str, tuple[Callable[..., tuple[Fraction, bool]], int]] = {
    "add": (add, 2),
    "sub": (sub, 2),
    "mul": (mul, 2),
    "fma.rn": (fma, 3),
}
WORDS = ("f16", "bf16")


def packed(elements: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(elements.reshape(-1, 2)).view(np.uint32)[:, 0]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic(name: str, word: str) -> None:
    exact, arity = OPERATIONS[name]
    form, rng = FORMATS[word], np.random.default_rng(1)
    operands = [floats(word, rng, 4000, 9) for _ in range(arity)]
    (got,) = run(op_of(f"{name}.{word}"), *operands)
    tested = 0
    for lane, result in zip(zip(*map(as_words, operands), strict=True), as_words(got), strict=True):
        if any(form.is_nan(w) for w in lane):
            assert result == 0x7FFF
        elif not any(form.is_inf(w) for w in lane):
            value, zero = exact([form.value(w) for w in lane], [bool(w & form.sign) for w in lane], "rn")
            assert result == form.round(value, "rn", zero), [hex(w) for w in lane]
            tested += 1
    assert tested > 2000
    (pairs,) = run(op_of(f"{name}.{word}x2"), *map(packed, operands))
    assert as_words(pairs) == as_words(packed(got))


@pytest.mark.parametrize("word", WORDS)
def test_fma_near_ties(word: str) -> None:
    """A product halfway between two results, and a c far below that breaks the tie."""
    form = FORMATS[word]
    one = form.bias << form.mantissa_bits
    tiny = max(form.bias - 40, 1) << form.mantissa_bits
    lanes = [(one + i, one + j, tiny | s) for i in range(1, 60) for j in range(1, 60) for s in (0, form.sign)]
    dtype = np.uint16 if word == "bf16" else np.float16
    operands = [np.array(column, np.uint16).view(dtype) for column in zip(*lanes, strict=True)]
    got = as_words(run(op_of(f"fma.rn.{word}"), *operands)[0])
    assert got == [form.round(form.value(a) * form.value(b) + form.value(c)) for a, b, c in lanes]


def half(*values: float) -> np.ndarray:
    return np.array(values, np.float16)


def test_modifiers() -> None:
    a, one, zero = half(-2, 0.5, 9, np.nan), half(1), half(0)
    assert as_words(run(op_of("add.sat.f16"), a, zero)[0]) == as_words(half(0, 0.5, 1, 0))
    assert as_words(run(op_of("mul.rn.ftz.sat.f16"), a, one)[0]) == as_words(half(0, 0.5, 1, 0))
    assert as_words(run(op_of("fma.rn.relu.f16"), a, one, zero)[0]) == [0, 0x3800, 0x4880, 0x7FFF]
    assert as_words(run(op_of("add.ftz.f16"), half(1e-7), half(0))[0]) == [0]
    assert as_words(run(op_of("add.f16"), half(1e-7), half(0))[0]) == [2]
    brain = np.array([0xC000, 0x3F00, 0x7FC1], np.uint16)
    assert as_words(run(op_of("fma.rn.relu.bf16"), brain, np.full(3, 0x3F80, np.uint16), np.zeros(3, np.uint16))[0]) == [0, 0x3F00, 0x7FFF]
    pair = np.array([0xC0003C00], np.uint32)
    assert as_words(run(op_of("fma.rn.relu.f16x2"), pair, np.array([0x3C003C00], np.uint32), np.zeros(1, np.uint32))[0]) == [0x3C00]
    assert as_words(run(op_of("sub.sat.f16x2"), pair, np.zeros(1, np.uint32))[0]) == [0x3C00]


@pytest.mark.parametrize("word", ["f16", "bf16"])
def test_signs(word: str) -> None:
    a = floats(word, np.random.default_rng(2)).view(np.uint16)
    assert as_words(run(op_of(f"neg.{word}"), a)[0]) == [w ^ 0x8000 for w in as_words(a)]
    assert as_words(run(op_of(f"abs.{word}"), a)[0]) == [w & 0x7FFF for w in as_words(a)]
    assert as_words(run(op_of(f"neg.{word}x2"), packed(a))[0]) == [w ^ 0x80008000 for w in as_words(packed(a))]
    assert as_words(run(op_of(f"abs.{word}x2"), packed(a))[0]) == [w & 0x7FFF7FFF for w in as_words(packed(a))]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes(name: str, word: str) -> None:
    form, rng = FORMATS[word], np.random.default_rng(3)
    a, b = floats(word, rng, 2000), floats(word, rng, 2000)
    for modifier in ("", "NaN."):
        (got,) = run(op_of(f"{name}.{modifier}{word}"), a, b)
        for x, y, result in zip(as_words(a), as_words(b), as_words(got), strict=True):
            want = chosen(name, form, x, y, bool(modifier))
            assert result == (0x7FFF if want is None else want)
        (pairs,) = run(op_of(f"{name}.{modifier}{word}x2"), packed(a), packed(b))
        assert as_words(pairs) == as_words(packed(got))
    (signed,) = run(op_of(f"{name}.xorsign.abs.{word}"), a, b)
    for x, y, result in zip(as_words(a), as_words(b), as_words(signed), strict=True):
        want = chosen(name, form, x & 0x7FFF, y & 0x7FFF, keep_nan=False)
        assert result == (0x7FFF if want is None else want | (x ^ y) & 0x8000)


@pytest.mark.parametrize(("opcode", "word", "bound"), [("ex2.approx.f16", "f16", -9.9), ("ex2.approx.ftz.bf16", "bf16", -7)])
def test_ex2(opcode: str, word: str, bound: float) -> None:
    form = FORMATS[word]
    a = floats(word, np.random.default_rng(4), 1000, 3)
    for w, r in zip(as_words(a), as_words(run(op_of(opcode), a)[0]), strict=True):
        if form.is_nan(w):
            assert r == 0x7FFF
        elif form.value(w) if not form.is_inf(w) and abs(form.value(w)) < 14 else 0:
            want = 2.0 ** float(form.value(w))
            assert abs(float(form.value(r)) - want) <= 2.0**bound * want


@pytest.mark.parametrize(("word", "bound"), [("f16", -10.987), ("bf16", -8)])
def test_tanh(word: str, bound: float) -> None:
    form = FORMATS[word]
    a = floats(word, np.random.default_rng(5), 1000, 3)
    got = as_words(run(op_of(f"tanh.approx.{word}"), a)[0])
    for w, r in zip(as_words(a), got, strict=True):
        if not form.is_nan(w) and not form.is_inf(w):
            assert abs(float(form.value(r)) - math.tanh(float(form.value(w)))) <= 2.0**bound
    assert as_words(run(op_of(f"tanh.approx.{word}x2"), packed(a))[0]) == as_words(packed(np.array(got, np.uint16)))


@pytest.mark.parametrize("word", ["f16", "bf16"])
def test_what_was_outside_of_a_tensor_counts_as_zero(word: str) -> None:
    """Any other NaN stays. Both halves are tested by themselves."""
    outside, one, minus, nan = 0x7FF7, {"f16": 0x3C00, "bf16": 0x3F80}[word], {"f16": 0xBC00, "bf16": 0xBF80}[word], 0x7FFF
    a, b, c = (
        np.array(each, np.uint16) for each in ([outside, one, one, nan, minus], [one, outside, one, one, one], [one, one, 0, one, 0])
    )
    operands = [each.view(np.float16) if word == "f16" else each for each in (a, b, c)]
    assert as_words(run(op_of(f"fma.rn.oob.{word}"), *operands)[0]) == [0, 0, one, nan, minus]
    assert as_words(run(op_of(f"fma.rn.oob.relu.{word}"), *operands)[0]) == [0, 0, one, nan, 0]
    pairs = [each.astype(np.uint32) << 16 | one for each in (a, b, c)]
    two = {"f16": 0x4000, "bf16": 0x4000}[word]
    assert as_words(run(op_of(f"fma.rn.oob.{word}x2"), *pairs)[0]) == [high << 16 | two for high in (0, 0, one, nan, minus)]
