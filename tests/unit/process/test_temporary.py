"""Folders of runs that were killed are removed; those of runs that go on stay, also those of forked copies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from planted import plant

from consan import temporary
from consan.temporary import RunFolder

OWNER = """
import os, sys, time
from consan.temporary import RunFolder
folder = RunFolder("test")
(folder.path / "file").write_text("left")
child = os.fork() if sys.argv[1:] else -1
if child == 0:
    time.sleep(600)
print(folder.path, child, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def started(*words: str) -> tuple[subprocess.Popen[str], Path, int]:
    """A process with a folder, and the number of its forked copy."""
    process = subprocess.Popen([sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder, child = process.stdout.readline().split()
    return process, Path(folder), int(child)


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_folder_of_a_killed_process_is_removed_by_the_next_one(place: Path) -> None:
    process, folder, _ = started()
    other = RunFolder("test")
    assert folder.exists(), "its process goes on"
    killed(process)
    another = RunFolder("test")
    assert sorted(place.iterdir()) == sorted([other.path, another.path])
    other.remove()
    another.remove()
    assert not list(place.iterdir())


def test_a_forked_copy_keeps_the_folder() -> None:
    process, folder, child = started("forks")
    killed(process)
    RunFolder("test").remove()
    assert (folder / "file").exists()
    os.kill(child, signal.SIGKILL)
    for _ in range(500):
        RunFolder("test").remove()
        if not folder.exists():
            return
        time.sleep(0.01)
    pytest.fail("nobody has the folder")


def test_what_is_not_a_run_s_stays(place: Path) -> None:
    kept = [place / "consan-results", place / "other", place / "consan-file"]
    for folder in kept[:2]:
        folder.mkdir()
    kept[2].write_text("")
    RunFolder("test").remove()
    assert all(each.exists() for each in kept)


def test_a_planted_fault_removes_the_folder_of_a_process_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, temporary, "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_UN", "_remove_left")
    process, folder, _ = started()
    RunFolder("test").remove()
    assert not folder.exists()
    killed(process)
