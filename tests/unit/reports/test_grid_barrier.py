"""A barrier of the grid to which not all CTAs come, as the deadlock names it."""

from __future__ import annotations

from consan.reports.waiting.deadlocks import OF_GRID, Poll, deadlock

WAITER = {"block": [0, 0, 0], "warp": 0, "lanes": 1, "why": "spin"}


def test_the_barrier_of_the_grid_is_named() -> None:
    found = deadlock("k", [WAITER], [], [], polls=[Poll(OF_GRID, lock=False)])
    assert found.situation == "grid"
    assert "at the barrier of the grid, and not all CTAs come there" in found.message
    assert "let every thread of every CTA reach" in found.fix


def test_other_memory_that_is_polled_besides() -> None:
    found = deadlock("k", [WAITER], [], [], polls=[Poll(OF_GRID), Poll("flag")])
    assert found.situation == "polled"
