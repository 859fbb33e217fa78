"""The shapes of operands (ISA "Instruction Operands").

Only the shapes; `operand_parser.py` reads them. Equality ignores the spelling (`text`).
"""

from __future__ import annotations

from dataclasses import field
from typing import Union

from consan.dataclass import dataclass


@dataclass(frozen=True)
class Register:
    """A register or special register; the name keeps a component or lane selector ("%tid.x", "%r1.b0")."""

    name: str
    text: str = field(compare=False)


@dataclass(frozen=True)
class Immediate:
    """A constant. A "f32" value is exact; take NaN payloads from `text`."""

    text: str
    value: int | float
    kind: str  # "int", "f32" or "f64"


@dataclass(frozen=True)
class Symbol:
    """A variable, function or label."""

    name: str
    text: str = field(compare=False)


@dataclass(frozen=True)
class Underscore:
    """The sink `_`."""

    text: str = field(default="_", compare=False)


@dataclass(frozen=True)
class Address:
    """`[base]`, `[base+offset]`, or with an index `base[index+offset]` (which `mov` reads as the address of that element)."""

    base: Register | Symbol | Immediate
    offset: int
    index: Register | Immediate | None = None
    text: str = field(default="", compare=False)
    unified: bool = False  # `[base].unified`


@dataclass(frozen=True)
class SymbolOffset:
    """`symbol+4` outside brackets: an address as a value."""

    base: Symbol
    offset: int
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Vector:
    """`{a, b}`."""

    elements: tuple[Operand, ...]
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Pair:
    """`p|q`; textures may put a vector first."""

    first: Register | Symbol | Underscore | Vector
    second: Register | Symbol | Underscore
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Negated:
    """`!p`."""

    operand: Register | Symbol
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Negative:
    """`-r`, of the scalar video instructions only."""

    operand: Register | Symbol
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Tuple:
    """A parenthesised list of a call: return parameters or arguments."""

    elements: tuple[Operand, ...]
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class TensorAddress:
    """`[base, {c0, c1}]` of tensor copies, textures and surfaces; a separate sampler comes between base and coordinates."""

    base: Operand
    coords: tuple[Operand, ...]
    sampler: Operand | None = None
    text: str = field(default="", compare=False)


Operand = Union[  # noqa: UP007 - the annotations above name it before it exists
    Register, Immediate, Symbol, Underscore, Address, SymbolOffset, Vector, Pair, Negated, Negative, Tuple, TensorAddress
]
Named = Union[Register, Symbol, Underscore]  # noqa: UP007


def flatten(operand: Operand) -> tuple[Operand, ...]:
    """The simple operands in a vector, a pair or a tuple."""
    if isinstance(operand, (Vector, Tuple)):
        return tuple(inner for element in operand.elements for inner in flatten(element))
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return (operand,)
