"""The end of a program under `consan run`: its threads end first, and nobody waits for threads that have nothing to do."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from consan.session import left_threads
from consan.session.left_threads import end_launches

LEFT_OPEN = """
import time
from concurrent.futures import ThreadPoolExecutor
from consan.checker.logs import prefetch
prefetch.later(lambda: None).result()
pool = ThreadPoolExecutor(2)
pool.submit(lambda: (time.sleep(0.2), print("worked")))
"""


def test_a_pool_that_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LEFT_OPEN)
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "-q", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (67, "worked"), done.stderr  # no kernel ran: incomplete


def held(names: list[str]) -> list[str]:
    """Threads that compute and have a lock; those that were interrupted once `end_launches` is over. The first has the device."""
    lock, interrupted, ready = threading.RLock(), list[str](), threading.Barrier(len(names) + 1)

    def runs(name: str, number: int) -> None:
        with contextlib.ExitStack() as stack:
            if number == 0:
                stack.enter_context(lock)
            ready.wait()
            until = time.monotonic() + 5
            try:
                while time.monotonic() < until:
                    pass
            except KeyboardInterrupt:
                interrupted.append(name)

    threads = [threading.Thread(target=runs, args=(name, number), name=name, daemon=True) for number, name in enumerate(names)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    end_launches(lock)
    assert lock.acquire(timeout=0.1)
    lock.release()
    assert time.monotonic() - began < 4
    return interrupted


def test_a_daemon_thread_with_the_device_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_threads, "STRAGGLERS", 0.2)
    assert held(["theirs", "consan-checks"]) == ["theirs"]


def test_nobody_is_interrupted_where_the_device_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_threads, "interrupt", lambda _: pytest.fail("a thread is interrupted"))
    end_launches(threading.RLock())


def test_a_fault_that_interrupts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_threads, "STRAGGLERS", 0.2)
    monkeypatch.setattr(left_threads, "interrupt", lambda _: None)
    with pytest.raises(AssertionError):
        held(["theirs"])
