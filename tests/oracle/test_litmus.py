"""The oracle on litmus tests whose verdicts were derived by hand (litmus.py).

Message passing, store buffering and IRIW have each scope, and each strength, of one part at a time, within a CTA, a cluster and the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from litmus import ISA, LITMUS, WARNING, WORST, Litmus
from litmus_sweeps import PLACES, SWEEPS
from oracle_grid import check_globals
from oracle_run import recorded

import consan

SEMANTICS = Path(__file__).parents[2] / "instrument" / "SEMANTICS.md"


def races(test: Litmus, seed: int = 0, policy: str = "default") -> dict[str, str]:
    """What the oracle says of each variable that races."""
    text, names = test.ptx()
    trace, stats = recorded(consan.Kernel(text), test.grid, test.block, [np.zeros(2048, np.int32)], seed=seed, global_memory=True)
    assert not stats.faults
    assert not stats.deadlocked
    verdict = check_globals(trace, policy=policy)
    found: dict[str, set[str]] = {}
    for pair, one in verdict.pairs.items():
        (name,) = {names[line] for line in pair}
        found.setdefault(name, set()).update({WARNING} if one.severity == "warning" else one.kinds)
    return {name: next(kind for kind in WORST if kind in kinds) for name, kinds in found.items()}


@pytest.mark.parametrize("test", LITMUS, ids=lambda test: test.name)
def test_verdict(test: Litmus) -> None:
    doubtful = [name for name, kind in test.races.items() if kind == ISA]
    assert races(test) == {name: kind for name, kind in test.races.items() if kind != ISA}
    if doubtful:
        assert races(test, policy="isa") == {**test.races, **dict.fromkeys(doubtful, WARNING)}


@pytest.mark.slow
@pytest.mark.parametrize("test", LITMUS, ids=lambda test: test.name)
def test_verdict_in_other_schedules(test: Litmus) -> None:
    for seed in range(1, 6):
        assert races(test, seed) == {name: kind for name, kind in test.races.items() if kind != ISA}


def test_rules_are_those_of_semantics() -> None:
    text = SEMANTICS.read_text()
    assert [test.name for test in LITMUS if f"| {test.rule} |" not in text] == []
    assert len({test.name for test in LITMUS}) == len(LITMUS)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sweep", SWEEPS)
def test_each_scope_and_strength(sweep: Callable[[str], Iterator[Litmus]], place: str) -> None:
    wrong = {test.name: found for test in sweep(place) if (found := races(test)) != test.races}
    assert wrong == {}
