"""The most words that a thread of a launch stores in its log, by the text, its parameters, its grid and its block.

A walk (walk.py) counts the words of the nodes that a path passes. Where loaded values decide, all that lies up to where the ways meet
counts, if no loop there stores words. Else both ways are taken, and the one with more words stands for both where they come together.

Not bounded: loops with words whose rounds follow from loaded values, and kernels that call.
"""

from __future__ import annotations

import functools
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import BasicBlock, graph_of
from consan.instrument.control_flow.paths import behind
from consan.ranges.deciding import regions
from consan.ranges.forms import NotProven
from consan.ranges.iterations import Registers
from consan.ranges.proof import paths_of
from consan.ranges.slices import Slice
from consan.ranges.walk import LaunchExtents, Path, Walk, are_same

MOST_STEPS: Final = 4_000  # of all paths: the program waits for it, before the first launch of a shape
_MOST_STATES: Final = 8  # of paths at a branch that loaded values decide


@dataclass(frozen=True)
class _Seen:
    """The registers of a path that came to a branch, and its words."""

    registers: Registers
    words: int


def most_words(kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents) -> int:
    """The most words of a thread. `kernel`: made for words. Raises `NotProven` where they are not bounded."""
    while (paths := paths_of(kernel, parameters, shape, {}, _WordWalk)) is None:
        pass  # a pointer is a number from now on
    return max((path.words for path in paths), default=0)


class _WordWalk(Walk):
    @property
    def most_steps(self) -> int:
        return MOST_STEPS

    @functools.cached_property
    def _regions(self) -> dict[int, set[int]]:
        return regions(graph_of(self._kernel.function), self._kernel.after)

    def _ways(self, path: Path, node: BasicBlock) -> tuple[int, ...]:
        if len(node.successors) < 2 or (node.guard is not None and path.registers.get(node.guard.register) is not None):
            return super()._ways(path, node)
        words = self._in_any_way[path.node]
        if words is None:
            return node.successors if self._is_new(path, node) else ()
        path.words += words
        for number in self._regions[path.node]:
            for key in (key for step in self._kernel.steps[number] for key in step.written):
                path.registers.pop(key, None)
        return self._behind(path.node)

    @functools.cached_property
    def _in_any_way(self) -> dict[int, int | None]:
        """By branch: the words of all nodes up to where its ways meet. None: a loop there stores some."""
        return {branch: self._outside_loops(region) for branch, region in self._regions.items() if branch in self._kernel.deciding}

    def _outside_loops(self, region: set[int]) -> int | None:
        stored, edges = self._kernel.stored, [node.successors for node in self._kernel.nodes]
        marked = [number for number in region if stored.get(number)]
        if any(number in behind(edges, (number,), within=region) for number in marked):
            return None
        return sum(stored[number] for number in marked)

    def _is_new(self, path: Path, node: BasicBlock) -> bool:
        """Whether no path with as many words was at this branch with what this one still reads. Raises `NotProven`."""
        place = path.node, path.leads, path.ctas.tobytes(), path.threads.tobytes()
        states = self._words_seen.setdefault(place, [])
        state = {key: value for key in self._kernel.later[path.node] if (value := path.registers.get(key)) is not None}
        if any(path.words <= each.words and are_same(state, each.registers) for each in states):
            return False
        states.append(_Seen(state, path.words))
        if len(states) > _MOST_STATES:
            raise NotProven("how many words are stored follows from loaded values", never=True)
        return True

    @functools.cached_property
    def _words_seen(self) -> dict[tuple[int, bool | None, bytes, bytes], list[_Seen]]:
        return {}
