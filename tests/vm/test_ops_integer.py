"""Integer arithmetic against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import as_words, clamp, integers, op_of, run, signed, width, wrap

WORDS = ("u16", "u32", "u64", "s16", "s32", "s64")


def values(array: np.ndarray) -> list[int]:
    return [int(x) for x in array]


def check(opcode: str, words: tuple[str, ...], expected: Callable[..., int], result: str, seed: int = 1) -> None:
    """Every lane equals the reference modulo the result's width; operands are read in the types of the instruction."""
    rng = np.random.default_rng(seed)
    operands = [integers(word, rng) for word in words]
    op = op_of(opcode)
    given = [x.view(np.dtype(op_dtype)) for x, op_dtype in zip(operands, dtypes(op.sources), strict=True)]
    got = as_words(run(op, *given)[0])
    want = [wrap(expected(*lane), width(result), signed=False) for lane in zip(*map(values, operands), strict=True)]
    assert got == want


def dtypes(sources: tuple[str, ...]) -> list[str]:
    return [("int" if word[0] == "s" else "uint") + word[1:] for word in sources]


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, word: str) -> None:
    check(f"{name}.{word}", (word, word), BINARY[name], word)


@pytest.mark.parametrize("word", WORDS)
def test_mul_hi(word: str) -> None:
    check(f"mul.hi.{word}", (word, word), lambda a, b: (a * b) >> width(word), word)


@pytest.mark.parametrize("word", WORDS)
def test_mad(word: str) -> None:
    check(f"mad.lo.{word}", (word,) * 3, lambda a, b, c: a * b + c, word)
    check(f"mad.hi.{word}", (word,) * 3, lambda a, b, c: ((a * b) >> width(word)) + c, word)


@pytest.mark.parametrize("word", ["u16", "u32", "s16", "s32"])
def test_wide(word: str) -> None:
    double = f"{word[0]}{2 * width(word)}"
    check(f"mul.wide.{word}", (word, word), lambda a, b: a * b, double)
    check(f"mad.wide.{word}", (word, word, double), lambda a, b, c: a * b + c, double)


def saturated(value: int) -> int:
    return clamp(value, 32, signed=True)


def test_saturating() -> None:
    check("add.sat.s32", ("s32", "s32"), lambda a, b: saturated(a + b), "s32")
    check("sub.sat.s32", ("s32", "s32"), lambda a, b: saturated(a - b), "s32")
    check("mad.hi.sat.s32", ("s32",) * 3, lambda a, b, c: saturated(((a * b) >> 32) + c), "s32")


def low24(value: int, word: str) -> int:
    return wrap(value, 24, signed(word))


@pytest.mark.parametrize("word", ["u32", "s32"])
@pytest.mark.parametrize(("mode", "shift"), [("lo", 0), ("hi", 16)])
def test_mul24(mode: str, shift: int, word: str) -> None:
    def product(a: int, b: int) -> int:
        return wrap((low24(a, word) * low24(b, word)) >> shift, 32, signed(word))

    check(f"mul24.{mode}.{word}", (word, word), product, word)
    check(f"mad24.{mode}.{word}", (word,) * 3, lambda a, b, c: product(a, b) + c, word)


def test_mad24_saturates() -> None:
    check("mad24.hi.sat.s32", ("s32",) * 3, lambda a, b, c: saturated(((low24(a, "s32") * low24(b, "s32")) >> 16) + c), "s32")


def truncated(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("word", WORDS)
def test_division(word: str) -> None:
    check(f"div.{word}", (word, word), truncated, word)
    check(f"rem.{word}", (word, word), lambda a, b: a - b * truncated(a, b) if b else -1, word)


def test_division_corners() -> None:
    low = np.array([-(2**31)] * 2, np.int32)
    by = np.array([-1, 0], np.int32)
    assert run(op_of("div.s32"), low, by)[0].tolist() == [-(2**31), -1]
    assert run(op_of("rem.s32"), low, by)[0].tolist() == [0, -1]


@pytest.mark.parametrize("word", ["s16", "s32", "s64"])
def test_sign(word: str) -> None:
    check(f"abs.{word}", (word,), abs, word)
    check(f"neg.{word}", (word,), lambda a: -a, word)


@pytest.mark.parametrize("word", WORDS)
def test_sad(word: str) -> None:
    check(f"sad.{word}", (word,) * 3, lambda a, b, c: c + abs(a - b), word)


def fields(value: int, bits: int, signed_: bool) -> list[int]:
    return [wrap(value >> shift, bits, signed_) for shift in range(0, 32, bits)]


@pytest.mark.parametrize("first", ["u32", "s32"])
@pytest.mark.parametrize("second", ["u32", "s32"])
def test_dot_products(first: str, second: str) -> None:
    def dp4a(a: int, b: int, c: int) -> int:
        return c + sum(x * y for x, y in zip(fields(a, 8, signed(first)), fields(b, 8, signed(second)), strict=True))

    def dp2a(part: int) -> Callable[[int, int, int], int]:
        return lambda a, b, c: (
            c + sum(x * y for x, y in zip(fields(a, 16, signed(first)), fields(b, 8, signed(second))[part : part + 2], strict=True))
        )

    check(f"dp4a.{first}.{second}", ("u32",) * 3, dp4a, "u32")
    check(f"dp2a.lo.{first}.{second}", ("u32",) * 3, dp2a(0), "u32")
    check(f"dp2a.hi.{first}.{second}", ("u32",) * 3, dp2a(2), "u32")


@pytest.mark.parametrize("word", ["u16x2", "s16x2"])
@pytest.mark.parametrize("name", ["add", "sub", "min", "max"])
def test_packed(name: str, word: str) -> None:
    def both(a: int, b: int) -> int:
        low, high = (BINARY[name](x, y) for x, y in zip(fields(a, 16, signed(word)), fields(b, 16, signed(word)), strict=True))
        return (low & 0xFFFF) | (high & 0xFFFF) << 16

    check(f"{name}.{word}", ("u32", "u32"), both, "u32")


@pytest.mark.parametrize("name", ["min", "max"])
def test_relu(name: str) -> None:
    check(f"{name}.relu.s32", ("s32", "s32"), lambda a, b: max(BINARY[name](a, b), 0), "s32")
    rng = np.random.default_rng(3)
    a, b = integers("u32", rng), integers("u32", rng)
    got = as_words(run(op_of(f"{name}.relu.s16x2"), a, b)[0])
    for x, y, z in zip(values(a), values(b), got, strict=True):
        want = [max(BINARY[name](p, q), 0) for p, q in zip(fields(x, 16, True), fields(y, 16, True), strict=True)]
        assert fields(z, 16, True) == want


# Extended precision -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
def test_multiword_addition(bits: int) -> None:
    """add.cc, addc.cc, addc form one addition of three words; the same for subtraction."""
    rng = np.random.default_rng(4)
    a, b = ([integers(f"u{bits}", rng) for _ in range(3)] for _ in range(2))
    for name, sign in (("add", 1), ("sub", -1)):
        low, carry = run(op_of(f"{name}.cc.u{bits}"), a[0], b[0])
        middle, carry = run(op_of(f"{name}c.cc.s{bits}"), a[1], b[1], carry)
        (high,) = run(op_of(f"{name}c.u{bits}"), a[2], b[2], carry)
        for lane in range(len(low)):
            x, y = (sum(int(part[lane]) << (bits * i) for i, part in enumerate(parts)) for parts in (a, b))
            got = int(low[lane]) | int(middle[lane]) << bits | int(high[lane]) << (2 * bits)
            assert got == (x + sign * y) % (1 << (3 * bits))


@pytest.mark.parametrize("word", ["u32", "s32", "u64", "s64"])
def test_multiword_product(word: str) -> None:
    """mad.lo.cc then madc.hi.cc, addc: a double-width product plus a double-width addend, with its carry."""
    rng = np.random.default_rng(5)
    bits = width(word)
    a, b = integers(word, rng), integers(word, rng)
    low, high, top = (integers(f"u{bits}", rng) for _ in range(3))
    d0, carry = run(op_of(f"mad.lo.cc.{word}"), a, b, low)
    d1, carry = run(op_of(f"madc.hi.cc.{word}"), a, b, high, carry)
    (d2,) = run(op_of(f"addc.u{bits}"), top, np.zeros_like(top), carry)
    for lane in range(len(d0)):
        product = wrap(int(a[lane]) * int(b[lane]), 2 * bits, signed=False)
        total = product + (int(low[lane]) | int(high[lane]) << bits) + (int(top[lane]) << (2 * bits))
        got = int(d0[lane]) | int(d1[lane]) << bits | int(d2[lane]) << (2 * bits)
        assert got == total % (1 << (3 * bits))


def test_madc_without_carry_out() -> None:
    one, carry = np.array([7], np.uint32), np.array([True])
    assert run(op_of("madc.lo.u32"), one, one, one, carry)[0].tolist() == [57]
    assert run(op_of("madc.hi.u32"), one, one, one, carry)[0].tolist() == [8]
