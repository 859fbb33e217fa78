"""Schedules that steer: their seeds, and what they do at a point."""

from __future__ import annotations

import numpy as np
import pytest

from consan.backends.cpu.engine.steered import (
    CTAS,
    EVERYONE,
    OF_CTA,
    OF_WAVE,
    Action,
    Seen,
    Steer,
    Steered,
    SteeringPoint,
    WaveSizes,
    schedule_of,
    steerings,
)
from consan.backends.cpu.state.schedule import STEERED, Schedule, Seeded


def test_a_seed_is_a_steering_and_the_seed_of_the_arguments() -> None:
    for steering in (Steer(), Steer(1, Action.FAIL, 7, EVERYONE, 1023), Steer(0, Action.LAST, 1, 3, 5)):
        assert Steer.of(steering.number) == steering
        made = schedule_of(steering.seed(data=7))
        assert isinstance(made, Steered)
        assert made.steering == steering
        assert steering.seed(data=7) % STEERED == 7


def test_other_seeds_mean_what_they_meant() -> None:
    assert type(schedule_of(0)) is Schedule
    assert type(schedule_of(3)) is Seeded
    assert type(schedule_of(-3)) is Seeded


def test_waits_come_first_and_nobody_is_steered_who_does_not_come() -> None:
    rows = ((1, 10, True, False), (2, 20, True, True), (3, 30, False, False))
    found = [SteeringPoint(*row) for row in rows]
    planned = list(steerings(found, Seen([(0, 1), (1, 0), (1, 3)]), WaveSizes(warps_per_cta=2, ctas=2)))
    assert planned[0] == Steer(0, Action.FAIL, 1, EVERYONE, 1)
    assert {each.point for each in planned} == {0, 1}
    assert {each.party for each in planned if each.point == 0} == {1, CTAS}
    assert len(planned) == len(set(planned))


def _begins(turns: str, came: list[int], sizes: WaveSizes) -> list[int]:
    """Parties of the schedules in which threads take turns at a point in another order."""
    seen = Seen([(0, 0), (0, 1)], {0: [np.array(came)]})
    planned = steerings([SteeringPoint(1, 10, observes=True, waits=False, shows=True, turns=turns)], seen, sizes)
    return [each.party for each in planned if each.party > EVERYONE and each.action == Action.LAST]


def test_one_thread_adds_before_all_others() -> None:
    """Where the atomic has a result, others come last in orders; where it has none, in schedules of their own."""
    for has_result, others in ((True, []), (False, [(Action.LAST, 3), (Action.LAST, 5)])):
        seen = Seen([(0, 0)], {0: [np.array([2, 4, 5])]})
        point = SteeringPoint(1, 10, observes=False, waits=False, shows=True, turns="wave", has_result=has_result)
        parts = [(each.action, each.party - OF_WAVE) for each in steerings([point], seen, WaveSizes(1, 1, 40)) if each.party > OF_WAVE]
        assert parts[: 1 + len(others)] == [(Action.FIRST, 3), *others]


def test_turns_begin_with_each_thread_once() -> None:
    assert sorted(_begins("wave", [*range(40)], WaveSizes(2, 1, 40))) == [OF_WAVE + each for each in range(1, 40)]
    assert sorted(_begins("cta", [*range(80)], WaveSizes(2, 2, 40))) == [OF_CTA + each for each in range(1, 40)], "in both CTAs at once"
    assert _begins("wave", [7], WaveSizes(2, 1, 40)) == []


@pytest.mark.parametrize(("numbers", "begin"), [((33,), 33), ((50, 20), 30)])
def test_turns_first_give_threads_of_which_the_text_speaks_a_place_of_which_it_speaks(numbers: tuple[int, ...], begin: int) -> None:
    assert OF_WAVE + begin in _begins("wave", [*range(1024)], WaveSizes(32, 1, 1024, numbers))[:8]
