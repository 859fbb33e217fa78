"""Rounds of a loop that repeat are replayed once (checker/source/cluster/repeats.hpp): a replay of all rounds finds the same."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from compact_support import Hangs, Work, of_twin
from planted import break_checker
from record_support import KERNELS

import consan
from consan.checker.compiled import replay as checker
from consan.checker.compiled.replay import History, Replayed, replay
from consan.instrument.record import Recorded

HELPERS = (KERNELS / "hopper.cuh").read_text()
TAKEN = (Path(__file__).parent / "recorded.txt").read_text().split()
ROUNDS = 21
SOURCE = """
extern "C" __global__ void kernel(int* out, int round) {
    __shared__ alignas(16) int tile[256];
    __shared__ alignas(16) int more[256];
    int t = threadIdx.x, sum = 0;
    unsigned place = (unsigned)__cvta_generic_to_shared(tile);
    BEFORE
    tile[t] = t;
    __syncthreads();
    #pragma unroll 1
    for (int i = 0; i < ROUNDS; ++i) { BODY }
    AFTER
    out[t] = sum;
}
"""
PRODUCTS = """
extern "C" __global__ void kernel(int* out, int round) {
    __shared__ alignas(128) f16 a[2][64 * 16];
    __shared__ alignas(128) f16 b[8 * 16];
    int t = threadIdx.x;
    float d[4] = {};
    if (t < 128) b[t] = 0;
    #pragma unroll 1
    for (int i = 0; i < ROUNDS; ++i) { BODY }
    wgmma_wait<0>();
    out[t & 63] = (int)(d[0] + d[1] + d[2] + d[3]);
}
"""
SYNC = "__syncthreads();"
FIRST = "wgmma_fence(); multiply(d, operand(a[0]), operand(b), 1);"
FILL = "for (int k = 0; k < 8; ++k) a[i & 1][t * 8 + k] = 0;"
MULTIPLY = "wgmma_fence(); multiply(d, operand(a[i & 1]), operand(b), 1); wgmma_commit(); wgmma_wait<1>();"
MULTIPLIES = {
    "products": (f"{FILL} fence_async_shared(); {SYNC} {MULTIPLY} {SYNC}", True),
    "a fence less": (f"{FILL} if (i != round) fence_async_shared(); {SYNC} {MULTIPLY} {SYNC}", True),
    "no fence": (f"{FILL} {SYNC} {MULTIPLY} {SYNC}", True),
    "a fence for the next round": (
        f"{FIRST} wgmma_commit(); wgmma_wait<0>(); fence_async_shared(); {SYNC} if (i == round) a[0][t] = 0; {SYNC}",
        True,
    ),
    "a product in one round": (f"{FILL} fence_async_shared(); {SYNC} if (i == round) wgmma_commit(); {MULTIPLY} {SYNC}", True),
    "written in one round": (f"{FILL} fence_async_shared(); {SYNC} if (i != round) {{ {MULTIPLY} }} {SYNC}", True),
    "products in flight": (f"if (i == round) {{ {FIRST} }} wgmma_commit(); wgmma_wait<3>(); a[0][t] = 0; {SYNC}", True),
}
COPY = """asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place + 4 * (t + 64 * (i & 1))), "l"(out + t) : "memory");"""
COMMIT, WAIT = 'asm volatile("cp.async.commit_group;" ::: "memory");', 'asm volatile("cp.async.wait_group 1;" ::: "memory");'
STEP = f"{COPY} {COMMIT} {WAIT} {SYNC} sum += tile[63 - t + 64 * (~i & 1)]; {SYNC}"
LOOK = f"sum += tile[63 - t + 64 * (round & 1)]; {SYNC}"
LOAD = 'asm volatile("{ .reg .b32 v; ld.shared.b32 v, [%0]; }" :: "r"(place + 4 * (63 - t)) : "memory");'
WARP_0, WARP_1 = (f'asm volatile("bar.{barrier};" ::: "memory");' for barrier in ("sync 1", "arrive 1, 64"))
AT_MBARRIER = 'asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(place + 512) : "memory");'
ARRIVE = 'asm volatile("bar.arrive 1, 192;" ::: "memory");'
# The rounds, and whether some are left out.
LOOPS = {
    "a tile": (f"tile[t] = i; {SYNC} sum += tile[63 - t]; {SYNC}", True),
    "a ring": (f"tile[t + 64 * (i % 3)] = i; {SYNC} sum += tile[63 - t + 64 * (i % 3)];", True),
    "a round within": (f"for (int k = 0; k < 5; ++k) {{ tile[t] = k; {SYNC} sum += tile[63 - t]; {SYNC} }} sum += tile[t];", True),
    "another lane": (f"tile[i == round && t == 33 ? 5 : t] = i; {SYNC} sum += tile[63 - t]; {SYNC}", True),
    "a barrier less": (f"tile[t] = i; if (i != round) {SYNC} sum += tile[63 - t]; {SYNC}", True),
    "a race in each round": (f"tile[t] = 1; sum += tile[63 - t]; {SYNC}", True),
    "a value in one round": (f"tile[0] = i == round ? t : 7; {SYNC} sum += tile[0]; {SYNC}", True),
    "values in each round": (f"tile[0] = i + t; {SYNC} sum += tile[0]; {SYNC}", False),
    "never written": (f"sum += more[t]; tile[t] = i; {SYNC} sum += tile[63 - t]; {SYNC}", True),
    "half is written": (f"int2 two = *(int2*)(more + 2 * t); sum += two.x + two.y; more[2 * t] = i; {SYNC}", True),
    "a warp ends": (f"tile[t] = 1; sum += tile[t ^ 32]; {SYNC} if (t < 32) {WARP_0} else {{ {WARP_1} if (i == round) return; }}", True),
    "copies": (STEP, True),
    "copies and stores": (f"{STEP} out[t + 64 * i] = sum;", True),
    "copies from other places": (f"{STEP.replace('out + t', 'out + t + 64 * i')} out[t + 64 * i] = sum;", True),
    "a group more, and stores": (f"if (i == round) {COMMIT} {STEP} out[t + 64 * i] = 0;", True),
    "a group more": (f"if (i == round) {COMMIT} {STEP}", True),
    "a group less": (f"{COPY} if (i != round) {COMMIT} {WAIT} {SYNC} sum += tile[63 - t + 64 * (~i & 1)]; {SYNC}", True),
    "a copy in one round": (f'if (i == round) {COPY} {COMMIT} asm volatile("cp.async.wait_group 3;" ::: "memory"); {SYNC} {LOOK}', True),
    "another place": (f"tile[t] = 1; if (i == round) {LOAD} else {LOAD} {SYNC}", True),
    "copies never waited for": (f"{COPY} {COMMIT} {SYNC} sum += tile[63 - t + 64 * (~i & 1)]; {SYNC}", False),
    "arrivals are left": (f"{ARRIVE} {SYNC}", True),
    "arrivals at an mbarrier are left": (f"{AT_MBARRIER} {SYNC}", False),
    "two calls of a barrier": (
        f"tile[t] = i;\nif (t < 32) {{ {SYNC} sum += tile[1]; }}\nelse {{ {SYNC} sum += 3 * tile[2]; }} {SYNC}",
        False,
    ),
    "two calls in one iteration": (f"tile[t] = i;\nif (t < 32 && i == round) {{ {SYNC} sum += tile[1]; }}\nelse {SYNC} {SYNC}", True),
    "no barrier": ("tile[t] = i; __syncwarp(); sum += tile[t ^ 1]; __syncwarp();", False),
}
LOOK_AGAIN = "sum += tile[(t * i) & 63];"
ALONE = 'asm volatile("bar.sync %0, 32;" :: "r"(1 + t / 32) : "memory");'
# Rounds in which threads load at places of their own between two barriers, and how many accesses are not replayed.
LOADS = {
    "loads alone": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} sum ^= tile[(sum + i) & 63]; {SYNC}", 4032),
    "loads in one round": (f"tile[t] = i; {SYNC} if (i == round) {LOOK_AGAIN} else tile[t] = sum; {SYNC}", 640),
    "loads of two lanes": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} __syncwarp(); {LOOK_AGAIN} {SYNC}", 2688),
    "a store among loads": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} if (i == round && t == 33) tile[5] = 1; {SYNC}", 2689),
    "loads of what nobody wrote": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} if (i == round) sum += more[t]; {SYNC}", 2624),
    "a warp ends behind loads": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} if (i == round && t < 32) return; {SYNC}", 1600),
    "a warp by itself behind loads": (f"tile[t] = i; {SYNC} {LOOK_AGAIN} {ALONE}", 64),
}
LDMATRIX = (
    """asm volatile("{ .reg .b32 v; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {v}, [%0]; }" :: "r"(place + 16 * (t & 7)) : "memory");"""
)
PLACES = "(t + 5 * i) & 127"  # another one in each round
# The same for rounds in which threads store, too.
LOADS |= {
    "places that shift": (f"tile[{PLACES}] = i; {SYNC} sum += tile[(63 - t + 5 * i) & 127]; {SYNC}", 2688),
    "own places": (f"tile[{PLACES}] = i; sum += tile[{PLACES}]; more[{PLACES}] = sum; {SYNC} {LOOK_AGAIN} {SYNC}", 2688),
    "first written there": (f"more[{PLACES}] = i; {SYNC} sum += more[(63 - t + 5 * i) & 127]; {SYNC}", 2688),
    "a load before a store": (f"sum += tile[(t + 5 * i) & 63]; tile[(t + 5 * i) & 63] = i; {SYNC} {LOOK_AGAIN} {SYNC}", 4032),
    "a row before a store": (
        f"if (t < 32) {{ if (t < 8) sum += tile[4 * t]; {LDMATRIX} if (t < 8) tile[4 * t] = sum; }} {SYNC} {LOOK_AGAIN} {SYNC}",
        1344,
    ),
    "two store": (f"tile[{PLACES}] = i; if (i == round) tile[({PLACES}) ^ 1] = 1; {SYNC} {LOOK_AGAIN} {SYNC}", 2624),
    "one loads where another stores": (f"tile[{PLACES}] = i; if (i == round) sum += tile[(t + 5 * i + 1) & 127]; {SYNC}", 1280),
    "a ring that is too short": (f"tile[t + 64 * (i & 1)] = i; sum += tile[63 - t + 64 * ((i == round ? i : ~i) & 1)]; {SYNC}", 896),
    "halves of a word": (f"((short*)tile)[(t + 3 * i) & 127] = i; {SYNC} {LOOK_AGAIN} {SYNC}", 1344),
    "rows of a lane": (f"if (t < 32) {{ *(int4*)(tile + 4 * t) = make_int4(i, i, i, i); {LDMATRIX} }} {SYNC} {LOOK_AGAIN} {SYNC}", 1344),
    "stores behind a warp barrier": (f"tile[{PLACES}] = i; __syncwarp(); tile[({PLACES}) ^ 1] = 2; {SYNC} {LOOK_AGAIN} {SYNC}", 1344),
}
REPEATING = ("loads in one round", "a ring that is too short")
LOOPS |= {name: (body, name in REPEATING) for name, (body, *_) in LOADS.items()}
BEFORE = 'if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 192;" :: "r"(place + 512) : "memory");'
PHASE = """asm volatile(
    "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 1; @!p bra AGAIN; }"
    :: "r"(place + 512) : "memory");"""
ALL = f'asm volatile("cp.async.wait_all;" ::: "memory"); {SYNC}'
ARRIVALS = 'asm volatile("bar.arrive 1, 192; bar.arrive 1, 192; bar.sync 1, 192;" ::: "memory");'
AFTER = dict.fromkeys(
    (
        *("copies", "copies and stores", "copies from other places", "a group more, and stores"),
        *("a copy in one round", "a group more", "a group less"),
    ),
    ALL,
) | {
    "arrivals are left": ARRIVALS,
    "arrivals at an mbarrier are left": f"{AT_MBARRIER} {AT_MBARRIER} {AT_MBARRIER} {PHASE}",
}
LAST = ("another lane", "a barrier less", "a value in one round", "a group less")


@functools.cache
def recorded_loop(name: str, round_: int) -> tuple[Recorded, History]:
    """The history of a CTA in which one round is another one."""
    products = name in MULTIPLIES
    source, body = (HELPERS + PRODUCTS, MULTIPLIES[name][0]) if products else (SOURCE, LOOPS[name][0])
    text = (
        source.replace("ROUNDS", str(ROUNDS))
        .replace("BODY", body)
        .replace("AFTER", AFTER.get(name, ""))
        .replace("BEFORE", BEFORE * ("mbarrier" in name))
    )
    kernel = consan.Kernel(text, entry="kernel", arch="sm_90a" if products else "sm_80")
    work = Work(kernel.ptx, "kernel", (1, 1, 1), (128 if products else 64, 1, 1), [np.zeros(64 * ROUNDS, np.int32), np.int32(round_)])
    recorded = work.recorded(compact=False)
    return recorded, work.run(recorded).histories([0])[0]


def both_replays(recorded: Recorded, history: History, *, descending: bool) -> tuple[Replayed, bool]:
    """The replay, and whether it has found what one of all rounds finds."""
    one, every = (replay(recorded.blocks.tables, history, descending=descending, every=each) for each in (False, True))
    assert not every.repeats
    same = one.records.tobytes() == every.records.tobytes()
    for field in ("status", "events", "by_address", "overtaken"):
        same &= getattr(one, field) == getattr(every, field)
    return one, same


@pytest.mark.parametrize(("name", "round_"), [(name, 12) for name in (*LOOPS, *MULTIPLIES)] + [(name, ROUNDS - 1) for name in LAST])
def test_loops(name: str, round_: int) -> None:
    for descending in (False, True):
        one, same = both_replays(*recorded_loop(name, round_), descending=descending)
        assert same
        assert bool(one.repeats) == (LOOPS | MULTIPLIES)[name][1]


@pytest.mark.parametrize("name", LOADS)
def test_disjoint_accesses(name: str) -> None:
    """The accesses that a replay leaves out. `test_loops` compares the findings."""
    one, _ = both_replays(*recorded_loop(name, 12), descending=False)
    assert one.passed == LOADS[name][1]


def _changed(history: History, random: np.random.Generator) -> History:
    """The same with a word of one lane as it is in another line, or gone."""
    log: npt.NDArray[np.uint32] = history.log.copy()
    used = int(log.any(axis=(0, 2)).nonzero()[0].max()) + 1
    warp, lane, line, other = random.integers(log.shape[0]), random.integers(32), random.integers(used), random.integers(used)
    log[warp, line, lane] = log[warp, other, lane] if random.integers(4) else 0
    return History(log, history.threads, history.window, history.shared_bytes)


@pytest.mark.parametrize("count", [15, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*LOOPS, *MULTIPLIES])
def test_logs_in_which_a_word_is_changed(name: str, count: int) -> None:
    recorded, history = recorded_loop(name, 12)
    random = np.random.default_rng(len(name))
    for number in range(count):
        assert both_replays(recorded, _changed(history, random), descending=bool(number & 1))[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TAKEN)
def test_every_kernel(name: str) -> None:
    for racy in (False, True):
        with contextlib.suppress(Hangs):
            work = of_twin(name, racy=racy, seed=3)
            recorded = work.recorded(compact=False)
            launch = work.run(recorded)
            for group in launch.grouped().groups[:3]:
                history = launch.histories([group.members[0]])[0]
                one, same = both_replays(recorded, history, descending=racy)
                assert same
                if recorded.blocks.in_any_order and not one.has_found:
                    assert not replay(recorded.blocks.tables, history, descending=not racy).has_found


def _cut(history: History) -> History:
    """The same, but one lane was stopped in one of the last rounds: of a block there is no more than what was stored until then."""
    log = history.log.copy()
    used = int(log[0, :-1, 5].nonzero()[0].max())
    log[0, used * 9 // 10 :, 5] = 0
    return History(log, history.threads, history.window, history.shared_bytes)


# A file, a text of it and its replacement, and a loop that shows the fault. Three parts of what is compared have no entry: what is
# initialised, fenced and sealed changes in the first period only, and states are looked at from the second one on.
FAULTS = {
    "words": ("repeats.hpp", "log.at(before + word) != log.at(at + word)", "false", "another lane"),
    "blocks": ("repeats.hpp", "if (log.at(at) != number ||", "if (", "another place"),
    "findings are counted once": ("milestones.hpp", "findings_.repeat(then->findings, times);", "", "a race in each round"),
    "events are counted once": ("milestones.hpp", "output_.lane_events += (output_.lane_events - then->events) * times;", "", "a tile"),
    "values": ("repeats.hpp", "then->findings != now.findings", "false", "a value in one round"),
    "threads that have exited": ("milestones.hpp", "{turns_.exited(), ", "{0u, ", "a warp ends"),
    "copies in flight": ("milestones.hpp", "copies_.state(now.state), ", "", "a copy in one round"),
    "numbers of groups": ("milestones.hpp", "if (repeats_.copies()) copies_.repeat(then->groups, times);", "", "a group less"),
    "groups": ("copies.hpp", "NOTHING : group - own.retired; };", "NOTHING : 0; };", "a copy in one round"),
    "products": ("milestones.hpp", "asynchronous_.state(now.state, witness), ", "", "products in flight"),
    "numbers of products": (
        "milestones.hpp",
        "asynchronous_.repeat(then->commits, times, gone, witness);",
        "(void)times;",
        "written in one round",
    ),
    "groups of products": ("groups.hpp", "NOTHING : group - over);", "NOTHING : 0u);", "products in flight"),
    "kinds of events": (
        "repeats.hpp",
        "return effects::has(event, effects::Trait::repeats);",
        "return effects::has(event, effects::Trait::repeats) || effects::has(event, effects::Trait::mbarrier);",
        "arrivals at an mbarrier are left",
    ),
    "calls of barriers": ("milestones.hpp", ", barriers_[0].calls().conflicts()", "", "two calls of a barrier"),
    "the end of a log": ("repeats.hpp", "return log.at(at + uses.size()) != 0;", "return true;", "a tile"),
    "arrivals": ("milestones.hpp", "|| !barriers_[0].idle()", "", "arrivals are left"),
}


@pytest.mark.slow  # each compiles the checker
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, old, new, name = FAULTS[fault]
    given = [recorded_loop(name, round_) for round_ in (12, ROUNDS - 1, ROUNDS - 2)]
    given.append((given[0][0], _cut(given[0][1])))
    break_checker(monkeypatch, tmp_path, (checker,), file, old, new)
    assert not all(both_replays(*each, descending=descending)[1] for each in given for descending in (False, True))
