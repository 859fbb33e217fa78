"""Verified fixes as a change of the CUDA source, where they add instructions before or after whole lines; and as a change of the PTX."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from typing import Final

from consan.reports.model import FixStep, VerifiedFix

_OPERAND: Final = re.compile(r" at | of |\[")  # that only the PTX names
_CALL: Final = re.compile(r"__(syncthreads|syncwarp|threadfence)\(\)$")


def statement(step: FixStep) -> str:
    """The instruction as a statement of CUDA C++."""
    if _CALL.match(step.spelling):
        return f"{step.spelling};"
    return f'asm volatile("{step.instruction};" ::: "memory");'


def is_patch(fix: VerifiedFix, file: str) -> bool:
    """Whether a fix can be written as new lines of a file. Steps at an mbarrier cannot; a check of the new text tells whether others do."""
    path = os.path.realpath(file)
    return all(
        step.action == "add" and step.line and os.path.realpath(step.file) == path and not _OPERAND.search(step.instruction)
        for step in fix.steps
    )


def patched(source: str, fixes: Iterable[VerifiedFix]) -> str:
    """The source with new lines. Fixes that are equal count once."""
    lines = source.splitlines()
    wanted = dict.fromkeys(step for fix in fixes for step in fix.steps)
    for step in sorted(wanted, key=lambda step: -step.line):  # from the end, so that numbers stay true; sorting keeps the order of steps
        if not 1 <= step.line <= len(lines):
            continue
        indent = lines[step.line - 1][: len(lines[step.line - 1]) - len(lines[step.line - 1].lstrip())]
        same = [each for each in wanted if (each.line, each.where) == (step.line, step.where)]
        at = step.line - (step.where == "before")
        if step is same[0]:
            lines[at:at] = [indent + statement(each) for each in same]
    return "\n".join(lines) + "\n"


def fixed(ptx: str, fixes: Iterable[VerifiedFix]) -> str:
    """The PTX with fixes."""
    return edited(ptx, (edit for fix in fixes for edit in fix.edits))


def edited(ptx: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """A text with edits, each once: ranges, and what comes in their place."""
    pieces, at = [], 0
    for start, end, text in sorted(dict.fromkeys(edits), key=lambda edit: edit[:2]):
        if start < at:
            continue  # an instruction that another edit has replaced
        pieces += [ptx[at:start], text]
        at = end
    return "".join((*pieces, ptx[at:]))


def diff(name: str, before: str, after: str) -> str:
    """A unified diff; empty if there is none."""
    return "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"))
