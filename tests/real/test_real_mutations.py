"""Real kernels for sm_80 with one instruction taken out: a wait for copies, or a barrier (tests/quality/mutation_rules.py).

Nearly each of them is needed; without it there is a finding of the right kind. A barrier may be taken out without harm where
the compiler put one too many, or where it orders only accesses that need no order: such are named in `survivors.py`.
"""

from __future__ import annotations

import pytest
from mutation_oracle import opinion
from mutation_rules import Mutant, mutants
from mutations import CLEAN, run
from real_cases import CASES
from real_run import ptx_of, run_checked
from survivors import LATER, SURVIVORS, WARNED

from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

BY_NAME = {case.name: case for case in CASES}


def _mutants(name: str, start: str, end: str = "removed") -> list[Mutant]:
    """The mutants of one rule."""
    found = mutants(ptx_of(name, "sm_80"))
    return [mutant for mutant in found if mutant.name.startswith(start) and mutant.name.endswith(end)]


def _report(name: str, ptx: str, device: str) -> Report:
    # A virtual machine of its own: schedules do not depend on what ran before.
    launch, session = BY_NAME[name].launch("small", 1), Session(SessionOptions(device=device), private=device == "cpu")
    return run_checked(ptx, launch, session)[1]


def _kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "error"}


@pytest.mark.parametrize("name", ["triton/matmul", "triton/matmul_small", "nvrtc/cp_async_pipeline"])
def test_each_wait_is_needed(name: str, device: str) -> None:
    """But for the last one of the moving average, which waits for groups that are empty by then."""
    waits = [mutant for mutant in _mutants(name, "copy wait") if mutant.name not in SURVIVORS[name]]
    assert waits
    for mutant in waits:
        report = _report(name, mutant.ptx, device)
        assert _kinds(report) == {"missing-wait"}, (mutant.name, report)
        assert report.verdict == "violations"
        assert all("cp.async" in access.op for f in report.findings for access in f.accesses[:1])


# What has findings of its own, is not here; nor what orders data in global memory.
BARRIERS = (
    *("triton/matmul", "triton/matmul_small", "triton/softmax", "triton/layer_norm", "nvrtc/block_reduce", "nvrtc/block_scan"),
    *("nvrtc/block_radix_sort", "nvrtc/sgemm_tiled", "cupy/reduction", "cupy/cub_sum", "cupy/jit_sum"),
    *("numba/block_sum", "numba/warp_sum", "numba/histogram"),
)


LONG = ("nvrtc/block_radix_sort", "nvrtc/block_scan")  # slow: the most barriers


@pytest.mark.parametrize("name", [name if name not in LONG else pytest.param(name, marks=pytest.mark.slow) for name in BARRIERS])
def test_nearly_each_barrier_is_needed(name: str) -> None:
    """On the virtual machine only: on a chip a sort without a barrier may use garbage as an index and end the context."""
    reports = {mutant.name: _report(name, mutant.ptx, "cpu") for mutant in _mutants(name, "barrier")}
    silent = {mutant for mutant, report in reports.items() if not report.findings}
    assert silent | set(LATER.get(name, ())) == _named(SURVIVORS, name) | set(LATER.get(name, ()))
    assert {mutant for mutant, report in reports.items() if report.findings and report.verdict == "clean"} == _named(WARNED, name)
    assert len(reports) > len(_named(SURVIVORS, name))
    for report in reports.values():
        assert _kinds(report) <= {"data-race", "missing-wait"}, report
        assert all(len(finding.pair) == 2 for finding in report.findings)


@pytest.mark.slow  # tens of schedules
@pytest.mark.parametrize("name", [name for name in LATER if name in BARRIERS])  # the others have such findings of their own
def test_in_another_schedule_the_load_comes_first(name: str) -> None:
    """In about one of thirty: up to the first one, a second for two."""
    by_name = {mutant.name: mutant for mutant in _mutants(name, "barrier")}
    for mutant in LATER[name]:
        kinds = ({kind for kind, _ in run(CLEAN[name], by_name[mutant].ptx, seed).errors} for seed in range(200))
        assert any("uninitialized-read" in found for found in kinds)


def _named(table: dict[str, dict[str, str]], name: str) -> set[str]:
    return {mutant for mutant in table.get(name, {}) if mutant.startswith("barrier")}


def test_one_wait_too_lenient(device: str) -> None:
    """wait_group N + 1: the newest stage that is read may still be in flight."""
    report = _report("triton/matmul", _mutants("triton/matmul", "copy wait 1", "+1")[0].ptx, device)
    assert _kinds(report) == {"missing-wait"}
    assert {finding.hazard for finding in report.findings} <= {"RAW", "WAW"}


OPINIONS = {"barrier 8 removed": "clean in 24 of 24", "barrier 1 removed": "not clean in schedule"}


@pytest.mark.parametrize("mutant", OPINIONS)
def test_the_oracle_is_asked(mutant: str) -> None:
    """About one that is equivalent, and one that is not."""
    kernel = CLEAN["nvrtc/block_scan"]
    text = next(each.ptx for each in mutants(kernel.ptx) if each.name == mutant)
    assert opinion(kernel.ptx, text, kernel.launch, 24).startswith(OPINIONS[mutant])
