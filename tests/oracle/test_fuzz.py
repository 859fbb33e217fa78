"""Random kernels: consan and the oracle must agree on every pair of sites, in both directions.

CI runs the same few hundred programs each time; `-m slow` runs ten thousand others. A failure leaves a reduced program in a file that
belongs into regressions/. `measure.py` counts the differences that are known bounds, and runs any number of programs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from measure import measure
from oracle_strategies import STRATEGIES

QUICK, SLOW = 104, 10_000 // len(STRATEGIES) + 8
QUICK_FEW = {"divergent": 16, "matrix": 24, "clusters": 16, "cluster_ending": 24, "ending": 48}  # whose programs take several times as long


def _check(strategy: str, programs: int, number: int, directory: Path) -> None:
    row = measure(strategy, programs, number, directory)
    kept = [path.read_text() for path in sorted(directory.iterdir())]
    assert row.programs >= programs // 8 * 8
    assert row.examples == [], "\n".join(kept[:3])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_programs(strategy: str, tmp_path: Path) -> None:
    _check(strategy, QUICK_FEW.get(strategy, QUICK), 1000, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_programs(strategy: str, tmp_path: Path) -> None:
    _check(strategy, SLOW, 2000, tmp_path)
