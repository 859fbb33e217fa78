"""Bodies of functions (ISA "Statements", "Instruction Statements").

One regular expression per statement reads real PTX. It accepts a strict subset of the grammar, so that operands are only parsed on
demand. The exact reader (`read_exactly`) handles texts that it does not match, and finds the statement or the error. Both must agree; a
test compares them.
"""

from __future__ import annotations

import re

from consan.instrument.ptx.declarations import LABELLED, LINKAGE, SPACES, match_variable, parse_linkage, parse_strings, parse_variable
from consan.instrument.ptx.locations import CallSites, LocDirective
from consan.instrument.ptx.operand_parser import parse_operands
from consan.instrument.ptx.source import ANNOTATION, TRIVIA_BETWEEN, Source
from consan.instrument.ptx.tokens import Cursor
from consan.instrument.ptx.tree import Block, Directive, Instruction, Label

# The pieces of the fast path. Each repetition is delimited by a character that its body cannot match, so backtracking is not
# exponential. WARP_SZ looks like a name but is a constant, so the exact reader handles it.
_PLAIN = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"
_NAME = rf"(?:(?!WARP_SZ){_PLAIN}(?:\.[a-z]\w*)?|_)"
_INTEGER = r"(?:0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,18}|0)U?"
_NUMBER = rf"(?:0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}}|-?{_INTEGER})"
_WORD = rf"(?:{_NAME}|{_NUMBER})"
_LIST = rf"{_WORD}(?:\s*,\s*{_WORD})*"
_VECTOR = rf"\{{\s*{_LIST}\s*\}}"
_ADDRESS = rf"\[\s*(?:(?!_\W){_NAME}|{_INTEGER})\s*(?:\+\s*-?{_INTEGER}\s*)?(?:,\s*{_VECTOR}\s*)?\]"
_OPERAND = rf"(?:{_NAME}(?:\s*\|\s*{_NAME})?|{_ADDRESS}|{_NUMBER}|{_VECTOR}|!(?!_\W){_NAME})"
#: A digit may start a part (".2d"), but ".5" and ".5e3" are numbers.
_OPCODE = r"[a-z]\w*(?:\.(?:[A-Za-z_]|\d+[A-DF-Za-df-z_])\w*(?:(?:::\w+)+(?::\w+)?)?)*(?![\w.:$])"
_GUARD = rf"(?:(@!?{_PLAIN})\s+)?"
_ARGUMENTS = rf"\(\s*(?:{_LIST}\s*)?\)"
_INDEX = r"(\d{1,9})(?![\w$.])"

_STATEMENT = re.compile(
    rf"""(?:
      {_GUARD}({_OPCODE})(?:\s*{_OPERAND}(?:\s*,\s*{_OPERAND})*)?\s*;()
    | \.loc\s+{_INDEX}\s+{_INDEX}\s+{_INDEX}
        (?:\s*,\s*function_name\s+(\.?{_PLAIN})(?:\s*\+\s*{_INDEX})?\s*,\s*inlined_at\s+{_INDEX}\s+{_INDEX}\s+{_INDEX})?(?!{TRIVIA_BETWEEN},)()
    | ({_PLAIN})\s*:(?!:)()
    | {_GUARD}(call(?:\.uni)?)\b\s*(?:{_ARGUMENTS}\s*,\s*)?{_NAME}(?:\s*,\s*{_ARGUMENTS})?(?:\s*,\s*{_NAME})?\s*;()
    | \{{()
    | \}}()
    ){TRIVIA_BETWEEN}""",
    re.ASCII | re.VERBOSE,
)
_ANNOTATION = re.compile(ANNOTATION, re.ASCII)
_INSTRUCTION, _LOC, _LABEL, _CALL, _OPEN = 3, 12, 14, 17, 18
_DEPTH = 1000


class _Body:
    """One function's body while it is read: the innermost open block, and the `.loc` directives so far."""

    def __init__(self, source: Source, start: int) -> None:
        self.source = source
        self.outermost = self.block = Block(source, start, None)
        self.depth = 0
        self.loc: LocDirective | None = None
        self.call_sites = CallSites()

    def read(self) -> int:
        """Read all statements. Returns the offset after the closing brace and the trivia behind it."""
        source, text, match = self.source, self.source.text, _STATEMENT.match
        offset = source.skip_between(self.block.start + 1)
        while True:
            found = match(text, offset)
            if found is None:
                offset = self.read_exactly(offset)
                continue
            begin, offset, kind = offset, found.end(), found.lastindex
            if kind == _INSTRUCTION:
                guard, opcode = found.group(1, 2)
                block = self.block
                block.statements.append(Instruction(source, begin, found.end(3), guard, opcode, found.end(2), block, self.loc))
            elif kind == _LOC:
                self.add_loc(begin, found.end(_LOC), found.group(4, 5, 6, 7, 8, 9, 10, 11))
            elif self.add_other(begin, found):
                return offset

    def add_loc(self, start: int, end: int, fields: tuple[str | None, ...]) -> None:
        """Add a `.loc` and make it the current one. In inline assembly LLVM counts its lines on: the statement's line holds."""
        statements = self.block.statements
        before = self.loc if statements and statements[-1] is self.loc else None
        fields = self.call_sites.complete(fields)
        site = self.call_sites.of(fields, before) if fields[5] is not None else None
        directive = LocDirective(self.source, start, end, fields, site)
        self.loc = self.loc if self.loc is not None and self.source.in_assembly(start) else directive
        self.call_sites.add(fields, directive)
        statements.append(directive)

    def add_other(self, start: int, found: re.Match[str]) -> bool:
        """Add a label, call or brace. Returns true at the closing brace of the body."""
        kind = found.lastindex
        if kind == _LABEL:
            self.block.statements.append(Label(self.source, start, found.end(_LABEL), found.group(13)))
        elif kind == _CALL:
            guard, opcode = found.group(15, 16)
            self.add_instruction(start, found.end(_CALL), guard, opcode, found.end(16))
        elif kind == _OPEN:
            self.open_block(start)
        else:
            return self.close_block(start + 1)
        return False

    def add_instruction(self, start: int, end: int, guard: str | None, opcode: str, arguments: int) -> None:
        """Add an instruction to the innermost block."""
        self.block.statements.append(Instruction(self.source, start, end, guard, opcode, arguments, self.block, self.loc))

    def open_block(self, start: int) -> None:
        """Open a nested block, which becomes the innermost one."""
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.source.error(start, "blocks nested too deeply")
        outer, self.block = self.block, Block(self.source, start, self.block)
        outer.statements.append(self.block)

    def close_block(self, end: int) -> bool:
        """Close the innermost block. Returns true if it was the body itself."""
        self.depth -= 1
        self.block.end = end
        if self.block.parent is None:
            return True
        self.block = self.block.parent
        return False

    def read_exactly(self, offset: int) -> int:
        """Read one statement that the fast path does not match, or raise its error. Returns the start of the next statement."""
        annotation = _ANNOTATION.match(self.source.text, offset)
        if annotation is not None:
            self.add_instruction(offset, annotation.end(), None, annotation[1], annotation.end(1))
            return self.source.skip_between(annotation.end())
        variable = match_variable(self.source, offset)
        if variable is not None:
            self.block.statements.append(variable)
            return self.source.skip_between(variable.end)
        cursor = Cursor(self.source, offset)
        if cursor.kind == "modifier":
            self.read_directive(cursor)
        elif cursor.kind == "end":
            line = self.source.position(self.block.start)[0]
            raise self.source.error(cursor.start, f"the text ends inside the block opened at line {line}")
        else:
            self.read_instruction(cursor)
        return self.source.skip_between(cursor.last_end)

    def read_directive(self, cursor: Cursor) -> None:
        """Read a declaration or another directive."""
        start, name = cursor.start, cursor.token
        if name in SPACES or name in LINKAGE:
            linkage = parse_linkage(cursor)
            self.block.statements.append(parse_variable(cursor, start, linkage))
        elif name == ".loc":
            fields = parse_loc(cursor)
            self.add_loc(start, cursor.last_end, fields)
        elif name in _DIRECTIVES:
            cursor.take()
            _DIRECTIVES[name](cursor)
            if cursor.token != ";":
                raise cursor.error(f"';' after {name}")
            cursor.last_end = cursor.end
            self.block.statements.append(Directive(self.source, start, cursor.end, name, self.preceding_label(name)))
        else:
            raise self.source.error(start, f"{name!r} is not a directive that can stand in a body")

    def preceding_label(self, name: str) -> str | None:
        """The label that names a list of targets or a prototype."""
        last = self.block.statements[-1] if self.block.statements else None
        return last.name if name in LABELLED and isinstance(last, Label) else None

    def read_instruction(self, cursor: Cursor) -> None:
        """Read an instruction or a label."""
        start = cursor.start
        guard = _read_guard(cursor)
        if cursor.kind != "identifier":
            raise cursor.error("an instruction, a label, a directive or '}'")
        name, name_start = cursor.take(), cursor.last_end
        if cursor.token == ":" and guard is None:
            cursor.last_end = cursor.end
            self.block.statements.append(Label(self.source, start, cursor.end, name))
            return
        if not ("a" <= name[0] <= "z") or "$" in name:
            raise self.source.error(name_start - len(name), f"{name[:40]!r} is not an instruction")
        while cursor.kind == "modifier":
            name += cursor.take()
        arguments = cursor.last_end
        is_call = name.partition(".")[0] == "call"
        # Registers and symbols are distinguished on use, when all declarations are known. Only the shape matters here.
        _, end = parse_operands(self.source, arguments, is_call, _shape_only)
        cursor.last_end = end
        self.add_instruction(start, end, guard, name, arguments)


def _shape_only(name: str) -> bool:
    return False


def _read_guard(cursor: Cursor) -> str | None:
    if not cursor.accept("@"):
        return None
    negation = "!" if cursor.accept("!") else ""
    return "@" + negation + cursor.take_identifier("a predicate register")


def parse_loc(cursor: Cursor) -> tuple[str | None, ...]:
    """A `.loc` at the current token, in the form of the fast path's groups."""
    cursor.take()
    fields: list[str | None] = [_read_index(cursor) for _ in range(3)]
    if not cursor.accept(","):
        return (*fields, *[None] * 5)
    cursor.expect("function_name", "after ',' in .loc")
    label = cursor.take() if cursor.kind == "modifier" else cursor.take_identifier("a label of .debug_str")
    offset = _read_index(cursor) if cursor.accept("+") else None
    cursor.expect(",", "before inlined_at")
    cursor.expect("inlined_at", "in .loc")
    return (*fields, label, offset, *[_read_index(cursor) for _ in range(3)])


def _read_index(cursor: Cursor) -> str:
    if cursor.kind != "integer" or not cursor.token.isdecimal() or len(cursor.token) > 9:
        raise cursor.error("a file index, line or column")
    return cursor.take()


_DIRECTIVES = {".pragma": parse_strings, **LABELLED}


def parse_body(source: Source, start: int) -> tuple[Block, int]:
    """The block whose brace opens at an offset, and the offset after the block and the trivia behind it."""
    body = _Body(source, start)
    end = body.read()
    return body.outermost, end
