"""Verified fixes as a change of the CUDA source: those that add instructions before or after whole lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from consan.reports.model import FixStep, VerifiedFix

_CALL: Final = re.compile(r"__sync(threads|warp)\(\)$")


def statement(step: FixStep) -> str:
    """The instruction as a statement of CUDA C++."""
    if _CALL.match(step.spelling):
        return f"{step.spelling};"
    return f'asm volatile("{step.instruction};" ::: "memory");'


def is_patch(fix: VerifiedFix, file: str) -> bool:
    """Whether a fix can be written as new lines of a file. A wait that needs an mbarrier and its parity cannot."""
    return all(
        step.action == "add" and not step.at and step.line and step.file == file and "parity" not in step.instruction for step in fix.steps
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


def diff(name: str, source: str, fixes: Iterable[VerifiedFix]) -> str:
    """The change as a unified diff; empty if there is none."""
    after = patched(source, fixes).splitlines(keepends=True)
    return "".join(difflib.unified_diff(source.splitlines(keepends=True), after, f"a/{name}", f"b/{name}"))
