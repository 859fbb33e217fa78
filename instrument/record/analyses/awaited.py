"""Loops in which a thread waits for a store that the kernel itself may never make strongly: a forgotten one, or that of another launch.

A strong load of one address, in a loop that touches no other memory and meets no other thread, waits for the word to change. The rounds of
such a loop leave nothing in the log only where strong accesses are in it (polls.py), so its kernel is recorded that way.
"""

from __future__ import annotations

from consan.instrument.control_flow import Graph, PathStep, graph_of, key_of, written
from consan.instrument.control_flow.paths import behind
from consan.instrument.isa import lookup
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Instruction

_PAST_CACHE = frozenset({"cg", "cv"})


def awaits_store(function: Function, *, weak: bool = False) -> bool:
    """Whether a function has such a loop. `weak`: or one with any load that does not read the first-level cache, as `ld.cg`."""
    if not any(_reads(each, weak=weak) for each in function.instructions()):
        return False
    graph: Graph = graph_of(function)
    found = [(number, step) for number, node in enumerate(graph.nodes) for step in node.steps if _reads(step.instruction, weak=weak)]
    return any(_waits(graph, number, step) for number, step in found if graph.repeats(number))


def _waits(graph: Graph, number: int, load: PathStep) -> bool:
    body = _iteration(graph, number, load)
    changed = {key for node in body for step in graph.nodes[node].steps for key in written(step.instruction)}
    row = lookup(load.instruction.parts)
    assert row is not None
    address = row.event(load.instruction).first.address
    return bool(body) and address is not None and changed.isdisjoint(key_of(load.instruction.scope, name) for name in names(address))


def _iteration(graph: Graph, number: int, load: PathStep) -> set[int]:
    """The nodes on paths from a load back to it on which nothing is recorded."""
    passed = {at for at, node in enumerate(graph.nodes) if all(step is load or _is_unrecorded(step.instruction) for step in node.steps)}
    ahead, back = (behind(edges, (number,), passed) for edges in (graph.successors, graph.predecessors))
    return ahead & back if number in ahead else set()


def _reads(instruction: Instruction, *, weak: bool) -> bool:
    row = lookup(instruction.parts)
    if row is None or not row.is_load or not row.touches:
        return False
    access = row.event(instruction).first
    past = weak and not _PAST_CACHE.isdisjoint(instruction.parts)
    return (access.is_strong or past) and access.may_be_global


def _is_unrecorded(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and (row.branches or row.sleeps or row.is_unrecorded)
