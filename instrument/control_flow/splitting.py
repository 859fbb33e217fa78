"""A graph doubled by the value of a predicate: all instructions guarded by that register agree until the register is written again.

Not handled: predicates that are computed from each other (`not.pred`, or the same comparison twice) count as independent.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

from consan.instrument.control_flow.graph import BasicBlock, Graph, PathStep
from consan.instrument.control_flow.registers import Guard, Key


def repeated_guards(graph: Graph) -> list[Key]:
    """The predicate registers that guard more than one instruction, which `split` can distinguish."""
    counts: dict[Key, int] = {}
    for step in graph.steps():
        if step.guard:
            counts[step.guard.register] = counts.get(step.guard.register, 0) + 1
    return [key for key, count in counts.items() if count > 1]


def split(graph: Graph, register: Key, writers: Collection[int]) -> Graph:
    """The graph, doubled by the value of a predicate register. `writers`: ids of the instructions that write it."""
    pieces = [list(_pieces(node, writers)) for node in graph.nodes]
    starts = [2 * total for total in itertools.accumulate(map(len, pieces), initial=0)]
    nodes: list[BasicBlock] = []
    for node, parts, start in zip(graph.nodes, pieces, starts, strict=False):
        for index, steps in enumerate(parts, 1):
            after = start + 2 * index
            for value in (False, True):
                kept = list(_decided(steps, register, value))
                if index < len(parts):
                    nodes.append(BasicBlock(kept, taken=(after, after + 1)))
                else:
                    nodes.append(_branch(node, Guard(register, value), kept, starts))
    return Graph(nodes, tuple(starts[entry] + value for entry in graph.entries for value in (0, 1)))


def _branch(node: BasicBlock, known: Guard, steps: list[PathStep], starts: list[int]) -> BasicBlock:
    """The end of a node for a known predicate value, with the remaining edges."""
    decided = node.guard is not None and node.guard.register == known.register
    jumps, stays = not decided or node.guard == known, not decided or node.guard != known
    return BasicBlock(
        steps,
        None if decided else node.guard,
        tuple(starts[target] + known.value for target in node.taken) if jumps else (),
        starts[node.falls] + known.value if stays and node.falls is not None else None,
    )


def _decided(steps: list[PathStep], register: Key, value: bool) -> Iterator[PathStep]:
    """The steps that execute for a given value of the predicate."""
    for step in steps:
        if step.guard is None or step.guard.register != register:
            yield step
        elif step.guard.value == value:
            yield PathStep(step.instruction, None)


def _pieces(node: BasicBlock, writers: Collection[int]) -> Iterator[list[PathStep]]:
    """The steps of a node, cut after each write."""
    piece: list[PathStep] = []
    for step in node.steps:
        piece.append(step)
        if id(step.instruction) in writers:
            yield piece
            piece = []
    yield piece
