"""Random programs: the recording engine and the oracle (tests/oracle) agree on every pair of sites, in both directions.

No pair may be shadowed: unlike shadow memory, the checker keeps every access. Kernels with operations that are not recorded take called
hooks, for which that does not hold, so only programs of kinds that are recorded as a whole are counted here.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import measure
import pytest

import consan

STRATEGIES = ("synchronous", "with_copies", "lanes", "asynchronous", "matrix", "cluster_ending")


def _measured(strategy: str, programs: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(measure.consan, "launch", functools.partial(consan.launch, engine="record"))
    return measure.measure(strategy, programs, number, tmp_path)


@pytest.mark.parametrize("strategy", ["with_copies", "asynchronous", "cluster_ending"])
def test_programs(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = _measured(strategy, 8, 1000, tmp_path, monkeypatch)
    assert (row.shadowed, row.examples) == (0, [])
    assert row.pairs


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_programs(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = _measured(strategy, 400, 3000, tmp_path, monkeypatch)
    assert row.examples == []
