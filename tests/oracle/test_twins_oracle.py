"""The oracle on the kernels of tests/kernels: what is racy it reports, what is repaired or merely looks racy it does not.

So the oracle is held against expectations that people wrote, so that an agreement with consan means something.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import twin_file
from oracle_run import oracle
from oracle_verdict import UNINIT, Verdict

KERNELS = Path(__file__).parents[1] / "kernels"
TWINS = sorted([*(KERNELS / "twins").glob("*.cu"), *(KERNELS / "global").glob("*.cu")])
CLEAN = sorted([*(KERNELS / "clean").glob("*.cu"), *(KERNELS / "global" / "clean").glob("*.cu")])
NOT_SEEN = {
    **dict.fromkeys(
        ("crossed_guard_a_store", "crossed_exchanges", "crossed_fence_of_one_side", "crossed_bits", "crossed_claims"), "stores behind looks"
    ),
    **dict.fromkeys(("peterson_between_ctas", "peterson_in_a_loop", "crossed_guard_in_shared", "dekker_no_fence"), "stores behind looks"),
    **dict.fromkeys(("multi_warp_tile", "shuffle_of_a_tile"), "memory that is reserved for cooperative groups"),
    **dict.fromkeys(("surface_sums_of_ctas", "surface_handed_to_next_cta", "surface_within_a_cta"), "surfaces"),
    "grid_barrier_goal_too_low": "in its schedule no CTA runs ahead of the others",
    "texture_beside_store": "textures",
    "texture_of_other_elements": "textures",
    "cluster_push_added_beside_strong_store": "it takes a bulk reduction for an access through the generic proxy",
    "named_barrier_no_such_number": "a barrier that does not exist: undefined",
    "named_barrier_part_of_a_warp": "a thread count that is no multiple of 32: undefined",
    "nc_load_beside_store": "the oracle says data-race, within a CTA: test_global_programs.py",
    "deadlock_flag_set_too_late": "a loop that never ends, which only the machine with hooks stops",
    **dict.fromkeys(("cluster_push_restricted_fence", "restricted_fences"), "it takes a fence of one window for a fence of all"),
    "bulk_result_loaded_by_peer": "policy isa",
    "cluster_completion_cta_scope": "policy isa",
    "cluster_pushed_then_stored": "policy isa",
    "cluster_st_async_bytes_short": "it reports the store that nobody waits for, and counts no bytes",
    "cluster_arrived_twice": "a second arrival in one phase: undefined",
    "bulk_reductions_of_two_sizes_in_flight": "it reports a missing wait before the second operation",
    "bulk_bytes_last_tile": "bytes left at the end: it tells the copy that nobody waits for",
    **dict.fromkeys(("bulk_bytes_announced_alone", "bulk_bytes_announced_by_lanes"), "it counts no bytes that are to come"),
    **dict.fromkeys(
        ("bulk_bytes_expected_twice", "bulk_bytes_of_one_copy", "cluster_bytes_announced_late"), "it counts no bytes that are to come"
    ),
    "bulk_refill_no_fence": "policy isa",
    "cp_async_at_exit": "copies in flight at the end",
    "discarded_by_another_cta": "its trace has loads, stores and atomics, and no discard",
    "global_flag_no_proxy_fence": "policy isa",
    "divergent_syncwarp_in_function": "joins behind calls",
    "loads_of_no_use": "values that nobody uses (D26)",
    "mbarrier_arrivals_left": "an arrival in a phase that never ends",
    "mbarrier_poll_gives_up": "the result of a wait is a register",
    "mbarrier_result_ignored": "the result of a wait is a register",
    "mbarrier_test_ignored": "the result of a wait is a register",
    "syncthreads_in_two_branches": "it knows barriers by their numbers, as the ISA does, and not by their calls",
    "syncthreads_in_two_branches_of_a_loop": "the same",
    "syncthreads_out_of_step": "the same",
    "syncthreads_trip_counts": "the same",
    "annotated_region_ends": "annotations",
    "asynchronous_release": "st.async and red.async in global memory",
    "shuffle_not_in_mask": "a lane that its mask lacks: undefined",
    **dict.fromkeys(
        ("shuffle_from_exited_lane", "shuffle_from_lane_of_no_thread", "shuffle_from_lane_outside_mask", "shuffles_of_half_a_warp"),
        "values of lanes that take no part: undefined",
    ),
    "swapped_matrix": "values that nobody uses",
    "sums_of_atomics": "atomics whose result nobody reads (D22)",
    "tensormap_changed_beside_copy": "tensor maps in global memory",
    "tensormap_changed_by_other_cta": "tensor maps in global memory",
    "tensormap_changed_in_flight": "tensor maps in global memory",
    "tensormap_of_other_cta_not_acquired": "tensor maps in global memory",
    "tensormap_of_other_cta_not_released": "tensor maps in global memory",
    "tensormap_not_acquired": "tensor maps in global memory",
    "tensormap_stored_not_fenced": "tensor maps in global memory",
    "mbarrier_arrives_unwaited": "policy isa",
    "tma_epilogue_issuer_fences": "policy isa",
    "vector_neighbour": "values that nobody uses",
    "vector_padding": "values that nobody uses",
    "warp_sync_not_in_mask": "a lane that its mask lacks: undefined",
    "weaker_fences_then_barrier": "policy isa",
    "weaker_fence_of_reader": "policy isa",
    "wmma_generic_address": "accesses of wmma",
    "wmma_no_barrier": "accesses of wmma",
    "wmma_tiles_overlap": "accesses of wmma",
    "global_flag_fence_before_poll": "policy isa",
    "wgmma_copies_no_fence": "policy isa",
    "wgmma_fence_missing": "registers",
    "wgmma_flush_flag": "registers",
    "wgmma_fragment_reused": "registers",
    "wgmma_promoted_before_wait": "registers",
    "wgmma_second_zeroed_late": "registers",
    "wgmma_written_below_fence": "registers",
}
FAULTS = {"trap", "assert"}  # as the virtual machine names them
BY_USE = {
    "annotated_benign_race",
    "multi_warp_tile",
    "annotated_handover",
    "annotated_other_address",
    "annotated_region_ends",
    "annotated_releases_of_two",
    "annotated_shared_handover",
    "annotated_shared_scratch",
    "bulk_stores_of_lanes_differ",
    "async_copies_of_lanes_differ",
    "asynchronous_release",
    "loads_of_no_use",
    "masked_tail",
    "shuffle_of_a_tile",
    "sums_of_lanes",
    "sums_of_lanes_in_halves",
    "sums_of_lanes_in_vectors",
    "wmma_generic_address",
    "wmma_no_barrier",
}  # the repaired form has accesses, too, that the oracle misjudges
# A write needs what lanes have exchanged of the values that they read (R-W1). The oracle knows no values.
BY_EXCHANGE = {"exchange_before_next_read", "exchange_of_other_value", "written_after_exchange"}
# Errors by the ISA, and of the same kind, that are warnings because shipped libraries leave the wait (R-CP5) or the scope (R-SCOPE) out,
# or because the exchange orders them in fact (R-W1), or the value is a guess that is compared (R-RACE).
TOLERATED = {
    *("exchange_by_the_isa", "bulk_store_last_of_pipeline", "cluster_own_stage_released_cta", "cluster_product_released_cta"),
    "guess_of_a_swap",
}
# libcu++ counts the threads that leave a pipeline with one lane per warp: the others' last uses of its barriers are before the
# inval only if a warp is one thread.
BY_WARP = {"cuda_pipeline"}
# A fence.sc of each lane: for data in shared memory, the oracle knows patterns of single threads.
BY_FENCE = {"fence_of_lanes_too_early"}
# The oracle takes an access of a packed type or a vector for one, and a bulk store with a byte mask for one of all bytes.
BY_ELEMENT = {"packed_atomics_shared", "bulk_store_bytes_chosen", "bulk_store_bytes_of_source"}
WARNINGS = {"global_stores_fenced"}  # threads that store one value
QUICK = 16  # one file in so many is quick


def _name(path: Path) -> str:
    return path.stem


def _files(paths: list[Path]) -> list[Any]:
    return [path if number % QUICK == 0 else pytest.param(path, marks=pytest.mark.slow) for number, path in enumerate(paths)]


@functools.cache
def _verdict(path: Path, racy: bool) -> Verdict:
    spec = twin_file.read(path)
    kernel: Any = twin_file.kernel(path, racy)
    return oracle(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, global_memory=True)


@pytest.mark.parametrize("path", _files(TWINS), ids=_name)
def test_racy_twin(path: Path) -> None:
    if path.stem in NOT_SEEN:
        pytest.skip(f"not the oracle's: {NOT_SEEN[path.stem]}")
    spec = twin_file.read(path)
    if {kind for expectation in spec.expected for kind in expectation.kinds} == {"missing-order"}:
        pytest.skip("not the oracle's: strong accesses are no race (R-MO1)")
    verdict = _verdict(path, True)
    kinds = {kind for found in verdict.pairs.values() for kind in found.kinds} | verdict.kinds
    kinds |= {UNINIT} if verdict.maybe_uninitialized else set()
    kinds |= {"barrier-misuse"} if verdict.divergences else set()
    kinds |= {"fault"} if kinds & FAULTS else set()
    for expectation in spec.expected:
        assert kinds & set(expectation.kinds), f"{expectation}: the oracle has {verdict}"
    errors = path.stem in TOLERATED or any(expectation.severity == "error" for expectation in spec.expected)
    assert verdict.clean != errors


@pytest.mark.parametrize("path", _files([*TWINS, *CLEAN]), ids=_name)
def test_repaired_or_legal(path: Path) -> None:
    if path.stem in BY_USE:
        pytest.skip(f"not the oracle's: {NOT_SEEN.get(path.stem, 'annotations, and stores of one source')}")
    if path.stem in BY_EXCHANGE | BY_WARP | BY_FENCE | BY_ELEMENT:
        pytest.skip("not the oracle's: lanes that only their values, their fences, or libcu++'s count of warps, order; elements")
    verdict = _verdict(path, False)
    assert verdict.clean, verdict
    assert not verdict.pairs or path.stem in WARNINGS
