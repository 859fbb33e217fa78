"""The clean kernels with one synchronisation instruction less (tests/quality/mutations.py): each is reported, or survivors.py says why not.

Quick: of the Hopper kernels that need no other compiler, one mutant for each place in the source, in schedule 0 (QUICK); for sm_80 see
`test_real_mutations.py`. Slow: all mutants of all kernels in SURVIVORS. An error counts; what is warned of only is in WARNED.
"""

from __future__ import annotations

import pytest
from mutation_rules import Mutant, mutants
from mutations import CLEAN, class_of, outcome, reached, run
from survivors import LATER, SURVIVORS, WARNED

# In the quick tier: mutants whose names end so.
QUICK = {
    "nvrtc/bulk_pipeline": ("removed",),
    "nvrtc/tma_gemm": ("wgmma fence 1 removed", "wgmma wait 1 +1"),
}


def _one_of_each_place(name: str) -> list[Mutant]:
    different = {mutant.place: mutant for mutant in mutants(CLEAN[name].ptx) if mutant.name not in SURVIVORS[name]}
    return [mutant for mutant in different.values() if mutant.name.endswith(QUICK[name])]


@pytest.mark.parametrize("name", [each if each == "nvrtc/bulk_pipeline" else pytest.param(each, marks=pytest.mark.slow) for each in QUICK])
def test_each_is_reported_but_for_the_equivalent(name: str) -> None:
    chosen = _one_of_each_place(name)
    found = {mutant.name: run(CLEAN[name], mutant.ptx) for mutant in chosen}
    assert {mutant: str(said) for mutant, said in found.items() if not said.reported} == {}
    assert len(chosen) >= len(QUICK[name])


@pytest.mark.parametrize("name", QUICK)
def test_the_table_names_mutants(name: str) -> None:
    assert set(SURVIVORS[name]) <= {mutant.name for mutant in mutants(CLEAN[name].ptx)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVIVORS)
def test_all_are_reported_but_for_the_survivors(name: str) -> None:
    found = {mutant.name: class_of(outcome(name, mutant)) for mutant in mutants(CLEAN[name].ptx) if reached(name, mutant)}
    silent = {mutant for mutant, said in found.items() if "silent" in said}
    assert silent | set(LATER.get(name, ())) == {*SURVIVORS[name], *LATER.get(name, ())}
    assert {mutant for mutant, said in found.items() if said == "warned"} == set(WARNED.get(name, {}))
    assert "not judged" not in found.values()
