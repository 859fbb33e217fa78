"""Operand roles: which operand of an instruction is destination, source, address, size, policy and so on.

A row writes its operands as the PTX ISA manual does, with roles for names: ``dst, [addr]{, policy}``. Square brackets are an address,
angle brackets a vector in braces, round brackets a parameter list, braces an optional operand. ``dst`` may be a pair ``p|q``. If a
form has several optional operands, three things decide which one is present, in this order: a modifier of the opcode (the cache policy
needs ``.L2::cache_hint``, 9.7.9.2 "Cache Eviction Priority Hints"), the shape of the operand, its position.

Operands are recognised by the names of the reader's classes (Register, Symbol, SymbolOffset, Immediate, Address, TensorAddress,
Vector, Pair, Negated, Tuple, Underscore), so this package imports nothing. The reader decides whether a bare name is a register. The
helpers return symbols as well; an analysis of registers keeps the declared ones. Implicit operands (the carry flag CC.CF of
"Extended-Precision Arithmetic Instructions") are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from consan.dataclass import dataclass

__all__ = ["Operand", "OperandSpec", "align_roles", "immediate_value", "names", "parse_notation", "present_of", "signalled"]

Operand = Any

_ITEM = re.compile(r"(?P<open>\{)?\s*,?\s*(?P<item>\[[^\]]*\]|<[^>]*>|\([^)]*\)|[A-Za-z0-9-]+)\s*,?\s*(?(open)\})\s*,?\s*")
_SHAPES = {"[": "address", "<": "vector", "(": "tuple"}
_KINDS = {"Address": "address", "TensorAddress": "address", "Vector": "vector", "Tuple": "tuple"}

# Roles of optional operands that are present exactly if the opcode has a modifier of this class with one of these words.
_WITH_MODIFIER: dict[str, tuple[str, frozenset[str] | None]] = {
    "policy": ("level::cache_hint", None),
    "cta-mask": ("multicast", None),
    "byte-mask": ("cp_mask", None),
    "im2col": ("load_mode", frozenset({"im2col", "im2col::w", "im2col::w::128"})),
    "scale-factor": ("scaled::n2::ue8m0", None),
}


@dataclass(frozen=True)
class OperandSpec:
    """One operand of a form: its role, its required shape ("any" accepts all), and whether it is optional."""

    role: str
    shape: str
    optional: bool


def parse_notation(notation: str) -> tuple[OperandSpec, ...]:
    """The operands of a row's notation, in order."""
    specs, position = [], 0
    while position < len(notation):
        found = _ITEM.match(notation, position)
        if not found:
            raise ValueError(f"not the notation of operands: {notation!r}")
        item = found["item"]
        specs.append(OperandSpec(item.strip("[]<>()"), _SHAPES.get(item[0], "any"), found["open"] is not None))
        position = found.end()
    return tuple(specs)


def align_roles(specs: tuple[OperandSpec, ...], operands: tuple[Operand, ...], modifiers: Mapping[str, str]) -> tuple[str, ...]:
    """The role of each operand. Raises ValueError if the operands do not fit the form."""
    present = present_of(specs, modifiers)
    if len(present) == len(operands):
        return tuple(spec.role for spec in present)
    roles = next(_alignments(present, operands, modifiers), None)
    if roles is None:
        raise ValueError(f"operands {operands} do not fit {[spec.role for spec in specs]}")
    return roles


def present_of(specs: tuple[OperandSpec, ...], modifiers: Mapping[str, str]) -> tuple[OperandSpec, ...]:
    """The operands that an instruction with some modifiers may have."""
    return tuple(spec for spec in specs if not _excluded(spec, modifiers))


def _excluded(spec: OperandSpec, modifiers: Mapping[str, str]) -> bool:
    return spec.role in _WITH_MODIFIER and not signalled(spec, modifiers)


def signalled(spec: OperandSpec, modifiers: Mapping[str, str]) -> bool:
    """Whether a modifier asks for an optional operand."""
    if spec.role not in _WITH_MODIFIER:
        return False
    name, words = _WITH_MODIFIER[spec.role]
    word = modifiers.get(name)
    return word is not None and (words is None or word in words)


def _alignments(specs: tuple[OperandSpec, ...], operands: tuple[Operand, ...], modifiers: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    if not specs:
        if not operands:
            yield ()
        return
    spec = specs[0]
    if operands and _fits(spec, operands[0]):
        for rest in _alignments(specs[1:], operands[1:], modifiers):
            yield (spec.role, *rest)
    if spec.optional and spec.role not in _WITH_MODIFIER:
        yield from _alignments(specs[1:], operands, modifiers)


def _fits(spec: OperandSpec, operand: Operand) -> bool:
    kind = _KINDS.get(type(operand).__name__, "any")
    if spec.shape != "any":
        return kind == spec.shape
    # An optional operand without brackets never matches one with brackets. This distinguishes `[a], b` from `[a], [b]`.
    return not (spec.optional and kind in ("address", "tuple"))


_CHILDREN = {
    "Address": ("base", "index"),
    "SymbolOffset": ("base",),
    "TensorAddress": ("base", "coords", "sampler"),
    "Vector": ("elements",),
    "Tuple": ("elements",),
    "Pair": ("first", "second"),
    "Negated": ("operand",),
}


def names(operand: Operand) -> Iterator[str]:
    """Names of all registers and symbols inside an operand, left to right."""
    kind = type(operand).__name__
    if kind == "Register":
        # A component or a lane selector ("%v.x", "%r1.b0") belongs to the operand; the register is the name before it.
        yield operand.name.partition(".")[0]
    elif kind == "Symbol":
        yield operand.name
    elif isinstance(operand, (tuple, list)):
        for element in operand:
            yield from names(element)
    else:
        for attribute in _CHILDREN.get(kind, ()):
            yield from names(getattr(operand, attribute, None))


def immediate_value(operand: Operand) -> int:
    """The value of an integer immediate; 0 for anything known at run time only."""
    value = getattr(operand, "value", None)
    return value if isinstance(value, int) else 0
