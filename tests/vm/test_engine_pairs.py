"""CTA pairs: addresses of the even CTA's objects, and tensor copies with .cta_group::2. ptxas assembles each kernel for sm_100a."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from engine_support import Device, kernel

from consan.tensormap.encoding import encode_tiled
from consan.toolchain.assemble import assemble

U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", range(4))
SHARED = ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[1024];"
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
# %r20 is the rank, %r21 the address of the even CTA's barrier, %r5 the thread's word of s; %p9: thread 0.
HEAD = f"""mov.u32 %r20, %cluster_ctarank; mov.u32 %r21, bar; and.b32 %r21, %r21, 0xFEFFFFFF; shl.b32 %r6, %r0, 2; mov.u32 %r5, s;
add.u32 %r5, %r5, %r6; mov.u32 %r8, 0; st.shared.u32 [%r5], %r8; setp.eq.u32 %p9, %r0, 0; and.b32 %r22, %r20, 1;
setp.eq.u32 %p8, %r22, 0; @%p9 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; {SYNC}"""
WAIT = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;"
SHOW = "ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd3], %r8;"


@functools.cache
def blackwell(body: str) -> str:
    """The kernel, which ptxas takes for sm_100a."""
    text = kernel(body, SHARED).replace(".version 8.7\n.target sm_90a", ".version 8.8\n.target sm_100a")
    assemble(text, "sm_100a")
    return text


@SEEDS
@pytest.mark.parametrize("mask", ["0xFEFFFFFF", "-16777232"])
@pytest.mark.parametrize("ctas", [2, 4])
def test_clearing_a_bit_names_the_even_cta(ctas: int, mask: str, seed: int) -> None:
    """Both CTAs of each pair arrive at the even one's barrier, by CUTLASS's mask and by Triton's; the odd one's stays as it is."""
    body = f"""{HEAD} @%p9 mbarrier.arrive.shared.b64 _, [bar]; mov.u32 %r21, s; and.b32 %r21, %r21, {mask}; {SYNC}
    add.u32 %r9, %r20, 5; shl.b32 %r22, %r22, 2; add.u32 %r21, %r21, %r22; st.shared::cluster.u32 [%r21], %r9; {SYNC}
    @%p9 getctarank.shared::cluster.u32 %r10, %r21; @%p9 st.shared.u32 [s+8], %r10; bar.sync 0; {SHOW}"""
    device = Device(blackwell(body))
    out = device.buffer(np.zeros(32 * ctas, U32))
    assert device.launch("k", ctas, 32, out, 0, cluster=(ctas, 1, 1), seed=seed).completed
    found = device.machine.view(out, U32, 32 * ctas).reshape(ctas, 32)
    for rank in range(ctas):
        assert found[rank, :3].tolist() == [*([0, 0] if rank & 1 else [rank + 5, rank + 6]), rank & ~1]


@SEEDS
@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
def test_both_of_a_pair_complete_on_the_even_barrier(space: str, seed: int) -> None:
    """Each CTA loads its own tile; the even one waits for the bytes of both, then tells the odd one by a barrier."""
    body = f"""{HEAD} and.pred %p2, %p8, %p9; @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; {SYNC} mul.lo.u32 %r11, %r20, 32;
    @%p9 cp.async.bulk.tensor.1d.{space}.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [s], [%rd1, {{%r11}}], [%r21];
    @!%p8 bra E; {WAIT} E: {SYNC} {SHOW}"""
    device = Device(blackwell(body))
    data = np.arange(1, 129, dtype=U32)
    out, tensor = device.buffer(np.zeros(128, U32)), device.buffer(data)
    map_ = device.buffer(np.frombuffer(encode_tiled("u32", tensor, (128,), (), (32,)), np.uint8))
    assert device.launch("k", 4, 32, out, map_, cluster=(4, 1, 1), seed=seed).completed
    np.testing.assert_array_equal(device.machine.view(out, U32, 128), data)
