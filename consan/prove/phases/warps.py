"""Which accesses of one interval the threads of a warp make in order: those between which all of them pass `bar.warp.sync`.

Such a barrier counts if all lanes of a warp name each other there, all threads of the CTA come to it equally often, and no path of the
interval leads back to it. Then each thread passes it once in an interval, and an access of the warp that can only come before it is ordered
with one that can only come behind it (ISA "bar.warp.sync"). A barrier of all lanes that only some threads come to could meet any other one:
where there is one, none counts. Where paths lead back to one, as in loops, these barriers divide intervals further for the threads of one
warp, in a kernel without copies and mbarriers: two of them are compared between the same two executions (intervals.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import reached
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.prove.kernel import is_of_all_lanes
from consan.prove.loops.view import View
from consan.prove.step import ThreadAccess
from consan.prove.tables import WARP
from consan.prove.uniform import Uniformity


class WarpOrder:
    """The barriers of warps of one kernel. `edges`: those within intervals. `threads`: of a CTA."""

    def __init__(self, graph: Graph, edges: Sequence[Collection[int]], uniform: Uniformity, threads: int) -> None:
        places = list(_barriers(graph))
        usable = threads % WARP == 0 and all(uniform.is_uniform(node) and is_of_all_lanes(each) for node, each in places)
        self._after = {node: reached([list(each) for each in edges], list(edges[node])) for node, _ in places if usable}
        self._barriers = [node for node, after in self._after.items() if node not in after]
        self.divide = usable and len(self._barriers) < len(places)  # in loops, they divide intervals further

    def holds(self, view: View, one: ThreadAccess, other: ThreadAccess) -> bool:
        """Whether two threads of a warp make two accesses of an interval in one order."""
        return is_plain(one) and is_plain(other) and any(self._is_between(view, *pair) for pair in ((one, other), (other, one)))

    def _is_between(self, view: View, one: ThreadAccess, other: ThreadAccess) -> bool:
        """Whether a barrier lies behind the one access, wherever that comes, and before the other one."""
        before, behind = one.place[0], other.place[0]
        return any(
            (before == node or before not in self._after[node]) and behind != node and view.dominates(node, behind)
            for node in self._barriers
        )


def _barriers(graph: Graph) -> Iterator[tuple[int, Instruction]]:
    """The barriers of warps, with their nodes. One of all lanes ends its node (kernel.py)."""
    for number, node in enumerate(graph.nodes):
        yield from ((number, step.instruction) for step in node.steps if row_of(step.instruction).is_warp_barrier)


def is_plain(access: ThreadAccess) -> bool:
    """Whether an access takes place where its thread executes it, and sees what is ordered before it."""
    return not (access.is_copy or access.is_of_mbarrier or (access.own and not row_of(access.instruction).is_matrix_access))
