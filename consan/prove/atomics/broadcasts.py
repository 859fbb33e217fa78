"""Values that one thread hands to all others of its CTA: a store in shared memory, a barrier of all, and loads of the same bytes behind it.

A load of one address by all threads gives one value, if no thread writes there from the barrier before it to the next one. Whoever did
would race with the load, and then nothing is proven. Barriers of warps and mbarriers may order such a write without a race, so in kernels
that have these, or copies, nothing is known of what is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from consan.instrument.control_flow import Graph, Key, definitions, key_of
from consan.instrument.control_flow.paths import inverse
from consan.instrument.isa import MemoryAccess, row_of
from consan.instrument.ptx import Function, Instruction, Register, Symbol
from consan.instrument.rewriting.emit import Unsupported, address_parts

Place = tuple[str, int, int]
"""Bytes of shared memory: the variable, the first byte of it, and how many."""


def shared_loads(function: Function) -> frozenset[int]:
    """The loads of shared memory that give one value to all threads that load from one address, by their starts in the text."""
    if not is_simple(function):
        return frozenset()
    plain = (each for each in function.instructions() if row_of(each).is_load)
    return frozenset(each.start for each in plain if all(touch.in_shared and not touch.is_strong for touch in row_of(each).accesses(each)))


def broadcasts_of(function: Function, graph: Graph, barriers: Collection[int]) -> dict[int, Instruction]:
    """The loads behind a barrier, by their starts, each with the store of the same bytes before it."""
    if not is_simple(function):
        return {}
    made, before, found = definitions(function), inverse(graph.successors), dict[int, Instruction]()
    for node in barriers:
        behind = graph.nodes[node].falls
        store = next((each.instruction for each in reversed(graph.nodes[node].steps) if _writes(each.instruction)), None)
        place = None if store is None or not row_of(store).is_store else _place(store, made)
        if behind is None or store is None or place is None or set(before[behind]) != {node}:
            continue
        for step in graph.nodes[behind].steps:
            if _writes(step.instruction):
                break
            if row_of(step.instruction).is_load and _place(step.instruction, made) == place:
                found[step.instruction.start] = store
    return found


def is_simple(function: Function) -> bool:
    """Whether only barriers of the CTA order accesses to shared memory."""
    rows = map(row_of, function.instructions())
    return not any(row.is_mbarrier or row.is_bulk or row.is_copy or row.is_of_products or row.is_warp_barrier or row.calls for row in rows)


def _writes(instruction: Instruction) -> bool:
    """Whether an instruction may write shared memory."""
    return any(touch.writes and touch.may_be_shared for touch in row_of(instruction).accesses(instruction))


def _place(instruction: Instruction, made: Mapping[Key, Sequence[Instruction]]) -> Place | None:
    """The bytes of an access, where the text names them."""
    touches: Sequence[MemoryAccess] = row_of(instruction).accesses(instruction)
    if len(touches) != 1 or not touches[0].in_shared or touches[0].is_strong or touches[0].address is None:
        return None
    try:
        base, offset = address_parts(touches[0].address)
    except Unsupported:
        return None
    if isinstance(base, Register) and instruction.scope.is_register(base.name):
        writers = made.get(key_of(instruction.scope, base.name), ())
        moved = writers[0].operands[1] if len(writers) == 1 and row_of(writers[0]).moves and writers[0].predicate is None else None
        base = moved if isinstance(moved, Symbol) else base
    return (base.name, offset, touches[0].total_bytes) if isinstance(base, Symbol) else None
