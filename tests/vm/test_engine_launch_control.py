"""Cluster launch control: every cluster's work is done once, by whoever gets it. ptxas assembles each kernel for sm_100a."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from engine_support import Device, kernel
from planted import plant

from consan.backends.cpu import LaunchStats
from consan.backends.cpu.state import queue as queue_module
from consan.backends.cpu.state.queue import LaunchQueue, resident
from consan.backends.cpu.state.schedule import STEERED
from consan.toolchain.assemble import assemble

Array = npt.NDArray[Any]
U32 = np.uint32
SHARED = ".shared .align 8 .b64 bar; .shared .align 16 .b8 s[64];"
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
REQUEST = "clusterlaunchcontrol.try_cancel.async"
ASK = f"{REQUEST}.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [bar];"
ASK_FOR_ALL = f"{REQUEST}.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%rd5], [%rd6];"
RESPONSES = {
    "load": "ld.shared.b128 %q0, [s];",
    "move": "ld.shared.v2.b64 {%rd7, %rd8}, [s]; mov.b128 %q1, {%rd7, %rd8}; mov.b128 %q0, %q1;",
}
FIRST = {
    "vector": "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r20, %r21, %r22, _}, %q0;",
    "axes": "".join(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}.b32.b128 %r{20 + k}, %q0;" for k, axis in enumerate("xyz")),
}


@functools.cache
def persistent(ask: str, response: str, first: str) -> str:
    """Counts each CTA's visits in `out`, and in `in` the CTAs that ran; every CTA decodes its own copy of the response."""
    body = f"""mov.u32 %r20, %clusterid.x; mov.u32 %r21, %cluster_nctaid.x; mul.lo.u32 %r20, %r20, %r21; mov.u32 %r21, %ctaid.y;
    mov.u32 %r22, %ctaid.z; mov.u32 %r23, %cluster_ctarank; mov.u32 %r24, 0; setp.eq.u32 %p9, %r0, 0; setp.eq.u32 %p8, %r23, 0;
    mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; mov.u64 %rd6, bar; cvta.shared.u64 %rd6, %rd6;
    @%p9 atom.global.add.u32 %r25, [%rd1], 1; @%p9 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; {SYNC}
    L: @%p9 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16; and.pred %p7, %p8, %p9; {ask}
    mov.u32 %r26, %nctaid.x; mov.u32 %r27, %nctaid.y; mad.lo.u32 %r28, %r22, %r27, %r21; mad.lo.u32 %r28, %r28, %r26, %r20;
    add.u32 %r28, %r28, %r23; mul.wide.u32 %rd9, %r28, 4; add.u64 %rd9, %rd0, %rd9; @%p9 red.global.add.u32 [%rd9], 1;
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], %r24; @!%p1 bra W; xor.b32 %r24, %r24, 1;
    {response} clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0; {first}
    fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster; {SYNC}
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster; @%p2 bra L;"""
    text = kernel(body, SHARED).replace(".version 8.7\n.target sm_90a", ".version 8.8\n.target sm_100a")
    assemble(text, "sm_100a")
    return text


def launch(text: str, grid: tuple[int, int, int], cluster: int, seed: int) -> tuple[LaunchStats, Array, int]:
    """Statistics, how often each CTA's work was done, how many CTAs ran."""
    device, ctas = Device(text), grid[0] * grid[1] * grid[2]
    out, ran = device.buffer(np.zeros(ctas, U32)), device.buffer(np.zeros(1, U32))
    params = int(out).to_bytes(8, "little") + int(ran).to_bytes(8, "little")
    stats = device.machine.launch(device.module, "k", grid, (32, 1, 1), params, cluster=(cluster, 1, 1), seed=seed)
    assert stats.completed, stats
    return stats, device.machine.view(out, U32, ctas).copy(), int(device.machine.view(ran, U32, 1)[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grid", [(7, 1, 1), (3, 2, 2)])
@pytest.mark.parametrize(("response", "first"), [("load", "vector"), ("move", "axes")])
def test_each_ctas_work_is_done_once(response: str, first: str, grid: tuple[int, int, int], seed: int) -> None:
    stats, visits, ran = launch(persistent(f"@%p7 {ASK}", RESPONSES[response], FIRST[first]), grid, 1, seed)
    assert visits.tolist() == [1] * len(visits)
    assert ran + stats.cancelled == len(visits)
    assert (stats.cancelled == 0) == (seed % 4 == 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cluster", [2, 4])
def test_one_request_for_all_ctas_of_a_cluster(cluster: int, seed: int) -> None:
    """Each CTA's own barrier gets its 16 bytes, and all of them decode the same cluster."""
    stats, visits, ran = launch(persistent(f"@%p7 {ASK_FOR_ALL}", RESPONSES["load"], FIRST["vector"]), (3 * cluster, 2, 1), cluster, seed)
    assert visits.tolist() == [1] * len(visits)
    assert ran + stats.cancelled == len(visits)


def test_clusters_that_nobody_asks_for_start_later() -> None:
    """One request is too few: the other clusters run when the first ones have ended."""
    stats, visits, ran = launch(persistent(f"@%p7 {ASK}", RESPONSES["load"], "and.pred %p2, %p2, !%p2;"), (9, 1, 1), 1, 0)
    assert 0 < stats.cancelled < 9
    assert int(visits.sum()) == ran == 9 - stats.cancelled


def test_a_cta_that_does_not_expect_its_bytes_waits_for_ever() -> None:
    text = persistent(f"@%p7 {ASK_FOR_ALL}", RESPONSES["load"], FIRST["vector"])
    device = Device(text.replace("L: @%p9 mbarrier.arrive.expect_tx", "L: and.pred %p6, %p8, %p9; @%p6 mbarrier.arrive.expect_tx"))
    stats = device.launch("k", 4, 32, device.buffer(np.zeros(4, U32)), device.buffer(np.zeros(1, U32)), cluster=(2, 1, 1))
    assert stats.deadlocked
    assert {blocked.cluster_rank for blocked in stats.blocked} == {0, 1}


def test_the_queue_goes_by_the_grid() -> None:
    queue = LaunchQueue((4, 2, 2), (2, 1, 1), first=1, end=8)
    assert [queue.take() for _ in range(8)] == [
        (2, 0, 0), (0, 1, 0), (2, 1, 0), (0, 0, 1), (2, 0, 1), (0, 1, 1), (2, 1, 1), None
    ]  # fmt: skip
    assert queue.cancelled == 7


def test_seeds_choose_how_many_clusters_start() -> None:
    found = {resident(seed, 8) for seed in range(40)}
    assert {1, 7, 8} <= found <= set(range(1, 9))
    assert [resident(0, n) for n in (1, 2, 9)] == [1, 1, 3]


@pytest.mark.parametrize("data", range(4))
def test_schedules_that_are_explored_choose_it_with_each_seed_of_the_arguments(data: int) -> None:
    assert {resident(number * STEERED + data, 8) for number in range(1, 60)} == set(range(1, 9))


def test_a_fault_in_that_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, queue_module, "seed % 4 == 1 and seed < STEERED", "seed % 4 == 1")
    with pytest.raises(AssertionError):
        test_schedules_that_are_explored_choose_it_with_each_seed_of_the_arguments(1)
