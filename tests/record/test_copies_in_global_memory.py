"""Asynchronous copies of one CTA of many that an access of the same CTA meets in global memory, while they are in flight (R-GM11).

The other CTAs access bytes that no copy touches. So the finding is of that CTA alone, wherever the address comes from.
"""

from __future__ import annotations

import numpy as np
import pytest

import consan

CTAS, ODD, THREADS = 12, 7, 64
COPY = """
extern "C" __global__ void kernel(float4* x, int odd, int* where) {
    __shared__ alignas(128) float4 tile[64];
    int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t, far = CTAS * 64;
    bool mine = b == odd; float4 sum = make_float4(0, 0, 0, 0);
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    BODY
    if (sum.x == 7) x[2 * far + i] = sum;
}
""".replace("CTAS", str(CTAS))
ISSUE = """asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to + 16 * t), "l"(x + i) : "memory");
asm volatile("cp.async.commit_group;" ::: "memory");
BETWEEN
asm volatile("cp.async.wait_group 0;" ::: "memory");"""
BULK = """__shared__ alignas(8) unsigned long long bar; unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
if (t == 0) { asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__syncthreads();
if (t == 0) { asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 512; }" :: "r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];"
                 :: "r"(to), "l"(x + b * 64), "r"(at) : "memory"); }
BETWEEN
asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra AGAIN; }" :: "r"(at) : "memory");"""
STORE = """tile[t] = make_float4(1, 2, 3, 4); asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" :: "l"(x + b * 64), "r"(to) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
BETWEEN
if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");"""
ZEROS = "make_float4(0, 0, 0, 0)"
WRITE = f"x[i + (mine ? 0 : far)] = {ZEROS};"
GUARDED = (
    """asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, %2; @p st.global.u32 [%1], 1; }" :: "r"(WHO), "l"(x + i), "r"(b) : "memory");"""
)
# Each is clean but in the odd CTA, where an access meets the other side of a copy in flight.
BODIES = {
    "a write of all threads": ISSUE.replace("BETWEEN", WRITE),
    "a write of one lane": ISSUE.replace("BETWEEN", f"x[i + (mine && t == 33 ? -1 : far)] = {ZEROS};"),
    "a byte": ISSUE.replace("BETWEEN", "if (t == 63) ((char*)(x + b * 64))[mine ? 1023 : 1024 + far * 16] = 1;"),
    "in the last round": ISSUE.replace(
        "BETWEEN", f'_Pragma("unroll 1") for (int k = 0; k < 40; ++k) x[i + (mine && k == 39 ? 0 : far)] = {ZEROS};'
    ),
    "an address out of memory": ISSUE.replace("BETWEEN", f"x[where[b] * 64 + t] = {ZEROS};"),
    "an atomic": ISSUE.replace("BETWEEN", "atomicAdd((int*)(x + i + (mine ? 0 : far)), 1);"),
    "a guard": ISSUE.replace("BETWEEN", GUARDED.replace("WHO", "odd")),
    "a guard out of memory": ISSUE.replace("BETWEEN", GUARDED.replace("WHO", "where[b]")),
    "a bulk load": BULK.replace("BETWEEN", WRITE),
    "a bulk store, read": STORE.replace("BETWEEN", "if (t < 32) sum = x[i + (mine && t == 3 ? 0 : far)];"),
    "a bulk store, written": STORE.replace("BETWEEN", f"if (t < 32) x[i + (mine && t == 31 ? 0 : far)] = {ZEROS};"),
}
UNORDERED = (
    "a write of one lane",
    "a bulk store, read",
    "a bulk store, written",
)  # another thread has issued the copy, and nothing orders that


@pytest.mark.parametrize("odd", [ODD, -1], ids=["racy", "clean"])
@pytest.mark.parametrize("name", BODIES)
def test_one_cta_of_many_meets_a_copy(name: str, odd: int) -> None:
    kernel = consan.Kernel(COPY.replace("BODY", BODIES[name]), entry="kernel", arch="sm_90a")
    where = np.arange(CTAS, dtype=np.int32) + CTAS
    if odd >= 0:
        where[odd] = odd
    args = [np.zeros(3 * CTAS * 64 * 4, np.float32), np.int32(odd), where]
    report = consan.launch(kernel, CTAS, THREADS, args, device="cpu", engine="record")
    assert (report.verdict, report.not_checked) == ("violations" if odd >= 0 else "clean", ())
    kind = "data-race" if name in UNORDERED else "missing-wait"
    assert {finding.kind for finding in report.findings} == ({kind} if odd >= 0 else set())
    assert {access.block for finding in report.findings for access in finding.pair} == ({(odd, 0, 0)} if odd >= 0 else set())
