"""The Python files of the product, and their syntax trees."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = sorted(path for folder in ("consan", "instrument", "reports") for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Read once by all tests of this folder."""
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
