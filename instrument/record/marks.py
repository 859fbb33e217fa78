"""A forward analysis over a kernel of what may hold on some path: registers that carry a mark, by the number of the mark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from consan.instrument.passes.flow import Graph, Key
from consan.instrument.ptx import Instruction

State = dict[int, frozenset[Key]]
# Changes a state by an instruction, and gives the marks of which something happens there.
Through = Callable[[Instruction, State], Iterable[int]]


def spread(graph: Graph, through: Through) -> dict[int, list[int]]:
    """The marks of which something happens at an instruction, by its start."""
    states: dict[int, State] = {entry: {} for entry in graph.entries}
    pending = sorted(graph.entries)
    while pending:
        number = pending.pop(0)
        after, _ = _passed(graph, number, states[number], through)
        for successor in graph.nodes[number].successors:
            if _join(states, successor, after) and successor not in pending:
                pending.append(successor)
    found: dict[int, list[int]] = {}
    for number, before in states.items():
        for start, marks in _passed(graph, number, before, through)[1]:
            if marks:
                found.setdefault(start, []).extend(marks)
    return found


def _passed(graph: Graph, number: int, before: State, through: Through) -> tuple[State, list[tuple[int, list[int]]]]:
    state = dict(before)
    return state, [(step.instruction.start, list(through(step.instruction, state))) for step in graph.nodes[number].steps]


def _join(states: dict[int, State], node: int, more: State) -> bool:
    """Add what may hold on one more path; returns whether that is new."""
    known = states.get(node)
    if known is None:
        states[node] = dict(more)
        return True
    grown = False
    for mark, registers in more.items():
        if not registers <= known.get(mark, frozenset()) or mark not in known:
            known[mark] = known.get(mark, frozenset()) | registers
            grown = True
    return grown
