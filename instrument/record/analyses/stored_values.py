"""Loads from global memory whose values go into stores to global memory, and nowhere else.

If a tile has fewer elements than the CTA has threads, a compiler lets all threads load, but only some of them store. A thread that executes
none of the stores does not use the value that it loads: no value of the program depends on that load, so it is no access (D26).

All writes to one register count as one value, so an unused load may count as used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from consan.instrument.control_flow import Graph, Guard, Key, graph_of, guard_of, key_of, written
from consan.instrument.control_flow.dataflow import destinations, union
from consan.instrument.isa import computes, lookup, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Instruction

_MOST = 31  # stores that have a bit
_ELSEWHERE = 1 << _MOST
_MANY = 16  # nodes
_NONE_STORED = Counter[str]()


def stores_of_values(function: Function) -> dict[int, int]:
    """By the start of an instruction: of a weak store its bit, of a weak load those of all stores that its value goes into. 0: unknown."""
    found = {instruction.start: 1 << number for number, instruction in enumerate(_weak(function, "store")) if number < _MOST}
    loads = list(_weak(function, "load")) if found else []
    if loads:
        goes = _destinations(function, found, chosen_registers(graph_of(function)))
        for load in loads:
            mask = union(goes, written(load))
            found[load.start] = 0 if mask & _ELSEWHERE else mask
    return found


def chosen_registers(graph: Graph) -> dict[int, tuple[Key, ...]]:
    """By the start of a branch that only chooses between computations: the registers that they write."""
    found, after = dict[int, tuple[Key, ...]](), graph.post_dominators.immediate
    for number, node in enumerate(graph.nodes):
        between = _between(graph, number, after[number]) if node.guard is not None else {number}
        inside = [step.instruction for each in between for step in graph.nodes[each].steps]
        if number not in between and all(computes(each) or row_of(each).branches for each in inside):
            found[node.steps[-1].instruction.start] = tuple(key for each in inside for key in written(each))
    return found


def _between(graph: Graph, number: int, join: int | None) -> set[int]:
    """The nodes on the ways from a branch to where they meet; with the branch itself, if they are many."""
    found, pending = set[int](), list(graph.nodes[number].successors)
    while pending:
        if len(found) > _MANY:
            return {number}
        node = pending.pop()
        if node != join and node not in found:
            found.add(node)
            pending += graph.nodes[node].successors
    return found


def _destinations(function: Function, stores: dict[int, int], skips: dict[int, tuple[Key, ...]]) -> dict[Key, int]:
    """The stores that the value of each register goes into, or elsewhere."""

    def used(instruction: Instruction, goes: dict[Key, int]) -> Iterator[tuple[Key, int]]:
        skipped = skips.get(instruction.start)
        return _used(instruction, goes, stores, _ELSEWHERE if skipped is None else union(goes, skipped))

    return destinations(function, used, skips)


def _used(instruction: Instruction, goes: dict[Key, int], stores: dict[int, int], guarded: int) -> Iterator[tuple[Key, int]]:
    """The registers that an instruction reads, and where their values go by it. `guarded`: where that of its guard goes."""
    guard, every, is_computed = instruction.once(_reads)
    if guard is not None:
        yield guard.register, guarded
    others = union(goes, written(instruction)) if is_computed else _ELSEWHERE
    values = instruction.once(_stored) if instruction.start in stores else _NONE_STORED
    for key, name, count in every:
        if values[name]:
            yield key, stores[instruction.start]
        if count > values[name]:
            yield key, others


def _reads(instruction: Instruction) -> tuple[Guard | None, list[tuple[Key, str, int]], bool]:
    """The guard of an instruction, the registers that it names with how often it reads each, and whether it only computes."""
    every = Counter(name for operand in instruction.operands for name in names(operand))
    every.subtract(name for _, name in written(instruction))
    keys = [(key_of(instruction.scope, name), name, count) for name, count in every.items()]
    return guard_of(instruction), keys, computes(instruction)


def _stored(instruction: Instruction) -> Counter[str]:
    """How often each register is in what a store stores."""
    row = lookup(instruction.parts)
    source = None if row is None else row.event(instruction).operand("src")
    return Counter(names(source) if source is not None else ())


def _weak(function: Function, family: str) -> Iterator[Instruction]:
    for instruction in function.instructions():
        row = lookup(instruction.parts)
        if row is not None and row.family == family and row.touches:
            access = row.event(instruction).first
            if access.may_be_global and not access.is_strong:
                yield instruction
