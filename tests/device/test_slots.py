"""A CTA's shadow state is a slot of the arena: many CTAs share few slots, and CTAs that find none run unchecked and are counted."""

from __future__ import annotations

import numpy as np
import pytest
from device_support import ROOM, Bench, MiB, found, launches

from consan.instrument.abi import records

SOURCE = """
extern "C" __global__ void clean(const unsigned* x, unsigned* out) {
    __shared__ unsigned tile[32];
    const unsigned t = threadIdx.x, i = blockIdx.x * 32 + t;
    tile[t] = x[i & 1023];
    __syncthreads();
    if (out) atomicAdd(&out[t], tile[31 - t]);
}
extern "C" __global__ void racy(unsigned at, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = blockIdx.x;                               /*@write*/
    if (blockIdx.x != at) __syncthreads();
    out[t] = tile[63 - t];                              /*@read*/
}
extern "C" __global__ void partly_written(unsigned limit, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    if (t < limit) tile[t] = t;
    __syncthreads();
    out[t] = tile[t];                                   /*@uninitialised*/
}
extern "C" __global__ void wide(unsigned* out) {
    extern __shared__ unsigned tile[];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void no_shared(unsigned* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
extern "C" __global__ void barrier_only(unsigned* out) { __syncthreads(); out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
extern "C" __global__ void empty() {}
extern "C" __global__ void everything(unsigned words, unsigned* out) {
    extern __shared__ uint4 tile4[];
    for (unsigned i = threadIdx.x; i < words / 4; i += blockDim.x) tile4[i] = make_uint4(i, i + 1, i + 2, i + 3);
#ifdef FIXED
    __syncthreads();
#endif
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (unsigned i = threadIdx.x; i < words / 4; i += blockDim.x) {
        const uint4 v = tile4[words / 4 - 1 - i];       /*@last*/
        sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    }
    out[threadIdx.x] = sum.x + sum.y + sum.z + sum.w;
}
"""
ALL_SHARED = 227 << 10


def _many(device: str, ctas: int) -> None:
    bench = Bench(device, SOURCE)
    x, out = bench.buffer(np.arange(1024, dtype=np.uint32)), bench.zeros(32)
    bench.launch("clean", ctas, 32, x, out)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    counters = bench.counters()
    assert (counters.checked_ctas, counters.dropped_ctas) == (ctas, 0)
    assert counters.arena_used <= ROOM[device]
    blocks = np.arange(1024, dtype=np.uint64).reshape(32, 32)[:, ::-1]
    expected = blocks.sum(axis=0) * (ctas // 32) + blocks[: ctas % 32].sum(axis=0)
    np.testing.assert_array_equal(bench.array(out, 32), expected.astype(np.uint32))


@pytest.mark.slow
def test_20_000_ctas_through_few_slots() -> None:
    _many("cpu", 20_000)


def test_ctas_through_few_slots(device: str) -> None:
    _many(device, 2_000)


@pytest.mark.gpu
def test_a_million_ctas_through_few_slots(gpu: None) -> None:
    _many("gpu", 1_000_000)


@pytest.mark.parametrize("at", [0, 777, 1499])
def test_one_racy_cta_among_many_is_found(device: str, at: int) -> None:
    bench = Bench(device, SOURCE)
    bench.launch("racy", 1500, 64, at, bench.zeros(64))
    report = bench.report()
    assert found(report, SOURCE) == {("data-race", "read", "write")}
    (finding,) = report.findings
    assert (finding.ctas, {access.block for access in finding.pair}) == (1, {(at, 0, 0)})


def test_a_reused_slot_remembers_no_write_of_an_earlier_cta(device: str) -> None:
    """The second launch writes half of what the first one wrote: its reads of the rest are uninitialised."""
    bench = Bench(device, SOURCE)
    out = bench.zeros(64)
    bench.launch("partly_written", 300, 64, 64, out)
    assert bench.report().verdict == "clean"
    bench.launch("partly_written", 300, 64, 40, out)
    report = bench.report()
    assert found(report, SOURCE) == {("uninitialized-read", "uninitialised")}
    (finding,) = report.findings
    assert (finding.ctas, finding.count, finding.buffer.offset, finding.buffer.bytes) == (300, 300 * 24, 160, 96)  # type: ignore[union-attr]


def test_slots_change_their_shape(device: str) -> None:
    """The first shape takes all of the arena, the others take its slots over; nothing of one shape is read as another."""
    bench = Bench(device, SOURCE, arena=704 << 10)
    x, out = bench.buffer(np.arange(1024, dtype=np.uint32)), bench.zeros(1024)
    for _ in range(3):
        for _ in range(20):
            bench.launch("wide", 4, 1024, out, shared=4096)
        bench.launch("clean", 4, 32, x, 0)
        bench.launch("wide", 4, 64, out, shared=8192)
        bench.launch("partly_written", 3, 64, 64, out)
    report = bench.report()
    assert report.findings == ()
    assert bench.counters().checked_ctas == 3 * 91
    bench.launch("partly_written", 3, 64, 63, out)
    assert found(bench.report(), SOURCE) == {("uninitialized-read", "uninitialised")}
    stolen = bench.session.shadow.address + records.offsets(records.RUNTIME)["stolen_slots"]
    assert int.from_bytes(bench.backend.read(stolen, 4), "little") > 0


PAIRS = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(unsigned* out) {
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def test_the_slots_of_clusters_are_taken_again() -> None:
    """Whichever CTA ends last, the next launch finds them, and cuts no others.

    On the virtual machine a CTA always has the same multiprocessor.
    """
    bench, used = Bench("cpu", PAIRS, arena=128 * MiB), []
    out = bench.zeros(8 * 64)
    for _ in range(4):
        bench.launch("pair", 8, 64, out)
        bench.backend.synchronize()
        used.append(bench.counters().arena_used)
    assert used == [used[0]] * 4
    report = bench.report()
    assert (report.verdict, bench.counters().checked_ctas) == ("clean", 4 * 8)


def test_without_room_ctas_run_unchecked_and_the_verdict_says_so(device: str) -> None:
    """A slot for 200 KiB of shared memory does not fit an arena of 1 MiB: the kernel runs and computes, and is not called clean."""
    bench = Bench(device, SOURCE, arena=1 * MiB)
    out = bench.zeros(128)
    bench.launch("wide", 6, 128, out, shared=200 << 10)
    report = bench.report()
    assert bench.array(out, 128).tolist() == list(range(127, -1, -1))
    assert (report.verdict, bench.counters().dropped_ctas) == ("incomplete", 6)
    assert any("6 CTAs ran unchecked" in reason for reason in report.incomplete)


def test_a_finding_wins_over_unchecked_ctas(device: str) -> None:
    bench = Bench(device, SOURCE, arena=1 * MiB)
    bench.launch("wide", 1, 128, bench.zeros(128), shared=200 << 10)
    bench.launch("racy", 1, 64, 0, bench.zeros(64))
    report = bench.report()
    assert report.verdict == "violations"
    assert any("1 CTA ran unchecked" in reason for reason in report.incomplete)


@pytest.mark.parametrize("fixed", [False, True])
def test_all_shared_memory_of_a_cta(device: str, fixed: bool) -> None:
    bench = Bench(device, SOURCE, defines=("FIXED",) if fixed else (), arena=64 * MiB)
    out, words = bench.zeros(1024), ALL_SHARED // 4
    bench.launch("everything", 3, 1024, words, out, shared=ALL_SHARED)
    report = bench.report()
    assert report.verdict == ("clean" if fixed else "violations"), report
    if fixed:
        assert bench.array(out, 1024).sum(dtype=np.uint64) == sum(4 * i + 6 for i in range(words // 4))
    else:
        assert {"last"} < {place for finding in found(report, SOURCE) for place in finding}
        (finding,) = report.findings
        assert finding.buffer.offset + finding.buffer.bytes <= ALL_SHARED  # type: ignore[union-attr]


def test_kernels_without_shared_memory(device: str) -> None:
    bench = Bench(device, SOURCE)
    out = bench.zeros(512)
    bench.launch("no_shared", 4, 128, out)
    bench.launch("barrier_only", 4, 128, out)
    bench.launch("empty", 7, 32)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    assert {name: count for name, count in launches(report).items() if count} == {"no_shared": 1, "barrier_only": 1, "empty": 1}
    assert bench.array(out, 512).tolist() == list(range(128)) * 4


def test_a_module_with_no_shared_memory_at_all(device: str) -> None:
    source = 'extern "C" __global__ void only(unsigned* out) { out[threadIdx.x] = 3 * threadIdx.x; }'
    bench = Bench(device, source)
    out = bench.zeros(32)
    bench.launch("only", 1, 32, out)
    report = bench.report()
    assert (report.verdict, launches(report)) == ("clean", {"only": 1})
    assert bench.array(out, 32).tolist() == [3 * t for t in range(32)]


def test_nothing_launched_is_not_clean(device: str) -> None:
    assert Bench(device, SOURCE).report().verdict == "incomplete"


def test_findings_belong_to_the_entry_that_had_them(device: str) -> None:
    """Several entries in one module, launched in turn."""
    bench = Bench(device, SOURCE)
    x, out = bench.buffer(np.arange(1024, dtype=np.uint32)), bench.zeros(64)
    for _ in range(3):
        bench.launch("clean", 5, 32, x, out)
        bench.launch("racy", 2, 64, 1, out)
        bench.launch("partly_written", 1, 64, 60, out)
    report = bench.report()
    assert found(report, SOURCE, "racy") == {("data-race", "read", "write")}
    assert found(report, SOURCE, "partly_written") == {("uninitialized-read", "uninitialised")}
    assert found(report, SOURCE, "clean") == set()
    assert {name: count for name, count in launches(report).items() if count} == {"clean": 3, "racy": 3, "partly_written": 3}
