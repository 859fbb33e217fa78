"""The registry of instruction semantics: from the parts of an opcode to an `Op` (imported through `ops`).

`semantics(("mad", "lo", "s32"))` finds the one grammar row that matches exactly and builds the Op, cached; an opcode that no row
matches is None, never a guess. Families: ops_move, ops_integer, ops_logic, ops_compare, ops_float, ops_half, ops_convert,
ops_minifloat, ops_warp, ops_matrix; ops_atomic holds the arithmetic of atomics. Conventions: ops_base.

Not here: memory, control flow, barriers, special registers, ldmatrix, cp.async, activemask (the engine's); texture, scalar video and
wmma instructions (nobody's).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from . import (
    ops_compare,
    ops_convert,
    ops_float,
    ops_half,
    ops_integer,
    ops_logic,
    ops_matrix,
    ops_minifloat,
    ops_move,
    ops_video,
    ops_warp,
)
from .ops_base import Op, Row, blocked

FAMILIES = (
    ops_move,
    ops_integer,
    ops_logic,
    ops_compare,
    ops_float,
    ops_half,
    ops_convert,
    ops_minifloat,
    ops_warp,
    ops_matrix,
    ops_video,
)


def _by_base() -> dict[str, list[Row]]:
    table: dict[str, list[Row]] = {}
    for family in FAMILIES:
        for row in family.ROWS:
            table.setdefault(row.base, []).append(row)
    return table


ROWS: dict[str, list[Row]] = _by_base()


@cache
def semantics(parts: tuple[str, ...], *, operands: int | None = None) -> Op | None:
    """The Op of an opcode given as its dot-separated parts, or None when it is unknown.

    `operands` is the number of source operands: only min and max of f32 need it, for their three-input form.
    """
    for row in ROWS.get(parts[0], ()):
        chosen = row.match(parts)
        op = row.build(*chosen) if chosen is not None else None
        if op is not None:
            return _with_operands(_with_blocks(op), parts[0], operands)
    return None


def _with_blocks(op: Op) -> Op:
    """Lane functions of several steps work in blocks; a ufunc needs no temporaries."""
    if op.kind == "warp" or op.ufunc is not None or "b128" in op.sources:
        return op
    pair = None if op.pair is None else replace(op.pair, fn=blocked(op.pair.fn))
    return replace(op, fn=blocked(op.fn), pair=pair)


def _with_operands(op: Op, base: str, operands: int | None) -> Op:
    if operands == 3 and base in ("min", "max") and op.sources[:1] == ("f32",):
        return replace(op, sources=("f32",) * 3)
    return op
