"""Deadlocks that several CTAs of a cluster are in, proven by the kernel itself (runtime/deadlock.cuh), as in test_deadlock.py."""

from __future__ import annotations

import time
from typing import Any

import pytest
from device_support import Bench, markers

from consan.reports.model import Finding

SOURCE = """
typedef unsigned long long u64;
#define WAIT "mbarrier.test_wait"
__device__ unsigned shared(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned of(unsigned a, unsigned r) {
    unsigned b;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(a), "r"(r));
    return b;
}
__device__ void arrive(unsigned b) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory"); }
#define LOOP(B, PARITY) \\
    asm volatile("{ .reg .pred p; AGAIN: " WAIT ".parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }" \\
                 :: "r"(B), "r"(PARITY) : "memory")
#define SYNC() asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
__device__ unsigned begin(u64* b, unsigned n) {
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared(b)), "r"(n) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    SYNC();
    return shared(b);
}

// Each CTA of two waits for the other's arrivals; the one of rank 0 lacks some.
extern "C" __global__ void __cluster_dims__(2, 1, 1) few(unsigned* out) {
    __shared__ u64 b;
    const unsigned bar = begin(&b, blockDim.x), t = threadIdx.x, r = rank();
    if (r == 0 || t < 20) arrive(of(bar, r ^ 1));
    LOOP(bar, 0);                                       /*@few*/
    SYNC();                                             /*@end*/
    out[blockIdx.x * blockDim.x + t] = 1;
}

// Rank 0 is at the barrier of the cluster, the others wait for an arrival that it would make behind it.
extern "C" __global__ void __cluster_dims__(4, 1, 1) behind(unsigned* out) {
    __shared__ u64 b;
    const unsigned bar = begin(&b, 1), t = threadIdx.x, r = rank();
    if (r) LOOP(bar, 0);                                /*@waits*/
    SYNC();                                             /*@sync*/
    if (r == 0 && t < 4) arrive(of(bar, t));
    out[blockIdx.x * blockDim.x + t] = 1;
}

// Right: a ring of CTAs that hand a token on, and the barrier of the cluster now and then.
extern "C" __global__ void __cluster_dims__(4, 1, 1) fine(unsigned rounds, unsigned* out) {
    __shared__ u64 b;
    const unsigned bar = begin(&b, 1), t = threadIdx.x, r = rank();
    unsigned passed = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        if (r || round) LOOP(bar, (r ? round : round - 1) & 1);
        __syncthreads();
        if (t == 0) arrive(of(bar, (r + 1) % 4));
        ++passed;
        if (round % 2) SYNC();
    }
    SYNC();
    out[blockIdx.x * blockDim.x + t] = passed;
}
"""
LINES = {name: line for line, name in markers(SOURCE).items()}


@pytest.fixture(params=["cpu-test_wait", *(pytest.param(f"gpu-{wait}", marks=pytest.mark.gpu) for wait in ("test_wait", "try_wait"))])
def bench(request: pytest.FixtureRequest) -> Bench:
    """A session with the kernels."""
    device, _, wait = request.param.partition("-")
    if device == "gpu":
        request.getfixturevalue("gpu")
    return Bench(device, SOURCE.replace('#define WAIT "mbarrier.test_wait"', f'#define WAIT "mbarrier.{wait}"'), arena=1 << 30)


def _ends(bench: Bench, entry: str, grid: int, block: int, *args: Any) -> Finding:
    started = time.monotonic()
    bench.launch(entry, grid, block, *args)
    bench.backend.synchronize()
    assert time.monotonic() - started < 60
    out = bench.zeros(4 * 64)
    bench.launch("fine", 4, 64, 4, out)
    assert bench.array(out, 4 * 64).tolist() == [4] * 256
    report = bench.report()
    assert not bench.session.device_lost
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.kernel, report.incomplete) == ("violations", "deadlock", entry, ())
    return finding


def _waits(finding: Finding) -> dict[str, int]:
    names = {line: name for name, line in LINES.items()}
    found: dict[str, int] = {}
    for waiter in finding.waiters:
        name = names.get(waiter["line"], str(waiter["line"]))
        found[name] = found.get(name, 0) + waiter["threads"]
    return found


@pytest.mark.slow
def test_arrivals_that_do_not_come_from_a_peer(bench: Bench) -> None:
    finding = _ends(bench, "few", 2, 64, bench.zeros(128))
    assert _waits(finding) == {"few": 64, "end": 64}
    (waiting,) = [waiter for waiter in finding.waiters if waiter["why"] == "mbarrier"]
    assert (waiting["block"], waiting["pending"], waiting["expected"]) == ([0, 0, 0], 44, 64)


def test_a_peer_at_the_barrier_of_the_cluster(bench: Bench) -> None:
    finding = _ends(bench, "behind", 4, 32, bench.zeros(128))
    assert _waits(finding) == {"waits": 96, "sync": 32}
    assert sorted(waiter["block"] for waiter in finding.waiters if waiter["why"] == "mbarrier") == [[1, 0, 0], [2, 0, 0], [3, 0, 0]]


@pytest.mark.slow
def test_nothing_is_proven_of_a_cluster_that_goes_on(bench: Bench) -> None:
    grid, rounds = (8, 12) if bench.on_cpu else (400, 200)
    out = bench.zeros(grid * 64)
    bench.launch("fine", grid, 64, rounds, out)
    assert bench.array(out, grid * 64).tolist() == [rounds] * (grid * 64)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
