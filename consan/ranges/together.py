"""Accesses that may meet at one place in global memory, and neither race nor leave anything to look for there.

- Reductions by copies: each element is updated as a whole (ISA "cp.reduce.async.bulk").
- Strong writes that reach all threads of the launch, of elements of one size: they overlap completely, so they are morally strong (ISA
  8.7.1). Nothing may see what they find: the result of an atomic is read by no instruction. So no thread learns of another one here, and
  an order of theirs is nobody's (SEMANTICS.md, R-MO1 and R-MO2 need a read). A thread that reads such bytes is no proof.

Reductions by copies are of the async proxy, and may not meet the others.
"""

from __future__ import annotations

from typing import Final

from consan.instrument.control_flow import is_unread
from consan.instrument.isa import MemoryAccess, row_of, scalar_bytes
from consan.instrument.ptx import Function, Instruction
from consan.ranges.forms import Together

_OF_A_RANK: Final = ("gpu", "sys")  # scopes that reach all threads of a launch, which is on one device
_OF_ALL_RANKS: Final = ("sys",)
_ELEMENTS: Final = {"16": 2, "32": 4, "64": 8}  # of a reduction by a copy, by the digits of their type


def together(function: Function, instruction: Instruction, access: MemoryAccess, *, ranks: int) -> Together | None:
    """The accesses that one may meet; None: none. `ranks`: of the launch, each on a device of its own."""
    if access.is_asynchronous:
        return Together(access.proxy, _copied(instruction)) if access.updates else None
    reached = _OF_A_RANK if ranks == 1 else _OF_ALL_RANKS
    strong = access.is_strong and access.sem != "mmio" and access.scope in reached
    if strong and access.writes and row_of(instruction).is_ordinary and is_unread(function, instruction):
        return Together(access.proxy, scalar_bytes(instruction, access))
    return None


def _copied(instruction: Instruction) -> int:
    """The bytes of the elements of a reduction by a copy; 0: its map has them."""
    return next((size for digits, size in _ELEMENTS.items() if instruction.parts[-1].endswith(digits)), 0)
