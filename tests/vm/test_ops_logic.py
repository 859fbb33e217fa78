"""Logic, shifts, bit fields and byte permutation against the pseudo-code of the ISA, bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ops_reference import as_words, integers, op_of, run, signed, width, wrap

COUNTS = (0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, 0xFFFFFFFF)


def check(opcode: str, words: tuple[str, ...], expected: Callable[..., int], bits: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    operands = [integers(word, rng) for word in words]
    op = op_of(opcode)
    given = [x.view(f"{'i' if word[0] == 's' else 'u'}{x.dtype.itemsize}") for x, word in zip(operands, op.sources, strict=True)]
    got = as_words(run(op, *given)[0])
    lanes = zip(*([int(x) for x in operand] for operand in operands), strict=True)
    assert got == [expected(*lane) % (1 << bits) for lane in lanes]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_bitwise(bits: int) -> None:
    word = f"u{bits}"
    check(f"and.b{bits}", (word, word), lambda a, b: a & b, bits)
    check(f"or.b{bits}", (word, word), lambda a, b: a | b, bits)
    check(f"xor.b{bits}", (word, word), lambda a, b: a ^ b, bits)
    check(f"not.b{bits}", (word,), lambda a: ~a, bits)
    check(f"cnot.b{bits}", (word,), lambda a: int(a == 0), bits)


def test_predicates() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert run(op_of("and.pred"), a, b)[0].tolist() == [False, False, False, True]
    assert run(op_of("or.pred"), a, b)[0].tolist() == [False, True, True, True]
    assert run(op_of("xor.pred"), a, b)[0].tolist() == [False, True, True, False]
    assert run(op_of("not.pred"), a)[0].tolist() == [True, True, False, False]


@pytest.mark.parametrize("word", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts_clamp(word: str) -> None:
    rng = np.random.default_rng(2)
    bits = width(word)
    typed = word.replace("b", "u")
    values = integers(typed, rng, 64)
    left = op_of(f"shl.b{bits}")
    right = op_of(f"shr.{word}")
    for count in COUNTS:
        amount = np.full(values.shape, count, np.uint32)
        shifted = as_words(run(right, values, amount.view(np.int32) if word[0] == "s" else amount)[0])
        assert shifted == [wrap(int(x) >> min(count, bits), bits, signed=False) for x in values]
        shifted = as_words(run(left, values.view(f"u{bits // 8}"), amount)[0])
        assert shifted == [wrap(int(x) << min(count, bits), bits, signed=False) for x in values]


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shift(mode: str) -> None:
    def amount(c: int) -> int:
        return min(c, 32) if mode == "clamp" else c & 31

    check(f"shf.l.{mode}.b32", ("u32",) * 3, lambda a, b, c: ((b << 32 | a) << amount(c)) >> 32, 32)
    check(f"shf.r.{mode}.b32", ("u32",) * 3, lambda a, b, c: (b << 32 | a) >> amount(c), 32)


def test_lop3_all_tables() -> None:
    """With 0xf0, 0xcc, 0xaa as operands the result is the table itself."""
    a, b, c = (np.full(3, x, np.uint32) for x in (0xF0, 0xCC, 0xAA))
    op = op_of("lop3.b32")
    for lut in range(256):
        (result,) = run(op, a, b, c, np.array(lut, np.uint32))
        assert {int(x) & 0xFF for x in np.broadcast_to(result, a.shape)} == {lut}


@pytest.mark.parametrize("boolean", ["and", "or"])
def test_lop3_predicate(boolean: str) -> None:
    a, zero = np.array([5, 0, 5, 0], np.uint32), np.zeros(4, np.uint32)
    q = np.array([True, True, False, False])
    result, p = run(op_of(f"lop3.{boolean}.b32"), a, zero, zero, np.array(0xFE, np.uint32), q)
    assert result.tolist() == [5, 0, 5, 0]
    assert p.tolist() == {"and": [True, False, False, False], "or": [True, True, True, False]}[boolean]


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    word = f"u{bits}"
    check(f"popc.b{bits}", (word,), lambda a: bin(a).count("1"), 32)
    check(f"clz.b{bits}", (word,), lambda a: bits - a.bit_length(), 32)
    check(f"brev.b{bits}", (word,), lambda a: int(f"{a:0{bits}b}"[::-1], 2), bits)


@pytest.mark.parametrize("word", ["u32", "s32", "u64", "s64"])
def test_bfind(word: str) -> None:
    def found(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    check(f"bfind.{word}", (word,), found, 32)
    check(f"bfind.shiftamt.{word}", (word,), lambda a: width(word) - 1 - found(a) if found(a) >= 0 else -1, 32)


def nth_set(mask: int, base: int, offset: int) -> int:
    """The ISA's pseudo-code of fns."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return 0xFFFFFFFF


def test_fns() -> None:
    rng = np.random.default_rng(7)
    mask = rng.integers(0, 1 << 32, 500, dtype=np.uint32)
    base, offset = rng.integers(0, 32, 500).astype(np.uint32), rng.integers(-9, 10, 500).astype(np.int32)
    (got,) = run(op_of("fns.b32"), mask, base, offset)
    assert got.tolist() == [nth_set(int(m), int(b), int(o)) for m, b, o in zip(mask, base, offset, strict=True)]


def extracted(a: int, b: int, c: int, word: str) -> int:
    """The ISA's pseudo-code of bfe; `a` is raw."""
    msb, pos, length = width(word) - 1, b & 255, c & 255
    sign = a >> min(pos + length - 1, msb) & 1 if signed(word) and length else 0
    return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else sign) << i for i in range(msb + 1))


@pytest.mark.parametrize("word", ["u32", "s32", "u64", "s64"])
def test_bfe(word: str) -> None:
    raw = f"u{width(word)}"
    check(f"bfe.{word}", (raw, "u32", "u32"), lambda a, b, c: extracted(a, b, c, word), width(word))


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits: int) -> None:
    def inserted(a: int, b: int, c: int, d: int) -> int:
        pos, length = c & 255, d & 255
        field = [i for i in range(length) if pos + i < bits]
        mask = sum(1 << (pos + i) for i in field)
        return (b & ~mask) | (sum((a >> i & 1) << (pos + i) for i in field))

    check(f"bfi.b{bits}", (f"u{bits}", f"u{bits}", "u32", "u32"), inserted, bits)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("word", ["u32", "s32"])
def test_szext(mode: str, word: str) -> None:
    def extended(a: int, b: int) -> int:
        if b >= 32 and mode == "clamp":
            return a
        bits = b & 31
        return wrap(a, bits, signed(word)) if bits else 0

    check(f"szext.{mode}.{word}", ("u32", "u32"), extended, 32)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk(mode: str) -> None:
    def mask(a: int, b: int) -> int:
        if mode == "clamp":
            return 0 if a >= 32 else ((1 << min(b, 32)) - 1) << a
        return ((1 << (b & 31)) - 1) << (a & 31)

    check(f"bmsk.{mode}.b32", ("u32", "u32"), mask, 32)


def permuted(a: int, b: int, selector: int) -> int:
    source, result = b << 32 | a, 0
    for i in range(4):
        choice = selector >> (4 * i) & 15
        byte = source >> (8 * (choice & 7)) & 0xFF
        if choice & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * i)
    return result


def test_prmt_registers() -> None:
    check("prmt.b32", ("u32",) * 3, permuted, 32)


@pytest.mark.parametrize("selector", [0x5410, 0x7632, 0x3210, 0x0123, 0xBA98, 0x4440, 0xFFFF, 0x88])
def test_prmt_immediate(selector: int) -> None:
    rng = np.random.default_rng(8)
    a, b = integers("u32", rng), integers("u32", rng)
    (got,) = run(op_of("prmt.b32"), a, b, np.array(selector, np.uint32))
    assert got.tolist() == [permuted(int(x), int(y), selector) for x, y in zip(a, b, strict=True)]


PRMT = {
    # mode: bytes of d for c = 1, most significant first, from the ISA's table
    "f4e": (4, 3, 2, 1),
    "b4e": (6, 7, 0, 1),
    "rc8": (1, 1, 1, 1),
    "ecl": (3, 2, 1, 1),
    "ecr": (1, 1, 1, 0),
    "rc16": (3, 2, 3, 2),
}


@pytest.mark.parametrize("mode", PRMT)
def test_prmt_modes(mode: str) -> None:
    low, high = np.array([0x83828180], np.uint32), np.array([0x87868584], np.uint32)
    want = int.from_bytes(bytes(0x80 + index for index in PRMT[mode]), "big")
    for control in (np.array([1], np.uint32), np.array(0xFFFFFFF5, np.uint32)):  # only c[1:0] counts
        assert as_words(run(op_of(f"prmt.b32.{mode}"), low, high, control)[0]) == [want]
