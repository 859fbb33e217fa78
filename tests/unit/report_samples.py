"""Reports for the tests: one of each verdict, with every feature that a renderer has to show."""

from __future__ import annotations

from dataclasses import replace

from consan.reports.kinds import describe
from consan.reports.model import (
    Access,
    AsyncInfo,
    Buffer,
    Finding,
    Frame,
    KernelSummary,
    Report,
    Uninstrumented,
    Unmodelled,
    assemble,
)
from consan.reports.sources import embed

REDUCE = """#include <cuda_fp16.h>
__global__ void reduce(const float* in, float* out, int n) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = in[blockIdx.x * 256 + t];

    for (int s = 128; s > 0; s >>= 1) {
\tif (t < s) tile[t] += tile[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = tile[0];
}
"""

WRITE = Access(
    role="write",
    op="st.shared.f32",
    file="reduce.cu",
    line=5,
    column=5,
    ptx_line=61,
    ptx="st.shared.f32 [%r5], %f1;",
    block=(0, 0, 0),
    thread=(160, 0, 0),
    warp=5,
    lane=0,
    bytes=(640, 644),
)
READ = Access(
    role="read",
    op="ld.shared.f32",
    file="reduce.cu",
    line=8,
    column=24,
    ptx_line=75,
    ptx="ld.shared.f32 %f2, [%r7];",
    block=(0, 0, 0),
    thread=(32, 0, 0),
    warp=1,
    lane=0,
    bytes=(640, 644),
    inlined=(Frame("block_sum", "reduce.cu", 11, 9),),
)
COPY = Access(
    role="asynchronous copy",
    op="cp.async.cg.shared.global",
    ptx_line=99,
    ptx="cp.async.cg.shared.global [%r1], [%rd2], 16;",
    block=(3, 0, 0),
    thread=(1, 0, 0),
    warp=0,
    lane=1,
    bytes=(0, 16),
    asynchronous=AsyncInfo("cp.async", group=2),
)

RACE = describe(
    Finding("data-race", "reduce", hazard="RAW", accesses=(WRITE, READ), count=1234, ctas=64, buffer=Buffer("tile", "shared", 640, 4))
)
WAIT = describe(
    Finding("missing-wait", "gemm", hazard="RAW", accesses=(COPY, replace(READ, file="", line=0, column=0, inlined=()))),
    "not-waited",
    leave=1,
)
OUTPUT = replace(READ, line=11, column=35, ptx_line=90, warp=5, lane=3, thread=(163, 0, 0), inlined=())
WARP = describe(Finding("data-race", "reduce", hazard="RAW", accesses=(WRITE, OUTPUT)))
UNUSED = describe(Finding("uninitialized-read", "reduce", accesses=(READ,), buffer=Buffer("shared memory", "shared", 640, 4)), "unused")

KERNEL = KernelSummary("reduce", launches=3, memory_sites=10, sync_sites=2)
CHECKED = ("shared-memory", "barriers", "cp.async")
COMMAND = ("consan", "check", "reduce.cu", "--grid", "64", "--block", "256", "--kernel-name", "regex=^red")


def clean() -> Report:
    """Nothing found, everything checked; one kernel ran as SASS."""
    return assemble(
        device="cpu", kernels=[KERNEL], checked=CHECKED, uninstrumented=[Uninstrumented("cublas_gemm", 12, "exists only as SASS")]
    )


def violations() -> Report:
    """Two errors, a warning and a note, with sources stored in the report."""
    report = assemble(
        device="NVIDIA H200",
        kernels=[KERNEL, KernelSummary("gemm", 1, 44, 7)],
        findings=[UNUSED, WARP, WAIT, RACE],
        checked=CHECKED,
        notes=["only 4 of 64 clusters were recorded"],
        seed=7,
        exit=3,
        command=COMMAND,
    )
    return embed(report, {"reduce.cu": REDUCE})


def deadlock() -> Report:
    """Waiters and a barrier instead of two accesses."""
    waiters = (
        {"block": [0, 0, 0], "warp": 0, "lanes": 0xFFFFFFFF, "why": "barrier", "barrier": 1, "file": "k.cu", "line": 7, "column": 5},
        {"block": [0, 0, 0], "warp": 2, "lanes": 0x3, "why": "barrier", "barrier": 2, "ptx_line": 40, "ptx": "bar.sync 2;"},
    )
    finding = Finding(
        "deadlock",
        "k",
        accesses=(replace(READ, role="wait", op="bar.sync"),),
        barrier={"id": 1, "expected": 96, "arrived": 64},
        waiters=waiters,
    )
    return assemble(device="cpu", kernels=[KERNEL], checked=CHECKED, findings=[describe(finding, barrier="named barrier 1")])


def incomplete() -> Report:
    """Every reason for which a run is not fully checked."""
    gaps = tuple(Unmodelled("wgmma.fence.sync.aligned", line, 2) for line in (120, 131, 140, 155, 160, 171, 180))
    return assemble(
        device="cpu",
        kernels=[replace(KERNEL, unmodelled=gaps, unchecked=1)],
        checked=CHECKED,
        uninstrumented=[Uninstrumented("cublas_gemm", 1, named=True)],
        dropped=3,
        evicted=1,
        unchecked=["2 CTAs found no room in the shadow memory"],
        policy="isa",
    )
