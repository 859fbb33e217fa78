"""Which branches of a kernel decide what is executed: post-dominators and control dependence.

Ways that end in a trap do not count: they end the launch, and its record is lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from consan.instrument.isa import UNKNOWN, row_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.passes.flow import Graph


def post_dominators(graph: Graph) -> list[int | None]:
    """The next node that all ways to the end of the kernel pass; None: that end. Nodes from which a thread cannot exit have none."""
    count = len(graph.nodes)
    end, order, before = count, _backwards(graph), dict[int, int]()
    places = {node: place for place, node in enumerate(order)}
    before[end] = end
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            found: int | None = None
            for following in _onward(graph, node):
                if following in before and following in places:
                    found = following if found is None else _meet(found, following, before, places)
            if found is not None and before.get(node) != found:
                before[node], changed = found, True
    return [None if before.get(node, end) == end else before[node] for node in range(count)]


def _onward(graph: Graph, number: int) -> list[int]:
    """The nodes to which a thread may go from a node, the end included; traps are left out."""
    node, end = graph.nodes[number], len(graph.nodes)
    last = row_of(node.steps[-1].instruction) if node.steps else UNKNOWN
    leaves = last.leaves or (node.falls is None and not node.taken and not last.turns)
    return [*node.successors, *([end] if leaves else [])]


def _backwards(graph: Graph) -> list[int]:
    """The nodes from which a thread can reach the end, the end first: the reverse of a postorder of the reversed graph."""
    end = len(graph.nodes)
    before: dict[int, list[int]] = defaultdict(list)
    for node in range(end):
        for following in _onward(graph, node):
            before[following].append(node)
    found: list[int] = []
    seen, stack = {end}, [(end, iter(before[end]))]
    while stack:
        node, rest = stack[-1]
        way = next((each for each in rest if each not in seen), None)
        if way is None:
            found.append(node)
            stack.pop()
        else:
            seen.add(way)
            stack.append((way, iter(before[way])))
    return found[::-1]


def _meet(one: int, other: int, before: dict[int, int], places: dict[int, int]) -> int:
    while one != other:
        while places[one] > places[other]:
            one = before[one]
        while places[other] > places[one]:
            other = before[other]
    return one


def controls(graph: Graph, after: list[int | None]) -> list[set[int]]:
    """The nodes whose branches decide whether a node is reached."""
    end, found = len(graph.nodes), [set[int]() for _ in graph.nodes]
    reaches = set(_backwards(graph))
    for node in range(end):
        ways = [each for each in _onward(graph, node) if each in reaches]
        if len(set(ways)) < 2:
            continue
        stop = after[node]
        for way in ways:
            runner: int | None = None if way == end else way
            while runner is not None and runner != stop:
                found[runner].add(node)
                runner = after[runner]
    return found


def check_ends(graph: Graph, starts: frozenset[int]) -> None:
    """Raise `Unsupported` if a thread has an event in a loop that it cannot leave."""
    reaches = set(_backwards(graph))
    for number, node in enumerate(graph.nodes):
        if number not in reaches and any(step.instruction.start in starts for step in node.steps):
            raise Unsupported("an event in a loop without an end")


def rounds(graph: Graph, polls: Iterable[int], busy: set[int]) -> set[int]:
    """The nodes that a thread may pass from a poll to the same poll without an event in between, those of the polls included.

    `polls`: the nodes with one; `busy`: those with events.
    """
    found = set[int]()
    before: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for following in node.successors:
            before.setdefault(following, []).append(number)
    for poll in polls:
        onward = _reached(poll, lambda node: graph.nodes[node].successors, busy)
        between = onward & _reached(poll, lambda node: before.get(node, ()), busy)
        if between or poll in graph.nodes[poll].successors:
            found |= between | {poll}
    return found


def _reached(start: int, following: Callable[[int], Iterable[int]], busy: set[int]) -> set[int]:
    """The nodes to which a path without an event leads."""
    pending, found = [start], set[int]()
    while pending:
        new = [node for node in following(pending.pop()) if node not in busy and node not in found]
        found.update(new)
        pending += new
    return found
