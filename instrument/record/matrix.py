"""The recording of wgmma (ISA "wgmma.mma_async"): descriptors of its operands in shared memory, and its groups.

Rows, depth and major come from the opcode and its immediates, the rest from the descriptor. Registers are a matter of the text
(passes/registers.py). The metadata of a sparse product is in a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.passes.context import Work
from consan.instrument.passes.matrix import operands_in_memory
from consan.instrument.record.templates import Event, Flag, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_KINDS = {
    "wgmma.mma_async": Event.PRODUCT,
    "wgmma.mma_async.sp": Event.PRODUCT,
    "wgmma.commit_group": Event.PRODUCT_COMMIT,
    "wgmma.wait_group": Event.PRODUCT_WAIT,
}
_FENCE = "wgmma.fence"  # orders registers only


def refused(work: Work) -> bool:
    """Whether an operation is one that is not taken."""
    return work.row.name not in _KINDS and work.row.name != _FENCE


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the family."""
    kind = _KINDS.get(work.row.name)
    if kind is Event.PRODUCT:
        _add_product(kernel, work)
        return
    if kind is not None:
        block, instruction = kernel.open_block(), work.instruction
        guard = kernel.guard(block, instruction)
        a, a_word = kernel.number_of(block, instruction, instruction.operands[0]) if kind is Event.PRODUCT_WAIT else (0, -1)
        site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
        block.add(TemplateEvent(kind, site=site, guard_word=guard, a=a, a_word=a_word))
    kernel.plan.stats.sync_sites += 1


def _add_product(kernel: KernelRewrite, work: Work) -> None:
    instruction, block = work.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, "read", "shared", 0).number
    for operand in operands_in_memory(work):
        low, high, code = block.halves(instruction, operand.descriptor)
        kernel.pending += code
        flags = Flag.MAJOR * operand.major | Flag.OWN_ROWS * operand.own_rows
        event = TemplateEvent(Event.PRODUCT, flags, site, operand.rows, offset=operand.depth, guard_word=guard, a_word=low, b_word=high)
        block.add(event)
    kernel.plan.stats.memory_sites += 1


HANDLERS = {"wgmma": add}
