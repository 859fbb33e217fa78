"""Barriers, collectives, spinning, deadlock and the time limit, in several schedules."""

from __future__ import annotations

import time

import numpy as np
import pytest
from engine_support import Device, cuda, kernel, run

U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2, 3])


@SEEDS
@pytest.mark.parametrize("block", [64, 100, 256])
def test_tree_reduction(block: int, seed: int) -> None:
    source = """extern "C" __global__ void k(unsigned* out, unsigned* in) {
      __shared__ unsigned s[256]; int t = threadIdx.x; s[t] = in[blockIdx.x * blockDim.x + t]; __syncthreads();
      for (int n = blockDim.x, h; n > 1; n = h) { h = (n + 1) / 2; if (t < n - h) s[t] += s[t + h]; __syncthreads(); }
      if (t == 0) out[blockIdx.x] = s[0]; }"""
    data = np.random.default_rng(1).integers(0, 1000, 7 * block).astype(U32)
    found = run(cuda(source), data, grid=7, block=block, out=7, seed=seed)
    np.testing.assert_array_equal(found, data.reshape(7, block).sum(1))


@SEEDS
def test_named_barriers_with_counts(seed: int) -> None:
    """Warps 0 and 1 produce and only arrive; warps 2 and 3 wait for them, twice."""
    body = """mov.u32 %r20, 0; setp.ge.u32 %p1, %r0, 64; @%p1 bra CONSUMER;
    PRODUCE: mul.lo.u32 %r5, %r0, 4; add.u32 %r5, %r5, %r20; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; add.u32 %r7, %r0, %r20;
    st.shared.u32 [%r6], %r7;
    bar.arrive 1, 128; bar.sync 2, 128; add.u32 %r20, %r20, 256; setp.lt.u32 %p2, %r20, 512; @%p2 bra PRODUCE; bra END;
    CONSUMER: bar.sync 1, 128; sub.u32 %r5, 127, %r0; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r20; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;
    ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd3], %r7; add.u64 %rd3, %rd3, 512; bar.arrive 2, 128; add.u32 %r20, %r20, 256;
    setp.lt.u32 %p2, %r20, 512; @%p2 bra CONSUMER; END:"""
    found = run(kernel(body, ".shared .align 4 .b8 s[512];"), block=128, out=256, seed=seed).reshape(2, 128)
    np.testing.assert_array_equal(found[0, 64:], 127 - np.arange(64, 128))
    np.testing.assert_array_equal(found[1, 64:], 127 - np.arange(64, 128) + 256)


@SEEDS
def test_barrier_reductions(seed: int) -> None:
    body = """and.b32 %r5, %r3, 3; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r0, 1000; setp.eq.u32 %p3, %r3, 97;
    barrier.red.popc.u32 %r6, 0, %p1; bar.red.and.pred %p4, 0, !%p2; bar.red.or.pred %p5, 0, %p3; bar.red.and.pred %p6, 0, %p2;
    selp.u32 %r7, 1000, 0, %p4; selp.u32 %r8, 2000, 0, %p5; selp.u32 %r9, 4000, 0, %p6;
    add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; add.u32 %r6, %r6, %r9; st.global.u32 [%rd3], %r6;"""
    found = run(kernel(body), grid=3, block=64, seed=seed)
    np.testing.assert_array_equal(found, np.repeat([4016, 6016, 4016], 64))


def test_exited_threads_are_not_waited_for() -> None:
    body = "setp.lt.u32 %p1, %r0, 40; @!%p1 exit; bar.sync 0; setp.lt.u32 %p1, %r0, 32; @%p1 bar.warp.sync -1; st.global.u32 [%rd3], 1;"
    np.testing.assert_array_equal(run(kernel(body), block=96), [1] * 40 + [0] * 56)


def test_warps_reach_one_barrier_at_different_instructions() -> None:
    body = """setp.lt.u32 %p1, %r0, 32; @%p1 bra A; st.shared.u32 [s], 9; bar.sync 0; bra E; A: bar.sync 0; ld.shared.u32 %r5, [s];
    st.global.u32 [%rd3], %r5; E:"""
    found = run(kernel(body, ".shared .align 4 .u32 s;"), block=64)
    np.testing.assert_array_equal(found, [9] * 32 + [0] * 32)


@SEEDS
def test_warp_barrier_orders_divided_lanes(seed: int) -> None:
    """Half of the warp waits at one bar.warp.sync, the other half at another."""
    body = """setp.lt.u32 %p1, %r0, 16; shl.b32 %r5, %r0, 2; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; @%p1 bra A;
    bar.warp.sync 0xffffffff; ld.shared.u32 %r7, [%r6+-64]; st.global.u32 [%rd3], %r7; bra E;
    A: add.u32 %r8, %r0, 100; st.shared.u32 [%r6], %r8; bar.warp.sync 0xffffffff; E:"""
    found = run(kernel(body, ".shared .align 4 .b8 s[128];"), seed=seed)
    np.testing.assert_array_equal(found, [0] * 16 + list(range(100, 116)))


@SEEDS
def test_collectives_wait_for_their_members(seed: int) -> None:
    """The lanes come to the shuffle by different ways and at different times."""
    body = """mov.u32 %r5, %r0; and.b32 %r6, %r0, 3; L: setp.eq.u32 %p1, %r6, 0; @%p1 bra S; add.u32 %r5, %r5, 100; sub.u32 %r6, %r6, 1;
    bra L;
    S: shfl.sync.bfly.b32 %r7, %r5, 1, 31, 0xffffffff; vote.sync.ballot.b32 %r8, %p1, 0xffffffff; xor.b32 %r7, %r7, %r8; not.b32 %r7, %r7;
    st.global.u32 [%rd3], %r7;"""
    other = np.arange(64) % 32 ^ 1
    np.testing.assert_array_equal(run(kernel(body), grid=2, seed=seed), other + 100 * (other % 4))


def test_collectives_of_parts_of_a_warp() -> None:
    body = """setp.lt.u32 %p1, %r0, 8; @%p1 bra A; redux.sync.add.u32 %r5, %r0, 0xffffff00; bra E;
    A: redux.sync.add.u32 %r5, %r0, 0xff; E: st.global.u32 [%rd3], %r5;"""
    np.testing.assert_array_equal(run(kernel(body)), [28] * 8 + [sum(range(8, 32))] * 24)


@SEEDS
def test_spin_lock(seed: int) -> None:
    source = """extern "C" __global__ void k(unsigned* out, unsigned* lock) {
      for (bool done = false; !done;) if (atomicCAS(lock, 0u, 1u) == 0) {
        __threadfence(); *(volatile unsigned*)out += 1; __threadfence(); atomicExch(lock, 0u); done = true; } }"""
    assert run(cuda(source), np.zeros(1, U32), grid=4, block=64, out=1, seed=seed, timeout=30)[0] == 256


@SEEDS
def test_a_lower_spinner_does_not_starve_the_one_it_waits_for(seed: int) -> None:
    body = """setp.eq.u32 %p1, %r0, 40; @%p1 bra SET; WAIT: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT;
    st.global.u32 [%rd3], %r5; bra END; SET: nanosleep.u32 20; st.volatile.global.u32 [%rd1], 3; END:"""
    found = run(kernel(body), block=64, seed=seed, timeout=30)
    np.testing.assert_array_equal(found, [3] * 40 + [0] + [3] * 23)


@pytest.mark.timeout(20)
def test_a_loop_that_meets_at_a_barrier_does_not_starve_the_cta_that_it_waits_for() -> None:
    """Triton polls so: one thread loads, and the CTA meets to hear of it."""
    body = """mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; @%p1 bra SET;
    WAIT: bar.sync 0; ld.volatile.global.u32 %r5, [%rd1]; bar.sync 0; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT;
    st.global.u32 [%rd3], %r5; bra END; SET: st.volatile.global.u32 [%rd1], 3; END:"""
    assert set(run(kernel(body), grid=2, block=64)[64:].tolist()) == {3}


def test_cooperative_launch_has_all_ctas_at_once() -> None:
    source = """extern "C" __global__ void k(unsigned* out, unsigned* count) {
      if (threadIdx.x == 0) { atomicAdd(count, 1u); while (*(volatile unsigned*)count < gridDim.x); }
      __syncthreads(); out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile unsigned*)count; }"""
    found = run(cuda(source), np.zeros(1, U32), grid=24, block=512, cooperative=True, timeout=60)
    assert set(found.tolist()) == {24}


def test_deadlock_ends_the_launch_and_says_who_waits_where() -> None:
    body = "setp.lt.u32 %p1, %r0, 32; @%p1 bra A;\nbar.sync 4, 96;\nbra E;\nA: bar.sync 3, 96;\nE:"
    device = Device(kernel(body))
    stats = device.launch("k", 2, 64, 0, 0)
    assert stats.deadlocked
    assert not stats.timed_out
    text = kernel(body)
    lines = {number: text[: text.index(f"bar.sync {number}")].count("\n") + 1 for number in (3, 4)}
    found = {(b.ctaid[0], b.warp, b.barrier, b.ptx_line, b.lanes, b.why) for b in stats.blocked}
    assert found == {(cta, warp, 3 + warp, lines[3 + warp], 0xFFFFFFFF, "barrier") for cta in (0, 1) for warp in (0, 1)}


def test_lanes_go_on_without_others_that_the_mask_of_a_collective_names() -> None:
    body = "setp.lt.u32 %p1, %r0, 4; @%p1 bra A; bar.sync 0; bra E; A: shfl.sync.idx.b32 %r5, %r0, 0, 31, 0xffffffff; E:"
    stats = Device(kernel(body)).launch("k", 1, 32, 0, 0)
    assert not stats.deadlocked
    assert not stats.blocked


def test_time_limit_ends_a_grid_of_short_ctas() -> None:
    """Each wave of this grid is too short to look at the clock."""
    stats = Device(kernel("mov.u32 %r5, 0;")).launch("k", 50_000_000, 1, 0, 0, timeout=0.05)
    assert stats.timed_out
    assert 0 < stats.unstarted < 50_000_000


def test_time_limit_ends_a_spin_and_says_where() -> None:
    body = "WAIT:\nadd.u32 %r6, %r6, 1; ld.volatile.global.u32 %r5, [%rd1];\nsetp.eq.u32 %p2, %r5, 0; "
    body += "setp.ne.and.u32 %p2, %r6, -1, %p2; @%p2 bra WAIT;"  # the count ends it at last: no deadlock
    device = Device(kernel(body))
    zero = device.buffer(np.zeros(1, U32))
    started = time.monotonic()
    stats = device.launch("k", 1, 64, zero, zero, timeout=0.3)
    assert time.monotonic() - started < 5
    assert stats.timed_out
    assert [(b.warp, b.why) for b in stats.blocked] == [(0, "running"), (1, "running")]
    assert {b.opcode for b in stats.blocked} == {"ld.volatile.global.u32"}
    device.machine.write(zero, np.ones(1, U32))
    assert device.launch("k", 1, 64, zero, zero).completed


RACE = """extern "C" __global__ void k(unsigned* out, unsigned* in) {
  __shared__ unsigned s[128]; int t = threadIdx.x; s[t] = 0; __syncthreads();
  #pragma unroll 1
  for (int i = 0; i < 10; i++) { s[t] = s[127 - t] + t; } __syncthreads(); out[t] = s[t]; }"""


def test_seeds_give_different_interleavings_and_each_is_repeatable() -> None:
    results = {seed: run(cuda(RACE), block=128, seed=seed).tobytes() for seed in range(8)}
    assert len(set(results.values())) > 1
    assert all(run(cuda(RACE), block=128, seed=seed).tobytes() == result for seed, result in results.items())
