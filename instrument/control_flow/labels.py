"""Names of labels and tables of branch targets: each block of a function is a scope, and an inner one sees those of the outer ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from consan.instrument.ptx import Block

_T = TypeVar("_T")
Named = tuple[int, str]
"""The start of the block that a name belongs to, and the name."""


def visible(scope: Block | None, name: str, table: Mapping[Named, _T]) -> _T | None:
    """The meaning of a name in a scope; None if nothing has it."""
    while scope is not None:
        if (scope.start, name) in table:
            return table[scope.start, name]
        scope = scope.parent
    return None
