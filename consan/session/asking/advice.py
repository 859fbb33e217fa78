"""Advice in a session: each recorded launch is asked which of its synchronisation it needs (consan/checker/questions/advice.py)."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import field
from typing import TYPE_CHECKING, Any

from consan.checker.judging.checked import Checked
from consan.checker.questions.advice import Advised, Need, advise, notes_of, trouble_of
from consan.checker.questions.changes import Change, EventPlaces
from consan.checker.questions.questions import AskedLaunches, Questions
from consan.checker.questions.stages import Staged, staged
from consan.checker.repairs.edits import Edit, Impossible, edits_of
from consan.dataclass import dataclass
from consan.instrument.hazards.static import static_findings
from consan.instrument.ptx import Module, parse
from consan.instrument.record.analyses.reach import BarrierReach
from consan.instrument.record.families.global_memory import Mode
from consan.reports.formats.advised import STAGES, AdviceLine
from consan.reports.source.patches import edited
from consan.reports.source.places import located
from consan.reports.words.wording import place_of

if TYPE_CHECKING:
    from consan.instrument.sites import Site
    from consan.session.executing.launch_check import LaunchCheck
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

_REGISTERS = {"wgmma"}
MOST_EVENTS = 1 << 30  # lane events that may be replayed for all answers


@dataclass(frozen=True)
class Asked:
    """A recorded launch, and why nothing can be said of it."""

    questions: Questions
    prepared: Prepared
    trouble: str


@dataclass
class Advice:
    """The list for the launches of a session: those of one kernel are asked together."""

    launches: list[Asked] = field(default_factory=list)

    def listen(self, session: Session) -> None:
        """Ask each launch of a session."""
        session.recording.asker = self.ask

    def ask(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> None:
        """Keep a launch that was just checked. It is read here, while its memory is there."""
        recorded = started.recorded
        known = notes_of(checked, isa=recorded.isa)
        questions = Questions(started.launch, recorded, started.launched, started.limit, most_events=MOST_EVENTS, known=known)
        trouble = trouble_of(questions, checked)
        if not trouble:
            questions.ask({})
        assert questions.walked is not None
        self.launches.append(Asked(questions, prepared, trouble))

    @functools.cached_property
    def lines(self) -> list[AdviceLine]:
        """The list. No launch comes after it was asked for."""
        kernels: dict[tuple[int, int], list[Asked]] = {}
        for each in self.launches:
            kernels.setdefault((each.questions.launched.module, each.questions.launched.entry), []).append(each)
        return [line for launches in kernels.values() for line in _lines(launches)]


def _lines(launches: list[Asked]) -> list[AdviceLine]:
    recorded, prepared = launches[0].questions.recorded, launches[0].prepared
    module, kernel = prepared.instrumented.module, prepared.entries[launches[0].questions.launched.entry]
    functions = {function.name: function for function in module.functions}
    mode = recorded.kernels[launches[0].questions.launched.entry].mode
    global_races, flags = mode is not Mode.OFF, mode is Mode.SYNCED
    questions = AskedLaunches(tuple(each.questions for each in launches))
    trouble = next((each.trouble for each in launches if each.trouble), "")

    def registers(change: Change) -> bool:
        """Whether the text with a change has hazards on registers that it has not now."""
        try:
            text = edited(module.text, edits_of(module, questions.places, change))
        except Impossible:
            return True
        return len(static_findings(parse(text), _REGISTERS)) > len(static_findings(module, _REGISTERS))

    called = {function.name for function in prepared.instrumented.reachable(kernel)}
    found = advise(
        questions, called, trouble, lambda name: BarrierReach(functions[name], global_races=global_races, flags=flags), registers
    )
    lines = [_line(each, questions.places, module) for each in found]
    return lines if trouble else [*lines, *(_stages(each, questions.places) for each in staged(questions) if each.serve < each.ring.stages)]


def _stages(each: Staged, places: EventPlaces) -> AdviceLine:
    ring = each.ring
    serve = f"{ring.stages} stages of {ring.bytes:,} bytes: {each.serve} {'serve' if each.serve > 1 else 'serves'}"
    return AdviceLine(**_where(places.sites[ring.site]), ran=each.ran, need=STAGES, why=serve, together=False)


def _line(advised: Advised, places: EventPlaces, module: Module) -> AdviceLine:
    edits: tuple[Edit, ...] = ()
    if advised.need is Need.NOT_NEEDED:
        with contextlib.suppress(Impossible):
            edits = edits_of(module, places, places.left_out(advised.spots))
    pairs = dict.fromkeys(" and ".join(place_of(places.sites[number]) for number in pair) for pair in advised.pairs)
    return AdviceLine(
        **_where(places.sites[advised.site]),
        ran=advised.ran,
        need=advised.need.value,
        why=advised.why,
        together=advised.together,
        weaker=advised.weaker,
        edits=edits,
        instructions=advised.instructions,
        free=tuple(places.sites[number].ptx_line for number in advised.free),
        orders=tuple(pairs),
    )


def _where(site: Site) -> dict[str, Any]:
    place = located(site)
    return {
        "ptx": site.ptx, "file": str(place["file"]), "line": int(place["line"]), "ptx_line": site.ptx_line, "place": place_of(site)
    }  # fmt: skip
