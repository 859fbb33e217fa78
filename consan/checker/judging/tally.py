"""How much of a kernel was checked, in numbers."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from consan.dataclass import dataclass


@dataclass
class Tally:
    """How much of a kernel was checked; `events`: lane events that were replayed. `accesses`, `compared`: of global memory (grid.py)."""

    launches: int = 0
    ctas: int = 0
    histories: int = 0
    recalled: int = 0  # of these, how many an earlier process has replayed (earlier.py)
    events: int = 0
    accesses: int = 0
    compared: int = 0
    compared_ctas: int = 0  # CTAs whose accesses to global memory were compared
    proven_launches: int = 0  # launches whose accesses to global memory were all proven apart before they ran
    proven: int = 0  # these accesses

    def add(self, new: Tally) -> None:
        """Count another launch."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(new, each.name))


class ProvenLaunches(NamedTuple):
    """Launches whose accesses to global memory were all proven apart, with their accesses and their CTAs."""

    launches: int = 0
    accesses: int = 0
    ctas: int = 0

    def plus(self, other: ProvenLaunches) -> ProvenLaunches:
        """Both."""
        return ProvenLaunches(*map(sum, zip(self, other, strict=True)))
