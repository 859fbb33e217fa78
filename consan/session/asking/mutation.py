"""The mutation score of a test suite: which synchronisation would its launches notice the absence of?

Each recorded launch is asked without each statement in turn, until one launch notices. Nothing runs again, and no kernel changes.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import TYPE_CHECKING

from consan.checker.judging.checked import Checked
from consan.checker.questions.advice import notes_of, notices, statements_of
from consan.checker.questions.questions import Questions
from consan.dataclass import dataclass
from consan.reports.source.places import located
from consan.session.asking.advice import MOST_EVENTS
from consan.session.executing.recording import ASKERS

if TYPE_CHECKING:
    from consan.instrument.sites import Site
    from consan.session.executing.launch_check import LaunchCheck
    from consan.session.modules.prepared import Prepared

Place = tuple[str, str, int, str]  # kernel, file, line (of the PTX, if there is no source), instruction


@dataclass
class Mutation:
    """The statements of all kernels of a run: noticed or not; None: no launch could show it."""

    noticed: dict[Place, bool | None] = field(default_factory=dict)

    def listen(self) -> None:
        """Ask each launch of this process from now on."""
        ASKERS.append(self.ask)

    def stop(self) -> None:
        """Ask no more."""
        ASKERS.remove(self.ask)

    def ask(self, prepared: Prepared, started: LaunchCheck, checked: Checked) -> None:
        """Ask a launch that was just checked."""
        known = notes_of(checked, isa=started.recorded.isa)
        questions = Questions(started.launch, started.recorded, started.launched, started.limit, most_events=MOST_EVENTS, known=known)
        entry = prepared.entries[started.launched.entry]
        for spots in statements_of(questions).values():
            place = _place(entry, questions.places.sites[questions.places[spots[0]].site])
            if not self.noticed.get(place):
                found = notices(questions, checked, spots)
                self.noticed[place] = self.noticed.get(place) if found is None else found

    def lines(self) -> list[str]:
        """The score, and what would not be noticed."""
        judged = {place: found for place, found in self.noticed.items() if found is not None}
        total = sum(judged.values())
        missed = [place for place, found in judged.items() if not found]
        unknown = [place for place, found in self.noticed.items() if found is None]
        score = f"{total} of {len(judged)} barriers, waits and fences: a test would notice if they were gone"
        return [
            score,
            *(f"  no test notices: {_words(place)}" for place in missed),
            *(f"  not known: {_words(place)}" for place in unknown),
        ]


def _place(entry: str, site: Site) -> Place:
    place = located(site)
    return (entry, str(place["file"]) if site.line else "", int(place["line"]) if site.line else site.ptx_line, site.opcode)


def _words(place: Place) -> str:
    entry, file, line, opcode = place
    return f"{opcode} at {os.path.basename(file)}:{line} in {entry}" if file else f"{opcode} at PTX line {line} of {entry}"
