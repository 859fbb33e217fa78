"""Threads that leave a kernel while others come to further barriers: `if (i >= n) return;`.

Barriers do not wait for them, so the others still come to all barriers together. Nothing orders what a thread does behind its last barrier
with what others do behind later ones: such accesses are compared with all of the CTA.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import reached
from consan.prove.uniform import Uniformity


def staying(graph: Graph, barriers: frozenset[int]) -> frozenset[int]:
    """The nodes from which a barrier is reached."""
    edges = [list(each) for each in graph.successors]
    return frozenset(number for number in range(len(edges)) if number in barriers or barriers & reached(edges, edges[number]))


def last_nodes(uniform: Uniformity, stays: Collection[int], graph: Graph, cut: Sequence[Collection[int]]) -> frozenset[int]:
    """The nodes that a thread may come to behind its last barrier, where others come to more of them. `cut`: edges up to barriers."""
    branches = [node for node in stays if uniform.may_leave(node) and uniform.divides(node)]
    edges = [list(each) for each in graph.successors]
    behind = reached(edges, [target for node in branches for target in edges[node] if target not in stays])
    within = [list(each) for each in cut]
    before = {node for node in range(len(edges)) if node in branches or not reached(within, within[node]).isdisjoint(branches)}
    return frozenset(behind | before)
