"""The top-level README: its excerpt is what `make demo` prints, and its commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import golden
import pytest

from consan.reports import timeline
from consan.reports.formats.html_style import PALETTE, PICTURE
from consan.reports.formats.json_format import loads
from consan.reports.timeline import svg

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


def _picture(run: str) -> str:
    """What the page shows of the first finding of a stored run, as a file of its own with a ground and room around it."""
    shown = timeline.build(loads(run).findings[0])
    assert shown is not None
    drawn = svg.draw(shown, svg.WIDE)
    size = re.search(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"', drawn)
    assert size is not None
    width, height = int(size[1]) + 32, int(size[2]) + 24
    ground = f'<rect x="-16" y="-12" width="{width}" height="{height}" rx="8" style="fill: var(--card); stroke: var(--line)"/>'
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="-16 -12 {width} {height}" width="{width}" height="{height}"'
    text = drawn.replace(size[0], frame, 1).replace(">", f"><style>{PALETTE}{PICTURE}</style>{ground}", 1)
    return text.replace("><", ">\n<") + "\n"


def test_the_picture_is_what_the_page_shows_of_the_demo(tmp_path: Path) -> None:
    """`BLESS=1` draws it again."""
    assert "](tutorials/guide/finding.svg)" in README
    stored = tmp_path / "run.json"
    assert _run(["-m", "consan", *_demo(), "-o", str(stored)]).returncode == 66
    golden.check("finding.svg", _picture(stored.read_text()), folder=ROOT / "tutorials" / "guide")


def test_the_advice_is_about_a_kernel_that_is_there() -> None:
    (command,) = re.findall(r"^\$ consan (advise .*\\\n.*)$", README, re.MULTILINE)
    done = _run(["-m", "consan", *shlex.split(command.replace("\\\n", " "))])
    assert done.returncode == 0, done.stderr
    assert "not needed, alone and together:\n  fence.proxy.async" in done.stdout


@pytest.mark.parametrize("command", re.findall(r"^\$ (consan (?:check|stress|run --device cpu) (?:.*\\\n.*|.*))$", README, re.MULTILINE))
def test_commands_find_the_planted_bug(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.replace("\\\n", " "))[1:]
    done = _run(["-m", "consan", words[0], "-o", str(tmp_path / "report.json"), *words[1:]])
    assert done.returncode == 66, done.stdout + done.stderr


def test_the_readme_fits_on_a_page() -> None:
    assert len(README.splitlines()) <= 200
