"""Global memory: what `--engine record --global on` says agrees with the oracle, on litmus tests and on random programs of several CTAs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from litmus import ISA, LITMUS, WARNING, WORST, Litmus
from litmus_sweeps import PLACES, SWEEPS
from measure import measure

import consan


def reported(test: Litmus, device: str = "cpu", seed: int = 0, policy: str = "default") -> dict[str, str]:
    """What the product says of each variable that races. A missing order (R-MO1, R-MO2) is no race, and the oracle has none."""
    text, names = test.ptx()
    args = [np.zeros(2048, np.int32)]
    how: dict[str, Any] = {"device": device, "seed": seed, "engine": "record", "global_memory": "on", "policy": policy}
    report = consan.launch(consan.Kernel(text), test.grid, test.block, args, **how)
    assert report.verdict != "incomplete"
    found: dict[str, set[str]] = {}
    for finding in report.findings:
        (name,) = {names[access.ptx_line] for access in finding.pair}
        if finding.severity != "note" and finding.kind != "missing-order":
            found.setdefault(name, set()).add(WARNING if finding.severity == "warning" else finding.kind)
    return {name: next(kind for kind in WORST if kind in kinds) for name, kinds in found.items()}


@pytest.mark.parametrize("test", LITMUS, ids=lambda test: test.name)
def test_litmus(test: Litmus) -> None:
    doubtful = [name for name, kind in test.races.items() if kind == ISA]
    assert reported(test) == {name: kind for name, kind in test.races.items() if kind != ISA}
    if doubtful or test.rule == "R-GM6":
        assert reported(test, policy="isa") == {**test.races, **dict.fromkeys(doubtful, WARNING)}


def test_an_update_of_too_narrow_a_scope_ends_what_is_observed() -> None:
    """R-GM4: who observes the second update does not observe the first, however often it looks."""
    first, second, third = "red.relaxed.cta.add f 1; st g 1", "spin ld.relaxed.gpu g 1; red.relaxed.gpu.add f 1; st h 1", "ld.relaxed.gpu f"
    programs = {"0.0": first, "1.0": second, "2.0": f"spin ld.relaxed.gpu h 1; {third}; {third}"}
    text, names = Litmus("", "R-GM4", {who: program.replace("st ", "st.relaxed.gpu ") for who, program in programs.items()}).ptx()
    report = consan.launch(consan.Kernel(text), 3, 1, [np.zeros(2048, np.int32)], device="cpu", engine="record", global_memory="on")
    narrow, *wide = (line for line, name in names.items() if name == "f")
    assert {frozenset(access.ptx_line for access in found.pair) for found in report.findings} == {
        frozenset((narrow, line)) for line in wide
    }


@pytest.mark.parametrize("step", [18, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sweep", SWEEPS)
def test_each_scope_and_strength(sweep: Callable[[str], Iterator[Litmus]], place: str, step: int) -> None:
    """`step`: one test of so many."""
    wrong = {test.name: found for test in itertools.islice(sweep(place), 0, None, step) if (found := reported(test)) != test.races}
    assert wrong == {}


def test_programs(tmp_path: Path) -> None:
    row = measure("global", 4, 2, tmp_path)
    assert row.pairs > 5
    assert row.examples == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_programs(tmp_path: Path) -> None:
    """At most one pair in fifty differs (README)."""
    row = measure("global", 1000, 3000, tmp_path)
    assert row.missed == 0
    assert row.false + row.mild <= row.pairs / 50
