"""Programs in Python whose framework launches by itself: as a script, a module, code and tests they run with the interposer alike.

The framework is made up (ways/warp), and so is the driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from native_case import HERE, Case, environment

from consan.__main__ import main
from consan.native import run
from consan.toolchain.host_library import C

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
WAYS = HERE / "ways"
HELPER = "import sys, warp\n\n\ndef begin():\n    warp.launch(sys.argv[-1])\n"
PROGRAM = "from helper import begin\nbegin()\n"
TESTS = """
import warp

import os


def test_racy():
    warp.launch(os.environ["RACY"])


def test_clean():
    warp.launch(os.environ["CLEAN"])


def test_none():
    pass
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that launches by way of a module of its own."""
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "test_it.py").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "has_gpu", lambda: True)
    return tmp_path


@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"], ["-c", PROGRAM]], ids=["script", "module", "code"])
@pytest.mark.parametrize("racy", [True, False])
def test_a_script_a_module_and_code(words: list[str], racy: bool, program: Path, case: Case) -> None:
    given = case.environment | {"PYTHONPATH": str(WAYS)} | ({} if racy else {"FAKE_CUDA_RING": ""})
    with environment(given):
        status = main(["run", "--device", "gpu", "-o", "report.json", *words, case.image("ptx" if racy else "clean")])
    report = json.loads((program / "report.json").read_text())
    assert (status, report["verdict"]) == ((66, "violations") if racy else (0, "clean"))
    assert sum(kernel["launches"] for kernel in report["kernels"]) == 1
    assert any("Warp loads and launches its kernels itself" in note for note in report["notes"])


def run_tests(case: Case, folder: Path, *words: str) -> tuple[int, str, dict[str, str]]:
    """pytest's status and text, and the verdict of each test."""
    paths = os.pathsep.join(map(str, (WAYS, HERE, HERE.parent)))
    given = {**os.environ, **case.environment, "PYTHONPATH": paths, "RACY": case.image("ptx"), "CLEAN": case.image("clean")}
    command = [sys.executable, "-m", "pytest", "-p", "armed_gpu", "--consan", "--consan-report=report.json", *words]
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
    file = folder / "report.json"
    tests = json.loads(file.read_text()).get("tests", []) if file.exists() else []
    return done.returncode, done.stdout + done.stderr, {each["id"].rpartition("::")[2]: each["verdict"] for each in tests}


@pytest.mark.parametrize("words", [["test_it.py"], [], ["-n1"]], ids=["file", "folder", "worker"])
def test_each_test_has_its_own_findings(words: list[str], program: Path, case: Case) -> None:
    status, text, verdicts = run_tests(case, program, *words)
    assert (status, verdicts) == (1, {"test_racy": "violations", "test_clean": "clean"}), text
    assert "consan: every test is sanitized on a GPU, by the interposer" in text or words == ["-n1"]
    assert "test_it.py::test_racy" in text


def test_tests_without_a_launch_are_no_clean_run(program: Path, case: Case) -> None:
    status, text, verdicts = run_tests(case, program, "-k", "none", "--consan-strict")
    assert (status, verdicts) == (67, {}), text
