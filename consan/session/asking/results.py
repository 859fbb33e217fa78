"""Results of a kernel with the fix that a replay has verified, in plain runs on the virtual machine.

With such a fix nothing is found. Whether the results still depend on the schedule, as where a barrier hides a lost update, runs without any
checks tell: each begins with the contents that the buffers had before the launch, and all must leave the same.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from consan._errors import ConsanError
from consan.checker.repairs.whole_barriers import own_barriers_in_text
from consan.dataclass import dataclass
from consan.reports.model import Report, VerifiedFix
from consan.reports.source.patches import fixed
from consan.reports.words.verified import with_fix

if TYPE_CHECKING:
    from consan.backends.base import Backend, Dim3

SCHEDULES: Final = 20
FEWEST_SCHEDULES: Final = 3  # of a large kernel
MOST_INSTRUCTIONS: Final = 40_000_000  # of threads, in all schedules
LONGEST: Final = 2.0  # seconds; then the results are not compared


class Buffers(Protocol):
    """The memory of a launch (consan/launching/placement.py)."""

    def refresh(self) -> None:
        """Bring back the contents that the buffers had before the launch."""
        ...

    def contents(self) -> list[bytes]:
        """Their contents now."""
        ...

    def put(self, contents: Sequence[bytes]) -> None:
        """Let them hold it again."""
        ...


@dataclass(frozen=True)
class PlainRuns:
    """A launch on the virtual machine that can be repeated: the name of its kernel, grid, block and arguments, and its options."""

    backend: Backend
    buffers: Buffers
    launch: tuple[str, Dim3, Dim3, Sequence[bytes]]
    how: Mapping[str, Any]

    def compared(self, report: Report, ptx: str) -> Report:
        """The report with what the runs say of its fixes: those under which results differ, or a run does not end, are none."""
        fixes = [finding.verified for finding in report.active if finding.verified and not finding.verified.rerun]
        if not fixes or not all(fix.edits for fix in fixes):
            return report
        before = self.buffers.contents()
        try:
            schedules = self._agreeing(
                fixed(ptx, [replace(fix, edits=own_barriers_in_text(fix.edits, ptx, self.launch[2])) for fix in fixes])
            )
        except ConsanError:  # no module that can be loaded
            return report
        finally:
            self.buffers.put(before)
        if schedules is None:
            return report
        judged = {id(each): with_fix(each, _with(each.verified, schedules)) for each in report.active if each.verified in fixes}
        return replace(report, findings=tuple(judged.get(id(each), each) for each in report.findings))

    def _agreeing(self, ptx: str) -> int | None:
        """In how many schedules the results are equal; 0: they are not, or a run does not end. None: there was no time."""
        ends, results, executed = time.monotonic() + LONGEST, set(), 0
        with self._loaded(ptx) as module:
            for seed in range(SCHEDULES):
                if seed == FEWEST_SCHEDULES and executed * SCHEDULES > seed * MOST_INSTRUCTIONS:
                    return seed
                self.buffers.refresh()
                left = max(ends - time.monotonic(), 1e-3)
                stats = self.backend.launch(module, *self.launch, seed=seed, timeout=left, **self.how)
                assert stats is not None, "of a virtual machine"
                if stats.timed_out:
                    return None
                executed += stats.instructions
                results.add(b"".join(self.buffers.contents()))
                if not stats.completed or len(results) > 1:
                    return 0
        return SCHEDULES

    @contextlib.contextmanager
    def _loaded(self, ptx: str) -> Iterator[Any]:
        module = self.backend.load(ptx, name="with a fix")
        try:
            yield module
        finally:
            self.backend.unload(module)


def _with(fix: VerifiedFix | None, schedules: int | None) -> VerifiedFix | None:
    return replace(fix, schedules=schedules) if fix is not None and schedules else None
