"""The recording of wgmma (ISA "wgmma.mma_async"): descriptors of its operands in shared memory, and its groups.

Rows, depth and major come from the opcode and its immediates, the rest from the descriptor. Registers are a matter of the text
(passes/registers.py). The metadata of a sparse product is in a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from consan.instrument.effects import Effect, WordValue
from consan.instrument.effects.kinds import ProductCommit, ProductOperand, ProductWait
from consan.instrument.passes.context import Work
from consan.instrument.passes.matrix import operands_in_memory
from consan.instrument.record.lowering import NOTHING

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_KINDS: Final[dict[str, type[Effect]]] = {
    "wgmma.mma_async": ProductOperand,
    "wgmma.mma_async.sp": ProductOperand,
    "wgmma.commit_group": ProductCommit,
    "wgmma.wait_group": ProductWait,
}
_FENCE = "wgmma.fence"  # orders registers only


def refused(work: Work) -> bool:
    """Whether an operation is one that is not taken."""
    return work.row.name not in _KINDS and work.row.name != _FENCE


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the family."""
    kind = _KINDS.get(work.row.name)
    if kind is ProductOperand:
        _add_product(kernel, work)
    elif kind is not None:
        pending: dict[str, Any] = {"pending": work.instruction.operands[0]} if kind is ProductWait else {}
        kernel.record(work, kind, NOTHING, **pending)
    else:
        kernel.plan.stats.sync_sites += 1


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
