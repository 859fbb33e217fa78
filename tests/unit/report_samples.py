"""Reports for the tests: one of each verdict, with every feature that a renderer has to show."""

from __future__ import annotations

from dataclasses import replace

from consan.reports.model import Access, AsyncInfo, Buffer, Finding, Frame, KernelSummary, Report, Uninstrumented, Unmodelled
from consan.reports.source.sources import embed, of_texts
from consan.reports.verdict.conclusion import assemble
from consan.reports.words.wording import describe

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
WARP = replace(describe(Finding("data-race", "reduce", hazard="RAW", accesses=(WRITE, OUTPUT))), severity="warning")
UNUSED = describe(Finding("uninitialized-read", "reduce", accesses=(READ,), buffer=Buffer("shared memory", "shared", 640, 4)), "unused")

KERNEL = KernelSummary("reduce", launches=3, memory_sites=10, sync_sites=2, global_stores=1, excluded=("global-memory",))
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
        kernels=[
            KERNEL,
            replace(KERNEL, name="gemm", launches=1, memory_sites=44, sync_sites=7, global_stores=1200, global_atomics=1, generic_writes=2),
        ],
        findings=[UNUSED, WARP, WAIT, RACE],
        checked=CHECKED,
        notes=["only 4 of 64 clusters were recorded"],
        seed=7,
        exit=3,
        command=COMMAND,
    )
    return embed(report, of_texts({"reduce.cu": REDUCE}))


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


def operations() -> Report:
    """An mbarrier with its phase, a policy, a hazard in the text, and many waiters of a few places."""
    opcode = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    load = replace(COPY, role="bulk load", op=opcode, ptx=f"{opcode} [%r1], [%rd2], 512, [%r3];", proxy="async", bytes=(512, 1024))
    load = replace(load, asynchronous=AsyncInfo("bulk load", barrier=512, phase=3))
    state = {"phase": 3, "parity": 1, "expected": 1}
    facts = {"barrier": "the mbarrier at shared offset 512", **state}
    wait = Finding("missing-wait", "gemm", hazard="RAW", accesses=(load, READ), barrier={"offset": 512, **state})
    fence = Finding("missing-proxy-fence", "gemm", hazard="WAR", accesses=(READ, load))
    product = Access("wgmma.mma_async", "wgmma.mma_async", "async", ptx_line=120, asynchronous=AsyncInfo("wgmma"), space="register")
    use = Access("read", "mul.f32", ptx_line=130, ptx="mul.f32 %f9, %f1, %f8;", space="register")
    hazard = Finding("register-hazard", "gemm", hazard="RAW", accesses=(product, use), count=3, ctas=0)
    place = {"why": "mbarrier", "mbarrier": 512, "phase": 3, "file": "k.cu", "line": 7, "column": 5}
    waiters = [{"block": [c, 0, 0], "warp": w, "lanes": 0xFFFFFFFF, **place} for c in range(2) for w in range(4)]
    waiters += [{"block": [0, 0, 0], "warp": w, "lanes": 1, **place, "line": 9} for w in (0, 2, 3, 4)]
    waiters += [{"block": [0, 0, 0], "warp": w, "lanes": 1, **place, "line": 20 + w} for w in range(8)]
    stuck = Finding("deadlock", "gemm", barrier={"offset": 512, **state, "pending": 0, "tx": 64}, waiters=tuple(waiters))
    phase = f"phase 3 of {facts['barrier']}"
    findings = [
        describe(wait, "not-waited", **facts),
        describe(fence, "read-no-fence"),
        describe(hazard, "touched-before-wait", registers="%f1"),
        describe(stuck, "bytes", barrier=phase, lacking="64 bytes (the mbarrier at shared offset 512, phase 3)"),
    ]
    return assemble(device="cpu", kernels=[KERNEL], checked=CHECKED, findings=findings, policy="isa")


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


def shapes() -> Report:
    """A finding for each picture of the timeline that the other samples do not have."""
    other = replace(READ, block=(1, 0, 0), cluster_rank=1, inlined=())
    mine = replace(WRITE, cluster_rank=0)
    copied = replace(COPY, role="bulk load", proxy="async", asynchronous=AsyncInfo("bulk load", barrier=512, phase=0))
    fence = Access("fence", "fence.proxy.async", file="reduce.cu", line=7, block=(0, 0, 0), thread=(0, 0, 0), warp=0, lane=0)
    barrier = Access("barrier", "bar.sync", ptx_line=65, block=(0, 0, 0), thread=(16, 0, 0))
    arrival = replace(barrier, role="arrival", op="mbarrier.arrive.shared::cta.b64", bytes=(8, 16))
    situations = (
        ("scope", "arrive-scope", "RAW", (mine, other), None),
        ("lifetime", "exit", None, (copied,), {"offset": 512, "phase": 0, "parity": 0, "expected": 1}),
        ("lifetime", "not-started", None, (mine,), None),
        ("lifetime", "after-exit", None, (other,), None),
        ("out-of-bounds", None, None, (replace(WRITE, bytes=(1536, 1540)),), None),
        ("uninitialized-read", None, None, (READ,), None),
        ("barrier-misuse", "divergent", None, (barrier,), None),
        ("barrier-misuse", "not-initialised", None, (arrival,), {"offset": 8}),
        ("missing-tcgen05-fence", "tensor-no-fence-after", "RAW", (replace(barrier, role="tcgen05.mma", op="tcgen05.mma"), other), None),
        ("tcgen05-misuse", "alloc-live", None, (replace(barrier, role="tcgen05.alloc", op="tcgen05.alloc"),), None),
        ("clc-misuse", "requests-of-lanes", None, (replace(barrier, role="request", op="clusterlaunchcontrol.try_cancel"),), None),
        ("missing-wait", "waited-no-barrier", "RAW", (COPY, READ), None),
        ("data-race", "refilled-too-early", "WAR", (READ, copied), None),
        ("missing-proxy-fence", "no-proxy-fence", "RAW", (WRITE, copied, replace(fence, role="culprit")), None),
        ("fault", "trap", None, (replace(barrier, role="trap", op="trap"),), None),
    )
    findings = [
        describe(Finding(kind, "gemm", hazard=hazard, accesses=accesses, barrier=state, buffer=Buffer("tile", "shared", 600, 100)), name)
        for kind, name, hazard, accesses, state in situations
    ]
    return embed(assemble(device="cpu", kernels=[KERNEL], checked=CHECKED, findings=findings), of_texts({"reduce.cu": REDUCE}))
