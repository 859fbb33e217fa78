"""A child process marks that it has kernels before the first one, whichever way an adapter takes to it."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consan.process import children
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

OPTIONS = SessionOptions(device="gpu", policy="isa").stored()
TAKES_A_MODULE = sorted(
    name for name, method in inspect.getmembers(Session, inspect.isfunction) if "ptx" in inspect.signature(method).parameters
)


def test_it_is_the_session_of_its_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Adapters compare sessions: a launch repeats in that of its module (consan/adapters/recorded.py)."""
    real, other = SimpleNamespace(), SimpleNamespace()
    monkeypatch.setattr(children, "open_session", lambda _: real)
    child = children.ChildSession({"options": OPTIONS, "folder": str(tmp_path)})
    real.here = lambda: real
    assert child.here() is child
    real.here = lambda: other
    assert child.here() is other


@pytest.mark.parametrize(("name", "marked"), [*((name, True) for name in TAKES_A_MODULE), ("launch", True), ("recording", False)])
def test_the_first_kernel_leaves_a_mark(name: str, marked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def opened(_: Any) -> Any:
        news, device, watch = SimpleNamespace(on_judged=None), SimpleNamespace(lock=threading.RLock()), SimpleNamespace(cut_off=print)
        uses = dict.fromkeys([*TAKES_A_MODULE, "launch"], print)
        return SimpleNamespace(take=lambda: None, recording=None, news=news, device=device, watch=watch, **uses)

    monkeypatch.setattr(children, "open_session", opened)
    monkeypatch.setattr(children, "before_termination", lambda end: None)
    child = children.ChildSession({"options": OPTIONS, "folder": str(tmp_path)})
    getattr(child, name)
    assert [path.suffix for path in tmp_path.iterdir()] == [".mark"] * marked
    child.end()
    assert list(tmp_path.iterdir()) == []
