"""Constant expressions (ISA "Constants", "Constant Expressions").

Computes the value of literals and of expressions over them: 64-bit integers, signed unless the literal does not fit or has a
`U`, and doubles. `0f` literals keep their exact single-precision value and cannot be part of an expression. Not handled: the address
operators `generic()` and `mask()` of initialisers, which stay text in the tree.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import NamedTuple

from consan.instrument.ptx.tokens import Cursor

_MASK = (1 << 64) - 1
_DEPTH = 64


class Constant(NamedTuple):
    """A value with its type by the rules of the ISA."""

    value: int | float
    kind: str  # "int", "f32" or "f64"
    unsigned: bool = False


def _shift_left(left: int, right: int) -> int:
    return left << right if 0 <= right < 64 else 0


def _shift_right(left: int, right: int) -> int:
    return left >> (right if 0 <= right < 64 else 63)


def _divide(left: int | float, right: int | float) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


class _Binary(NamedTuple):
    level: int
    apply: Callable[[int | float, int | float], int | float]
    integers_only: bool
    result: str  # "operands": converted type; "signed": .s64; "left": type of the left operand; "unsigned": .u64


def _integers(level: int, apply: Callable[[int, int], int], result: str) -> _Binary:
    return _Binary(level, apply, True, result)  # type: ignore[arg-type]


_BINARY = {
    "||": _integers(1, lambda a, b: int(bool(a) or bool(b)), "signed"),
    "&&": _integers(2, lambda a, b: int(bool(a) and bool(b)), "signed"),
    "|": _integers(3, operator.or_, "operands"),
    "^": _integers(4, operator.xor, "operands"),
    "&": _integers(5, operator.and_, "operands"),
    "==": _Binary(6, lambda a, b: int(a == b), False, "signed"),
    "!=": _Binary(6, lambda a, b: int(a != b), False, "signed"),
    "<": _Binary(7, lambda a, b: int(a < b), False, "signed"),
    ">": _Binary(7, lambda a, b: int(a > b), False, "signed"),
    "<=": _Binary(7, lambda a, b: int(a <= b), False, "signed"),
    ">=": _Binary(7, lambda a, b: int(a >= b), False, "signed"),
    "<<": _integers(8, _shift_left, "left"),
    ">>": _integers(8, _shift_right, "left"),
    "+": _Binary(9, operator.add, False, "operands"),
    "-": _Binary(9, operator.sub, False, "operands"),
    "*": _Binary(10, operator.mul, False, "operands"),
    "/": _Binary(10, _divide, False, "operands"),
    "%": _integers(10, operator.mod, "unsigned"),
}

#: Tokens that can start a constant (besides the literals): the unary operators and a parenthesis.
UNARY = frozenset("+-~!(")


def _wrap(value: int, unsigned: bool) -> Constant:
    value &= _MASK
    return Constant(value if unsigned or value < 1 << 63 else value - (1 << 64), "int", unsigned)


def integer_value(token: str) -> int | None:
    """Value of an integer literal; None if a digit does not fit its base, or the value needs more than 64 bits."""
    digits = token.rstrip("U").lower()
    base = {"0x": 16, "0b": 2}.get(digits[:2]) or (8 if len(digits) > 1 and digits[0] == "0" else 10)
    significant = digits[2 if base in (2, 16) else 0 :].lstrip("0") or "0"
    if len(significant) > 64 or (base == 8 and set(significant) & {"8", "9"}):
        return None
    value = int(significant, base)
    return value if value <= _MASK else None


def float_value(token: str) -> Constant:
    """Value of a floating-point literal; the hexadecimal form gives its bits."""
    form = token[:2].lower()
    if form == "0f":
        return Constant(float(struct.unpack(">f", bytes.fromhex(token[2:]))[0]), "f32")
    if form == "0d":
        return Constant(float(struct.unpack(">d", bytes.fromhex(token[2:]))[0]), "f64")
    return Constant(float(token), "f64")


def starts_constant(cursor: Cursor) -> bool:
    """Whether a constant expression can start at the current token."""
    return cursor.kind in ("integer", "float") or cursor.token == "WARP_SZ" or (cursor.kind == "punctuation" and cursor.token in UNARY)


def parse_integer(cursor: Cursor, expected: str = "an integer") -> int:
    """A plain integer literal (array sizes, alignments, directive arguments)."""
    if cursor.kind != "integer":
        raise cursor.error(expected)
    return int(_literal(cursor).value)


def parse_constant(cursor: Cursor) -> Constant:
    """A constant expression."""
    return _conditional(cursor, 0)


def _conditional(cursor: Cursor, depth: int) -> Constant:
    if depth > _DEPTH:
        raise cursor.source.error(cursor.start, "constant expression nested too deeply")
    condition = _binary(cursor, 1, depth)
    if not cursor.accept("?"):
        return condition
    yes = _conditional(cursor, depth + 1)
    cursor.expect(":", "of a conditional expression")
    no = _conditional(cursor, depth + 1)
    return yes if condition.value else no


def _binary(cursor: Cursor, level: int, depth: int) -> Constant:
    left = _unary(cursor, depth)
    while cursor.kind == "punctuation" and (row := _BINARY.get(cursor.token)) is not None and row.level >= level:
        offset = cursor.start
        cursor.take()
        right = _binary(cursor, row.level + 1, depth)
        left = _apply(cursor, offset, row, left, right)
    return left


def _apply(cursor: Cursor, offset: int, row: _Binary, left: Constant, right: Constant) -> Constant:
    floating = "int" not in (left.kind, right.kind) or left.kind != right.kind
    if "f32" in (left.kind, right.kind) or (floating and (row.integers_only or left.kind != right.kind)):
        raise cursor.source.error(offset, "operands of these types cannot be used in a constant expression")
    if right.value == 0 and row.apply in (_divide, operator.mod):
        raise cursor.source.error(offset, "division by zero in a constant expression")
    if floating:
        return _apply_floats(cursor, offset, row, left, right)
    unsigned = row.result == "unsigned" or (row.result != "left" and (left.unsigned or right.unsigned))
    value = row.apply(*((c.value & _MASK) if unsigned and isinstance(c.value, int) else c.value for c in (left, right)))
    result_unsigned = {"operands": unsigned, "signed": False, "left": left.unsigned, "unsigned": True}[row.result]
    return _wrap(int(value), result_unsigned)


def _apply_floats(cursor: Cursor, offset: int, row: _Binary, left: Constant, right: Constant) -> Constant:
    try:
        value = row.apply(left.value, right.value)
    except OverflowError:
        raise cursor.source.error(offset, "constant expression overflows") from None
    return Constant(value, "int" if row.result == "signed" else "f64")


def _unary(cursor: Cursor, depth: int) -> Constant:
    if cursor.kind != "punctuation" or cursor.token not in UNARY:
        return _literal(cursor)
    if depth > _DEPTH:
        raise cursor.source.error(cursor.start, "constant expression nested too deeply")
    offset, sign = cursor.start, cursor.take()
    if sign == "(":
        return _parenthesis(cursor, depth)
    operand = _unary(cursor, depth + 1)
    if operand.kind == "f32" or (operand.kind == "f64" and sign in "~!"):
        raise cursor.source.error(offset, f"{sign!r} cannot be applied to this constant")
    return _UNARY_RULES[sign](operand)


def _negative(operand: Constant) -> Constant:
    return _wrap(-operand.value, operand.unsigned) if isinstance(operand.value, int) else Constant(-operand.value, "f64")


_UNARY_RULES: dict[str, Callable[[Constant], Constant]] = {
    "+": lambda operand: operand,
    "-": _negative,
    "!": lambda operand: Constant(int(not operand.value), "int"),
    "~": lambda operand: _wrap(~int(operand.value), True),
}


def _parenthesis(cursor: Cursor, depth: int) -> Constant:
    if cursor.token in (".s64", ".u64"):
        offset, cast = cursor.start, cursor.take()
        cursor.expect(")", "after a cast")
        operand = _unary(cursor, depth + 1)
        if isinstance(operand.value, float):
            raise cursor.source.error(offset, "a floating-point constant cannot be cast")
        return _wrap(operand.value, cast == ".u64")
    inner = _conditional(cursor, depth + 1)
    cursor.expect(")", "of a constant expression")
    return inner


def _literal(cursor: Cursor) -> Constant:
    offset, kind = cursor.start, cursor.kind
    if cursor.token == "WARP_SZ":
        cursor.take()
        return Constant(32, "int")
    if kind == "float":
        return float_value(cursor.take())
    token = cursor.take_kind("integer", "a constant")
    value = integer_value(token)
    if value is None:
        raise cursor.source.error(offset, f"integer constant {token[:24]!r} is malformed or does not fit in 64 bits")
    return Constant(value, "int", token.endswith("U") or value >= 1 << 63)
