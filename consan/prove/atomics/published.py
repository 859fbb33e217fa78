"""Which accesses of a CTA come before a write of a word, whichever of its threads makes them.

A barrier that all threads pass once lies between. Or each path from the access leads to the write, and passes a barrier of all threads; all
threads come to the write's place, which is in no loop, and so equally often. Or the first thread makes both, in this order.

And what all know of a word that the first thread has read before a barrier: the condition under which it comes there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from consan.instrument.control_flow.paths import behind, reached
from consan.prove.atomics.first import FirstThread
from consan.prove.loops.view import View
from consan.prove.phases.warps import is_plain
from consan.prove.solver import Formula, both
from consan.prove.step import ThreadAccess
from consan.prove.uniform import Uniformity
from consan.prove.walk import PathState


class Published:
    """The accesses of one kernel. `cut`: the edges within intervals. `view`: of all nodes. `barriers`: the state at each."""

    def __init__(
        self, uniform: Uniformity, cut: Sequence[Collection[int]], view: View, first: FirstThread, barriers: Mapping[int, PathState]
    ) -> None:
        self._uniform, self._cut, self._view, self._first, self._barriers = uniform, cut, view, first, barriers
        self._since = dict[tuple[int, int], Formula]()
        self._known = dict[tuple[int, int], tuple[ThreadAccess, ThreadAccess, bool]]()

    def is_once(self, write: ThreadAccess) -> bool:
        """Whether a thread makes a write at most once."""
        node = write.place[0]
        return not write.rounds and node not in behind(self._view.edges, [node])

    def before(self, access: ThreadAccess, write: ThreadAccess) -> bool:
        """Whether an access of any thread of a CTA comes before the write of the first one."""
        key = id(access), id(write)
        if key not in self._known:
            self._known[key] = access, write, self._before(access, write)
        return self._known[key][-1]

    def since(self, access: ThreadAccess, read: ThreadAccess) -> Formula:
        """The condition of the first thread where an access of any thread of its CTA comes behind its last read by an instruction.

        It is that at barriers of all threads, in no loop, that each path to the access passes, and behind which no read comes.
        """
        key = access.place[0], read.place[0]
        if key not in self._since:
            self._since[key] = both(
                *(self._first.of(state.path) for node, state in self._barriers.items() if self._parts(node, key[1], key[0]))
            )
        return self._since[key]

    def _parts(self, node: int, before: int, after: int) -> bool:
        """Whether all threads of a CTA pass a barrier once, behind all that any of them does in one node, and before what is in another."""
        edges = self._view.edges
        later = behind(edges, [node])
        if before in later or node in later or not (self._uniform.is_uniform(node) and self._uniform.all_stay):
            return False
        return after not in reached([() if number == node else each for number, each in enumerate(edges)], [0])

    def _before(self, access: ThreadAccess, write: ThreadAccess) -> bool:
        here, there = access.place[0], write.place[0]
        if not is_plain(access) or not self.is_once(write):
            return False
        if here == there:
            in_order = access.place[1] < write.place[1]
            return in_order and self._first.is_the_first(access.path) and self._first.is_the_first(write.path)
        if any(self._parts(node, here, there) for node in self._barriers):
            return True
        if not self._uniform.after.sets[here] >> there & 1:
            return False
        if self._uniform.is_uniform(there) and there not in behind(self._cut, [here]):
            return True
        return self._first.is_the_first(access.path) and self._first.is_the_first(write.path)
