"""Kernels whose CTAs wait for each other: with hooks, as many CTAs must be resident as without, or they wait for ever.

On the GPU the grids are as large as the plain kernel's occupancy allows; on the virtual machine they are small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_support import Bench, compiled, found

from consan._errors import UsageError
from consan.instrument import communicates
from consan.instrument.ptx import parse

GRID_BARRIER = """
struct Barrier { unsigned arrived, phase; };
__device__ void grid_barrier(Barrier* b) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned phase, now;
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(phase) : "l"(&b->phase) : "memory");
        __threadfence();
        if (atomicAdd(&b->arrived, 1) == gridDim.x - 1) {
            b->arrived = 0;
            asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(&b->phase), "r"(phase + 1) : "memory");
        } else {
            do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(&b->phase) : "memory");
            while (now == phase);
        }
    }
    __syncthreads();
}
extern "C" __global__ void rounds(Barrier* b, unsigned* sums, int n) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    unsigned mine = blockIdx.x + 1;
    for (int k = 0; k < n; k++) {
        tile[t] = mine;                                 /*@write*/
#ifndef RACY
        __syncthreads();
#endif
        if (t == 0) atomicAdd(&sums[k], tile[63]);      /*@read*/
        grid_barrier(b);
        mine = *(volatile unsigned*)&sums[k] / gridDim.x;
    }
}
"""
COOPERATIVE = """
#include <cooperative_groups.h>
extern "C" __global__ void sum(unsigned* total, unsigned* out) {
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, tile[5] + tile[63]);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] = *total;
}
"""
SPLIT_K = """
// CTAs of one output tile add their parts in turn: each waits for the semaphore to reach its number.
extern "C" __global__ void split_k(const unsigned* x, unsigned* out, unsigned* semaphore, int splits) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x, part = blockIdx.x % splits, output = blockIdx.x / splits;
    tile[t] = x[t] + part;
    __syncthreads();
    const unsigned mine = tile[63 - t];
    if (t == 0) {
        unsigned seen;
        do asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(&semaphore[output]) : "memory");
        while (seen != part);
    }
    __syncthreads();
    out[output * 64 + t] = (part ? out[output * 64 + t] * 3 : 0) + mine;
    __threadfence();
    __syncthreads();
    if (t == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" :: "l"(&semaphore[output]) : "memory");
}
"""


def occupancy(bench: Bench, source: str, entry: str, threads: int, small: int) -> int:
    """CTAs of the plain kernel that are resident at once; a small number on the virtual machine."""
    if bench.on_cpu:
        return small
    plain = bench.backend.load(compiled(source))
    return int(bench.backend.resident_ctas(plain, entry, threads))


@pytest.mark.parametrize("cooperative", [False, True])
def test_grid_barrier_at_full_residency(device: str, cooperative: bool) -> None:
    bench = Bench(device, GRID_BARRIER, timeout=60.0)
    ctas, n = occupancy(bench, GRID_BARRIER, "rounds", 64, 24), 5
    sums = bench.zeros(n)
    bench.launch("rounds", ctas, 64, bench.zeros(2), sums, n, cooperative=cooperative)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    expected, parts = [], list(range(1, ctas + 1))
    for _ in range(n):
        expected.append(sum(parts) & 0xFFFFFFFF)
        parts = [expected[-1] // ctas] * ctas
    assert bench.array(sums, n).tolist() == expected


def test_grid_barrier_with_a_race(device: str) -> None:
    bench = Bench(device, GRID_BARRIER, defines=("RACY",), timeout=60.0)
    bench.launch("rounds", occupancy(bench, GRID_BARRIER, "rounds", 64, 24), 64, bench.zeros(2), bench.zeros(3), 3)
    assert found(bench.report(), GRID_BARRIER) == {("data-race", "read", "write")}


def test_cooperative_groups_grid_sync(device: str) -> None:
    bench = Bench(device, COOPERATIVE, timeout=60.0)
    ctas = occupancy(bench, COOPERATIVE, "sum", 64, 12)
    total, out = bench.zeros(1), bench.zeros(ctas)
    bench.launch("sum", ctas, 64, total, out, cooperative=True)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    assert bench.array(out, ctas).tolist() == [2 * ctas] * ctas


@pytest.mark.parametrize("splits", [5, 12])
def test_split_k_semaphore_at_full_residency(device: str, splits: int) -> None:
    bench = Bench(device, SPLIT_K, timeout=60.0)
    outputs = occupancy(bench, SPLIT_K, "split_k", 64, 4 * splits) // splits
    x = np.arange(64, dtype=np.uint32)
    out = bench.zeros(64 * outputs)
    bench.launch("split_k", outputs * splits, 64, bench.buffer(x), out, bench.zeros(outputs), splits)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    value: Any = np.zeros(64, np.uint64)
    for part in range(splits):
        value = (value * 3 if part else 0) + x[::-1].astype(np.uint64) + part
    np.testing.assert_array_equal(bench.array(out, 64 * outputs).reshape(outputs, 64), np.tile(value.astype(np.uint32), (outputs, 1)))


@pytest.mark.parametrize("source", [GRID_BARRIER, SPLIT_K, COOPERATIVE])
def test_communicating_ctas_are_recognised(source: str) -> None:
    """It decides the cap of registers: these kernels may not lose a resident CTA."""
    assert communicates(parse(compiled(source)))


def test_a_kernel_that_only_computes_does_not_communicate() -> None:
    assert not communicates(parse(compiled('extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2; }')))


@pytest.mark.gpu
@pytest.mark.parametrize(("source", "entry"), [(GRID_BARRIER, "rounds"), (SPLIT_K, "split_k"), (COOPERATIVE, "sum")])
@pytest.mark.parametrize("threads", [64, 256, 1024])
def test_hooks_do_not_lower_the_occupancy(gpu: None, source: str, entry: str, threads: int) -> None:
    bench = Bench("gpu", source)
    assert bench.prepared is not None
    plain = occupancy(bench, source, entry, threads, 0)
    assert bench.backend.resident_ctas(bench.prepared.loaded, entry, threads) >= plain


@pytest.mark.gpu
def test_a_cooperative_launch_that_does_not_fit_is_refused(gpu: None) -> None:
    bench = Bench("gpu", COOPERATIVE)
    assert bench.prepared is not None
    room = bench.backend.resident_ctas(bench.prepared.loaded, "sum", 64)
    with pytest.raises(UsageError, match="does not fit the device with hooks"):
        bench.launch("sum", room + 1, 64, bench.zeros(1), bench.zeros(room + 1), cooperative=True)
