"""Which finding speaks, how much it counts, and what the verdict is, are decided in `reports/verdict`. Nobody else changes these fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
DECIDED = {"severity", "verdict", "incomplete", "suppressed"}
# Rows of the catalogue and the words that they give; a test's launches without what the test has judged.
ELSEWHERE = {
    ("reports/words/wording.py", "severity"),
    ("reports/catalogue/order_rows.py", "severity"),
    ("reports/catalogue/races.py", "severity"),
    ("consan/plugin/watch.py", "incomplete"),
}


def _changes(path: Path) -> Iterator[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and ast.unparse(node.func) == "replace")
    yield from (keyword.arg for call in calls for keyword in call.keywords if keyword.arg in DECIDED)


def test_only_the_package_of_the_verdict_changes_what_it_decides() -> None:
    files = [path for folder in ("consan", "instrument", "reports") for path in (ROOT / folder).rglob("*.py")]
    found = {(str(path.relative_to(ROOT)), name) for path in files for name in _changes(path)}
    assert {(file, name) for file, name in found if not file.startswith("reports/verdict/")} == ELSEWHERE
    assert {file for file, name in found if name == "verdict"} == {"reports/verdict/conclusion.py"}
