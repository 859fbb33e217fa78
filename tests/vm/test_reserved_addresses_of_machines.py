"""The addresses of machines that nobody uses are given back when there are no others."""

from __future__ import annotations

import mmap
from typing import Any

import pytest
from planted import plant

from consan.backends.cpu.state import memory


def machines_left(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make a machine's memory where an unused one, which is part of a cycle, holds all addresses. Gives the bytes of the new one."""
    held, made = list[object](), mmap.mmap

    class Unused:
        def __init__(self) -> None:
            self.own = self
            held.append(1)

        def __del__(self) -> None:
            held.pop()

    def limited(*given: Any, **how: Any) -> mmap.mmap:
        if held:
            raise OSError
        return made(*given, **how)

    Unused()
    monkeypatch.setattr(memory.mmap, "mmap", limited)
    return memory.Arena().raw.size


def test_a_machine_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machines_left(monkeypatch) == memory.Arena.SIZES[0]


def test_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, memory, "            gc.collect()", "            pass")
    with pytest.raises(memory.EnvironmentFailure):
        machines_left(monkeypatch)
