"""Helpers that write the rows of the table: blocks of forms in the manual's notation, one form per line, operands after the opcode.

Columns that all forms of a block share (section, family, status, touches, modifier classes) are given once per block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consan.instrument.isa.classes import words
from consan.instrument.isa.model import WEAK, Row, Semantics, Touch

__all__ = ["arithmetic", "rows", "touches"]


def touches(text: str) -> tuple[Touch, ...]:
    """Touches from lines such as ``read src-addr global size; write dst-addr ss 16 async``."""
    return tuple(Touch(*line.split()) for line in text.split(";") if line.strip())


def rows(section: str, family: str, block: str, /, *, name: str = "", touch: str = "", **columns: Any) -> list[Row]:
    """One row for each line of `block`. `name` is needed if the name of the instruction contains dots."""
    classes = {key: words(line) for key, line in columns.pop("classes", {}).items()}
    return [_row(section, family, line.strip(), name, touches(touch), classes, columns) for line in block.strip().splitlines()]


def arithmetic(section: str, block: str, /, **columns: Any) -> list[Row]:
    """Rows of instructions that only compute in registers."""
    return rows(section, "arithmetic", block, **columns)


def _row(
    section: str,
    family: str,
    line: str,
    name: str,
    touched: tuple[Touch, ...],
    classes: Mapping[str, tuple[str, ...]],
    columns: dict[str, Any],
) -> Row:
    form, _, operands = line.partition(" ")
    first = form.partition(".")[0].partition("{")[0]
    columns = {"action": name.rpartition(".")[2] if "." in name else "", **columns}
    made = columns.get("makes", ())
    columns["makes"] = made if isinstance(made, tuple) else (made,)
    columns["default"] = Semantics(columns.pop("sem", WEAK.sem), columns.pop("scope", WEAK.scope))
    return Row(name or first, form, operands.strip(), section, family, touches=touched, classes=classes, **columns)
