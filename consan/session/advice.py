"""Advice in a session: each recorded launch is asked which of its synchronisation it needs (consan/checker/advice.py)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from consan.checker.advice import Advised, Need, advise, notes_of
from consan.checker.changes import Change
from consan.checker.edits import Edit, Impossible, edits_of
from consan.checker.questions import Questions
from consan.checker.recorder import Checked
from consan.instrument.passes.static import static_findings
from consan.instrument.ptx import Module, parse
from consan.instrument.record.global_memory import Mode
from consan.instrument.record.reach import BarrierReach
from consan.reports.patches import edited
from consan.reports.places import located

if TYPE_CHECKING:
    from consan.session.prepared import Prepared
    from consan.session.session import Session
    from consan.session.started import Started

_REGISTERS = {"wgmma"}
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
    weaker: tuple[str, ...] = ()  # forms that serve as well
    edits: tuple[Edit, ...] = ()  # the kernel's PTX without it; empty if it is not claimed to be superfluous


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
        known = notes_of(checked, isa=recorded.isa)
        questions = Questions(started.launch, recorded, started.launched, started.limit, most_events=MOST_EVENTS, known=known)
        module = prepared.instrumented.module

        def registers(change: Change) -> bool:
            """Whether the text with a change has hazards on registers that it has not now."""
            try:
                text = edited(module.text, edits_of(module, questions.places, change))
            except Impossible:
                return True
            return len(static_findings(parse(text), _REGISTERS)) > len(static_findings(module, _REGISTERS))

        found = advise(questions, checked, lambda name: BarrierReach(functions[name], outer=outer, flags=flags), registers)
        self.lines += [_line(each, questions, module) for each in found]


def _line(advised: Advised, questions: Questions, module: Module) -> AdviceLine:
    site = questions.places.sites[advised.site]
    place = located(site)
    edits: tuple[Edit, ...] = ()
    if advised.need is Need.NOT_NEEDED:
        with contextlib.suppress(Impossible):
            edits = edits_of(module, questions.places, questions.places.left_out(advised.spots))
    return AdviceLine(
        site.ptx, str(place["file"]), int(place["line"]), site.ptx_line,
        advised.ran, advised.need.value, advised.why, advised.together, advised.weaker, edits,
    )  # fmt: skip
