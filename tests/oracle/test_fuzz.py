"""Random kernels: consan and the oracle must agree on every pair of sites, in both directions.

CI runs the same 72 programs each time by recording, on which the two agree. `-m slow` runs them by called hooks, and ten thousand others,
among which bounds of consan (README) come up: their rate is bounded. In recorded programs no pair may be shadowed: unlike
shadow memory, the checker keeps every access. A difference leaves a reduced program in a file that belongs into regressions/.
`measure.py` runs any number of programs, and makes the table.
"""

from __future__ import annotations

import functools
from pathlib import Path

import measure
import pytest
from oracle_strategies import STRATEGIES

import consan

QUICK, SLOW = 8, 10_000 // len(STRATEGIES) + 8
RECORDED = ("synchronous", "with_copies", "lanes", "asynchronous", "matrix", "cluster_ending")  # as a whole, whatever the program

# Differences that are known bounds, as a share of the pairs that either of the two names: README.md has what they are, and 0.14 % over
# all.
KNOWN = 0.01


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_programs(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consan, "launch", functools.partial(consan.launch, engine="record"))
    row = _measured(strategy, QUICK, 1001, tmp_path)
    assert (row.shadowed, row.incomplete) == (0, 0)
    assert row.pairs


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_programs_by_hooks(strategy: str, tmp_path: Path) -> None:
    _measured(strategy, QUICK, 1001, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", RECORDED)
def test_many_programs(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consan, "launch", functools.partial(consan.launch, engine="record"))
    _measured(strategy, 400, 3000, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_programs_by_hooks(strategy: str, tmp_path: Path) -> None:
    row = measure.measure(strategy, SLOW, 2000, tmp_path)
    assert row.programs >= SLOW // 8 * 8
    assert row.missed + row.false + row.mild <= KNOWN * row.pairs, "\n".join(row.examples[:20])


def _measured(strategy: str, programs: int, number: int, directory: Path) -> measure.Row:
    """Programs on which the two agree."""
    row = measure.measure(strategy, programs, number, directory)
    kept = [path.read_text() for path in sorted(directory.iterdir())]
    assert row.programs >= programs // 8 * 8
    assert row.examples == [], "\n".join(kept[:3])
    return row
