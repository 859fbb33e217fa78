"""Golden files: compare a text with a stored one, save what differs, bless it on demand.

`BLESS=1 pytest ...` rewrites the stored file; otherwise a difference fails with a diff, and the actual text lies in
tests/actual/ ready to be looked at.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "reports" / "gold"
ACTUAL = Path(__file__).parents[1] / "actual"


def check(name: str, actual: str, *, folder: Path = FOLDER, kept: Path = ACTUAL) -> None:
    """Fail when `actual` is not what the golden file `name` holds."""
    stored = folder / name
    if os.environ.get("BLESS") == "1":
        folder.mkdir(parents=True, exist_ok=True)
        stored.write_text(actual, encoding="utf-8")
        return
    expected = stored.read_text(encoding="utf-8") if stored.exists() else ""
    if actual == expected:
        return
    kept.mkdir(parents=True, exist_ok=True)
    (kept / name).write_text(actual, encoding="utf-8")
    diff = "".join(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), f"gold/{name}", f"actual/{name}"))
    raise AssertionError(f"{name} differs from its golden file (BLESS=1 accepts it):\n{diff}")
