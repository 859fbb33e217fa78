"""Verified fixes as a change of the CUDA source: whole lines that are new, moved or left out, and another number or word in a line.

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
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_CALL: Final = re.compile(r"__(syncthreads|syncwarp|threadfence|threadfence_block)\(\)$")
_COMMENT: Final = re.compile(r"/\*.*?\*/|//.*$")
_LONE: Final = re.compile(r"(?!(?:return|break|continue|goto|else|for|while|do|case)\b)[^;{}]*;")
_ENDS: Final = re.compile(r"[;{}:]$|^#|^$")
_NUMBER: Final = re.compile(r"(?<![\w.%])\d+(?![\w.])")
# The number that a step wants, of that which is there.
_WANTED: Final[tuple[tuple[re.Pattern[str], Callable[[int, re.Match[str]], int]], ...]] = (
    (re.compile(r"wait_group\S* (\d+)$"), lambda _, new: int(new[1])),
    (re.compile(r"with a count of (\d+)$"), lambda _, new: int(new[1])),
    (re.compile(r"with a count that differs by ([+-]\d+)$"), lambda old, more: old + int(more[1])),
    (re.compile(r"with the other parity$"), lambda old, _: 1 - old),
    (re.compile(r"with (\d+) bytes$"), lambda _, new: int(new[1])),
    (re.compile(r"with (\d+) bytes (more|less)$"), lambda old, step: old + int(step[1]) * (1 if step[2] == "more" else -1)),
    (re.compile(r"with (\d+) in place of (\d+)$"), lambda old, step: int(step[1]) if old == int(step[2]) else -1),
)
_ASM: Final = r"(?<=[\w.])"  # behind another part of an opcode
# A pattern of the step, what the line has for it, and what comes in its place (`\1` of the step, `\\1` of the line).
_WORDS: Final = (
    (r"^(?:membar|fence\.\w+)\.cta\b.*\(\.gpu\)$", r"__threadfence_block\(\)", "__threadfence()"),
    (r"with the other parity$", r"\s*\^ 1\b", ""),
    (r"\(\.gpu\)$", r"\bthread_scope_block\b", "thread_scope_device"),
    (r"\(\.gpu\)$", r"\b(atomic[A-Z]\w*)_block\b", r"\\1"),
    (r"\(\.(gpu|cluster)\)$", _ASM + r"\.cta\b", r".\1"),
    (r"^[a-z]+\.(acquire|release)\.", r"\bmemory_order_relaxed\b", r"memory_order_\1"),
    (r"^[a-z]+\.(acquire|release)\.", _ASM + r"\.relaxed\b", r".\1"),
    (r"^mbarrier\.arrive(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ".release"),
    (r"^mbarrier\.\w+_wait(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ".acquire"),
    (r"^barrier\.cluster\.arrive(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ""),
    (r"^mbarrier\.arrive(?!.*\.noComplete)", _ASM + r"\.noComplete\b", ""),
    (r"^cp\.async\.mbarrier\.arrive\.noinc", r"(cp\.async\.mbarrier\.arrive)(?!\.noinc)", r"\\1.noinc"),
    (r"^cp\.async\.mbarrier\.arrive(?!\.noinc)", r"(cp\.async\.mbarrier\.arrive)\.noinc", r"\\1"),
    (r"^bar\.warp\.sync (0x[0-9a-f]+)$", r"__syncwarp\([^()]*\)", r"__syncwarp(\1)"),
    (r"^(bar(?:rier)?\.\w+(?:\.\w+)? \d+, \d+)$", r"\bbar(?:rier)?\.\w+(?:\.\w+)? \d+, \d+", r"\1"),
    (r"^red\.\S*add\.\S* in place of", r"(?<![^\s;{}()])([A-Za-z_][\w.]*(?:\[[^;=]*\])?)\s*\+=\s*([^;]+);", r"atomicAdd(&\\1, \\2);"),
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
    is_lone = own >= 0 and _LONE.fullmatch(_STRING.sub('""', _COMMENT.sub("", lines[own])).strip()) is not None and _begins(lines, own)
    return ((own, own + 1, ()),) if is_lone and step.instruction != "condition" else ()


def _altered(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """Another number in a line that has one, or another word that says the scope, the order, the mask or the operation."""
    line = lines[step.own_line - 1] if step.own_line else ""
    text = _with_number(line, step.instruction) or _with_word(line, step.instruction)
    return ((step.own_line - 1, step.own_line, (text,)),) if text else ()


def _with_number(line: str, instruction: str) -> str:
    there = _NUMBER.findall(_COMMENT.sub("", line))
    wanted = next((new(int(there[0]), found) for pattern, new in _WANTED if len(there) == 1 and (found := pattern.search(instruction))), -1)
    return _NUMBER.sub(str(wanted), line, count=1) if wanted >= 0 else ""


def _with_word(line: str, instruction: str) -> str:
    """The line with the first word of the table that it has once, outside of comments; empty if it has none."""
    code = _COMMENT.sub("", line)
    for wanted, there, word in _WORDS:
        found = re.search(wanted, instruction)
        if found and len(re.findall(there, code)) == 1:
            old = re.search(there, line)
            return line[: old.start()] + old.expand(found.expand(word)) + line[old.end() :] if old else ""
    return ""


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
