"""Faults planted in what decides that a launch needs no record: with each of them a test of test_unrecorded_launches.py fails."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

import test_unrecorded_launches as tests
from planted import plant

from consan.prove import kernel
from consan.prove.launched import conditions, relations
from consan.session.executing.checked_kernels import CheckedKernels
from consan.session.planning import launch_proofs, plan

# A rule, its module, the fault, and a test that fails with it.
FAULTS: dict[str, tuple[ModuleType, str, str, object]] = {
    "arrays in one allocation": (
        launch_proofs,
        "(writes or others) and _share",
        "False and _share",
        tests.test_arrays_that_overlap_are_recorded_and_their_race_is_found,
    ),
    "bytes outside of an array": (
        launch_proofs,
        "and end <= sum(allocation)",
        "",
        tests.test_an_access_that_leaves_its_array_is_recorded_and_its_race_is_found,
    ),
    "variables of the module": (
        launch_proofs,
        "if state := keeps_state(prepared.plain):",
        'if state := "":',
        tests.test_a_module_whose_variables_keep_state_has_no_proof,
    ),
    "strong accesses": (
        launch_proofs,
        "if sees_others(function):",
        "if False:",
        tests.test_no_kernel_that_uses_results_of_atomics_has_a_proof,
    ),
    "results that nothing reads": (
        kernel,
        " and not is_unread(function, each)",
        "",
        tests.test_a_kernel_whose_atomics_give_nothing_has_a_proof,
    ),
    "axes of the grid": (
        conditions,
        "if grid[axis] != 1",
        "if False",
        tests.test_a_grid_along_another_axis_is_recorded_and_its_race_is_found,
    ),
    "relations of parameters": (
        conditions,
        "if not each.holds(parameters)",
        "if False",
        tests.test_rows_that_overlap_behind_a_proof_are_recorded_and_their_race_is_found,
    ),
    "relations that a launch has": (
        relations,
        "if values[one] >= values[other]",
        "",
        tests.test_no_relation_makes_a_proof_of_rows_that_overlap,
    ),
    "a kept proof of other parameters": (
        launch_proofs,
        "stored.relations and",
        "False and",
        tests.test_a_kept_proof_that_a_launch_does_not_fit_is_made_anew,
    ),
    "overflows": (conditions, "is not False:", "is None:", tests.test_an_integer_that_may_overflow_is_recorded),
    "the first launch of a shape": (
        plan,
        "and launch.judged and not stops and kernel.shown():",
        ":",
        tests.test_each_shape_has_a_launch_that_is_recorded,
    ),
    "histories that are wanted": (
        plan,
        "or options.keep_histories or",
        "or",
        tests.test_histories_that_are_kept_need_each_launch,
    ),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, old, new, test = FAULTS[rule]
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    plant(monkeypatch, module, old, new)
    given = {"tmp_path": tmp_path, "monkeypatch": monkeypatch}
    assert callable(test)
    with pytest.raises(AssertionError):
        test(**{name: given[name] for name in inspect.signature(test).parameters})


def test_a_fault_in_what_a_proof_covers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(CheckedKernels, "proof", lambda self, prepared, entry, launches: self.of(prepared, entry).proof)
    with pytest.raises(AssertionError):
        tests.test_a_proof_covers_all_launches_or_is_not_reported()
