"""Both engines find the same in every kernel of tests/kernels that the recording engine takes, and in no other is its name claimed.

recorded.txt lists what it takes: a kernel that it ceases to take, or begins to, fails a test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from record_support import KERNELS, file_of, found, launch, recorded, twin_file

import consan
from consan.instrument.record import record

TAKEN = (Path(__file__).parent / "recorded.txt").read_text().split()
TWINS = [name for name in TAKEN if (KERNELS / "twins" / f"{name}.cu").is_file()]
# Where the engines differ in some schedules, and who is right. All are racy, and both engines report them.
DIFFER = {
    "barrier_token_not_waited": "both: which of two arrivals finds the phase over depends on the schedule",
    "cluster_atomics_cta_scope": "record: scopes of accesses to shared memory are a kind of their own",
    "cluster_multicast_before_init": "both: whether the peer has its barrier when the bytes come is luck",
    "cluster_superseded_phase": "both: the read comes before the load or behind its issue",
    "mbarrier_count_of_one_warp": "record: bytes that a phase does not expect are named at their copy alone",
    "mbarrier_warp_waits": "both: whether the read comes before the load is luck, and record explains the uninitialised read by the load",
    "bulk_loads_one_waited": "record: who has waited for none of the fills lacks a wait, so a refill is no race",
    "cluster_pair_multicast": "both, likewise; record explains the uninitialised read by the load",
    "wgmma_stage_refilled_early": "record: nothing orders the load behind the issue of the product, so it is a race",
    "wgmma_rows_of_other_warp": "record: nothing orders the write and the issue of the product, so it is a race, and no wait lacks",
    "wgmma_rows_transposed": "record, likewise",
    "bulk_load_producer_phase": "both: which of the phases is waited for twice depends on the schedule",
    "mbarrier_empty_not_waited": "both, likewise",
    "bulk_bytes_not_announced": "record: what follows from the bytes that nobody announced is left out",
    "cluster_histogram_no_atomics": "both: which values the stores have depends on the schedule",
    "cluster_st_async_bytes_short": "record: it names the copy that is in flight at the end, and its missing wait, too",
    "cluster_product_released_cta": "record: it tells the arrivals of both CTAs",
    "nvfuser_split_k_epilogue": "record: it tells the missing wait in global memory, too",
    "bulk_store_no_barrier": "both: whether the write comes before the copy or while it is in flight is luck",
    "cp_async_refill_too_early": "both: nothing orders the issue and the read, so it is a race and a missing wait; record tells one",
    "cp_async_wait_no_barrier": "both, likewise",
    "atomic_after_plain_init": "record: the uninitialised read is explained by the unordered store, whichever comes first",
    "divergent_syncthreads": "both: behind the divergent barrier the behaviour is undefined, and inline may tell a race from there",
    "histogram_no_atomics": "record: it compares the values of all pairs of stores, inline those of neighbours",
    "mbarrier_inval_before_others": "record: in one of its orders the wait comes behind the inval",
    "mbarrier_one_lane_waits": "both, as cluster_pair_multicast: record explains the uninitialised read by the load",
    "mbarrier_noinc_not_counted": "both: which phase a copy falls into is luck",
    "mbarrier_not_initialised": "record: a wait that never returned true is not in the log",
    "mbarrier_used_as_data": "record: it tells each use of the bytes as data",
    "mbarrier_result_ignored": "record: it tells the read that comes before the load, too",
    "mixed_size_atomics": "record: each of two read-modify-writes is performed as a whole, so it is a warning",
    "named_barrier_counts_disagree": "record: inline has lost one of the two sites, and does not see the deadlock in each schedule",
    "named_barrier_counts_of_two_rounds": "both: which arrivals share a round of the barrier is luck",
    "named_barrier_shared_id": "both: which warps share a round of the barrier is luck; inline tells a race of its schedule besides",
    "named_barrier_too_many_warps": "record: it tells a race of one of its two orders besides",
    "bulk_load_refills_single_buffer": "record: the read has waited for each phase that fills its bytes, so no wait lacks",
    "cluster_gather_not_handed_back": "both: whether the read comes before the copy or while it is in flight is luck",
    "lanes_exchange_in_turns": "both: which of the two exchanges the lanes of a branch are named at",
    "mbarrier_second_consumer_stale": "both: whether the stale arrival falls into a phase that is full is luck",
    "mbarrier_unrolled_turns": "both: inline names the initialisation besides",
    **dict.fromkeys(
        ("ring_parity_constant_in_structure", "ring_parity_of_lap_in_structure"), "both, at the copy; inline names the arrival besides"
    ),
}
# Twins whose finding called hooks miss, and one twin that has its header's kind only where global memory is recorded.
RECORDED_ONLY = {
    "bulk_bytes_of_one_copy": "bytes that the next phase expects, and that come in this one, are not looked at",
    "bulk_bytes_announced_alone": "whether the phase is over before the second copy has come is luck",
    "cluster_completion_cta_scope": "the scope of a wait for a completion (D5) is not looked at",
    "cluster_pushed_then_stored": "asynchronous operations of two CTAs need no fence (D4)",
    "cluster_push_restricted_fence": "restricted fences make the report incomplete",
    "cluster_red_async_of_two_sizes": "updates of other sizes are taken for one update",
    "cluster_st_async_then_push": "st.async is taken for an operation of the async proxy",
    "cluster_arrived_twice": "arrivals at the cluster's barrier are not counted for each thread",
    "cluster_wait_cta_scope_no_fence": "what lacks besides the scope is not looked at",
    "ldmatrix_of_own_copy": "a row belongs to the lane that gives its address",
    "ldmatrix_own_row": "a row belongs to the lane that gives its address",
    **dict.fromkeys(
        (
            "cluster_multicast_beside_store",
            "cluster_push_added_beside_cta_atomic",
            "cluster_push_added_beside_strong_store",
            "cluster_pushes_of_two_ctas",
            "cluster_red_async_beside_cta_atomic",
            "cluster_st_async_beside_store",
            "cluster_st_async_freed_early",
            "cluster_st_async_of_two_ctas",
        ),
        "copies of two CTAs, and accesses beside them, are not compared by where they are issued",
    ),
    **dict.fromkeys(
        ("bulk_store_arrive_before_fill", "bulk_store_source_next_round", "cp_async_beside_store"),
        "what is unordered with the issue of a copy is found by luck",
    ),
    **dict.fromkeys(("mbarrier_arrivals_left", "mbarrier_count_too_small"), "arrivals of one turn in two phases"),
    "mbarrier_arrives_unwaited": "that no thread waits for a phase (D11)",
    "mbarrier_empty_arrived_by_lane": "a warp is one thread where it arrives",
    "mbarrier_one_lane_arrives": "a warp is one thread where it arrives",
    "mbarrier_parity_constant": "whether the read comes before the copy is luck, and a race is named in place of a missing wait",
    "mbarrier_poll_gives_up": "a wait orders whether its result is used or not",
    "mbarrier_test_ignored": "a wait orders whether its result is used or not",
    "divergent_syncwarp_in_function": "joins behind calls",
    "shuffle_from_exited_lane": "values that a shuffle does not have are not looked at",
    "shuffle_from_lane_of_no_thread": "values that a shuffle does not have are not looked at",
    "shuffles_of_half_a_warp": "values that a shuffle does not have are not looked at",
    "shuffle_from_lane_outside_mask": "values that a shuffle does not have are not looked at",
    "shuffle_not_in_mask": "masks of shuffles, votes and matches are not held against the lane that executes them",
    "stmatrix_of_bytes": "hooks do not follow matrices of bytes",
    "stmatrix_own_row": "a row belongs to the lane that gives its address",
    "syncthreads_in_two_branches": "calls of __syncthreads() are not distinguished",
    "syncthreads_in_two_branches_of_a_loop": "calls of __syncthreads() are not distinguished",
    "syncthreads_out_of_step": "calls of __syncthreads() are not distinguished",
    "syncthreads_trip_counts": "calls of __syncthreads() are not distinguished",
    "volatile_broadcast_by_the_last_lane": "strong accesses in no order are not compared",
    "volatile_broadcast_in_a_warp": "strong accesses in no order are not compared",
    "volatile_reduce_between_warps": "strong accesses in no order are not compared",
    "volatile_warp_tail": "strong accesses in no order are not compared",
    "wgmma_operand_of_two_groups": "the product of another warpgroup is named as a missing wait",
    "wgmma_sparse_footprint": "hooks do not follow sparse products",
    "wgmma_sparse_operand_overwritten": "hooks do not follow sparse products",
    "wmma_generic_address": "wmma is not modelled",
    "wmma_no_barrier": "wmma is not modelled",
    "write_before_exit": "a thread that has exited is taken to have arrived",
}
SAMPLE = ("raw", "war_loop", "histogram_no_atomics", "named_barrier_partial", "divergent_syncthreads", "uninitialized_tail")
SAMPLE += ("mbarrier_init_by_all_lanes",)

# Launches that name no engine are recorded ones, too, and kernels/test_twins.py has those of all kernels: here a few are quick.
SAMPLED = [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in TAKEN]
SAMPLED_TWINS = [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in TWINS]


@pytest.mark.slow
def test_what_is_taken() -> None:
    names = [path.stem for folder in ("twins", "clean") for path in sorted((KERNELS / folder).glob("*.cu"))]
    assert [name for name in dict.fromkeys(names) if _is_taken(name)] == TAKEN


def _is_taken(name: str) -> bool:
    forms = (False, True) if (KERNELS / "twins" / f"{name}.cu").is_file() else (False,)
    return all(recorded(name, racy) is not None for racy in forms)


def _check_racy(name: str, device: str) -> None:
    spec = twin_file.read(file_of(name))
    report, _ = launch(name, True, "record", device=device, global_memory="auto")
    assert {kernel.engine for kernel in report.kernels} == {"record"}
    kinds = {(finding.kind, finding.severity) for finding in report.findings}
    for expected in spec.expected:
        assert any((kind, expected.severity) in kinds for kind in expected.kinds), (expected, kinds)
    allowed = {kind for one in (*spec.expected, *spec.allowed) for kind in one.kinds}
    assert {kind for kind, _ in kinds} <= allowed


def _check_clean(name: str, device: str) -> None:
    spec = twin_file.read(file_of(name))
    report, args = launch(name, False, "record", device=device, global_memory="auto")
    assert (report.verdict, [each for each in report.findings if each.severity != "note"]) == ("clean", [])
    for result in spec.results:
        expected = spec.reference(result)
        np.testing.assert_array_equal(args[result].reshape(expected.shape), expected)


@pytest.mark.parametrize("name", SAMPLED_TWINS)
def test_the_racy_twin_is_reported_as_its_header_says(name: str) -> None:
    _check_racy(name, "cpu")


@pytest.mark.parametrize("name", SAMPLED)
def test_the_correct_kernel_is_clean_and_computes_the_same(name: str) -> None:
    _check_clean(name, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TAKEN)
def test_on_a_gpu(name: str, gpu: None) -> None:
    spec = twin_file.read(file_of(name))
    if "gpu" not in spec.backends:
        pytest.skip("undefined behaviour on a chip")
    _check_clean(name, "gpu")
    if name in TWINS:
        _check_racy(name, "gpu")


@pytest.mark.parametrize("name", SAMPLE)
def test_the_engines_find_the_same(name: str) -> None:
    inline, _ = launch(name, True, "inline")
    report, _ = launch(name, True, "record")
    assert (found(report), report.verdict) == (found(inline), inline.verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [name for name in TWINS if name not in RECORDED_ONLY])
def test_the_engines_find_the_same_in_every_schedule(name: str, seed: int) -> None:
    inline, _ = launch(name, True, "inline", seed)
    report, _ = launch(name, True, "record", seed)
    if name in DIFFER:
        kinds = {kind for one in twin_file.read(file_of(name)).expected for kind in one.kinds}
        assert all(kinds & {one.kind for one in each.findings} for each in (report, inline))
    else:
        assert (found(report), report.verdict) == (found(inline), inline.verdict)


@pytest.mark.parametrize("racy", [False, True])
@pytest.mark.parametrize("name", ["flag_handshake", "mbarrier_init_not_published"])
def test_polls_of_shared_memory_are_recorded_with_global_memory(name: str, racy: bool) -> None:
    inline, _ = launch(name, racy, "inline")
    report, _ = launch(name, racy, "record", global_memory="on")
    assert {kernel.engine for kernel in report.kernels} == {"record"}
    assert (found(report), report.verdict) == (found(inline), inline.verdict)
    assert report.verdict == ("violations" if racy else "clean")


@pytest.mark.parametrize("racy", [False, True])
@pytest.mark.parametrize("name", ["tensormap_changed_in_flight", "tensormap_not_acquired", "tensormap_stored_not_fenced"])
def test_maps_in_global_memory_are_checked_without_it(name: str, racy: bool) -> None:
    """Without global memory called hooks follow such maps (R-B7), and so do logs."""
    inline, _ = launch(name, racy, "inline")
    report, _ = launch(name, racy, "record")
    assert {kernel.engine for kernel in report.kernels} == {"record"}
    assert (found(report), report.verdict) == (found(inline), inline.verdict)
    assert report.verdict == ("violations" if racy else "clean")
    assert report.not_checked[0].startswith("global-memory: races are not looked for")


GRID_BARRIER = """
extern "C" __global__ void kernel(unsigned* count, float* out) {
    __shared__ float tile[64];
    unsigned t = threadIdx.x, seen;
    tile[t] = blockIdx.x + t;
    BARRIER;
    if (t == 0) {
        atomicAdd(count, 1);
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory"); while (seen != gridDim.x);
    }
    out[blockIdx.x * 64 + t] = tile[63 - t];
}
"""


@pytest.mark.parametrize(("barrier", "kinds"), [("", {"data-race"}), ("__syncthreads()", set())], ids=["racy", "repaired"])
def test_polls_of_global_memory_are_recorded_without_it(barrier: str, kinds: set[str]) -> None:
    """Each round of such a poll leaves nothing in a log of shared memory, and CTAs have that for themselves."""
    kernel, out = consan.Kernel(GRID_BARRIER.replace("BARRIER", barrier), "kernel", arch="sm_80"), np.zeros(256, np.float32)
    report = consan.launch(kernel, 4, 64, [np.zeros(1, np.uint32), out], device="cpu", engine="record", global_memory="off")
    assert ([each.engine for each in report.kernels], {one.kind for one in report.findings}) == (["record"], kinds)
    if barrier:
        np.testing.assert_array_equal(out.reshape(4, 64), np.arange(4)[:, None] + np.arange(63, -1, -1))


@pytest.mark.parametrize(("access", "why"), [("atomicExch(count, 1)", "polls memory in a loop"), ("atomicAdd(count, 1)", "")])
def test_rounds_that_are_in_the_log(access: str, why: str) -> None:
    """With a bulk load in the module, atomics on global memory are in the log: one that counts is no poll."""
    bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
    kernel = consan.Kernel(
        f"""extern "C" __global__ void kernel(unsigned* count, float* x) {{
        __shared__ float tile[32]; __shared__ unsigned long long full;
        unsigned to = (unsigned)__cvta_generic_to_shared(tile), barrier = (unsigned)__cvta_generic_to_shared(&full);
        asm volatile("{bulk}" ::"r"(to), "l"(x), "r"(barrier) : "memory");
        while ({access} < 9) x[threadIdx.x] += 1;
    }}""",
        "kernel",
        arch="sm_90a",
    )
    with_global = record(kernel.ptx).global_races  # a poll needs the order that only such a log has
    assert with_global is bool(why)


NEVER_SET = """
extern "C" __global__ void waits(float* out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x >= 32) POLL;
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize("poll", ["while (!ready)", "while (!ready) __nanosleep(20)", "while (!atomicAdd((int*)&ready, 0))"])
def test_a_flag_that_nobody_sets_is_a_deadlock(poll: str) -> None:
    """The rounds of a poll leave one in the log."""
    kernel = consan.Kernel(NEVER_SET.replace("POLL", poll), "waits", arch="sm_80")
    report = consan.launch(kernel, 2, 64, [np.zeros(128, np.float32)], device="cpu", engine="record")
    assert [each.engine for each in report.kernels] == ["record"]
    assert ({one.kind for one in report.findings}, report.verdict) == ({"deadlock"}, "violations")


@pytest.mark.parametrize(("racy", "verdict"), [(True, "violations"), pytest.param(False, "clean", marks=pytest.mark.slow)])
def test_threads_that_synchronise_through_memory_are_recorded_without_a_look_at_global_memory(racy: bool, verdict: str) -> None:
    report, _ = launch("flag_handshake", racy, "auto")
    assert ({kernel.engine for kernel in report.kernels}, report.verdict) == ({"record"}, verdict)
    assert "global-memory" not in report.checked
