"""Finds superfluous synchronisation in a recorded launch: a replay leaves out one statement at a time.

A statement is *needed* if the replay without it finds something, or cannot go on. A statement that is superfluous
alone may be needed once another one is gone; so statements are left out one after the other, the one that ran most often first.

A statement stands for all instructions that a compiler made of it. If it is needed, its superfluous instructions are found
in the same way. A needed one may have a weaker form that serves (weaker.py). Registers of `wgmma` are judged by the text with the change.

Not judged: arrivals, commits, and statements within reach of something that the log does not hold (reach.py).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from consan.checker.judging.checked import Checked
from consan.checker.questions.changes import Change, EventPlaces, Spot, Statement
from consan.checker.questions.questions import AskedLaunches, Questions
from consan.checker.questions.weaker import weaker
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.findings import FindingFlags, Kind
from consan.instrument.record.analyses.reach import BarrierReach
from consan.reports.verdict.speaking.terms import Key

_WAITS = {effects.CopyWait, effects.BulkWait, effects.MbarrierWait, effects.ClusterBarrierWait}
_FENCES = {effects.ProxyFence, effects.Fence, effects.InitsFence, effects.TensorFence}
_OF_REGISTERS = {effects.TensorWait: "registers of tcgen05 may need it"}
_LISTED = _WAITS | _FENCES | _OF_REGISTERS.keys() | {effects.CtaBarrier, effects.WarpSync, effects.ProductWait}
Registers = Callable[[Change], bool]
T = TypeVar("T")
_CLUSTER = "its arrival and its wait belong together"


class Need(enum.Enum):
    """Whether a statement is needed."""

    NEEDED = "needed"
    NOT_NEEDED = "not needed"
    NOT_ASSESSED = "not assessed"
    DID_NOT_RUN = "did not run"


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
    instructions: int = 1  # of the PTX that ran
    free: tuple[int, ...] = ()  # the sites of those that are not needed, together, although the statement is
    pairs: tuple[tuple[int, ...], ...] = ()  # the sites of what is found without it


def advise(
    questions: AskedLaunches, functions: Collection[str], trouble: str, reach: Callable[[str], BarrierReach],
    registers: Registers = lambda _: True,
) -> list[Advised]:  # fmt: skip
    """All statements that synchronise, in the order of the text. `trouble`: why nothing can be said of the launches.

    `functions`: the kernel, and those that it can call. `reach`: of a kernel, by its name. `registers`: whether the text with a change uses
    registers of `wgmma` too early.
    """
    ran = statements_of(questions)
    advised: dict[Statement, Advised] = {}
    for statement, spots in _listed(questions.places).items():
        if statement.function not in functions:
            continue
        if statement not in ran:
            advised[statement] = Advised(questions.places[spots[0]].site, 0, Need.DID_NOT_RUN)
        else:
            why = trouble or _obstacle(questions, spots, reach(statement.function))
            advised[statement] = _advised(questions, ran[statement], why, registers)
    free = [statement for statement, each in advised.items() if each.need is Need.NOT_NEEDED]
    for statement in _together(questions, registers, {each: ran[each] for each in sorted(free, key=lambda each: -advised[each].ran)}):
        advised[statement] = replace(advised[statement], together=True)
    return list(advised.values())


def _advised(questions: AskedLaunches, spots: list[Spot], why: str, registers: Registers) -> Advised:
    """The facts about a statement that ran. `why`: the reason that it is not assessed."""
    need, why, found = (Need.NOT_ASSESSED, why, frozenset[Key]()) if why else _asked(questions, spots, registers)
    sites: dict[int, list[Spot]] = {}
    for spot in filter(questions.walked.executions, spots):
        sites.setdefault(questions.places[spot].site, []).append(spot)
    needed = need is Need.NEEDED
    return Advised(
        site=questions.places[spots[0]].site,
        ran=sum(map(questions.walked.executions, spots)),
        need=need,
        why=why,
        weaker=_serving(questions, spots, registers) if needed else (),
        spots=tuple(spots),
        instructions=len(sites),
        free=tuple(_together(questions, registers, sites)) if needed and len(sites) > 1 else (),
        pairs=tuple(sorted({tuple(number for number in key[3:] if number in questions.places.sites) for key in found})),
    )


def _listed(places: EventPlaces) -> dict[Statement, list[Spot]]:
    return places.by_statement(lambda event: type(event) in _LISTED and not _is_arrival(event))


def statements_of(questions: Questions | AskedLaunches) -> dict[Statement, list[Spot]]:
    """The statements that synchronise and that ran."""
    return {statement: spots for statement, spots in _listed(questions.places).items() if any(map(questions.walked.executions, spots))}


def notices(questions: Questions, checked: Checked, spots: list[Spot]) -> bool | None:
    """Whether the launch would show that a statement is gone; None if that is not known."""
    if trouble_of(questions, checked) or questions.exhausted:
        return None
    answer = questions.ask(questions.places.left_out(spots))
    return bool(answer.found or answer.troubles)


def _is_arrival(event: effects.Effect) -> bool:
    return isinstance(event, effects.CtaBarrier) and not event.waits


def notes_of(checked: Checked, *, isa: bool) -> frozenset[Key]:
    """The findings that are no errors: threads store the same value. `isa`: the policy for which they are."""
    return frozenset(key for key in checked.keys if not isa and key[0] == Kind.DATA_RACE and key[1] & FindingFlags.SAME_VALUE)


def trouble_of(questions: Questions, checked: Checked) -> str:
    """Why nothing can be said of a launch."""
    if not checked.is_whole or checked.global_races or checked.unended:
        return "the launch was not checked in full"
    return "the launch has findings: repair them first" if not questions.known.issuperset(checked.keys) else ""


def _obstacle(questions: AskedLaunches, spots: Iterable[Spot], reach: BarrierReach) -> str:
    places = questions.places
    kinds = {type(places[spot]) for spot in spots}
    lines = {places.sites[places[spot].site].ptx_line for spot in spots}
    if why := next((why for kind, why in _OF_REGISTERS.items() if kind in kinds), ""):
        return why
    if effects.ClusterBarrierWait in kinds:
        return _CLUSTER
    if effects.WarpSync in kinds and reach.together(lines):
        return "warp-synchronous instructions behind it may need it to bring the lanes together"
    if effects.ProxyFence in kinds and reach.initialises(lines):
        return "it may make the initialisation of an mbarrier visible to the async proxy, which no rule checks"
    return "" if kinds <= {effects.CopyWait, effects.ProductWait} else reach.obstacle(lines)


def _asked(questions: AskedLaunches, spots: Iterable[Spot], registers: Registers) -> tuple[Need, str, frozenset[Key]]:
    """Whether a statement is needed, why, and what is found without it."""
    nothing = frozenset[Key]()
    if questions.exhausted:
        return Need.NOT_ASSESSED, "too much was replayed already", nothing
    change = questions.places.left_out(spots)
    if _too_early(questions, spots, change, registers):
        return Need.NEEDED, "registers of wgmma are used too early without it", nothing
    answer = questions.ask(change)
    if answer.troubles:
        return Need.NEEDED, "threads would go another way without it", nothing
    return (Need.NEEDED, f"findings without it: {len(answer.found)}", answer.found) if answer.found else (Need.NOT_NEEDED, "", nothing)


def _too_early(questions: AskedLaunches, spots: Iterable[Spot], change: Change, registers: Registers) -> bool:
    """Whether a change of waits for `wgmma` lets the text use its registers too early. The replay knows no registers."""
    return any(isinstance(questions.places[spot], effects.ProductWait) for spot in spots) and registers(change)


def _serves(questions: AskedLaunches, spots: Iterable[Spot], change: Change, registers: Registers) -> bool:
    """Whether nothing is found with a change."""
    if _too_early(questions, spots, change, registers):
        return False
    answer = questions.ask(change)
    return not answer.found and not answer.troubles


def _serving(questions: AskedLaunches, spots: list[Spot], registers: Registers) -> tuple[str, ...]:
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


def _together(questions: AskedLaunches, registers: Registers, free: dict[T, list[Spot]]) -> list[T]:
    """As many as may be gone at once, taken in this order."""
    retained: list[T] = []
    gone: list[Spot] = []
    for statement, spots in free.items():
        if questions.exhausted:
            break
        without = [*gone, *spots]
        if _serves(questions, without, questions.places.left_out(without), registers):
            retained.append(statement)
            gone = without
    return retained
