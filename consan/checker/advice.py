"""Which synchronisation of a recorded launch nothing that was recorded needs: each statement is left out in a replay.

A statement is *needed* if the replay without it finds something, or cannot go on. What is not needed alone may be needed once another one
is gone; so those that are not needed together are found one after the other, the one that ran most often first.

A needed one may have a weaker form that serves (weaker.py). Registers of `wgmma` are judged by the text with the change.

Not judged: arrivals, commits, and what has anything in its reach that the log does not hold (reach.py).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from consan.checker.changes import Change, Spot, Statement
from consan.checker.questions import Questions
from consan.checker.recorder import Checked
from consan.checker.uniting import Key
from consan.checker.weaker import weaker
from consan.instrument.abi.events import FindingFlags, Kind
from consan.instrument.record.reach import BarrierReach
from consan.instrument.record.templates import Event, Flag, TemplateEvent

_WAITS = {Event.COPY_WAIT, Event.BULK_WAIT, Event.MBARRIER_WAIT, Event.CLUSTER_WAIT}
_FENCES = {Event.PROXY_FENCE, Event.FENCE, Event.INITS_FENCE, Event.TENSOR_FENCE}
_OF_REGISTERS = {Event.TENSOR_WAIT: "registers of tcgen05 may need it"}
_LISTED = _WAITS | _FENCES | _OF_REGISTERS.keys() | {Event.BARRIER, Event.WARP_BARRIER, Event.PRODUCT_WAIT}
_CLUSTER = "its arrival and its wait belong together"


class Need(enum.Enum):
    """Whether a statement is needed."""

    NEEDED = "needed"
    NOT_NEEDED = "not needed"
    NOT_ASSESSED = "not assessed"


@dataclass(frozen=True)
class Advised:
    """One statement. `ran`: executions by threads; `together`: not needed even where the others with this mark are gone."""

    site: int
    ran: int
    need: Need
    why: str = ""
    together: bool = False
    weaker: tuple[str, ...] = ()  # forms that serve as well
    spots: tuple[Spot, ...] = ()


def advise(
    questions: Questions, checked: Checked, reach: Callable[[str], BarrierReach], registers: Callable[[Change], bool] = lambda _: True
) -> list[Advised]:
    """All statements that synchronise, in the order of the text. `reach`: of a kernel, by its name. `registers`: whether the text with a
    change uses registers of `wgmma` too early.
    """
    places, walked = questions.places, questions.walked
    found = statements_of(questions)
    trouble = _trouble(questions, checked)
    advised: dict[Statement, Advised] = {}
    for statement, spots in found.items():
        site, ran = places[spots[0]].site, sum(map(walked.executions, spots))
        why = trouble or _obstacle(questions, spots, reach(statement.function))
        need, why = (Need.NOT_ASSESSED, why) if why else _asked(questions, spots, registers)
        forms = _serving(questions, spots, registers) if need is Need.NEEDED else ()
        advised[statement] = Advised(site, ran, need, why, weaker=forms, spots=tuple(spots))
    free = [statement for statement, each in advised.items() if each.need is Need.NOT_NEEDED]
    for statement in _together(questions, registers, {each: found[each] for each in sorted(free, key=lambda each: -advised[each].ran)}):
        advised[statement] = replace(advised[statement], together=True)
    return list(advised.values())


def statements_of(questions: Questions) -> dict[Statement, list[Spot]]:
    """The statements that synchronise and that ran."""
    found = questions.places.by_statement(lambda event: event.kind in _LISTED and not _is_arrival(event))
    return {statement: spots for statement, spots in found.items() if any(map(questions.walked.executions, spots))}


def notices(questions: Questions, checked: Checked, spots: list[Spot]) -> bool | None:
    """Whether the launch would show that a statement is gone; None if that cannot be told."""
    if _trouble(questions, checked) or questions.exhausted:
        return None
    answer = questions.ask(questions.places.left_out(spots))
    return bool(answer.found or answer.troubles)


def _is_arrival(event: TemplateEvent) -> bool:
    return event.kind == Event.BARRIER and not event.flags & Flag.WAITS


def notes_of(checked: Checked, *, isa: bool) -> frozenset[Key]:
    """The findings that are no errors: threads store the same value. `isa`: the policy for which they are."""
    return frozenset(key for key in checked.keys if not isa and key[0] == Kind.DATA_RACE and key[1] & FindingFlags.SAME_VALUE)


def _trouble(questions: Questions, checked: Checked) -> str:
    """Why nothing can be said of a launch."""
    if checked.gaps or checked.outer or checked.unended:
        return "the launch was not checked in full"
    return "the launch has findings: repair them first" if not questions.known.issuperset(checked.keys) else ""


def _obstacle(questions: Questions, spots: Iterable[Spot], reach: BarrierReach) -> str:
    places = questions.places
    kinds = {places[spot].kind for spot in spots}
    lines = {places.sites[places[spot].site].ptx_line for spot in spots}
    if why := next((why for kind, why in _OF_REGISTERS.items() if kind in kinds), ""):
        return why
    if Event.CLUSTER_WAIT in kinds:
        return _CLUSTER
    if Event.WARP_BARRIER in kinds and reach.together(lines):
        return "warp-synchronous instructions behind it may need it to bring the lanes together"
    if Event.PROXY_FENCE in kinds and reach.initialises(lines):
        return "it may make the initialisation of an mbarrier visible to the async proxy, which no rule checks"
    return "" if kinds <= {Event.COPY_WAIT, Event.PRODUCT_WAIT} else reach.obstacle(lines)


def _asked(questions: Questions, spots: Iterable[Spot], registers: Callable[[Change], bool]) -> tuple[Need, str]:
    if questions.exhausted:
        return Need.NOT_ASSESSED, "too much was replayed already"
    change = questions.places.left_out(spots)
    if _too_early(questions, spots, change, registers):
        return Need.NEEDED, "registers of wgmma are used too early without it"
    answer = questions.ask(change)
    if answer.troubles:
        return Need.NEEDED, "threads would go another way without it"
    return (Need.NEEDED, f"findings without it: {len(answer.found)}") if answer.found else (Need.NOT_NEEDED, "")


def _too_early(questions: Questions, spots: Iterable[Spot], change: Change, registers: Callable[[Change], bool]) -> bool:
    """Whether a change of waits for `wgmma` lets the text use its registers too early. The replay knows no registers."""
    return any(questions.places[spot].kind == Event.PRODUCT_WAIT for spot in spots) and registers(change)


def _serves(questions: Questions, spots: Iterable[Spot], change: Change, registers: Callable[[Change], bool]) -> bool:
    """Whether nothing is found with a change."""
    if _too_early(questions, spots, change, registers):
        return False
    answer = questions.ask(change)
    return not answer.found and not answer.troubles


def _serving(questions: Questions, spots: list[Spot], registers: Callable[[Change], bool]) -> tuple[str, ...]:
    """The weakest form of each chain that serves."""
    found = []
    for chain in weaker(questions, spots):
        best = ""
        for words, change in chain:
            if not change or questions.exhausted or not _serves(questions, spots, change, registers):
                break
            best = words
        found += [best] if best else []
    return tuple(found)


def _together(questions: Questions, registers: Callable[[Change], bool], free: dict[Statement, list[Spot]]) -> list[Statement]:
    """As many as may be gone at once, taken in this order."""
    kept: list[Statement] = []
    gone: list[Spot] = []
    for statement, spots in free.items():
        if questions.exhausted:
            break
        without = [*gone, *spots]
        if _serves(questions, without, questions.places.left_out(without), registers):
            kept.append(statement)
            gone = without
    return kept
