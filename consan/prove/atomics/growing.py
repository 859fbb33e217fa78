"""Words that count rounds: each round of a loop, one CTA stores a larger number in its word, and others wait until it is large enough.

All threads of the CTA go through the loop together, and one instruction in it writes the word. What a thread does in a round before that
write, with a barrier of all threads between, comes before the writes of that round and of all later ones. So who finds a number in the word
that is not smaller than that of a round comes behind what the CTA did in that round before its write.

A barrier of all threads that each path through a round passes, up to an access, divides what the first thread knows of words in that
round from the access: the first thread passes it in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from consan.instrument.control_flow.paths import behind, reached
from consan.prove.atomics.first import FirstThread
from consan.prove.loops.view import View
from consan.prove.phases.warps import is_plain
from consan.prove.solver import Formula, both, z3
from consan.prove.step import StrongThreadAccess, ThreadAccess
from consan.prove.uniform import Uniformity
from consan.prove.walk import PathState

_LEAST: Final = 4  # bytes of a word that counts to 2^31


class Rounds:
    """The rounds of the loops of one kernel. `cut`: the edges within intervals. `view`: of all nodes. `barriers`: the state at each."""

    def __init__(
        self, uniform: Uniformity, cut: Sequence[Collection[int]], view: View, first: FirstThread, barriers: Mapping[int, PathState]
    ) -> None:
        self._uniform, self._cut, self._view, self._first, self._barriers = uniform, cut, view, first, barriers

    def before(self, access: ThreadAccess, write: ThreadAccess) -> bool:
        """Whether an access of any thread in a round comes before all writes of its CTA in that round and in later ones."""
        here, there, head = access.place[0], write.place[0], self._head(write)
        if head is None or not is_plain(access) or self._head(access) != head or here == there:
            return False
        passes = head not in behind(self._view.edges, [here], without={there}) and self._uniform.after.sets[here] >> there & 1
        return bool(passes) and self._is_passed_by_all(there) and there not in behind(self._cut, [here])

    def since(self, access: ThreadAccess) -> Formula:
        """The condition of the first thread in the round of an access of any thread of its CTA, which comes behind it."""
        head = self._head(access)
        known = (node for node in self._barriers if head is not None and self._divides(node, head, access.place[0]))
        return both(*(self._first.at_barrier(self._barriers[node].path) for node in known))

    def _divides(self, node: int, head: int, after: int) -> bool:
        """Whether all threads pass a barrier once in each round in which one of them comes to a node behind it."""
        if self._view.around(node) != {head} or not self._is_passed_by_all(node):
            return False
        body = self._view.loops[head]
        return node != after and after not in reached(self._view.edges, [head], within=body, without={node})

    def _is_passed_by_all(self, node: int) -> bool:
        return self._uniform.is_uniform(node) and self._uniform.all_stay

    def _head(self, access: ThreadAccess) -> int | None:
        """The head of the one loop that an access is in, if all threads of a CTA go through it together."""
        heads = self._view.around(access.place[0])
        head = next(iter(heads), None)
        together = len(heads) == len(access.rounds) == 1 and head is not None and self._uniform.is_uniform(head)
        return head if together else None


def grows(write: StrongThreadAccess) -> bool:
    """Whether what is stored in a round of a loop is larger than what was stored in the rounds before."""
    value = write.given[0] if len(write.given) == len(write.rounds) == 1 else None
    if value is None or value.base is not None or write.nbytes < _LEAST:
        return False
    (count,) = write.rounds
    step = z3.simplify(z3.substitute(value.term, (count, count + 1)) - value.term)
    return bool(z3.is_int_value(step) and step.as_long() > 0)
