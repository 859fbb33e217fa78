"""Reads source declarations: types and dimensions of `__shared__` variables, members of plain structs, names of parameters.

It reads a small part of C++ and skips what it does not understand. A dimension may be an
expression of integers, macros and constants (`ROWS * 2 + 1`). Users compare a declaration with the size in PTX
(`variables.py`) and ignore it if the sizes differ.

Not handled: template arguments and types as dimensions, bit fields, base classes and members that are not plain variables.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from consan.dataclass import dataclass

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SHARED: Final = re.compile(r"\b__shared__\b([^;{}]{1,400});")
_ALIGNED: Final = r"\b(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)"
_QUALIFIER: Final = re.compile(rf"{_ALIGNED}|\b(?:extern|static|volatile|const|__restrict__|struct)\b")
_DECLARATOR: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)$")
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$", re.MULTILINE)
_CONSTANT: Final = re.compile(r"\b(?:constexpr|const)\b[^;=(){}]*\b(\w+)\s*=\s*([^;{}]+);")
_STRUCT: Final = re.compile(r"\bstruct\s+(?:(?:__align__|alignas)\s*\([^()]*\)\s*)?(\w+)\s*\{([^{}()]*)\}")
_ENUM: Final = re.compile(r"\benum\b[^;{}()]*\{([^{}]*)\}")
_TEMPLATE: Final = re.compile(r"\btemplate\s*<([^;{}()]*?)>\s*(?=\w)")
_ALIAS: Final = re.compile(r"\busing\s+(\w+)\s*=\s*([\w\s]+?)\s*;")
_TYPEDEF: Final = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")
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
_START: Final = re.compile(r"\bvoid\*\s*(\w+)\s*=\s*\(\(void\*\)\(\(char\*\)\w+\s*\+\s*(\d+)\)\);")
_STAGES: Final = re.compile(r"stages?(?![a-z])", re.IGNORECASE)  # STAGES, kStages, num_stages
_LONGEST: Final = 4096  # characters of an expression
_NESTED: Final = 8  # depth of constants defined by constants
POINTER: Final = "pointer"
#: Bytes of the types whose size the language fixes on a GPU.
SIZES: Final = {
    **dict.fromkeys(("char", "signed char", "unsigned char", "bool", "int8_t", "uint8_t", "__nv_fp8_e4m3", "__nv_fp8_e5m2"), 1),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t", "half", "__half", "__nv_bfloat16", "nv_bfloat16"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "float", "int32_t", "uint32_t", "half2", "__half2"), 4),
    **dict.fromkeys(("long long", "unsigned long long", "double", "int64_t", "uint64_t", "size_t", "long", "unsigned long", POINTER), 8),
}


@dataclass(frozen=True)
class DeclaredVariable:
    """A variable as declared: its type and its dimensions. A dimension is 0 if it is open or not understood.

    `stages`: the source calls the elements of the first dimension stages (`tile[STAGES][64]`).
    """

    name: str
    type: str
    dims: tuple[int, ...]
    stages: bool = False


@dataclass(frozen=True)
class Member:
    """A member of a plain struct, with its offset."""

    declared: DeclaredVariable
    offset: int
    element: int


class SourceTexts:
    """The declarations of all source texts of a module: constants and types of one are visible in another."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = _COMMENT.sub(" ", "\n".join(texts))
        parameters = {name for text in _TEMPLATE.findall(self._text) for name in _names(text)}
        self._constants = _single([*_MACRO.findall(self._text), *_CONSTANT.findall(self._text), *_enumerated(self._text)], parameters)
        aliases = _single([*_ALIAS.findall(self._text), *((name, type_) for type_, name in _TYPEDEF.findall(self._text))], parameters)
        self._sizes = SIZES | {name: SIZES[" ".join(type_.split())] for name, type_ in aliases.items() if " ".join(type_.split()) in SIZES}

    def size(self, type_: str) -> int:
        """Bytes of a type; 0 if the type or its size is unknown."""
        return self._sizes.get(type_, 0)

    def shared(self, name: str) -> set[DeclaredVariable]:
        """The `__shared__` declarations of a name."""
        if name not in self._text:
            return set()
        statements = _SHARED.findall(self._text)
        return {declared for text in statements for declared in self._declared(text) if declared.name == name}

    def members(self, struct: str) -> tuple[Member, ...]:
        """The members of a struct of plain variables, with offsets; empty if it is not understood."""
        bodies = {body for name, body in _STRUCT.findall(self._text) if name == struct}
        declared = [each for body in bodies for text in body.split(";") if text.strip() for each in self._declared(text)]
        if len(bodies) != 1 or any(not self.size(each.type) or 0 in each.dims for each in declared):
            return ()
        members, offset = [], 0
        for each in declared:
            size = self.size(each.type)
            offset = -(-offset // size) * size
            members.append(Member(each, offset, size))
            offset += size * _product(each.dims)
        return tuple(members)

    def parameters(self, kernel: str) -> tuple[str, ...]:
        """Names of a kernel's parameters; empty if the source has no such definition, or several that differ."""
        pattern = rf"__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^;{{}}]*?)\)\s*\{{"
        found = {tuple(_names(each)) for each in re.findall(pattern, self._text)}
        return found.pop() if len(found) == 1 else ()

    def starts(self, kernel: str) -> tuple[tuple[int, str], ...]:
        """The pointers that a kernel sets to constant places of dynamic shared memory, as tilelang writes them: offsets and names."""
        found = re.search(
            rf"__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\([^;{{}}]*?\)\s*\{{(.*?)(?:\b__global__|\Z)", self._text, re.DOTALL
        )
        return tuple((int(offset), name) for name, offset in _START.findall(found[1])) if found and kernel else ()

    def _declared(self, statement: str) -> Iterator[DeclaredVariable]:
        """The variables of one statement: `float a[4], b` has two. Empty if it is not a declaration of plain variables."""
        type_ = ""
        for part in _split(_QUALIFIER.sub(" ", statement)):
            found = _DECLARATOR.search(part.strip())
            if found is None:
                return
            words = part.strip()[: found.start()]
            type_ = " ".join(words.replace("*", " ").split()) or type_
            dims = re.findall(r"\[([^\]]*)\]", found["dims"])
            stages = bool(dims and _STAGES.search(dims[0]))
            yield DeclaredVariable(found["name"], POINTER if "*" in words else type_, tuple(self._value(each) for each in dims), stages)

    def _value(self, text: str) -> int:
        """An expression's value; 0 if it is not an integer constant."""
        for _ in range(_NESTED):
            if len(text) > _LONGEST:
                return 0
            text = re.sub(r"[A-Za-z_]\w*", lambda name: f"({self._constants[name[0]]})" if name[0] in self._constants else name[0], text)
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
    """Split at commas outside brackets."""
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


def _enumerated(text: str) -> Iterator[tuple[str, str]]:
    """Enumerators and their values."""
    for body in _ENUM.findall(text):
        value = "0"
        for part in filter(str.strip, body.split(",")):
            name, _, given = part.partition("=")
            value = given.strip() or value
            yield name.strip(), value
            value = f"({value}) + 1"


def _single(found: Iterable[tuple[str, str]], hidden: set[str]) -> dict[str, str]:
    """Names with one value. Names with two values, and template parameters, are left out."""
    values: dict[str, str] = {}
    for name, value in found:
        values[name] = value if values.get(name, value) == value else ""
    return {name: value for name, value in values.items() if value and name not in hidden}
