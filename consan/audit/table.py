"""The results of an audit as a table, and as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Final

from consan._errors import ExitCode
from consan.audit import rows
from consan.audit.confirming import CONFIRMED, STATES
from consan.audit.rows import FileResult, KernelRow, RowFinding
from consan.reports.counts import plural
from consan.reports.model import CLEAN, VIOLATIONS

_HEADS: Final = ("file", "kernel", "launch", "verdict", "findings", "published shape", "time")
_BAD: Final = {VIOLATIONS, rows.WRONG}
_MOST: Final = 48  # characters of a kernel's name


def status(results: Sequence[FileResult], *, strict: bool = False, allow_incomplete: bool = False) -> int:
    """The exit status: 0 only where all is clean. A kernel that was not judged is incomplete."""
    verdicts = {row.verdict for result in results for row in result.rows}
    warned = any(each.severity == "warning" for result in results for row in result.rows for each in row.findings)
    if verdicts & _BAD or (strict and warned):
        return int(ExitCode.VIOLATIONS)
    return 0 if verdicts <= {CLEAN} or allow_incomplete else int(ExitCode.INCOMPLETE)


def as_json(results: Sequence[FileResult], code: int) -> str:
    """All results."""
    files = [result.as_dict() for result in results]
    whole = {"schema": rows.SCHEMA, "consan": metadata.version("consan"), "verdict": verdict(results), "exit": code, "files": files}
    return json.dumps(whole, indent=2) + "\n"


def verdict(results: Sequence[FileResult]) -> str:
    """The verdict of all files."""
    return rows.gravest(result.verdict for result in results)


def as_text(results: Sequence[FileResult]) -> str:
    """The table, the findings below it, and a line of counts."""
    cells = [_HEADS, *(_cells(result, row) for result in results for row in result.rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join((*table, "", *_details(results), _counts(results))) + "\n"


def _cells(result: FileResult, row: KernelRow) -> tuple[str, ...]:
    launch = row.launch + (f" (of {row.launches})" if row.launches > 1 else "") + (" guessed" if row.guessed else "")
    kernel = row.kernel if len(row.kernel) <= _MOST else row.kernel[: _MOST - 3] + "..."
    found = ", ".join(dict.fromkeys(f"{each.kind}:{_lines(each)}" for each in row.findings))
    seconds = f"{row.seconds:.1f} s" if row.launches else "-"
    return _short(result.file), kernel or "-", launch or "-", row.verdict, found or "-", _confirmed(row), seconds


def _confirmed(row: KernelRow) -> str:
    """Whether the published sizes show an error of the row."""
    found = {each.confirmed for each in row.findings}
    return next((each for each in STATES if each in found), "-")


def _lines(place: RowFinding) -> str:
    return "/".join(map(str, place.lines)) or "?"


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _details(results: Sequence[FileResult]) -> Iterator[str]:
    for result in results:
        for row in result.rows:
            for each in row.findings:
                place = f"{_short(each.file or result.file)}:{each.line}"
                yield f"{place}: {each.severity}: {row.kernel}: {each.message} [{each.kind}]{_unless_confirmed(each)}"
            yield from (
                f"{_short(result.file)}: note: {row.kernel}: {text}" for text in (row.answers.texts if row.answers is not None else ())
            )
            if row.note:
                yield f"{_short(result.file)}: {row.verdict}{f': {row.kernel}' if row.kernel else ''}: {row.note}"
        if result.error is not None:
            yield f"{_short(result.file)}: largest difference from the reference: {result.error:.3g}"
        yield from (f"{_short(result.file)}: note: {note}" for note in result.notes)


def _unless_confirmed(finding: RowFinding) -> str:
    return f" ({finding.confirmed})" if finding.confirmed not in ("", CONFIRMED) else ""


def _counts(results: Sequence[FileResult]) -> str:
    count = Counter(row.verdict for result in results for row in result.rows)
    said = ", ".join(f"{count[each]} {each}" for each in rows.GRAVITY if count[each])
    return f"verdict: {verdict(results)}; {plural(len(results), 'file')}, kernels: {said or 'none'}"
