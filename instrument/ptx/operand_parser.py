"""Reader of operand lists (ISA "Instruction Operands", "Call").

Determines the shape of an operand from its spelling, and whether a bare name is a register (it starts with `%`, or a `.reg`
declaration in scope has it) or a symbol. Knows no opcodes, except that `call` takes parenthesised lists. The instruction table
knows roles, types and validity.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from consan.instrument.ptx.constants import Constant, parse_constant, starts_constant
from consan.instrument.ptx.operands import (
    Address,
    Immediate,
    Named,
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
)
from consan.instrument.ptx.source import Source
from consan.instrument.ptx.tokens import Cursor

IsRegister = Callable[[str], bool]

#: The operands that make up nearly all real PTX, each with the comma or semicolon after it.
_COMMON = re.compile(
    r"""\s*(?:
      (%[\w$]+(?:\.[a-z]\w*)?)
    | (-?(?:0[xX][0-9a-fA-F]{1,15}|[1-9][0-9]{0,17}|0)|1[0-7][0-9]{18})
    | (\[\s*(%[\w$]+)\s*(?:\+\s*(-?(?:[1-9][0-9]{0,17}|0))\s*)?\])
    | (\{\s*%[\w$]+\s*(?:,\s*%[\w$]+\s*)*\})
    )\s*([,;])""",
    re.ASCII | re.VERBOSE,
)
_NAMES = re.compile(r"%[\w$]+", re.ASCII)

_NEGATIONS: dict[str, type[Negated] | type[Negative]] = {"!": Negated, "-": Negative}


def parse_operands(source: Source, offset: int, is_call: bool, is_register: IsRegister) -> tuple[tuple[Operand, ...], int]:
    """The operands from an offset through the semicolon, and the offset after it."""
    operands: list[Operand] = []
    while match := _COMMON.match(source.text, offset):
        operands.append(_common(*match.group(1, 2, 3, 4, 5, 6)))
        offset = match.end()
        if match.group(7) == ";":
            return tuple(operands), offset
    reader = _Reader(source, offset, is_call, is_register)
    reader.rest(operands)
    return tuple(operands), reader.cursor.last_end


def _common(
    register: str | None, integer: str | None, address: str | None, base: str, displacement: str | None, vector: str | None
) -> Operand:
    if register is not None:
        return Register(register, register)
    if integer is not None:
        return Immediate(integer, int(integer, 0), "int")
    if vector is not None:
        return Vector(tuple(Register(name, name) for name in _NAMES.findall(vector)), vector)
    return Address(Register(base, base), int(displacement or 0), None, address or "")


class _Reader:
    """Recursive descent over one operand list."""

    def __init__(self, source: Source, offset: int, is_call: bool, is_register: IsRegister) -> None:
        self.cursor = Cursor(source, offset)
        self.text = source.text
        self.is_call = is_call
        self.is_register = is_register

    def rest(self, operands: list[Operand]) -> None:
        """Append the operands before the semicolon. The first operand may be missing; an operand after a comma may not."""
        cursor = self.cursor
        if not operands and cursor.token == ";":
            return self.finish()
        operands.append(self.operand())
        while cursor.accept(","):
            operands.append(self.operand())
        return self.finish()

    def finish(self) -> None:
        # Not `expect`: it would look beyond the semicolon and report the error in the next statement.
        if self.cursor.token != ";":
            raise self.cursor.error("',' or ';' after an operand")
        self.cursor.last_end = self.cursor.end

    def operand(self) -> Operand:
        cursor = self.cursor
        if cursor.token == "{":
            return self.vector_or_pair()
        if cursor.token == "[":
            return self.address()
        if cursor.token == "(" and self.is_call:
            return self.call_list()
        if starts_constant(cursor):
            return self.constant_or_negation()
        if cursor.kind != "identifier":
            raise cursor.error("an operand")
        return self.after_name()

    def since(self, start: int) -> str:
        return self.text[start : self.cursor.last_end]

    def name(self) -> Named:
        cursor = self.cursor
        start = cursor.start
        name = cursor.take_identifier("a register, variable or label")
        if name == "_":
            return Underscore()
        is_register = name[0] == "%" or self.is_register(name)
        if cursor.kind == "modifier":
            is_register = True
            name += cursor.take()
        return (Register if is_register else Symbol)(name, self.since(start))

    def after_name(self) -> Operand:
        start = self.cursor.start
        name = self.name()
        if self.cursor.accept("|"):
            return Pair(name, self.name(), self.since(start))
        if isinstance(name, Symbol):
            return self.after_symbol(name, start)
        return name

    def after_symbol(self, symbol: Symbol, start: int) -> Operand:
        if self.cursor.accept("+"):
            offset = self.displacement()
            return SymbolOffset(symbol, offset, self.since(start))
        if self.cursor.accept("["):
            index = self.index()
            offset = self.displacement() if self.cursor.accept("+") else 0
            self.cursor.expect("]", "after an index")
            return Address(symbol, offset, index, self.since(start))
        return symbol

    def index(self) -> Register | Immediate:
        if starts_constant(self.cursor):
            return self.immediate()
        offset = self.cursor.start
        name = self.name()
        if not isinstance(name, Register):
            raise self.cursor.source.error(offset, f"{name.text!r} is not a register or constant, so it cannot be an index")
        return name

    def displacement(self) -> int:
        offset = self.cursor.start
        constant = parse_constant(self.cursor)
        if not isinstance(constant.value, int):
            raise self.cursor.source.error(offset, "an address offset must be an integer")
        return constant.value

    def immediate(self) -> Immediate:
        start = self.cursor.start
        constant: Constant = parse_constant(self.cursor)
        return Immediate(self.since(start), constant.value, constant.kind)

    def constant_or_negation(self) -> Operand:
        cursor = self.cursor
        negation = _NEGATIONS.get(cursor.token)
        if negation is None:
            return self.immediate()
        start = cursor.start
        look_ahead = Cursor(cursor.source, cursor.end)
        if look_ahead.kind != "identifier" or look_ahead.token == "WARP_SZ":
            return self.immediate()
        cursor.take()
        name = self.name()
        if isinstance(name, Underscore):
            raise cursor.source.error(start, "the sink '_' cannot be negated")
        return negation(name, self.since(start))

    def vector_or_pair(self) -> Vector | Pair:
        start = self.cursor.start
        vector = self.vector()
        return Pair(vector, self.name(), self.since(start)) if self.cursor.accept("|") else vector

    def vector(self) -> Vector:
        start = self.cursor.start
        elements = self.elements("{", "}", self.element)
        return Vector(elements, self.since(start))

    def elements(self, opening: str, closing: str, element: Callable[[], Operand]) -> tuple[Operand, ...]:
        cursor = self.cursor
        cursor.expect(opening)
        found = [element()]
        while cursor.accept(","):
            found.append(element())
        if cursor.token != closing:
            raise cursor.error(f"',' or {closing!r} in a list")
        cursor.take()
        return tuple(found)

    def element(self) -> Operand:
        return self.immediate() if starts_constant(self.cursor) else self.name()

    def call_list(self) -> Tuple:
        cursor = self.cursor
        start = cursor.start
        if Cursor(cursor.source, cursor.end).token == ")":
            cursor.take()
            cursor.take()
            return Tuple((), self.since(start))
        elements = self.elements("(", ")", self.element)
        return Tuple(elements, self.since(start))

    def address(self) -> Address | TensorAddress:
        cursor = self.cursor
        start = cursor.start
        cursor.expect("[")
        base = self.immediate() if starts_constant(cursor) else self.name()
        if isinstance(base, Underscore) or (isinstance(base, Immediate) and base.kind != "int"):
            raise cursor.source.error(start, f"{base.text!r} cannot be an address")
        if cursor.token == ",":
            return self.tensor_address(base, start)
        offset = self.displacement() if cursor.accept("+") else 0
        if cursor.token != "]":
            raise cursor.error("'+', ',' or ']' in an address")
        cursor.take()
        unified = cursor.accept(".unified")
        return Address(base, offset, None, self.since(start), unified)

    def tensor_address(self, base: Operand, start: int) -> TensorAddress:
        parts: list[Operand] = []
        while self.cursor.accept(","):
            parts.append(self.vector() if self.cursor.token == "{" else self.element())
        sampler = parts.pop(0) if len(parts) == 2 else None
        if len(parts) != 1 or isinstance(sampler, Vector):
            raise self.cursor.source.error(start, "an address holds at most a base, a sampler and coordinates")
        if self.cursor.token != "]":
            raise self.cursor.error("']' after coordinates")
        self.cursor.take()
        coords = parts[0].elements if isinstance(parts[0], Vector) else (parts[0],)
        return TensorAddress(base, coords, sampler, self.since(start))
