"""Which completed phases follow from the counts of a thread, by induction over them.

In an array of N mbarriers, the wait and the arrival of number i are at mbarrier i mod N: that is to be shown for each. A wait of number i
has the parity of i / N, or (`shift` 1) the opposite one. By induction, phase i / N, or the one before it, is complete behind that wait: a
parity alone excludes every second phase, and the thread's wait of number i - N excludes those before.

An arrival of number i is in phase i / N if its thread knows that the one before is complete: each phase then gets one arrival of each
thread at most. No more threads arrive than the mbarriers count, so a phase is complete only when all of them have arrived. The bytes that
an arrival expects are those of the copies of the same number, so these are complete, too.

A group of asynchronous operations (`cp.async`, bulk stores, products) is complete when its thread has waited for it. `completes` says how
many groups each thread has waited for before its arrival of a number, so a thread that knows of an arrival knows of groups.

A thread knows more than its own waits by arrivals of others: `lead` of two arrays says how many waits at the second one each
thread has done before its arrival of a number at the first one. All of this is one induction over the operations in the order in which they
take place: each claim follows from claims on earlier ones. So arrays are left out until all claims of those that are left hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Key
from consan.instrument.effects import Effect
from consan.prove.numbers import Number, Symbols, number
from consan.prove.pairs import OverlapQuestions
from consan.prove.phases.arrays import MbarrierArray, is_begun, participants
from consan.prove.phases.counters import PhaseAction, completed, measure_of
from consan.prove.solver import Formula, both, either
from consan.prove.step import ThreadAccess
from consan.prove.tables import Table

_SECONDS = 2.0
_WARPGROUP = 128  # threads
_LEADS = (2, 1, 0)
_LEADS_OF_GROUPS = (2, 1, 0, -1, -2)
Counts = Mapping[Key, Formula]
"""The counters of a thread."""


def terms(access: ThreadAccess) -> dict[Key, Formula]:
    """The counters of a thread before an access."""
    return {key: each.term for key, each in access.counts.items()}


@dataclass(eq=False)
class FollowedArray:
    """An array whose phases are followed. `shift`: 1 if its waits wait for the phase before. `arrives`: whether a thread may arrive.

    `serves`: whether a thread of its warpgroup may. A product is one operation of all four warps, so a wait of one of them is for the whole
    (ISA "wgmma.commit_group", SEMANTICS 4.3).
    """

    array: MbarrierArray
    shift: int
    threads: Table
    arrives: Formula
    serves: Formula

    @property
    def lag(self) -> int:
        """How many numbers the arrivals that a wait is for are behind it."""
        return self.shift * self.array.objects

    def waited(self, counts: Counts) -> Formula:
        """The number of the last wait's arrivals."""
        return counts[self.array.key(PhaseAction.WAIT)] - 1 - self.lag

    def place(self, access: ThreadAccess, symbols: Symbols) -> tuple[Number, Number]:
        """The number of an operation or of a copy, and the bytes of that number before it."""
        action = next(action for action, some in self.array.events.items() if any(each.instruction is access.instruction for each in some))
        count = access.counts[self.array.key(action)]
        if action is not PhaseAction.COPY:
            return count, number(0)
        return symbols.quotient(count, self.array.expected), symbols.remainder(count, self.array.expected)


@dataclass
class PhaseModel:
    """The arrays whose phases are followed, and `lead`: waits at the second one before arrivals at the first one."""

    questions: OverlapQuestions
    symbols: Symbols
    followed: list[FollowedArray] = field(default_factory=list)
    lead: dict[tuple[int, int], int] = field(default_factory=dict)
    _completes: dict[tuple[int, type[Effect]], int | None] = field(default_factory=dict)

    def completes(self, followed: FollowedArray, commit: type[Effect]) -> int | None:
        """How many groups each thread has waited for before its arrival 0 at an array, and one more before each later one."""
        key = id(followed), commit
        if key not in self._completes:
            found = (lead for lead in _LEADS_OF_GROUPS if self._completes_before(followed, commit, lead))
            self._completes[key] = next(found, None)
        return self._completes[key]

    def _completes_before(self, followed: FollowedArray, commit: type[Effect], lead: int) -> bool:
        arrived = followed.array.key(PhaseAction.ARRIVE)
        return all(
            completed(commit) in each.counts
            and self.questions.always(each, each.counts[completed(commit)].term >= each.counts[arrived].term + lead, _SECONDS)
            for each in followed.array.of(PhaseAction.ARRIVE)
        )

    def knows(self, followed: FollowedArray, counts: Counts, at_least: Formula) -> Formula:
        """Whether a thread with some counts knows that the arrivals at an array up to a number have taken place, and its copies."""
        found = [followed.waited(counts) >= at_least]
        for other in self.followed:
            lead = self.lead.get((id(other), id(followed)))
            if lead is not None:
                waited = other.waited(counts)
                found.append(both(waited >= 0, waited + lead - 1 - followed.lag >= at_least))
        return either(*found)

    def of(self, access: ThreadAccess) -> FollowedArray | None:
        """The array of the mbarrier on which a copy completes."""
        for each in self.followed:
            if any(copy.instruction is access.instruction for copy in each.array.of(PhaseAction.COPY)):
                return each
        return None


def model_of(arrays: Sequence[MbarrierArray], graph: Graph, whole: Sequence[ThreadAccess], questions: OverlapQuestions) -> PhaseModel:
    """Follow those arrays whose claims all hold."""
    model = PhaseModel(questions, questions.environment.symbols)
    model.followed = [each for array in arrays for each in _followed(model, array, graph, whole)]
    while True:
        model.lead = dict(_leads(model))
        left = [each for each in model.followed if _arrives_in_turn(model, each)]
        if len(left) == len(model.followed):
            return model
        model.followed = left


def _followed(model: PhaseModel, array: MbarrierArray, graph: Graph, whole: Sequence[ThreadAccess]) -> Iterator[FollowedArray]:
    """The facts about one array by itself."""
    tables = model.questions.tables
    if array.of(PhaseAction.OTHER) or not array.of(PhaseAction.ARRIVE) or not is_begun(array, graph, tables):
        return
    threads = participants(array, tables)
    if (
        not 0 < threads.sum() <= array.count
        or _is_written(model.questions, array, whole)
        or (array.of(PhaseAction.COPY) and not array.expected)
    ):
        return
    arrives = either(
        *(both(*(part for part in tables.conditions(each) if tables.of(part) is not None)) for each in array.of(PhaseAction.ARRIVE))
    )
    own = model.questions.environment.thread.term
    groups = {int(place) // _WARPGROUP for place in np.flatnonzero(threads)}
    serves = either(*(both(own >= _WARPGROUP * each, own < _WARPGROUP * (each + 1)) for each in sorted(groups)))
    for shift in (0, 1):
        found = FollowedArray(array, shift, threads, arrives, serves)
        if all(_has_parity(model, found, each) for each in array.of(PhaseAction.WAIT)):
            if _goes_round(model, found) and _expects(model, found):
                yield found
            return


def _is_written(questions: OverlapQuestions, array: MbarrierArray, whole: Sequence[ThreadAccess]) -> bool:
    """Whether anything but operations on mbarriers may write to the bytes of an array."""
    for each in (each for each in whole if each.writes and not each.is_of_mbarrier and each.space != "global"):
        if each.base is None or array.meets(each, questions.tables):
            return True
        size = questions.environment.bytes_of(each.base[1]) if each.base[0] == "shared" else 0
        if each.base[0] == "shared" and each.base != array.base and not questions.stays(each, size, _SECONDS):
            return True
    return False


def _has_parity(model: PhaseModel, followed: FollowedArray, wait: ThreadAccess) -> bool:
    if wait.measure is None:
        return False
    count = wait.counts[followed.array.key(PhaseAction.WAIT)]
    phase = model.symbols.quotient(count, followed.array.objects)
    parity = model.symbols.remainder(Number(phase.term + followed.shift, *model.symbols.intervals(phase.term + followed.shift)), 2)
    return model.questions.always(wait, wait.measure.term == parity.term, _SECONDS)


def _goes_round(model: PhaseModel, followed: FollowedArray) -> bool:
    """Whether each operation is at the next mbarrier of the array."""
    array = followed.array
    if array.objects == 1:
        return True
    for each in array.of(PhaseAction.WAIT, PhaseAction.ARRIVE, PhaseAction.COPY):
        place = model.symbols.remainder(followed.place(each, model.symbols)[0], array.objects)
        if not model.questions.always(each, each.offset.term == array.low + 8 * place.term, _SECONDS):
            return False
    return True


def _expects(model: PhaseModel, followed: FollowedArray) -> bool:
    """Whether the copies of a number are those whose bytes the arrival of that number expects: of the same thread, before the next one."""
    array = followed.array
    plain = all(measure_of(each.instruction) is None for each in array.of(PhaseAction.ARRIVE))
    if plain or not array.expected:
        return plain and not array.of(PhaseAction.COPY)
    if any(each.measure is None or each.measure.constant != array.expected for each in array.of(PhaseAction.ARRIVE)):
        return False
    for each in array.of(PhaseAction.COPY):
        if each.measure is None or each.measure.constant is None:
            return False
        number, before = followed.place(each, model.symbols)
        arrived = each.counts[array.key(PhaseAction.ARRIVE)].term
        fits = both(before.term + each.measure.constant <= array.expected, number.term <= arrived, arrived <= number.term + 1)
        if not model.questions.always(each, both(fits, followed.arrives), _SECONDS):
            return False
    return True


def _leads(model: PhaseModel) -> Iterator[tuple[tuple[int, int], int]]:
    for one in model.followed:
        for other in model.followed:
            if one is not other:
                tried = dict.fromkeys((*_LEADS, 1 - other.array.objects))  # the last one: the first rounds do without the wait
                found = next((lead for lead in tried if _has_lead(model, one, other, lead)), None)
                if found is not None:
                    yield (id(one), id(other)), found


def _has_lead(model: PhaseModel, one: FollowedArray, other: FollowedArray, lead: int) -> bool:
    waits = other.array.key(PhaseAction.WAIT)
    for each in one.array.of(PhaseAction.ARRIVE):
        arrived = each.counts[one.array.key(PhaseAction.ARRIVE)].term
        if not model.questions.always(each, each.counts[waits].term >= arrived + lead, _SECONDS):
            return False
    return True


def _arrives_in_turn(model: PhaseModel, followed: FollowedArray) -> bool:
    """Whether the thread of each arrival and copy knows that the phase before is complete. One thread's own arrivals complete phases."""
    array = followed.array
    if not array.expected and followed.threads.sum() == array.count == 1:
        return True
    for each in array.of(PhaseAction.ARRIVE, PhaseAction.COPY):
        before = followed.place(each, model.symbols)[0].term - array.objects
        known = either(before < 0, model.knows(followed, terms(each), before))
        if not model.questions.always(each, known, _SECONDS):
            return False
    return True
