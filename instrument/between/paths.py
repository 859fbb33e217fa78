"""Paths through numbered vertices: the edges that a thread can take, what is reachable, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from consan.instrument.passes.flow import Guard

END: Final = 0
"""The vertex that all returns lead to."""

ENTRY: Final = 1
"""The vertex where a thread begins."""

Vertices = set[int]


@dataclass(frozen=True)
class NodeExits:
    """The exits of a node: the guard of its final branch, the target of that branch, and the other successor (None: there is none)."""

    guard: Guard | None
    taken: tuple[int, ...]
    falls: int | None

    def targets(self, value: bool | None) -> list[int]:
        """The possible targets, given what is known of the guard's register."""
        taken, falls = self.taken or (END,), () if self.falls is None else (self.falls,)
        if self.guard is None:
            return list(falls or taken)
        return [*(() if value is not None and value != self.guard.value else taken), *(() if value == self.guard.value else falls)]


@dataclass
class Edges:
    """The edges that a thread can take, and their inverse. Its guards skip the instructions in `skipped` and execute those in `sure`."""

    out: list[list[int]]
    skipped: Vertices
    sure: Vertices

    @cached_property
    def into(self) -> list[list[int]]:
        """The inverse edges."""
        found: list[list[int]] = [[] for _ in self.out]
        for vertex, targets in enumerate(self.out):
            for target in targets:
                found[target].append(vertex)
        return found


def closure(edges: list[list[int]], sources: Iterable[int], blocked: Vertices) -> Vertices:
    """The vertices that are reachable from the sources. A blocked vertex is reached but not passed."""
    found: Vertices = set()
    pending = [target for vertex in sources for target in edges[vertex]]
    while pending:
        vertex = pending.pop()
        if vertex not in found:
            found.add(vertex)
            pending += () if vertex in blocked else edges[vertex]
    return found


def postorder(edges: list[list[int]], sources: Iterable[int], blocked: Vertices) -> list[int]:
    """The reachable vertices in postorder. A blocked vertex is reached but not passed."""
    done, seen = list[int](), set(sources)
    for source in sorted(seen):
        pending = [(source, iter(edges[source]))]
        while pending:
            vertex, targets = pending[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                done.append(vertex)
                pending.pop()
            else:
                seen.add(target)
                pending.append((target, iter(() if target in blocked else edges[target])))
    return done
