"""The lines of a Python file from which a program has made the text of a kernel: a format, `%`, `replace`, or parts that it has joined.

A line of the text that stands in the file holds the lines around it: between two such lines the file may have more lines than the text (a
condition that gave nothing), never fewer. Then the text gets blank lines there, and each of its lines has the number of the file's.

Not handled: parts in another order than in the file, several lines in place of one, and macros of several lines that have such a place:
there is no answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

_WORDS: Final = re.compile(r"\w")
_FIELD: Final = re.compile(r"\{[^{}]*\}|%\(\w+\)[sdr]|%[sdr]")
_OPENED: Final = re.compile(r".*(\"\"\"|'''|\"|')")  # what stands before a literal
_CLOSED: Final = re.compile(r"(\"\"\"|'''|\"|').*")
_LEAST: Final = 3  # letters and digits of a line that is like no other
_CLEAR: Final = 12  # those of a line into which a part was put
_REACH: Final = 8  # lines around one that is known, among which a part of a line is searched
_SHARE: Final = 0.5  # of these lines, those that stand in the file


def found(code: str, text: str) -> list[int]:
    """The line of the file for each line of a source, from 1; empty if the source was not made from the file's literals."""
    source = [_plain(each) for each in code.split("\n")]
    strong = [each for each in source if not _is_free(each)]
    if not _may_hold(text, strong):
        return []
    lines = _lines(text)
    anchors = _with_parts(source, lines, _same(source, lines) if len(strong) > 1 else [])
    if len(anchors) < max(1.0, _SHARE * len(strong)):
        return []
    placed = _placed(source, anchors) or []
    far = [after - before > 1 for before, after in pairwise(placed)]
    if any(wide and line.endswith("\\") for wide, line in zip(far, source, strict=False)):
        return []
    return [each + 1 for each in placed]


def blank(lines: Sequence[int]) -> tuple[int, ...]:
    """The lines that are missing before each one; empty if none is."""
    missing = (0, *(after - before - 1 for before, after in pairwise(lines)))
    return missing if any(missing) else ()


def _may_hold(text: str, strong: Sequence[str]) -> bool:
    """Whether to look closer at a file: a program has many."""
    if len(strong) == 1:
        return max(re.findall(r"\w+", strong[0]), key=len) in text
    return any(each in text or each.replace("{", "{{").replace("}", "}}") in text for each in strong)


def _plain(line: str) -> str:
    return line.strip().replace("{{", "{").replace("}}", "}").replace("%%", "%")


@functools.lru_cache(maxsize=64)
def _lines(text: str) -> list[str]:
    return [_plain(each) for each in text.split("\n")]


def _weight(line: str) -> int:
    return len(_WORDS.findall(line))


def _is_free(ours: str) -> bool:
    """A line without an access: its place does not matter."""
    return _weight(ours) < _LEAST or ours.startswith("#")


def _same(source: Sequence[str], lines: Sequence[str]) -> list[tuple[int, int]]:
    """Lines of the source and of the file that are the same, in one order, of those that are like no other."""
    blocks = SequenceMatcher(None, source, lines, autojunk=False).get_matching_blocks()
    same = ((block.a + i, block.b + i) for block in blocks for i in range(block.size))
    return [(ours, theirs) for ours, theirs in same if not _is_free(source[ours])]


def _with_parts(source: Sequence[str], lines: Sequence[str], same: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """These, and lines between, above and below them, if the file has a part of each or a form with fields."""
    anchors = list(same)
    if same:
        end = same[0][1]
        for ours in reversed(range(same[0][0])):
            theirs = _nearest(source[ours], lines, range(end - 1, max(end - 1 - _REACH, -1), -1))
            if theirs is not None:
                anchors.insert(0, (ours, theirs))
                end = theirs
    for (ours, theirs), (next_ours, next_theirs) in pairwise([*(same or [(-1, -1)]), (len(source), len(lines))]):
        begin = theirs + 1
        for each in range(ours + 1, next_ours):
            at = _nearest(source[each], lines, range(begin, min(begin + _REACH, next_theirs) if same else next_theirs))
            if at is not None:
                anchors.append((each, at))
                begin = at + 1
    return sorted(anchors)


def _nearest(ours: str, lines: Sequence[str], among: range) -> int | None:
    return None if _is_free(ours) else next((each for each in among if _made_from(ours, lines[each])), None)


def _made_from(ours: str, line: str) -> bool:
    """Whether a line of the source is one of the file, a part of it, or one with fields."""
    if _weight(ours) >= _LEAST and ours in line:
        return True
    begin, *rest = _FIELD.split(line)
    if not rest:
        return False
    parts = [_OPENED.sub("", begin), *rest[:-1], _CLOSED.sub("", rest[-1])]
    return _weight("".join(parts)) >= _CLEAR and re.fullmatch(".*?".join(map(re.escape, parts)), ours) is not None


def _placed(source: Sequence[str], anchors: Sequence[tuple[int, int]]) -> list[int] | None:
    """The index of a line of the file for each line of the source, rising; None if there is none.

    Lines that are not known stand behind those before them. The file has as many between two that are known, or more.
    """
    (first, begin), (last, end) = anchors[0], anchors[-1]
    ends = [*range(first), *range(last + 1, len(source))]
    if begin < first or not all(_is_free(source[each]) for each in ends):
        return None
    placed = list(range(begin - first, begin))
    for (ours, theirs), (next_ours, next_theirs) in pairwise(anchors):
        if next_theirs - theirs < next_ours - ours:
            return None
        placed += range(theirs, theirs + next_ours - ours)
    return [*placed, *range(end, end + len(source) - last)]
