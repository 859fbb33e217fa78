"""Clusters of several CTAs: placement, addresses, distributed shared memory, barriers, multicast; in several schedules."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from engine_support import Device, cuda, kernel, run

from consan._errors import UsageError
from consan.backends.cpu import LaunchStats
from consan.backends.virtual import VirtualBackend
from consan.tensormap.encoding import encode_tiled

Array = npt.NDArray[Any]
Dim3 = tuple[int, int, int]
U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", range(6))
SHARED = ".shared .align 8 .b64 bar; .shared .align 8 .b64 other; .shared .align 128 .b8 s[1024];"
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
INIT = f"setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; {SYNC}"
# %r20 is the rank, %r21 the size of the cluster, %r22 the next rank, %r5 the thread's word of s.
RANK = """mov.u32 %r20, %cluster_ctarank; mov.u32 %r21, %cluster_nctarank; add.u32 %r22, %r20, 1; rem.u32 %r22, %r22, %r21;
shl.b32 %r6, %r0, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r6;"""
WAIT = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;"
SHOW = "ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd3], %r8;"


def shaped(body: str, *, grid: Dim3, block: Dim3, cluster: Dim3, out: int, seed: int = 0, before: str = "") -> Array:
    """`out` words that a kernel leaves when it is launched with these shapes."""
    device = Device(kernel(body, before))
    address = device.buffer(np.zeros(out, U32))
    stats = device.machine.launch(device.module, "k", grid, block, struct.pack("<QQ", address, 0), cluster=cluster, seed=seed)
    assert stats.completed, stats
    return device.machine.view(address, U32, out).copy()


def launch(body: str, *, grid: int = 2, block: int = 32, cluster: int = 2, seed: int = 0, before: str = SHARED) -> LaunchStats:
    return Device(kernel(body, before)).launch("k", grid, block, 0, 0, cluster=(cluster, 1, 1), seed=seed)


# Placement -------------------------------------------------------------------------------------------------------------


def place(grid: Dim3, cluster: Dim3) -> Array:
    """What the special registers of every CTA of a grid must say, by linear %ctaid."""
    rows = []
    for index in range(grid[0] * grid[1] * grid[2]):
        ctaid = (index % grid[0], index // grid[0] % grid[1], index // grid[0] // grid[1])
        inside = [c % n for c, n in zip(ctaid, cluster, strict=True)]
        clusters = [c // n for c, n in zip(ctaid, cluster, strict=True)]
        number = [g // n for g, n in zip(grid, cluster, strict=True)]
        rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
        rows.append([*inside, *cluster, *clusters, *number, rank, cluster[0] * cluster[1] * cluster[2], 1])
    return np.array(rows, U32)


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((6, 1, 1), (2, 1, 1)), ((4, 4, 2), (2, 2, 1)), ((4, 6, 4), (1, 3, 2)), ((16, 1, 2), (16, 1, 1)), ((4, 4, 1), (4, 2, 1))],
)
def test_special_registers(grid: Dim3, cluster: Dim3) -> None:
    triples = ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid")
    names = [f"{name}.{axis}" for name in triples for axis in "xyz"] + ["cluster_ctarank", "cluster_nctarank"]
    reads = "".join(f"mov.u32 %r10, %{name}; st.global.u32 [%rd3+{4 * k}], %r10;" for k, name in enumerate(names))
    body = f"""mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %ctaid.z; mad.lo.u32 %r4, %r6, %r5, %r4; mov.u32 %r5, %nctaid.x;
    mad.lo.u32 %r4, %r4, %r5, %r1; mul.wide.u32 %rd2, %r4, 60; add.u64 %rd3, %rd0, %rd2; {reads}
    mov.pred %p1, %is_explicit_cluster; selp.u32 %r10, 1, 0, %p1; st.global.u32 [%rd3+56], %r10;"""
    wanted = place(grid, cluster)
    found = shaped(body, grid=grid, block=(1, 1, 1), cluster=cluster, out=wanted.size)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def required(directives: str) -> Device:
    text = kernel("mov.u32 %r8, %cluster_nctaid.x; st.global.u32 [%rd3], %r8;").replace("in)\n{", f"in) {directives}\n{{")
    return Device(text)


def test_the_entry_may_require_its_clusters() -> None:
    device = required(".explicitcluster .reqnctapercluster 4, 1, 1")
    for cluster in ((1, 1, 1), (4, 1, 1)):
        out = device.buffer(np.zeros(8, U32))
        assert device.launch("k", 8, 1, out, 0, cluster=cluster).completed
        np.testing.assert_array_equal(device.machine.view(out, U32, 8), [4] * 8)


@pytest.mark.parametrize(
    ("directives", "grid", "cluster", "message"),
    [
        (".reqnctapercluster 4, 1, 1", 8, (2, 1, 1), "requires clusters"),
        (".reqnctapercluster 4, 1, 1", 6, (1, 1, 1), "whole number of clusters"),
        (".maxclusterrank 2", 8, (4, 1, 1), "at most 2"),
        ("", 32, (32, 1, 1), "at most 16"),
        ("", 5, (2, 1, 1), "whole number of clusters"),
        ("", 4, (1, 2, 1), "whole number of clusters"),
        ("", 4, (0, 1, 1), "not possible"),
    ],
)
def test_clusters_that_cannot_be(directives: str, grid: int, cluster: Dim3, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        required(directives).launch("k", grid, 1, 0, 0, cluster=cluster)


# Addresses -------------------------------------------------------------------------------------------------------------


def test_addresses_name_a_rank() -> None:
    """In every CTA: the ranks of the addresses of all CTAs, both forms; which of them are its own; the way back."""
    body = f"""{RANK} mapa.shared::cluster.u32 %r7, s, %r0; getctarank.shared::cluster.u32 %r8, %r7; setp.ne.u32 %p1, %r8, %r0; @%p1 trap;
    cvt.u64.u32 %rd5, %r7; cvta.shared::cluster.u64 %rd5, %rd5; mov.u64 %rd6, s; cvta.shared.u64 %rd6, %rd6; mapa.u64 %rd7, %rd6, %r0;
    setp.ne.u64 %p1, %rd5, %rd7; @%p1 trap;
    getctarank.u64 %r9, %rd7; setp.ne.u32 %p1, %r9, %r0; @%p1 trap; isspacep.shared::cluster %p2, %rd7; @!%p2 trap;
    isspacep.shared::cta %p3, %rd7; selp.u32 %r10, 1, 0, %p3; isspacep.global %p4, %rd7; @%p4 trap;
    mapa.u64 %rd8, %rd7, %r20; setp.ne.u64 %p1, %rd8, %rd6; @%p1 trap; cvta.to.shared.u64 %rd9, %rd6; cvt.u32.u64 %r11, %rd9;
    mov.u32 %r12, s; setp.ne.u32 %p1, %r11, %r12; @%p1 trap; shr.u32 %r11, %r11, 24; setp.ne.u32 %p1, %r11, %r20; @%p1 trap;
    mapa.shared::cluster.u32 %r12, s+8, 7; add.u32 %r13, %r7, 8; mapa.shared::cluster.u32 %r13, %r13, 7; setp.ne.u32 %p1, %r12, %r13;
    @%p1 trap; isspacep.shared::cta %p3, %rd0; @%p3 trap; st.global.u32 [%rd3], %r10;"""
    found = run(kernel(body, SHARED), grid=16, block=8, cluster=(8, 1, 1)).reshape(2, 8, 8)
    np.testing.assert_array_equal(found, [np.eye(8)] * 2)


def test_rank_zero_is_not_oneself() -> None:
    """mapa to rank 0 gives no rank bits; shared::cluster takes that for rank 0, shared::cta for the CTA that asks."""
    body = f"""{RANK} add.u32 %r8, %r20, 10; st.shared.u32 [s], %r8; {SYNC} mapa.shared::cluster.u32 %r7, s, 0;
    ld.shared::cluster.u32 %r9, [%r7]; ld.shared::cta.u32 %r10, [%r7]; ld.shared::cluster.u32 %r11, [s];
    mad.lo.u32 %r9, %r9, 100, %r10; mad.lo.u32 %r9, %r9, 100, %r11;
    st.global.u32 [%rd3], %r9; {SYNC}"""
    np.testing.assert_array_equal(
        run(kernel(body, SHARED), grid=4, block=1, cluster=(4, 1, 1)), [100000 + 1010 + 101 * r for r in range(4)]
    )


# Distributed shared memory -----------------------------------------------------------------------------------------------

EXCHANGES = {
    "shared": "mapa.shared::cluster.u32 %r7, %r5, %r22; ld.shared::cluster.u32 %r8, [%r7];",
    "acquire": "mapa.shared::cluster.u32 %r7, %r5, %r22; ld.acquire.cluster.shared::cluster.u32 %r8, [%r7];",
    "offset": "mapa.shared::cluster.u32 %r7, %r5, %r22; add.u32 %r7, %r7, 64; ld.relaxed.cluster.shared::cluster.u32 %r8, [%r7+-64];",
    "generic": "cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd5, %rd5, %r22; ld.u32 %r8, [%rd5];",
    "wide": "cvt.u64.u32 %rd5, %r5; mapa.shared::cluster.u64 %rd5, %rd5, %r22; ld.shared::cluster.u32 %r8, [%rd5];",
    "atomic": "mapa.shared::cluster.u32 %r7, %r5, %r22; atom.shared::cluster.cluster.add.u32 %r8, [%r7], 1;",
}


@SEEDS
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("cluster", "grid"), [(2, 6), (8, 8), (16, 32)])
def test_ring(cluster: int, grid: int, exchange: str, seed: int) -> None:
    """Every CTA reads what its neighbour has; threads of a partial warp, too."""
    body = f"{RANK} st.shared.u32 [%r5], %r3; {SYNC} {EXCHANGES[exchange]} {SYNC} st.global.u32 [%rd3], %r8;".replace(".aligned", "")
    found = run(kernel(body, SHARED), grid=grid, block=40, cluster=(cluster, 1, 1), seed=seed)
    wanted = np.roll(np.arange(grid * 40).reshape(-1, cluster, 40), -1, axis=1)
    np.testing.assert_array_equal(found, wanted.reshape(-1))


@SEEDS
@pytest.mark.parametrize("form", ["st.shared::cluster.v4.u32 [%r7]", "st.v4.u32 [%rd5]"])
def test_remote_stores(form: str, seed: int) -> None:
    body = f"""{RANK} shl.b32 %r6, %r0, 4; mov.u32 %r5, s; add.u32 %r5, %r5, %r6; mapa.shared::cluster.u32 %r7, %r5, %r22;
    cvt.u64.u32 %rd5, %r7; cvta.shared::cluster.u64 %rd5, %rd5; {SYNC} add.u32 %r8, %r3, 1; add.u32 %r9, %r3, 2; add.u32 %r10, %r3, 3;
    {form}, {{%r3, %r8, %r9, %r10}}; {SYNC} ld.shared.v4.u32 {{%r11, %r12, %r13, %r14}}, [%r5]; add.u32 %r11, %r11, %r12;
    mad.lo.u32 %r11, %r13, %r14, %r11; st.global.u32 [%rd3], %r11;"""
    x = np.roll(np.arange(128).reshape(4, 32), 1, axis=0).reshape(-1)
    np.testing.assert_array_equal(run(kernel(body, SHARED), grid=4, cluster=(4, 1, 1), seed=seed), 2 * x + 1 + (x + 2) * (x + 3))


@SEEDS
def test_histogram_spread_over_a_cluster(seed: int) -> None:
    """Every CTA owns a quarter of the bins; threads count in whichever CTA owns theirs, some in their own."""
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void k(unsigned* out, const unsigned* in) {
      __shared__ unsigned bins[16]; auto c = cooperative_groups::this_cluster(); unsigned t = threadIdx.x;
      if (t < 16) bins[t] = 0; c.sync();
      for (unsigned i = blockIdx.x * 96 + t; i < blockIdx.x * 96 + 96; i += 48) {
        unsigned v = in[i]; atomicAdd(c.map_shared_rank(bins, v / 16) + v % 16, 1u); }
      c.sync(); if (t < 16) out[blockIdx.x * 16 + t] = bins[t]; }"""
    data = np.random.default_rng(3).integers(0, 64, 8 * 96).astype(U32)
    found = run(cuda(source), data, grid=8, block=48, cluster=(4, 1, 1), out=128, seed=seed)
    wanted = [np.bincount(part, minlength=64) for part in data.reshape(2, -1)]
    np.testing.assert_array_equal(found, np.concatenate(wanted))


@SEEDS
@pytest.mark.parametrize("cluster", [(2, 1, 1), (2, 2, 2), (16, 1, 1)])
def test_reduction_through_cooperative_groups(cluster: Dim3, seed: int) -> None:
    """Warps, then the CTA, then rank 0 over the cluster; clusters of any shape."""
    source = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(float* out, const float* in) {
      __shared__ float part; auto c = cg::this_cluster(); auto b = cg::this_thread_block();
      unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      if (threadIdx.x == 0) part = 0; b.sync(); atomicAdd(&part, in[cta * 64 + threadIdx.x]); c.sync();
      if (c.block_rank() == 0 && threadIdx.x == 0) { float all = 0;
        for (unsigned r = 0; r < c.num_blocks(); ++r) all += *c.map_shared_rank(&part, r);
        dim3 n = c.dim_blocks();
        out[blockIdx.x / n.x + gridDim.x / n.x * (blockIdx.y / n.y + gridDim.y / n.y * (blockIdx.z / n.z))] = all; }
      c.sync(); }"""
    grid = tuple(2 * n for n in cluster)
    ctas = grid[0] * grid[1] * grid[2]
    data = np.random.default_rng(1).integers(-50, 50, (ctas, 64)).astype(np.float32)
    device = Device(cuda(source))
    out = device.buffer(np.zeros(8, np.float32))
    params = struct.pack("<QQ", out, device.buffer(data))
    stats = device.machine.launch(device.module, "k", grid, (64, 1, 1), params, cluster=cluster, seed=seed)
    assert stats.completed, stats
    sums = data.sum(1).reshape(2, cluster[2], 2, cluster[1], 2, cluster[0]).sum((1, 3, 5))
    np.testing.assert_array_equal(device.machine.view(out, np.float32, 8), sums.reshape(-1))


def test_clusters_of_many_waves() -> None:
    """More clusters than one wave holds, whose last wave is smaller: each keeps to itself."""
    body = f"{RANK} st.shared.u32 [%r5], %r3; {SYNC} {EXCHANGES['shared']} {SYNC} st.global.u32 [%rd3], %r8;"
    found = run(kernel(body, SHARED), grid=84, block=256, cluster=(12, 1, 1))
    wanted = np.roll(np.arange(84 * 256).reshape(-1, 12, 256), -1, axis=1)
    np.testing.assert_array_equal(found, wanted.reshape(-1))


# The cluster barrier -----------------------------------------------------------------------------------------------------


@SEEDS
@pytest.mark.parametrize("words", ["", ".aligned"])
def test_rounds_of_the_cluster_barrier(words: str, seed: int) -> None:
    """Five rounds; in each, every CTA adds what the next one stored."""
    body = f"""{RANK} mapa.shared::cluster.u32 %r7, %r5, %r22; mov.u32 %r23, 0; mov.u32 %r24, 0;
    L: mad.lo.u32 %r8, %r23, 1000, %r3; st.shared.u32 [%r5], %r8; barrier.cluster.arrive{words}; barrier.cluster.wait{words};
    ld.shared::cluster.u32 %r8, [%r7]; add.u32 %r24, %r24, %r8; barrier.cluster.arrive.release{words};
    add.u32 %r23, %r23, 1; setp.lt.u32 %p1, %r23, 5; barrier.cluster.wait.acquire{words}; @%p1 bra L; st.global.u32 [%rd3], %r24;"""
    found = run(kernel(body, SHARED), grid=8, block=64, cluster=(4, 1, 1), seed=seed)
    np.testing.assert_array_equal(found, 10000 + 5 * np.roll(np.arange(512).reshape(2, 4, 64), -1, axis=1).reshape(-1))


@SEEDS
def test_exited_threads_are_not_waited_for(seed: int) -> None:
    """All of rank 1 and some threads elsewhere never arrive; a CTA that has exited keeps its shared memory."""
    body = f"""{RANK} st.shared.u32 [%r5], %r3; {SYNC.replace(".aligned", "")} setp.eq.u32 %p1, %r20, 1; @%p1 exit;
    setp.ge.u32 %p1, %r0, 20; @%p1 exit; {SYNC.replace(".aligned", "")} mapa.shared::cluster.u32 %r7, %r5, 1;
    ld.shared::cluster.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8;"""
    found = run(kernel(body, SHARED), grid=3, cluster=(3, 1, 1), seed=seed).reshape(3, 32)
    wanted = np.zeros((3, 32), U32)
    wanted[[0, 2], :20] = np.arange(32, 52)
    np.testing.assert_array_equal(found, wanted)


def test_a_cta_that_does_not_arrive_is_a_deadlock_of_the_others() -> None:
    body = f"{RANK} setp.eq.u32 %p1, %r1, 2; @%p1 bra A; {SYNC} bra E; A: bar.sync 1, 64; E:"
    stats = launch(body, grid=4)
    assert stats.deadlocked
    found = {(b.ctaid[0], b.why, b.opcode) for b in stats.blocked}
    assert found == {(2, "barrier", "bar.sync"), (3, "cluster-barrier", "barrier.cluster.wait.acquire.aligned")}


# Remote mbarriers --------------------------------------------------------------------------------------------------------

ARRIVALS = {
    "shared": "mapa.shared::cluster.u32 %r7, bar, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];",
    "counted": "mapa.shared::cluster.u32 %r7, bar, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7], 1;",
    "generic": "mov.u64 %rd5, bar; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd5, %rd5, 0; mbarrier.arrive.release.cluster.b64 _, [%rd5];",
    "transactions": """mapa.shared::cluster.u32 %r7, bar, 0; mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r7], 64;
    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r7], 64;
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r7], 128;""",
}


@SEEDS
@pytest.mark.parametrize("arrival", ARRIVALS)
def test_arrivals_of_all_ctas_at_the_leaders_barrier(arrival: str, seed: int) -> None:
    """Every thread of four CTAs stores into the leader and arrives there; the leader alone waits."""
    body = f"""{RANK} setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared.b64 [bar], 128; fence.mbarrier_init.release.cluster; {SYNC}
    mad.lo.u32 %r8, %r20, 128, %r5; mapa.shared::cluster.u32 %r8, %r8, 0; st.shared::cluster.u32 [%r8], %r3; {ARRIVALS[arrival]}
    setp.ne.u32 %p2, %r20, 0; @%p2 bra E; {WAIT}
    ld.shared.u32 %r10, [%r5]; ld.shared.u32 %r11, [%r5+128]; ld.shared.u32 %r12, [%r5+256]; ld.shared.u32 %r13, [%r5+384];
    add.u32 %r10, %r10, %r11; add.u32 %r12, %r12, %r13; add.u32 %r10, %r10, %r12; st.global.u32 [%rd3], %r10; E: {SYNC}"""
    found = run(kernel(body, SHARED), grid=4, cluster=(4, 1, 1), seed=seed)
    np.testing.assert_array_equal(found, [*np.arange(128).reshape(4, 32).sum(0), *[0] * 96])


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("mbarrier.try_wait.parity.b64 %p1, [%rd5], 0", "remote-wait"),
        ("mbarrier.test_wait.parity.b64 %p1, [%rd5], 0", "remote-wait"),
        ("mbarrier.init.b64 [%rd5], 1", "remote-init"),
        ("mbarrier.inval.b64 [%rd5]", "remote-init"),
    ],
)
def test_what_only_the_owner_of_a_barrier_may_do(instruction: str, kind: str) -> None:
    body = f"""{RANK} {INIT} setp.eq.u32 %p2, %r20, 0; @%p2 bra E; mov.u64 %rd5, bar; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd5, %rd5, %r22;
    {instruction}; E: {SYNC}"""
    (fault,) = launch(body, grid=3, cluster=3).faults
    assert (fault.kind, fault.ctaid, fault.address) == (kind, (1, 0, 0), (2 << 24) + 1024)


def test_deadlock_names_the_cta_that_lacks_bytes() -> None:
    """One receiver of a multicast expects more than it gets."""
    body = f"""{RANK} {INIT} setp.eq.u32 %p2, %r20, 1; selp.u32 %r8, 128, 64, %p2;
    @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r8; {SYNC} setp.eq.u32 %p3, %r20, 0; and.pred %p3, %p3, %p9; mov.u16 %h1, 3;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd1], 64, [bar], %h1; {WAIT}"""
    device = Device(kernel(body, SHARED))
    stats = device.launch("k", 2, 32, 0, device.buffer(np.zeros(64, U32)), cluster=(2, 1, 1))
    assert stats.deadlocked
    assert {(b.ctaid, b.why, b.mbarrier.tx if b.mbarrier else None) for b in stats.blocked} == {((1, 0, 0), "mbarrier", 64)}


# Asynchronous stores and copies between CTAs -------------------------------------------------------------------------------

MAILS = {
    "store": ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r3, [%r8];", 128),
    "vector": ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r7], {%r3, %r3}, [%r8];", 256),
    "add": ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7], %r3, [%r8];", 128),
}


@SEEDS
@pytest.mark.parametrize("mail", MAILS)
def test_mailbox(mail: str, seed: int) -> None:
    """Every CTA posts a word or two per thread to the next one, whose barrier then completes."""
    instruction, nbytes = MAILS[mail]
    width = nbytes // 32
    body = f"""{RANK} mov.u32 %r5, s; mad.lo.u32 %r5, %r0, {width}, %r5; mov.u32 %r8, 0; st.shared.u32 [%r5], %r8; {INIT}
    @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {nbytes}; mapa.shared::cluster.u32 %r7, %r5, %r22;
    mapa.shared::cluster.u32 %r8, bar, %r22; {SYNC} {instruction} {WAIT} ld.shared.u32 %r9, [%r5+{width - 4}];
    st.global.u32 [%rd3], %r9; {SYNC}"""
    found = run(kernel(body, SHARED), grid=8, cluster=(4, 1, 1), seed=seed)
    np.testing.assert_array_equal(found, np.roll(np.arange(256).reshape(2, 4, 32), 1, axis=1).reshape(-1))


@SEEDS
def test_bulk_copy_to_another_cta(seed: int) -> None:
    body = f"""{RANK} st.shared.u32 [%r5], %r3; {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    mapa.shared::cluster.u32 %r7, s+512, %r22; mapa.shared::cluster.u32 %r8, bar, %r22; fence.proxy.async; {SYNC}
    @%p9 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [s], 128, [%r8]; {WAIT}
    ld.shared.u32 %r9, [%r5+512]; st.global.u32 [%rd3], %r9; {SYNC}"""
    found = run(kernel(body, SHARED), grid=6, cluster=(3, 1, 1), seed=seed)
    np.testing.assert_array_equal(found, np.roll(np.arange(192).reshape(2, 3, 32), 1, axis=1).reshape(-1))


@SEEDS
def test_bulk_load_into_another_cta(seed: int) -> None:
    """From global memory, each CTA for its neighbour, without a mask of CTAs."""
    body = f"""{RANK} {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; mapa.shared::cluster.u32 %r7, s, %r22;
    mapa.shared::cluster.u32 %r8, bar, %r22; {SYNC}
    @%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd4], 128, [%r8]; {WAIT} {SHOW} {SYNC}"""
    data = np.arange(192, dtype=U32)
    found = run(kernel(body, SHARED), data, grid=6, cluster=(3, 1, 1), seed=seed)
    np.testing.assert_array_equal(found, np.roll(data.reshape(2, 3, 32), 1, axis=1).reshape(-1))


# Multicast ---------------------------------------------------------------------------------------------------------------

MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd1], 128, [bar], %h1;"


@SEEDS
@pytest.mark.parametrize("leader", [0, 2])
@pytest.mark.parametrize("mask", [0b1111, 0b0110, 0b1000])
def test_multicast_reaches_the_ctas_of_the_mask(mask: int, leader: int, seed: int) -> None:
    """The leader need not be among them; the others' barriers and memory stay as they are."""
    body = f"""{RANK} mov.u32 %r8, 7; st.shared.u32 [%r5], %r8; {INIT} mov.u32 %r8, {mask}; shr.u32 %r8, %r8, %r20; and.b32 %r8, %r8, 1;
    mul.lo.u32 %r8, %r8, 128; @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r8; {SYNC} setp.eq.u32 %p3, %r20, {leader};
    and.pred %p3, %p3, %p9; mov.u16 %h1, {mask}; @%p3 {MULTICAST} {WAIT} {SHOW} {SYNC}"""
    data = np.arange(100, 132, dtype=U32)
    found = run(kernel(body, SHARED), data, grid=4, cluster=(4, 1, 1), seed=seed).reshape(4, 32)
    np.testing.assert_array_equal(found, [data if mask >> rank & 1 else [7] * 32 for rank in range(4)])


def test_a_mask_beyond_the_cluster_is_a_fault() -> None:
    body = f"{INIT} mov.u16 %h1, 5; @%p9 {MULTICAST}"
    device = Device(kernel(body, SHARED))
    (fault,) = device.launch("k", 2, 32, 0, device.buffer(np.zeros(32, U32)), cluster=(2, 1, 1)).faults
    assert (fault.kind, fault.address) == ("out-of-bounds", 2 << 24)


def test_a_multicast_lands_apart_in_each_cta() -> None:
    """Rank 1 waits for the leader's barrier to complete, not for its own: what it then sees depends on the schedule."""
    body = f"""{RANK} {INIT} @%p9 mbarrier.init.shared.b64 [other], 1; @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; {SYNC}
    mov.u16 %h1, 3; setp.eq.u32 %p3, %r20, 0; and.pred %p4, %p3, %p9; @%p4 {MULTICAST} @!%p3 bra B; {WAIT}
    mapa.shared::cluster.u32 %r8, other, 1; @%p9 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8]; bra E;
    B: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [other], 0; @!%p1 bra B; {SHOW} E: {SYNC}"""
    data = np.arange(100, 132, dtype=U32)
    found = {seed: run(kernel(body, SHARED), data, grid=2, cluster=(2, 1, 1), seed=seed)[32:].tolist() for seed in range(16)}
    assert found[0] == [0] * 32, "as late as is legal"
    assert data.tolist() in found.values()


PIPELINE = """
#define SH(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
struct alignas(64) Map { unsigned char bits[128]; };
__device__ void wait(unsigned long long* bar, unsigned parity) {
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra W; }" :: "r"(SH(bar)), "r"(parity) : "memory"); }
// The leader multicasts tile after tile of 32 words to all CTAs; each sums its lane over all tiles, times its rank and one.
extern "C" __global__ void __cluster_dims__(CTAS, 1, 1) k(unsigned* out, const __grid_constant__ Map map, unsigned tiles) {
  __shared__ alignas(128) unsigned tile[STAGES][32]; __shared__ unsigned long long full[STAGES], empty[STAGES];
  unsigned rank, t = threadIdx.x; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) for (int s = 0; s < STAGES; ++s) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(SH(full + s)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], CTAS * 32;" :: "r"(SH(empty + s)) : "memory"); }
  asm volatile("fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (t >= 32) {
    for (unsigned i = 0; i < tiles; ++i) { unsigned s = i % STAGES, parity = i / STAGES & 1;
      if (t != 32) continue;
      if (rank == 0) wait(empty + s, parity ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(SH(full + s)) : "memory");
      if (rank == 0) asm volatile("{ .reg .b16 m; mov.u16 m, (1 << CTAS) - 1; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], m; }" :: "r"(SH(tile[s])), "l"(&map), "r"(0), "r"(i), "r"(SH(full + s)) : "memory");
      else wait(full + s, parity); }
  } else { unsigned sum = 0;
    for (unsigned i = 0; i < tiles; ++i) { unsigned s = i % STAGES, parity = i / STAGES & 1;
      wait(full + s, parity); sum += tile[s][t] * (rank + 1);
      asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" :: "r"(SH(empty + s)) : "memory"); }
    out[blockIdx.x * 32 + t] = sum; }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
"""  # noqa: E501 - the source of a kernel


@SEEDS
@pytest.mark.parametrize(("ctas", "stages"), [(2, 1), (2, 3), (4, 2), (16, 2)])
def test_pipeline_of_multicast_tiles(ctas: int, stages: int, seed: int) -> None:
    """Full barriers in every CTA, one empty barrier in the leader for all of them; the cluster's shape is the entry's own."""
    tiles = 7
    data = np.random.default_rng(5).integers(0, 1000, (tiles, 32)).astype(U32)
    device = Device(cuda(PIPELINE.replace("CTAS", str(ctas)).replace("STAGES", str(stages))))
    tensor = device.buffer(data)
    out = device.buffer(np.zeros(2 * ctas * 32, U32))
    stats = device.launch("k", 2 * ctas, 64, out, encode_tiled("u32", tensor, (32, tiles), (128,), (32, 1)), tiles, seed=seed)
    assert stats.completed, stats
    wanted = np.tile(np.arange(1, ctas + 1)[:, None] * data.sum(0), (2, 1))
    np.testing.assert_array_equal(device.machine.view(out, U32, 2 * ctas * 32).reshape(-1, 32), wanted)


@SEEDS
@pytest.mark.parametrize("owner", [0, 1])
def test_pairs_signal_the_ctas_of_one_parity(owner: int, seed: int) -> None:
    """.cta_group::2: data go to all four CTAs, bytes of both of a pair to the one with the parity of the barrier's owner."""
    body = f"""{RANK} mov.u32 %r8, 0; st.shared.u32 [%r5], %r8; {INIT} and.b32 %r9, %r20, 1; setp.eq.u32 %p2, %r9, {owner};
    and.pred %p3, %p2, %p9; @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; {SYNC} setp.eq.u32 %p4, %r20, 0;
    and.pred %p4, %p4, %p9; mov.u16 %h1, 15; mapa.shared::cluster.u32 %r10, bar, {owner}; mov.u32 %r11, 0;
    @%p4 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2
    [s], [%rd1, {{%r11}}], [%r10], %h1; @!%p2 bra E; {WAIT} E: {SYNC} {SHOW}"""
    device = Device(kernel(body, SHARED))
    data = np.arange(1, 33, dtype=U32)
    tensor = device.buffer(data)
    out = device.buffer(np.zeros(128, U32))
    map_ = device.buffer(np.frombuffer(encode_tiled("u32", tensor, (32,), (), (32,)), np.uint8))
    assert device.launch("k", 4, 32, out, map_, cluster=(4, 1, 1), seed=seed).completed
    np.testing.assert_array_equal(device.machine.view(out, U32, 128).reshape(4, 32), [data] * 4)


# Schedules, faults, backends -----------------------------------------------------------------------------------------------


def test_seeds_change_which_cta_comes_first() -> None:
    body = "atom.global.add.u32 %r8, [%rd1], 1; st.global.u32 [%rd3], %r8;"
    orders = {tuple(run(kernel(body), grid=4, block=1, cluster=(4, 1, 1), seed=seed).tolist()) for seed in range(24)}
    assert {order.index(0) for order in orders} == {0, 1, 2, 3}
    again = [tuple(run(kernel(body), grid=4, block=1, cluster=(4, 1, 1), seed=seed).tolist()) for seed in range(24)]
    assert set(again) == orders


def test_a_peer_that_has_exited_still_has_its_memory() -> None:
    """Undefined behaviour, which the machine survives: the peer has gone, and this CTA waits for that, then reads and arrives."""
    body = f"""{RANK} setp.eq.u32 %p2, %r20, 0; @!%p2 bra B; L: ld.relaxed.gpu.global.u32 %r8, [%rd1]; setp.eq.u32 %p1, %r8, 0; @%p1 bra L;
    mov.u32 %r9, 0; N: nanosleep.u32 100; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 200; @%p1 bra N; mapa.shared::cluster.u32 %r7, %r5, 1;
    ld.shared::cluster.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8; mapa.shared::cluster.u32 %r7, bar, 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7]; exit;
    B: st.shared.u32 [%r5], %r3; mbarrier.init.shared.b64 [bar], 32; st.release.gpu.global.u32 [%rd1], 1;"""
    found = run(kernel(body, SHARED), np.zeros(1, U32), grid=2, cluster=(2, 1, 1))
    np.testing.assert_array_equal(found, [*range(32, 64), *[0] * 32])


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("mapa.shared::cluster.u32 %r7, s, 3; ld.shared::cluster.u32 %r8, [%r7]", "out-of-bounds"),
        ("mapa.shared::cluster.u32 %r7, s, 1; ld.shared::cta.u32 %r8, [%r7]", "out-of-bounds"),
        ("mapa.shared::cluster.u32 %r7, s, 1; ld.shared.u32 %r8, [%r7]", "out-of-bounds"),
        ("mapa.shared::cluster.u32 %r7, s+1024, %r22; st.shared::cluster.u32 [%r7], %r8", "out-of-bounds"),
        ("mapa.shared::cluster.u32 %r7, s+2, %r22; atom.shared::cluster.add.u32 %r8, [%r7], 1", "misaligned"),
        ("cvta.shared.u64 %rd5, %rd6; mapa.u64 %rd5, %rd5, 7; ld.u32 %r8, [%rd5]", "out-of-bounds"),
        ("mapa.shared::cluster.u32 %r7, s+4, 5; mbarrier.arrive.shared::cluster.b64 _, [%r7]", "misaligned"),
        ("mapa.shared::cluster.u32 %r7, bar, 5; mbarrier.arrive.shared::cluster.b64 _, [%r7]", "out-of-bounds"),
    ],
)
def test_faults_say_which_cta(instruction: str, kind: str) -> None:
    body = f"{RANK} mov.u64 %rd6, s; {SYNC} setp.ne.u32 %p2, %r1, 5; @%p2 bra E; {instruction}; E: {SYNC}"
    (fault,) = launch(body, grid=6, cluster=3).faults
    assert (fault.kind, fault.ctaid, fault.space) == (kind, (5, 0, 0), "shared")


def test_the_backend_passes_clusters_on() -> None:
    backend = VirtualBackend()
    handle = backend.load(kernel(f"{RANK} st.global.u32 [%rd3], %r20;", SHARED))
    out = backend.alloc(16)
    arguments = [struct.pack("<Q", value) for value in (out, 0)]
    assert backend.launch(handle, "k", (4, 1, 1), (1, 1, 1), arguments, cluster=(2, 1, 1)).completed
    assert backend.read(out, 16) == struct.pack("<4I", 0, 1, 0, 1)
