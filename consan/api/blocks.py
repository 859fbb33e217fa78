"""The blocks of `consan.check()`: which are open, the launches inside, and the report that a block becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.session.comparing.concurrent_launches import ConcurrentLaunches
from consan.session.comparing.streams import Stream


@dataclass
class CheckBlock:
    """The launches inside of a `check()`: their reports, and the launches that may run at the same time as later ones.

    `device`: of the launches that name none.
    """

    device: str = "auto"
    reports: list[Report] = field(default_factory=list)
    concurrent: ConcurrentLaunches = field(default_factory=ConcurrentLaunches)

    def take(self, report: Report) -> None:
        """A launch was made. If it is in no block, its caller gets the report at once."""
        self.reports.append(report)
        if not CHECKS:
            observed(report)


CHECKS: list[CheckBlock] = []
"""Those that are open: `launch` belongs to the innermost one."""

OBSERVERS: list[Callable[[Report], None]] = []
"""Called with each report that a caller gets from `launch` or `check`: pytest counts what tests judge by themselves."""


def observed(report: Report) -> None:
    """A caller gets this report."""
    for observer in OBSERVERS:
        observer(report)


def block_of(stream: Stream | None, programmatic: bool) -> CheckBlock:
    """The block of `check()` that a launch is in; one of its own if it is in none."""
    if stream is not None and not isinstance(stream, Stream):
        raise UsageError(f"stream={stream!r}: expected a consan.Stream")
    if programmatic and stream is None:
        raise UsageError("programmatic=True: needs a stream, in which another launch comes before")
    if stream is not None and not CHECKS:
        raise UsageError("stream=...: launches are compared inside of a block of consan.check()")
    block = CHECKS[-1] if CHECKS else CheckBlock()
    block.concurrent.place(stream, programmatic=programmatic)
    return block


class LiveReport:
    """The report of a `check()` block. It is empty inside the block: reading it there raises AttributeError."""

    def __init__(self) -> None:
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The report. Raises AttributeError while the block runs."""
        if self._report is None:
            raise AttributeError("the report is there once the block of consan.check() has ended")
        return self._report

    def become(self, report: Report) -> None:
        """The block has ended with this report."""
        self._report = report

    def __getattr__(self, name: str) -> Any:
        if self._report is None:
            raise AttributeError(f"{name}: the report is there once the block of consan.check() has ended")
        return getattr(self._report, name)

    def __str__(self) -> str:
        return "consan: still checking" if self._report is None else str(self._report)


def together(launched: list[Report], rest: Report) -> Report:
    """The reports of a block as one: those of `launch`, and that of the adapters if they saw a kernel."""
    if not launched:
        return rest
    through_adapters = rest.uninstrumented or any(kernel.launches for kernel in rest.kernels)
    return combine([*launched, rest] if through_adapters else launched, seed=rest.seed, policy=rest.policy)
