"""Schedules that steer: their seeds, and what they do at a point."""

from __future__ import annotations

from consan.backends.cpu.engine.steered import CTAS, EVERYONE, Action, Seen, Steer, Steered, SteeringPoint, schedule_of, steerings
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
    planned = list(steerings(found, Seen([(0, 1), (1, 0), (1, 3)]), warps_per_cta=2, ctas=2))
    assert planned[0] == Steer(0, Action.FAIL, 1, EVERYONE, 1)
    assert {each.point for each in planned} == {0, 1}
    assert {each.party for each in planned if each.point == 0} == {1, CTAS}
    assert len(planned) == len(set(planned))
