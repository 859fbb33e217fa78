"""Mutants of the clean real kernels that are silent, or warned of only, and why (`mutations.py`).

`equivalent`: no execution differs. Others are silent by decision, at this size, or since it is not looked at. What ought to be reported
and is not begins with `missed:`.
"""

from __future__ import annotations

ONE_WARP_STANDS_FOR_ALL = (
    "by decision: a stage is free when one warp of each warpgroup has waited for its products, as shipped pipelines have it (operation.cuh)"
)
SEVEN_OF_EIGHT = "at this size, by the same decision: seven of eight warps free a stage; in 40 steps phases run ahead, which is reported"
BARRIER_OPERAND_IS_GENERIC = "equivalent: the CTA barrier publishes the mbarriers, and copies reach theirs through the generic proxy (D15)"
WITHIN_A_WARP = "by decision: what lanes of one warp do to each other is a warning"
OWN_WAIT = "by decision: a warp writes over what its own wait has seen free, while other warps of its warpgroup may be behind: a warning"
INIT_FENCE = "equivalent: there is no other CTA in the cluster, and the CTA barrier publishes the mbarriers"
STEPS = (
    "equivalent: one of several barriers of the CTA with only one thread's steps between them (init, expect, copy, inval); "
    "the next or the last one orders the same accesses"
)
MAP_STEPS = "equivalent: one of several barriers of the CTA with only one warp's steps between them (tensor maps); a later one orders them"
NO_COPIES = "equivalent: no bulk copy has been issued, so there is nothing to commit and to wait for"
LOOP = "equivalent: one of three or four barriers in each round; another one stands between the same wait and the copy that follows it"
UNTOUCHED = "equivalent: nothing has touched the buffer before that is filled next"
AT_THE_END = "equivalent: nothing follows in shared memory"
SAME_LANE = "equivalent: the lane that goes on has itself waited, and no other lane does anything between"
IN_FLIGHT = "by decision: copies that read nothing, and write zeros to what nobody uses again, may be in flight at the end (BOUNDS.md, B16)"
PREVIOUS_ROUND = "equivalent: the stage that is filled was read a round before; the barrier between is after all warps' waits for that"
FEWER_GROUPS = "equivalent: two copies that are waited for together get one group"
UNUSED = "equivalent: nobody waits for this barrier where there is no C to load"
PRODUCER_TAIL = "equivalent: the producer's last waits keep its CTA for arrivals from others of a cluster, and there is none"
CHAINED = "equivalent: the accumulators go on from one product into the next and are not touched between (ISA wgmma.fence)"
OTHER_HALF = "equivalent: what follows goes into the other half of the buffer, from which no store is in flight"
OTHER_WAY = "equivalent: that the issuing lane has waited reaches its warp by way of the other warpgroup, too"
REGISTERS = "equivalent: only registers, and each thread's own data, are touched between this barrier and another of the same threads"
OVER_ITS_OWN = "equivalent: each thread writes over what it alone has read"
OWN = "equivalent: the thread that reads after it reads what it has written itself"
NEXT_ROUND = "equivalent: what is read before it is written again only after the next round's other barriers"
ONE_THREAD = "equivalent: of the CTA, only the thread that itself signals, or waits for, the other CTAs touches memory before and after"
NOTHING_LEFT = "equivalent: the groups that are waited for are empty by then"
LAST_STORE = "by decision: the thread has waited for earlier bulk stores, and not for the last one before its CTA exits (R-CP5)"
OTHER_OF_TWO = "equivalent: the next barrier of all threads orders the same; that these threads end makes up for the one that is missing"
GLOBAL = "not looked at: races in global memory"
OUTSIDE = (
    "at this size: the second half of the last tile lies outside of the matrix, so its store moves nothing; with 128 columns: reported"
)


def _each(reason: str, name: str, *numbers: int | str) -> dict[str, str]:
    return {name.format(number): reason for number in numbers}


def _barriers(reason: str, *numbers: int) -> dict[str, str]:
    return _each(reason, "barrier {} removed", *numbers)


COPIES_IN_A_RING = {**_barriers(UNTOUCHED, 1), "copy commit 1 removed": FEWER_GROUPS, "copy wait 2 +1": IN_FLIGHT}

# kernel -> mutant -> why it is silent
SURVIVORS: dict[str, dict[str, str]] = {
    "triton/matmul": COPIES_IN_A_RING,
    "triton/matmul_small": COPIES_IN_A_RING,
    "nvrtc/block_reduce": {"warp barrier 1 removed": REGISTERS},
    "nvrtc/block_scan": _barriers(NEXT_ROUND, 8),
    "nvrtc/block_merge_sort": _barriers(REGISTERS, 1),
    "nvrtc/cp_async_pipeline": _each(NOTHING_LEFT, "copy wait 2 {}", "removed", "+1"),
    "nvrtc/cooperative_grid": {
        **_barriers(ONE_THREAD, 2, 3),
        **_each(GLOBAL, "release 1 {}", "relaxed", "of the CTA"),
        **_each(GLOBAL, "acquire 1 {}", "relaxed", "of the CTA"),
    },
    "cupy/jit_sum": _barriers(OWN, 9),
    "numba/block_sum": _barriers(OWN, 9),
    "nvrtc/tma_gemm": {
        **_each(SEVEN_OF_EIGHT, "count {} -1", 2, 4, 6, 8),
        "fence 1 removed": INIT_FENCE,
    },
    "nvrtc/bulk_pipeline": {"proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC},
    "triton_hopper/matmul_2_stages": {
        **_each(FEWER_GROUPS, "copy commit {} removed", 1, 3),
        "copy wait 2 +1": IN_FLIGHT,
    },
    "triton_hopper/matmul_transposed": {**_barriers(UNTOUCHED, 1), "copy commit 1 removed": FEWER_GROUPS},
    "triton_hopper/matmul_3_stages": COPIES_IN_A_RING,
    "triton_hopper/matmul_bf16": COPIES_IN_A_RING,
    "triton_hopper/matmul_fp8": COPIES_IN_A_RING,
    "triton_hopper/matmul_tf32": COPIES_IN_A_RING,
    "triton_hopper/matmul_int8": {
        **_barriers(UNTOUCHED, 1),
        "copy commit 1 removed": FEWER_GROUPS,
        **_barriers(PREVIOUS_ROUND, 3),
    },
    "triton_hopper/matmul_persistent": {
        **_barriers(UNTOUCHED, 1),
        **_each(IN_FLIGHT, "copy wait 2 {}", "removed", "+1"),
        **_barriers(AT_THE_END, 6),
    },
    "triton_hopper/matmul_persistent_tma": {
        **_barriers(STEPS, *range(4, 12), 18, 19, 20),
        **_barriers(LOOP, *range(12, 16)),
        **_each(NOTHING_LEFT, "wgmma wait 3 {}", "removed", "+1"),
    },
    "triton_hopper/matmul_device_tma": {
        **_each(NO_COPIES, "bulk commit {} removed", 1, 2, 3),
        **_each(NO_COPIES, "bulk wait {} removed", 1, 2, 3),
        **_each(NO_COPIES, "bulk wait {} +1", 1, 2, 3),
        **_barriers(MAP_STEPS, *range(1, 6)),
        **_barriers(STEPS, *range(6, 14), 18, 19, 20),
        **_barriers(LOOP, *range(14, 18)),
        **_barriers(AT_THE_END, 22),
    },
    "triton_hopper/attention": COPIES_IN_A_RING,
    "triton_hopper/attention_causal": {
        **_each(FEWER_GROUPS, "copy commit {} removed", 1, 3),
        "copy wait 2 +1": IN_FLIGHT,
    },
    "gluon_hopper/matmul_specialised_8_warps": {
        **_barriers(STEPS, 1, 2, 3, 12, 13, 14),
        "proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC,
        **_barriers(LOOP, 6),
        **_barriers(UNTOUCHED, 8),
        **_barriers(AT_THE_END, 10, 11),
        **_each(SAME_LANE, "warp barrier {} removed", 1, 2, 3),
    },
    "gluon_hopper/scale_in_place": {
        **_barriers(STEPS, 1, 2, 5),
        **_barriers(OVER_ITS_OWN, 6),
        **_barriers(SAME_LANE, 8),
        **_each(SAME_LANE, "warp barrier {} removed", 1, 2),
        "proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC,
        **_barriers(OTHER_OF_TWO, 9),
    },
    "triton_hopper/matmul_4_stages": {
        **_barriers(UNTOUCHED, 1, 2),
        "copy commit 1 removed": FEWER_GROUPS,
        "copy wait 2 +1": IN_FLIGHT,
    },
    "triton_hopper/matmul_host_tma": {
        **_barriers(STEPS, *range(1, 9), 13, 14, 15),
        **_barriers(LOOP, *range(9, 13)),
        **_barriers(AT_THE_END, 17),
    },
    "triton_hopper/matmul_host_tma_4_stages": {
        **_barriers(STEPS, *range(1, 13), *range(17, 21)),
        **_barriers(LOOP, *range(13, 17)),
        **_barriers(AT_THE_END, 22),
    },
    "triton_hopper/attention_tma": {
        **_barriers(STEPS, 1, 2, 3, *range(5, 13), *range(16, 21)),
        **_barriers(LOOP, 13, 14, 15),
    },
    "gluon_hopper/matmul_pipelined": {
        **_barriers(STEPS, *range(1, 13), *range(17, 21)),
        **_barriers(LOOP, *range(13, 17)),
        **_barriers(AT_THE_END, 22),
        "proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC,
    },
    "gluon_hopper/matmul_specialised": {
        **_barriers(STEPS, 1, 2, 11, 12),
        "proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC,
        **_barriers(LOOP, 5),
        **_barriers(ONE_WARP_STANDS_FOR_ALL, 6),
        **_barriers(UNTOUCHED, 7),
        **_barriers(AT_THE_END, 9, 10),
        **_each(SAME_LANE, "warp barrier {} removed", 1, 2, 3),
    },
    "cutlass/gemm_pingpong": {
        **_each(INIT_FENCE, "fence {} removed", 1, 2, 3, 4),
        **_each(UNUSED, "count {} +1", *range(27, 33)),
        **_each(UNUSED, "count {} -1", *range(27, 32)),
        "arrival 5 removed": UNUSED,
        "wgmma fence 2 removed": CHAINED,
        "bulk wait 1 removed": OTHER_HALF,
        "bulk wait 1 +1": OTHER_HALF,
        **_barriers(OTHER_HALF, 3),
        **_each(OTHER_WAY, "bulk {}", "commit 1 removed", "wait 2 removed", "wait 2 +1"),
        **_barriers(OTHER_WAY, 5),
        **_each(PRODUCER_TAIL, "mbarrier wait {} true at once", *range(8, 21)),
    },
    "cutlass/gemm_cooperative": {
        **_each(INIT_FENCE, "fence {} removed", 1, 2, 3),
        **_each(UNUSED, "count {} +1", *range(17, 23)),
        **_each(UNUSED, "count {} -1", *range(17, 22)),
        "arrival 1 removed": UNUSED,
        "wgmma fence 2 removed": CHAINED,
        **_each(PRODUCER_TAIL, "mbarrier wait {} true at once", *range(2, 10)),
        "bulk wait 3 removed": OUTSIDE,
        "bulk wait 3 +1": OUTSIDE,
    },
}

# kernel -> mutant -> why it is warned of only
WARNED: dict[str, dict[str, str]] = {
    "nvrtc/tma_gemm": _each(LAST_STORE, "bulk wait 2 {}", "removed", "+1"),
    "triton_hopper/matmul_2_stages": _barriers(OWN_WAIT, 2),
    "triton_hopper/matmul_device_tma": _each(WITHIN_A_WARP, "warp barrier {} removed", 1, 2, 3),
    "triton_hopper/attention": _barriers(OWN_WAIT, 3),
    "triton_hopper/attention_causal": _barriers(OWN_WAIT, 2),
    "triton_hopper/matmul_4_stages": _barriers(OWN_WAIT, 4),
    "triton_hopper/matmul_transposed": _barriers(OWN_WAIT, 3),
    "triton_hopper/matmul_bf16": _barriers(OWN_WAIT, 3),
    "triton_hopper/matmul_fp8": _barriers(OWN_WAIT, 3),
    "triton_hopper/matmul_tf32": _barriers(OWN_WAIT, 3),
    "triton_hopper/matmul_persistent": _barriers(OWN_WAIT, 4),
}

# Kernel -> mutants that are reported in some schedules only: those in which a volatile load comes before the store.
LATER = {"nvrtc/block_scan": ("barrier 7 removed",), "nvrtc/block_merge_sort": ("barrier 5 removed",)}


def reason_of(kernel: str, mutant: str) -> str:
    """Why a mutant is not reported."""
    return next((table[kernel][mutant] for table in (SURVIVORS, WARNED) if mutant in table.get(kernel, {})), "not known")
