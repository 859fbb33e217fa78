"""Which finding speaks, how much it counts, and what the verdict is, are decided in `reports/verdict`. Nobody else changes these fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from house_files import FILES, name_of, tree_of

DECIDED = {"severity", "verdict", "incomplete", "suppressed"}
# Rows of the catalogue and the words that they give; a test's launches without what the test has judged.
ELSEWHERE = {
    ("reports/words/wording.py", "severity"),
    ("reports/catalogue/order_rows.py", "severity"),
    ("reports/catalogue/races.py", "severity"),
    ("consan/plugin/watch.py", "incomplete"),
}


def _changes(path: Path) -> Iterator[str]:
    calls = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    calls = (node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "replace")
    yield from (keyword.arg for call in calls for keyword in call.keywords if keyword.arg in DECIDED)


def test_only_the_package_of_the_verdict_changes_what_it_decides() -> None:
    found = {(name_of(path), name) for path in FILES for name in _changes(path)}
    assert {(file, name) for file, name in found if not file.startswith("reports/verdict/")} == ELSEWHERE
    assert {file for file, name in found if name == "verdict"} == {"reports/verdict/conclusion.py"}
