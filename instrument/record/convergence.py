"""The recording of instructions that lanes must reach together, and of the places past them (functions/points.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan.instrument.effects import JoinPassed, PointReached, WarpSync, WordValue
from consan.instrument.functions.points import Join, Point
from consan.instrument.isa import does

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_ALL_LANES = WordValue(0xFFFFFFFF)


def add_point(kernel: FunctionRecorder, point: Point) -> None:
    """A lane comes to such an instruction."""
    instruction, block = point.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    site, members = kernel.site_of(instruction), point.members
    if members.mask is None:
        how: dict[str, Any] = {"whole" if members.whole else "aligned": True, "key": site, "members": _ALL_LANES}
    else:
        how = {"masked": True, "waits": does(instruction, WarpSync), "members": kernel.number_of(instruction, members.mask)}
        how["key"] = kernel.keys.setdefault((instruction.opcode, point.segment), len(kernel.keys))
    block.add(PointReached(site=site, guard=guard, join=point.join, shuffles=point.shuffles, **how))


def add_join(kernel: FunctionRecorder, join: Join) -> None:
    """A lane passes a join."""
    kernel.open_block().add(JoinPassed(site=kernel.site_of(join.shown), called=join.called, passes=join.passes))
