"""Fences with .sync_restrict (ISA "membar, fence"): where they are followed exactly.

Such a fence orders accesses to shared memory only; one with .release, only those to shared memory of the own CTA. The replay of a launch,
which checks global memory, passes them by; the replays of clusters, which check shared memory, take them for whole fences of the cluster.
That is exact where one replay does not check both memories, and threads access neither shared memory of other CTAs nor tensor memory.
"""

from __future__ import annotations

from consan.instrument.effects import TensorMemoryEffect
from consan.instrument.isa import lookup
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.rewriting.context import FunctionPlan

_OF_OTHERS = ("shared::cluster", "generic")


def settle(plans: dict[str, FunctionPlan], modes: dict[str, Mode]) -> None:
    """Drop the gaps of such fences where they are followed exactly. `plans`, `modes`: of all that is recorded."""
    if Mode.SYNCED in modes.values() or any(map(_reaches_more, plans.values())):
        return
    for plan in plans.values():
        plan.stats.unmodelled = [gap for gap in plan.stats.unmodelled if not _is_restricted(tuple(gap.opcode.split(".")))]


def _is_restricted(parts: tuple[str, ...]) -> bool:
    row = lookup(parts)
    return row is not None and any(made.numbers.get("restricted") for made in row.makes)


def _reaches_more(plan: FunctionPlan) -> bool:
    """Whether a function may access shared memory of another CTA, or tensor memory."""
    rows = ((lookup(each.parts), each) for each in plan.function.instructions())
    return any(
        row.does(TensorMemoryEffect) or (row.accesses_memory and any(access.qualified_space in _OF_OTHERS for access in row.accesses(each)))
        for row, each in rows
        if row is not None
    )
