"""The guide's Python snippets run as they are written. A comment behind `print` is what is printed; a line that says "without this line"
is left out in turn, and the report then has what it says.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_WITHOUT = re.compile(r"^.*# without this line: (.*)\n", re.MULTILINE)
SNIPPETS = [
    pytest.param(code, id=f"{page.stem}-{number}{'-triton' * ('import triton' in code)}")
    for page in sorted((ROOT / "tutorials" / "guide").glob("*.md"))
    for number, code in enumerate(_BLOCK.findall(page.read_text()), 1)
]


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program of CuPy is run under consan; others use it."""
    if "import triton" in code and find_spec("triton") is None:
        pytest.skip("Triton is not installed (make test-triton)")
    file = folder / "snippet.py"
    file.write_text(code)
    sanitized = ["-m", "consan", "run", "--device", "cpu", "-o", str(folder / "run.json")] if "import cupy" in code else []
    return subprocess.run([sys.executable, *sanitized, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs(code: str, tmp_path: Path) -> None:
    done = _run(code, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert set(printed) <= set(done.stdout.splitlines())
    assert printed or "verdict: clean" in done.stdout


@pytest.mark.parametrize("code", [each for each in SNIPPETS if _WITHOUT.search(each.values[0])])
def test_the_line_that_a_snippet_needs(code: str, tmp_path: Path) -> None:
    (kinds,) = _WITHOUT.findall(code)
    done = _run(_WITHOUT.sub("", code) + ("" if "import cupy" in code else "print(report.to_json())\n"), tmp_path)
    assert kinds.split(",")[0] in done.stdout, done.stderr


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 4
    assert any(_WITHOUT.search(each.values[0]) for each in SNIPPETS)
