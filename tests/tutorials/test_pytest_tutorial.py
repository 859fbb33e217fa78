"""The tutorial about pytest: its commands run, the exercise is red, each repair turns its tests green, the solution is clean."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tutorials" / "04_pytest"
README = (FOLDER / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (pytest .*)$", README, re.MULTILINE)
ALL_RACY = {"test_reverse", "test_sum_is_clean[64]", "test_sum_is_clean[128]"}
# What the three sections repair: the line of the exercise, and that of the solution.
REPAIRS = {
    "reverse": ("    out[t] = tile[127 - t];", "    __syncthreads();\n    out[t] = tile[127 - t];"),
    "sum": ("__syncwarp();", "__syncthreads();"),
    "any_negative": ("found = 1;", "found = 1;  // consan: allow(data-race) whoever stores here stores a 1"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shutil.copytree(FOLDER, tmp_path / FOLDER.name, ignore=shutil.ignore_patterns("__pycache__"))


def run(command: str, project: Path) -> tuple[int, set[str], str]:
    """The status, the tests that were racy, and everything that was printed."""
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n0", "-v", *shlex.split(command)[1:]]
    done = subprocess.run(line, cwd=project, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, set(re.findall(r"^RACY \S+::(\S+)", done.stdout, re.MULTILINE)), done.stdout + done.stderr


def repair(project: Path, names: list[str]) -> None:
    file = project / "exercise" / "kernels.cu"
    for name in names:
        before, after = REPAIRS[name]
        assert file.read_text().count(before) == 1
        file.write_text(file.read_text().replace(before, after))


def test_the_readme_has_the_commands_that_are_tested_here() -> None:
    strict = [command for command in COMMANDS if "--consan-strict" in command]
    assert [command.split()[4:] for command in COMMANDS] == [["exercise"], ["exercise", "-k", "reverse"], *(c.split()[4:] for c in strict)]
    assert [command.split()[-1] for command in strict] == ["exercise", "solution"]


def test_the_exercise_is_red(project: Path) -> None:
    status, racy, printed = run(COMMANDS[0], project)
    assert (status, racy) == (1, ALL_RACY), printed
    assert "3 failed, 2 passed" in printed


def test_a_note_fails_no_test_even_when_strict(project: Path) -> None:
    status, racy, printed = run(COMMANDS[2], project)
    assert (status, racy) == (1, ALL_RACY), printed


@pytest.mark.parametrize(
    ("names", "command", "left"),
    [
        pytest.param(["reverse"], COMMANDS[1], set(), marks=pytest.mark.slow),
        pytest.param(["reverse", "sum"], COMMANDS[2], set(), marks=pytest.mark.slow),
        (["reverse", "sum", "any_negative"], COMMANDS[2], set()),
    ],
)
def test_each_repair_turns_its_tests_green(names: list[str], command: str, left: set[str], project: Path) -> None:
    repair(project, names)
    status, racy, printed = run(command, project)
    assert (status, racy) == (1 if left else 0, left), printed


def test_the_solution_is_clean(project: Path) -> None:
    status, racy, printed = run(COMMANDS[-1], project)
    assert (status, racy) == (0, set()), printed
    assert "consan: clean" in printed
    assert "6 passed" in printed


def test_the_solution_is_the_exercise_with_the_three_repairs(project: Path) -> None:
    repair(project, list(REPAIRS))
    assert (project / "exercise" / "kernels.cu").read_text() == (project / "solution" / "kernels.cu").read_text()
    tests = [(project / name / "test_kernels.py").read_text() for name in ("exercise", "solution")]
    assert tests[1].startswith(tests[0])
    assert 'expect="data-race"' in tests[1].removeprefix(tests[0])
