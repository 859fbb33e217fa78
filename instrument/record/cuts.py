"""The points at which a kernel checks that its log has room: at the targets of retreating edges of its control-flow graph.

Every cycle has such a target, whichever order the depth-first search takes, so the number of words between two cuts is bounded: it is
the longest path through the graph without the retreating edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from consan.instrument.passes.flow import Graph


def cut_nodes(graph: Graph) -> set[int]:
    """The targets of retreating edges of a depth-first search."""
    found, active, done = set[int](), set[int](), set[int]()
    for entry in graph.entries:
        stack: list[tuple[int, Iterator[int]]] = [(entry, iter(graph.nodes[entry].successors))]
        active.add(entry)
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                active.discard(node)
                done.add(node)
                stack.pop()
            elif following in active:
                found.add(following)
            elif following not in done:
                active.add(following)
                stack.append((following, iter(graph.nodes[following].successors)))
    return found


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


def can_idle(graph: Graph, start: int, acts: Callable[[int], bool]) -> bool:
    """Whether a thread can go round a loop, perhaps for ever, by nodes that do not act. `start`: the loop's head."""
    pending, seen = [start], set[int]()
    while pending:
        node = pending.pop()
        if node in seen or acts(node):
            continue
        seen.add(node)
        following = graph.nodes[node].successors
        if start in following:
            return True
        pending += following
    return False
