"""Which branches decide what a kernel accesses, and which registers its nodes still read.

A branch matters if something that matters lies between it and the next node that all of its ways pass. All others are passed over: a wait
that polls an mbarrier, work on shared memory in some of the threads. What matters is an access, and what an access, its guard or a branch
that matters follows from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from consan.instrument.passes.flow import Graph, Key


def regions(graph: Graph, after: Sequence[int | None]) -> dict[int, set[int]]:
    """For each node that ends with a branch, the nodes up to the one that all ways pass. `after`: the post-dominators."""
    found = {}
    for number, node in enumerate(graph.nodes):
        if node.guard is not None or len(node.taken) > 1:
            found[number] = reached(graph, node.successors, after[number])
    return found


def reached(graph: Graph, starts: Iterable[int], stop: int | None) -> set[int]:
    """The nodes that ways from some nodes pass before they come to another one."""
    pending, found = [each for each in starts if each != stop], set[int]()
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += (each for each in graph.nodes[node].successors if each != stop)
    return found


def deciding(branches: dict[int, set[int]], busy: Callable[[Collection[int]], set[int]]) -> set[int]:
    """The branches that matter. `busy`: the nodes with something that matters, if some branches do."""
    found = set[int]()
    while True:
        nodes = busy(found)
        new = {branch for branch, region in branches.items() if branch not in found and not nodes.isdisjoint(region)}
        if not new:
            return found
        found |= new


def read_later(graph: Graph, uses: Sequence[Collection[Key]], makes: Sequence[Collection[Key]]) -> list[set[Key]]:
    """The registers that are read behind each node before they are written.

    `uses`: what a node reads before it writes it; `makes`: what it writes in any case.
    """
    found = [set[Key]() for _ in graph.nodes]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(found))):
            before = len(found[number])
            for each in graph.nodes[number].successors:
                found[number] |= (found[each] - set(makes[each])) | set(uses[each])
            changed = changed or len(found[number]) > before
    return found
