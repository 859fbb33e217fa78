"""The disk cache: hits, damage, folders that cannot be written, and two processes at once."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path

import pytest

from consan.toolchain.cache import Cache, default_folder, key


def test_stores_and_returns(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "folder")
    assert cache.get(key("a")) is None
    assert cache.fetch(key("a"), lambda: b"made") == b"made"
    assert cache.fetch(key("a"), lambda: pytest.fail("made twice")) == b"made"
    assert cache.fetch_text(key("t"), lambda: "text") == "text"
    assert cache.size() > 0
    cache.clear()
    assert cache.get(key("a")) is None
    assert cache.size() == 0


def test_keys_respect_boundaries_and_kinds() -> None:
    assert key("ab", "c") != key("a", "bc")
    assert key("a") == key(b"a")
    assert key("a") != key("a", "")


def _stored(folder: Path) -> Path:
    """The file of the only entry."""
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def _entry(folder: Path, name: str) -> Path:
    return folder / name[:2] / name[2:]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_damaged_entry_is_a_miss_and_is_replaced(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path)
    cache.put(key("a"), b"good")
    _stored(tmp_path).write_bytes(damage)
    assert cache.get(key("a")) is None
    assert cache.fetch(key("a"), lambda: b"again") == b"again"
    assert cache.get(key("a")) == b"again"


def test_truncated_entry_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(key("a"), b"0123456789")
    path = _stored(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.get(key("a")) is None


def test_folder_that_cannot_exist_is_noted_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    assert cache.fetch(key("a"), lambda: b"made") == b"made"
    assert cache.problem is not None
    assert str(tmp_path / "file" / "cache") in cache.problem


def test_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("consan.toolchain.cache.os.replace", fail)
    cache = Cache(tmp_path)
    assert cache.fetch(key("a"), lambda: b"made") == b"made"
    assert cache.problem is not None
    assert "No space left" in cache.problem
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("CONSAN_CACHE_DIR")
    monkeypatch.setattr("consan.toolchain.cache.sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "consan"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "consan"


def _hammer(folder: str, rounds: int) -> None:
    cache = Cache(Path(folder))
    for i in range(rounds):
        name = key(str(i % 7))
        expected = str(i % 7).encode() * 50_000
        cache.put(name, expected)
        found = cache.get(name)
        if found != expected:
            raise SystemExit(f"read {None if found is None else len(found)} bytes")


def test_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_hammer, args=(str(tmp_path), 200)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 7


def test_folder_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    Cache(folder).put(key("a"), b"planted")
    folder.chmod(0o770)
    cache = Cache(folder)
    assert cache.get(key("a")) is None
    cache.put(key("b"), b"b")
    assert cache.problem is not None
    assert "other users may write it" in cache.problem
    folder.chmod(0o700)
    assert Cache(folder).get(key("a")) == b"planted"
    assert Cache(folder).get(key("b")) is None


def test_folder_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path).put(key("a"), b"a")
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    found = tmp_path.stat()
    monkeypatch.setattr(Path, "stat", lambda self, **_: os.stat_result((found.st_mode, 0, 0, 1, 54321, 0, 0, 0, 0, 0)))
    cache = Cache(tmp_path)
    assert cache.get(key("a")) is None
    assert cache.problem is not None
    assert "belongs to another user" in cache.problem


def test_entries_that_were_not_used_longest_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.toolchain.cache.LARGEST", 1000)
    cache = Cache(tmp_path)
    for number in range(4):
        cache.put(key(str(number)), bytes(200))
        os.utime(_entry(tmp_path, key(str(number))), (number, number))
    assert cache.get(key("0")) is not None  # used last
    cache.put(key("4"), bytes(200))
    held = [number for number in range(5) if _entry(tmp_path, key(str(number))).exists()]
    assert held == [0, 3, 4]
    assert cache.size() <= 750


def test_clear_leaves_files_that_are_no_entries(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    cache = Cache(tmp_path)
    cache.put(key("a"), b"a")
    cache.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
