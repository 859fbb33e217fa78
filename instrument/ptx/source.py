"""The text being read, and positions in it.

Defines how offsets map to lines and columns (1-based, a column counts characters), and what is trivia: white space, comments (ISA
"Comments") and the line markers `# 1 "file"` of a preprocessor. A trailing NUL, which NVRTC's C API includes in the text, counts as
white space at the end of a module.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from consan.instrument.ptx.errors import PtxSyntaxError

#: Unambiguous on purpose: every repetition starts with a character that the one before it cannot match, and a comment must extend to
#: its end. So backtracking is never exponential and never reads the text of a comment as code.
TRIVIA = r"\s*(?:(?:(?://|\#[ \t]*\d)[^\n]*(?=\n|\Z)|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)\s*)*"
_ORDERS = r"(?:release|acquire)(?=[ \t]*\[[ \t]*%[\w$]+[ \t]*(?:\+[ \t]*\d+[ \t]*)?\])"
#: A comment of consan.h, up to the end of its line: to the assembler nothing, to consan an instruction of a function.
ANNOTATION = rf"//[ \t]*(consan_(?:{_ORDERS}|(?:ignore_(?:begin|end)|put_(?:fence|begin|end))(?=[ \t]*;)))[^\n]*"
#: Trivia between the statements of a function.
TRIVIA_BETWEEN = TRIVIA.replace("//", f"(?!{ANNOTATION.replace('(consan', '(?:consan')})//", 1)

_TRIVIA = re.compile(TRIVIA, re.ASCII)
_TRIVIA_BETWEEN = re.compile(TRIVIA_BETWEEN, re.ASCII)
_NEWLINE = re.compile("\n")
_BEGIN = "// begin inline asm"
_ASSEMBLY = re.compile(r"// (?:begin|end) inline asm")


class Span(NamedTuple):
    """Half-open range of offsets into the module's text."""

    start: int
    end: int


class Source:
    """A module's text and its line table. `aliases`: names of functions, by other names of them (ISA ".alias")."""

    __slots__ = ("_assembly", "_newlines", "aliases", "name", "text")

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.aliases: dict[str, str] = {}
        self._newlines: list[int] | None = None
        self._assembly: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both 1-based."""
        if self._newlines is None:
            self._newlines = [match.start() for match in _NEWLINE.finditer(self.text)]
        before = bisect_right(self._newlines, offset - 1)
        line_start = self._newlines[before - 1] + 1 if before else 0
        return before + 1, offset - line_start + 1

    def in_assembly(self, offset: int) -> bool:
        """Whether an offset lies in inline assembly, between the comments that compilers put around it."""
        if self._assembly is None:
            self._assembly = [match.start() for match in _ASSEMBLY.finditer(self.text)]
        before = bisect_right(self._assembly, offset)
        return before > 0 and self.text.startswith(_BEGIN, self._assembly[before - 1])

    def error(self, offset: int, message: str) -> PtxSyntaxError:
        """An error at an offset, ready to raise."""
        line, column = self.position(offset)
        return PtxSyntaxError(line, column, message, self.name)

    def skip(self, offset: int) -> int:
        """First offset at or after `offset` that is not trivia."""
        match = _TRIVIA.match(self.text, offset)
        return match.end() if match else offset

    def skip_between(self, offset: int) -> int:
        """The same between statements, where an annotation is none."""
        match = _TRIVIA_BETWEEN.match(self.text, offset)
        return match.end() if match else offset

    def is_trivia(self, start: int, end: int) -> bool:
        """Whether only trivia lies between two offsets."""
        return _TRIVIA.fullmatch(self.text[start:end].rstrip("\0")) is not None
