"""mbarriers: phases, counts and transactions, parking at try_wait, pipelines, deadlocks; cp.async.mbarrier.arrive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from engine_support import Device, cuda, kernel, run

from consan.backends.cpu.state import mbarriers
from consan.backends.cpu.state.mbarriers import MBarriers

U32 = np.uint32
Array = npt.NDArray[Any]
SEEDS = pytest.mark.parametrize("seed", range(5))
BAR = ".shared .align 8 .b64 bar; .shared .align 8 .b64 bars[8]; .shared .align 16 .b8 s[8192];"
FIRST = "setp.eq.u32 %p9, %r0, 0;"


def init(count: int | str, name: str = "bar") -> str:
    """Thread 0 initialises, everyone waits."""
    return f"{FIRST} @%p9 mbarrier.init.shared::cta.b64 [{name}], {count}; bar.sync 0;"


def wait(parity: str, address: str = "bar", form: str = "try_wait.parity.shared::cta.b64", tag: str = "W") -> str:
    return f"{tag}: mbarrier.{form} %p1, [{address}], {parity}; @!%p1 bra {tag};"


def show(*registers: str) -> str:
    """Thread 0 stores 32-bit registers one after another."""
    return f"{FIRST} @!%p9 bra OUT;" + "".join(f"st.global.u32 [%rd0+{4 * k}], {r};" for k, r in enumerate(registers)) + "OUT:"


@SEEDS
@pytest.mark.parametrize("form", ["test_wait", "try_wait"])
@pytest.mark.parametrize("block", [32, 96, 100])
def test_a_block_meets_at_an_mbarrier_in_many_phases(block: int, form: str, seed: int) -> None:
    """Twenty phases, so that the phase of the word wraps: each thread sees its neighbour's value of the phase."""
    body = f"""{init("%r2")} mov.u32 %r20, 0; shl.b32 %r5, %r0, 2; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; mov.u32 %r30, 0;
    add.u32 %r7, %r0, 1; rem.u32 %r7, %r7, %r2; shl.b32 %r7, %r7, 2; mov.u32 %r8, s; add.u32 %r7, %r8, %r7;
    LOOP: mul.lo.u32 %r9, %r20, %r0; st.shared.u32 [%r6], %r9; mbarrier.arrive.shared::cta.b64 %rd10, [bar];
    W: mbarrier.{form}.shared.b64 %p1, [bar], %rd10; @!%p1 bra W; ld.shared.u32 %r9, [%r7]; add.u32 %r30, %r30, %r9;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd10, [bar]; V: mbarrier.{form}.acquire.cta.shared::cta.b64 %p1, [bar], %rd10; @!%p1 bra V;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 10; @%p1 bra LOOP; st.global.u32 [%rd3], %r30;"""
    found = run(kernel(body, BAR), grid=3, block=block, seed=seed, timeout=60)
    np.testing.assert_array_equal(found, np.tile((np.arange(block) + 1) % block * 45, 3))


@SEEDS
@pytest.mark.parametrize("form", ["test_wait.parity", "try_wait.parity", "try_wait.parity.relaxed.cluster"])
def test_parity_with_generic_addresses(form: str, seed: int) -> None:
    body = f"""{init("%r2")} cvta.shared.u64 %rd8, bar; mov.u32 %r20, 0; mov.u32 %r21, 0;
    LOOP: atom.shared.add.u32 %r9, [s], 1; mbarrier.arrive.b64 _, [%rd8]; and.b32 %r7, %r20, 1;
    W: mbarrier.{form}.b64 %p1, [%rd8], %r7; @!%p1 bra W; ld.volatile.shared.u32 %r9, [s]; max.u32 %r21, %r21, %r9;
    mad.lo.u32 %r10, %r20, %r2, %r2; setp.lt.u32 %p2, %r9, %r10; @%p2 trap;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 5; @%p1 bra LOOP; st.global.u32 [%rd3], %r21;"""
    assert (run(kernel(body, BAR), block=64, seed=seed, timeout=60) >= 5 * 64).all()


def test_counts_states_and_pending_count() -> None:
    """Four arrivals by ones and by a count; each token has the pending count before its own arrival."""
    body = f"""{init(100)} setp.lt.u32 %p2, %r0, 4; @%p2 mbarrier.arrive.noComplete.shared.b64 %rd10, [bar], 3;
    @!%p2 mbarrier.arrive_drop.noComplete.release.cta.shared::cta.b64 %rd10, [bar], 1; mbarrier.pending_count.b64 %r5, %rd10;
    st.global.u32 [%rd3], %r5;"""
    found = run(kernel(body, BAR))
    np.testing.assert_array_equal(found, [100, 97, 94, 91, *range(88, 60, -1)])


def test_arrive_drop_lowers_the_count_of_later_phases() -> None:
    """32 expected; 8 threads drop out and leave; the other 24 complete two phases alone."""
    body = f"""{init(32)} setp.ge.u32 %p2, %r0, 24; @%p2 mbarrier.arrive_drop.shared.b64 _, [bar]; @%p2 exit; mov.u32 %r20, 0;
    LOOP: mbarrier.arrive.shared.b64 %rd10, [bar]; W: mbarrier.try_wait.shared.b64 %p1, [bar], %rd10, 1000; @!%p1 bra W;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 3; @%p1 bra LOOP; st.global.u32 [%rd3], %r20;"""
    np.testing.assert_array_equal(run(kernel(body, BAR)), [3] * 24 + [0] * 8)


def test_arrivals_of_one_instruction_may_end_several_phases() -> None:
    """Count 8, 32 lanes arrive at once: four phases, and parity 0 is current again."""
    body = f"""{init(8)} mbarrier.arrive.shared.b64 %rd10, [bar]; mbarrier.pending_count.b64 %r5, %rd10; st.global.u32 [%rd3], %r5;
    mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @%p1 trap; mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1; @!%p1 trap;"""
    np.testing.assert_array_equal(run(kernel(body, BAR)), np.tile(np.arange(8, 0, -1), 4))


@pytest.mark.parametrize(
    ("steps", "complete"),
    [
        ("mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;", 0),
        ("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [bar], 64; mbarrier.complete_tx.shared.b64 [bar], 48;", 0),
        (
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd11, [bar], 64;"
            "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], 64;",
            1,
        ),
        ("mbarrier.complete_tx.shared.b64 [bar], 64; mbarrier.arrive.shared.b64 _, [bar];", 0),
        ("mbarrier.complete_tx.shared.b64 [bar], 64; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;", 1),
        ("mbarrier.complete_tx.b64 [%rd8], 64; mbarrier.expect_tx.relaxed.cta.b64 [%rd8], 64; mbarrier.arrive.b64 _, [%rd8];", 1),
        ("mbarrier.expect_tx.shared.b64 [bar], 64; mbarrier.complete_tx.shared.b64 [bar], 64;", 0),
        ("mbarrier.arrive.shared.b64 _, [bar], 1;", 1),
    ],
)
def test_transactions_and_arrivals_complete_a_phase_together(steps: str, complete: int) -> None:
    body = f"""{FIRST} @!%p9 exit; cvta.shared.u64 %rd8, bar; mbarrier.init.b64 [%rd8], 1; {steps}
    mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd0], %r5;"""
    assert run(kernel(body, BAR), out=1)[0] == complete


def test_a_wait_that_comes_after_inval_ends() -> None:
    """So that it is in the record of the launch, where it is a misuse; it hangs if the word is cleared."""
    body = f"""{FIRST} @!%p9 exit; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar];
    mbarrier.inval.shared::cta.b64 [bar]; mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
    selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd0], %r5;"""
    assert run(kernel(body, BAR), out=1)[0] == 1


def test_counts_out_of_range_wrap_and_nothing_stops() -> None:
    """Five arrivals at a count of two while a transaction is open, and operations on memory that holds no object."""
    body = f"""{FIRST} @!%p9 exit; mbarrier.init.shared.b64 [bar], 2; mbarrier.expect_tx.shared.b64 [bar], 16;
    mbarrier.arrive.noComplete.shared.b64 %rd10, [bar], 5; mbarrier.arrive.noComplete.shared.b64 %rd10, [bar], 1;
    mbarrier.pending_count.b64 %r5, %rd10; st.global.u32 [%rd0], %r5; mbarrier.expect_tx.shared.b64 [bar], 0xffffffff;
    mbarrier.inval.shared::cta.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive_drop.expect_tx.shared.b64 _, [bars], 3;
    mbarrier.complete_tx.shared.b64 [bars+8], 5;"""
    assert run(kernel(body, BAR), out=1)[0] == (1 << 20) - 3


PIPELINE = """
mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, bars; mov.u32 %r24, s;
setp.lt.u32 %p2, %r0, 32; @%p2 bra PRODUCER;
CONSUMER: shl.b32 %r25, %r21, 4; add.u32 %r25, %r23, %r25;
CW: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r25], %r22; @!%p1 bra CW;
sub.u32 %r26, %r0, 32; shl.b32 %r26, %r26, 2; add.u32 %r26, %r24, %r26; mad.lo.u32 %r26, %r21, 128, %r26; ld.shared.u32 %r27, [%r26];
mbarrier.arrive.shared::cta.b64 _, [%r25+8]; mad.lo.u32 %r28, %r28, 31, %r27;
add.u32 %r21, %r21, 1; setp.eq.u32 %p3, %r21, 3; @%p3 mov.u32 %r21, 0; @%p3 xor.b32 %r22, %r22, 1;
add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 11; @%p3 bra CONSUMER; st.global.u32 [%rd3], %r28; bra END;
PRODUCER: xor.b32 %r29, %r22, 1; shl.b32 %r25, %r21, 4; add.u32 %r25, %r23, %r25;
PW: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r25+8], %r29; @!%p1 bra PW;
shl.b32 %r26, %r0, 2; add.u32 %r26, %r24, %r26; mad.lo.u32 %r26, %r21, 128, %r26; mul.lo.u32 %r27, %r20, %r20; add.u32 %r27, %r27, %r3;
st.shared.u32 [%r26], %r27; mbarrier.arrive.shared::cta.b64 _, [%r25];
add.u32 %r21, %r21, 1; setp.eq.u32 %p3, %r21, 3; @%p3 mov.u32 %r21, 0; @%p3 xor.b32 %r22, %r22, 1;
add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 11; @%p3 bra PRODUCER;
END:
"""
INIT_PIPELINE = FIRST + "".join(f"@%p9 mbarrier.init.shared.b64 [bars+{8 * k}], 32;" for k in range(6)) + "bar.sync 0;"


@pytest.mark.parametrize("seed", range(8))
def test_a_pipeline_of_full_and_empty_barriers(seed: int) -> None:
    found = run(kernel(INIT_PIPELINE + PIPELINE, BAR), grid=4, block=64, seed=seed, timeout=60).reshape(4, 64)
    expected = np.zeros((4, 32), U32)
    for step in range(11):
        expected = expected * U32(31) + (U32(step * step) + np.arange(256, dtype=U32).reshape(4, 64)[:, :32])
    np.testing.assert_array_equal(found[:, 32:], expected)


@SEEDS
def test_parked_lanes_do_not_stop_their_warp(seed: int) -> None:
    """Half of a warp waits for what the other half signals; then the roles change."""
    body = f"""{init(16)} setp.lt.u32 %p2, %r0, 16; @!%p2 bra B; {wait("0", tag="A")} ld.shared.u32 %r5, [s]; bra E;
    B: st.shared.u32 [s], 77; mbarrier.arrive.shared.b64 %rd10, [bar]; mov.u32 %r5, 5; E: st.global.u32 [%rd3], %r5;"""
    np.testing.assert_array_equal(run(kernel(body, BAR), seed=seed), [77] * 16 + [5] * 16)


def test_try_wait_under_a_predicate() -> None:
    body = f"""{init(1)} setp.ge.u32 %p2, %r0, 20; mov.pred %p1, %p2; W: @!%p1 mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @%p2 bra R;
    @!%p1 bra W; bra E; R: setp.eq.u32 %p3, %r0, 31; @%p3 mbarrier.arrive.shared.b64 _, [bar]; E: selp.u32 %r5, 1, 0, %p1;
    st.global.u32 [%rd3], %r5;"""
    np.testing.assert_array_equal(run(kernel(body, BAR)), [1] * 32)


def test_only_seeds_time_out_before_the_phase_completes() -> None:
    """One attempt of each of 256 threads at a barrier that thread 0 completes later."""
    body = f"""{init(1)} setp.eq.u32 %p2, %r0, 0; @%p2 bra A; mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; bra E;
    A: mov.pred %p1, %p2; mov.u32 %r7, 0; L: add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 500; @%p3 bra L;
    mbarrier.arrive.shared.b64 _, [bar];
    E: selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd3], %r5;"""
    assert run(kernel(body, BAR), block=256, seed=0).all()
    assert any(not run(kernel(body, BAR), block=256, seed=seed).all() for seed in range(1, 12))


def test_a_single_attempt_that_nothing_completes_times_out() -> None:
    body = f"""{init(1)} mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0, 20; selp.u32 %r5, 1, 2, %p1; st.global.u32 [%rd3], %r5;
    bar.sync 0; {FIRST} @%p9 mbarrier.arrive.shared.b64 _, [bar]; {wait("0")}"""
    np.testing.assert_array_equal(run(kernel(body, BAR)), [2] * 32)


@SEEDS
def test_deadlock_lists_the_barrier_and_its_counts(seed: int) -> None:
    """Two CTAs; warp 1 of each waits for bytes that never come in the second phase of bars[1], warp 0 for a named barrier."""
    body = f"""{init(1, "bars+8")} setp.lt.u32 %p2, %r0, 32; @%p2 bra A; setp.eq.u32 %p3, %r0, 32;
    @%p3 mbarrier.arrive.shared.b64 _, [bars+8]; @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [bars+8], 96;
    @%p3 mbarrier.complete_tx.shared.b64 [bars+8], 32; bar.warp.sync -1;
    {wait("1", "bars+8")} A: bar.sync 1;"""
    device = Device(kernel(body, BAR))
    stats = device.launch("k", 2, 64, 0, 0, seed=seed)
    assert stats.deadlocked
    found = {(b.ctaid[0], b.warp, b.why) for b in stats.blocked}
    assert found == {(cta, warp, why) for cta in (0, 1) for warp, why in ((0, "barrier"), (1, "mbarrier"))}
    states = {b.mbarrier for b in stats.blocked if b.why == "mbarrier"}
    (state,) = states
    assert state is not None
    assert (state.phase, state.pending, state.expected, state.tx) == (1, 0, 1, 64)
    assert state.address % 8 == 0
    assert state.address >= 1024
    assert {b.lanes for b in stats.blocked} == {0xFFFFFFFF}
    assert {b.opcode for b in stats.blocked if b.why == "mbarrier"} == {"mbarrier.try_wait.parity.shared::cta.b64"}


def test_an_object_outside_its_memory_faults() -> None:
    for address, kind in (("%r5", "out-of-bounds"), ("bar+4", "misaligned")):
        device = Device(kernel(f"mov.u32 %r5, 100000; mbarrier.init.shared.b64 [{address}], 1;", BAR))
        (fault,) = device.launch("k", 1, 32, 0, 0).faults
        assert fault.kind == kind
    device = Device(kernel("mbarrier.arrive.b64 _, [%rd0];", BAR))
    (fault,) = device.launch("k", 1, 32, device.buffer(np.zeros(8, U32)), 0).faults
    assert fault.kind == "out-of-bounds"


COPY = """mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 16, %r5; mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd1, %rd5;
cp.async.cg.shared.global [%r6], [%rd6], 16;"""
SWAPPED = "xor.b32 %r7, %r0, 33; mad.lo.u32 %r7, %r7, 16, %r5; ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8;"


@SEEDS
@pytest.mark.parametrize("form", ["try_wait", "test_wait"])
@pytest.mark.parametrize(("arrive", "count"), [("", "64"), (".noinc", "128")])
def test_cp_async_arrives_when_its_copies_have_landed(arrive: str, count: str, form: str, seed: int) -> None:
    """Every thread reads what another one has copied."""
    body = f"""{init(count)} {COPY} cp.async.mbarrier.arrive{arrive}.shared::cta.b64 [bar]; mbarrier.arrive.shared.b64 %rd10, [bar];
    W: mbarrier.{form}.shared.b64 %p1, [bar], %rd10; @!%p1 bra W; {SWAPPED}"""
    data = np.arange(256, dtype=U32)
    np.testing.assert_array_equal(run(kernel(body, BAR), data, block=64, seed=seed), 4 * (np.arange(64) ^ 33))


def test_cp_async_without_the_arrival_lands_late() -> None:
    body = f"""{init(64)} {COPY} mbarrier.arrive.shared.b64 %rd10, [bar]; {wait("0")} {SWAPPED}"""
    assert (run(kernel(body, BAR), np.arange(256, dtype=U32), block=64) == 0).all()


CUDA = """
extern "C" __global__ void k(unsigned* out, const unsigned* in) {
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  __shared__ alignas(16) unsigned tile[2][256];
  auto addr = [](void* p) { return (unsigned)__cvta_generic_to_shared(p); };
  auto wait = [&](unsigned long long* b, unsigned parity) {
    asm volatile("{\\n.reg .pred P;\\nLAB:\\nmbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1, 0x989680;\\n"
                 "@P bra DONE;\\nbra LAB;\\nDONE:\\n}"
                 :: "r"(addr(b)), "r"(parity) : "memory"); };
  auto arrive = [&](unsigned long long* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(addr(b)) : "memory"); };
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(addr(&full[i])), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(addr(&empty[i])), "r"(128));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const unsigned* mine = in + blockIdx.x * 8 * 256;
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      for (int t = 0; t < 8; t++) {
        wait(&empty[t % 2], (t / 2 % 2) ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(addr(&full[t % 2])), "r"(1024) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(addr(tile[t % 2])), "l"(mine + t * 256), "r"(1024), "r"(addr(&full[t % 2])) : "memory");
      }
    return;
  }
  unsigned sum = 0;
  for (int t = 0; t < 8; t++) {
    wait(&full[t % 2], t / 2 % 2);
    sum = sum * 3 + tile[t % 2][threadIdx.x] + tile[t % 2][255 - threadIdx.x];
    arrive(&empty[t % 2]);
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}"""


@pytest.mark.parametrize("seed", range(6))
def test_a_compiled_producer_and_its_consumers(seed: int) -> None:
    data = np.random.default_rng(3).integers(0, 1 << 30, (3, 8, 256)).astype(U32)
    expected = np.zeros((3, 128), U32)
    for step in range(8):
        expected = expected * U32(3) + data[:, step, :128] + data[:, step, :127:-1]
    found = run(cuda(CUDA), data, grid=3, block=160, out=384, seed=seed, timeout=60)
    np.testing.assert_array_equal(found.reshape(3, 128), expected)


LIBRARY = """#include <cuda/barrier>
extern "C" __global__ void k(unsigned* out, const unsigned* in) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(16) unsigned tile[2][256];
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar[2];
  if (threadIdx.x == 0) { init(&bar[0], blockDim.x); init(&bar[1], blockDim.x); }
  if (threadIdx.x == 0) { cuda::device::experimental::fence_proxy_async_shared_cta(); }
  __syncthreads();
  barrier::arrival_token token[2];
  auto load = [&](int t) {
    if (threadIdx.x == 0) cuda::memcpy_async(tile[t % 2], in + t * 256, cuda::aligned_size_t<16>(1024), bar[t % 2]);
    token[t % 2] = bar[t % 2].arrive();
  };
  unsigned sum = 0;
  load(0);
  for (int t = 0; t < 6; t++) {
    if (t + 1 < 6) load(t + 1);
    bar[t % 2].wait(std::move(token[t % 2]));
    sum = sum * 5 + tile[t % 2][threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}"""


@SEEDS
def test_the_barrier_of_the_cuda_library(seed: int) -> None:
    data = np.random.default_rng(1).integers(0, 1 << 30, (6, 256)).astype(U32)
    expected = np.zeros(128, U32)
    for step in range(6):
        expected = expected * U32(5) + data[step, :128]
    np.testing.assert_array_equal(run(cuda(LIBRARY), data, block=128, seed=seed, timeout=60), expected)


def test_highest_bit_of_a_token_is_the_parity_of_its_phase() -> None:
    """As on the H200; the instrumentation takes the phase of a wait by token from it."""
    arrive = "bar.warp.sync -1; mbarrier.arrive.shared.b64 %rd10, [bar]; shr.u64 %rd11, %rd10, 63; cvt.u32.u64 %r5, %rd11;"
    body = f"{init(32)} {arrive * 3} st.global.u32 [%rd3], %r5;"
    np.testing.assert_array_equal(run(kernel(body, BAR)), np.zeros(32))
    np.testing.assert_array_equal(run(kernel(f"{init(32)} {arrive * 2} st.global.u32 [%rd3], %r5;", BAR)), np.ones(32))


def arrived(words: Array, units: Array, count: int, tx: Array | None, *, drop: bool, alike: bool) -> Any:
    """The tokens, the objects and their phases behind arrivals: of all lanes at once, or of one after the other."""
    wave = SimpleNamespace(arena=SimpleNamespace(views=[None, None, None, words.copy()]))
    barriers = MBarriers(wave, lambda _: None)  # type: ignore[arg-type]
    if alike:
        tokens = barriers.arrive(units, np.full(len(units), count), tx, drop=drop).tolist()
    else:
        each = zip(units.tolist(), [0] * len(units) if tx is None else tx.tolist(), strict=True)
        tokens = [barriers.signal(unit, arrivals=count, tx=more, drop=drop) for unit, more in each]
    return tokens, barriers.words.tolist(), barriers.phases


def differing() -> int:
    """Random arrivals that give something else at once than one after the other."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(2000):
        expected = rng.integers(1, 9, 4)
        pending, bytes_left = rng.integers(1, expected + 1), rng.choice([0, 0, 5, (1 << 21) - 4], 4)
        words = (rng.integers(0, 2, 4) << 63 | expected << 41 | pending << 21 | bytes_left).astype(np.uint64)
        lanes = int(rng.integers(1, 7))
        units, count = rng.integers(0, rng.integers(1, 5), lanes), int(rng.integers(1, 3))
        tx = rng.choice([0, 0, 1, 4, 16, (1 << 20) - 1], lanes).astype(U32) if rng.integers(2) else None
        drop = bool(rng.integers(2))
        found += arrived(words, units, count, tx, drop=drop, alike=True) != arrived(words, units, count, tx, drop=drop, alike=False)
    return found


def test_arrivals_of_many_lanes_at_once_are_those_of_one_after_the_other() -> None:
    assert not differing()


@pytest.mark.parametrize("part", ["_expecting", "_dropping"])
def test_a_fault_planted_in_arrivals_at_once(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(mbarriers, part, lambda words, _: words)
    assert differing()
