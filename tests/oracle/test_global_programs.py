"""Global memory: what `--engine record --global on` says agrees with the oracle, on litmus tests and on random programs of several CTAs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from litmus import ISA, LITMUS, WARNING, WORST, Litmus
from measure import measure

import consan

SCOPE_OF_FENCE = "kind: the scope that is too narrow is a fence's, not the flag's (R-GM3)"
OTHER_LANE = "an error, where only a bar.warp.sync lacks (R-W1)"
NC = "kind and severity of .nc within a CTA (D20)"
DIFFER = {
    "relaxed_vector_beside_its_element": "a vector is as many scalar accesses (R-GM10)",
    "mp_narrow_fence_of_the_reader": SCOPE_OF_FENCE,
    "mp_written_after_the_wide_fence": SCOPE_OF_FENCE,
    "wrc_middle_releases_by_cta": SCOPE_OF_FENCE,
    "all_fence_sc_of_a_cta": SCOPE_OF_FENCE,
    "acquire_of_another_lane": OTHER_LANE,
    "nc_after_a_barrier": NC,
    "nc_after_the_own_write": NC,
    "nc_before_the_own_write": NC,
    "mp_cluster_scope_in_a_cluster": "clusters that may synchronise through memory call hooks (BOUNDS B53)",
}


def reported(test: Litmus) -> dict[str, str]:
    """What the product says of each variable that races."""
    text, names = test.ptx()
    args = [np.zeros(2048, np.int32)]
    report = consan.launch(consan.Kernel(text), test.grid, test.block, args, device="cpu", engine="record", global_memory="on")
    assert report.verdict != "incomplete"
    found: dict[str, set[str]] = {}
    for finding in report.findings:
        (name,) = {names[access.ptx_line] for access in finding.pair}
        if finding.severity != "note":
            found.setdefault(name, set()).add(WARNING if finding.severity == "warning" else finding.kind)
    return {name: next(kind for kind in WORST if kind in kinds) for name, kinds in found.items()}


def _case(test: Litmus) -> object:
    marks = [pytest.mark.xfail(reason=DIFFER[test.name], strict=True)] if test.name in DIFFER else []
    return pytest.param(test, id=test.name, marks=marks)


@pytest.mark.parametrize("test", [_case(test) for test in LITMUS])
def test_litmus(test: Litmus) -> None:
    assert reported(test) == {name: kind for name, kind in test.races.items() if kind != ISA}


def test_programs(tmp_path: Path) -> None:
    row = measure("global", 16, 2, tmp_path)
    assert row.pairs > 20
    assert row.examples == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_programs(tmp_path: Path) -> None:
    """Differences are those that DIFFER names: at most one pair in fifty."""
    row = measure("global", 1000, 3000, tmp_path)
    assert row.missed == 0
    assert row.false + row.mild <= row.pairs / 50
