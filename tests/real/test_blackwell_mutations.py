"""Triton's matmuls and attention for Blackwell with one wait, commit, fence, barrier or count less (tests/quality/mutation_rules.py).

Each mutant that can be wrong is reported, and SILENT says why the others cannot be.
With the recording engine, which alone knows tensor memory, so that one schedule serves for all. Quick: QUICK of one kernel.
"""

from __future__ import annotations

import hopper_cases
import pytest
from hopper_cases import HOPPER_CASES
from mutation_rules import Mutant, mutants
from real_run import ptx_of, run_checked

from consan.session.planning.options import SessionOptions
from consan.session.session import Session

ARCH, COPIES, MAPS, ATTENTION = "sm_100", "triton_hopper/matmul_3_stages", "triton_hopper/matmul_host_tma", "triton_hopper/attention"
QUICK = ("tensor store wait 1 removed", "tensor commit 2 removed", "mbarrier wait 2 true at once")
_NEXT = "another barrier comes before the first use by another thread"
_UNUSED = "before copies into a stage that nobody has used"
_LATER_WAIT = "a later wait::st of the warp comes before the first use of the cells"
_USED = "all registers are used before the cells change (SEMANTICS, T2)"
_BESIDE = "between the announcement of bytes and the copies of one thread, which may come in any order"
SILENT = {
    COPIES: {
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
    },
    ATTENTION: {
        "barrier 2 removed": f"behind the reads of the address: {_NEXT}",
        "barrier 3 removed": f"behind the stores of zeros: {_NEXT}",
        **dict.fromkeys(("barrier 4 removed", "barrier 5 removed"), f"between two initialisations of mbarriers: {_NEXT}"),
        **dict.fromkeys(("barrier 6 removed", "barrier 8 removed"), _UNUSED),
        **dict.fromkeys(("barrier 9 removed", "barrier 14 removed"), f"behind the wait for copies: {_NEXT}, which is a product"),
        **dict.fromkeys(
            ("barrier 10 removed", "barrier 15 removed"), "between a warp's own cells: another barrier comes before the product"
        ),
        **dict.fromkeys(("barrier 12 removed", "barrier 13 removed"), "all threads have waited for the products that read the stage"),
        **dict.fromkeys((f"tensor store wait {n} removed" for n in (1, 2, 4)), _LATER_WAIT),
        **dict.fromkeys((f"tensor load wait {n} removed" for n in range(1, 6)), _USED),
        **dict.fromkeys(
            ("proxy fence 2 removed", "proxy fence 3 removed"), "only copies with cp.async are fenced (SEMANTICS 9, policy isa)"
        ),
        "barrier 17 removed": "before an invalidation: four blocks of keys end with a wait for the other mbarrier (five: reported)",
        **dict.fromkeys(("barrier 18 removed", "barrier 19 removed"), "between two invalidations: each has a barrier behind the last wait"),
        "barrier 27 removed": "the loads that it separates from the dealloc are behind the barriers of the epilogue",
    },
    MAPS: {
        "barrier 2 removed": f"behind the reads of the address: {_NEXT}",
        "barrier 3 removed": f"behind the stores of zeros and their wait: {_NEXT}",
        **dict.fromkeys(
            ("barrier 4 removed", "barrier 5 removed", "barrier 6 removed"), f"between two initialisations of mbarriers: {_NEXT}"
        ),
        "barrier 7 removed": "behind the last initialisation: the same thread announces bytes, and another barrier comes before all else",
        **dict.fromkeys((f"barrier {n} removed" for n in (8, 9, 11, 12, 15, 16, 18, 19)), _BESIDE),
        **dict.fromkeys((f"barrier {n} removed" for n in (10, 14)), _UNUSED),
        "barrier 13 removed": "before a wait, which reads nothing else",
        "barrier 17 removed": "all threads have waited for the commit themselves, and nobody but the product reads the stage",
        "barrier 20 removed": "before a wait, which reads nothing else; the other barriers of the round keep the warps within a phase",
        "barrier 21 removed": "the last waits for this mbarrier are behind the barriers of the last round",
        **dict.fromkeys(
            (f"barrier {n} removed" for n in (22, 23, 24)), "between two invalidations: the barriers around are behind the last waits"
        ),
        "tensor load wait 1 removed": "all registers are used before the columns are freed (SEMANTICS, T2)",
        "barrier 26 removed": f"behind the wait for the bulk store: {_NEXT}",
        "barrier 27 removed": "before the dealloc: the barrier before it is behind all loads, too",
    },
}


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_cases, "ARCH", ARCH)


def _reported(kernel: str, mutant: Mutant) -> bool:
    case = next(case for case in HOPPER_CASES if case.name == kernel)
    _, report = run_checked(mutant.ptx, case.launch("small", 0), Session(SessionOptions(device="cpu", engine="record"), private=True))
    return any(finding.severity == "error" for finding in report.findings)


def _all(kernel: str) -> list[Mutant]:
    return list(mutants(ptx_of(kernel, ARCH)))


def test_some_are_reported() -> None:
    chosen = [mutant for mutant in _all(COPIES) if mutant.name in QUICK]
    assert len(chosen) == len(QUICK)
    assert [mutant.name for mutant in chosen if not _reported(COPIES, mutant)] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kernel", SILENT)
def test_all_are_reported_but_for_those_that_cannot_be_wrong(kernel: str) -> None:
    assert {mutant.name for mutant in _all(kernel) if not _reported(kernel, mutant)} == set(SILENT[kernel])
