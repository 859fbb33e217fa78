"""The effects of an instruction, as its row says them, in the log. Here is what rows do not say all of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from consan.instrument.effects import Effect, kinds
from consan.instrument.effects.makes import Makes
from consan.instrument.effects.model import When
from consan.instrument.record.families import accesses, copies, global_memory, launch_control, lowering, matrix, mbarriers, tensor_memory
from consan.instrument.rewriting.context import Work
from consan.instrument.sites import FunctionStats

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

KINDS: dict[type[Effect], Callable[[FunctionRecorder, Work, Makes], None]] = {
    **dict.fromkeys((kinds.Read, kinds.Write, kinds.Atomic), accesses.add),
    **dict.fromkeys((kinds.GlobalRead, kinds.GlobalWrite), global_memory.add_access),
    kinds.Observe: global_memory.add_observed,
    kinds.Publish: global_memory.add_published,
    kinds.CtaBarrier: accesses.add_barrier,
    kinds.CopyIssue: copies.add,
    kinds.MbarrierWait: mbarriers.add_wait,
    kinds.ProductOperand: matrix.add,
    kinds.TensorLd: tensor_memory.add_load,
    kinds.TensorAlloc: tensor_memory.add_allocated,
    kinds.LaunchAnswer: launch_control.add_answer,
}


def add(kernel: FunctionRecorder, work: Work, when: When) -> None:
    """Add the effects that are recorded at a time."""
    for made in work.row.makes:
        now = made.recorded is when or (kernel.function.fences and when is When.BEFORE and made.recorded is When.FENCES)
        if now and (not made.only or work.event.first.is_strong == (made.only == "strong")):
            KINDS.get(made.kind, lowering.put)(kernel, work, made)


def count(stats: FunctionStats, work: Work) -> None:
    """Count an instruction: as an access if it touches memory other than tensor memory, else as synchronisation."""
    counted = [made.kind for made in work.row.makes if not made.is_of_checked_memory]
    touches = any(kind.access != "none" and not kind.tensor_memory for kind in counted)
    stats.memory_sites += touches
    stats.sync_sites += bool(counted) and not touches
