"""Advice in a session: each recorded launch is asked which of its synchronisation it needs (consan/checker/advice.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from consan.checker.advice import Advised, advise
from consan.checker.questions import Questions
from consan.checker.recorder import Checked
from consan.instrument.record.global_memory import Mode
from consan.instrument.record.reach import BarrierReach
from consan.instrument.sites import Site
from consan.reports.places import located

if TYPE_CHECKING:
    from consan.session.prepared import Prepared
    from consan.session.recording import Started
    from consan.session.session import Session

MOST_EVENTS = 1 << 30  # lane events that may be replayed for all answers


@dataclass(frozen=True)
class AdviceLine:
    """One statement of the kernel, as the list has it."""

    ptx: str
    file: str
    line: int
    ptx_line: int
    ran: int  # executions by threads
    need: str
    why: str
    together: bool


@dataclass
class Advice:
    """The list for the launches of a session."""

    lines: list[AdviceLine] = field(default_factory=list)

    def listen(self, session: Session) -> None:
        """Ask each launch of a session."""
        session.recording.asker = self.ask

    def ask(self, prepared: Prepared, started: Started, checked: Checked) -> None:
        """Ask a launch that was just checked."""
        recorded = started.recorded
        functions = {function.name: function for function in prepared.instrumented.module.functions}
        outer, flags = recorded.mode is not Mode.OFF, recorded.mode is Mode.SYNCED
        questions = Questions(started.launch, recorded, started.launched, started.limit, most_events=MOST_EVENTS)
        found = advise(questions, checked, lambda name: BarrierReach(functions[name], outer=outer, flags=flags))
        self.lines += [_line(each, questions.places.sites[each.site]) for each in found]


def _line(advised: Advised, site: Site) -> AdviceLine:
    place = located(site)
    return AdviceLine(
        site.ptx, str(place["file"]), int(place["line"]), site.ptx_line, advised.ran, advised.need.value, advised.why, advised.together
    )
