"""A program that ends while consan still checks a launch of it: the check is interrupted, and what it has found is reported."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from types import ModuleType

import pytest
from planted import plant

from consan.checker.compiled import patience as patience_module
from consan.checker.compiled.cores import Calls
from consan.checker.compiled.patience import Patience
from consan.native import server as server_module
from consan.native.server import Server
from consan.session.planning.options import SessionOptions


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STRAGGLERS", 0.1)
    monkeypatch.setattr(server_module, "INTERRUPTED", 5.0)


@pytest.fixture
def patience() -> Iterator[Patience]:
    made = Patience(600.0)
    yield made
    made.halt.value = 1


def ended(patience: Patience) -> tuple[bool, list[str]]:
    """Whether a check is over, and why the report is incomplete: it began before the program's end, and ends only if it is asked to."""

    def replay() -> None:
        while not patience.halt.value:
            time.sleep(0.01)

    def check() -> None:
        calls = Calls(replay, [()], 1)
        patience.wait(calls.wait)

    server = Server(SessionOptions())
    own, other = socket.socketpair()
    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    server.serving[thread] = own
    with own, other:
        reports, why = server.outcomes()
    assert not reports
    return not thread.is_alive(), why


def test_a_check_is_interrupted(patience: Patience) -> None:
    over, why = ended(patience)
    assert (over, patience.interrupted) == (True, True)
    assert why == ["1 of the program's processes still ran when it ended: what they do is not in this report"]


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [(server_module, "        interrupt(left)\n", ""), (patience_module, "min(max(left, 0.0), _LONGEST_WAIT)", "max(left, 0.0)")],
)
def test_a_fault(module: ModuleType, old: str, new: str, patience: Patience, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, module, old, new)
    monkeypatch.setattr(server_module, "INTERRUPTED", 0.5)
    assert not ended(patience)[0]
