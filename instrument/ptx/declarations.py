"""Declarations: variables, parameters, functions and their directives (ISA "Variables", "Kernel and Function Directives",
"Performance-Tuning Directives", "Cluster Dimension Directives", "Linking Directives").

Finds the end of a declaration and what it declares. Initialisers are checked for shape and kept as text. Not checked: types, sizes,
and whether a directive is allowed at its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from consan.instrument.ptx.constants import UNARY, parse_constant, parse_integer
from consan.instrument.ptx.declared import Declared, Param, VarName, is_type, type_bytes
from consan.instrument.ptx.source import Source
from consan.instrument.ptx.tokens import Cursor
from consan.instrument.ptx.tree import Function, Variable

LINKAGE = frozenset((".visible", ".weak", ".extern", ".common"))
SPACES = frozenset((".reg", ".sreg", ".const", ".global", ".local", ".param", ".shared", ".tex"))
_NESTING = 32
_MAX_RANGE = 1 << 24

#: Directives between a function's header and its body, with their number of integer arguments.
_NUMBERS = {
    ".maxntid": 3, ".reqntid": 3, ".maxnreg": 1, ".minnctapersm": 1, ".maxnctapersm": 1, ".reqnctapercluster": 3,
    ".maxclusterrank": 1, ".abi_preserve": 1, ".abi_preserve_control": 1,
    ".noreturn": 0, ".explicitcluster": 0, ".blocksareclusters": 0,
}  # fmt: skip

_SIZE = r"(?:[1-9]\d{0,6}|0)"
_NUMBER = r"-?(?:[1-9]\d{0,18}|0[xX][0-9a-fA-F]{1,16}|0)"
#: One name, with at most numbers as initialiser: nearly every declaration that compilers write. A strict subset of the grammar.
_COMMON = re.compile(
    rf"""(?:\.(visible|weak|extern|common)\s*)?\.(reg|param|shared|global|const|local)\s*
    (?:\.align\s+({_SIZE})\s*)?(?:\.v([248])\s*)?\.(pred|[bus](?:8|16|32|64)|b128|b?f16(?:x2)?|f32|f64)\s+
    ([A-Za-z][\w$]*|[_$%][\w$]+)(?:<({_SIZE})>|((?:\[{_SIZE}?\])*)(?:\s*=\s*({_NUMBER}|\{{{_NUMBER}(?:,\s*{_NUMBER})*\}}))?)\s*;""",
    re.ASCII | re.VERBOSE,
)


def match_variable(source: Source, start: int) -> Variable | None:
    """The declaration that starts at an offset, if it has the common form."""
    match = _COMMON.match(source.text, start)
    if match is None:
        return None
    linkage, space, align, vector, type_, name, count, dims, initializer = match.groups()
    sizes = tuple(int(size or 0) for size in dims[1:-1].split("][")) if dims else ()
    items = initializer.count(",") + 1 if initializer and initializer[0] == "{" else 0
    declared = Declared(space, type_, int(align) if align else None, int(vector or 1))
    declared_name = VarName(name, sizes, int(count) if count else None, initializer, items)
    return Variable(source, start, match.end(), linkage or "", declared, [declared_name])


def parse_linkage(cursor: Cursor) -> str:
    """The linkage in front of a declaration: "visible", "weak", "extern", "common" or ""."""
    linkage = ""
    while cursor.token in LINKAGE and cursor.kind == "modifier":
        linkage = cursor.take()[1:]
    return linkage


def parse_variable(cursor: Cursor, start: int, linkage: str) -> Variable:
    """A declaration from its state space through its semicolon."""
    declared = _parse_type(cursor, bank_allowed=True)
    names = [_parse_name(cursor)]
    while cursor.accept(","):
        names.append(_parse_name(cursor))
    end = _semicolon(cursor)
    return Variable(cursor.source, start, end, linkage, declared, names)


def _semicolon(cursor: Cursor) -> int:
    """The offset after a semicolon, without reading the token that follows."""
    if cursor.token != ";":
        raise cursor.error("',' or ';' in a declaration")
    cursor.last_end = cursor.end
    return cursor.end


def _parse_type(cursor: Cursor, *, bank_allowed: bool = False) -> Declared:
    space = cursor.take_kind("modifier", "a state space")
    if space not in SPACES:
        raise cursor.source.error(cursor.last_end - len(space), f"{space!r} is not a state space")
    if bank_allowed and space == ".const" and cursor.accept("["):
        parse_integer(cursor, "a bank number")
        cursor.expect("]")
    declared = Declared(space[1:])
    while cursor.kind == "modifier":
        _parse_modifier(cursor, declared)
    if not declared.type:
        raise cursor.error("a type")
    return declared


def _parse_modifier(cursor: Cursor, declared: Declared) -> None:
    offset, word = cursor.start, cursor.take()
    if declared.type and declared.pointer is None and word != ".ptr":
        raise cursor.source.error(offset, f"{word!r} after the type {'.' + declared.type!r}")
    if word == ".align":
        alignment = parse_integer(cursor, "an alignment")
        if declared.pointer is None:  # after `.ptr` it is the alignment of the pointed-to memory
            declared.align = alignment
    elif word == ".attribute":
        declared.attributes = _parse_attributes(cursor)
    elif word in (".v2", ".v4", ".v8"):
        declared.vector = int(word[2:])
    elif word == ".ptr":
        declared.pointer = ""
    elif declared.pointer is not None and word in SPACES:
        declared.pointer = word[1:]
    elif is_type(word[1:]):
        declared.type = word[1:]
    else:
        raise cursor.source.error(offset, f"{word!r} is not a type")


def _parse_attributes(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(", "after .attribute")
    attributes = [_parse_attribute(cursor)]
    while cursor.accept(","):
        attributes.append(_parse_attribute(cursor))
    cursor.expect(")", "after attributes")
    return tuple(attributes)


def _parse_attribute(cursor: Cursor) -> str:
    start = cursor.start
    cursor.take_kind("modifier", "an attribute")
    if cursor.accept("("):
        parse_integer(cursor)
        while cursor.accept(","):
            parse_integer(cursor)
        cursor.expect(")", "after an attribute")
    return cursor.source.text[start + 1 : cursor.last_end]


def _parse_dims(cursor: Cursor) -> tuple[int, ...]:
    dims: list[int] = []
    while cursor.accept("["):
        dims.append(0 if cursor.token == "]" else parse_integer(cursor, "an array size"))
        if cursor.token != "]":
            raise cursor.error("']' after an array size")
        cursor.take()
    return tuple(dims)


def _parse_name(cursor: Cursor) -> VarName:
    name = cursor.take_identifier("the name of a variable")
    if cursor.accept("<"):
        return VarName(name, count=_parse_count(cursor))
    dims = _parse_dims(cursor)
    if not cursor.accept("="):
        return VarName(name, dims)
    start = cursor.start
    items = _parse_initializer(cursor, 0)
    return VarName(name, dims, None, cursor.source.text[start : cursor.last_end], items)


def _parse_count(cursor: Cursor) -> int:
    offset = cursor.start
    count = parse_integer(cursor, "how many names the range stands for")
    if count > _MAX_RANGE:
        raise cursor.source.error(offset, f"a range of {count} names")
    if cursor.token != ">":
        raise cursor.error("'>' after the size of a range")
    cursor.take()
    return count


def _parse_initializer(cursor: Cursor, depth: int) -> int:
    """Skip an initialiser; returns the number of elements in its outermost braces."""
    if cursor.token != "{":
        _parse_initial_value(cursor, depth)
        return 0
    if depth > _NESTING:
        raise cursor.source.error(cursor.start, "initialiser nested too deeply")
    cursor.take()
    items = 0
    while True:
        _parse_initializer(cursor, depth + 1)
        items += 1
        if not cursor.accept(","):
            break
    if cursor.token != "}":
        raise cursor.error("',' or '}' in an initialiser")
    cursor.take()
    return items


def _parse_initial_value(cursor: Cursor, depth: int) -> None:
    """A constant, or an address: `x`, `x+4`, `generic(x)+4`, `0xff00(generic(x)+4)`; also `key = value` of opaque types."""
    if depth > _NESTING:
        raise cursor.source.error(cursor.start, "initialiser nested too deeply")
    if cursor.kind == "identifier" and cursor.token != "WARP_SZ":
        name = cursor.take()
        if name == "generic" and cursor.accept("("):
            _parse_initial_value(cursor, depth + 1)
            cursor.expect(")", "after generic(")
        elif cursor.accept("="):
            return _parse_initial_value(cursor, depth + 1)
        if cursor.token in ("+", "-"):
            parse_constant(cursor)
        return None
    if cursor.kind not in ("integer", "float") and cursor.token not in UNARY | {"WARP_SZ"}:
        raise cursor.error("a value or '{'")
    parse_constant(cursor)
    if cursor.accept("("):
        _parse_initial_value(cursor, depth + 1)
        cursor.expect(")", "after a masked address")
    return None


def _parse_param(cursor: Cursor) -> Param:
    declared = _parse_type(cursor)
    name = cursor.take_identifier("the name of a parameter")
    dims = _parse_dims(cursor)
    size = None
    if dims:
        size = type_bytes(declared.type) * declared.vector * VarName(name, dims).elements
    return Param(declared.space, declared.type, name, size, declared.align, declared.vector, declared.pointer)


def parse_params(cursor: Cursor) -> list[Param]:
    """A parenthesised parameter list."""
    cursor.expect("(")
    params: list[Param] = []
    if cursor.accept(")"):
        return params
    params.append(_parse_param(cursor))
    while cursor.accept(","):
        params.append(_parse_param(cursor))
    if cursor.token != ")":
        raise cursor.error("',' or ')' after a parameter")
    cursor.take()
    return params


def parse_function(cursor: Cursor, start: int, linkage: str) -> Function:
    """A function: a definition up to its body, whose opening brace is then the current token, or a whole declaration."""
    function = Function(cursor.source, start, linkage, cursor.take()[1:])
    if cursor.accept(".attribute"):
        function.attributes = _parse_attributes(cursor)
    if cursor.token == "(":
        function.returns = parse_params(cursor)
    function.name = cursor.take_identifier("the name of a function")
    if cursor.token == "(":
        function.params = parse_params(cursor)
    while cursor.kind == "modifier" and (cursor.token in _NUMBERS or cursor.token == ".pragma"):
        _parse_function_directive(cursor, function)
    if cursor.token != "{":
        function.end = cursor.last_end
        if cursor.token == ";":
            function.end = cursor.last_end = cursor.end
    return function


def _parse_function_directive(cursor: Cursor, function: Function) -> None:
    name = cursor.take()
    key = name[1:]
    if name == ".pragma":
        text = parse_strings(cursor)
        earlier = function.directives.get(key)
        function.directives[key] = f"{earlier}, {text}" if earlier else text
        cursor.expect(";", "after .pragma")
        return
    numbers: list[int] = []
    while len(numbers) < _NUMBERS[name] and (not numbers or cursor.accept(",")):
        numbers.append(parse_integer(cursor, f"a number for {name}"))
    function.directives[key] = tuple(numbers)


def parse_strings(cursor: Cursor) -> str:
    """A list of strings, as written."""
    start = cursor.start
    cursor.take_kind("string", "a string")
    while cursor.accept(","):
        cursor.take_kind("string", "a string")
    return cursor.source.text[start : cursor.last_end]


def parse_prototype(cursor: Cursor) -> None:
    """The rest of a `.callprototype`, up to its semicolon."""
    if cursor.token == "(":
        parse_params(cursor)
    cursor.take_identifier("'_'")
    if cursor.token == "(":
        parse_params(cursor)
    scratch = Function(cursor.source, cursor.start, "", "func")
    while cursor.kind == "modifier" and cursor.token in _NUMBERS:
        _parse_function_directive(cursor, scratch)


def parse_name_list(cursor: Cursor) -> list[str]:
    """Comma-separated names, with ranges `L<3>` expanded."""
    names: list[str] = []
    while True:
        name = cursor.take_identifier("a label or function")
        if cursor.accept("<"):
            names.extend(f"{name}{number}" for number in range(_parse_count(cursor)))
        else:
            names.append(name)
        if not cursor.accept(","):
            return names


def parse_targets(source: Source, start: int) -> tuple[str, ...]:
    """The names of a `.branchtargets` or `.calltargets` at an offset."""
    cursor = Cursor(source, start)
    cursor.take()
    return tuple(parse_name_list(cursor))


#: Texts other than a statement that may follow a label and a colon.
LABELLED: dict[str, Callable[[Cursor], object]] = {
    ".callprototype": parse_prototype,
    ".branchtargets": parse_name_list,
    ".calltargets": parse_name_list,
}
