"""Threads of the host take turns at the virtual device; finalisers may run in the middle of one."""

from __future__ import annotations

import functools
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from consan.backends.virtual import DeviceTurns, VirtualBackend

pytestmark = pytest.mark.timeout(60)


def test_what_a_finaliser_frees_in_a_turn_is_freed_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = VirtualBackend()
    first, second = backend.alloc(256), backend.alloc(256)
    original = backend.machine.alloc
    seen: list[Any] = []

    def collecting(*given: Any, **named: Any) -> int:
        backend.free(first)  # as the garbage collector does, in whatever the thread is at
        seen.append(backend.allocation(first))
        return original(*given, **named)

    monkeypatch.setattr(backend.machine, "alloc", collecting)
    backend.alloc(512)
    assert seen == [(first, 256)], "a structure that is being changed is left alone"
    assert backend.allocation(first) is None
    assert backend.allocation(second) == (second, 256)


def test_another_thread_waits_for_its_turn() -> None:
    turns, done = DeviceTurns(), threading.Event()
    other = threading.Thread(target=turns.soon, args=(done.set,))
    with turns:
        other.start()
        assert not done.wait(0.05)
    other.join()
    assert done.is_set()


def test_a_finaliser_that_runs_where_a_turn_begins_or_ends_waits_for_nobody() -> None:
    """One runs at each line of the two methods."""
    turns, freed, seen = DeviceTurns(), list[int](), set[int]()

    def at_each_line(frame: FrameType, event: str, _value: Any) -> Any:
        if frame.f_code.co_name not in ("__enter__", "__exit__"):
            return None
        if event == "line" and frame.f_lineno not in seen:
            seen.add(frame.f_lineno)
            sys.settrace(None)
            turns.soon(functools.partial(freed.append, frame.f_lineno))
            sys.settrace(at_each_line)
        return at_each_line

    def turn() -> None:
        sys.settrace(at_each_line)
        with turns:
            pass
        sys.settrace(None)

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    turns.soon(lambda: None)  # another thread has its turn
    assert sorted(freed) == sorted(seen)
    assert len(seen) > 4
