"""The parts that a session has collected for its next report, beside what its launches keep."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from consan.dataclass import dataclass
from consan.reports.model import Finding

if TYPE_CHECKING:
    from consan.session.modules.shadow import Drained


@dataclass
class ReportParts:
    """Since the last report. `found` and `drained`: of called hooks, as far as they were read back."""

    uninstrumented: dict[str, int] = field(default_factory=dict)  # launches by kernel
    notes: dict[str, None] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    drained: Drained | None = None

    def with_more(self, found: list[Finding], drained: Drained) -> tuple[list[Finding], Drained]:
        """The findings and counts with what was read back now."""
        return [*self.found, *found], drained if self.drained is None else self.drained.plus(drained)

    def forget(self) -> None:
        """Start afresh after a report."""
        self.uninstrumented.clear()
        self.notes.clear()
        self.found, self.drained = [], None
