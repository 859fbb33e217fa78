"""Delta debugging on failures that are known: what is left is what was needed, whoever does the runs and in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from consan._errors import UsageError
from consan.backends.cpu.engine.decisions import HOLD, LAND, Decision, Who
from consan.backends.cpu.state.schedule import AT_ONCE, LATE
from consan.triage.minimise import Failure, Minimiser, by_cta, by_warp, split
from consan.triage.outcome import CRASH, Job, Outcome, Request
from consan.triage.subject import KernelSource, KernelSubject, LaunchText

JOB = Job(KernelSubject(KernelSource("k.cu"), LaunchText("k", (1, 1, 1), (32, 1, 1))))


@dataclass
class World:
    """Runs that fail as a function says; outcomes come in any order, as from many processes."""

    recorded: list[Decision]
    fails: Callable[[list[Decision], str], bool]
    runs: int = 0
    interrupt: int | None = None
    said: list[str] = field(default_factory=list)
    stopped: bool = False

    def results(self, _job: Job, requests: Iterable[Request]) -> Generator[tuple[int, Outcome], None, None]:
        for index, request in sorted(enumerate(requests), reverse=True):
            self.runs += 1
            if self.runs == self.interrupt:
                raise KeyboardInterrupt
            chosen = self.recorded if request.decisions is None else list(request.decisions)
            wrong = self.fails(chosen, request.baseline)
            yield index, Outcome(seed=request.seed, wrong=wrong, decisions=tuple(self.recorded) if request.record else ())

    def begin(self, what: str, total: int | None) -> None:
        self.said.append(what)

    def say(self, text: str, done: int = 0) -> None:
        self.said.append(text)

    def stop(self) -> None:
        self.stopped = True

    def search(self) -> Minimiser:
        found = Minimiser(JOB, Failure("wrong", "it is wrong"), 5, self, self)  # type: ignore[arg-type]
        found.run()
        return found


def hold(number: int, *, steps: int = 1, warps: int = 1, ctas: int = 1) -> Decision:
    return Decision(HOLD, tuple(Who((cta, 0, 0), warp, 1) for cta in range(ctas) for warp in range(warps)), steps, number)


def places(decisions: Iterable[Decision]) -> list[int]:
    return sorted(decision.place for decision in decisions)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_left_is_what_was_needed(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 60))
    needed = data.draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=5))
    world = World([hold(n) for n in range(number)], lambda chosen, _: needed <= {d.place for d in chosen})
    search = world.search()
    assert places(search.decisions) == sorted(needed)
    assert (search.baseline, search.recorded) == ("prompt", number)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 24), st.randoms(use_true_random=False))
def test_what_is_left_fails_and_none_can_be_left_out(number: int, random: Any) -> None:
    """Also where more decisions may fail less: a table of random answers; only the whole list is certain."""
    answers: dict[tuple[int, ...], bool] = {tuple(range(number)): True, (): False}

    def fails(chosen: list[Decision], _baseline: str) -> bool:
        return answers.setdefault(tuple(places(chosen)), random.random() < 0.2)

    left = World([hold(n) for n in range(number)], fails).search().decisions
    assert fails(left, "")
    assert not any(fails(left[:index] + left[index + 1 :], "") for index in range(len(left)))


def test_a_search_among_hundreds_takes_few_runs() -> None:
    world = World([hold(n) for n in range(500)], lambda chosen, _: {17, 400} <= {d.place for d in chosen})
    assert places(world.search().decisions) == [17, 400]
    assert world.runs < 150
    assert "decisions left of 500" in world.said[-1]


def test_decisions_are_divided_by_cta_and_by_warp() -> None:
    def fails(chosen: list[Decision], _baseline: str) -> bool:
        return any(who.block[0] == 1 and who.warp == 3 for d in chosen for who in d.who)

    (left,) = World([hold(0, warps=4, ctas=2), hold(1)], fails).search().decisions
    assert left.who == (Who((1, 0, 0), 3, 1),)
    assert [len(part.who) for part in by_cta(hold(0, warps=4, ctas=2))] == [4, 4]
    assert [len(part.who) for part in by_warp(hold(0, warps=4, ctas=2))] == [1] * 8


def test_delays_are_made_short() -> None:
    (left,) = World([hold(0, steps=100)], lambda chosen, _: any(d.steps >= 13 for d in chosen)).search().decisions
    assert left.steps == 13


LANDINGS = [Decision(LAND, (Who((0, 0, 0), 0, 1),), steps, place) for place, steps in ((1, AT_ONCE), (2, LATE), (3, AT_ONCE))]


def test_a_failure_by_lateness_is_reduced_to_delays() -> None:
    search = World(LANDINGS, lambda chosen, base: base == "late" or 2 in places(chosen)).search()
    assert (search.baseline, places(search.decisions)) == ("prompt", [2])


def test_a_failure_by_earliness_is_reduced_to_what_is_early() -> None:
    search = World(LANDINGS, lambda chosen, base: base == "prompt" or 3 in places(chosen)).search()
    assert (search.baseline, places(search.decisions)) == ("late", [3])


def test_a_failure_that_needs_no_delay() -> None:
    search = World(LANDINGS, lambda chosen, base: True).search()
    assert (search.decisions, search.runs) == ([], 3)


def test_a_seed_that_does_not_fail_is_an_error() -> None:
    with pytest.raises(UsageError, match="seed 5 does not fail here: it is wrong"):
        World([hold(0)], lambda chosen, _: False).search()


def test_a_run_that_fails_otherwise_is_an_error() -> None:
    class Crashing(World):
        def results(self, _job: Job, requests: Iterable[Request]) -> Generator[tuple[int, Outcome], None, None]:
            yield 0, Outcome(status=CRASH, detail="gone")

    with pytest.raises(UsageError, match="seed 5 does not run to its end: crash: gone"):
        Crashing([hold(0)], lambda chosen, _: True).search()


def test_an_interruption_keeps_the_best_so_far() -> None:
    world = World([hold(n) for n in range(100)], lambda chosen, _: {17, 80} <= {d.place for d in chosen}, interrupt=30)
    search = world.search()
    assert search.partial
    assert world.stopped
    assert {17, 80} <= set(places(search.decisions))
    assert len(search.decisions) < 100


def test_halves_and_thirds() -> None:
    items = [hold(n) for n in range(7)]
    for parts in (2, 3, 7, 20):
        chunks = split(items, parts)
        assert [d for chunk in chunks for d in chunk] == items
        assert len(chunks) == min(parts, 7)
        assert all(chunks)
