"""Which writes through the generic proxy a proxy fence of their thread follows, before the next barrier of the CTA (ISA, "Async proxy").

A bulk copy sees such a write if a barrier, or the order of its own thread, is between. A fence behind the barrier, by the thread of the
copy, is not looked for. For each write, all paths from it count: a fence with a guard may not be executed. What `cp.async` writes, it may
write behind the fence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from consan.instrument.control_flow import PathStep
from consan.instrument.isa import fenced_spaces, row_of
from consan.prove.kernel import ProvedKernel
from consan.prove.step import ThreadAccess

_Write = tuple[int, int, str]
"""Its node, the number of its step, and the memory."""
_MEMORIES = ("shared", "global")


class ProxyFences:
    """The fences of one kernel. `edges`: those within intervals; `roots`: where intervals begin."""

    def __init__(self, kernel: ProvedKernel, edges: Sequence[Collection[int]], roots: Sequence[int]) -> None:
        self._kernel, self._edges = kernel, edges
        self._begins: dict[int, frozenset[_Write]] = dict.fromkeys(roots, frozenset())
        self._before: dict[tuple[int, int], frozenset[_Write]] = {}
        self._unfenced = set[_Write]()
        pending = list(roots)
        while pending:
            node = pending.pop()
            after = self._through(node)
            if node in kernel.barriers:
                self._unfenced |= after
            for target in edges[node]:
                known = self._begins.get(target)
                if known is None or not after <= known:
                    self._begins[target] = after | (known or frozenset())
                    pending.append(target)

    def follow(self, write: ThreadAccess) -> bool:
        """Whether a fence follows a write before each barrier that its thread may come to."""
        written = _written(write)
        return written is not None and not write.is_copy and written not in self._unfenced

    def are_between(self, write: ThreadAccess, copy: ThreadAccess) -> bool:
        """Whether a fence is between a write and a later bulk copy of its thread."""
        return self.follow(write) and _written(write) not in self._before.get(copy.place, frozenset())

    def _through(self, node: int) -> frozenset[_Write]:
        found = self._begins[node]
        for number, step in enumerate(self._kernel.graph.nodes[node].steps):
            self._before[node, number] = found
            found = _behind(step, (node, number), found)
        return found


def _written(write: ThreadAccess) -> _Write | None:
    if write.base is None:
        return None
    return (*write.place, "shared" if write.base[0] == "shared" else "global")


def _behind(step: PathStep, place: tuple[int, int], before: frozenset[_Write]) -> frozenset[_Write]:
    """The writes without a fence behind a step."""
    if any(touch.writes for touch in row_of(step.instruction).accesses(step.instruction)):
        return before | {(*place, memory) for memory in _MEMORIES}
    fenced = fenced_spaces(step.instruction) if step.guard is None else frozenset[str]()
    return frozenset(each for each in before if each[-1] not in fenced)
