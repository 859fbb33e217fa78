"""Dominators, post-dominators and control dependence.

Sources: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm"; Ferrante, Ottenstein, Warren, "The Program Dependence Graph".
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from consan.instrument.control_flow.paths import Edges, inverse, postorder


def immediate_dominators(edges: Edges, root: int, back: Edges | None = None) -> dict[int, int]:
    """The nearest other node that all paths from the root to a node pass; the root has itself. Only of nodes that the root leads to.

    `back`: the inverse of the edges, if it is known.
    """
    back = inverse(edges) if back is None else back
    order = list(postorder(edges, (root,)))[::-1]
    places = {node: place for place, node in enumerate(order)}
    found, changed = {root: root}, True
    while changed:
        changed = False
        for node in order[1:]:
            best: int | None = None
            for before in back[node]:
                if before in found:
                    best = before if best is None else _common(best, before, found, places)
            assert best is not None
            if found.get(node) != best:
                found[node], changed = best, True
    return found


def _common(one: int, other: int, found: dict[int, int], places: dict[int, int]) -> int:
    """The nearest node that dominates both."""
    while one != other:
        while places[one] > places[other]:
            one = found[one]
        while places[other] > places[one]:
            other = found[other]
    return one


class PostDominators:
    """The nodes that all paths from a node to the end of its function pass, and the branches that decide which nodes are reached.

    `leaving`: the nodes in which a thread may leave the function. Paths that do not come to one of them do not count: they end in a trap,
    which ends the launch and takes its log with it, or never.
    """

    def __init__(self, edges: Edges, leaving: Collection[int]) -> None:
        self._end = len(edges)
        self._onward = [[*targets, self._end] if node in leaving else list(targets) for node, targets in enumerate(edges)]
        self._found = immediate_dominators(inverse([*self._onward, []]), self._end, [*self._onward, []])

    def leads_to_end(self, node: int) -> bool:
        """Whether a thread may come from a node to the end."""
        return node in self._found

    @cached_property
    def immediate(self) -> list[int | None]:
        """The nearest post-dominator of each node but itself. None: the end, or no path leads there."""
        nearest = (self._found.get(node, self._end) for node in range(self._end))
        return [None if each == self._end else each for each in nearest]

    @cached_property
    def sets(self) -> list[int]:
        """The post-dominators of each node, itself included, as bits. All nodes, if no path leads to the end."""
        found = {self._end: 0}
        for start in range(self._end):
            chain, node = [], start
            while node in self._found and node not in found:
                chain.append(node)
                node = self._found[node]
            for each in reversed(chain):
                found[each] = found[self._found[each]] | 1 << each
        return [found.get(node, (1 << self._end) - 1) for node in range(self._end)]

    @cached_property
    def control_dependence(self) -> list[set[int]]:
        """The nodes whose branches decide whether a node is reached. A loop's branch decides whether it is reached again."""
        found, after = [set[int]() for _ in range(self._end)], self.immediate
        for branch, targets in enumerate(self._onward):
            onward = {each for each in targets if each in self._found}
            for target in onward if len(onward) > 1 else ():
                node = None if target == self._end else target
                while node is not None and node != after[branch]:
                    found[node].add(branch)
                    node = after[node]
        return found
