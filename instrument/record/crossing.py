"""Whether a thread may store a flag in shared memory and then look at another thread's (SEMANTICS 12, R-MO2).

Such a kernel may have no fence and no release, and so nothing that synchronises. But its strong accesses are recorded with their values,
which say whether two threads have done so. A store is a strong one, an exchange or a compare-and-swap; a look is a strong load whose value
decides something, with no barrier in between. Loops that poll are recorded anyway.

Not followed: calls.
"""

from __future__ import annotations

import functools

from consan.instrument.control_flow import graph_of
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.isa import lookup
from consan.instrument.ptx import Function, Instruction
from consan.instrument.record import data

_SPACES = ("shared", "shared::cta", "generic")
_SWAPS = frozenset({"exch", "cas"})
_BARRIERS = frozenset({"barrier", "warp-barrier"})


@functools.lru_cache(maxsize=256)
def may_cross(function: Function) -> bool:
    """Whether a look may come behind a store, with no barrier between."""
    stores = {each.start for each in function.instructions() if _is_store(each)}
    looks = {each.start for each in function.instructions() if _is_strong(each, ("load",)) and each.start not in data.flags_of(function)}
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


def _is_barrier(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and row.family in _BARRIERS


def _is_store(instruction: Instruction) -> bool:
    return _is_strong(instruction, ("store",)) or (not _SWAPS.isdisjoint(instruction.parts) and _is_strong(instruction, ("atomic",)))


def _is_strong(instruction: Instruction, families: tuple[str, ...]) -> bool:
    row = lookup(instruction.parts)
    if row is None or row.family not in families or not row.touches:
        return False
    access = row.event(instruction).first
    return access.is_strong and access.space in _SPACES
