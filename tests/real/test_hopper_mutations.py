"""The clean Hopper kernels with one synchronisation instruction less (`hopper_mutations.py`): each is reported, or it is said here why not.

Quick: of the kernels that need no other compiler, one mutant for each place in the source, in schedule 0 (QUICK). Slow: all mutants of the
kernels in SURVIVORS, which says why those are silent that are: `equivalent`, or by which decision. What ought to be reported and
is not begins with `missed:`. An error counts; what is warned of only is in WARNED.
"""

from __future__ import annotations

import pytest
from hopper_cases import ARCH
from hopper_mutations import CLEAN, Mutant, class_of, mutants, outcome, reached, run
from real_run import ptx_of

ONE_WARP_STANDS_FOR_ALL = (
    "by decision: a stage is free when one warp of each warpgroup has waited for its products, as shipped pipelines have it (operation.cuh)"
)
SEVEN_OF_EIGHT = "at this size, by the same decision: seven of eight warps free a stage; in 40 steps phases run ahead, which is reported"
BARRIER_OPERAND_IS_GENERIC = "equivalent: the CTA barrier publishes the mbarriers, and copies reach theirs through the generic proxy (D15)"
INIT_FENCE = "equivalent: there is no other CTA in the cluster, and the CTA barrier publishes the mbarriers"
STEPS = (
    "equivalent: one of several barriers of the CTA with only one thread's steps between them (init, expect, copy, inval); "
    "the next or the last one orders the same accesses"
)
LOOP = "equivalent: one of three or four barriers in each round; another one stands between the same wait and the copy that follows it"
UNTOUCHED = "equivalent: nothing has touched the buffer before that is filled next"
AT_THE_END = "equivalent: nothing follows in shared memory"
SAME_LANE = "equivalent: the lane that goes on has itself waited, and no other lane does anything between"
EMPTY = "equivalent: the group that may still be in flight writes what nobody uses again"
FEWER_GROUPS = "equivalent: two copies that are waited for together get one group"
UNUSED = "equivalent: nobody waits for this barrier where there is no C to load"
PRODUCER_TAIL = "equivalent: the producer's last waits keep its CTA for arrivals from others of a cluster, and there is none"
CHAINED = "equivalent: the accumulators go on from one product into the next and are not touched between (ISA wgmma.fence)"
OTHER_HALF = "equivalent: what follows goes into the other half of the buffer, from which no store is in flight"
OTHER_WAY = "equivalent: that the issuing lane has waited reaches its warp by way of the other warpgroup, too"
OUTSIDE = (
    "at this size: the second half of the last tile lies outside of the matrix, so its store moves nothing; with 128 columns: reported"
)


def _each(reason: str, name: str, *numbers: int | str) -> dict[str, str]:
    return {name.format(number): reason for number in numbers}


def _barriers(reason: str, *numbers: int) -> dict[str, str]:
    return _each(reason, "barrier {} removed", *numbers)


# kernel -> mutant -> why it is silent
SURVIVORS: dict[str, dict[str, str]] = {
    "nvrtc/tma_gemm": {
        **_each(SEVEN_OF_EIGHT, "count {} -1", 2, 4, 6, 8),
        "fence 1 removed": INIT_FENCE,
    },
    "nvrtc/bulk_pipeline": {"proxy fence 1 removed": BARRIER_OPERAND_IS_GENERIC},
    "triton_hopper/matmul_4_stages": {
        **_barriers(UNTOUCHED, 1, 2),
        "copy commit 1 removed": FEWER_GROUPS,
        "copy wait 2 +1": EMPTY,
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
        **_each(UNUSED, "count {} -1", *range(27, 33)),
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
        **_each(UNUSED, "count {} -1", *range(17, 23)),
        "arrival 1 removed": UNUSED,
        "wgmma fence 2 removed": CHAINED,
        **_each(PRODUCER_TAIL, "mbarrier wait {} true at once", *range(2, 10)),
        "bulk wait 3 removed": OUTSIDE,
        "bulk wait 3 +1": OUTSIDE,
    },
}

# kernel -> mutants that are warned of only
WARNED = {
    # A warp refills what its own wait has seen free; the other warps of its warpgroup may be behind.
    "triton_hopper/matmul_4_stages": {"barrier 4 removed"},
}

# In the quick tier: mutants whose names end so.
QUICK = {
    "nvrtc/bulk_pipeline": ("removed", "true at once"),
    "nvrtc/tma_gemm": ("wgmma fence 1 removed", "wgmma wait 1 +1"),
}


def _one_of_each_place(name: str) -> list[Mutant]:
    different = {mutant.place: mutant for mutant in mutants(ptx_of(name, ARCH)) if mutant.name not in SURVIVORS[name]}
    return [mutant for mutant in different.values() if mutant.name.endswith(QUICK[name])]


@pytest.mark.parametrize("name", QUICK)
def test_each_is_reported_but_for_the_equivalent(name: str) -> None:
    chosen = _one_of_each_place(name)
    found = {mutant.name: run(CLEAN[name], mutant.ptx) for mutant in chosen}
    assert {mutant: str(said) for mutant, said in found.items() if not said.reported} == {}
    assert len(chosen) >= len(QUICK[name])


@pytest.mark.parametrize("name", QUICK)
def test_the_table_names_mutants(name: str) -> None:
    assert set(SURVIVORS[name]) <= {mutant.name for mutant in mutants(ptx_of(name, ARCH))}


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVIVORS)
def test_all_are_reported_but_for_the_survivors(name: str) -> None:
    found = {mutant.name: class_of(outcome(name, mutant)) for mutant in mutants(ptx_of(name, ARCH)) if reached(name, mutant)}
    silent = {mutant for mutant, said in found.items() if "silent" in said}
    assert silent == set(SURVIVORS[name])
    assert {mutant for mutant, said in found.items() if said == "warned"} == WARNED.get(name, set())
    assert "not judged" not in found.values()
