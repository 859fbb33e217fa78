"""Which accesses of a CTA come before a write of a word, whichever of its threads makes them.

Each path from the access leads to the write, and passes a barrier of all threads; all threads come to the write's place, which is in no
loop, and so equally often. Or the first thread makes both, in this order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from consan.instrument.control_flow.paths import behind
from consan.prove.atomics.first import FirstThread
from consan.prove.loops.view import View
from consan.prove.phases.warps import is_plain
from consan.prove.step import ThreadAccess
from consan.prove.uniform import Uniformity


class Published:
    """The accesses of one kernel. `cut`: the edges within intervals. `view`: of all nodes."""

    def __init__(self, uniform: Uniformity, cut: Sequence[Collection[int]], view: View, first: FirstThread) -> None:
        self._uniform, self._cut, self._view, self._first = uniform, cut, view, first
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

    def _before(self, access: ThreadAccess, write: ThreadAccess) -> bool:
        here, there = access.place[0], write.place[0]
        if not is_plain(access) or not self.is_once(write):
            return False
        if here == there:
            in_order = access.place[1] < write.place[1]
            return in_order and self._first.is_the_first(access.path) and self._first.is_the_first(write.path)
        if not self._uniform.after.sets[here] >> there & 1:
            return False
        if self._uniform.is_uniform(there) and there not in behind(self._cut, [here]):
            return True
        return self._first.is_the_first(access.path) and self._first.is_the_first(write.path)
