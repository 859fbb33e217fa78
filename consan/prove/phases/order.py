"""Which accesses of a CTA phases of mbarriers order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from consan.instrument.control_flow import Key
from consan.instrument.effects import Effect, ProductCommit
from consan.prove.numbers import Number
from consan.prove.pairs import CTA, INTERVAL, AccessPair
from consan.prove.phases.counters import PhaseAction, committed, committed_by
from consan.prove.phases.model import FollowedArray, PhaseModel
from consan.prove.solver import Formula, both, choice, either, opposite, z3
from consan.prove.step import ThreadAccess
from consan.prove.walk import PathState

_SECONDS: Final = 2.0


class PhaseOrder:
    """Asks one kernel's model. `exits`: the states in which a thread ends."""

    def __init__(self, model: PhaseModel, exits: Sequence[tuple[int, PathState]]) -> None:
        self._model, self._exits = model, exits
        self._exchange = model.questions.exchanged

    def unordered(self, pair: AccessPair) -> list[Formula]:
        """The condition under which nothing orders a pair. In one thread, the second access is later."""
        if not pair.one_cta or pair.first.is_of_mbarrier or pair.second.is_of_mbarrier:
            return []
        found = self._before(pair.first, 1, pair.second, 2, pair.shared)
        return found if pair.own else [*found, *self._before(pair.second, 2, pair.first, 1, pair.shared)]

    def _before(self, one: ThreadAccess, thread: int, other: ThreadAccess, other_thread: int, shared: str) -> list[Formula]:
        """The condition under which one access is not before another one.

        A copy that an mbarrier completes is before what comes behind a wait for its number. One of a group is before what knows of an
        arrival behind the wait of its thread, and another access before what knows of the next arrival of its thread. A
        bulk copy does not see what was written through the generic proxy without a fence, so no order of that kind counts here.
        """
        commit = committed_by(one.instruction)
        if one.late and commit is None:
            return self._not_complete(one, thread, other.counts, other_thread, shared)
        if other.late and one.writes:
            return []
        later, known = self._counts(other.counts, other_thread, shared)
        found = []
        for each in self._model.followed:
            arrival = self._arrival(one, each, commit)
            if arrival is None:
                continue
            arrives = each.serves if commit is ProductCommit else each.arrives
            (arrives, number), more = self._exchange([arrives, arrival], thread, shared)
            known += more
            found.append(both(arrives, self._model.knows(each, later, number)))
        return [*known, opposite(either(*found))] if found else []

    def _arrival(self, access: ThreadAccess, followed: FollowedArray, commit: type[Effect] | None) -> Formula | None:
        """The number of an arrival of its thread at an array before which an access is complete; None: that is not known."""
        if commit is None:
            return access.counts[followed.array.key(PhaseAction.ARRIVE)].term
        lead = None if access.is_bulk_store and access.writes else self._model.completes(followed, commit)
        if lead is None:
            return None
        number = access.counts[committed(commit)].term + 1 - lead
        return choice(number >= 0, number, z3.IntVal(0))

    def _not_complete(self, copy: ThreadAccess, thread: int, counts: Mapping[Key, Number], other_thread: int, shared: str) -> list[Formula]:
        """The condition under which a thread with some counts does not know that a copy is complete."""
        signal = self._model.of(copy)
        if signal is None:
            return []
        later, known = self._counts(counts, other_thread, shared)
        (number,), more = self._exchange([signal.place(copy, self._model.symbols)[0].term], thread, shared)
        return [*known, *more, opposite(self._model.knows(signal, later, number))]

    def _counts(self, counts: Mapping[Key, Number], thread: int, shared: str) -> tuple[dict[Key, Formula], list[Formula]]:
        formulas, known = self._exchange([each.term for each in counts.values()], thread, shared)
        return dict(zip(counts, formulas, strict=True)), known

    def incomplete(self, copy: ThreadAccess, state: PathState) -> list[Formula]:
        """The condition under which the thread of a copy, as its number 2, is in a state and does not know that it is complete."""
        return self._not_complete(copy, 1, self._of_state(state), 2, INTERVAL) if copy.late else []

    def _of_state(self, state: PathState) -> dict[Key, Number]:
        keys = (each.array.key(PhaseAction.WAIT) for each in self._model.followed)
        return {key: state.registers[key] for key in keys}

    def is_waited_for(self, copy: ThreadAccess) -> bool:
        """Whether a thread of the CTA knows at its end that a copy is complete: one of those that wait at its mbarrier."""
        signal = self._model.of(copy) if copy.late else None
        waits = [] if signal is None else signal.array.of(PhaseAction.WAIT)
        threads = {tuple(self._model.questions.tables.split(each).threads) for each in waits}
        return any(self._knows_at_end(copy, each.index(True)) for each in threads if True in each)

    def _knows_at_end(self, copy: ThreadAccess, thread: int) -> bool:
        """Whether one thread of the CTA knows at each of its ends that a copy is complete."""
        questions = self._model.questions
        for _, state in self._exits:
            more = self._not_complete(copy, 1, self._of_state(state), 2, CTA)
            if questions.reach([copy.path], [state.path], questions.numbered(thread, 2), more, _SECONDS):
                return False
        return True
