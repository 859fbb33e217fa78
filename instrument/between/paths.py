"""The edges between numbered vertices that a thread can take."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Guard
from consan.instrument.control_flow.paths import inverse

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
        return inverse(self.out)
