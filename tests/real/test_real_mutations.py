"""Real kernels with one instruction taken out: a wait for copies, a commit, or a barrier.

Nearly each of them is needed; without it there is a finding of the right kind. A barrier may be taken out without harm where
the compiler put one too many, or where it orders only accesses that need no order: such are counted here.
"""

from __future__ import annotations

import re

import pytest
from real_cases import CASES
from real_run import ptx_of, run_checked

from consan.reports.model import Report
from consan.session import Session

BY_NAME = {case.name: case for case in CASES}
BARRIER, WAIT = r"bar\.sync\s", r"cp\.async\.wait_group\s"


def _places(ptx: str, pattern: str) -> list[int]:
    """Lines (from 0) on which an instruction stands."""
    return [i for i, line in enumerate(ptx.splitlines()) if re.match(rf"\s*{pattern}", line)]


def _without(ptx: str, line: int) -> str:
    lines = ptx.splitlines(keepends=True)
    return "".join([*lines[:line], "// taken out\n", *lines[line + 1 :]])


def _report(name: str, ptx: str, device: str) -> Report:
    launch, session = BY_NAME[name].launch("small", 1), Session(device=device)
    return run_checked(ptx, launch, session)[1]


def _kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "error"}


@pytest.mark.parametrize("name", ["triton/matmul", "triton/matmul_small", "nvrtc/cp_async_pipeline"])
def test_each_wait_is_needed(name: str, device: str) -> None:
    """But for the last one of the moving average, which waits for groups that are empty by then."""
    ptx = ptx_of(name, "sm_80")
    waits = _places(ptx, WAIT)
    needed = waits[:-1] if name == "nvrtc/cp_async_pipeline" else waits
    for line in needed:
        report = _report(name, _without(ptx, line), device)
        assert _kinds(report) == {"missing-wait"}, (line, report)
        assert report.verdict == "violations"
        assert all("cp.async" in access.op for f in report.findings for access in f.accesses[:1])


# name -> how many of its barriers may be missing without an error at this size
SPARE = {
    "triton/matmul": 1,  # one before the second stage's first copies, which nothing has read yet
    "triton/matmul_small": 1,  # the same
    "triton/softmax": 0,
    "triton/layer_norm": 0,
    "nvrtc/block_reduce": 0,
    "nvrtc/block_scan": 2,  # one orders volatile accesses only, one ends an iteration whose next write comes after a barrier
    "nvrtc/block_radix_sort": 0,
    "nvrtc/sgemm_tiled": 0,
    "cupy/reduction": 0,
}


@pytest.mark.parametrize(("name", "spare"), SPARE.items(), ids=list(SPARE))
def test_nearly_each_barrier_is_needed(name: str, spare: int) -> None:
    """On the virtual machine only: on a chip a sort without a barrier may use garbage as an index and end the context."""
    device = "cpu"
    ptx = ptx_of(name, "sm_80")
    reports = [_report(name, _without(ptx, line), device) for line in _places(ptx, BARRIER)]
    silent = [report for report in reports if report.verdict == "clean"]
    assert len(reports) > spare
    assert len(silent) <= spare, [report.findings for report in silent]
    for report in reports:
        assert _kinds(report) <= {"data-race", "missing-wait"}, report
        assert all(len(finding.accesses) == 2 for finding in report.findings)


def test_one_wait_too_lenient(device: str) -> None:
    """wait_group N + 1: the newest stage that is read may still be in flight."""
    ptx = ptx_of("triton/matmul", "sm_80")
    line = _places(ptx, WAIT)[0]
    original = ptx.splitlines()[line]
    lenient = re.sub(r"(\d+)", lambda found: str(int(found[1]) + 1), original)
    report = _report("triton/matmul", ptx.replace(original, lenient, 1), device)
    assert _kinds(report) == {"missing-wait"}
    assert {finding.hazard for finding in report.findings} <= {"RAW", "WAW"}
