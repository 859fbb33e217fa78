"""Real headers on the virtual machine: the report names the line of the user's kernel, and the variable, with CUB, `cuda_pipeline.h`,
cooperative groups, libcu++, lambdas and templates between them and the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_support import markers

import consan

Check = Callable[..., Any]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Launch a source as 64 threads; it takes `in` and `out`, 128 floats each."""
    monkeypatch.chdir(tmp_path)

    def run(source: str, entry: str = "k", **options: Any) -> Any:
        (tmp_path / "k.cu").write_text(source)
        kernel = consan.Kernel(tmp_path / "k.cu", entry=entry)
        arrays = [np.ones(128, np.float32), np.zeros(128, np.float32)]
        return consan.launch(kernel, 1, 64, arrays, device="cpu", global_memory="off", **options)

    return run


def told(finding: Any, source: str) -> list[tuple[str | None, str]]:
    """For each access the marker of its line, and what the bytes are called."""
    assert {Path(access.file).name for access in finding.accesses} == {"k.cu"}
    return [(markers(source).get(access.line), access.name.split("[")[0]) for access in finding.pair]


BLOCK_REDUCE = """
#include <cub/block/block_reduce.cuh>
using Reduce = cub::BlockReduce<float, 64>;
template <typename T> __device__ T total(typename Reduce::TempStorage& temp, T value) {
    return Reduce(temp).Sum(value);                                             /*@helper*/
}
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ typename Reduce::TempStorage temp;
    float a = Reduce(temp).Sum(in[threadIdx.x]);                                /*@first*/
    float b = total(temp, in[threadIdx.x] + 1);                                 /*@call*/
    if (threadIdx.x == 0) out[0] = a + b;
}
"""


def test_cub(check: Check) -> None:
    report = check(BLOCK_REDUCE)
    assert report.verdict == "violations"
    (finding,) = [finding for finding in report.findings if finding.hazard == "WAR"]
    assert [marker for marker, _ in told(finding, BLOCK_REDUCE)] == ["first", "helper"]
    first, second = finding.accesses
    assert "block_reduce" in first.innermost.file
    assert [frame.function for frame in second.inlined][-2:] == ["cub::BlockReduce::Sum", "total"]
    assert [markers(BLOCK_REDUCE).get(frame.line) for frame in second.inlined][-2:] == ["helper", "call"]
    assert "k.cu" in finding.message
    assert ".cuh" not in finding.message + finding.fix


@pytest.mark.slow  # tests/suites has clean agents of CUB
def test_cub_with_the_barrier_is_clean(check: Check) -> None:
    source = BLOCK_REDUCE.replace("    float b", "    __syncthreads();\n    float b")
    assert check(source).verdict == "clean"


PIPELINE = """
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <int N> __global__ void k(const float* in, float* out) {
    __shared__ float tile[N][64];
    const unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&tile[1][t], &in[t], 4);                            /*@copy*/
    __pipeline_commit();
    WAIT
    cg::this_thread_block().sync();
    auto load = [&](unsigned i) { return tile[1][i]; };                         /*@load*/
    out[t] = load(63 - t);
}
template __global__ void k<2>(const float*, float*);
"""


def test_pipeline_and_cooperative_groups(check: Check) -> None:
    source = PIPELINE.replace("WAIT", "")
    finding = check(source).findings[0]
    assert finding.kind == "missing-wait"
    assert told(finding, source) == [("copy", "tile"), ("load", "tile")]
    assert {access.name[:8] for access in finding.pair} == {"tile[1]["}  # N is a template's: the size tells the first dimension
    assert finding.accesses[1].inlined[0].function == "k::{lambda#1}::operator()"
    assert "in kernel k<2>" in str(check(source))
    assert check(PIPELINE.replace("WAIT", "__pipeline_wait_prior(0);")).verdict == "clean"


NAMES = """
struct Pair { int id; float weights[3]; };
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ float tile[8][8];
    __shared__ Pair pairs[64];
    extern __shared__ float dynamic[];
    const unsigned t = threadIdx.x;
    tile[t / 8][t % 8] = in[t];                                                 /*@write*/
    pairs[t].weights[1] = in[t];
    dynamic[t] = in[t];
    SYNC
    out[t] = tile[7 - t / 8][t % 8] + pairs[63 - t].weights[1] + dynamic[63 - t];
}
"""


def test_variables_by_symbol_and_element(check: Check) -> None:
    report = check(NAMES.replace("SYNC", ""), smem=256)
    names = {access.name for finding in report.findings for access in finding.accesses}
    assert any(name.startswith("tile[") and name.count("[") == 2 for name in names)
    assert any(name.startswith("pairs[") and name.endswith("].weights[1]") for name in names)
    assert any(name.startswith("bytes ") and name.endswith(" of dynamic shared memory") for name in names)
    assert {finding.buffer.name for finding in report.findings} == {"tile", "pairs", "dynamic shared memory"}
    for finding in report.findings:
        assert len({access.name for access in finding.accesses}) == 1  # a conflict is about the same bytes
    assert check(NAMES.replace("SYNC", "__syncthreads();"), smem=256).verdict == "clean"


BARRIERS = """
#include <cuda/barrier>
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ unsigned long long bars[2];
    const unsigned t = threadIdx.x, bar = (unsigned)__cvta_generic_to_shared(&bars[1]);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 65;" :: "r"(bar) : "memory");
    __syncthreads();
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(bar) : "memory");
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }" :: "r"(bar) : "memory");
    out[t] = in[t];
}
"""


def test_an_mbarrier_by_its_name(check: Check) -> None:
    (finding,) = check(BARRIERS).findings
    assert finding.kind == "deadlock"
    assert "the mbarrier bars[1] (shared offset 8)" in finding.message
    assert finding.barrier["name"] == "bars[1]"


OUTSIDE = """
extern "C" __global__ void k(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x + 65];                                    /*@read*/
}
"""


def test_a_global_address_by_its_argument(check: Check) -> None:
    (finding,) = check(OUTSIDE).findings
    assert told(finding, OUTSIDE) == [("read", "directly past the end of argument 1 (in, 512 bytes)")]
    assert "touches 4 bytes directly past the end of argument 1 (in, 512 bytes)" in finding.message


BELOW = """
extern "C" __global__ void k(const float* in, float* out) {
    extern __shared__ float dynamic[];
    float* low = dynamic - 4;
    out[threadIdx.x] = 0;
    if (threadIdx.x == 0) low[in[0] == 1 ? 0 : 4] = 1;
}
"""


def test_an_offset_below_shared_memory_is_the_kernels(check: Check) -> None:
    report = check(BELOW, smem=64)
    assert {access.bytes for finding in report.findings for access in finding.accesses} == {(-16, -12)}
    assert "at offset -16 of shared memory" in report.findings[0].message


LIBCUXX = """
#pragma nv_diag_suppress static_var_with_dynamic_init
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__device__ void meet(Barrier& bar) {
    bar.arrive_and_wait();                                                      /*@wait*/
}
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ int pad[2];
    __shared__ Barrier bar;
    if (threadIdx.x == 0) { init(&bar, COUNT); pad[0] = 1; }
    __syncthreads();
    meet(bar);
    out[threadIdx.x] = pad[0];
}
"""


def test_a_barrier_of_libcuxx(check: Check) -> None:
    source = LIBCUXX.replace("COUNT", "65")
    (finding,) = check(source).findings
    assert finding.kind == "deadlock"
    assert "the mbarrier bar (shared offset " in finding.message
    assert {(Path(waiter["file"]).name, markers(source).get(waiter["line"])) for waiter in finding.waiters} == {("k.cu", "wait")}
    assert check(LIBCUXX.replace("COUNT", "64")).verdict == "clean"
