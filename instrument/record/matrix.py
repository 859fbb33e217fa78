"""The recording of wgmma (ISA "wgmma.mma_async"): descriptors of its operands in shared memory, and its groups.

Rows, depth and major come from the opcode and its immediates, the rest from the descriptor. Registers are a matter of the text
(passes/registers.py). The metadata of a sparse product is in a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import ProductOperand
from consan.instrument.passes.context import Work
from consan.instrument.passes.matrix import operands_in_memory
from consan.instrument.record import lowering

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_OPERATION, _FENCE = "mma_async", "fence"  # orders registers only


def refused(work: Work) -> bool:
    """Whether an operation is one that is not taken."""
    return work.row.makes is None and work.row.action not in (_OPERATION, _FENCE)


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the family."""
    if work.row.action == _OPERATION:
        _add_product(kernel, work)
    elif work.row.action == _FENCE:
        kernel.plan.stats.sync_sites += 1
    else:
        lowering.add(kernel, work)


def _add_product(kernel: KernelRewrite, work: Work) -> None:
    instruction, block = work.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, "read", "shared", 0).number
    for operand in operands_in_memory(work):
        low, high, code = block.halves(instruction, operand.descriptor)
        kernel.pending += code
        block.add(
            ProductOperand(
                site=site, guard=guard, low=WordValue(0, low), high=WordValue(0, high),
                rows=operand.rows, depth=operand.depth, major=bool(operand.major), own_rows=bool(operand.own_rows),
            )
        )  # fmt: skip
    kernel.plan.stats.memory_sites += 1


HANDLERS = {"wgmma": add}
