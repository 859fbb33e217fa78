"""The checker against exact happens-before on random programs with tensor memory and cluster launch control: each pair of sites, and exits.

The programs are logs, so the recorder and the virtual machine have no part in this. Pairs of CTAs are not in them.
"""

from __future__ import annotations

import pytest
from oracle_tensor import log_of, program, races, unfinished

from consan.checker import build
from consan.checker.recorder import united
from consan.checker.replay import Status, replay
from consan.instrument.abi.events import Kind
from consan.instrument.record.templates import tables

QUICK, MANY = 50, 2000


def _found(seed: int, *kinds: Kind) -> set[frozenset[int]]:
    """The sites of the findings of these kinds. What the program begins with has numbers of its own."""
    templates, history = log_of(program(seed))
    done = [replay(tables(templates), history, descending=order) for order in (False, True)]
    assert {each.status for each in done} == {Status.OK}
    return {frozenset((int(one["site"]), int(one["other_site"]))) - {0} for one in united(done) if int(one["kind"]) in kinds}


def _agree(seeds: range) -> None:
    for seed in seeds:
        assert _found(seed, Kind.DATA_RACE, Kind.MISSING_WAIT) == races(program(seed)), seed
        assert _found(seed, Kind.LIFETIME) == {frozenset([site]) for site in unfinished(program(seed))}, seed


@pytest.mark.skipif(build.compiler() is None, reason="no C++ compiler and no ziglang")
@pytest.mark.parametrize("seeds", [range(QUICK), pytest.param(range(QUICK, MANY), marks=pytest.mark.slow)])
def test_the_checker_and_the_oracle_agree(seeds: range) -> None:
    _agree(seeds)


def test_the_programs_have_what_they_are_to_judge() -> None:
    steps = [step for seed in range(QUICK) for step in program(seed)]
    assert {"mma", "cp", "commit", "wait", "ld", "wait_ld", "st", "wait_st", "request", "read", "barrier"} <= {step.what for step in steps}
    assert any(step.what == "wait" and step.phase < 0 for step in steps)
    assert 0 < sum(bool(races(program(seed))) for seed in range(QUICK)) < QUICK
