"""What the source declares: element types and dimensions of `__shared__` variables, members of plain structs, names of parameters.

A reader of a small part of C++, not a compiler: it takes what it understands as a whole and leaves out the rest. A dimension may be an
expression of integers, of macros and of constants with such values (`ROWS * 2 + 1`). Who uses a declaration holds it against the size
that PTX gives the variable (`variables.py`): one that does not fit is not used.

Not handled: template arguments and types as dimensions, bit fields, base classes and members that are not plain variables.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SHARED: Final = re.compile(r"\b__shared__\b([^;{}]{1,400});")
_ALIGNED: Final = r"\b(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)"
_QUALIFIER: Final = re.compile(rf"{_ALIGNED}|\b(?:extern|static|volatile|const|__restrict__|struct)\b")
_DECLARATOR: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)$")
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$", re.MULTILINE)
_CONSTANT: Final = re.compile(r"\b(?:constexpr|const)\b[^;=(){}]*\b(\w+)\s*=\s*([^;{}]+);")
_STRUCT: Final = re.compile(r"\bstruct\s+(?:(?:__align__|alignas)\s*\([^()]*\)\s*)?(\w+)\s*\{([^{}()]*)\}")
_SUFFIX: Final = re.compile(r"\b(\d+|0[xX][0-9a-fA-F]+)[uUlL]+\b")
_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_NESTED: Final = 8  # constants in terms of constants
#: Bytes of the types whose size the language fixes on a GPU.
SIZES: Final = {
    **dict.fromkeys(("char", "signed char", "unsigned char", "bool", "int8_t", "uint8_t", "__nv_fp8_e4m3", "__nv_fp8_e5m2"), 1),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t", "half", "__half", "__nv_bfloat16", "nv_bfloat16"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "float", "int32_t", "uint32_t", "half2", "__half2"), 4),
    **dict.fromkeys(("long long", "unsigned long long", "double", "int64_t", "uint64_t", "size_t", "long", "unsigned long"), 8),
}


@dataclass(frozen=True)
class Declared:
    """A variable as declared: its type in words and its dimensions; 0 for one that is not understood or left open."""

    name: str
    type: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Member:
    """A member of a plain struct, with its place in it."""

    declared: Declared
    offset: int
    element: int


class Source:
    """The declarations of one source text."""

    def __init__(self, text: str) -> None:
        self._text = _COMMENT.sub(" ", text)
        found = [*_MACRO.findall(self._text), *_CONSTANT.findall(self._text)]
        self._constants: dict[str, str] = {}
        for name, value in found:  # a name with two values has none
            self._constants[name] = value if self._constants.get(name, value) == value else ""

    def shared(self, name: str) -> set[Declared]:
        """The `__shared__` declarations of a name."""
        if name not in self._text:
            return set()
        statements = _SHARED.findall(self._text)
        return {declared for text in statements for declared in self._declared(text) if declared.name == name}

    def members(self, struct: str) -> tuple[Member, ...]:
        """The members of a struct that has plain variables only, laid out one after the other; none where it is not understood."""
        bodies = {body for name, body in _STRUCT.findall(self._text) if name == struct}
        declared = [each for body in bodies for text in body.split(";") if text.strip() for each in self._declared(text)]
        if len(bodies) != 1 or any(each.type not in SIZES or 0 in each.dims for each in declared):
            return ()
        members, offset = [], 0
        for each in declared:
            size = SIZES[each.type]
            offset = -(-offset // size) * size
            members.append(Member(each, offset, size))
            offset += size * _product(each.dims)
        return tuple(members)

    def parameters(self, kernel: str) -> tuple[str, ...]:
        """Names of a kernel's parameters; none where the source has no such definition or several that differ."""
        pattern = rf"__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^;{{}}]*?)\)\s*\{{"
        found = {tuple(_names(each)) for each in re.findall(pattern, self._text)}
        return found.pop() if len(found) == 1 else ()

    def _declared(self, statement: str) -> Iterator[Declared]:
        """`float a[4], b` is two; a statement that is not a declaration of plain variables is none."""
        type_ = ""
        for part in _split(_QUALIFIER.sub(" ", statement)):
            found = _DECLARATOR.search(part.strip())
            if found is None:
                return
            type_ = " ".join(part.strip()[: found.start()].split()) or type_
            dims = re.findall(r"\[([^\]]*)\]", found["dims"])
            yield Declared(found["name"], type_, tuple(self._value(each) for each in dims))

    def _value(self, text: str) -> int:
        """An expression's value; 0 where it is not one of integers."""
        for _ in range(_NESTED):
            text = re.sub(r"[A-Za-z_]\w*", lambda name: f"({self._constants[name[0]]})" if self._constants.get(name[0]) else name[0], text)
        try:
            return max(0, _evaluate(ast.parse(_SUFFIX.sub(r"\1", text).strip(), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, MemoryError, RecursionError):
            return 0


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if max(left, right) < 1 << 32 and right >= 0:
            return _OPERATORS[type(node.op)](left, right)
    raise ValueError(ast.dump(node))


def _split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _names(parameters: str) -> Iterator[str]:
    for part in _split(parameters):
        found = _DECLARATOR.search(part.split("=")[0].strip())
        if found and part.strip() != "void":
            yield found["name"]


def _product(dims: tuple[int, ...]) -> int:
    product = 1
    for dim in dims:
        product *= dim
    return product


def shared(sources: Mapping[str, Source], name: str) -> tuple[tuple[Declared, Source], ...]:
    """Each declaration of a name in these sources, with the source that has it."""
    found = {declared: source for source in sources.values() for declared in source.shared(name)}
    return tuple(found.items())
