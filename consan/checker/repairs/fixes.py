"""Verified fixes: the first repair of each finding with which the replay of the recorded launch has no finding at all.

All findings of a launch are repaired together, one after the other; a repair that leaves one of another kind or place is none.

The number of repairs that are tried, and the lane events and the time of their replays, are bounded: a launch without findings costs
nothing.
Nothing is verified where a launch was not checked in full. If the log may depend on values that a racing access has loaded, only fences and
wider scopes are tried: a run of the kernel is one of the kernel with them, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from consan.checker.judging.checked import Checked
from consan.checker.questions.changes import Change, EventPlaces
from consan.checker.questions.questions import Answer, Questions
from consan.checker.repairs.forms import Repair, RepairStep, only_orders
from consan.checker.repairs.repairs import Repairs
from consan.checker.repairs.whole_barriers import are_whole, for_some_warps, own_barriers
from consan.dataclass import dataclass
from consan.instrument.findings import FindingFlags, Kind
from consan.instrument.sites import Site
from consan.reports.verdict.speaking.terms import Key

MOST_TRIES = 320  # of a finding
MORE_TRIES = 40  # once a repair removes the finding and leaves others
MOST_PARTIAL = 8  # of them with barriers of some warps
MOST_PAIRS = 8  # findings that repairs are sought for, of a launch
MOST_EVENTS = 1 << 22  # lane events, of a launch
MOST_SECONDS = 1.5  # of processor time
MOST_LINES = 1 << 18  # of the logs of its distinct histories
_IN_GLOBAL = (Kind.GLOBAL_RACE, Kind.SCOPE)


@dataclass(frozen=True)
class Fix:
    """A repair that removes a finding. `left`: findings of the launch that it does not remove; of one that is verified, 0."""

    steps: tuple[RepairStep, ...]
    change: Change
    left: int = 0


def racing_lines(found: Iterable[Key], sites: dict[int, Site]) -> set[int]:
    """The PTX lines of the accesses whose values, or whose order in memory, a fix may alter."""
    lines: set[int] = set()
    for key in found:
        pair = [sites[number] for number in key[3:] if number in sites]
        reads = [site for site in pair if site.only_reads]
        lines |= {site.ptx_line for site in reads or pair}
    return lines


def verified_fixes(
    questions: Questions, checked: Checked, depends: Callable[[set[int]], bool], turn: Callable[[Repair], tuple[int, ...]] = lambda _: ()
) -> dict[int, Fix]:
    """The fixes of a launch, by the number of the finding. `depends`: whether the log may depend on what accesses at PTX lines load.

    `turn`: a key to sort repairs by: when each is tried (reports/words/verified.py, `turn_of`).
    """
    undefined = any(key[0] == Kind.DIVERGENCE for key in checked.keys)  # what the threads did afterwards
    if not checked.found or undefined or not checked.is_whole or checked.global_races or checked.unended:
        return {}
    if not depends(racing_lines(checked.keys, questions.places.sites)):
        return _Search(questions, checked, turn).fixes()
    # Values may follow from the races. More order for what has run in this way changes none of them.
    return _Search(questions, checked, turn, only_orders).fixes() if any(key[0] in _IN_GLOBAL for key in checked.keys) else {}


def _left(answer: Answer) -> int:
    """The findings of an answer, but for equal values: these change no result."""
    return sum(not key[1] & FindingFlags.SAME_VALUE for key in answer.found)


class _Search:
    """The search for the fixes of one launch."""

    def __init__(
        self,
        questions: Questions,
        checked: Checked,
        turn: Callable[[Repair], tuple[int, ...]],
        only: Callable[[Change, EventPlaces], bool] = lambda *_: True,
    ) -> None:
        self._questions, self._checked, self._turn, self._only = questions, checked, turn, only
        self._found = frozenset(checked.keys)
        self._good: list[tuple[Repair, Answer]] = []

    def fixes(self) -> dict[int, Fix]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, key in enumerate(self._checked.keys):
            groups.setdefault(self._name(key), []).append(number)
        for name, numbers in list(groups.items())[:MOST_PAIRS]:
            self._seek(name, self._checked.found[numbers[0]])
        fixed = [name for name in groups if self._is_removed(name)]
        best = ((name, self._best(name)) for name in fixed)
        return {number: fix for name, fix in best if not fix.left for number in groups[name]}

    def _best(self, name: tuple[Any, ...]) -> Fix:
        """The repair that leaves least, of those that remove a finding; the first of several."""
        good = [Fix(repair.steps, repair.change, _left(answer)) for repair, answer in self._good if self._removes(name, answer)]
        return min(good, key=lambda fix: fix.left)

    @property
    def _base(self) -> Repair | None:
        """The repair of the findings that came before this one. A later repair is tried together with it, because the report names both."""
        return min(self._good, key=lambda good: _left(good[1]))[0] if self._good else None

    def _name(self, key: Key) -> tuple[Any, ...]:
        """The kind and the pair of statements: of two kinds of one pair, each may need a repair of its own."""
        places = self._questions.places
        return (key[0], *sorted(str(places.statement(site) or site) for site in key[3:]))

    def _is_removed(self, name: tuple[Any, ...]) -> bool:
        return any(self._removes(name, answer) for _, answer in self._good)

    def _seek(self, name: tuple[Any, ...], record: Any) -> None:
        """Keep the repairs that remove a finding, unless one does that removes another."""
        tries, base = MOST_TRIES, self._base
        for number, each in enumerate(() if self._is_removed(name) else self._candidates(record)):
            if self._questions.exhausted or number >= tries + MOST_PARTIAL:
                break
            repair = base + each if base else each
            if repair is None or not are_whole(repair.change, self._questions.places, self._questions.passes):
                continue
            answer = self._questions.ask(own_barriers(repair.change, self._questions.places, self._questions.launched.block))
            if self._removes(name, answer):
                self._good.append((repair, answer))
                if not _left(answer):
                    break
                tries = min(tries, number + MORE_TRIES)  # perhaps one removes all findings

    def _candidates(self, record: Any) -> Iterator[Repair]:
        """The repairs that the report names first; last, barriers of those warps only that pass there."""
        places, passes = self._questions.places, self._questions.passes
        repairs = (each for each in Repairs(self._questions, record) if self._only(each.change, places))
        listed = sorted(itertools.islice(repairs, MOST_TRIES), key=self._turn)
        partly = (for_some_warps(each, places, passes) for each in listed if not are_whole(each.change, places, passes))
        return itertools.chain(listed, itertools.islice(filter(None, partly), MOST_PARTIAL))

    def _removes(self, name: tuple[Any, ...], answer: Answer) -> bool:
        """Whether the finding is gone, and all that is found was found before."""
        sound = not (answer.troubles or answer.overtaken)
        return sound and answer.found <= self._found and all(self._name(key) != name for key in answer.found)
