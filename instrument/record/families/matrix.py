"""The recording of wgmma (ISA "wgmma.mma_async"): descriptors of its operands in shared memory.

Rows, depth and major come from the opcode and its immediates, the rest from the descriptor. Registers are a matter of the text
(hazards/registers.py). The metadata of a sparse product is in a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.effects import ProductOperand, WordValue
from consan.instrument.effects.makes import Makes
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.matrix_operands import operands_in_memory

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder


def add(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """The operands of a product."""
    instruction, block = work.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, ProductOperand.access, "shared", 0).number
    for operand in operands_in_memory(instruction):
        low, high, code = block.halves(instruction, operand.descriptor)
        kernel.pending += code
        block.add(
            ProductOperand(
                site=site, guard=guard, low=WordValue(0, low), high=WordValue(0, high),
                rows=operand.rows, depth=operand.depth, major=bool(operand.major), own_rows=bool(operand.own_rows),
            )
        )  # fmt: skip
