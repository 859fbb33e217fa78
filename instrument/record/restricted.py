"""Fences with .sync_restrict (ISA "membar, fence"): where a replay cannot take them for whole ones.

Such a fence orders accesses to shared memory only; one with .release, only those to shared memory of the own CTA. The replay of a launch,
which checks global memory, passes them by; the replays of clusters, which check shared memory, take them for whole fences of the cluster.
That is exact where one replay does not check both memories, and threads access neither shared memory of other CTAs nor tensor memory.
Elsewhere there are several replays (checker/judging/restricted_fences.py).
"""

from __future__ import annotations

from consan.instrument.effects import TensorMemoryEffect
from consan.instrument.isa import Row, lookup
from consan.instrument.ptx import Instruction
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.rewriting.context import FunctionPlan

_OF_OTHERS = ("shared::cluster", "generic")


def takes_several_replays(plans: dict[str, FunctionPlan], modes: dict[str, Mode]) -> bool:
    """Whether there are such fences, and more is reached than shared memory of the own CTA. `plans`, `modes`: of all that is recorded."""
    rows = [(lookup(each.parts), each) for plan in plans.values() for each in plan.function.instructions()]
    known = [(row, each) for row, each in rows if row is not None]
    if not any(made.numbers.get("restricted") for row, _ in known for made in row.makes):
        return False
    return Mode.SYNCED in modes.values() or any(_reaches_more(row, each) for row, each in known)


def _reaches_more(row: Row, instruction: Instruction) -> bool:
    """Whether an instruction may access shared memory of another CTA, or tensor memory."""
    spaces = (access.qualified_space for access in row.accesses(instruction)) if row.accesses_memory else ()
    return row.does(TensorMemoryEffect) or any(space in _OF_OTHERS for space in spaces)
