"""Changes of a recorded launch, as data: synchronisation that is left out, added, moved or altered.

A thread's log names blocks, and a block's template its events. So a change says which events come in place of an event of a template. It is
applied to the templates before the replay, and no rule of the checker knows of it. The words of the logs stay as they are: a change must
not alter what the threads would have stored in them (consan/instrument/record/depends.py).

Not possible: an event where no block has one, and one whose operands no word and no constant gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.record.text.templates import Template
from consan.instrument.sites import Site

Spot = tuple[int, int]  # the number of a block, and that of an event in it
Change = Mapping[Spot, tuple[effects.Effect, ...]]  # what comes in place of the event


def applied(templates: Iterable[Template], change: Change) -> tuple[Template, ...]:
    """The templates of the changed kernel."""
    blocks = {block for block, _ in change}
    return tuple(_applied(template, change) if template.number in blocks else template for template in templates)


def _applied(template: Template, change: Change) -> Template:
    events = [new for place, event in enumerate(template.events) for new in change.get((template.number, place), (event,))]
    return replace(template, events=events)


@dataclass(frozen=True)
class Statement:
    """One access or synchronisation in a line of the source; an unrolled loop has several instructions for it. Without a source: one."""

    function: str
    place: tuple[object, ...]
    access: str  # or the opcode of a synchronising instruction


def line_of(site: Site) -> tuple[object, ...]:
    """The line of the kernel's own source that a site comes from, also through calls; without a source: the instruction."""
    outermost = site.inlined[-1] if site.inlined else site
    return (site.function, outermost.file, outermost.line) if site.line else (site.function, site.ptx_line)


def statement_of(site: Site) -> Statement:
    """The statement of a site."""
    place = (site.file, site.line, site.column, site.inlined) if site.line else (site.ptx_line,)
    return Statement(site.function, place, site.access if site.access != "none" else site.opcode)


class EventPlaces:
    """The templates of a module, and where their events are in its text."""

    def __init__(self, templates: Iterable[Template], sites: Iterable[Site]) -> None:
        self.templates = {template.number: template for template in templates}
        self.sites = {site.number: site for site in sites}
        self._statements = {number: statement_of(site) for number, site in self.sites.items()}
        self._lines = {number: line_of(site) for number, site in self.sites.items()}

    def __getitem__(self, spot: Spot) -> effects.Effect:
        return self.templates[spot[0]].events[spot[1]]

    def statement(self, site: int) -> Statement | None:
        """The statement of a site number; None for 0."""
        return self._statements.get(site)

    def spots(self, holds: Callable[[effects.Effect], bool]) -> list[Spot]:
        """The events of a kind, in the order of the text."""
        found = ((number, place) for number, each in self.templates.items() for place, event in enumerate(each.events) if holds(event))
        return sorted(found)

    def by_statement(self, holds: Callable[[effects.Effect], bool]) -> dict[Statement, list[Spot]]:
        """The same, by statement. Events without a site are left out."""
        found: dict[Statement, list[Spot]] = {}
        for spot in self.spots(holds):
            if statement := self.statement(self[spot].site):
                found.setdefault(statement, []).append(spot)
        return found

    def alike(self, site: int, *, whole: bool) -> frozenset[int]:
        """The sites of the same statement, or of its `whole` line."""
        names: Mapping[int, object] = self._lines if whole else self._statements
        return frozenset(number for number, name in names.items() if name == names[site])

    def runs(self, sites: frozenset[int]) -> Iterator[tuple[Spot, Spot]]:
        """The first and last event of each run of events at some sites: a new one begins where the kernel does something else."""
        for number, template in self.templates.items():
            inside = [event.site in sites for event in template.events]
            for place, here in enumerate(inside):
                if here and (place == 0 or not inside[place - 1]):
                    last = next((each for each in range(place, len(inside)) if not inside[each]), len(inside)) - 1
                    yield (number, place), (number, last)

    def is_entered_once(self, site: int, pairs: set[tuple[int, int]]) -> bool:
        """Whether runs of the line of a site are whole passes through it: no run goes on in the next block. `pairs`: blocks in a row."""
        sites = self.alike(site, whole=True)
        ends = [number for number, each in self.templates.items() if each.events and each.events[-1].site in sites]
        starts = [number for number, each in self.templates.items() if each.events and each.events[0].site in sites]
        return not any((one, other) in pairs for one in ends for other in starts)

    # -- changes -----------------------------------------------------------------------------------------------------------

    def left_out(self, spots: Iterable[Spot]) -> Change:
        """Without these events."""
        return dict.fromkeys(spots, ())

    def added(self, sites: frozenset[int], events: tuple[effects.Effect, ...], *, after: bool) -> Change:
        """With events before or after each run of some sites, by all threads that execute its block."""
        spots = (last if after else first for first, last in self.runs(sites))
        return {spot: (self[spot], *events) if after else (*events, self[spot]) for spot in spots}

    def altered(self, spots: Iterable[Spot], alter: Callable[[effects.Effect], effects.Effect]) -> Change:
        """With other operands."""
        found = {spot: (alter(self[spot]),) for spot in spots}
        return {spot: events for spot, events in found.items() if events[0] != self[spot]}

    def moved(
        self, spots: Iterable[Spot], neighbour: Callable[[effects.Effect], bool], *, after: bool, lead: tuple[effects.Effect, ...] = ()
    ) -> Change:
        """With events, and `lead` before them, behind the next ones of a kind; or before those before. Empty if there is none in the
        same stretch of text.
        """
        change: dict[Spot, tuple[effects.Effect, ...]] = {}
        for spot in spots:
            target = self._neighbour(spot, neighbour, 1 if after else -1)
            if target is None or target in change:
                return {}
            moved = self[spot]
            change[target] = (self[target], *lead, moved) if after else (moved, self[target])
            change[spot] = ()
        return change

    def _neighbour(self, spot: Spot, holds: Callable[[effects.Effect], bool], step: int) -> Spot | None:
        """The next event of a kind, the last of several in a row, also behind a condition's block.

        Words are those of one block, so an event that has some stays there.
        """
        number = spot[0]
        numbers = [number] if self[spot].has_words else [number, number + step, number + 2 * step]
        spots = [(each, at) for each in numbers if each in self.templates for at in range(len(self.templates[each].events))]
        behind = [each for each in spots if (each > spot if step > 0 else each < spot) and holds(self[each])]
        if not behind:
            return None
        block, at = min(behind) if step > 0 else max(behind)
        events = self.templates[block].events
        while 0 <= at + step < len(events) and holds(events[at + step]):
            at += step
        return block, at
