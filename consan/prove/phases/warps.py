"""Which accesses of one interval the threads of a warp make in order: those between which all of them pass `bar.warp.sync`.

Such a barrier counts if all lanes of a warp name each other there and come to it equally often, and no path of the interval leads back to
it. Then each lane passes it once in an interval, or no lane of the warp does, and an access of the warp that can only come before it is
ordered with one that can only come behind it (ISA "bar.warp.sync"). A copy (`cp.async`) comes before it if its thread has waited for it.
A barrier of all lanes that only some lanes of a warp come to could meet any other one: where there is one, none counts. Where paths lead
back to one, as in loops, these barriers divide intervals further for the threads of one warp, in a kernel without copies and mbarriers:
two of them are compared between the same two executions (intervals.py).

Whole warps take a branch whose condition follows from the number of the thread alone, and is the same for all lanes of each warp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import reached
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction
from consan.prove.copies import CopyProgress
from consan.prove.kernel import is_of_all_lanes
from consan.prove.loops.view import View
from consan.prove.solver import Formula
from consan.prove.step import ThreadAccess
from consan.prove.tables import WARP, ThreadTables
from consan.prove.uniform import Uniformity


class WarpOrder:
    """The barriers of warps of one kernel. `edges`: those within intervals. `uniform`: of a warp. `threads`: of a CTA.

    `divide`: whether they divide intervals.
    """

    def __init__(self, graph: Graph, edges: Sequence[Collection[int]], uniform: Uniformity, threads: int) -> None:
        places = list(_barriers(graph))
        self._graph = graph
        usable = threads % WARP == 0 and all(uniform.is_uniform(node) and is_of_all_lanes(each) for node, each in places)
        self._after = {node: reached([list(each) for each in edges], list(edges[node])) for node, _ in places if usable}
        self._barriers = [node for node, after in self._after.items() if node not in after]
        self.divide = usable and len(self._barriers) < len(places)  # in loops, they divide intervals further

    def holds(self, view: View, one: ThreadAccess, other: ThreadAccess, progress: CopyProgress) -> bool:
        """Whether two threads of a warp make two accesses of an interval in one order. `progress`: of the copies that it issues."""
        if not (_is_of_threads(one) and _is_of_threads(other)):
            return False
        return any(self._is_between(view, *pair, progress) for pair in ((one, other), (other, one)))

    def _is_between(self, view: View, one: ThreadAccess, other: ThreadAccess, progress: CopyProgress) -> bool:
        """Whether a barrier lies behind the one access, wherever that comes, and before the other one."""
        before, behind = one.place[0], other.place[0]
        return any(
            (before == node or before not in self._after[node])
            and behind != node
            and view.dominates(node, behind)
            and one.flight not in progress.before((node, len(self._graph.nodes[node].steps) - 1))
            for node in self._barriers
        )


def whole_branches(guards: Mapping[int, Formula | None], tables: ThreadTables) -> frozenset[int]:
    """The branches that do not part a warp, by their nodes. `guards`: the condition of each; None: it is not one condition."""
    found = set[int]()
    for node, condition in guards.items() if tables.threads % WARP == 0 else ():
        held: Any = None if condition is None else tables.of(condition)
        if held is not None:
            lanes = np.broadcast_to(np.asarray(held, bool), (tables.threads,)).reshape(-1, WARP)
            if (lanes == lanes[:, :1]).all():
                found.add(node)
    return frozenset(found)


def _barriers(graph: Graph) -> Iterator[tuple[int, Instruction]]:
    """The barriers of warps, with their nodes. One of all lanes ends its node (kernel.py)."""
    for number, node in enumerate(graph.nodes):
        yield from ((number, step.instruction) for step in node.steps if row_of(step.instruction).is_warp_barrier)


def is_plain(access: ThreadAccess) -> bool:
    """Whether an access takes place where its thread executes it, and sees what is ordered before it."""
    return _is_of_threads(access) and not access.is_copy


def _is_of_threads(access: ThreadAccess) -> bool:
    """The same, or it is one of `cp.async`."""
    return not (access.late or access.is_of_mbarrier or (access.own and not row_of(access.instruction).is_matrix_access))
