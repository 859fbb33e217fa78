"""The top-level README: its excerpt is what `make demo` prints, and its commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def _demo() -> list[str]:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    exercise, launch = (re.search(rf"^{name} := (.*)$", text, re.MULTILINE) for name in ("DEMO", "DEMO_LAUNCH"))
    assert exercise is not None
    assert launch is not None
    return ["check", exercise[1], *shlex.split(launch[1])]


def test_the_excerpt_is_what_the_demo_prints() -> None:
    done = _run(["-m", "consan", *_demo()])
    excerpt = README.split("<!-- report excerpt: begin -->\n```text\n")[1].split("```\n<!-- report excerpt: end -->")[0]
    assert done.returncode == 66
    assert done.stdout.startswith(excerpt), done.stdout


@pytest.mark.parametrize("command", re.findall(r"^\$ (consan (?:check|stress|run --device cpu) (?:.*\\\n.*|.*))$", README, re.MULTILINE))
def test_commands_find_the_planted_bug(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.replace("\\\n", " "))[1:]
    done = _run(["-m", "consan", words[0], "-o", str(tmp_path / "report.json"), *words[1:]])
    assert done.returncode == 66, done.stdout + done.stderr


def test_the_readme_fits_on_a_page() -> None:
    assert len(README.splitlines()) <= 200
