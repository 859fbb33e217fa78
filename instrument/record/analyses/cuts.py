"""The points at which a kernel checks that its log has room: at the targets of retreating edges of its control-flow graph.

Every cycle has such a target, whichever order the depth-first search takes, so the number of words between two cuts is bounded: it is
the longest path through the graph without the retreating edges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import behind, retreating_targets
from consan.instrument.rewriting.emit import Unsupported


def cut_nodes(graph: Graph) -> set[int]:
    """The nodes that have such a point."""
    return retreating_targets(graph.successors, graph.entries)


def check_ends(graph: Graph, starts: frozenset[int]) -> None:
    """Raise `Unsupported` if a thread has an event in a loop that it cannot leave."""
    for number, node in enumerate(graph.nodes):
        if not graph.post_dominators.leads_to_end(number) and any(step.instruction.start in starts for step in node.steps):
            raise Unsupported("an event in a loop without an end")


def longest_path(graph: Graph, cuts: set[int], words: dict[int, int]) -> int:
    """The most words that a thread stores between two cuts. `words`: of each node."""
    best: dict[int, int] = {}
    for start in (*graph.entries, *sorted(cuts)):
        stack = [start]
        while stack:
            node = stack[-1]
            inner = [each for each in graph.nodes[node].successors if each not in cuts]
            missing = [each for each in inner if each not in best]
            if missing:
                stack += missing
                continue
            best[node] = words.get(node, 0) + max((best[each] for each in inner), default=0)
            stack.pop()
    return max((best[start] for start in (*graph.entries, *cuts)), default=0)


def loops_without(graph: Graph, nodes: Collection[int]) -> bool:
    """Whether a thread can go round a loop that has none of some nodes."""
    left = [
        [] if number in nodes else [each for each in following if each not in nodes] for number, following in enumerate(graph.successors)
    ]
    return bool(retreating_targets(left, range(len(left))))


def idling(graph: Graph, cuts: set[int], acts: Callable[[int], bool]) -> set[int]:
    """The heads of loops that a thread can go round, perhaps for ever, by nodes that do not act."""
    idle = {number for number in range(len(graph.nodes)) if not acts(number)}
    return {head for head in cuts & idle if head in behind(graph.successors, (head,), idle)}
