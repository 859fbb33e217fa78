"""Whether a thread may store a flag in shared memory and then look at another thread's (SEMANTICS 12, R-MO2).

Such a kernel may have no fence and no release, and so nothing that synchronises. But its strong accesses are recorded with their values,
which say whether two threads have done so. A store is a strong one, an exchange or a compare-and-swap; a look is a strong load whose value
decides something, with no barrier in between. Loops that poll are recorded anyway. Any other atomic may be such a store, too, in a kernel
that has a look: a strong load, or an atomic that adds or sets nothing.

Not followed: calls.
"""

from __future__ import annotations

import functools

from consan.instrument.control_flow import graph_of
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.isa import Row, row_of, swaps
from consan.instrument.ptx import Function, Instruction
from consan.instrument.record.analyses import data


@functools.lru_cache(maxsize=256)
def may_cross(function: Function) -> bool:
    """Whether a look may come behind a store, with no barrier between."""
    stores = {each.start for each in function.instructions() if _is_store(each)}
    looks = {each.start for each in function.instructions() if _is_look(each) and each.start not in data.flags_of(function)}
    if not (stores and looks):
        return False
    graph = graph_of(function)
    steps = instructions_of(graph)
    behind = [(number, at + 1) for number, inside in enumerate(steps) for at, each in enumerate(inside) if each.start in stores]
    return any(
        steps[number][at].start in looks
        for start in behind
        for number, at in places_reached(steps, graph.successors, (start,), _is_barrier)
    )


def sets_flags(function: Function) -> bool:
    """Whether a thread may store a flag, in any memory."""
    strong = [each for each in function.instructions() if row_of(each).is_ordinary and row_of(each).describe(each).is_strong]
    updates = any(row_of(each).is_update and not _changes_nothing(each) for each in strong)
    return any(map(_writes_a_flag, strong)) or (updates and any(row_of(each).is_load or _changes_nothing(each) for each in strong))


def _changes_nothing(instruction: Instruction) -> bool:
    """Whether an atomic adds, or sets the bits of, a literal zero."""
    return row_of(instruction).is_update and instruction.operands[-1].text == "0" and not swaps(instruction)


def _is_barrier(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_cta_barrier or row.is_warp_barrier


def _is_store(instruction: Instruction) -> bool:
    return _writes_a_flag(instruction) and _is_strong(row_of(instruction), instruction)


def _writes_a_flag(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_store or (row.is_atomic and swaps(instruction))


def _is_look(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_load and _is_strong(row, instruction)


def _is_strong(row: Row, instruction: Instruction) -> bool:
    access = row.describe(instruction)
    return access.is_strong and access.may_be_shared
