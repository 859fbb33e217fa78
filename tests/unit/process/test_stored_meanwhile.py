"""The findings of a program so far are stored while it runs: a finding at once, and all else beside a GPU by a thread of consan's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planted import plant

from consan.process import children
from consan.reports.formats.json_format import loads
from consan.reports.verdict.conclusion import assemble


class Stored:
    """A handover whose session gives empty reports. `by`: the threads that made them, and whether they counted all launches."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, gpu: bool) -> None:
        monkeypatch.setattr(children, "before_termination", lambda end: None)
        self.by, self.folder = list[tuple[str, bool]](), folder
        self.session = SimpleNamespace(
            take=lambda: None, so_far=self.so_far, news=SimpleNamespace(on_judged=None), device=SimpleNamespace(lock=threading.RLock()),
            watch=SimpleNamespace(cut_off=lambda: None), backend=SimpleNamespace(work=object() if gpu else None),
        )  # fmt: skip
        self.handover = children.Handover(folder)
        self.handover.begin(self.session)  # type: ignore[arg-type]

    def so_far(self, *, counts_all: bool = True) -> Any:
        self.by.append((threading.current_thread().name, counts_all))
        return assemble(device="none")

    def judged(self, *, new: bool, wait: bool = True) -> list[tuple[str, bool]]:
        self.by.clear()
        on_judged: Callable[[bool], None] = self.session.news.on_judged
        on_judged(new)
        for each in [each for each in threading.enumerate() if each.name == "consan-reports" and wait]:
            each.join()
        return list(self.by)


HERE, ASIDE = [("MainThread", True)], [("consan-reports", False)]


def test_beside_a_gpu_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Stored(tmp_path, monkeypatch, gpu=True)
    assert one.judged(new=False) == [], "the program has just begun"
    monkeypatch.setattr(children, "FIRST_STORED", 0.0)
    assert one.judged(new=False) == ASIDE
    (path,) = tmp_path.glob("*.json")
    assert loads(path.read_text()).verdict == "incomplete"
    one.handover.next_store = {True: 0.0, False: time.monotonic() + 60}
    assert one.judged(new=False) == []
    assert one.judged(new=True) == HERE


def test_without_a_gpu_it_is_stored_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Stored(tmp_path, monkeypatch, gpu=False).judged(new=False) == HERE


def test_one_thread_at_a_time_and_none_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_STORED", 0.0)
    one = Stored(tmp_path, monkeypatch, gpu=True)
    with one.session.device.lock:
        assert one.judged(new=False, wait=False) == []
        assert one.judged(new=False, wait=False) == []
        threads = [each for each in threading.enumerate() if each.name == "consan-reports"]
        assert len(threads) == 1
        one.handover.end()
    threads[0].join()
    assert one.by == []
    assert list(tmp_path.iterdir()) == []


FAULTS: dict[str, tuple[str, str, Callable[..., None]]] = {
    "at once": ("new or session.backend.work is None", "True", test_beside_a_gpu_nobody_waits),
    "with all launches": ("so_far, counts_all=False)", "so_far)", test_beside_a_gpu_nobody_waits),
    "from the first on": ("time.monotonic() > self._began + FIRST_STORED", "True", test_beside_a_gpu_nobody_waits),
    "later": ("session.backend.work is None", "False", test_without_a_gpu_it_is_stored_at_once),
    "two threads": ("self.next_store = {**self.next_store, False: math.inf}", "pass", test_one_thread_at_a_time_and_none_behind_the_end),
    "behind the end": ("if self._session is session:", "if True:", test_one_thread_at_a_time_and_none_behind_the_end),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = FAULTS[fault]
    plant(monkeypatch, children, old, new)
    with pytest.raises(AssertionError):
        test(tmp_path, monkeypatch)
