"""Verified fixes as a change of the CUDA source: whole lines that are new, moved or left out, and another number in a line.

A step is written only where its line of the source holds that statement and no other. Whether the text that comes out is right, a check of
it tells: an optimiser may have merged lines, or a macro may stand for several.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from consan.reports.model import FixStep, VerifiedFix

LineEdit = tuple[int, int, tuple[str, ...]]  # lines from the first, counted from 0, to before the last; and what comes in their place

_OPERAND: Final = re.compile(r" at | of |\[")  # that only the PTX names
_QUIET: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')  # where braces are no code
_CALL: Final = re.compile(r"__(syncthreads|syncwarp|threadfence)\(\)$")
_COMMENT: Final = re.compile(r"/\*.*?\*/|//.*$")
_LONE: Final = re.compile(r"(?!(?:return|break|continue|goto|else|for|while|do|case)\b)[^;{}]*;")
_ENDS: Final = re.compile(r"[;{}:]$|^#|^$")
_NUMBER: Final = re.compile(r"(?<![\w.%])\d+(?![\w.])")
# The number that a step wants, of that which is there.
_WANTED: Final[tuple[tuple[re.Pattern[str], Callable[[int, str], int]], ...]] = (
    (re.compile(r"wait_group\S* (\d+)$"), lambda old, new: int(new)),
    (re.compile(r"with a count of (\d+)$"), lambda old, new: int(new)),
    (re.compile(r"with a count that differs by ([+-]\d+)$"), lambda old, more: old + int(more)),
    (re.compile(r"with the other (parity)$"), lambda old, _: 1 - old),
)


def patched(source: str, fixes: Iterable[VerifiedFix], file: str) -> str:
    """The text of a file with fixes, equal steps once; empty if one of them cannot be written so."""
    lines = source.splitlines()
    edits: dict[LineEdit, None] = {}
    for step in dict.fromkeys(step for fix in fixes for step in fix.steps):
        found = _edits(lines, step) if os.path.realpath(step.file) == os.path.realpath(file) else ()
        if not found:
            return ""
        edits |= dict.fromkeys(found)
    for start, end, new in sorted(edits, key=lambda edit: edit[:2])[::-1]:
        lines[start:end] = new
    return "\n".join(lines) + "\n"


def between(source: str, accesses: Iterable[int]) -> list[int]:
    """The lines behind which synchronisation of two lines may belong: between them, also outside of nested blocks; then around them."""
    own = sorted(accesses)
    if not own or not own[0]:
        return []
    depths = list(itertools.accumulate(line.count("{") - line.count("}") for line in _QUIET.sub("", source).splitlines()))
    first, last = own[0], min(own[-1], len(depths))
    inside = sorted(range(first, last), key=lambda line: depths[line - 1])[:1]
    return list(dict.fromkeys((*([first] if first < last else []), *inside, *([last - 1] if first < last else []), first - 1, last)))


def _edits(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    is_there = 1 <= step.line <= len(lines) and step.own_line <= len(lines)
    return _FORMS[step.action](lines, step) if is_there else ()


def _added(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    return () if _OPERAND.search(step.instruction) else _inserted(lines, step, statement(step))


def statement(step: FixStep) -> str:
    """The instruction as a statement of CUDA C++."""
    if _CALL.match(step.spelling):
        return f"{step.spelling};"
    return f'asm volatile("{step.instruction};" ::: "memory");'


def _inserted(lines: list[str], step: FixStep, text: str) -> tuple[LineEdit, ...]:
    """A new line, with the indentation of its neighbour; none within a statement."""
    line, at = lines[step.line - 1], step.line - (step.where == "before")
    indent = line[: len(line) - len(line.lstrip())]
    return ((at, at, (indent + text,)),) if _begins(lines, at) else ()


def _moved(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    gone = _left_out(lines, step)
    new = _inserted(lines, step, lines[step.own_line - 1].strip()) if gone else ()
    return (*gone, *new) if new else ()


def _left_out(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """Without a line that is one statement, with its condition, and not the body of one above it."""
    own = step.own_line - 1
    is_lone = own >= 0 and _LONE.fullmatch(_COMMENT.sub("", lines[own]).strip()) is not None and _begins(lines, own)
    return ((own, own + 1, ()),) if is_lone and step.instruction != "condition" else ()


def _altered(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """Another number, in a line that has one."""
    line = lines[step.own_line - 1] if step.own_line else ""
    there = _NUMBER.findall(_COMMENT.sub("", line))
    wanted = [(found[1], new) for pattern, new in _WANTED if (found := pattern.search(step.instruction))]
    if len(there) != 1 or not wanted:
        return ()
    number = wanted[0][1](int(there[0]), wanted[0][0])
    return ((step.own_line - 1, step.own_line, (_NUMBER.sub(str(number), line, count=1),)),) if number >= 0 else ()


def _begins(lines: list[str], at: int) -> bool:
    """Whether a statement may begin with a line: none goes on from above."""
    above = (code for line in reversed(lines[:at]) if (code := _COMMENT.sub("", line).strip()))
    return _ENDS.search(next(above, "")) is not None


_FORMS: Final[Mapping[str, Callable[[list[str], FixStep], tuple[LineEdit, ...]]]] = {
    "add": _added,
    "move": _moved,
    "alter": _altered,
    "leave-out": _left_out,
}
