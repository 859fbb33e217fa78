"""The last wait before the second access of a missing wait, as the run shows it."""

from __future__ import annotations

from typing import Any

from consan.dataclass import dataclass
from consan.instrument.sites import Place, Site


def source_of(at: Place | Site) -> tuple[Any, ...]:
    """The place in the source; without line numbers the line of the PTX."""
    return (at.file, at.line, *at.inlined) if at.line else (at.ptx_line,)


@dataclass(frozen=True)
class WaitedFor:
    """The last wait of the thread of (2) at an mbarrier before it: its place, the mbarrier by name and offset, and the phase that was over.

    `signal`: the place of the instruction that ended that phase. Of a refill that a tcgen05 operation meets,
    these are the wait before (1). Places are those of the source: an unrolled loop has several instructions for each.
    """

    wait: tuple[Any, ...]
    name: str
    offset: int
    phase: int
    signal: tuple[Any, ...] | None
    by_first: bool  # the thread of (1) has executed it
    by_second: bool  # the warp of (2) has

    def is_wait(self, place: Place) -> bool:
        """Whether an instruction is that wait."""
        return source_of(place) == self.wait

    def is_signal(self, place: Place) -> bool:
        """Whether an instruction is what has ended that phase."""
        return source_of(place) == self.signal
