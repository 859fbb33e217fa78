"""Verified fixes as a change of the PTX, and differences of texts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from consan.reports.model import VerifiedFix


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
