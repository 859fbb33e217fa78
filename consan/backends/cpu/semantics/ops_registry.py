"""The registry of instruction semantics: from the parts of an opcode to an `Op` (imported through `ops`).

The grammar is the table's (`instrument/isa`): the row of an opcode names the operation, which is built from the opcode's
modifiers. An opcode without a row, and a row without an operation, give None, never a guess. Families: ops_move,
ops_integer, ops_logic, ops_compare, ops_float, ops_half, ops_convert, ops_minifloat, ops_fixed, ops_stochastic, ops_warp,
ops_matrix, ops_sparse, ops_wmma, ops_video; ops_atomic holds the arithmetic of atomics. Conventions: ops_base.

Not here: memory, control flow, barriers, special registers, ldmatrix, cp.async, activemask (the engine's).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from consan.instrument.isa import lookup

from . import (
    ops_compare,
    ops_convert,
    ops_fixed,
    ops_float,
    ops_half,
    ops_integer,
    ops_logic,
    ops_matrix,
    ops_minifloat,
    ops_move,
    ops_sparse,
    ops_stochastic,
    ops_video,
    ops_warp,
    ops_wmma,
)
from .ops_base import Op, Operations, blocked

FAMILIES = (
    ops_move,
    ops_integer,
    ops_logic,
    ops_compare,
    ops_float,
    ops_half,
    ops_convert,
    ops_minifloat,
    ops_fixed,
    ops_stochastic,
    ops_warp,
    ops_matrix,
    ops_sparse,
    ops_wmma,
    ops_video,
)
OPERATIONS: Operations = {form: build for family in FAMILIES for form, build in family.OPERATIONS.items()}


@cache
def semantics(parts: tuple[str, ...], *, sources: int | None = None) -> Op | None:
    """The Op of an opcode given as its dot-separated parts, or None when it is unknown.

    `sources` is the number of source operands: only min and max of f32 need it, for their three-input form.
    """
    row = lookup(parts)
    if row is None or row.form not in OPERATIONS:
        return None
    op = OPERATIONS[row.form](*row.choices(parts))
    if op is not None and sources is not None and len(op.sources) < sources <= row.operands.count("src"):
        op = replace(op, sources=op.sources[:1] * sources)
    return None if op is None else _with_blocks(op)


def _with_blocks(op: Op) -> Op:
    """Lane functions of several steps work in blocks; a ufunc needs no temporaries."""
    if op.kind == "warp" or op.ufunc is not None or "b128" in op.sources:
        return op
    pair = None if op.pair is None else replace(op.pair, fn=blocked(op.pair.fn))
    return replace(op, fn=blocked(op.fn), pair=pair)
