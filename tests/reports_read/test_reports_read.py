"""What reports say of the kernels that strangers have read (README.md): findings, lines and sentences.

The frame around them is in `tests/reports_gold`. BLESS=1 accepts a new wording; then have them read again.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from pathlib import Path

import pytest
import reading

from consan.reports.catalogue.catalogue import KINDS

HERE = Path(__file__).parent
CASES = list(reading.cases())


@pytest.mark.parametrize(("name", "kind", "path"), CASES, ids=[f"{name}-{path.stem}" for name, _, path in CASES])
def test_the_report_says_what_was_read(name: str, kind: str, path: Path) -> None:
    stored, text = HERE / "reports" / f"{name}.txt", reading.words(reading.report(name, path))
    if os.environ.get("BLESS") == "1":
        stored.write_text(text)
    expected = stored.read_text()
    assert text == expected, "".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), "read", "now"))
    assert f"[{kind}]" in text


def test_five_kernels_of_each_kind() -> None:
    not_read_yet = {"missing-tcgen05-fence", "tcgen05-misuse", "clc-misuse", "fault", "missing-order"}
    assert Counter(kind for _, kind, _ in CASES) == dict.fromkeys(KINDS.keys() - not_read_yet, 5)


def test_no_report_shows_a_name_that_tells() -> None:
    telling = re.compile(rf"\b({'|'.join(reading.NEUTRAL)})\b")
    assert not [path.name for path in (HERE / "reports").glob("*.txt") if telling.search(path.read_text())]
