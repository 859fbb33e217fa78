"""Two outcomes of a race: runs of the kernel on the virtual machine in which one access comes first, and the other one, and what differs.

One run holds the thread of (1) before its access, another one that of (2); then come a few seeds. The kernels are those of the program,
without a record, and each run begins with the same memory. A kernel that observes what others do by other means than its races
(consan/session/planning/observations.py) is left out: its results may differ without them.

In a run other races come in another order, too: what is said is that the results of the two runs differ.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError
from consan.backends.cpu.engine.ordered import Ordered
from consan.backends.cpu.state.schedule import Schedule, for_seed
from consan.backends.virtual import VirtualBackend
from consan.dataclass import dataclass
from consan.instrument.findings import KINDS
from consan.reports.model import Access, Dim3, Finding, Report
from consan.reports.racing_value import Outcomes

__all__ = ["LONGEST", "TwoOutcomes", "VirtualBackend"]

SCHEDULES: Final = 6  # runs for a finding
FEWEST: Final = 2  # of a large kernel
MOST_INSTRUCTIONS: Final = 1_000_000  # of threads, in these runs
MOST_FINDINGS: Final = 3
LONGEST: Final = 10.0  # seconds, so that nobody waits long; what is bounded by work is the same on all machines
_RACES: Final = frozenset(each.name for each in KINDS.values() if each.conflicts)

Arrays = Sequence[tuple[str, npt.NDArray[Any]]]
Run = Callable[[Schedule], tuple[Arrays, int]]
"""Runs the kernel under a schedule: its buffers with their names, and the instructions that its threads have executed.
Raises ConsanError if it does not end."""


@dataclass
class TwoOutcomes:
    """The runs of one launch. `grid`, `block`: of it. `ends`: when they must end, as time.monotonic() has it."""

    run: Run
    grid: Dim3
    block: Dim3
    ends: float

    def shown(self, report: Report) -> Report:
        """The report, whose races say what differs."""
        self.ends = min(self.ends, time.monotonic() + LONGEST)
        asked = [each for each in report.active if _is_asked(each)][:MOST_FINDINGS]
        found = {id(each): self._of(each) for each in asked}
        return replace(report, findings=tuple(replace(each, outcomes=found.get(id(each))) for each in report.findings))

    def _of(self, finding: Finding) -> Outcomes | None:
        first: Arrays | None = None
        executed = 0
        for made, schedule in enumerate(itertools.islice(self._schedules(finding), SCHEDULES), 1):
            if time.monotonic() >= self.ends:
                return None
            try:
                arrays, more = self.run(schedule)
            except ConsanError:
                return None
            executed += more
            differs = None if first is None else _difference(first, arrays)
            if differs is not None:
                return replace(differs, schedules=made)
            first = arrays if first is None else first
            if made >= FEWEST and executed > MOST_INSTRUCTIONS:
                break
        return Outcomes(schedules=made)

    def _schedules(self, finding: Finding) -> Iterator[Schedule]:
        """Each access comes last once, then what seeds give."""
        one, other = finding.pair[:2]
        alone = (one.block, one.warp) == (other.block, other.warp)
        for access in (one, other):
            place = _linear(access.block, self.grid), _linear(access.thread, self.block)
            yield Ordered(access.ptx_line, *place, alone=alone, late=access.asynchronous is not None)
        yield from map(for_seed, itertools.count())


def _linear(place: Dim3 | None, extents: Dim3) -> int:
    x, y, z = place or (0, 0, 0)
    return x + extents[0] * (y + extents[1] * z)


def _is_asked(finding: Finding) -> bool:
    """Whether it is a race of two threads whose value may matter."""
    used = finding.value is None or bool(finding.value.end)
    return finding.kind in _RACES and finding.severity != "note" and used and len(finding.pair) > 1 and all(map(_is_placed, finding.pair))


def _is_placed(access: Access) -> bool:
    return access.thread is not None and access.block is not None and bool(access.ptx_line)


def _difference(one: Arrays, other: Arrays) -> Outcomes | None:
    """The first element that differs."""
    for (name, before), (_, after) in zip(one, other, strict=True):
        rows = [each.reshape(-1).view(np.uint8).reshape(each.size, -1) for each in (before, after)]
        differ = (rows[0] != rows[1]).any(axis=1).nonzero()[0]
        if len(differ):
            place = np.unravel_index(differ[0], before.shape)
            values = (str(each[place].item()) for each in (before, after))
            return Outcomes(name + "".join(f"[{index}]" for index in place), tuple(values))
    return None
