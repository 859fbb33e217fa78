"""The checker under the sanitizers for addresses and undefined behaviour, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consan.toolchain.host_library import CXX

TESTS = Path(__file__).parents[1]
FILES = ("record/test_checker.py", "oracle/test_litmus.py", "oracle/test_litmus_async.py")  # those that NVRTC does not compile for
OPTIONS = ("-q", "-s", "-n", "0", "-p", "sanitized", "-p", "no:cacheprovider", "-m", "not slow and not gpu")
SOUND, BROKEN = "*output = Output{};", "*output = Output{}; std::vector<u32> one(1); output->records = one[2 + input->every];"
BREAKS = f"""
from consan.checker.compiled import build
from test_checker import _replay

def test_broken(monkeypatch):
    sources = build.sources()
    assert sources["replay.cpp"].count({SOUND!r}) == 1
    sources["replay.cpp"] = sources["replay.cpp"].replace({SOUND!r}, {BROKEN!r})
    monkeypatch.setattr(type(build.CHECKER), "sources", lambda _: sources)
    build.library.cache_clear()
    _replay([1, 1024, 0xFFFFFFFF])
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = CXX.compiler()
    assert command is not None
    asked = subprocess.run([*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    library = asked.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("the compiler has no sanitizer for addresses")
    given = {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join((str(TESTS / "record"), str(TESTS))),
    }
    words = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
    return subprocess.run(words, env=os.environ | given, cwd=TESTS.parent, capture_output=True, text=True, timeout=1500, check=False)


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_the_checkers_tests_pass() -> None:
    done = _run(*(str(TESTS / name) for name in FILES))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_read_outside_of_a_table_is_seen(tmp_path: Path) -> None:
    """Without this the test above could pass because nothing was compiled with a sanitizer."""
    broken = tmp_path / "test_broken.py"
    broken.write_text(BREAKS)
    done = _run(str(broken))
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr, (done.stdout + done.stderr)[-4000:]
