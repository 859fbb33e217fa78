"""Native programs whose CUDA C++ has a race that the compiler removes: nvcc compiles their source once more, without optimisation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
LOAD, STORE = 12, 16
PROGRAM = """#include <cstdio>
#include "weight.h"
static __device__ int offset[1] = {1};
namespace {
template <class T> __global__ void kernel(T* out) {
    __shared__ int line[64];
    line[threadIdx.x] = out[threadIdx.x] + offset[0];
#ifdef MORE
    line[threadIdx.x] += threadIdx.y;
#endif
    __syncthreads();
    int sum = line[threadIdx.x] + WEIGHT * line[(threadIdx.x + 32) % 64];
#ifdef FIXED
    __syncthreads();
#endif
    line[threadIdx.x] = sum + 1;
    __syncthreads();
    out[threadIdx.x] = line[threadIdx.x];
}
}
int main() {
    int *out, values[64];
    cudaMalloc(&out, sizeof values);
    cudaMemset(out, 0, sizeof values);
    for (int i = 0; i < 2; i++) kernel<int><<<1, 64>>>(out);
    return cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost) || values[63] != 4;
}
"""


def built(folder: Path, *options: str, text: str = PROGRAM, lines: bool = True) -> Path:
    (folder / "weight.h").write_text("#define WEIGHT 0\n")
    (folder / "k.cu").write_text(text)
    words = ["nvcc", "-arch=compute_90", *(["-lineinfo"] if lines else []), *options, "-o", "program", "k.cu"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "program"


def ran(program: Path, unoptimized: str = "on") -> Report:
    status, report, _ = run_native(
        NativeProgram(str(program), (program.name,)), SessionOptions.of({"device": "cpu", "unoptimized": unoptimized})
    )
    assert status == 0, "the program goes on with its own memory and variables"
    return report


def test_a_race_that_the_compiler_removes_is_a_warning_with_a_repair_of_the_source(tmp_path: Path) -> None:
    report = ran(built(tmp_path), "auto")
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.unoptimized, report.verdict) == ("data-race", "warning", True, "clean"), report.notes
    assert {access.line for access in finding.pair} == {LOAD, STORE}
    assert finding.verified is not None
    assert LOAD <= finding.verified.steps[0].line <= STORE
    assert [kernel.launches for kernel in report.kernels] == [2]


@pytest.mark.slow
def test_the_repaired_program_has_none(tmp_path: Path) -> None:
    text = re.sub("#ifdef FIXED", "#ifndef FIXED", PROGRAM)
    report = ran(built(tmp_path, text=text))
    assert (report.findings, report.notes) == ((), ())


def _edited(program: Path) -> None:
    (program.parent / "k.cu").write_text(PROGRAM.replace("sum + 1", "sum + 2"))


def _removed(program: Path) -> None:
    (program.parent / "k.cu").unlink()


def _broken(program: Path) -> None:
    (program.parent / "k.cu").write_text("__global__ void kernel( {")


WHY_NOT = {
    "nvcc makes another kernel of k.cu here": _edited,
    "k.cu is not there": _removed,
    "k.cu does not compile here": _broken,
}


def test_a_source_that_has_changed_is_not_compared(tmp_path: Path) -> None:
    program = built(tmp_path)
    for why, change in WHY_NOT.items():
        change(program)
        report = ran(program)
        assert report.findings == ()
        assert any(why in note for note in report.notes), (why, report.notes)


@pytest.mark.slow
def test_options_of_the_build_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = built(tmp_path, "-DMORE")
    assert any("NVCC_APPEND_FLAGS" in note for note in ran(program).notes)
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DMORE")
    assert [each.severity for each in ran(program).findings] == ["warning"]


@pytest.mark.slow
def test_a_program_without_lines_says_so(tmp_path: Path) -> None:
    report = ran(built(tmp_path, lines=False))
    assert any("-lineinfo" in note for note in report.notes), report.notes
