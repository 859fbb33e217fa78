"""The effects of an instruction, as its row says them, in the log. Here is what rows do not say all of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from consan.instrument.effects import Effect, kinds
from consan.instrument.effects.makes import Makes
from consan.instrument.effects.model import When
from consan.instrument.passes.annotated import FAMILY
from consan.instrument.passes.context import Work
from consan.instrument.record import accesses, annotated, copies, launch_control, lowering, matrix, mbarriers, tensor_memory, wmma
from consan.instrument.sites import FunctionStats

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

# Accesses of a whole warp, and accesses to words that no instruction names.
_FAMILIES = {wmma.FAMILY: wmma.add, FAMILY: annotated.add}
KINDS: dict[type[Effect], Callable[[KernelRewrite, Work, Makes], None]] = {
    **dict.fromkeys((kinds.Read, kinds.Write, kinds.Atomic), accesses.add),
    kinds.CtaBarrier: accesses.add_barrier,
    kinds.CopyIssue: copies.add,
    kinds.MbarrierWait: mbarriers.add_wait,
    kinds.ProductOperand: matrix.add,
    kinds.TensorLd: tensor_memory.add_load,
    kinds.TensorAlloc: tensor_memory.add_allocated,
    kinds.LaunchAnswer: launch_control.add_answer,
}


def add(kernel: KernelRewrite, work: Work, when: When) -> None:
    """Add the effects that are recorded before the instruction, or those behind it."""
    if when is When.BEFORE and work.row.family in _FAMILIES:
        _FAMILIES[work.row.family](kernel, work)
    for made in work.row.makes:
        if made.kind.recorded is when or (kernel.fences and when is When.BEFORE and made.kind.recorded is When.FENCES):
            KINDS.get(made.kind, lowering.put)(kernel, work, made)


def count(stats: FunctionStats, work: Work) -> None:
    """Count an instruction: as an access if it touches memory other than tensor memory, else as synchronisation."""
    touches = any(made.kind.access != "none" and not made.kind.tensor_memory for made in work.row.makes)
    stats.memory_sites += touches
    stats.sync_sites += bool(work.row.makes) and not touches
