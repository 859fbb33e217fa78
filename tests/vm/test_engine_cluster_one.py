"""Cluster instructions where a cluster is one CTA: its barrier, addresses and special registers; fences; elect and its kin."""

from __future__ import annotations

import numpy as np
import pytest
from engine_support import Device, cuda, kernel, run

U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", range(4))
SHARED = ".shared .align 16 .b8 s[1024];"


@SEEDS
@pytest.mark.parametrize("block", [32, 96, 100])
@pytest.mark.parametrize("words", ["", ".aligned"])
def test_the_cluster_barrier_joins_the_cta(words: str, block: int, seed: int) -> None:
    """Every thread reads its neighbour's value in five rounds; the barrier's other half is called from the far side of a branch."""
    body = f"""mov.u32 %r20, 0; mov.u32 %r21, 0; shl.b32 %r5, %r0, 2; mov.u32 %r6, s; add.u32 %r5, %r6, %r5; add.u32 %r7, %r0, 1;
    rem.u32 %r7, %r7, %r2;
    shl.b32 %r7, %r7, 2; add.u32 %r7, %r6, %r7;
    LOOP: mad.lo.u32 %r8, %r20, 100, %r0; st.shared.u32 [%r5], %r8; barrier.cluster.arrive.release{words};
    barrier.cluster.wait.acquire{words};
    ld.shared::cluster.u32 %r8, [%r7]; add.u32 %r21, %r21, %r8; barrier.cluster.arrive{words}; barrier.cluster.wait{words};
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 5; @%p1 bra LOOP; st.global.u32 [%rd3], %r21;"""
    found = run(kernel(body, SHARED), grid=3, block=block, seed=seed)
    np.testing.assert_array_equal(found, np.tile(1000 + 5 * ((np.arange(block) + 1) % block), 3))


@SEEDS
def test_arrival_and_wait_may_be_apart_and_the_exited_are_not_waited_for(seed: int) -> None:
    body = """setp.ge.u32 %p1, %r0, 70; @%p1 exit; setp.lt.u32 %p2, %r0, 5; @%p2 bra A; barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    ld.shared.u32 %r5, [s]; bra E; A: st.shared.u32 [s], 8; barrier.cluster.arrive.release; mov.u32 %r5, 7; barrier.cluster.wait;
    E: st.global.u32 [%rd3], %r5;"""
    np.testing.assert_array_equal(run(kernel(body, SHARED), block=96, seed=seed), [7] * 5 + [8] * 65 + [0] * 26)


def test_deadlock_at_the_cluster_barrier() -> None:
    body = "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; barrier.cluster.arrive; barrier.cluster.wait; bra E; A: bar.sync 1, 64; E:"
    stats = Device(kernel(body)).launch("k", 1, 64, 0, 0)
    assert stats.deadlocked
    found = {(b.warp, b.why, b.opcode) for b in stats.blocked}
    assert found == {(0, "barrier", "bar.sync"), (1, "cluster-barrier", "barrier.cluster.wait")}


def test_addresses_of_ones_own_rank() -> None:
    """mapa to rank 0 changes nothing, in both address forms; another rank is another address, and its rank can be read back."""
    body = """mov.u32 %r5, s; mapa.shared::cluster.u32 %r6, %r5, 0; mapa.shared::cluster.u32 %r7, s, 3;
    getctarank.shared::cluster.u32 %r8, %r7;
    getctarank.shared::cluster.u32 %r9, s; cvta.shared::cluster.u64 %rd5, %rd6; cvta.shared.u64 %rd5, s; mapa.u64 %rd6, %rd5, %r0;
    getctarank.u64 %r10, %rd6; mapa.u64 %rd7, %rd6, 0; setp.eq.u64 %p1, %rd7, %rd5; selp.u32 %r11, 1, 0, %p1; setp.eq.u32 %p2, %r5, %r6;
    @!%p2 trap; isspacep.shared::cluster %p3, %rd6; isspacep.shared::cta %p4, %rd5; and.pred %p3, %p3, %p4; @!%p3 trap;
    isspacep.shared::cluster %p3, %rd0; @%p3 trap; mad.lo.u32 %r8, %r8, 10, %r9; mad.lo.u32 %r8, %r8, 10, %r11;
    mad.lo.u32 %r8, %r8, 100, %r10;
    atom.shared::cluster.add.u32 %r12, [%r6], 1; st.shared::cluster.u32 [%r6+4], 5; red.relaxed.cluster.shared::cluster.add.u32 [%r6+4], 1;
    st.global.u32 [%rd3], %r8;"""
    np.testing.assert_array_equal(run(kernel(body, SHARED), block=16), 30100 + np.arange(16))


def test_another_rank_is_out_of_bounds() -> None:
    for access in ("ld.shared::cluster.u32 %r8, [%r7]", "ld.u32 %r8, [%rd6]", "mbarrier.arrive.shared::cluster.b64 _, [%r7]"):
        body = f"mapa.shared::cluster.u32 %r7, s, 1; cvta.shared.u64 %rd5, s; mapa.u64 %rd6, %rd5, 1; {access};"
        (fault,) = Device(kernel(body, SHARED)).launch("k", 1, 32, 0, 0).faults
        assert fault.kind == "out-of-bounds"


def test_special_registers() -> None:
    names = ("cluster_ctarank", "cluster_nctarank", "cluster_ctaid.x", "cluster_nctaid.x", "clusterid.x", "nclusterid.x")
    reads = "".join(f"mov.u32 %r{10 + k}, %{name}; st.global.u32 [%rd3+{4 * k}], %r{10 + k};" for k, name in enumerate(names))
    body = f"mul.wide.u32 %rd2, %r1, 24; add.u64 %rd3, %rd0, %rd2; mov.pred %p1, %is_explicit_cluster; @%p1 trap; {reads}"
    found = run(kernel(body), grid=3, block=1, out=18).reshape(3, 6)
    np.testing.assert_array_equal(found, [[0, 1, 0, 1, cta, 3] for cta in range(3)])


@pytest.mark.parametrize(
    "instruction",
    [
        "fence.proxy.async;",
        "fence.proxy.async.shared::cta;",
        "fence.proxy.async.global;",
        "fence.proxy.alias;",
        "fence.proxy.tensormap::generic.release.gpu;",
        "fence.proxy.tensormap::generic.acquire.sys [%rd0], 128;",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.mbarrier_init.release.cluster;",
        "membar.proxy.async;",
        "fence.acq_rel.cluster;",
        "setmaxnreg.dec.sync.aligned.u32 24;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "griddepcontrol.wait;",
        "griddepcontrol.launch_dependents;",
    ],
)
def test_instructions_without_effect_here(instruction: str) -> None:
    np.testing.assert_array_equal(run(kernel(f"{instruction} st.global.u32 [%rd3], %r0;"), block=64), np.tile(np.arange(64), 1))


def test_elect_chooses_one_lane() -> None:
    body = """setp.lt.u32 %p1, %r0, 8; @%p1 bra E; elect.sync %r5|%p2, 0xffffff00; elect.sync _|%p3, 0xffffff00; selp.u32 %r6, 100, 0, %p2;
    add.u32 %r6, %r6, %r5; st.global.u32 [%rd3], %r6; E:"""
    found = run(kernel(body))
    leader = int(found[8:].argmax()) + 8
    np.testing.assert_array_equal(found, [0] * 8 + [leader + 100 * (lane == leader) for lane in range(8, 32)])


@SEEDS
def test_cooperative_groups_of_one_cta(seed: int) -> None:
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void k(unsigned* out, unsigned* in) {
      __shared__ unsigned s[64]; auto cluster = cooperative_groups::this_cluster(); int t = threadIdx.x;
      s[t] = in[t]; cluster.sync();
      unsigned* other = cluster.map_shared_rank(s, cluster.block_rank());
      out[t] = other[63 - t] + 100 * cluster.num_blocks() + cluster.query_shared_rank(other); cluster.sync(); }"""
    data = np.arange(64, dtype=U32)
    np.testing.assert_array_equal(run(cuda(source), data, block=64, seed=seed), data[::-1] + 100)
