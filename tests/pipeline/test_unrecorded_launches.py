"""Sessions with `--prove`: launches that a proof covers are not recorded, and others are."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from consan.launching.source import compile_for
from consan.reports import render
from consan.reports.formats.phrases import proof_rows
from consan.reports.model import KernelSummary, Report
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SOURCE = """
extern "C" __global__ void shift(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + 1;
}
extern "C" __global__ void turn(int *out, const int *in) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void racy(int *out, const int *in) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void stride(int *out, int by) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x);
    if (by > 0 && i * by >= 0)
        out[i] = i * by;
}
extern "C" __global__ void count(int *out, const int *in) { atomicAdd(out + (in[threadIdx.x] & 63), 1); }
extern "C" __global__ void draw(int *out, int *next) { out[blockIdx.x * 64 + threadIdx.x] = atomicAdd(next, 1); }
extern "C" __global__ void shifted(int *out, const int *in, int by) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i + by] = in[i];
}
extern "C" __global__ void rows(float *out, int by, int n) {
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 64)
        out[(long long)blockIdx.x * by + i] = i;
}
extern "C" __global__ void bump(int *out) { out[blockIdx.x * 64 + threadIdx.x] += 1; }
extern "C" __global__ void part(int *out, int n) {
    out[blockIdx.x * 64 + threadIdx.x] = n;
    if (threadIdx.x < n) __syncthreads();
}
extern "C" __global__ void all(int *out, int n) {
    if (threadIdx.x < n) out[blockIdx.x * 64 + threadIdx.x] = n;
    __syncthreads();
}
extern "C" __global__ void part_by_data(int *out, const int *in) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = i;
    if (in[i] == 0) __syncthreads();
}
extern "C" __global__ void fill(int *out, int n) {
    __shared__ int tile[64];
    if (threadIdx.x < n) tile[threadIdx.x] = n;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
"""
STATE = """
__device__ int table[256];
extern "C" __global__ void sum(int *out, int by) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = table[i] += by;
}
"""
BLOCK = (64, 1, 1)
BYTES = 4 * 256


@functools.cache
def text() -> str:
    return compile_for(SOURCE, None, arch="sm_90a", name="k.cu")[0].ptx


class Launches:
    """A session with the kernels. Each test has an empty cache."""

    def __init__(self, **options: Any) -> None:
        self.session = Session(SessionOptions.of({"device": "cpu", "prove": 30.0, **options}))
        self.prepared: Prepared = self.session.prepare(text(), name="k.ptx")
        self.arrays = [self.session.backend.alloc(BYTES) for _ in range(2)]

    def __call__(self, entry: str, *args: int, grid: int | Sequence[int] = 2) -> None:
        """Launch a kernel. Large numbers are addresses."""
        parameters = [each.to_bytes(8 if each > 1 << 31 else 4, "little", signed=each < 0) for each in args]
        x, y, z = (grid, 1, 1) if isinstance(grid, int) else grid
        self.session.launch(self.prepared, entry, (x, y, z), BLOCK, parameters)

    def report(self) -> tuple[Report, KernelSummary]:
        report = self.session.report()
        (kernel,) = [each for each in report.kernels if each.launches]
        return report, kernel


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))


def test_later_launches_of_a_proven_kernel_are_not_recorded() -> None:
    launches = Launches()
    for _ in range(4):
        launches("turn", *launches.arrays)
    report, kernel = launches.report()
    assert (report.verdict, kernel.launches, kernel.proven_launches, kernel.ctas) == ("clean", 4, 3, 2)
    assert kernel.global_accesses == 0
    assert "2 CTAs in 1 launch of 1 kernel" in render(report, details=True)
    (row,) = proof_rows(report)
    assert row.startswith("turn: proven for all launches with blocks of 64 x 1 x 1")
    assert row.endswith("assumed: no access leaves its array or is misaligned); 3 of 4 launches needed no record")


def test_a_kernel_without_shared_memory_needs_no_record_at_all() -> None:
    launches = Launches()
    for n in (100, 128, 7):
        launches("shift", *launches.arrays, n)
    report, kernel = launches.report()
    assert (report.verdict, kernel.launches, kernel.global_accesses, kernel.global_checked) == ("clean", 3, 0, 3)
    assert kernel.proof is not None


def test_each_shape_has_a_launch_that_is_recorded() -> None:
    launches = Launches()
    for grid in (1, 2, 1, 2, 4):
        launches("turn", *launches.arrays, grid=grid)
    report, kernel = launches.report()
    assert (report.verdict, kernel.launches, kernel.proven_launches) == ("clean", 5, 2)


@pytest.mark.parametrize(("entry", "kind"), [("part", "barrier-misuse"), ("fill", "uninitialized-read")])
def test_what_parameters_decide_beside_races_is_looked_for_in_each_launch(entry: str, kind: str) -> None:
    launches = Launches()
    for n in (64, 64, 7):
        launches(entry, launches.arrays[0], n)
    report, kernel = launches.report()
    assert kind in {each.kind for each in report.findings}
    assert (kernel.proof is not None, kernel.launches, kernel.proven_launches) == (True, 3, 1)
    (row,) = proof_rows(report)
    assert "no race in shared or global memory; not covered: misused barriers, hangs, reads of unwritten memory" in row


def test_what_data_decide_beside_races_is_looked_for_in_each_launch() -> None:
    launches = Launches()
    out, given = launches.arrays
    for value in (0, 1):
        launches.session.backend.write(given, np.int32([0, value] * 32 + [0] * 192))
        launches("part_by_data", out, given)
    report, kernel = launches.report()
    assert {each.kind for each in report.findings} == {"barrier-misuse"}
    assert (kernel.proof is not None, kernel.launches, kernel.proven_launches) == (True, 2, 0)


def test_barriers_of_all_threads_are_shown_by_one_launch() -> None:
    launches = Launches()
    for n in (64, 7, 9):
        launches("all", launches.arrays[0], n)
    report, kernel = launches.report()
    assert (report.verdict, kernel.launches, kernel.proven_launches) == ("clean", 3, 2)


def test_arrays_that_overlap_are_recorded_and_their_race_is_found() -> None:
    launches = Launches()
    out, given = launches.arrays
    launches("shift", out, given, 128)
    launches("shift", out + 4, out, 128)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("violations", None)
    assert "global-race" in {each.kind for each in report.findings}
    assert any(each.endswith("two arrays are in one allocation") for each in report.notes)


def test_halves_of_one_allocation_need_no_record() -> None:
    launches = Launches()
    out, _ = launches.arrays
    launches("shift", out + 512, out, 128)
    report, kernel = launches.report()
    assert (report.verdict, kernel.global_checked) == ("clean", 1)
    assert kernel.proof is not None


def test_one_array_of_two_pointers_has_a_proof_of_its_own() -> None:
    launches = Launches()
    out, given = launches.arrays
    launches("turn", out, out)
    launches("turn", out, given)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proven_launches) == ("clean", 1)
    (row,) = proof_rows(report)
    assert "parameter 2 = parameter 1" in row


def test_an_array_that_two_pointers_point_to_is_recorded_and_its_race_is_found() -> None:
    launches = Launches()
    out, given = launches.arrays
    launches("shifted", out, given, 1)
    launches("shifted", out, out, 1)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("violations", None)
    assert "global-race" in {each.kind for each in report.findings}


def test_a_proof_covers_all_launches_or_is_not_reported() -> None:
    launches = Launches()
    out, _ = launches.arrays
    launches("rows", out, 64, 64)
    launches("rows", out, -64, 64, grid=1)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof, kernel.proven_launches) == ("clean", None, 0)


def test_an_access_that_leaves_its_array_is_recorded_and_its_race_is_found() -> None:
    launches = Launches()
    out, given = sorted(launches.arrays)
    launches("shifted", out, given, 64)
    launches("shifted", out, given, (given - out) // 4 + 1)
    report, _ = launches.report()
    assert "global-race" in {each.kind for each in report.findings}
    assert any(each.endswith("an access leaves its array") for each in report.notes)


def test_a_module_whose_variables_keep_state_has_no_proof() -> None:
    session = Session(SessionOptions.of({"device": "cpu", "prove": 30.0}))
    prepared = session.prepare(compile_for(STATE, None, arch="sm_90a", name="k.cu")[0].ptx, name="k.ptx")
    out = session.backend.alloc(BYTES)
    for by in (1, 2, 3):
        session.launch(prepared, "sum", (1, 1, 1), BLOCK, [out.to_bytes(8, "little"), by.to_bytes(4, "little")])
    report = session.report()
    assert np.frombuffer(session.backend.read(out, 4), np.int32) == 6
    assert not any(each.proven_launches for each in report.kernels)


def test_a_grid_along_another_axis_is_recorded_and_its_race_is_found() -> None:
    launches = Launches()
    launches("bump", launches.arrays[0])
    launches("bump", launches.arrays[0], grid=(2, 2, 1))
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("violations", None)


def test_an_integer_that_may_overflow_is_recorded() -> None:
    launches = Launches()
    launches("stride", launches.arrays[0], 3)
    launches("stride", launches.arrays[0], 1 << 30)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("clean", None)
    assert any(each.endswith("an integer may overflow") for each in report.notes)


def test_rows_that_a_stride_keeps_apart_need_no_record() -> None:
    launches = Launches()
    out, _ = launches.arrays
    for by, n in ((64, 64), (100, 70), (90, 90)):
        launches("rows", out, by, n)
    report, kernel = launches.report()
    assert (report.verdict, kernel.launches, kernel.global_accesses) == ("clean", 3, 0)
    (row,) = proof_rows(report)
    assert "integers do not overflow, parameter 2 >= parameter 3; assumed" in row


def test_rows_that_overlap_behind_a_proof_are_recorded_and_their_race_is_found() -> None:
    launches = Launches()
    out, _ = launches.arrays
    for by in (64, 60):
        launches("rows", out, by, 64)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("violations", None)
    assert any(each.endswith("not parameter 2 >= parameter 3") for each in report.notes)


def test_no_relation_makes_a_proof_of_rows_that_overlap() -> None:
    launches = Launches()
    launches("rows", launches.arrays[0], 60, 64)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof) == ("violations", None)
    assert any("not proven for all launches: two threads may access the same bytes" in each for each in report.notes)


def test_a_kept_proof_that_a_launch_does_not_fit_is_made_anew() -> None:
    kept = Launches()
    kept("rows", kept.arrays[0], 64, 64)
    later = Launches()
    later("rows", later.arrays[0], -1, 0)
    assert later.report()[1].proof is not None


def test_a_kernel_with_a_race_has_no_proof() -> None:
    launches = Launches()
    for _ in range(2):
        launches("racy", *launches.arrays)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof, kernel.proven_launches) == ("violations", None, 0)
    assert any("not proven for all launches: two threads may access the same bytes" in each for each in report.notes)


def test_no_kernel_that_uses_results_of_atomics_has_a_proof() -> None:
    launches = Launches()
    for _ in range(2):
        launches("draw", *launches.arrays)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof, kernel.proven_launches) == ("clean", None, 0)


def test_a_kernel_whose_atomics_give_nothing_has_a_proof() -> None:
    """Data say which word each thread adds to."""
    launches = Launches()
    for _ in range(3):
        launches("count", *launches.arrays)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof is not None, kernel.proven_launches, kernel.ctas) == ("clean", True, 2, 2)


def test_without_the_option_nothing_is_proven() -> None:
    launches = Launches(prove=0.0)
    for _ in range(2):
        launches("turn", *launches.arrays)
    report, kernel = launches.report()
    assert (report.verdict, kernel.proof, kernel.proven_launches, kernel.ctas) == ("clean", None, 0, 4)
    assert not report.notes


def test_a_proof_is_kept_for_later_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Launches()
    first("turn", *first.arrays)
    monkeypatch.setattr("consan.session.planning.launch_proofs.prove_as_launched", lambda *_: pytest.fail("it is known"))
    later = Launches()
    for _ in range(2):
        later("turn", *later.arrays)
    assert later.report()[1].proven_launches == 1


def test_histories_that_are_kept_need_each_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    launches = Launches(keep_histories=True)
    for _ in range(2):
        launches("turn", *launches.arrays)
    assert launches.report()[1].proven_launches == 0
