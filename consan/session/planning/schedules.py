"""Effects of the schedule: whether what a kernel does may depend on it.

A launch whose threads observe nothing of each other does the same in each schedule (observations.py). Others are repeated on the virtual
machine (exploration.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan.dataclass import dataclass
from consan.instrument.findings import KINDS
from consan.reports.model import Dim3, Finding, KernelSummary, Report, Schedules
from consan.session.planning.observations import Observation, depends_on_schedule, leaves_the_same, observations

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

__all__ = ["RACES", "Explored", "KernelSchedules", "Stopwatch", "no_schedule_changes", "observations"]

_OfKernel = tuple[str, str]  # text and name
_MOST_SLOWER: Final = 8.0
RACES: Final = frozenset(each.name for each in KINDS.values() if each.conflicts)


class Stopwatch:
    """Seconds from now on, of the clock or of the processor, whichever are fewer: other work on the machine takes no schedules away."""

    def __init__(self) -> None:
        self._clock, self._processor = time.monotonic(), time.process_time()

    def __call__(self) -> float:
        """The seconds so far."""
        return min(time.monotonic() - self._clock, time.process_time() - self._processor)

    def of_clock(self, seconds: float) -> float:
        """Such seconds by the clock, which a launch is limited by: so many times more as it has shown so far, `_MOST_SLOWER` at most."""
        return seconds * min(max((time.monotonic() - self._clock) / max(self(), 1e-3), 1.0), _MOST_SLOWER)


@dataclass
class Explored:
    """The schedules of one kernel's launches."""

    schedules: int = 0
    observed: set[int] = field(default_factory=set)  # lines of the text that ran
    possible: set[tuple[int, int, bool]] = field(default_factory=set)  # of a line: who came, and whether early or late
    outcomes: set[tuple[int, int, bool]] = field(default_factory=set)  # those that were seen
    ended: str = ""  # why not all planned schedules have run


@dataclass
class KernelSchedules:
    """The session's knowledge of the schedules of its kernels."""

    explored: dict[_OfKernel, Explored] = field(default_factory=dict)
    shapes: set[tuple[str, str, Dim3, Dim3]] = field(default_factory=set)
    crossed: set[tuple[str, str, Dim3, Dim3]] = field(default_factory=set)  # whose stores may have come behind looks
    _observations: dict[tuple[str, str, int], list[Observation]] = field(default_factory=dict)

    def observed(self, prepared: Prepared, entry: str, threads: int) -> list[Observation]:
        """The instructions of a kernel that observe what others do, in CTAs of so many threads."""
        key = prepared.plain, entry, threads
        if key not in self._observations:
            instrumented = prepared.instrumented
            names = {each.name for each in instrumented.reachable(entry)}
            self._observations[key] = observations(instrumented.module, names, threads)
        return self._observations[key]

    def of(
        self, prepared: Prepared, kernel: KernelSummary, blocks: Collection[Dim3], findings: Iterable[Finding], unsettled: str
    ) -> Schedules | None:
        """The effects of the schedule on a kernel; None without launches. `blocks`: of these. `unsettled`: why that is not known."""
        if not blocks:
            return None
        why = unsettled or _unchecked(kernel)
        own = [each for each in findings if each.kernel == kernel.name]
        elsewhere = next((each.kind for each in own if each.seed is not None), "")
        why = f"only another schedule shows {elsewhere}" if elsewhere else why
        others = [each for each in own if each.kind not in RACES and each.severity == "error"]
        if others and not why:
            why = f"{others[0].kind} was found, after which threads may go on otherwise"
        racing = [access.ptx_line for each in own for access in each.accesses]
        if not why:
            found = (self._first(prepared, kernel.name, threads, racing) for threads in set(map(math.prod, blocks)))
            why = next(filter(None, found), "")
        return _described(why, self.explored.get((prepared.plain, kernel.name)))

    def _first(self, prepared: Prepared, entry: str, threads: int, racing: list[int]) -> str:
        """An observation from which something may follow, in words."""
        found = depends_on_schedule(prepared.instrumented.module, self.observed(prepared, entry, threads), racing)
        if found is None:
            return ""
        site = next((each for each in prepared.instrumented.sites if each.ptx_line == found.line), None)
        where = f"line {site.line}" if site is not None and site.line else f"PTX line {found.line}"
        return f"{found.opcode} at {where} observes other threads"

    def forget(self) -> None:
        """Start anew, for the next report."""
        self.explored.clear()
        self.shapes.clear()
        self.crossed.clear()


def _unchecked(kernel: KernelSummary) -> str:
    """The parts of a kernel that were not looked at: there may be races from which something follows."""
    gaps = (*kernel.missing, *kernel.global_gaps, *(f"{each} was left out" for each in kernel.excluded), *map(str, kernel.unmodelled))
    if kernel.engine != "record":
        return "called hooks see one run"
    return gaps[0] if gaps else "a launch was not checked" if kernel.unchecked else ""


def _described(why: str, explored: Explored | None) -> Schedules:
    if not why:
        return Schedules(holds=True)
    if explored is None:
        return Schedules(holds=False, why=why)
    return Schedules(
        holds=False, why=why, explored=explored.schedules, observations=len(explored.observed), outcomes=len(explored.outcomes),
        possible=len(explored.possible), ended=explored.ended,
    )  # fmt: skip


def no_schedule_changes(report: Report, prepared: Prepared, entry: str, block: Dim3) -> bool:
    """Whether a launch in each other schedule has this report, and leaves the same in memory."""
    if report.findings or not all(each.schedules and each.schedules.holds for each in report.kernels):
        return False
    instrumented = prepared.instrumented
    return leaves_the_same(instrumented.module, {each.name for each in instrumented.reachable(entry)}, math.prod(block))
