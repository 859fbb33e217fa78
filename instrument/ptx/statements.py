"""Bodies of functions (ISA "Statements", "Instruction Statements").

Decides what the statements of a body are. Real PTX is read by one regular expression per statement: it accepts a strict
subset of the grammar, so that operands need no second look until somebody asks for them. Whatever it does not match goes to
the exact reader (`read_statement`), which finds either the statement or the error. Both must agree; a test compares them.
"""

from __future__ import annotations

import re

from consan.instrument.ptx.declarations import LABELLED, LINKAGE, SPACES, parse_linkage, parse_strings, parse_variable
from consan.instrument.ptx.errors import PtxSyntaxError
from consan.instrument.ptx.locations import LocDirective
from consan.instrument.ptx.operand_parser import parse_operands
from consan.instrument.ptx.source import TRIVIA, Source
from consan.instrument.ptx.tokens import Cursor
from consan.instrument.ptx.tree import Block, Directive, Instruction, Label, Statement

# The pieces of the fast path. Each repetition is delimited by a character that its body cannot take: no exponential
# backtracking. WARP_SZ looks like a name and is a constant: it is left to the exact reader.
_PLAIN = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"
_NAME = rf"(?:(?!WARP_SZ){_PLAIN}(?:\.[a-z]\w*)?|_)"
_INTEGER = r"(?:0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,18}|0)U?"
_NUMBER = rf"(?:0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}}|-?{_INTEGER})"
_WORD = rf"(?:{_NAME}|{_NUMBER})"
_LIST = rf"{_WORD}(?:\s*,\s*{_WORD})*"
_VECTOR = rf"\{{\s*{_LIST}\s*\}}"
_ADDRESS = rf"\[\s*(?:(?!_\W){_NAME}|{_INTEGER})\s*(?:\+\s*-?{_INTEGER}\s*)?(?:,\s*{_VECTOR}\s*)?\]"
_OPERAND = rf"(?:{_NAME}(?:\s*\|\s*{_NAME})?|{_ADDRESS}|{_NUMBER}|{_VECTOR}|!(?!_\W){_NAME})"
_OPCODE = r"[a-z]\w*(?:\.\w+(?:::\w+)*)*(?![\w.:$])"
_GUARD = rf"(?:(@!?{_PLAIN})\s+)?"
_ARGUMENTS = rf"\(\s*(?:{_LIST}\s*)?\)"
_INDEX = r"(\d{1,9})(?![\w$.])"

_STATEMENT = re.compile(
    rf"""(?:
      {_GUARD}({_OPCODE})(?:\s*{_OPERAND}(?:\s*,\s*{_OPERAND})*)?\s*;()
    | \.loc\s+{_INDEX}\s+{_INDEX}\s+{_INDEX}
        (?:\s*,\s*function_name\s+(\.?{_PLAIN})(?:\s*\+\s*{_INDEX})?\s*,\s*inlined_at\s+{_INDEX}\s+{_INDEX}\s+{_INDEX})?(?!\s*,)()
    | ({_PLAIN})\s*:(?!:)()
    | {_GUARD}(call(?:\.uni)?)\b\s*(?:{_ARGUMENTS}\s*,\s*)?{_NAME}(?:\s*,\s*{_ARGUMENTS})?(?:\s*,\s*{_NAME})?\s*;()
    | \{{()
    | \}}()
    ){TRIVIA}""",
    re.ASCII | re.VERBOSE,
)
_INSTRUCTION, _LOC, _LABEL, _CALL, _OPEN, _CLOSE = 3, 12, 14, 17, 18, 19
_DEPTH = 1000

#: Directives of a body that end with a semicolon and stand alone.
_STRINGS = frozenset((".pragma",))


class _Scope:
    """What the statements of one function share: its `.loc` directives and the blocks that are open."""

    def __init__(self, source: Source, block: Block) -> None:
        self.source = source
        self.block = block
        self.depth = 0
        self.loc: LocDirective | None = None
        self.locs: dict[tuple[str | None, ...], LocDirective] = {}

    def located(self, start: int, end: int, fields: tuple[str | None, ...]) -> LocDirective:
        """A `.loc`, from now on the one in force."""
        site = self.locs.get(fields[5:]) if fields[5] is not None else None
        self.loc = directive = LocDirective(self.source, start, end, fields, site)
        self.locs[fields[:3]] = directive
        return directive

    def opened(self, start: int) -> Block:
        """A nested block, from now on the innermost one."""
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.source.error(start, "blocks nested too deeply")
        outer, self.block = self.block, Block(self.source, start, self.block)
        outer.statements.append(self.block)
        return self.block

    def closed(self, end: int) -> Block | None:
        """The innermost block ends; the one around it, or None at the end of the body."""
        self.depth -= 1
        block = self.block
        block.end = end
        if block.parent is not None:
            self.block = block.parent
        return block.parent


def parse_body(source: Source, start: int) -> tuple[Block, int]:
    """The block whose brace opens at an offset, and the offset after it and its trivia."""
    body = Block(source, start, None)
    scope = _Scope(source, body)
    text, match, offset = source.text, _STATEMENT.match, source.skip(start + 1)
    block, add, loc = body, body.statements.append, None
    while True:
        found = match(text, offset)
        if found is None:
            node, offset = read_statement(source, offset, block)
            add(node)
            continue
        begin, offset, kind = offset, found.end(), found.lastindex
        if kind == _INSTRUCTION:
            guard, opcode = found.group(1, 2)
            add(Instruction(source, begin, found.end(3), guard, opcode, found.end(2), block, loc))
        elif kind == _LOC:
            loc = scope.located(begin, found.end(_LOC), found.group(4, 5, 6, 7, 8, 9, 10, 11))
            add(loc)
        elif kind == _LABEL:
            add(Label(source, begin, found.end(_LABEL), found.group(13)))
            node, offset = _after_label(source, offset, found.group(13))
            if node is not None:
                add(node)
        elif kind == _CALL:
            guard, opcode = found.group(15, 16)
            add(Instruction(source, begin, found.end(_CALL), guard, opcode, found.end(16), block, loc))
        elif kind == _OPEN:
            block = scope.opened(begin)
            add = block.statements.append
        else:
            outer = scope.closed(found.end(_CLOSE))
            if outer is None:
                return body, offset
            block, add = outer, outer.statements.append
