"""Source lines for reports: found, stored with the run, and cut to excerpts.

`embed` stores the lines around every access in the report, when the run ends. Renderers show these lines and read no file: a stored run may
come from anywhere, and could name any file of this machine. `within` reads the files of one folder, for a user who names it.

Not handled: a file that changes between the run and `embed` (which follows at once), and encodings other than UTF-8
(undecodable bytes are replaced, so columns after them may be off).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan.dataclass import dataclass
from consan.reports.model import Access, Finding, Report
from consan.reports.source.places import steps, waiting_places

CONTEXT: Final = 2  # lines shown before and after the line of an access
TAB: Final = 4
_LARGEST: Final = 32 << 20  # bytes; a larger file is not source code

Reader = Callable[[str], list[str]]
"""Gives the lines of a source by the name that `.file` gives it; none if there is no such text."""


@dataclass(frozen=True)
class Excerpt:
    """Lines to print: (number, text, whether the access is here). `caret` is a 0-based column of that line."""

    lines: tuple[tuple[int, str, bool], ...]
    caret: int
    width: int


def embed(report: Report, read: Reader | None = None) -> Report:
    """The report with the source lines around its accesses and waits. `read` gives their files' lines; default: from disk."""
    wanted: dict[str, set[int]] = {}
    for access in (access for finding in report.findings for access in (*finding.accesses, *waiting_places(finding))):
        for file, line in steps(access):
            wanted.setdefault(file, set()).update(range(max(1, line - CONTEXT), line + CONTEXT + 1))
    found = {file: _pick((read or read_lines)(file), numbers) for file, numbers in wanted.items()}
    return replace(report, sources={**report.sources, **{file: lines for file, lines in found.items() if lines}})


def of_texts(texts: Mapping[str, str]) -> Reader:
    """Reads from these texts only."""
    return lambda file: texts.get(file, "").splitlines()


def of_lines(sources: Mapping[str, Mapping[int, str]]) -> Reader:
    """Reads the lines that a report has stored; those between them are empty."""

    def read(file: str) -> list[str]:
        lines = sources.get(file, {})
        return [lines.get(number, "") for number in range(1, max(lines, default=0) + 1)]

    return read


def within(folder: Path) -> Reader:
    """Reads the files of a folder only: the file of the same path below it, else the one that shares the longest end of the path."""
    root = folder.resolve()

    def read(file: str) -> list[str]:
        parts = [part for part in file.replace("\\", "/").split("/") if part not in ("", ".")]
        for start in range(len(parts)):
            path = Path(os.path.realpath(root.joinpath(*parts[start:])))
            if path.is_relative_to(root) and path.is_file():
                return read_lines(str(path))
        return []

    return read


def read_lines(file: str) -> list[str]:
    """The lines of a source on disk; empty if there is no such text file."""
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def _pick(lines: list[str], numbers: set[int]) -> dict[int, str]:
    return {number: lines[number - 1] for number in sorted(numbers) if number <= len(lines)}


class Sources:
    """Looks up the report's lines for a renderer."""

    def __init__(self, report: Report) -> None:
        self._stored = report.sources

    def line(self, file: str, number: int) -> str | None:
        """The text of one line, or None."""
        return self._stored.get(file, {}).get(number)

    def excerpt(self, access: Access) -> Excerpt | None:
        """The lines around an access, or its PTX line if there is no source. None if there is neither."""
        text = self.line(access.file, access.line) if access.file and access.line else None
        if text is None:
            return _ptx_excerpt(access)
        numbers = range(access.line - CONTEXT, access.line + CONTEXT + 1)
        around = [(number, self.line(access.file, number)) for number in numbers]
        lines = tuple((number, line.expandtabs(TAB).rstrip(), number == access.line) for number, line in around if line is not None)
        caret, width = _span(text, access.column)
        return Excerpt(_trim(lines), caret, width)

    def waits(self, finding: Finding) -> list[Access]:
        """The places at which threads wait, of a finding without accesses, if there is something to show."""
        return [access for access in waiting_places(finding) if self.excerpt(access)]


def _ptx_excerpt(access: Access) -> Excerpt | None:
    if not access.ptx:
        return None
    text = access.ptx.strip()
    return Excerpt(((access.ptx_line, text, True),), 0, len(text))


def _trim(lines: tuple[tuple[int, str, bool], ...]) -> tuple[tuple[int, str, bool], ...]:
    """Drop blank lines at the edges."""
    shown = [index for index, (_, text, hit) in enumerate(lines) if text or hit]
    return lines[shown[0] : shown[-1] + 1]


def _span(text: str, column: int) -> tuple[int, int]:
    """The span to underline, since compilers give only a start. A column inside the line means the word there. The start of the
    line (all that NVRTC gives for a statement) or no column means the whole statement.
    """
    first = len(text) - len(text.lstrip())
    start = column - 1 if first < column <= len(text) else first
    if start > first:
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
    else:
        end = len(text.split("//")[0].rstrip())
    shown = len(text[:start].expandtabs(TAB))
    return shown, max(1, len(text[:end].expandtabs(TAB)) - shown)
