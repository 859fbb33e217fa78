"""The loops of a part of a graph: the nodes that paths from a root lead to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from consan.instrument.control_flow import immediate_dominators
from consan.instrument.control_flow.paths import inverse, postorder, reached
from consan.prove.kernel import Unproven


class View:
    """Nodes in an order in which each comes behind those that lead to it, but for the edges back to the heads of loops."""

    def __init__(self, edges: Sequence[Collection[int]], root: int, lines: Sequence[int]) -> None:
        """`lines`: of the nodes in the PTX. Raises `Unproven` where a loop has two entries."""
        self.edges = edges
        back = inverse(edges)
        self.before = immediate_dominators(edges, root, back)
        self.order = list(postorder(edges, (root,)))[::-1]
        place = {node: number for number, node in enumerate(self.order)}
        tails: dict[int, list[int]] = {}
        for node in self.order:
            for target in edges[node]:
                if place[target] <= place[node]:
                    if not self.dominates(target, node):
                        raise Unproven("a loop has two entries", lines[node])
                    tails.setdefault(target, []).append(node)
        known = set(self.order)
        self.loops = {head: {head} | reached(back, ends, within=known, without={head}) for head, ends in tails.items()}

    def dominates(self, one: int, other: int) -> bool:
        """Whether all paths to a node pass another one."""
        while other != one and self.before[other] != other:
            other = self.before[other]
        return other == one

    def around(self, node: int) -> set[int]:
        """The heads of the loops that a node is in."""
        return {head for head, body in self.loops.items() if node in body}
