"""Programs whose CUDA C++ has a race that the compiler removes: their launches are made once more, without optimisation."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan.reports.model import Report
from consan.session.planning import options as planned

FILE = Path(__file__).parents[1] / "kernels" / "unoptimised" / "weight_of_zero.cu"
SOURCE = FILE.read_text()
OFFSETS = """
__constant__ int offset[1];
template <typename T> __global__ void kernel(T* out) {
    __shared__ T line[64];
    int t = threadIdx.x;
    line[t] = t + out[t] + offset[0];
    __syncthreads();
    T sum = line[t] + 0 * line[(t + 32) % 64];
#ifndef RACY
    __syncthreads();
#endif
    line[t] = sum + 1;
    __syncthreads();
    out[t] = line[t];
}
"""


def program(code: str, name: str = "kernel", racy: bool = True, launches: int = 1, offset: int = 0) -> Any:
    """Launch a kernel of CuPy's stand-in; the array that it leaves."""
    cp: Any = importlib.import_module("cupy")
    names = [name] if "<" in name else None
    module = cp.RawModule(code=code, options=("-DRACY",) if racy else (), name_expressions=names)
    out = cp.zeros(64, "i4")
    if offset:
        cp.ndarray((1,), "i4", module.get_global("offset"))[...] = offset
    for _ in range(launches):
        module.get_function(name)((1,), (64,), (out,))
    return cp.asnumpy(out)


OF_A_SCHEDULE = """
extern "C" __global__ void kernel(int* out) {
    __shared__ int line[64];
    __shared__ unsigned count;
    int t = threadIdx.x;
    if (t == 0) count = 0;
    line[t] = 0;
    __syncthreads();
    if (atomicAdd(&count, 1) == 0 && t == 33) out[t] += 0 * line[5];
#ifndef RACY
    __syncthreads();
#endif
    line[t] = t;
    out[t] = t;
}
"""


def checked(code: str, unoptimized: str = "on", **how: Any) -> tuple[Report, Any]:
    with consan.check(device="cpu", unoptimized=unoptimized) as checks:
        out = program(code, **how)
    return checks.report, out


def test_a_race_that_the_compiler_removes_is_a_warning_with_a_repair_of_the_source() -> None:
    report, _ = checked(SOURCE)
    (finding,) = report.findings
    lines = twin_file.read(FILE).markers
    assert [each.line for each in finding.pair] == [*lines["load"], *lines["store"]]
    assert (finding.severity, finding.unoptimized, report.verdict) == ("warning", True, "clean")
    assert finding.verified is not None
    (step,) = finding.verified.steps
    assert min(lines["load"]) <= step.line <= min(lines["store"])
    assert not finding.verified.unoptimized, "it holds in both texts"


def test_the_repaired_program_has_none() -> None:
    report, _ = checked(SOURCE, racy=False)
    assert (report.findings, report.verdict) == ((), "clean")


def test_without_it_nothing_is_found() -> None:
    report, _ = checked(SOURCE, unoptimized="off")
    assert report.findings == ()


@pytest.mark.parametrize("racy", [True, False])
def test_the_program_goes_on_with_its_own_memory_and_variables(racy: bool) -> None:
    report, out = checked(OFFSETS, name="kernel<int>", racy=racy, launches=2, offset=5)
    assert [each.kind for each in report.findings] == ["data-race"] * racy
    np.testing.assert_array_equal(out, 2 * (np.arange(64) + 6))


@pytest.mark.parametrize("racy", [True, False])
def test_other_schedules_of_the_other_text_are_run_on_request(racy: bool) -> None:
    with consan.check(device="cpu", unoptimized="on", explore=20.0) as checks:
        out = program(OF_A_SCHEDULE, racy=racy)
    report = checks.report
    assert [(each.kind, each.unoptimized, each.seed is None) for each in report.findings] == [("data-race", True, False)] * racy
    assert [each.partition(", ")[0] for each in report.notes if "without optimisation" in each and "schedules" in each]
    np.testing.assert_array_equal(out, np.arange(64))
    assert checked(OF_A_SCHEDULE)[0].findings == (), "one schedule does not show it"


def test_what_would_take_long_is_left_out_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned, "MOST_EXECUTED", 1)
    report, _ = checked(SOURCE, unoptimized="auto")
    assert report.findings == ()
    assert "kernel: not compared with the kernel without optimisation: that would take long (--unoptimized on does it)" in report.notes


def test_a_program_with_other_threads_is_not_compared() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        report, _ = checked(SOURCE)
    finally:
        done.set()
        other.join()
    assert report.findings == ()
    assert "kernel: not compared with the kernel without optimisation: the program has other threads" in report.notes
