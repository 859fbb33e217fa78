"""The oracle on litmus tests whose verdicts were derived by hand (litmus.py), and on message passing with every scope of every part."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from litmus import ISA, LITMUS, SCOPE, WARNING, WORST, Litmus
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


NEEDED = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 2}
PLACES = {"a CTA": ("0.0", "0.32", 0), "a cluster": ("0.0", "1.0", 1), "the device": ("0.0", "2.0", 2)}


@pytest.mark.parametrize("place", PLACES)
def test_scopes_of_message_passing(place: str) -> None:
    """Of two fences and of the flag's store and load each, one scope at a time: 8.9.4, both pairs must be morally strong."""
    writer, reader, needed = PLACES[place]
    for part, scope in itertools.product(range(4), NEEDED):
        fence, store, load, fence_ = (scope if k == part else "sys" for k in range(4))
        threads = {
            writer: f"W d; fence.acq_rel.{fence}; st.relaxed.{store} f 1",
            reader: f"spin ld.relaxed.{load} f 1; fence.acq_rel.{fence_}; R d",
        }
        wide = NEEDED[scope] >= needed
        expected = {} if wide else {"d": SCOPE} if part in (0, 3) else {"d": SCOPE, "f": SCOPE}
        assert races(Litmus("", "", threads, cluster=2)) == expected, (place, part, scope)
