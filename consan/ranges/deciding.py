"""Which branches decide what a kernel accesses.

An access matters, and so does each instruction whose result decides its address, its guard, or a branch that matters. A branch matters if
such an instruction is control dependent on it. All other branches are passed over: a wait that polls an mbarrier, work on shared memory
in some of the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import reached


def regions(graph: Graph, after: Sequence[int | None]) -> dict[int, set[int]]:
    """For each node that ends with a branch, the nodes up to the one that all ways pass. `after`: the post-dominators."""
    found = {}
    for number, node in enumerate(graph.nodes):
        if node.guard is not None or len(node.taken) > 1:
            found[number] = reached(graph.successors, node.successors, without={after[number]})
    return found


def deciding(branches: dict[int, set[int]], busy: Callable[[Collection[int]], set[int]]) -> set[int]:
    """The branches that matter. `busy`: the nodes with instructions that matter, given branches that do."""
    found = set[int]()
    while True:
        nodes = busy(found)
        new = {branch for branch, region in branches.items() if branch not in found and not nodes.isdisjoint(region)}
        if not new:
            return found
        found |= new
