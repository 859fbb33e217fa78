"""Operands: shapes, values, and the text they came from."""

from __future__ import annotations

import math

import pytest
from ptx_examples import KERNEL, UNUSUAL, kernel

from consan.instrument.ptx import (
    Address,
    Immediate,
    Negated,
    Negative,
    Operand,
    Pair,
    Register,
    Symbol,
    SymbolOffset,
    TensorAddress,
    Tuple,
    Underscore,
    Vector,
    parse,
)

R1, R2, RD1, P1, P2 = (Register(name, name) for name in ("%r1", "%r2", "%rd1", "%p1", "%p2"))


def operands(statement: str) -> tuple[Operand, ...]:
    instruction = next(parse(kernel(statement)).functions[0].instructions())
    return instruction.operands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", R1),
        ("%tid.x", Register("%tid.x", "")),
        ("a", Symbol("a", "")),
        ("_", Underscore()),
        ("!%p1", Negated(P1)),
        ("-%r1", Negative(R1)),
        ("[%rd1]", Address(RD1, 0)),
        ("[%rd1+8]", Address(RD1, 8)),
        ("[%rd1+-4]", Address(RD1, -4)),
        ("[ a + 0x10 ]", Address(Symbol("a", ""), 16)),
        ("[a+4+4]", Address(Symbol("a", ""), 8)),
        ("[1024]", Address(Immediate("1024", 1024, "int"), 0)),
        ("[a].unified", Address(Symbol("a", ""), 0, unified=True)),
        ("a[3]", Address(Symbol("a", ""), 0, Immediate("3", 3, "int"))),
        ("a[%r1]", Address(Symbol("a", ""), 0, R1)),
        ("a[%r1+16]", Address(Symbol("a", ""), 16, R1)),
        ("a+4", SymbolOffset(Symbol("a", ""), 4)),
        ("{%r1, _, 7}", Vector((R1, Underscore(), Immediate("7", 7, "int")))),
        ("%p1|%p2", Pair(P1, P2)),
        ("_ | %p2", Pair(Underscore(), P2)),
        ("{%r1,%r2}|%p1", Pair(Vector((R1, R2)), P1)),
        ("[%rd1, {%r1, %r2}]", TensorAddress(RD1, (R1, R2))),
        ("[%rd1, %r1]", TensorAddress(RD1, (R1,))),
        ("[%rd1, a, {%r1}]", TensorAddress(RD1, (R1,), Symbol("a", ""))),
    ],
)
def test_shapes(text: str, expected: Operand) -> None:
    first, last = operands(f"foo.b32 {text}, 0;")
    assert first == expected
    assert first.text == text
    assert last == Immediate("0", 0, "int")


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("-4", -4, "int"),
        ("0x7F", 127, "int"),
        ("0777", 511, "int"),
        ("0b101U", 5, "int"),
        ("18446744073709551615", 2**64 - 1, "int"),
        ("-1U", 2**64 - 1, "int"),
        ("0xFFFFFFFFFFFFFFFF", 2**64 - 1, "int"),
        ("~0", 2**64 - 1, "int"),
        ("(1+2)*3", 9, "int"),
        ("7 % 4", 3, "int"),
        ("-7 / 2", -3, "int"),
        ("1 << 63", -(2**63), "int"),
        ("-8 >> 1", -4, "int"),
        ("1 ? 2 : 3", 2, "int"),
        ("(.u64)-1", 2**64 - 1, "int"),
        ("-1 < 1U", 0, "int"),
        ("-1 < 1", 1, "int"),
        ("!3", 0, "int"),
        ("6 & 3 | 8", 10, "int"),
        ("1 && 0 || 1", 1, "int"),
        ("WARP_SZ", 32, "int"),
        ("WARP_SZ*2", 64, "int"),
        ("0f3F800000", 1.0, "f32"),
        ("0F3DCCCCCD", 0.10000000149011612, "f32"),
        ("0d3FF8000000000000", 1.5, "f64"),
        ("0.25", 0.25, "f64"),
        ("-1.5e3", -1500.0, "f64"),
        (".5 + 1.", 1.5, "f64"),
    ],
)
def test_constants(text: str, value: float, kind: str) -> None:
    (constant,) = operands(f"foo {text};")
    assert constant == Immediate(text, value, kind)
    assert type(constant.value) is type(value)  # type: ignore[union-attr]


def test_not_a_number_keeps_its_bits_in_the_text() -> None:
    (constant,) = operands("foo 0f7FFFFFFF;")
    assert isinstance(constant, Immediate)
    assert math.isnan(constant.value)
    assert constant.text == "0f7FFFFFFF"


@pytest.mark.parametrize("text", ["1 + 0.5", "0f3F800000 + 1", "~1.5", "-0f3F800000", "1.5 & 1", "(.s64)1.5", "1e308 * 1e308 & 1"])
def test_constants_that_the_rules_forbid(text: str) -> None:
    with pytest.raises(Exception, match="constant"):
        operands(f"foo {text};")


def test_calls() -> None:
    calls = [i for i in parse(KERNEL).functions[2].instructions() if i.parts[0] == "call"]
    result, callee, arguments = calls[0].operands
    assert isinstance(result, Tuple)
    assert result.elements == (Symbol("retval0", ""),)
    assert callee == Symbol("vprintf", "")
    assert isinstance(arguments, Tuple)
    assert arguments.elements == (Symbol("param0", ""), Symbol("param0", ""))
    assert calls[1].operands[1] == Register("%rd25", "")
    assert calls[1].operands[3] == Symbol("prototype_0", "")


@pytest.mark.parametrize("text", ["call foo, ();", "call foo;", "call (_), foo, (1, %r1);", "@%p1 call.uni (a), foo;"])
def test_short_calls(text: str) -> None:
    assert Symbol("foo", "") in operands(text)


def test_no_operands() -> None:
    assert operands("exit;") == ()


@pytest.mark.parametrize("statement", UNUSUAL)
def test_unusual_spellings(statement: str) -> None:
    for instruction in parse(kernel(statement)).functions[0].instructions():
        assert all(operand.text in statement or operand.text == "_" for operand in instruction.operands)
