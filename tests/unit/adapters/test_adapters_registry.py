"""`install` and `remove`: the innermost session gets the kernels, the outer one comes back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from consan import adapters
from consan.adapters import on_cpu, on_gpu


class Recorder:
    name = "recorder"

    def __init__(self, device: str, log: list[tuple[str, ...]]) -> None:
        self._device, self._log = device, log

    def available(self) -> bool:
        return True

    def describe(self) -> str:
        return "records"

    def install(self, session: Any) -> None:
        self._log.append(("install", self._device, session.label))

    def remove(self) -> None:
        self._log.append(("remove", self._device))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    calls: list[tuple[str, ...]] = []
    for device, home in (("cpu", on_cpu), ("gpu", on_gpu)):
        monkeypatch.setattr(home, "ADAPTERS", (Recorder(device, calls),))
    monkeypatch.setattr(adapters, "_sessions", [])
    return calls


def session(label: str, device: str = "cpu") -> Any:
    return SimpleNamespace(label=label, backend=SimpleNamespace(choice=device, calls=None))


def test_device_chooses_the_adapter(log: list[tuple[str, ...]]) -> None:
    adapters.install(session("a"))
    adapters.remove()
    adapters.install(session("b", "gpu"))
    adapters.remove()
    assert log == [("install", "cpu", "a"), ("remove", "cpu"), ("install", "gpu", "b"), ("remove", "gpu")]


def test_nesting(log: list[tuple[str, ...]]) -> None:
    outer, inner = session("outer"), session("inner")
    adapters.install(outer)
    adapters.install(inner)
    adapters.remove()
    adapters.remove()
    assert [call for call in log if call[0] == "install"] == [("install", "cpu", name) for name in ("outer", "inner", "outer")]
    assert log[-1] == ("remove", "cpu")


def test_idempotent(log: list[tuple[str, ...]]) -> None:
    one = session("one")
    adapters.install(one)
    adapters.install(one)
    adapters.remove()
    adapters.remove()
    assert log == [("install", "cpu", "one"), ("remove", "cpu")]


def test_describe(log: list[tuple[str, ...]]) -> None:
    assert adapters.describe() == {"recorder (cpu)": "records", "recorder (gpu)": "records"}
