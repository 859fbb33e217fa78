"""Schedules written down as decisions and played again: in clusters, in several waves, and in part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_support import HEADER, Device, cuda, kernel

from consan.backends.cpu.engine.code import BoundBlock
from consan.backends.cpu.engine.decisions import FIRST, GIVE_UP, HOLD, LAND, START, Decision, Recorder, Replay, Who
from consan.backends.cpu.state.flying import Flying
from consan.backends.cpu.state.groups import LaneGroup
from consan.backends.cpu.state.schedule import AT_ONCE, LATE, Schedule, for_seed
from consan.tensormap.encoding import encode_tiled

U32 = np.uint32
TILES, CTAS = 6, 4
PIPELINE = """
#define SH(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
struct alignas(64) Map { unsigned char bits[128]; };
__device__ void wait(unsigned long long* bar, unsigned parity) {
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra W; }" ::"r"(SH(bar)), "r"(parity)
               : "memory");
}
// The leader multicasts tiles of 32 words into two stages of four CTAs, and waits for nobody before it fills a stage again.
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(unsigned* out, const __grid_constant__ Map map) {
  __shared__ alignas(128) unsigned tile[2][32]; __shared__ unsigned long long full[2];
  unsigned rank, t = threadIdx.x; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) for (int s = 0; s < 2; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(SH(full + s)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (t == 32) for (unsigned i = 0; i < 6; ++i) {
      if (i > 1) wait(full + i % 2, i / 2 + 1 & 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(SH(full + i % 2)) : "memory");
      if (rank == 0) asm volatile("{ .reg .b16 m; mov.u16 m, 15; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], m; }" :: "r"(SH(tile[i % 2])), "l"(&map), "r"(0), "r"(i), "r"(SH(full + i % 2)) : "memory"); }
  if (t < 32) { unsigned sum = 0;
    for (unsigned i = 0; i < 6; ++i) { wait(full + i % 2, i / 2 & 1); sum += tile[i % 2][t]; }
    out[blockIdx.x * 32 + t] = sum; }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
"""  # noqa: E501 - the source of a kernel
Schedules = Callable[[int], Schedule]
Launch = Callable[..., Any]


def pipeline() -> Launch:
    device = Device(cuda(PIPELINE))
    data = np.random.default_rng(5).integers(0, 1000, (TILES, 32)).astype(U32)
    tensor, out = device.buffer(data), device.buffer(np.zeros(2 * CTAS * 32, U32))

    def launch(schedules: Schedules, seed: int = 0) -> Any:
        device.machine.renew()
        device.machine.write(tensor, data)
        device.machine.schedules = schedules
        stats = device.launch("k", 2 * CTAS, 64, out, encode_tiled("u32", tensor, (32, TILES), (128,), (32, 1)), seed=seed, timeout=20)
        return stats.instructions, stats.deadlocked, device.machine.view(out, U32, 2 * CTAS * 32).tolist()

    return launch


def recorded(launch: Launch, seed: int) -> tuple[Any, list[Decision]]:
    decisions: list[Decision] = []
    return launch(lambda each: Recorder(for_seed(each), decisions), seed), decisions


@pytest.mark.parametrize("baseline", ["late", "prompt"])
def test_clusters_are_repeated_exactly(baseline: str) -> None:
    launch = pipeline()
    kinds, results = set(), set()
    for seed in range(1, 9):
        plain = launch(for_seed, seed)
        again, decisions = recorded(launch, seed)
        assert again == plain
        assert launch(lambda _, all_of=decisions: Replay(all_of, baseline)) == plain
        kinds |= {decision.kind for decision in decisions}
        results.add(str(plain))
    assert kinds >= {START, HOLD, LAND, FIRST, GIVE_UP}, "each kind of decision must have been put to the test"
    assert len(results) > 1


HOLD_BODY = "setp.eq.u32 %p1, %r0, 999; @%p1 bra A; A: atom.global.add.u32 %r8, [%rd1], 1; st.global.u32 [%rd3], %r8;"


def small(body: str, *, grid: int = 1, block: int = 64, before: str = "") -> Callable[..., tuple[list[int], list[Any]]]:
    device = Device(kernel(body, before))
    out, data = device.buffer(np.zeros(grid * block, U32)), device.buffer(np.zeros(64, U32))

    def launch(*decisions: Decision, baseline: str = "late") -> tuple[list[int], list[Any]]:
        device.machine.renew()
        replay = Replay(decisions, baseline)
        device.machine.schedules = lambda _: replay
        assert device.launch("k", grid, block, out, data, timeout=20).completed
        return device.machine.view(out, U32, grid * block).tolist(), replay.traces

    return launch


def _holds(body: str, before: str = "", *, grid: int = 1, block: int = 64) -> list[Decision]:
    device = Device(kernel(body, before))
    decisions: list[Decision] = []
    device.machine.schedules = lambda seed: Recorder(for_seed(seed), decisions)
    for seed in range(1, 40):
        device.launch("k", grid, block, device.buffer(np.zeros(grid * block, U32)), device.buffer(np.zeros(64, U32)), seed=seed)
    return [decision for decision in decisions if decision.kind == HOLD]


def test_a_warp_is_held_back_alone() -> None:
    """What a hold says is done to the warp that it names, and a hold of everybody stops nobody for good."""
    launch = small(HOLD_BODY)
    (usual, _), places = launch(), {hold.place for hold in _holds(HOLD_BODY)}
    assert places
    changed = []
    for place in places:
        for warp in (0, 1):
            result, (trace,) = launch(Decision(HOLD, (Who((0, 0, 0), warp, 0xFFFFFFFF),), 50, place))
            changed += [result] if trace.taken else []
        both = tuple(Who((0, 0, 0), warp, 0xFFFFFFFF) for warp in (0, 1))
        assert sorted(launch(Decision(HOLD, both, 50, place))[0]) == sorted(usual)
    assert any(result != usual for result in changed)
    assert all(sorted(result) == sorted(usual) for result in changed)


def test_decisions_about_what_does_not_happen_change_nothing() -> None:
    launch = small(HOLD_BODY)
    usual, _ = launch()
    nobody = (Who((7, 0, 0), 0, 0xFFFFFFFF), Who((0, 0, 0), 0, 0xFFFFFFFF, 1000))
    for kind in (HOLD, LAND, GIVE_UP):
        result, (trace,) = launch(Decision(kind, nobody, 5, 12345))
        assert (result, trace.taken) == (usual, False)


COPY = """mov.u32 %r5, s; shl.b32 %r6, %r0, 2; add.u32 %r5, %r5, %r6; cp.async.ca.shared.global [%r5], [%rd4], 4;
add.u32 %r7, %r3, 7; ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd3], %r8;"""


def test_a_copy_of_many_warps_is_divided_where_decisions_differ() -> None:
    device = Device(kernel(COPY, ".shared .align 16 .b32 s[64];"))
    data, out = device.buffer(np.arange(1, 65, dtype=U32)), device.buffer(np.zeros(64, U32))
    line = next(number for number, text in enumerate(device.module.program.text.splitlines(), 1) if "cp.async" in text)
    found = {}
    for baseline, steps in (("late", AT_ONCE), ("prompt", LATE)):
        replay = Replay([Decision(LAND, (Who((0, 0, 0), 1, 0xFFFFFFFF),), steps, line)], baseline)
        device.machine.schedules = lambda _, one=replay: one
        assert device.launch("k", 1, 64, out, data).completed
        assert replay.traces[0].taken
        found[baseline] = device.machine.view(out, U32, 64).tolist()
    assert found["late"] == [0] * 32 + list(range(33, 65)), "only the copies of warp 1 come early"
    assert found["prompt"] == list(range(1, 33)) + [0] * 32, "only the copies of warp 1 come late"


def test_decisions_name_ctas_of_later_waves() -> None:
    """A wave has 8192 lanes: CTA 40 of 256 threads is in the second."""
    body = "setp.eq.u32 %p1, %r0, 999; @%p1 bra A; A: add.u32 %r8, %r0, 1; st.global.u32 [%rd3], %r8;"
    (hold, *_) = (hold for hold in _holds(body, grid=64, block=256) if any(who.block[0] > 32 for who in hold.who))
    launch = small(body, grid=64, block=256)
    _, (trace,) = launch(Decision(HOLD, (Who((40, 0, 0), 3, 0xFFFFFFFF, hold.who[0].nth),), 9, hold.place))
    assert trace.taken


def test_a_renewed_machine_forgets_what_launches_left() -> None:
    text = f"""{HEADER}.global .u32 count = 5;
    .visible .entry k(.param .u64 out) {{ .reg .b32 %r<3>; .reg .b64 %rd<2>; ld.param.u64 %rd0, [out];
    atom.global.add.u32 %r0, [count], 1; st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r1; mov.u32 %r1, 77;
    add.u32 %r1, %r1, %r0; ret; }}"""
    device = Device(text)
    out = device.buffer(np.zeros(2, U32))

    def launch() -> list[int]:
        assert device.launch("k", 1, 1, out).completed
        return device.machine.view(out, U32, 2).tolist()

    assert [launch(), launch()] == [[5, 0], [6, 82]], "variables keep their values, and registers what was last in them"
    device.machine.renew()
    assert device.machine.view(out, U32, 2).tolist() == [0, 0]
    assert launch() == [5, 0]


ALIKE = """setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
@%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 256, [bar];
W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;
ld.shared.u32 %r8, [s]; st.global.u32 [%rd3], %r8;"""


class Entering(Schedule):
    """Seed 0, and how many threads enter each block together."""

    counts = True

    def __init__(self) -> None:
        self.entered: dict[int, list[int]] = {}

    def enter(self, group: LaneGroup, block: BoundBlock) -> None:
        self.entered.setdefault(block.position, []).append(group.count)


def entered_behind_the_wait(grid: int) -> list[int]:
    device, schedule = Device(kernel(ALIKE, ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[256];")), Entering()
    device.machine.schedules = lambda _: schedule
    out, data = device.buffer(np.zeros(64 * grid, U32)), device.buffer(np.arange(64, dtype=U32))
    assert device.launch("k", grid, 64, out, data).completed
    return schedule.entered[max(schedule.entered)]


@pytest.mark.parametrize("grid", [1, 8])
def test_ctas_whose_copies_land_at_the_same_time_stay_together(grid: int) -> None:
    assert entered_behind_the_wait(grid) == [64 * grid], "one group runs what comes behind the wait"


def test_a_fault_planted_in_what_lands_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flying, "awaited", lambda *_: [])
    assert entered_behind_the_wait(8) == [64] * 8


SPINS = """
__device__ unsigned flag;
extern "C" __global__ void k(unsigned* out) {
  if (threadIdx.x == 0) { out[0] = 1; __threadfence(); atomicExch(&flag, 1); }
  else if (threadIdx.x == 32) { while (atomicExch(&flag, 0) == 0) {} out[1] = 1; }
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_that_writes_in_each_round_does_not_starve_others(seed: int) -> None:
    """Each exchange is a write that others may poll. The machine lets a writer go ahead of others, but not for ever."""
    device = Device(cuda(SPINS))
    out = device.buffer(np.zeros(2, U32))
    stats = device.launch("k", 1, 33, out, seed=seed, timeout=20)
    assert (stats.completed, device.machine.view(out, U32, 2).tolist()) == (True, [1, 1])
    assert stats.instructions < 20_000
