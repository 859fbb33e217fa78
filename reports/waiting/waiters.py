"""Threads that wait, and for what, as one event from either source: a record of the device, or a warp of the virtual machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from consan.dataclass import dataclass
from consan.instrument.relations import Relations
from consan.reports.model import Dim3, Finding
from consan.reports.waiting.deadlocks import Phase, Poll, deadlock


@dataclass(frozen=True)
class Waiter:
    """Lanes of a warp that wait, and where. A field that is not known, or does not apply, is None."""

    block: Dim3
    warp: int
    lanes: int  # mask
    why: str
    place: Mapping[str, Any] = field(default_factory=dict)  # as the report shows it
    threads: int | None = None  # of all warps that wait for the same at the same place
    cluster_rank: int | None = None
    barrier: int | None = None  # number of a barrier of the CTA
    arrived: int | None = None
    expected: int | None = None
    phase: Phase | None = None  # of an mbarrier
    polls: tuple[Poll, ...] = ()
    polled: str = ""  # all of these, in words

    def as_dict(self) -> dict[str, Any]:
        """As the report has it."""
        known: dict[str, Any] = {"block": list(self.block), "warp": self.warp, "lanes": self.lanes}
        known |= {"threads": self.threads, "why": self.why, "cluster_rank": self.cluster_rank}
        known |= {"barrier": self.barrier, "arrived": self.arrived, "expected": self.expected}
        shown = {name: value for name, value in known.items() if value is not None}
        shown |= self.phase.as_dict("mbarrier") if self.phase is not None else {}
        return shown | ({"polls": self.polled} if self.polled else {}) | dict(self.place)


def deadlock_of(kernel: str, waiters: Sequence[Waiter], relations: Relations | None = None) -> Finding:
    """The deadlock in which they wait for each other. `relations`: what is known from the kernel's text."""
    phases = [waiter.phase for waiter in waiters if waiter.phase is not None]
    numbers = [waiter.barrier for waiter in waiters if waiter.barrier is not None]
    ranks = [waiter.cluster_rank for waiter in waiters if waiter.why == "cluster-barrier" and waiter.cluster_rank is not None]
    polls = [poll for waiter in waiters for poll in waiter.polls]
    return deadlock(kernel, [waiter.as_dict() for waiter in waiters], phases, numbers, ranks, polls, relations)
