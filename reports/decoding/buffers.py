"""Names for the buffers of Triton and Gluon, which lay out all shared memory of a kernel as one array.

PTX does not tell the buffers apart, but an access that writes is from a known source line: the conflict's bytes are "the buffer
written at matmul.py:31 (tl.load)". Nothing is guessed: without a writing access that has a line, the name does not change.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from consan.reports.model import Access, Finding
from consan.reports.source.names import WRITTEN_AT
from consan.reports.source.sources import read_lines
from consan.reports.source.variables import DYNAMIC
from consan.reports.words.frameworks import BY_TRITON
from consan.reports.words.wording import place

_NAME: Final = re.compile(r"[A-Za-z_][\w.]*$")
_CALLED: Final = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(")
_MIRRORED: Final = str.maketrans("()", ")(")
_LONGEST: Final = 32  # characters of a call that is shown with its arguments


def named_by_line(finding: Finding, framework: str) -> Finding:
    """The finding with its buffer named by the lines that write it."""
    buffer = finding.buffer
    writers = [access for access in finding.pair if access.line and _writes(access)]
    if framework not in BY_TRITON or buffer is None or not writers or DYNAMIC not in buffer.name:
        return finding
    lines = " and ".join(dict.fromkeys(map(_line, writers)))
    return replace(finding, buffer=replace(buffer, name=buffer.name.replace(DYNAMIC, f"{WRITTEN_AT}{lines}")))


def _writes(access: Access) -> bool:
    """Whether it writes shared memory: a store, an atomic, or a copy into shared memory."""
    if access.asynchronous is not None:
        return access.asynchronous.kind in ("cp.async", "bulk load", "st.async")
    return access.role not in ("read", "barrier")


def _line(access: Access) -> str:
    lines = read_lines(access.file)
    call = enclosing_call(lines[access.line - 1], access.column) if access.line <= len(lines) else ""
    return place(access) + (f" ({call})" if call else "")


def enclosing_call(line: str, column: int) -> str:
    """`tl.load(a)` of `tl.dot(tl.load(a), b)` for the column of `a`, counted from 0 as Triton does; empty if no call is open there.

    Triton 3.9 gives the column where the call begins, counted from 1. A call that is long, or continues on the next line, is given by
    its name only.
    """
    called = _CALLED.match(line, max(column - 1, 0))
    begin = _opening(line[:column]) if called is None else called.end() - 1
    name = _NAME.search(line[: max(begin, 0)])
    if name is None:
        return ""
    end = len(line) - 1 - _opening(line[:begin:-1].translate(_MIRRORED))
    return line[name.start() : end + 1] if begin < end < len(line) and end - name.start() < _LONGEST else name[0]


def _opening(text: str) -> int:
    """The position of the last parenthesis that is still open at the end of a text; -1 if there is none."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] == ")") - (text[position] == "(")
        if depth < 0:
            return position
    return -1
