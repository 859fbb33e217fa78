"""A deadlock of warps that wait for columns of tensor memory says so, and not the barrier at which others wait for them."""

from __future__ import annotations

from typing import Any

from consan.reports.waiting.waiters import Waiter, deadlock_of


def test_an_allocation_without_room_is_the_cause() -> None:
    where: dict[str, Any] = {"block": (0, 0, 0), "lanes": 0xFFFFFFFF, "threads": 32}
    waiters = [Waiter(warp=0, why="columns", **where), Waiter(warp=1, why="barrier", barrier=0, arrived=32, expected=64, **where)]
    found = deadlock_of("k", waiters)
    assert "warps wait for columns of tensor memory in tcgen05.alloc" in found.message
    assert "tcgen05.dealloc" in found.fix
    others = deadlock_of("k", waiters[1:])
    assert "barrier 0" in others.message
