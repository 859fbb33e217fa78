"""Real kernels for Hopper with hooks: the same bits as without, and clean, but for those whose own faults are listed here."""

from __future__ import annotations

import pytest
from hopper_cases import ARCH, CLUSTER_CASES, FAULTS, HANGING_CASES, HOPPER_CASES, RACY, SCOPED
from real_cases import Case, Size
from real_run import ptx_of, run_checked, run_plain

from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

CASES = (*HOPPER_CASES, *CLUSTER_CASES)
SLOW = {"nvrtc/tma_gemm"}  # its hooks take ten seconds to compile
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
some_cases = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=pytest.mark.slow if case.name in SLOW else ()) for case in CASES]
)


def _errors(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "error"}


def _check(case: Case, session: Session, seed: int) -> None:
    _check_text(case, ptx_of(case.name, ARCH), session, seed, FAULTS.get(case.name, set()))


def _check_text(case: Case, ptx: str, session: Session, seed: int, faults: set[str]) -> None:
    size: Size = "small" if session.backend.device_name == "cpu" else "full"
    alone, checked = case.launch(size, seed), case.launch(size, seed)
    plain = run_plain(ptx, alone, session.backend, seed=seed)
    results, report = run_checked(ptx, checked, session)
    if faults and size == "full":  # a faulty kernel shows more at full size than what is listed
        assert faults <= _errors(report), report.findings
        return
    assert _errors(report) == faults, report.findings
    assert report.incomplete == ()
    assert (report.uninstrumented, report.dropped, report.evicted) == ((), 0, 0)
    if case.name not in RACY:
        assert results == plain
        checked.check()


@some_cases
def test_clean_with_the_same_results(case: Case, device: str) -> None:
    _check(case, Session(SessionOptions(device=device, engine="inline")), 0)


@pytest.mark.parametrize("case", CLUSTER_CASES, ids=lambda case: case.name)
def test_what_a_scope_was_missing_in_is_clean_with_it(case: Case, device: str) -> None:
    ptx = ptx_of(case.name, ARCH)
    scoped = ptx.replace(*SCOPED[case.name])
    assert scoped != ptx
    _check_text(case, scoped, Session(SessionOptions(device=device, engine="inline")), 0, FAULTS.get(case.name, set()))


@some_cases
def test_clean_in_another_schedule(case: Case) -> None:
    _check(case, Session(SessionOptions(device="cpu", seed=1, engine="inline")), 1)


@pytest.mark.slow
@each_case
def test_clean_in_many_schedules(case: Case) -> None:
    for seed in range(2, 12):
        _check(case, Session(SessionOptions(device="cpu", seed=seed, engine="inline")), seed)


@pytest.mark.parametrize("case", HANGING_CASES, ids=lambda case: case.name)
def test_what_hangs_is_found(case: Case) -> None:
    """On the virtual machine only. All three warpgroups of the CTA wait: more bytes arrived than were expected."""
    report = run_checked(ptx_of(case.name, ARCH), case.launch("small", 0), Session(SessionOptions(device="cpu", engine="inline")))[1]
    (deadlock,) = [finding for finding in report.findings if finding.kind == "deadlock"]
    assert sum(waiter["threads"] for waiter in deadlock.waiters) == 384
