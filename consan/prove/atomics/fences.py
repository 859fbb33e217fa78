"""Fences beside strong operations on words: a read and a fence behind it acquire, a fence and a write behind it release (ISA, "Release
and Acquire Patterns").

No path from the one to the other has a barrier or another access of global memory. So what is ordered by the fence is what an operation
with that meaning in its place would order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Guard, PathStep, written
from consan.instrument.control_flow.paths import inverse
from consan.instrument.isa import MemoryAccess, row_of
from consan.instrument.ptx import Instruction
from consan.prove.step import ThreadAccess

_BOTH_WAYS: Final = ("sc", "acq_rel")
_OF_ALL_CTAS: Final = ("gpu", "sys")


@dataclass(frozen=True)
class _Way:
    """A node that is still to be walked: some of its steps, and the guard of fences there that hold whenever the operation does."""

    node: int
    steps: tuple[PathStep, ...]
    guard: Guard | None


class WordFences:
    """The fences of one kernel."""

    def __init__(self, graph: Graph) -> None:
        self._nodes, self._ahead, self._back = graph.nodes, graph.successors, inverse(graph.successors)

    def acquires(self, access: ThreadAccess) -> bool:
        """Whether what comes behind an access is ordered behind what it has read."""
        return bool(_touch(access).acquires) or self._meets(access, self._ahead, 1)

    def releases(self, access: ThreadAccess) -> bool:
        """Whether what comes before an access is ordered before those that read what it writes."""
        return bool(_touch(access).releases) or self._meets(access, self._back, -1)

    def _meets(self, access: ThreadAccess, edges: Sequence[Sequence[int]], direction: int) -> bool:
        """Whether each way from an access meets a fence first."""
        number, place = access.place
        steps = self._nodes[number].steps
        left = steps[place + 1 :] if direction > 0 else steps[:place][::-1]
        pending, seen = [_Way(number, tuple(left), steps[place].guard)], set[tuple[int, Guard | None]]()
        while pending:
            way = pending.pop()
            met, guard = self._walked(way, access.instruction)
            if met is None:
                return False
            for node in () if met else edges[way.node]:
                if (node, guard) not in seen:
                    seen.add((node, guard))
                    pending.append(_Way(node, tuple(self._nodes[node].steps[::direction]), guard))
        return True

    def _walked(self, way: _Way, begin: Instruction) -> tuple[bool | None, Guard | None]:
        """Whether a way ends at a fence, or at the same access; None: it meets something else. And the guard that still holds behind it."""
        guard = way.guard
        for step in way.steps:
            if step.instruction is begin or (_is_fence(step.instruction) and step.guard in (None, guard)):
                return True, guard
            if not _is_private(step.instruction):
                return None, guard
            if guard is not None and guard.register in written(step.instruction):
                guard = None
        return False, guard


def _touch(access: ThreadAccess) -> MemoryAccess:
    return row_of(access.instruction).accesses(access.instruction)[0]


def _is_fence(instruction: Instruction) -> bool:
    """Whether an instruction is a fence for threads of other CTAs, of reads and of writes."""
    row = row_of(instruction)
    event = row.event(instruction)
    return bool(row.is_fence) and event.sem in _BOTH_WAYS and event.scope in _OF_ALL_CTAS


def _is_private(instruction: Instruction) -> bool:
    """Whether an instruction does nothing that other CTAs see, and waits for nobody."""
    row = row_of(instruction)
    known = row.is_arithmetic or row.is_of_addresses or row.branches or row.leaves or row.is_fence or row.is_ordinary
    return known and all(touch.in_shared or not touch.is_visible for touch in row.accesses(instruction))
