"""Kernels of several devices: what `consan.launch(..., ranks=N)` says agrees with the oracle, on random programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from measure import measure
from oracle_strategies import OF_RANKS


@pytest.mark.parametrize("strategy", OF_RANKS)
def test_programs(strategy: str, tmp_path: Path) -> None:
    row = measure(strategy, 4, 2, tmp_path)
    assert row.pairs > 5
    assert row.examples == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", OF_RANKS)
def test_many_programs(strategy: str, tmp_path: Path) -> None:
    """At most one pair in a hundred differs (README)."""
    row = measure(strategy, 300, 3000, tmp_path)
    assert row.missed + row.false + row.mild <= row.pairs / 100
