"""Loops in which a thread waits for a store that the kernel itself may never make strongly: a forgotten one, or that of another launch.

A strong load of one address, in a loop that touches no other memory and meets no other thread, waits for the word to change. The rounds of
such a loop leave nothing in the log only where strong accesses are in it (polls.py), so its kernel is recorded that way.
"""

from __future__ import annotations

from collections.abc import Callable

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
    body = _iteration(graph, number, load.instruction, _is_unrecorded)
    changed = {key for node in body for step in graph.nodes[node].steps for key in written(step.instruction)}
    row = lookup(load.instruction.parts)
    assert row is not None
    address = row.event(load.instruction).first.address
    return bool(body) and address is not None and changed.isdisjoint(key_of(load.instruction.scope, name) for name in names(address))


def only_waits(graph: Graph, number: int, poll: Instruction) -> bool:
    """Whether a thread may come back to an access with no other access to global memory: its loop does nothing but wait."""
    return bool(_iteration(graph, number, poll, _stays_in_cta))


def _iteration(graph: Graph, number: int, poll: Instruction, passes: Callable[[Instruction], bool]) -> set[int]:
    """The nodes on paths from an access back to it, with nothing else than what passes."""
    steps = ([step.instruction for step in node.steps] for node in graph.nodes)
    passed = {at for at, some in enumerate(steps) if all(each is poll or passes(each) for each in some)}
    ahead, back = (behind(edges, (number,), passed) for edges in (graph.successors, graph.predecessors))
    return ahead & back if number in ahead else set()


def _reads(instruction: Instruction, *, weak: bool) -> bool:
    row = lookup(instruction.parts)
    if row is None or not row.is_load or not row.touches:
        return False
    access = row.event(instruction).first
    past = weak and not _PAST_CACHE.isdisjoint(instruction.parts)
    return (access.is_strong or past) and access.may_be_global


def _stays_in_cta(instruction: Instruction) -> bool:
    """Whether an instruction computes in registers, accesses shared memory, or is a barrier or a fence."""
    row = lookup(instruction.parts)
    if row is None:
        return False
    if row.is_ordinary:
        return not row.event(instruction).first.may_be_global
    return _is_unrecorded(instruction) or row.is_cta_barrier or row.is_warp_barrier or row.is_fence or row.exchanges


def _is_unrecorded(instruction: Instruction) -> bool:
    row = lookup(instruction.parts)
    return row is not None and (row.branches or row.sleeps or row.is_unrecorded)
