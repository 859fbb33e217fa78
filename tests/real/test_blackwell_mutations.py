"""Triton's matmul for Blackwell with one wait, commit, fence, barrier or count less (tests/quality/mutation_rules.py).

Each mutant that can be wrong is reported, and SILENT says why the others cannot be.
With the recording engine, which alone knows tensor memory, so that one schedule serves for all. Quick: QUICK of one kernel.
"""

from __future__ import annotations

import hopper_cases
import pytest
from hopper_cases import HOPPER_CASES
from mutation_rules import Mutant, mutants
from real_cases import Case
from real_run import ptx_of, run_checked

from consan.session.session import Session

ARCH, KERNEL = "sm_100", "triton_hopper/matmul_3_stages"
QUICK = ("tensor store wait 1 removed", "tensor commit 2 removed", "mbarrier wait 2 true at once")
_NEXT = "another barrier comes before the first use by another thread"
SILENT = {
    "barrier 2 removed": f"behind the reads of the address: {_NEXT}",
    "barrier 3 removed": f"behind the stores of zeros and their wait: {_NEXT}",
    "barrier 4 removed": f"between two initialisations of mbarriers: {_NEXT}",
    "copy commit 1 removed": "its copies join the next group, which the same wait covers",
    "barrier 5 removed": "before copies into a stage that nobody has used",
    "barrier 7 removed": "before copies into a stage that nobody has used",
    "barrier 8 removed": "all threads have waited for the commit themselves",
    "copy wait 3 +1": "the copies of the last group read nothing, and the epilogue does not use their bytes",
    "barrier 11 removed": f"between two invalidations of mbarriers: {_NEXT}",
    "tensor load wait 1 removed": "all registers are used before the columns are freed (SEMANTICS, T2)",
    "barrier 19 removed": "the loads that it separates from the dealloc are behind the barriers of the epilogue",
}


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_cases, "ARCH", ARCH)


def _case() -> Case:
    return next(case for case in HOPPER_CASES if case.name == KERNEL)


def _reported(mutant: Mutant) -> bool:
    _, report = run_checked(mutant.ptx, _case().launch("small", 0), Session(device="cpu", engine="record", private=True))
    return any(finding.severity == "error" for finding in report.findings)


def _all() -> list[Mutant]:
    return list(mutants(ptx_of(KERNEL, ARCH)))


def test_some_are_reported() -> None:
    chosen = [mutant for mutant in _all() if mutant.name in QUICK]
    assert len(chosen) == len(QUICK)
    assert [mutant.name for mutant in chosen if not _reported(mutant)] == []


@pytest.mark.slow
def test_all_are_reported_but_for_those_that_cannot_be_wrong() -> None:
    assert {mutant.name for mutant in _all() if not _reported(mutant)} == set(SILENT)
