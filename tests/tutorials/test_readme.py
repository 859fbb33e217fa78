"""The top-level README: its excerpt is what `make demo` prints, and its examples run."""

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


def test_the_python_example() -> None:
    (example,) = re.findall(r"```python\n(import consan\n.*?)```", README, re.DOTALL)  # a fragment does not import
    done = _run(["-c", example])
    assert done.returncode == 0, done.stderr
    first, *findings = done.stdout.splitlines()
    assert first == "violations"
    assert any(line.startswith("data-race WAR [") for line in findings)


@pytest.mark.parametrize("command", re.findall(r"^\$ (consan (?:check|stress|run --device cpu) (?:.*\\\n.*|.*))$", README, re.MULTILINE))
def test_commands_find_the_planted_bug(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.replace("\\\n", " "))[1:]
    done = _run(["-m", "consan", words[0], "-o", str(tmp_path / "report.json"), *words[1:]])
    assert done.returncode == 66, done.stdout + done.stderr


def test_sections_of_what_is_checked() -> None:
    """The bounds quoted are those of the runtime."""
    from consan.instrument import layout
    from consan.instrument.runtime import Variant

    reads, writes = Variant().epoch_bits
    for number in (
        f"sites above {layout.READ_SITE_LIMIT - 1:,}",
        f"the last {layout.WARP_SYNCS} sets of lanes",
        f"the last {layout.WAIT_HISTORY} waits",
        f"the last {layout.COPY_RANGES} copies",
        f"{layout.FLAG_CELLS} cells for flags",
        f"passes 2^{reads - 2} warp or named barriers between two CTA barriers, writes after 2^{writes - 2}",
        f"{layout.TABLE_ENTRIES:,} different findings",
    ):
        assert number in README
