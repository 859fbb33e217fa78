"""Forms of repairs: an instruction is added at places that fit, moved across another one, altered or left out.

Each is a change (changes.py) and the steps that say it in words. Which forms fit which finding: repairs.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from consan.checker.questions.changes import Change, EventPlaces, Statement
from consan.checker.questions.pieces import Piece, words_of
from consan.checker.questions.questions import Questions
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.effects.model import leaves
from consan.instrument.findings import Kind, Reason

SYNCHRONISING = (effects.CtaBarrier, effects.ClusterBarrierArrive, effects.MbarrierArrive, effects.WarpSync)

_WRITE_FLAGS = (effects.Publish, effects.Atomic)
_OF_LANES = (effects.WarpSync, effects.CtaBarrier)
_REMOVABLE = (effects.CtaBarrier, effects.WarpSync, effects.ClusterBarrierArrive, effects.MbarrierInit, effects.MbarrierInval)

_ORDERED = (
    *(effects.Fence, effects.Observe, effects.Publish, effects.GlobalRead, effects.GlobalWrite),
    *(effects.MbarrierArrive, effects.MbarrierWait),
)

Alter = Callable[[effects.Effect], effects.Effect]
Holds = Callable[[effects.Effect], bool]


@dataclass(frozen=True)
class RepairStep:
    """One step of a repair: an instruction that is added, moved, altered or left out, and the statement beside which it stands."""

    action: str  # "add", "move", "alter", "leave-out"
    instruction: str
    where: str  # "before" or "after" the statement; "at" it
    site: int  # a site of the statement
    whole: bool = False  # its whole line is meant
    own: int = 0  # a site of what is moved


@dataclass(frozen=True)
class Repair:
    """Steps, and the change that they make."""

    steps: tuple[RepairStep, ...]
    change: Change

    def __add__(self, other: Repair) -> Repair | None:
        """Both; None if they concern the same events, but for one that adds before an event and one that adds behind it."""
        shared = {spot: _around(self.change[spot], other.change[spot]) for spot in self.change.keys() & other.change.keys()}
        return Repair((*self.steps, *other.steps), {**self.change, **other.change, **shared}) if all(shared.values()) else None


def _around(one: tuple[effects.Effect, ...], other: tuple[effects.Effect, ...]) -> tuple[effects.Effect, ...]:
    """The text that two changes add before and behind one event; empty if they are others."""
    before, behind = (one, other) if one and one[-1].site else (other, one)
    is_one = bool(before and behind) and before[-1] == behind[0]
    added = (*before[:-1], *behind[1:])
    return (*before, *behind[1:]) if is_one and not any(event.site for event in added) else ()


def only_orders(change: Change, places: EventPlaces) -> bool:
    """Whether a change only adds fences, or widens or strengthens what is there: the recorded run is one of the changed kernel, too."""
    return all(_ordered(places[spot], events) for spot, events in change.items())


def _ordered(old: effects.Effect, events: tuple[effects.Effect, ...]) -> bool:
    left = [event for event in events if event.site or not isinstance(event, effects.Fence)]  # what is added has no site
    return left == [old] or (isinstance(old, _ORDERED) and list(map(_bare, left)) == [_bare(old)])


def _bare(event: effects.Effect) -> effects.Effect:
    """An event without its order and its scope."""
    names = [leaf.name for leaf in leaves(type(event)) if leaf.means is bool]
    return event.changed(**dict.fromkeys(names, False), **({"order": 0} if hasattr(event, "order") else {}))


def _of(kinds: tuple[type[effects.Effect], ...]) -> Callable[[effects.Effect], bool]:
    return lambda event: isinstance(event, kinds)


def without(name: str) -> Alter:
    """Events that had something no longer have it."""
    return lambda event: event.changed(**{name: False}) if hasattr(event, name) else event


def is_arrival(event: effects.Effect) -> bool:
    """Whether threads arrive here without a wait."""
    return isinstance(event, effects.MbarrierArrive) or (isinstance(event, effects.CtaBarrier) and not event.waits)


class Forms:
    """The candidate repairs of one finding."""

    def __init__(self, questions: Questions, record: Any) -> None:
        self.questions, self.places, self.record = questions, questions.places, record
        self.clusters = math.prod(questions.launched.cluster) > 1
        sites = sorted({int(record["site"]), int(record["other_site"])} - {0})
        self.sites = [site for site in sites if self.places.statement(site)]
        self.kind, self.reason = Kind(int(record["kind"])), Reason(int(record["reason"]))

    @property
    def operation(self) -> int:
        """The asynchronous operation that a finding is of."""
        return int(self.record["operation"])

    @property
    def own_operation(self) -> int:
        """The same, for findings of one operation."""
        return int(self.record["own_operation"])

    @property
    def functions(self) -> set[str]:
        """The functions of the statements."""
        return {self.places.sites[site].function for site in self.sites}

    # -- added -------------------------------------------------------------------------------------------------------------

    def is_whole(self, site: int) -> bool:
        """Whether the line of a site is passed through at once."""
        return self.places.is_entered_once(site, self.questions.walked.pairs)

    def add(self, site: int, piece: Piece, *, after: bool, whole: bool | None = None) -> Repair:
        """Before or after the statement of a site, or its whole line."""
        whole = self.is_whole(site) if whole is None else whole
        where = "after" if after else "before"
        steps = tuple(RepairStep("add", words_of(event), where, site, whole) for event in piece)
        return Repair(steps, self.places.added(self.places.alike(site, whole=whole), piece, after=after))

    def at_accesses(self, piece: Piece) -> Iterator[Repair]:
        """Between the accesses as the text has them; then, for loops, around them."""
        first, last = self.sites[0], self.sites[-1]
        for whole in (True, False):
            for site, after in ((last, False), (first, True), (first, False), (last, True)):
                if not whole or self.is_whole(site):
                    yield self.add(site, piece, after=after, whole=whole)

    def at_both(self, piece: Piece) -> Iterator[Repair]:
        """At both accesses, or where threads signal: for accesses in branches that different warps take."""
        first, last = self.sites[0], self.sites[-1]
        ones = [*self._around(first), *(each for site in self.conflicts() for each in self._around(site))]
        others = [*self._around(last), *(each for site in self.conflicts() for each in self._around(site))]
        for one, one_after in ones:
            for other, other_after in others:
                both = self.add(one, piece, after=one_after) + self.add(other, piece, after=other_after) if one < other else None
                if both:
                    yield both

    def around(self, piece: Piece) -> Iterator[Repair]:
        """Before and behind one access: where it is the next turn's too."""
        for site in (self.sites[-1], self.sites[0]):
            both = self.add(site, piece, after=False) + self.add(site, piece, after=True)
            if both:
                yield both

    def _around(self, site: int) -> tuple[tuple[int, bool], ...]:
        return (site, True), (site, False)

    def between(self, piece: Piece, *, everywhere: bool = False) -> Iterator[Repair]:
        """At other statements: those between the accesses, or all of the kernel."""
        low, high = self.sites[0], self.sites[-1]
        firsts: dict[Statement, int] = {}
        for number, site in self.places.sites.items():
            statement = self.places.statement(number)
            if statement and site.function in self.functions and (everywhere or low == high or low < number < high):
                firsts.setdefault(statement, number)
        for number in firsts.values():
            yield self.add(number, piece, after=False)
            yield self.add(number, piece, after=True)

    def conflicts(self) -> list[int]:
        """A site of each statement where threads meet or signal."""
        found = self.places.by_statement(lambda event: isinstance(event, SYNCHRONISING))
        return [self.places[spots[0]].site for statement, spots in found.items() if statement.function in self.functions]

    def at_synchronisation(self, piece: Piece, *, after: bool) -> Iterator[Repair]:
        """Before or after those."""
        for site in self.conflicts():
            yield self.add(site, piece, after=after)

    def before_fences(self, piece: Piece) -> Iterator[Repair]:
        """Before each proxy fence, which is to cover what the piece waits for."""
        for spots in self.places.by_statement(_of((effects.ProxyFence,))).values():
            yield self.add(self.places[spots[0]].site, piece, after=False)

    def at_flags(self, piece: Piece) -> Iterator[Repair]:
        """Before each statement that may write a flag, and behind the reads of one: before the lanes meet."""
        for kinds in (_WRITE_FLAGS, _OF_LANES):
            for spots in self.places.by_statement(_of(kinds)).values():
                yield self.add(self.places[spots[0]].site, piece, after=False)

    def arriving(self) -> set[Statement]:
        """The statements that arrive without a wait."""
        return set(self.places.by_statement(is_arrival))

    def waiting(self) -> set[Statement]:
        """The barriers at which threads of the CTA wait."""
        return set(self.places.by_statement(lambda event: isinstance(event, effects.CtaBarrier) and event.waits))

    def _is_removable(self, event: effects.Effect) -> bool:
        """Whether an instruction does nothing but synchronise: its result, if it has one, is thrown away."""
        _, _, operands = self.places.sites[event.site].ptx.partition(self.opcode(event))
        is_arrival = isinstance(event, effects.MbarrierArrive) and operands.lstrip().startswith("_")
        return is_arrival or (isinstance(event, _REMOVABLE) and ".red" not in self.opcode(event))

    # -- altered, moved, left out ------------------------------------------------------------------------------------------

    def altered(self, kinds: Iterable[type[effects.Effect]], alter: Alter, words: Callable[[effects.Effect], str]) -> Iterator[Repair]:
        """Other operands, at one statement at a time."""
        wanted = set(kinds)
        for spots in self.places.by_statement(lambda event: type(event) in wanted).values():
            event = self.places[spots[0]]
            change = self.places.altered(spots, alter)
            if change:
                yield Repair((RepairStep("alter", words(alter(event)), "at", event.site),), change)

    def opcode(self, event: effects.Effect) -> str:
        """The opcode of an event of the kernel."""
        return self.places.sites[event.site].opcode

    def moved(self, holds: Holds, neighbour: Holds, lead: Piece = ()) -> Iterator[Repair]:
        """Instructions for which `holds`, behind or before the next event for which `neighbour` does; or behind it and `lead`."""
        for spots in self.places.by_statement(holds).values():
            event = self.places[spots[0]]
            for after in (True,) if lead else (False, True):
                change = self.places.moved(spots, neighbour, after=after, lead=lead)
                target = next((spot for spot in change if spot not in spots), None)
                if target is not None:
                    where, site = "after" if after else "before", self.places[target].site
                    added = tuple(RepairStep("add", words_of(each), where, site) for each in lead)
                    yield Repair((*added, RepairStep("move", self.opcode(event), where, site, own=event.site)), change)

    def moved_across(self, kind: type[effects.Effect], over: tuple[type[effects.Effect], ...] = (effects.CtaBarrier,)) -> Iterator[Repair]:
        """Instructions of a kind, across those of other kinds."""
        if kind not in over:
            yield from self.moved(lambda event: isinstance(event, kind), lambda other: isinstance(other, over))

    def left_out(self, site: int) -> Repair:
        """Without the statement of a site; no change if it does more than synchronise, or if no other statement arrives."""
        statement = self.places.statement(site)
        spots = self.places.spots(lambda event: self.places.statement(event.site) == statement)
        if self.arriving() == {statement} or not all(self._is_removable(self.places[spot]) for spot in spots):
            spots = []
        return Repair((RepairStep("leave-out", self.places.sites[site].opcode, "at", site),), self.places.left_out(spots))
