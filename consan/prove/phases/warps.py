"""Which accesses of one interval the threads of a warp make in order: those between which all of them pass `bar.warp.sync`.

Such a barrier counts if all lanes of a warp name each other there, all threads of the CTA come to it equally often, and no path of the
interval leads back to it. Then each thread passes it once in an interval, and an access of the warp that can only come before it is ordered
with one that can only come behind it (ISA "bar.warp.sync"). A barrier of all lanes that only some threads come to could meet any other one:
where there is one, none counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from consan.instrument.control_flow import Graph
from consan.instrument.control_flow.paths import reached
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate, Instruction
from consan.prove.loops.view import View
from consan.prove.step import ThreadAccess
from consan.prove.tables import WARP
from consan.prove.uniform import Uniformity

_ALL_LANES: Final = (1 << WARP) - 1


class WarpOrder:
    """The barriers of warps of one kernel. `edges`: those within intervals. `threads`: of a CTA."""

    def __init__(self, graph: Graph, edges: Sequence[Collection[int]], uniform: Uniformity, threads: int) -> None:
        places = list(_barriers(graph))
        usable = threads % WARP == 0 and all(uniform.is_uniform(node) and _is_of_all_lanes(each) for node, _, each in places)
        after = {node: reached([list(each) for each in edges], list(edges[node])) for node, _, _ in places if usable}
        self._barriers = [(node, step) for node, step, _ in places if usable and node not in after[node]]
        self._after = after

    def holds(self, view: View, one: ThreadAccess, other: ThreadAccess) -> bool:
        """Whether two threads of a warp make two accesses of an interval in one order."""
        return _is_plain(one) and _is_plain(other) and any(self._is_between(view, *pair) for pair in ((one, other), (other, one)))

    def _is_between(self, view: View, one: ThreadAccess, other: ThreadAccess) -> bool:
        """Whether a barrier lies behind the one access, wherever that comes, and before the other one."""
        (before, first), (behind, last) = one.place, other.place
        return any(
            (first < step if before == node else before not in self._after[node])
            and (step < last if behind == node else view.dominates(node, behind))
            for node, step in self._barriers
        )


def _barriers(graph: Graph) -> Iterator[tuple[int, int, Instruction]]:
    """The barriers of warps that may be of all lanes, with their nodes and places there."""
    for number, node in enumerate(graph.nodes):
        for place, step in enumerate(node.steps):
            if row_of(step.instruction).is_warp_barrier:
                yield number, place, step.instruction


def _is_of_all_lanes(instruction: Instruction) -> bool:
    (mask,) = instruction.operands
    return instruction.predicate is None and isinstance(mask, Immediate) and int(mask.value) & _ALL_LANES == _ALL_LANES


def _is_plain(access: ThreadAccess) -> bool:
    """Whether an access takes place where its thread executes it, and sees what is ordered before it."""
    return not (access.is_copy or access.is_of_mbarrier or (access.own and not row_of(access.instruction).is_matrix_access))
