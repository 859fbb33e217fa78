"""The checker against exact happens-before on random programs with tensor memory and cluster launch control: each pair of sites, and exits.

The programs are logs, so the recorder and the virtual machine have no part in this. Those of pairs have a cluster of two CTAs.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import oracle_tensor
import oracle_tensor_pairs
import pytest

from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import replay
from consan.instrument.findings import Kind, Reason
from consan.instrument.record.text.templates import tables
from consan.reports.verdict.speaking.raw import united
from consan.toolchain.host_library import CXX

QUICK = {oracle_tensor: 50, oracle_tensor_pairs: 20}
MANY = {oracle_tensor: 2000, oracle_tensor_pairs: 400}
# What a program of each must have.
STEPS: dict[ModuleType, set[str]] = {
    oracle_tensor: {"mma", "cp", "commit", "wait", "ld", "wait_ld", "st", "wait_st", "request", "read", "barrier"},
    oracle_tensor_pairs: {"mma", "cp", "commit", "wait", "ld", "wait_ld", "st", "wait_st", "request", "read", "barrier", "cluster"},
}
each_oracle = pytest.mark.parametrize("oracle", STEPS, ids=lambda oracle: oracle.__name__)


def _found(oracle: Any, seed: int) -> tuple[set[frozenset[int]], set[frozenset[int]]]:
    """The sites of races and missing waits, and of what is in flight at the exit. What the program begins with has numbers of its own."""
    templates, history = oracle.log_of(oracle.program(seed))
    done = [replay(tables(templates), history, descending=order) for order in (False, True)]
    assert {each.status for each in done} == {Status.OK}
    records = united([each.records for each in done])
    sites = [(one["kind"], one["reason"], frozenset((int(one["site"]), int(one["other_site"]))) - {0}) for one in records]
    unordered = {each for kind, _, each in sites if kind in (Kind.DATA_RACE, Kind.MISSING_WAIT)}
    return unordered, {each for kind, reason, each in sites if (kind, reason) == (Kind.LIFETIME, Reason.EXIT)}


def _agree(oracle: Any, seeds: range) -> None:
    for seed in seeds:
        steps = oracle.program(seed)
        assert _found(oracle, seed) == (oracle.races(steps), {frozenset([site]) for site in oracle.unfinished(steps)}), seed


@pytest.mark.skipif(CXX.compiler() is None, reason="no C++ compiler and no ziglang")
@each_oracle
@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "many"])
def test_the_checker_and_the_oracle_agree(oracle: ModuleType, many: bool) -> None:
    _agree(oracle, range(QUICK[oracle], MANY[oracle]) if many else range(QUICK[oracle]))


@each_oracle
def test_the_programs_have_what_they_are_to_judge(oracle: Any) -> None:
    programs = [oracle.program(seed) for seed in range(QUICK[oracle])]
    assert STEPS[oracle] <= {step.what for steps in programs for step in steps}
    assert any(
        step.what == "wait" and getattr(step, "phase", -1) < 0 and not getattr(step, "phases", ()) for steps in programs for step in steps
    )
    assert 0 < sum(bool(oracle.races(steps)) for steps in programs) < len(programs)
