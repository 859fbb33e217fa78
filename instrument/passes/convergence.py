"""Checks before warp-synchronous instructions: all lanes that must be together are active (R-BAR1; ISA ".aligned", "shfl.sync").

A check tests the mask of active lanes, and calls the runtime only if a member is missing (runtime/convergence.cuh). A thread passes a join
only once, so a join always calls the runtime: lanes that have left a point may have reconverged with the others.
points.py decides which instructions are checked, and where.
"""

from __future__ import annotations

import itertools

from consan.instrument.abi.bits import POINT
from consan.instrument.abi.flags import What
from consan.instrument.abi.hooks import hook
from consan.instrument.functions.points import Join, Point, find_points
from consan.instrument.isa import lookup
from consan.instrument.ptx import Instruction
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.emit import Snippet, Unsupported, word

_ALL = "0xffffffff"


def run(context: Context) -> None:
    """Insert a check at every point and every join."""
    opcodes: dict[str, int] = {}
    labels = itertools.count()
    found = [(plan, *find_points(plan.function)) for plan in context.plans.values() if plan.needs_slot]
    any_open = any(point.open for _, points, _ in found for point in points)
    for plan, points, joins in found:
        plan.stats.open_points = sum(point.open for point in points)
        for join in joins:  # before the points: a lane passes the earlier points before it reaches the one at this instruction
            _check_join(context, plan, join)
        for point in points:
            if any_open or not point.certain:  # if no point is open, the joins of the others find a divergence before a certain point could
                _check_point(context, plan, point, opcodes, f"$__consan_at{next(labels)}")


def _check_point(context: Context, plan: FunctionPlan, point: Point, opcodes: dict[str, int], label: str) -> None:
    try:
        snippet = _point_check(context, plan, point, opcodes, label)
    except Unsupported:
        context.unmodelled(plan, point.instruction)
        return
    _insert_first(context, point.instruction, snippet)


def _point_check(context: Context, plan: FunctionPlan, point: Point, opcodes: dict[str, int], label: str) -> Snippet:
    instruction, snippet = point.instruction, Snippet()
    guard = instruction.predicate
    if guard is not None:
        snippet.add(f"@{'' if guard.negated else '!'}{guard.register} bra {label};")
    mask = _ALL if point.members.mask is None else word(point.members.mask, snippet, instruction.scope)
    code = POINT.pack({"site": _site(context, plan, instruction), "what": _what(point, opcodes), "join": point.join}) >> 32
    _call_if_missing(context, snippet, mask, code)
    if guard is not None:
        snippet.add(f"{label}:")
    return snippet


def _what(point: Point, opcodes: dict[str, int]) -> int:
    """The identity of a point: the instruction, or with a mask its opcode, because lanes may meet at two instructions with one opcode."""
    if point.members.mask is None:
        return What.WHOLE if point.members.whole else What.ALIGNED
    return min(opcodes.setdefault(point.instruction.opcode, What.FIRST_OPCODE + len(opcodes)), What.LAST_OPCODE)


def _check_join(context: Context, plan: FunctionPlan, join: Join) -> None:
    snippet = Snippet()
    context.call(snippet, hook("joined", site=_site(context, plan, join.shown), joins=join.passes))
    if join.after:
        context.edits.insert_after(join.instruction, "\n" + snippet.text())
    else:
        _insert_first(context, join.instruction, snippet)


def _insert_first(context: Context, instruction: Instruction, snippet: Snippet) -> None:
    """Insert before an instruction and its other hooks, which may wait for the whole warp."""
    context.edits.insert_at(instruction.start, "\n" + snippet.text())


def _call_if_missing(context: Context, snippet: Snippet, mask: str, code: int) -> None:
    """Call the hook if a lane of the mask is not active."""
    active, missing = snippet.register("b32"), snippet.register("pred")
    snippet.add(f"activemask.b32 {active};")
    if mask != _ALL:
        snippet.add(f"and.b32 {active}, {active}, {mask};")
    snippet.add(f"setp.ne.b32 {missing}, {active}, {mask};")
    context.call(snippet, hook("split", members=mask, code=code), guard=f"@{missing} ")


def _site(context: Context, plan: FunctionPlan, instruction: Instruction) -> int:
    row = lookup(instruction.parts)
    return context.site_of(plan, instruction, row.family if row else "", "none", "none", 0).number
