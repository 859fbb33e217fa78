"""Tokenizer and cursor: the slow, exact way to read PTX.

Defines the tokens (ISA "Source Format", "Identifiers", "Constants") and words the errors. Common statements do not need it:
`statements.py` matches them with one regular expression each. Not handled: the C preprocessor beyond line markers, and text outside
ASCII in identifiers (ptxas rejects both).
"""

from __future__ import annotations

import re

from consan.instrument.ptx.errors import PtxSyntaxError
from consan.instrument.ptx.source import TRIVIA, Source

IDENTIFIER = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+|_)"
#: Part of an opcode or a directive: ".f32", ".shared::cta", ".mbarrier::complete_tx::bytes", ".collector::a:fill".
MODIFIER = r"\.[A-Za-z0-9_]\w*(?:(?:::\w+)+(?::\w+)?)?"
INTEGER = r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)U?"
FLOAT = r"(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)"

_TOKEN = re.compile(
    rf"""{TRIVIA}(?:
      (?P<float>{FLOAT})(?![\w$])
    | (?P<integer>{INTEGER})(?![\w$])
    | (?P<identifier>{IDENTIFIER})
    | (?P<modifier>{MODIFIER})
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<punctuation><<|>>|<=|>=|==|!=|&&|\|\||@@|[-+*/%~!&|^<>=?:,;@()\[\]{{}}])
    | (?P<end>\0*\Z)
    )""",
    re.ASCII | re.VERBOSE,
)


class Cursor:
    """One token of look-ahead over a source. Every method that takes a token also moves past it."""

    __slots__ = ("end", "kind", "last_end", "source", "start", "token")

    def __init__(self, source: Source, offset: int) -> None:
        self.source = source
        self.kind = ""
        self.token = ""
        self.start = self.end = self.last_end = offset
        self._scan(offset)

    def _scan(self, offset: int) -> None:
        match = _TOKEN.match(self.source.text, offset)
        if match is None:
            raise self._bad_character(self.source.skip(offset))
        kind = match.lastgroup or "end"
        if match.group(kind) == "/" and self.source.text.startswith("/*", match.start(kind)):
            raise self._bad_character(match.start(kind))
        self.kind = kind
        self.token = match.group(kind)
        self.start, self.end = match.span(kind)

    def _bad_character(self, offset: int) -> PtxSyntaxError:
        text = self.source.text
        for opening, message in (('"', "string without its closing quote"), ("/*", "comment without its closing */")):
            if text.startswith(opening, offset):
                return self.source.error(offset, message)
        word = re.compile(r"\w+", re.ASCII).match(text, offset)
        if word:
            return self.source.error(offset, f"{word.group()!r} is neither a number nor a name")
        return self.source.error(offset, f"unexpected character {text[offset : offset + 1]!r}")

    def error(self, expected: str) -> PtxSyntaxError:
        """An error at the current token."""
        return self.source.error(self.start, f"expected {expected}, found {self.describe()}")

    def describe(self) -> str:
        """The current token, as an error message shows it."""
        return "the end of the text" if self.kind == "end" else repr(self.token[:40])

    def seek(self, offset: int) -> None:
        """Continue at an offset."""
        self.last_end = offset
        self._scan(offset)

    def take(self) -> str:
        """The current token, whatever it is."""
        token = self.token
        self.last_end = self.end
        self._scan(self.end)
        return token

    def accept(self, token: str) -> bool:
        """Move past this punctuation or keyword if it is next; returns whether it was."""
        if self.token != token or self.kind == "string":
            return False
        self.take()
        return True

    def expect(self, token: str, context: str = "") -> int:
        """Move past this token and return the offset after it; any other token is an error."""
        if self.token != token or self.kind == "string":
            raise self.error(repr(token) + (f" {context}" if context else ""))
        self.take()
        return self.last_end

    def take_kind(self, kind: str, expected: str) -> str:
        """A token of a kind; anything else is an error."""
        if self.kind != kind:
            raise self.error(expected)
        return self.take()

    def take_identifier(self, expected: str = "a name") -> str:
        """A name."""
        return self.take_kind("identifier", expected)
