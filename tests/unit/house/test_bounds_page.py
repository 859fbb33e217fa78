"""instrument/BOUNDS.md: ids are unique, named tests exist, every row has a test or a reason, and numbers are those of the runtime."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consan.instrument.abi import sizes
from consan.instrument.runtime import Variant

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "instrument" / "BOUNDS.md").read_text()
CASES = (ROOT / "tests" / "device" / "test_bounds.py").read_text()
ROWS = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in PAGE.splitlines() if re.match(r"\| B\d", row)]
READS, WRITES = Variant().epoch_bits
NUMBERS = (
    f"site numbers up to {sizes.READ_SITE_LIMIT - 1:,} of",
    f"keeps {sizes.WARP_SYNCS} sets of lanes",
    f"{sizes.FLAG_CELLS} cells hold the flags",
    f"for 2^{READS - 2} warp or named barriers between two CTA barriers, write records for 2^{WRITES - 2}",
    f"its last {sizes.WAIT_HISTORY} waits for copies",
    f"its last {sizes.COPY_RANGES} copies",
    f"its last {sizes.COPY_TAGS} `cp.async.mbarrier.arrive`",
    f"{sizes.MBARRIERS} mbarriers of a CTA are followed, at most {sizes.sizes(16)['MBARRIERS']} of a cluster",
    f"{sizes.OPERATIONS} asynchronous operations",
    f"its last {sizes.GROUP_WAITS} waits for bulk groups",
    f"its last {sizes.MATRIX_WAITS} waits for `wgmma`",
    f"the last {sizes.RESULTS} bulk stores",
    f"one for each of {sizes.LOST_RESULTS} threads",
    f"the last {sizes.FETCHES} bulk loads",
    f"{sizes.WRITTEN:,} pieces of 16 bytes",
    f"its last {sizes.FENCE_EVENTS} proxy fences",
    f"the last {sizes.MAP_USES} copies that use one, {sizes.MAPS} maps",
    f"{sizes.TABLE_ENTRIES:,} different findings",
)


def test_ids_are_in_order() -> None:
    assert [row[0] for row in ROWS] == [f"B{number}" for number in range(1, len(ROWS) + 1)]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_those_of_the_runtime(number: str) -> None:
    assert number in PAGE


def _exists(name: str) -> bool:
    file, _, test = name.partition("::")
    return (ROOT / file).is_file() and f"def {test}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_has_a_test_or_a_reason(row: list[str]) -> None:
    shown = row[3].rstrip(" |")
    bounds = re.findall(r"bound `(\w+)`", shown)
    tests = re.findall(r"`(tests/\S+::\w+)`", shown)
    files = re.findall(r"`(\w+\.ptx)`", shown)
    assert len(row) == 4
    assert bounds or tests or files or re.match(r"No test: .+\.", shown)
    assert [name for name in bounds if f'"{name}"' not in CASES] == []
    assert [name for name in tests if not _exists(name)] == []
    assert [name for name in files if not (ROOT / "tests" / "oracle" / "regressions" / name).is_file()] == []


def test_every_case_has_a_row() -> None:
    named = set(re.findall(r'Bound\(\s*"(\w+)"', CASES))
    assert named == set(re.findall(r"bound `(\w+)`", PAGE))
