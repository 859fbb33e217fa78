"""Paths through numbered nodes: what is reachable, in which order, and which nodes are in loops.

Nothing here knows instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

_N = TypeVar("_N", bound=Hashable)

Edges = Sequence[Collection[int]]
"""The successors of each node."""


def inverse(edges: Edges) -> list[list[int]]:
    """The predecessors of each node, in order; twice if two edges lead from the same one."""
    found: list[list[int]] = [[] for _ in edges]
    for node, targets in enumerate(edges):
        for target in targets:
            found[target].append(node)
    return found


def reached(edges: Edges, starts: Iterable[int], within: Container[int] | None = None, without: Container[int | None] = ()) -> set[int]:
    """Some nodes, and those that paths lead to from them. The paths stay among the nodes `within`, and pass none of `without`."""
    pending, seen = list(starts), set[int]()
    while pending:
        node = pending.pop()
        if node not in seen and node not in without and (within is None or node in within):
            seen.add(node)
            pending += edges[node]
    return seen


def behind(edges: Edges, starts: Iterable[int], within: Container[int] | None = None, without: Container[int | None] = ()) -> set[int]:
    """The nodes that paths of at least one edge lead to."""
    return reached(edges, [each for node in starts for each in edges[node]], within, without)


def closure(edges: Edges, starts: Iterable[int], blocked: Container[int]) -> set[int]:
    """The nodes that paths of at least one edge lead to. A blocked node is reached but not passed."""
    pending, seen = [each for node in starts for each in edges[node]], set[int]()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += () if node in blocked else edges[node]
    return seen


def repeats(following: Callable[[_N], Iterable[_N]], node: _N) -> bool:
    """Whether a path leads from a node, of any kind, back to it."""
    pending, seen = list(following(node)), set[_N]()
    while pending:
        other = pending.pop()
        if other == node:
            return True
        if other not in seen:
            seen.add(other)
            pending += following(other)
    return False


def has_cycle(edges: Edges, within: Iterable[int]) -> bool:
    """Whether a path among some nodes leads from one of them back to it."""
    left = set(within)
    while ends := {node for node in left if left.isdisjoint(edges[node])}:
        left -= ends
    return bool(left)


def postorder(edges: Edges, starts: Collection[int], blocked: Container[int] = ()) -> Iterator[int]:
    """The nodes that can be reached, each after those that it leads to (but for retreating edges), start by start.

    A blocked node is reached but not passed, unless it is a start.
    """
    seen = set(starts)
    for start in starts:
        yield from _visit(edges, start, seen, blocked)


def _visit(edges: Edges, start: int, seen: set[int], blocked: Container[int] = ()) -> Iterator[int]:
    path = [(start, iter(edges[start]))]
    while path:
        node, rest = path[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            path.pop()
            yield node
        else:
            seen.add(following)
            path.append((following, iter(() if following in blocked else edges[following])))


def components(edges: Edges, back: Edges) -> list[int]:
    """For each node a number that the nodes of its strongly connected component share (Kosaraju's algorithm). `back`: the inverse."""
    order, component, seen = list[int](), [0] * len(edges), set[int]()
    for start in range(len(edges)):
        if start not in seen:
            seen.add(start)
            order += _visit(edges, start, seen)
    seen.clear()
    for start in reversed(order):
        if start not in seen:
            seen.add(start)
            for member in _visit(back, start, seen):
                component[member] = start
    return component


def retreating_targets(edges: Edges, starts: Iterable[int]) -> set[int]:
    """The targets of retreating edges of a depth-first search: each cycle has one."""
    found, active, done = set[int](), set[int](), set[int]()
    for start in starts:
        stack = [(start, iter(edges[start]))]
        active.add(start)
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
                stack.append((following, iter(edges[following])))
    return found


def natural_loops(back: Edges, head: int) -> list[frozenset[int]]:
    """The loops with one head whose ways back come from below it in the text, from the shortest.

    These are the loop of the first way back, of the first two, and so on to all of them. `back`: the predecessors of each node.
    """
    tails = sorted(tail for tail in back[head] if tail >= head)
    return [frozenset({head} | reached(back, tails[:count], without={head})) for count in range(1, len(tails) + 1)]


def on_cycles(edges: Edges, back: Edges, starts: Iterable[int], without: Container[int]) -> set[int]:
    """The nodes of the paths from each start back to it, the starts included. Between the two they pass none of `without`."""
    found = set[int]()
    for start in starts:
        between = behind(edges, (start,), without=without) & behind(back, (start,), without=without)
        if between or start in edges[start]:
            found |= between | {start}
    return found
