"""The words of findings where test_twins.py and culprit_rows.py do not look: several schedules, cases without a culprit, indices."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from planted import break_checker, plant, quick
from sampled import one_in

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.instrument.between import TextRelations, data
from consan.instrument.ptx import parse
from consan.reports import culprits
from consan.reports.culprits.hand_overs import heard_by_nobody
from consan.reports.model import CULPRIT
from consan.reports.words.verified import own_words

TWINS, GLOBAL = (Path(__file__).parent / folder for folder in ("twins", "global"))
READ = Path(__file__).parents[1] / "reports_read" / "kernels"
SEEDS = range(8)

#: Races that the schedule shows now as RAW, now as WAR: the twin, and the one sentence of it.
ORDERS = (
    ("raw", "RAW", "the read at raw.cu:17 can run before the write at raw.cu:13 has stored its value"),
    ("mbarrier_not_waited", "RAW", "the read at mbarrier_not_waited.cu:22 can run before the write at mbarrier_not_waited.cu:16"),
    ("war_loop", "WAR", "the write at war_loop.cu:14, in the next iteration, can overwrite the bytes before the read at war_loop.cu:16"),
    ("reduction_last_levels", "RAW", "the read at reduction_last_levels.cu:19, in the next iteration, can run before the write"),
    ("reduction_no_syncwarp", "RAW", "the read at reduction_no_syncwarp.cu:20, in the next iteration, can run before the write"),
    ("histogram_no_atomics", "WAR", "the write at histogram_no_atomics.cu:15 can overwrite what another thread has stored"),
    ("ring_three_stages", "WAR", "the write at ring_three_stages.cu:23 can overwrite the bytes before the read at ring_three_stages.cu:21"),
    ("exchange_in_functions", "RAW", "the read at exchange_in_functions.cu:8 can run before the write at exchange_in_functions.cu:7"),
    ("waw", "WAW", "the write at waw.cu:11 and the write at waw.cu:17 can land in either order"),
)


def _racy(name: str, seeds: Any = (0,)) -> list[Any]:
    spec = twin_file.read(next(path for path in (TWINS / f"{name}.cu", GLOBAL / f"{name}.cu") if path.exists()))
    kernel = twin_file.kernel(spec.path, racy=True)
    launch = {"smem": spec.smem, "device": "cpu", "policy": spec.policy}
    return [consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), seed=seed, **launch) for seed in seeds]


def test_a_lost_update_asks_for_an_atomic_and_not_for_a_barrier() -> None:
    (report,) = _racy("histogram_no_atomics")
    race, same_value = report.findings
    assert "update the same bytes" in race.message
    assert race.fix.startswith("make the update one atomic operation (atomicAdd")
    assert same_value.severity == "error"
    assert "updates are lost" in same_value.missing
    assert "nothing" not in same_value.missing + same_value.fix


def test_one_thread_that_writes_loses_no_update() -> None:
    (report,) = _racy("maximum_replaced_by_sum")
    (finding,) = report.findings
    assert "overwrite the bytes before" in finding.message
    assert "put __syncthreads()" in finding.fix


def test_a_leader_that_releases_early_is_the_culprit() -> None:
    (report,) = _racy("mbarrier_leader_releases_early")
    assert report.findings
    assert all(finding.fix.endswith("with __syncwarp() between the two") for finding in report.findings)


def test_a_branch_on_a_widened_index_is_decided() -> None:
    (report,) = _racy("shuffles_of_half_a_warp")
    assert {finding.situation for finding in report.findings} == {"lane-gone"}


def test_a_lost_update_between_ctas_of_a_cluster_asks_for_an_atomic_too() -> None:
    (report,) = _racy("cluster_histogram_no_atomics")
    assert [finding.fix for finding in report.findings if finding.fix.startswith("put")] == []
    assert report.findings[0].fix.startswith("make the update one atomic operation (atomicAdd")


def test_a_reader_that_has_its_fence_is_not_told_to_have_one_since_other_lanes_are_behind() -> None:
    (report,) = _racy("flag_counted_by_lanes")
    (race,) = report.findings
    assert race.situation == "no-release"
    assert "after the flag is read" not in race.fix


WAIT_IN_BRANCH = """#include "hopper.cuh"
extern "C" __global__ void stages(const float* x, float* out) {
    __shared__ alignas(128) float stage[2][64];
    int t = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        if (t == 0) bulk_wait_read<1>();
        stage[k & 1][t] = x[k * 64 + t];
        fence_async_shared();
        __syncthreads();
        if (t == 0) {
            bulk_store(out + k * 64, stage[k & 1], 256);
            bulk_commit();
        }
    }
    if (t == 0) bulk_wait<0>();
}
"""


@pytest.mark.parametrize(
    ("wait", "where"),
    [("if (t == 0) ", "after the branch that contains stages.cu:6"), ("", "after cp.async.bulk.wait_group.read and before stages.cu:7")],
)
def test_a_barrier_behind_a_wait_is_outside_of_the_branch_of_the_wait(tmp_path: Path, wait: str, where: str) -> None:
    """The branch of the operation does not matter."""
    (tmp_path / "stages.cu").write_text(WAIT_IN_BRANCH.replace("if (t == 0) bulk_wait_read", f"{wait}bulk_wait_read"))
    kernel = consan.Kernel(tmp_path / "stages.cu", arch="sm_90a", include_dirs=[str(Path(__file__).parent)])
    (finding,) = consan.launch(kernel, 1, 64, [np.zeros(256, np.float32), np.zeros(256, np.float32)], device="cpu").findings
    assert finding.situation == "waited-no-barrier"
    assert finding.fix.endswith(where)


def test_warps_of_a_role_have_a_barrier_of_their_own() -> None:
    ((finding,),) = (report.findings for report in _racy("role_without_its_barrier"))
    assert "put a barrier of these 64 threads (as the bar.sync 1, 64 at role_without_its_barrier.cu:11) after" in own_words(finding)
    assert "__syncthreads()" not in own_words(finding)


MISALIGNED = """#include "hopper.cuh"
extern "C" __global__ void tail(const float* x, float* out) {
    __shared__ alignas(128) float stage[128];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(full, 1);
        expect(full, 256);
        bulk_load(stage + 66, x, 256, full);
    }
    __syncthreads();
    wait(full, 0);
    out[t] = stage[t];
}
"""


def test_a_misaligned_copy_to_the_end_of_shared_memory_is_never_clean(tmp_path: Path) -> None:
    (tmp_path / "tail.cu").write_text(MISALIGNED)
    kernel = consan.Kernel(tmp_path / "tail.cu", arch="sm_90a", include_dirs=[str(Path(__file__).parent)])
    report = consan.launch(kernel, 1, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32)], device="cpu")
    assert report.verdict != "clean"


def test_bytes_that_nobody_announces_are_the_first_finding_and_the_last_copy_and_announcement_its_places() -> None:
    (issued_first,) = _racy("bulk_bytes_not_announced")
    (announced_first,) = _racy("bulk_bytes_expected_twice")
    for report in (issued_first, announced_first):
        finding = report.findings[0]
        assert (finding.kind, [access.role for access in finding.pair]) == ("barrier-misuse", ["arrival", "bulk load"])
        assert "more bytes" in finding.message
    assert not issued_first.incomplete


def test_bytes_that_one_of_two_copies_lacks_are_the_first_finding_of_a_pipeline_that_stops() -> None:
    (report,) = _racy("bulk_bytes_of_one_copy")
    finding = report.findings[0]
    assert (finding.kind, finding.situation) == ("barrier-misuse", "bytes-not-announced")
    assert "deadlock" in {each.kind for each in report.findings}


BOTH_ENDS = """extern "C" __global__ void ends(float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[t < 32 ? t - 1 : t + 1];
}
"""


def test_accesses_below_and_above_the_memory_of_a_cta_are_one_range() -> None:
    report = consan.launch(consan.Kernel(BOTH_ENDS, entry="ends"), 1, 64, [np.zeros(64, np.float32)], device="cpu")
    (finding,) = report.findings
    assert (finding.buffer.offset, finding.buffer.bytes) == (-4, 264)
    assert "at least 0, and reaches -1" in finding.fix


ARRIVALS = """extern "C" __global__ void arrivals() {
    __shared__ unsigned long long bar;
    unsigned at = __cvta_generic_to_shared(&bar);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(at));
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at));
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" :: "r"(at));
}
"""


def test_one_arrival_too_many_is_not_a_million_that_are_missing() -> None:
    report = consan.launch(consan.Kernel(ARRIVALS, entry="arrivals", arch="sm_90"), 1, 1, [], device="cpu")
    (deadlock,) = [finding for finding in report.findings if finding.kind == "deadlock"]
    assert deadlock.barrier["pending"] == -1
    assert "arrivals" not in deadlock.missing


SCAN = """extern "C" __global__ void scan(int* out) {
    __shared__ int sums[32];
    int lane = threadIdx.x;
    sums[lane] = lane;
    __syncwarp();
    int left = lane ? sums[lane - 1] : 0;
    sums[lane] += left;
    __syncwarp();
    out[lane] = sums[lane];
}
"""


SCAN_FIXES = [("inline", "after their reads and before scan.cu:7"), ("record", "between scan.cu:6 and scan.cu:7")]


@pytest.mark.parametrize(("engine", "where"), SCAN_FIXES)
def test_a_scan_of_a_warp_is_not_told_to_use_atomics_only(tmp_path: Path, engine: str, where: str) -> None:
    """A hook's record of the warp's readers may name the lane that updates its own element: the fix for that case is named too."""
    (tmp_path / "scan.cu").write_text(SCAN)
    given = {"device": "cpu", "engine": engine}
    (race,) = consan.launch(consan.Kernel(tmp_path / "scan.cu"), 1, 32, [np.zeros(32, np.int32)], **given).findings
    assert race.severity == "error"
    assert f"put __syncwarp() {where}" in race.fix
    (tmp_path / "fixed.cu").write_text(SCAN.replace("    sums[lane] +=", "    __syncwarp();\n    sums[lane] +="))
    assert not consan.launch(consan.Kernel(tmp_path / "fixed.cu"), 1, 32, [np.zeros(32, np.int32)], **given).findings


@pytest.mark.parametrize("name", ["raw", "waw", "war_loop", "mbarrier_other_lane", "scan_read_behind_loop"])
def test_where_nothing_stands_between_there_is_no_culprit(name: str) -> None:
    (report,) = _racy(name)
    assert report.findings
    assert all(access.role != CULPRIT for finding in report.findings for access in finding.accesses)


@pytest.mark.parametrize("row", one_in(3, ORDERS, operator.itemgetter(0)))
def test_a_race_reads_the_same_in_each_schedule(row: tuple[str, str, str]) -> None:
    name, hazard, sentence = row
    found = [finding for report in _racy(name, SEEDS) for finding in report.findings]
    told = {(f.hazard, f.message, f.fix) for f in found if sentence in f.message}
    assert {each[0] for each in told} == {hazard}
    assert len(told) == 1
    assert [f.message for f in found if f.hazard != "WAW" and sentence not in f.message] == []


def test_two_iterations_that_meet_in_one_of_two_buffers() -> None:
    (report,) = _racy("double_buffer")
    (race,) = report.findings
    assert "all of these accesses are in tile[0], one of the 2 parts of tile" in race.message
    assert "between two iterations of the loop at double_buffer.cu:" in race.fix
    assert "to use the parts of tile in turn, let the first index change at double_buffer.cu:21 and double_buffer.cu:19" in race.fix


#: Accesses outside their array: the index in the message, and the repair.
BOUNDS = (
    ("out_of_bounds", "this is element 128, and the last one is 127", "at most 127, and reaches 191; correct it; or, if it is"),
    ("halo_index", "this is row[64], and the last one is row[63]", "at most 63, and reaches 64"),
    ("left_neighbour", "this is row[-1], and the first one is row[0]", "at least 0, and reaches -1"),
    ("output_too_small", "this is element 2, and the last one is 1; the launch ended there", "larger: at least 3 elements"),
)


@pytest.mark.parametrize(("name", "message", "fix"), BOUNDS, ids=[row[0] for row in BOUNDS])
def test_an_index_outside_its_array(name: str, message: str, fix: str) -> None:
    own = READ / f"{name}.cu"
    spec = twin_file.read(own if own.exists() else TWINS / f"{name}.cu")
    kernel = twin_file.kernel(spec.path, racy=True)
    report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu")
    finding = next(finding for finding in report.findings if finding.kind == "out-of-bounds")
    assert message in finding.message
    assert fix in finding.fix


FIXES = {
    "scan_in_place": "put __syncthreads() between the read and the write of the statement at scan_in_place.cu:16 (load into a register"
    " before it, store after it, and the barrier outside of any branch)",
    "half_warp_reads": "put it where all lanes of the warp pass: before the branch that contains half_warp_reads.cu:17",
    "exclusive_branches": "no barrier can stand between the two, because their branches exclude each other, and in one branch a barrier is"
    " wrong: end the branch of the write at exclusive_branches.cu:13, put __syncthreads() where all threads pass",
}


def test_roles_that_exclude_each_other_need_an_arrival_and_a_wait() -> None:
    (report,) = _racy("mbarrier_copies_arrive_is_no_release")
    (finding,) = report.findings
    assert "an arrival behind (1) and a wait for it before (2): no thread executes both" in finding.missing


@pytest.mark.parametrize(("name", "fix"), FIXES.items())
def test_a_fix_is_right_word_by_word(name: str, fix: str) -> None:
    """No atomic operation for elements with one writer, and no barrier for all in a branch of some."""
    spec = twin_file.read(next(path for path in (READ / f"{name}.cu", TWINS / f"{name}.cu") if path.exists()))
    racy, repaired = (
        consan.launch(
            twin_file.kernel(spec.path, racy), spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu"
        )
        for racy in (True, False)
    )
    assert [finding.kind for finding in racy.findings] == ["data-race"]
    assert fix in racy.findings[0].fix
    assert "atomic" not in racy.findings[0].fix
    assert (repaired.verdict, repaired.findings) == ("clean", ())


def test_a_warp_barrier_before_a_release_stands_in_the_branch_of_its_warp() -> None:
    """The other access is in a branch of another warp: behind the branch of the first one the release would be over."""
    (report,) = _racy("slot_freed_by_leader")
    (race,) = report.findings
    assert "and before that arrival or release, or let all lanes of the warp arrive" in race.fix
    assert "branch" not in race.fix


@pytest.mark.parametrize(
    ("name", "words"),
    [("cluster_refill_local_empty", "in the CTA of rank 0, and the consumers of each CTA"), ("mbarrier_count_too_small", "")],
)
def test_the_issuer_of_a_multicast_waits_at_an_mbarrier_of_its_own(name: str, words: str) -> None:
    (report,) = _racy(name)
    race = next(each for each in report.findings if (each.kind, each.hazard) == ("data-race", "WAR"))
    assert words in own_words(race)
    assert words or "of rank" not in own_words(race)


def test_one_store_of_different_values_needs_neither_an_atomic_nor_a_barrier() -> None:
    (report,) = _racy("one_store_of_lanes")
    (race,) = report.findings
    assert "which value remains is undefined" in race.message
    assert not any(word in race.fix for word in ("atomic", "syncwarp", "syncthreads"))


UNKNOWN = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 where)
{
    .reg .b32 %r<4>;
    .shared .align 8 .b64 bar;
    ld.param.u32 %r1, [where];
    mov.u32 %r2, bar;
    add.u32 %r2, %r2, %r1;
    mov.u32 %r3, bar;
    mbarrier.init.shared.b64 [%r3+8], 3;
    mbarrier.arrive.shared.b64 _, [%r2];
    mbarrier.inval.shared.b64 [%r3];
    bar.arrive 2, 64;
    ret;
}
"""


def test_an_address_that_is_written_twice_is_unknown() -> None:
    init, arrive, barrier = TextRelations(lambda: parse(UNKNOWN, "k")).signals("k")
    assert (init.verb, init.symbol, init.number) == ("initialise", "bar", 3)
    assert (arrive.verb, arrive.symbol) == ("arrive", "")
    assert (barrier.verb, barrier.barrier, barrier.number) == ("arrive", 2, 64)


def test_a_thread_that_reads_what_it_wrote_hands_nothing_over() -> None:
    """`data[0] = 1, data[1] = 2` of volatile data reads back what it stores; the flag comes later, behind the fence that publishes all."""
    (report,) = _racy("volatile_message_in_shared")
    assert [each.situation for each in report.findings] == ["cta-no-acquire"]
    (finding,) = report.findings
    assert "between the read of the flag at volatile_message_in_shared.cu:17 and volatile_message_in_shared.cu:21" in finding.missing


def test_arrivals_without_a_wait_are_no_wrong_count() -> None:
    """More arrivals than a phase has left, behind a phase that nobody has waited for: the race comes first, and no count is blamed."""
    (report,) = _racy("barrier_token_not_waited")
    assert report.findings[0].kind == "data-race"
    assert "too-many-arrivals" not in {each.situation for each in report.findings}


@pytest.mark.parametrize("name", ["mbarrier_count_too_small", "mbarrier_count_of_one_warp"])
def test_a_count_that_is_too_small_for_several_warps_comes_first(name: str) -> None:
    for report in _racy(name, range(3)):
        assert report.findings[0].situation == "too-many-arrivals"


def test_too_many_arrivals_may_be_those_of_a_thread_that_comes_round_too_early() -> None:
    (report,) = _racy("mbarrier_count_too_small")
    finding = next(each for each in report.findings if each.situation == "too-many-arrivals")
    assert "if one thread arrives twice in a phase: the wait for full at" in finding.fix
    assert any("full" in access.name for access in finding.accesses[2:])


def test_a_count_with_room_for_all_threads_is_not_blamed() -> None:
    """A thread comes round too early: its wait passes."""
    (report,) = _racy("mbarrier_second_consumer_stale")
    assert report.findings[0].situation == "phase-lapped"
    assert "the wait for full at" in report.findings[0].fix
    assert "too-many-arrivals" not in {each.situation for each in report.findings}


def test_a_check_before_an_act_is_one_atomic_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = twin_file.read(Path(__file__).parent / "global" / "claimed_by_looking_first.cu")

    def fixes() -> list[str]:
        args = spec.parameters(spec.fresh_args())
        found = consan.launch(twin_file.kernel(spec.path, racy=True), spec.grid, spec.block, args, device="cpu").findings
        return [each.fix for each in found]

    assert fixes()
    assert all(each.startswith("let one atomicCAS at") for each in fixes())
    plant(monkeypatch, data, "found |=", "found &=")
    assert not any("atomicCAS" in each for each in fixes())


WITH_OTHERS = quick("barrier_rules.hpp", "!barrier.site()", "false")


def test_a_barrier_that_lanes_pass_in_different_iterations_is_no_repair() -> None:
    assert [each.verified for each in _racy("wavefront_two_diagonals", [0])[0].findings] == [None]


@pytest.mark.slow
def test_lanes_of_a_warp_meet_at_the_barrier_that_a_repair_adds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So one in a branch that lanes take in different iterations is no repair: at the others it would leave no race."""
    break_checker(monkeypatch, tmp_path, (replay, grid), *WITH_OTHERS)
    assert [each.verified is None for each in _racy("wavefront_two_diagonals", [0])[0].findings] == [False]


def test_a_statement_whose_sum_others_read_needs_two_barriers_of_the_warp() -> None:
    """Where no repair is verified: a tail of statements needs more than are tried."""
    adds = "\n".join(f"    v[t] += v[t + {step}];" for step in (16, 8, 4, 2, 1))
    source = f"""extern "C" __global__ void k(const float* x, float* out) {{
    __shared__ float s[64];
    volatile float* v = s;
    int t = threadIdx.x;
    v[t] = x[t], v[t + 32] = 0.0f;
    __syncwarp();
{adds}
    if (t == 0) out[0] = v[0];
}}"""
    values = [np.arange(32, dtype=np.float32), np.zeros(1, np.float32)]
    first = consan.launch(consan.Kernel(source, entry="k"), 1, 32, values, device="cpu").findings[0]
    assert first.verified is None
    assert first.fix.startswith("put __syncwarp() between the read and the write of the statement")
    assert first.fix.endswith("and another one behind it, before other threads read what it has stored")


PUSHED = """#include "mbarrier.cuh"
#include "cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) exchange(u32* out) {
    __shared__ u32 slot[32];
    __shared__ u64 full, empty;
    u32 t = threadIdx.x, other = cluster_rank() ^ 1, value = t;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 32);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    for (int i = 0; i < 4; i++) {
        if (t == 0) ARRIVE_EXPECT(&full, sizeof slot);
        PUT_ASYNC(peer(&slot[31 - t], other), value + i, peer(&full, other));
        WAIT_CLUSTER(&full, i & 1);
        value = slot[t];
        ARRIVE_THERE(peer(&empty, other));
    }
    out[blockIdx.x * 32 + t] = value;
    CLUSTER_SYNC();
}
"""


def test_an_empty_mbarrier_that_nobody_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.cu").write_text(PUSHED)
    kernel = consan.Kernel(tmp_path / "k.cu", arch="sm_90a", include_dirs=[str(Path(__file__).parent)])

    def said() -> str:
        return consan.launch(kernel, 2, 32, [np.zeros(64, np.uint32)], device="cpu").findings[0].message

    assert "no instruction waits for empty, on which the" in said()
    rest = tuple(rule for rule in culprits.RULES if rule.find is not heard_by_nobody)
    monkeypatch.setattr(culprits, "RULES", rest)
    assert "no instruction waits for empty" not in said()
