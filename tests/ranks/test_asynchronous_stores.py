"""`st.async.release` to the memory of another rank. With an mbarrier it writes shared memory of the cluster alone (9.7.9.12)."""

from __future__ import annotations

import numpy as np
import pytest

import consan

SOURCE = """
extern "C" __global__ void push(float *data0, float *data1, unsigned *signal0, unsigned *signal1, float *out, int rank) {
    float *mine = rank ? data1 : data0, *peer = rank ? data0 : data1;
    unsigned *here = rank ? signal1 : signal0, *there = rank ? signal0 : signal1, seen;
    mine[threadIdx.x] = rank + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("st.async.release.SCOPE.global.u32 [%0], 1;" ::"l"(there) : "memory");
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(here) : "memory");
        while (seen != 1);
    }
    __syncthreads();
    out[threadIdx.x] = peer[threadIdx.x];
}
"""


@pytest.mark.parametrize(("scope", "kinds"), [("sys", set()), ("gpu", {"scope"})])
def test_a_signal_by_an_asynchronous_store(scope: str, kinds: set[str]) -> None:
    data, signals, out = ([np.zeros(32, kind) for _ in range(2)] for kind in (np.float32, np.uint32, np.float32))
    kernel = consan.Kernel(SOURCE.replace("SCOPE", scope), arch="sm_100a")
    report = consan.launch(kernel, 1, 32, lambda rank: [*data, *signals, out[rank], rank], ranks=2, device="cpu")
    assert {finding.kind for finding in report.findings} == kinds, str(report)
    assert report.verdict == ("violations" if kinds else "clean"), str(report)
    assert [each[0] for each in out] == [2.0, 1.0]
