"""Walks from instruction to instruction, up to one that stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from consan.instrument.control_flow.graph import Graph
from consan.instrument.control_flow.paths import Edges
from consan.instrument.ptx import Instruction

Place = tuple[int, int]
"""A node, and a number of its instructions."""


def places_reached(
    steps: Sequence[Sequence[Instruction]], edges: Edges, starts: Iterable[Place], stops: Callable[[Instruction], bool]
) -> Iterator[Place]:
    """The places that a thread comes to from some places, these included. An instruction that stops is reached but not passed.

    A start in the middle of a node does not count as a visit of it: a loop leads to all of its instructions. With the instructions of each
    node in reverse, and the edges too, the walk goes backwards.
    """
    pending, seen = list(starts), set[int]()
    while pending:
        node, first = pending.pop()
        if first == 0 and node in seen:
            continue
        seen |= {node} if first == 0 else set()
        for at in range(first, len(steps[node])):
            yield node, at
            if stops(steps[node][at]):
                break
        else:
            pending += [(each, 0) for each in edges[node]]


def instructions_of(graph: Graph) -> list[list[Instruction]]:
    """The instructions of each node."""
    return [[step.instruction for step in node.steps] for node in graph.nodes]
