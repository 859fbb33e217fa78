"""Kernels in which no thread can write to global memory while a cp.async is in flight, as their text shows.

A seal is a barrier of all threads that a thread reaches after it has waited for all of its copies, and after which there are no more
copies. If each write to global memory is behind a seal on all paths, and no path ends with copies in flight, then neither the sources and
sizes of copies nor the writes need to be recorded (R-CP4, R-CP5). The checker makes sure that threads at seals meet only threads at seals
(consan/checker/source/barriers/seals.hpp).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from consan.instrument.control_flow import ENDS, Graph
from consan.instrument.control_flow.dataflow import forward
from consan.instrument.control_flow.paths import reached
from consan.instrument.effects import CopyCommit, CopyIssue, CopyWait
from consan.instrument.isa import flow_of
from consan.instrument.ptx import Immediate, Instruction
from consan.instrument.record.analyses.reach import is_full
from consan.instrument.record.families.global_operands import writes_global
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of


class CopyState(enum.IntEnum):
    """States of a thread's copies, as the text proves them; the strongest first."""

    SEALED = 0
    WAITED = 1
    COMMITTED = 2
    OPEN = 3


def seals_of(plan: FunctionPlan, graph: Graph) -> frozenset[int]:
    """The seals of a kernel that calls nothing, by the start of their instruction; none if some write is not behind one."""
    if not plan.is_entry or plan.stats.calls:
        return frozenset()
    works = {work.instruction.start: work for work in plan.work}
    before = _states(graph, works)
    found = frozenset(each.start for each, state in before if state is CopyState.WAITED and _is_barrier(each))
    return found if found and all(_allows(each, state, works) for each, state in before) and _are_last(graph, found, works) else frozenset()


def _allows(instruction: Instruction, state: CopyState, works: dict[int, Work]) -> bool:
    if flow_of(instruction) in ENDS:
        return state <= CopyState.WAITED
    return state is CopyState.SEALED or not writes_global(instruction)


def _states(graph: Graph, works: dict[int, Work]) -> list[tuple[Instruction, CopyState]]:
    """The worst state in which a thread can reach each instruction."""

    def through(number: int, state: CopyState) -> CopyState:
        for step in graph.nodes[number].steps:
            state = _after(step.instruction, state, works.get(step.instruction.start))
        return state

    states = forward(graph.successors, dict.fromkeys(graph.entries, CopyState.COMMITTED), through, _worse)
    return [pair for number, state in states.items() for pair in _walk(graph, number, state, works)]


def _worse(known: CopyState, other: CopyState) -> CopyState | None:
    return other if other > known else None


def _walk(graph: Graph, number: int, state: CopyState, works: dict[int, Work]) -> Iterator[tuple[Instruction, CopyState]]:
    for step in graph.nodes[number].steps:
        yield step.instruction, state
        state = _after(step.instruction, state, works.get(step.instruction.start))


def _after(instruction: Instruction, state: CopyState, work: Work | None) -> CopyState:
    if work is not None and work.row.does(CopyIssue):
        return CopyState.OPEN
    if instruction.predicate is not None or work is None:
        return state
    for made in work.row.makes:
        if made.kind is CopyCommit:
            state = min(state, CopyState.COMMITTED)
        elif made.kind is CopyWait and state < CopyState.OPEN and _awaits_all(work):
            state = min(state, CopyState.WAITED)
    return CopyState.SEALED if state <= CopyState.WAITED and _is_barrier(instruction) else state


def _awaits_all(work: Work) -> bool:
    pending = operand_of(work, "group-count")
    return pending is None or (isinstance(pending, Immediate) and pending.value == 0)


def _is_barrier(instruction: Instruction) -> bool:
    """Whether all threads of the CTA meet there, at barrier 0."""
    number = instruction.operands[0] if is_full(instruction) else None
    return isinstance(number, Immediate) and number.value == 0


def _are_last(graph: Graph, seals: frozenset[int], works: dict[int, Work]) -> bool:
    """Whether no path leads from a seal to a copy."""
    behind, pending = list[Instruction](), list[int]()
    for node in graph.nodes:
        instructions = [step.instruction for step in node.steps]
        places = [place for place, each in enumerate(instructions) if each.start in seals]
        if places:
            behind += instructions[places[0] :]
            pending += node.successors
    after = reached(graph.successors, pending)
    behind += [step.instruction for number in after for step in graph.nodes[number].steps]
    return not any(each.start in works and works[each.start].row.does(CopyIssue) for each in behind)
