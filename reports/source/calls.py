"""Calls in a line of CUDA source, found by a part of their name: functions and macros, without a parser.

Not handled: calls that go on in the next line, and names with template arguments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from consan.dataclass import dataclass

COMMENT: Final = re.compile(r"/\*.*?\*/|//.*$")


@dataclass(frozen=True)
class CalledText:
    """A call, its arguments, and where they are in the line."""

    name: str
    arguments: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def text(self, first: str, last: str) -> str:
        """The call with another first and last argument."""
        return f"{self.name}({', '.join((first, *self.arguments[1:-1], last))})"


def calls_of(line: str, kind: str) -> Iterator[CalledText]:
    """The calls whose names have a part that matches a pattern, outside of comments."""
    code = COMMENT.sub(lambda found: " " * len(found[0]), line)
    for found in re.finditer(rf"\b(\w*(?:{kind})\w*)\s*\(", code, re.IGNORECASE):
        if places := tuple(_arguments(code, found.end())):
            yield CalledText(found[1], tuple(line[start:end] for start, end in places), places)


def _arguments(code: str, start: int) -> Iterator[tuple[int, int]]:
    """The places of the arguments from behind a parenthesis; none if it is not closed."""
    depth, commas = 1, [start - 1]
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if (depth == 1 and code[at] == ",") or depth == 0:
            commas.append(at)
        if depth == 0:
            break
    for begin, end in itertools.pairwise(commas) if depth == 0 else ():
        part = code[begin + 1 : end]
        yield begin + 1 + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
