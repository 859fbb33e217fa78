"""Modules (ISA "PTX Module Directives", "Debugging Directives", "Linking Directives").

Reads module scope. A module begins with `.version` and `.target`. Debug sections are skipped and kept raw. Not checked: whether names
are defined, and the contents of the deprecated `@@DWARF` lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from consan.instrument.ptx.constants import parse_integer
from consan.instrument.ptx.declarations import SPACES, match_variable, parse_function, parse_linkage, parse_strings, parse_variable
from consan.instrument.ptx.source import Source
from consan.instrument.ptx.statements import parse_body
from consan.instrument.ptx.tokens import Cursor
from consan.instrument.ptx.tree import Directive, Item, Module, Section

_SECTION = re.compile(r"\.section\s+([.\w$]+)\s*\{", re.ASCII)
_SECTION_BODY = re.compile(r"(?:[^{}/]+|//[^\n]*(?=\n|\Z)|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*", re.ASCII)
_LINE = re.compile(r"[^\n]*")


def parse(text: str, name: str = "<ptx>") -> Module:
    """Read a PTX module. Raises `PtxSyntaxError` with line and column if the text is not PTX."""
    return _Reader(Source(text, name)).read()


class _Reader:
    """Recursive descent over module scope."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = Module(source)
        self.cursor = Cursor(source, 0)

    def read(self) -> Module:
        self.header()
        while self.cursor.kind != "end":
            self.module.items.append(self.item())
        return self.module

    def header(self) -> None:
        """`.version` and `.target` must come first."""
        for name, read in ((".version", self.version), (".target", self.target)):
            if self.cursor.token != name:
                raise self.cursor.error(f"{name} at the beginning of a PTX module")
            self.module.items.append(self.directive(read))

    def item(self) -> Item:
        cursor = self.cursor
        start, word = cursor.start, cursor.token
        variable = match_variable(self.source, start)
        if variable is not None:
            cursor.seek(variable.end)
            return variable
        if cursor.kind == "modifier" and word in _DIRECTIVES:
            return self.directive(_DIRECTIVES[word].__get__(self))
        if word == ".section":
            return self.section()
        if word == "@@":
            return self.dwarf_line()
        linkage = parse_linkage(cursor)
        if cursor.token in (".entry", ".func"):
            return self.function(start, linkage)
        if cursor.token in SPACES:
            variable = parse_variable(cursor, start, linkage)
            cursor.seek(variable.end)
            return variable
        raise cursor.error("a function, a variable or a directive of a module")

    def directive(self, read: Callable[[], None]) -> Directive:
        cursor = self.cursor
        start, name = cursor.start, cursor.take()
        read()
        return Directive(self.source, start, cursor.last_end, name)

    def function(self, start: int, linkage: str) -> Item:
        cursor = self.cursor
        function = parse_function(cursor, start, linkage)
        if cursor.token == "{":
            function.body, end = parse_body(self.source, cursor.start)
            function.body.owner = function
            function.end = function.body.end
            cursor.seek(end)
        elif cursor.token == ";":
            cursor.seek(function.end)
        return function

    def section(self) -> Section:
        start = self.cursor.start
        opening = _SECTION.match(self.source.text, start)
        if opening is None:
            self.cursor.take()
            raise self.cursor.error("the name of a section and '{'")
        body = _SECTION_BODY.match(self.source.text, opening.end())
        end = body.end() if body else opening.end()
        if self.source.text[end : end + 1] != "}":
            line = self.source.position(start)[0]
            raise self.source.error(end, f"expected the '}}' of the section that starts at line {line}")
        self.cursor.seek(end + 1)
        return Section(self.source, start, end + 1, opening.group(1))

    def dwarf_line(self) -> Directive:
        start = self.cursor.start
        end = _LINE.match(self.source.text, start).end()  # type: ignore[union-attr]
        self.cursor.seek(end)
        return Directive(self.source, start, end, "@@DWARF")

    def semicolon(self) -> None:
        self.cursor.expect(";", "after a directive")

    def version(self) -> None:
        version = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", self.cursor.token)
        if version is None:
            raise self.cursor.error("a version such as 9.0")
        self.cursor.take()
        self.module.version = (int(version[1]), int(version[2]))

    def target(self) -> None:
        targets = [self.cursor.take_identifier("a target such as sm_90a")]
        while self.cursor.accept(","):
            targets.append(self.cursor.take_identifier("a target or platform option"))
        self.module.targets = self.module.targets or tuple(targets)

    def address_size(self) -> None:
        if self.cursor.token not in ("32", "64"):
            raise self.cursor.error("32 or 64")
        self.module.address_size = int(self.cursor.take())

    def file(self) -> None:
        cursor = self.cursor
        index = parse_integer(cursor, "a file index")
        path = cursor.take_kind("string", "the path of a file")
        self.module.files[index] = _unquote(path)
        while cursor.accept(","):
            parse_integer(cursor, "a time stamp or size")

    def loc(self) -> None:
        raise self.source.error(self.cursor.last_end - 4, ".loc outside a function")

    def pragma(self) -> None:
        parse_strings(self.cursor)
        self.semicolon()

    def alias(self) -> None:
        alias = self.cursor.take_identifier("the alias")
        self.cursor.expect(",", "after the alias")
        self.source.aliases[alias] = self.cursor.take_identifier("the function behind the alias")
        self.semicolon()


_ESCAPES = re.compile(r"\\(.)", re.DOTALL)


def _unquote(text: str) -> str:
    return _ESCAPES.sub(lambda match: match[1] if match[1] in '"\\' else match[0], text[1:-1])


_DIRECTIVES: dict[str, Callable[[_Reader], None]] = {
    ".target": _Reader.target,
    ".address_size": _Reader.address_size,
    ".file": _Reader.file,
    ".pragma": _Reader.pragma,
    ".alias": _Reader.alias,
}
