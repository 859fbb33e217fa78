"""Counters wrap without a false alarm or a missed race: epochs in read and write records, the epoch itself, barrier generations,
groups of cp.async.

Tiny widths (`Variant.epoch_bits`, `epoch_limit`) let a few hundred barriers force what takes millions otherwise. Each pattern runs racy
and fixed: the racy one must be found after any number of wraps, the fixed one must stay clean.

The sessions of this file share one device for each variant, renewed for each session: decoding takes longer than most of these runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_support import Bench, found

from consan.instrument.runtime import Variant
from consan.session import session
from consan.session.modules.device import Device, new_device

TINY = Variant(epoch_bits=(4, 6), epoch_limit=200)
WIDTHS = {
    "4_6": TINY,
    "5_8": Variant(epoch_bits=(5, 8), epoch_limit=1000),
    "8_12": Variant(epoch_bits=(8, 12), epoch_limit=3000),
    "limit_only": Variant(epoch_limit=50),
}

SOURCE = """
#define BARRIER(id, n) asm volatile("barrier.sync %0, %1;" :: "r"(id), "r"(n) : "memory")
#define ARRIVE(id, n) asm volatile("barrier.arrive %0, %1;" :: "r"(id), "r"(n) : "memory")
// Every word is written once and read `barriers` intervals later; the last one is missing where `skip` says so.
extern "C" __global__ void old_write(int barriers, int skip, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    unsigned sum = 0;
    tile[t] = t;
    for (int k = 0; k < barriers; k++) {
        __syncthreads();
        sum += tile[63 - t];
    }
    if (!skip) __syncthreads();
    tile[t] = sum;                                      /*@write*/
    __syncthreads();
    out[t] = tile[63 - t];
}
// WAR and RAW in a loop: without the second barrier an iteration's writes meet the last one's reads.
extern "C" __global__ void loop(int rounds, int racy_round, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        tile[t] = t + k;                                /*@store*/
        __syncthreads();
        sum += tile[63 - t];                            /*@load*/
        if (k != racy_round) __syncthreads();
    }
    out[t] = sum;
}
// Written in the first interval only; the race comes `barriers` intervals later, in a word nobody touched meanwhile.
extern "C" __global__ void late(int barriers, int racy, unsigned* out) {
    __shared__ unsigned tile[64], other[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;
#pragma unroll 1
    for (int k = 0; k < barriers; k++) { other[t] = k; __syncthreads(); }
    if (t == 0) tile[40] = 7;                           /*@late*/
    if (!racy) __syncthreads();
    out[t] = tile[63 - t] + other[t];                   /*@reader*/
}
// Word 40 is never written: still uninitialised after any number of wraps, and reported as that.
extern "C" __global__ void never_written(int barriers, int written, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    if (written || t != 40) tile[t] = t;
#pragma unroll 1
    for (int k = 0; k < barriers; k++) __syncthreads();
    out[t] = tile[t];                                   /*@hole*/
}
// Producer and consumer warps with two named barriers a round.
extern "C" __global__ void named(int rounds, int racy_round, unsigned* out) {
    __shared__ unsigned tile[32];
    const unsigned lane = threadIdx.x & 31;
    unsigned sum = 0;
    if (threadIdx.x < 32) {
#pragma unroll 1
        for (int k = 0; k < rounds; k++) {
            BARRIER(2, 64);                             // free
            tile[lane] = lane + k;                      /*@produce*/
            ARRIVE(1, 64);                              // full
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < rounds; k++) {
            if (k == 0) ARRIVE(2, 64);
            BARRIER(1, 64);
            sum += tile[31 - lane];                     /*@consume*/
            if (k + 1 < rounds) ARRIVE(2, 64);
            if (k == racy_round) sum += tile[lane ^ 5]; /*@consume_late*/
        }
        out[lane] = sum;
    }
}
// Two warps hand a tile over through flags with release and acquire.
extern "C" __global__ void flags(int rounds, int racy_round, unsigned* out) {
    __shared__ unsigned tile[32], full, empty;
    const unsigned lane = threadIdx.x & 31;
    unsigned sum = 0, seen;
    if (threadIdx.x == 0) full = empty = 0;
    __syncthreads();
    const unsigned f = __cvta_generic_to_shared(&full), e = __cvta_generic_to_shared(&empty);
#pragma unroll 1
    for (unsigned k = 1; k <= rounds; k++) {
        if (threadIdx.x < 32) {
            tile[lane] = lane + k;                      /*@hand*/
            __syncwarp();
            if (lane == 0) asm volatile("st.release.cta.shared.u32 [%0], %1;" :: "r"(f), "r"(k) : "memory");
            do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(e) : "memory"); while (seen < k);
            __syncwarp();
        } else {
            do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(f) : "memory"); while (seen < k);
            __syncwarp();
            sum += tile[31 - lane];
            __syncwarp();
            if (lane == 0) asm volatile("st.release.cta.shared.u32 [%0], %1;" :: "r"(e), "r"(k) : "memory");
            if (k == racy_round) sum += tile[lane ^ 5]; /*@take_late*/
        }
    }
    if (threadIdx.x >= 32) out[lane] = sum;
}
// Lanes of one warp exchange through shared memory, round after round.
extern "C" __global__ void lanes(int rounds, int racy_round, unsigned* out) {
    __shared__ unsigned tile[32];
    const unsigned t = threadIdx.x;
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        tile[t] = t + k;                                /*@put*/
        if (k != racy_round) __syncwarp();
        sum += tile[t ^ 1];                             /*@get*/
        __syncwarp();
    }
    out[t] = sum;
}
"""


def _slow(*values: int) -> tuple[Any, ...]:
    return tuple(pytest.param(value, marks=pytest.mark.slow) for value in values)


MORE = ("4_6", "5_8", "8_12")  # the real widths, with an early limit, stay quick


class Retained(Device):
    """A device of the virtual machine that outlives its sessions."""

    def close(self) -> None:
        """The next session takes it."""


@pytest.fixture(scope="module")
def renewed() -> Callable[[str, int | None], Device]:
    """In place of `new_device`: one device, as new each time."""
    kept: dict[int | None, Device] = {}

    def take(name: str, shadow_memory: int | None = None) -> Device:
        if name != "cpu":
            return new_device(name, shadow_memory)
        if shadow_memory not in kept:
            kept[shadow_memory] = Retained(new_device(name).backend, arena_bytes=shadow_memory)
        kept[shadow_memory].renew()
        return kept[shadow_memory]

    return take


@pytest.fixture(autouse=True)
def _one_device(renewed: Callable[[str, int | None], Device], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "new_device", renewed)


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] if name in MORE else []) for name in sorted(WIDTHS)])
def variant(request: pytest.FixtureRequest) -> Variant:
    return WIDTHS[request.param]


# Two epochs a round: 60 go through the quick variant's limit (50), 130 through that of TINY (200).
ROUNDS = pytest.mark.parametrize("rounds", [60, *_slow(130, 300)])


def bench_of(device: str, variant: Variant) -> Bench:
    return Bench(device, SOURCE, variant=variant)


@pytest.mark.parametrize("barriers", [17, 200, *_slow(1, 3, 4, 5, 15, 16, 63, 64, 65, 199, 201)])
def test_reads_before_a_write(device: str, barriers: int) -> None:
    """Counts around the periods (4, 16), the wraps (16, 64) and the limit (200) of the tiny widths."""
    for skip in (0, 1):
        bench = bench_of(device, TINY)
        bench.launch("old_write", 3, 64, barriers, skip, bench.zeros(64))
        report = bench.report()
        assert (report.verdict == "violations") == bool(skip), (barriers, skip, report.findings)
        assert report.evicted == 0


@ROUNDS
def test_loop_over_wraps(device: str, variant: Variant, rounds: int) -> None:
    for racy_round in (-1, 17, rounds - 2):
        bench = bench_of(device, variant)
        out = bench.zeros(64)
        bench.launch("loop", 2, 64, rounds, racy_round, out)
        report = bench.report()
        expected = set() if racy_round < 0 else {("data-race", "load", "store")}
        assert found(report, SOURCE) == expected, racy_round
        assert report.evicted == 0
        if racy_round < 0:
            wanted = sum((63 - np.arange(64)) + k for k in range(rounds))
            np.testing.assert_array_equal(bench.array(out, 64), wanted)


@pytest.mark.parametrize("barriers", [80, *_slow(2, 15, 16, 31, 47, 64, 200, 256, 1000)])
def test_a_late_race_on_an_old_record(device: str, barriers: int) -> None:
    for racy in (0, 1):
        bench = bench_of(device, TINY)
        bench.launch("late", 3, 64, barriers, racy, bench.zeros(64))
        expected = {("data-race", "late", "reader")} if racy else set()
        assert found(bench.report(), SOURCE) == expected, (barriers, racy)


@pytest.mark.parametrize("barriers", [64, *_slow(0, 4, 16, 17, 63, 200, 1000)])
def test_initialised_or_not_survives_wraps(device: str, barriers: int) -> None:
    for written in (0, 1):
        bench = bench_of(device, TINY)
        for _ in range(3):
            bench.launch("never_written", 2, 64, barriers, written, bench.zeros(64))
        expected = set() if written else {("uninitialized-read", "hole")}
        assert found(bench.report(), SOURCE) == expected, (barriers, written)


def test_one_slot_for_thousands_of_ctas(device: str, variant: Variant) -> None:
    """The epoch base of a slot goes through its limit many times; each CTA must start from nothing."""
    bench = bench_of(device, variant)
    out = bench.zeros(64)
    for barriers in (3, 40):
        bench.launch("never_written", 600, 64, barriers, 1, out)
        bench.launch("late", 300, 64, barriers, 0, out)
    assert bench.report().findings == ()
    bench.launch("never_written", 500, 64, 3, 0, out)
    bench.launch("late", 500, 64, 3, 1, out)
    report = bench.report()
    assert found(report, SOURCE) == {("uninitialized-read", "hole"), ("data-race", "late", "reader")}
    assert {finding.ctas for finding in report.findings} == {500}


@ROUNDS
def test_named_barriers_over_wraps(device: str, variant: Variant, rounds: int) -> None:
    """Generations of named barriers, and epochs that arrivals advance."""
    for racy_round in (5, rounds - 39):
        bench = bench_of(device, variant)
        out = bench.zeros(32)
        bench.launch("named", 2, 64, rounds, -1, out)
        clean = bench.report()
        assert (found(clean, SOURCE), clean.evicted) == (set(), 0)
        wanted = sum((31 - np.arange(32)) + k for k in range(rounds))
        np.testing.assert_array_equal(bench.array(out, 32), wanted)
        bench.launch("named", 1, 64, rounds, racy_round, out)
        assert found(bench.report(), SOURCE) == {("data-race", "consume_late", "produce")}, racy_round


@pytest.mark.slow
@pytest.mark.parametrize("racy_round", [-1, 5])
def test_flags_over_wraps(device: str, racy_round: int) -> None:
    """What a flag published before a wrap, or in an earlier CTA of the slot, orders nothing after it. Spins are slow on the machine."""
    rounds = 6 if device == "cpu" else 500
    bench = bench_of(device, TINY)
    out = bench.zeros(32)
    bench.launch("flags", 1, 64, rounds, -1, out)
    clean = bench.report()
    assert (found(clean, SOURCE), clean.evicted) == (set(), 0)
    if racy_round >= 0:
        bench.launch("flags", 1, 64, rounds, racy_round, out)
        assert found(bench.report(), SOURCE) == {("data-race", "hand", "take_late")}


@pytest.mark.slow
def test_named_barriers_for_thousands_of_rounds(device: str) -> None:
    bench = Bench(device, SOURCE, variant=WIDTHS["8_12"])
    bench.launch("named", 1, 64, 2000, -1, bench.zeros(32))
    report = bench.report()
    assert (report.verdict, report.findings, report.evicted) == ("clean", (), 0)


@ROUNDS
def test_warp_barriers_over_wraps(device: str, variant: Variant, rounds: int) -> None:
    for racy_round in (-1, 7, rounds - 1):
        bench = bench_of(device, variant)
        bench.launch("lanes", 2, 32, rounds, racy_round, bench.zeros(32))
        expected = set() if racy_round < 0 else {("data-race", "get", "put")}
        assert found(bench.report(), SOURCE) == expected, racy_round


COPIES = """
#define COPY4(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" \\
    :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
// A copy that nobody waits for is still in flight after any number of barriers.
extern "C" __global__ void never_waited(const unsigned* x, int barriers, int wait, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    COPY4(&tile[t], &x[t]);                             /*@unwaited*/
    COMMIT();
    if (wait) WAIT(0);
#pragma unroll 1
    for (int k = 0; k < barriers; k++) __syncthreads();
    out[t] = tile[63 - t];                              /*@too_early*/
}
// The source of an early copy is overwritten long after the copy was waited for.
extern "C" __global__ void source_reused(unsigned* x, int groups, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    COPY4(&tile[t], &x[t]);
    COMMIT();
    WAIT(0);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < groups; k++) COMMIT();
    x[t] = 7;
    out[t] = tile[t];
}
// `groups` empty groups between a copy and its use: the counter of groups passes 2^14 where a record keeps its low bits.
extern "C" __global__ void many_groups(const unsigned* x, int groups, int pending, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < groups; k++) COMMIT();
    COPY4(&tile[t], &x[t]);                             /*@copy*/
    COMMIT();
    if (pending) { WAIT(1); } else { WAIT(0); }
    __syncthreads();
    out[t] = tile[63 - t];                              /*@use*/
}
// One early copy, waited for and visible; then `groups` groups, the last one in flight; then its first use.
extern "C" __global__ void used_late(const unsigned* x, int groups, int own, unsigned* out) {
    __shared__ unsigned tile[64], other[64];
    const unsigned t = threadIdx.x;
    COPY4(&tile[t], &x[t]);                             /*@early*/
    COMMIT();
    WAIT(0);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < groups; k++) COMMIT();
    COPY4(&other[t], &x[t]);
    COMMIT();
    WAIT(1);
    out[t] = tile[own ? t : 63 - t];                    /*@first_use*/
    WAIT(0);
    out[t] += other[t];
}
"""
GROUPS = (1, (1 << 14) + 1, *_slow(0, 1000, (1 << 14) - 2, (1 << 14) - 1, 1 << 14, 20_000))


@pytest.mark.parametrize("groups", GROUPS)
def test_copy_after_many_groups(device: str, groups: int) -> None:
    for pending in (0, 1):
        bench = Bench(device, COPIES)
        out = bench.zeros(64)
        bench.launch("many_groups", 1, 64, bench.buffer(np.arange(64, dtype=np.uint32)), groups, pending, out)
        expected = {("missing-wait", "copy", "use")} if pending else set()
        assert found(bench.report(), COPIES) == expected, (groups, pending)
        if not pending:
            assert bench.array(out, 64).tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("groups", GROUPS)
def test_copy_used_many_groups_later(device: str, groups: int, own: int) -> None:
    """The record of the early copy must not come back to life as one in flight."""
    bench = Bench(device, COPIES)
    bench.launch("used_late", 1, 64, bench.buffer(np.arange(64, dtype=np.uint32)), groups, own, bench.zeros(64))
    report = bench.report()
    assert (found(report, COPIES), report.verdict) == (set(), "clean")


@pytest.mark.parametrize("barriers", [3, 17, *_slow(1, 16, 40, 64, 65, 300)])
def test_an_unwaited_copy_stays_in_flight_over_wraps(device: str, barriers: int) -> None:
    for wait in (0, 1):
        bench = Bench(device, COPIES, variant=TINY)
        bench.launch("never_waited", 2, 64, bench.buffer(np.arange(64, dtype=np.uint32)), barriers, wait, bench.zeros(64))
        expected = set() if wait else {("missing-wait", "too_early", "unwaited")}
        assert found(bench.report(), COPIES) == expected, (barriers, wait)


@pytest.mark.parametrize("groups", GROUPS)
def test_source_overwritten_many_groups_later(device: str, groups: int) -> None:
    bench = Bench(device, COPIES)
    bench.launch("source_reused", 1, 64, bench.buffer(np.arange(64, dtype=np.uint32)), groups, bench.zeros(64))
    report = bench.report()
    assert (found(report, COPIES), report.verdict) == (set(), "clean")


ARRIVALS = """
__device__ unsigned address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void arrive(unsigned long long* full, int k) {
    asm volatile("{ .reg .pred p; mbarrier.arrive.shared.b64 _, [%0]; mbarrier.test_wait.parity.shared.b64 p, [%0], %1; }"
                 :: "r"(address(full)), "r"(k & 1) : "memory");
}
// What warp 0 has read is written by warp 1 after a barrier of both, but only after warp 0 has gone on for `rounds` epochs by itself.
extern "C" __global__ void long_ago(int rounds, int skip, unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[2048];
    __shared__ unsigned long long full;
    const unsigned t = threadIdx.x;
    for (int i = t; i < 2048; i += 64) tile[i] = i;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address(&full)) : "memory");
#pragma unroll 1
    for (int k = 0; k < 20; k++) __syncthreads();
    unsigned sum = 0, seen = 0;
    if (t < 32) sum = tile[1500 + t];                   /*@first*/
    if (!skip) __syncthreads();
    if (t == 0) {
#pragma unroll 1
        for (int k = 0; k < rounds; k++) arrive(&full, k);
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
    }
    if (t == 32) while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (t >= 32) { __syncwarp(); tile[1500 + t - 32] += 7; }  /*@second*/
    if (t < 32) out[t] = sum;
}
// Warp 0 goes on by itself, and a barrier takes warp 1, which has read before, to its epoch. Then warp 1 goes on, and warp 0 writes.
extern "C" __global__ void jump(int alone, int then, unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[2048];
    __shared__ unsigned long long full, other;
    const unsigned t = threadIdx.x;
    for (int i = t; i < 2048; i += 96) tile[i] = i;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address(&full)) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address(&other)) : "memory");
    }
#pragma unroll 1
    for (int k = 0; k < 20; k++) __syncthreads();
    unsigned sum = 0, seen = 0;
    if (t >= 32 && t < 64) sum = tile[1500 + t];        /*@before*/
#pragma unroll 1
    for (int k = 0; k < alone && t == 0; k++) arrive(&full, k);
    __syncthreads();
    if (t == 32) {
#pragma unroll 1
        for (int k = 0; k < then; k++) arrive(&other, k);
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
    }
    if (t >= 64) sum += tile[1500 + t - 32];
    if (t >= 64 || t < 32) asm volatile("barrier.sync 1, 64;" ::: "memory");
    if (t == 0) while (!seen) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (t < 32) { __syncwarp(); tile[1500 + t + 32] += 7; }  /*@after*/
    out[t] = sum;
}
"""


@pytest.mark.parametrize("rounds", [49, *_slow(3, 16, 65)])
def test_a_row_is_scrubbed_by_the_lane_that_moves_its_epoch(device: str, rounds: int) -> None:
    """One thread of the warp moves its epoch, and looks through the row alone."""
    for skip in (0, 1) if rounds < 4 else (0,):
        bench = Bench(device, ARRIVALS, variant=TINY)
        bench.launch("long_ago", 1, 64, rounds, skip, bench.zeros(1), bench.zeros(32))
        assert found(bench.report(), ARRIVALS) == ({("data-race", "first", "second")} if skip else set())


@pytest.mark.slow
@pytest.mark.parametrize("alone", [17, 18])
@pytest.mark.parametrize("then", [22, 16])
def test_an_epoch_that_jumps_over_a_wrap(device: str, alone: int, then: int) -> None:
    """A barrier takes an idle warp's epoch nearly once round: what it has read before looks young, and is not."""
    bench = Bench(device, ARRIVALS, variant=Variant(epoch_bits=(4, 6)))
    bench.launch("jump", 1, 96, alone, then, bench.zeros(1), bench.zeros(96))
    assert found(bench.report(), ARRIVALS) == set()
