"""Code of the host that touches managed and pinned memory: it must have waited for the work of the device that uses it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from planted import plant
from test_stand_in import needs_nvcc, ran

from consan.libcuda import memory_calls
from consan.libcuda.build import DRIVER
from consan.session.comparing import program_streams

HERE = Path(__file__).parent
_WRITE: Final = "a write of what is copied"
CASES: Final = {
    "a read of managed memory": "RAW",
    "its other half": "RAW",
    "mapped memory": "RAW",
    _WRITE: "WAR",
    "a read behind another wait": "RAW",
    "the end": "RAW",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    (folder / "libcuda.so").write_bytes(DRIVER.data())
    words = ["cc", str(HERE / "host_program.c"), "-o", "program", "-L.", "-lcuda"]
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "LC_ALL": "C"})
    return folder / "program"


def found(program: Path, case: str, *, waits: bool) -> set[tuple[str, str | None, str]]:
    status, report = ran(program, case, *(["waits"] if waits else []))
    assert status == 0
    return {(each.kind, each.hazard, each.situation) for each in report.findings}


@pytest.mark.parametrize("what", CASES)
def test_the_host_and_its_twin_that_waits(program: Path, what: str) -> None:
    assert found(program, what, waits=True) == set()
    assert found(program, what, waits=False) == {("global-race", CASES[what], "no-host-wait")}


# The module, what is replaced by what in it, and the case that is lost.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "what is in flight": (memory_calls, "in found[:_MOST]:", "in []:", "its other half"),
    "what only reads": (program_streams, "in (RetainedFlag.READS, RetainedFlag.WRITES)", "in (RetainedFlag.WRITES,)", _WRITE),
    "what was touched": (program_streams, "without_flags(rows, touched))", "touched[:0])", "mapped memory"),
    "one stream is enough": (
        program_streams,
        "self.chained or self.shared or self.several",
        "self.chained or self.several",
        "the end",
    ),
    "no flag of the host": (
        program_streams,
        "self.concurrent.flagged(touched)",
        "Numbers(number for number, _ in self.concurrent.unfinished())",
        "a read of managed memory",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(program: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    assert found(program, case, waits=False) == set()


CODE = """
#include <cstdio>
__global__ void work(float *data, volatile int *flag) {
    data[threadIdx.x] = 1;
    __syncthreads();
    __threadfence_system();
    if (threadIdx.x == 0) *flag = 1;
}
int main(int count, char **) {
    float *data, sum = 0;
    int *flag;
    cudaMallocManaged(&data, 256);
    cudaMallocManaged(&flag, 4);
    work<<<1, 64>>>(data, flag);
    while (count == 1 && *(volatile int *)flag == 0) {}
    for (int i = 0; i < 64; i++) sum += data[i];
    std::printf("%f\\n", sum);
    return cudaDeviceSynchronize();
}
"""


@needs_nvcc
@pytest.mark.slow
def test_a_flag_that_the_host_polls(nvcc_built: Callable[[str], Path]) -> None:
    assert found(nvcc_built(CODE), "", waits=True)
    status, report = ran(nvcc_built(CODE))
    assert (status, report.verdict) == (0, "clean")


ASKED = """
__global__ void work(float *data) { data[threadIdx.x] = 1; }
int main(int count, char **) {
    float *data, sum = 0;
    cudaMallocHost(&data, 8192);
    cudaStream_t stream;
    cudaEvent_t done;
    cudaStreamCreate(&stream);
    cudaEventCreate(&done);
    work<<<1, 64, 0, stream>>>(data);
    cudaEventRecord(done, stream);
    while (cudaEventQuery(done) == cudaErrorNotReady && count == 1) {}
    if (count == 1 && cudaStreamQuery(stream) != cudaSuccess) return 3;
    for (int i = 0; i < 64; i++) sum += data[i];
    cudaDeviceSynchronize();
    return sum == 64 ? 0 : 4;
}
"""


@needs_nvcc
@pytest.mark.slow
def test_a_question_whose_answer_nobody_reads(nvcc_built: Callable[[str], Path]) -> None:
    assert found(nvcc_built(ASKED), "once", waits=False) == {("global-race", "RAW", "no-host-wait")}
    status, report = ran(nvcc_built(ASKED))
    assert (status, report.verdict) == (0, "clean")


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fence", "kind", "situation"), [("__threadfence();", "scope", "host-scope"), ("", "global-race", "no-host-release")]
)
def test_a_flag_that_no_release_for_the_host_comes_before(nvcc_built: Callable[[str], Path], fence: str, kind: str, situation: str) -> None:
    status, report = ran(nvcc_built(CODE.replace("__threadfence_system();", fence)))
    (finding,) = report.findings
    assert (status, finding.kind, finding.hazard, finding.situation) == (0, kind, "RAW", situation)
    assert "fence.acq_rel.sys" in finding.fix


VARIABLE = """
__managed__ int counter = 5;
__managed__ float values[1500];
__global__ void add(int by) {
    if (threadIdx.x == 0) counter += by;
    values[threadIdx.x + 1400] = threadIdx.x;
}
int main(int count, char **) {
    if (counter != 5) return 3;
    counter = 7;
    add<<<1, 64>>>(2);
    if (count > 1) cudaDeviceSynchronize();
    int seen = counter;
    void *place;
    cudaGetSymbolAddress(&place, counter);
    return seen == 9 && values[1463] == 63 && place == &counter ? 0 : 4;
}
"""


PINNED = """
#include <cstdio>
__global__ void next(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x] + 1; }
int main(int count, char **) {
    constexpr int N = 1 << 18;
    int *first, *second, *memory, *place;
    cudaMallocHost(&first, 4 * N);
    cudaHostAlloc(&second, 4 * N, 0);
    cudaMalloc(&memory, 4 * N);
    for (int at = 0; at < N; at++) first[at] = at;
    cudaMemcpyAsync(memory, first, 4 * N, cudaMemcpyDefault);
    next<<<1, 64>>>(second, first);
    if (count > 1) cudaDeviceSynchronize();
    int seen = second[5];
    next<<<1, 64>>>(first + 128, second);
    cudaDeviceSynchronize();
    cudaMemcpy(second, first, 4 * N, cudaMemcpyDefault);
    if (seen != 6 || first[129] != 3 || first[N - 1] != N - 1 || second[129] != 3) return 3;
    if (cudaFreeHost(first) || cudaFreeHost(second) || cudaMallocHost(&first, 4 * N)) return 4;
    if (first[5] || cudaHostGetDevicePointer(&place, first, 0) || place != first) return 5;
    cudaMemcpy(first, memory, 4 * N, cudaMemcpyDefault);
    next<<<1, 64>>>(first, place + 64);
    cudaDeviceSynchronize();
    if (first[5] != 70) return 6;
    cudaMallocHost(&second, 4 * N);
    return cudaFreeHost(second) + cudaFreeHost(first);
}
"""
POLLS = """
__global__ void work(VOLATILE int *flag, int *out) {
    for (int turn = 0; turn < 4 && *flag == 0; turn++) out[0] = turn;
}
int main() {
    int *flag, *out;
    cudaMallocHost(&flag, 4);
    cudaMalloc(&out, 4);
    *flag = 0;
    work<<<1, 1>>>(flag, out);
    *(volatile int *)flag = 1;
    return cudaDeviceSynchronize();
}
"""


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("racy", [False, True])
def test_a_flag_that_a_kernel_polls(nvcc_built: Callable[[str], Path], racy: bool) -> None:
    """It lies in a small block of pinned memory, which is mapped."""
    status, report = ran(nvcc_built(POLLS.replace("VOLATILE", "" if racy else "volatile")))
    assert (status, {(each.hazard, each.situation) for each in report.findings}) == (0, {("WAR", "no-host-wait")} if racy else set())
    assert racy or report.verdict == "clean"


@needs_nvcc
@pytest.mark.slow
def test_large_blocks_of_pinned_memory_that_kernels_are_given(nvcc_built: Callable[[str], Path]) -> None:
    status, report = ran(nvcc_built(PINNED), "waits")
    assert (status, report.verdict) == (0, "clean")
    _, report = ran(nvcc_built(PINNED))
    assert {(each.hazard, each.situation) for each in report.findings} == {("RAW", "no-host-wait")}


@needs_nvcc
@pytest.mark.slow
def test_a_variable_in_managed_memory(nvcc_built: Callable[[str], Path]) -> None:
    status, report = ran(nvcc_built(VARIABLE), "waits")
    assert (status, report.verdict) == (0, "clean")
    _, report = ran(nvcc_built(VARIABLE))
    assert {(each.hazard, each.situation) for each in report.findings} == {("RAW", "no-host-wait")}


@pytest.fixture
def nvcc_built(tmp_path: Path) -> Callable[[str], Path]:
    """A program of the CUDA runtime with this text."""

    def build(text: str) -> Path:
        (tmp_path / "k.cu").write_text(text)
        subprocess.run(["nvcc", "-arch=compute_90", "-o", "program", "k.cu"], cwd=tmp_path, check=True)
        return tmp_path / "program"

    return build
