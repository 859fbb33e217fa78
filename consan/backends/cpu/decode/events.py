"""The events of a kernel: instructions by which its threads see, or show, what happens in memory, and those that synchronise.

A seed chooses before events, and its time is the number of events. So it means the same schedule of a kernel's text as it is, recorded, and
with called hooks: what is added to a kernel is no event.
"""

from __future__ import annotations

from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction

from .operands import is_of_hooks
from .reach import HOOKS


def is_event(instruction: Instruction) -> bool:
    """Whether another thread may notice when the kernel executes an instruction, or the instruction what others did."""
    row = row_of(instruction)
    if row.is_ordinary or row.is_of_matrices:
        return bool(row.touches) and row.describe(instruction).is_visible and not is_of_hooks(instruction)
    if row.synchronises or row.is_asynchronous or row.is_of_tensor_memory or row.takes_cluster or row.is_recorded_access:
        return not is_of_hooks(instruction)
    return row.asks_who_is_active and not any(HOOKS in operand.text for operand in instruction.operands)
