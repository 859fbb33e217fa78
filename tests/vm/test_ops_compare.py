"""Comparison and selection against Python's operators."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import FORMATS, as_words, floats, integers, op_of, run

INTEGER: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def compare_floats(name: str, form: str, a: int, b: int) -> bool:
    """The ISA's definition, on raw words."""
    f = FORMATS[form]
    unordered = f.is_nan(a) or f.is_nan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return name.endswith("u")
    x, y = (float("-inf" if w & f.sign else "inf") if f.is_inf(w) else f.value(w) for w in (a, b))
    return bool(INTEGER[name.removesuffix("u")](x, y))  # type: ignore[arg-type]


FLOAT_NAMES = [*INTEGER, *(f"{name}u" for name in INTEGER), "num", "nan"]


@pytest.mark.parametrize("word", ["u16", "u32", "u64", "s16", "s32", "s64"])
def test_integers(word: str) -> None:
    rng = np.random.default_rng(1)
    a, b = integers(word, rng), integers(word, rng)
    b[::3] = a[::3]
    names = {**INTEGER, **UNSIGNED} if word[0] == "u" else INTEGER
    for name, python in names.items():
        want = [python(int(x), int(y)) for x, y in zip(a, b, strict=True)]
        assert run(op_of(f"setp.{name}.{word}"), a, b)[0].tolist() == want
        for dest, true in (("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000)):
            assert as_words(run(op_of(f"set.{name}.{dest}.{word}"), a, b)[0]) == [true * t for t in want]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_untyped(bits: int) -> None:
    rng = np.random.default_rng(2)
    a, b = integers(f"u{bits}", rng), integers(f"u{bits}", rng)
    b[::2] = a[::2]
    assert run(op_of(f"setp.eq.b{bits}"), a, b)[0].tolist() == (a == b).tolist()
    assert run(op_of(f"setp.ne.b{bits}"), a, b)[0].tolist() == (a != b).tolist()


@pytest.mark.parametrize("word", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_floats(name: str, word: str) -> None:
    rng = np.random.default_rng(3)
    a, b = floats(word, rng), floats(word, rng)
    b[::3] = a[::3]
    want = [compare_floats(name, word, x, y) for x, y in zip(as_words(a), as_words(b), strict=True)]
    assert any(want)
    assert not all(want)
    assert run(op_of(f"setp.{name}.{word}"), a, b)[0].tolist() == want
    assert as_words(run(op_of(f"set.{name}.u32.{word}"), a, b)[0]) == [0xFFFFFFFF * t for t in want]


@pytest.mark.parametrize("boolean", BOOLEAN)
def test_combination_and_complement(boolean: str) -> None:
    """p = t op c, q = !t op c."""
    a, b = np.array([1, 1, 2, 2], np.int32), np.array([1, 1, 1, 1], np.int32)
    c = np.array([True, False, True, False])
    op = op_of(f"setp.eq.{boolean}.s32")
    assert op.pair is not None
    t = (a == b).tolist()
    want_p = [BOOLEAN[boolean](x, y) for x, y in zip(t, c.tolist(), strict=True)]
    want_q = [BOOLEAN[boolean](not x, y) for x, y in zip(t, c.tolist(), strict=True)]
    assert run(op, a, b, c)[0].tolist() == want_p
    assert [x.tolist() for x in run(op.pair, a, b, c)] == [want_p, want_q]
    (got,) = run(op_of(f"set.eq.{boolean}.u32.s32"), a, b, c)
    assert got.tolist() == [0xFFFFFFFF * p for p in want_p]


def test_pair_without_combination() -> None:
    op = op_of("setp.lt.f32")
    assert op.pair is not None
    p, q = run(op.pair, np.array([1, np.nan], np.float32), np.array([2, 2], np.float32))
    assert (p.tolist(), q.tolist()) == ([True, False], [False, True])


@pytest.mark.parametrize("word", ["f16x2", "bf16x2"])
def test_packed(word: str) -> None:
    rng = np.random.default_rng(4)
    element = word.removesuffix("x2")
    a, b = (np.ascontiguousarray(floats(element, rng).reshape(-1, 2)).view(np.uint32)[:, 0] for _ in range(2))
    for name in ("lt", "geu"):
        low, high = (
            [compare_floats(name, element, x >> s & 0xFFFF, y >> s & 0xFFFF) for x, y in zip(as_words(a), as_words(b), strict=True)]
            for s in (0, 16)
        )
        op = op_of(f"setp.{name}.{word}")
        assert [x.tolist() for x in run(op, a, b)] == [low, high]
        got = as_words(run(op_of(f"set.{name}.u32.{word}"), a, b)[0])
        assert got == [0xFFFF * p | 0xFFFF0000 * q for p, q in zip(low, high, strict=True)]
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}[word]
        got = as_words(run(op_of(f"set.{name}.{word}.{word}"), a, b)[0])
        assert got == [one * p | (one << 16) * q for p, q in zip(low, high, strict=True)]


def test_ftz_makes_subnormals_equal_zero() -> None:
    tiny, zero = np.array([1e-40], np.float32), np.zeros(1, np.float32)
    assert run(op_of("setp.eq.ftz.f32"), tiny, zero)[0].tolist() == [True]
    assert run(op_of("setp.eq.f32"), tiny, zero)[0].tolist() == [False]
    small, nothing = np.array([1e-7], np.float16), np.zeros(1, np.float16)
    assert run(op_of("setp.gt.ftz.f16"), small, nothing)[0].tolist() == [False]
    assert run(op_of("setp.gt.f16"), small, nothing)[0].tolist() == [True]


@pytest.mark.parametrize("word", ["b16", "b32", "b64", "u16", "u32", "s32", "s64", "f32", "f64"])
def test_selection_keeps_bits(word: str) -> None:
    rng = np.random.default_rng(5)
    bits = int(word[1:])
    a, b = integers(f"u{bits}", rng), integers(f"u{bits}", rng)
    c = rng.integers(0, 2, a.shape).astype(bool)
    assert run(op_of(f"selp.{word}"), a, b, c)[0].tolist() == [int(x if t else y) for x, y, t in zip(a, b, c, strict=True)]
    sign = integers("s32", rng)
    want = [int(x if t >= 0 else y) for x, y, t in zip(a, b, sign, strict=True)]
    assert run(op_of(f"slct.{word}.s32"), a, b, sign)[0].tolist() == want


def test_slct_float() -> None:
    a, b = np.arange(5, dtype=np.uint32), np.arange(5, 10, dtype=np.uint32)
    c = np.array([1, -1, -0.0, np.nan, -1e-40], np.float32)
    assert run(op_of("slct.u32.f32"), a, b, c)[0].tolist() == [0, 6, 2, 8, 9]
    assert run(op_of("slct.ftz.u32.f32"), a, b, c)[0].tolist() == [0, 6, 2, 8, 4]
