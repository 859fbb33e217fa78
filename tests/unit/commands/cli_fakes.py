"""A session without a backend, and a way to run the command in process, for the tests of the command line."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import report_samples as samples

from consan.reports.model import Report
from consan.session.planning.options import SessionOptions


@dataclass
class FakeBackend:
    """Device memory as a dict."""

    device_name: str = "cpu"
    choice: str = "cpu"
    arch: str = "sm_90a"
    allocates_zeros: bool = True
    simulates: bool = False
    memory: dict[int, Any] = field(default_factory=dict)

    def alloc(self, nbytes: int) -> int:
        """A new address."""
        address = 0x7F0000000000 + 4096 * len(self.memory)
        self.memory[address] = bytes(nbytes)
        return address

    def write(self, address: int, data: Any) -> None:
        """Store."""
        self.memory[address] = np.array(data)


class FakeModule(str):
    """A prepared module: its name."""

    synchronises_grid, number, recorded = False, 0, None


class FakeSession:
    """Takes what commands give and hands back a prepared report."""

    latest: FakeSession
    record_lost = False
    executed = 0
    result: Callable[[], Report] = staticmethod(samples.clean)

    def __init__(self, options: SessionOptions, *, cta_limit: int = 0) -> None:
        self.options, self.cta_limit = options, cta_limit
        self.backend = FakeBackend()
        self.device = types.SimpleNamespace(most_shadow=64 << 20, lock=threading.RLock())
        self.news = types.SimpleNamespace(on_judged=None)
        self.recording = types.SimpleNamespace(fixes=types.SimpleNamespace(seconds=0.0))
        self.launches: list[tuple[Any, ...]] = []
        self.prepared: list[str] = []
        self.notes: list[str] = []
        type(self).latest = self

    def show(self, progress: Any) -> None:
        """Nobody watches."""

    def note(self, text: str) -> None:
        """Remember the note."""
        self.notes.append(text)

    def prepare(self, ptx: Any, *, name: str = "<ptx>", cluster: int = 1) -> str:
        """Remember the text."""
        self.prepared.append(getattr(ptx, "text", ptx))
        return FakeModule(name)

    def room(self, *launch: Any) -> str:
        """A line for the terminal."""
        return "some memory"

    def launch(self, prepared: Any, entry: str, grid: Any, block: Any, args: Any, **options: Any) -> None:
        """Remember the launch."""
        self.launches.append((prepared, entry, grid, block, args, options))

    def places(self, report: Report) -> set[tuple[str, int]]:
        """Nothing was watched."""
        return set()

    def take(self) -> Report | None:
        """Nothing was found so far."""

    def report(self) -> Report:
        """The report that the test asked for."""
        return type(self).result()


@contextmanager
def fake_session(monkeypatch: pytest.MonkeyPatch, result: Callable[[], Report]) -> Iterator[type[FakeSession]]:
    """Put FakeSession where commands import Session from, and keep the adapters out."""
    from consan import adapters

    one = type("OneFakeSession", (FakeSession,), {"result": staticmethod(result)})
    module = types.ModuleType("consan.session.session")
    module.Session = one  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "consan.session.session", module)
    monkeypatch.setattr(adapters, "install", lambda session: None)
    monkeypatch.setattr(adapters, "remove", lambda: None)
    yield one
