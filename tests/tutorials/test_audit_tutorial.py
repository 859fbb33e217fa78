"""The tutorial about `consan audit`: its commands end as it says, and its table is what the command prints."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sampled import but

FOLDER = Path(__file__).parents[2] / "tutorials" / "11_audit_gate"
README = (FOLDER / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (consan audit .*)$", README, re.MULTILINE)


@pytest.mark.parametrize("command", but([each for each in COMMANDS if "--journal" in each], COMMANDS))
def test_command_of_the_audit_tutorial(command: str, tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "tutorial")
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == (66 if "kernels" in command else 0), done.stdout + done.stderr
    if "kernels" in command:
        times = re.compile(r"\d+\.\d s")
        table = README.split("```text\n")[1].split("```")[0]
        assert times.sub("", done.stdout) == times.sub("", table)


def test_the_folder_is_a_test_each(tmp_path: Path) -> None:
    code = next(each for each in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "parametrize" in each)
    copy = shutil.copytree(FOLDER, tmp_path / "tutorial")
    (copy / "test_kernels.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernels.py"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    (copy / "test_kernels.py").write_text(code.replace('"solution"', '"kernels"'))
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
