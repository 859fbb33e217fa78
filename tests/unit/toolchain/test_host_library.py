"""The libraries in C++ and C: built with the package, compiled where their sources differ, and what the build asks for."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from consan._errors import EnvironmentFailure
from consan.building import libraries
from consan.checker.compiled.build import CHECKER
from consan.toolchain.host_library import CXX, HostLibrary, loaded

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "tutorials" / "02_missing_cp_async_wait" / "exercise.cu"
LAUNCH = ("--device", "cpu", "--grid", "2,2", "--block", "64", "--arg", "f32[3072]=random", "--arg", "f32[3072]=random")
LAUNCH = (*LAUNCH, "--arg", "f32[1024]=zeros", "--arg", "i32=32", "--arg", "i32=96", "--format", "json")
ONE = HostLibrary("one", "a test", CXX, "consan.checker", "one.cpp", ("-shared", "-fPIC"))
SOURCES = {"one.cpp": 'extern "C" int one() { return 1; }\n'}


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has Python, and neither compilers nor what they have made."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    for variable in ("CXX", "CC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize("library", libraries.LIBRARIES, ids=lambda library: library.name)
def test_the_installed_package_has_its_libraries(library: HostLibrary) -> None:
    if not library.origin().startswith("built"):
        pytest.skip("the sources have changed since consan was installed")
    assert library.data().startswith(b"\x7fELF")


def test_a_machine_without_a_compiler_records(no_compiler: None) -> None:
    """Global memory is checked, and the fix that the report gives is the one that it has verified."""
    if not CHECKER.origin():
        pytest.skip("the sources have changed since consan was installed")
    words = [sys.executable, "-m", "consan", "check", str(DEMO), *LAUNCH]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (66, "violations")
    assert "global-memory" in report["checked"]
    assert all("verified" in finding for finding in report["findings"])


def test_the_build_asks_for_a_compiler_where_there_is_none(no_compiler: None) -> None:
    assert not libraries.has_compilers()
    for library in libraries.LIBRARIES:
        with pytest.raises(EnvironmentFailure, match=r"needs a C(\+\+)? compiler: install g\S+ or clang\S*, or the Python package ziglang"):
            library.compiled(library.sources() | {"changed": ""})


def test_a_library_is_named_by_what_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build replaces the library of other sources, and compiles only what it lacks."""
    monkeypatch.setattr(HostLibrary, "sources", lambda _: SOURCES)
    ONE.build(tmp_path)
    (first,) = tmp_path.iterdir()
    monkeypatch.setattr(HostLibrary, "compiled", lambda *_: b"compiled again")
    ONE.build(tmp_path)
    assert first.read_bytes().startswith(b"\x7fELF")
    replace(ONE, options=(*ONE.options, "-O1")).build(tmp_path)
    (second,) = tmp_path.iterdir()
    assert second != first
    assert second.read_bytes() == b"compiled again"


def test_libraries_from_memory_are_apart() -> None:
    """Though the number of the file is the same."""
    texts = {"one.cpp": 'extern "C" int one() { return 1; }'}, {"one.cpp": 'extern "C" int two() { return 2; }'}
    first, second = (loaded(ONE.compiled(text), "test") for text in texts)
    assert (first.one(), second.two()) == (1, 2)


def test_a_library_that_stays_has_a_path_that_others_open() -> None:
    """CuTe DSL links the stand-in driver by its path, also where it was compiled at first use."""
    data = ONE.compiled({"one.cpp": 'extern "C" { int count; int one() { return ++count; } }'})
    stays, gone = loaded(data, "test", stays=True), loaded(data, "test")
    assert stays.one() == 1
    assert ctypes.CDLL(vars(stays)["_name"]).one() == 2, "the same library"
    assert not Path(vars(gone)["_name"]).exists()


# A compiler that says that it runs, and takes its time.
_SLOW = """#!/bin/sh
echo run >> "$COUNTED"
sleep "$TAKES"
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""
_ASKS = """
import sys
from consan.toolchain import cache, host_library
{fault}
library = host_library.HostLibrary("one", "a test", host_library.CXX, "consan.checker", "one.cpp", ())
sys.stdout.buffer.write(library.compiled({{"one.cpp": ""}}))
"""


class Compilations:
    """Processes that need the same library."""

    def __init__(self, folder: Path) -> None:
        self.counted = folder / "counted"
        (folder / "c++").write_text(_SLOW)
        (folder / "c++").chmod(0o755)
        cache, compiler = str(folder / "cache"), str(folder / "c++")
        self.given = {"CXX": compiler, "COUNTED": str(self.counted), "CONSAN_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}

    def begin(self, takes: float, fault: str = "") -> subprocess.Popen[str]:
        words = [sys.executable, "-c", _ASKS.format(fault=fault)]
        return subprocess.Popen(words, env={**os.environ, **self.given, "TAKES": str(takes)}, stdout=-1, text=True, start_new_session=True)

    @property
    def count(self) -> int:
        return self.counted.read_text().count("run") if self.counted.exists() else 0

    def wait_for_one(self) -> None:
        until = time.monotonic() + 30
        while not self.count and time.monotonic() < until:
            time.sleep(0.02)


@pytest.fixture
def compilations(tmp_path: Path) -> Compilations:
    return Compilations(tmp_path)


@pytest.mark.parametrize(("fault", "count"), [("", 1), ("cache._is_taken = lambda *_: True", 4)], ids=["", "planted"])
def test_one_process_compiles_and_the_others_wait(fault: str, count: int, compilations: Compilations) -> None:
    first = compilations.begin(5, fault)
    compilations.wait_for_one()
    others = [compilations.begin(5, fault) for _ in range(3)]
    assert [each.communicate(timeout=60)[0] for each in (first, *others)] == ["library\n"] * 4
    assert compilations.count == count


def test_a_process_that_dies_keeps_nobody_waiting(compilations: Compilations) -> None:
    first = compilations.begin(600)
    compilations.wait_for_one()
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert compilations.begin(0).communicate(timeout=60)[0] == "library\n"
    assert compilations.count == 2


def test_nobody_waits_for_ever(compilations: Compilations) -> None:
    first = compilations.begin(600)
    try:
        compilations.wait_for_one()
        assert compilations.begin(0, "host_library.PATIENCE = 0.5").communicate(timeout=60)[0] == "library\n"
        assert first.poll() is None
        assert compilations.count == 2
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()


def test_a_cache_that_cannot_be_written_has_no_lock(compilations: Compilations) -> None:
    compilations.given["CONSAN_CACHE_DIR"] = "/proc/no/such/folder"
    assert compilations.begin(0).communicate(timeout=60)[0] == "library\n"
