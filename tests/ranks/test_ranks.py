"""Kernels of several ranks, launched as one on the CPU machine: each fault is found between ranks, and without it nothing is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import Fault, break_checker, quick
from ranks_support import DEADLOCKS, FAULTS, HIDDEN, THREADS, launch

import consan
from consan import UsageError
from consan.checker.compiled import replay
from consan.checker.judging import grid

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
QUICK = {"multimem_reduce": "NO_END", "multimem_store": "RELAXED"}  # of these one fault; the others are slow
EVERY = [
    pytest.param(name, fault, marks=pytest.mark.slow if QUICK.get(name, fault) != fault else ())
    for name, faults in FAULTS.items()
    for fault in faults
]
TWO_SIDES = ("global-race", "scope")
VIEWS = "views.hpp"
NO_RANKS = "rank_clusters_ && cluster / rank_clusters_ != other_cluster / rank_clusters_ ? SYS_SCOPE : GPU_SCOPE"
# By fault of the checker: a kernel whose verdict changes, and its fault.
MUTANTS: dict[str, tuple[Fault, str, str]] = {
    "a gpu scope includes the other ranks": (quick(VIEWS, NO_RANKS, "GPU_SCOPE"), "counted_ctas", "GPU_SCOPE"),
    "each CTA is a rank": ((VIEWS, NO_RANKS, "rank_clusters_ ? SYS_SCOPE : GPU_SCOPE"), "counted_ctas", ""),
    "a gpu release is one for all": ((VIEWS, "rank_clusters_ ? SYS_SCOPE : GPU_SCOPE; }", "GPU_SCOPE; }"), "put_with_signal", "GPU_FENCE"),
    "ranks are half as large": ((VIEWS, "rank_clusters_ = rank_clusters", "rank_clusters_ = rank_clusters / 2"), "counted_ctas", ""),
}


def said(report: Any) -> Any:
    return report.verdict, sorted((one.kind, one.situation) for one in report.findings)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", FAULTS)
def test_without_a_fault_it_is_clean(name: str, ranks: int, seed: int) -> None:
    report, out = launch(name, ranks=ranks, seed=seed)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    assert all(np.array_equal(one, other) for one, other in zip(out, launch(name, ranks=ranks, seed=seed + 100)[1], strict=True))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "fault"), EVERY)
def test_a_fault_is_found_between_two_ranks(name: str, fault: str, ranks: int, seed: int) -> None:
    """By seed 0; another one may order by chance what the fault leaves in no order, and then the results show that."""
    report, out = launch(name, fault, ranks, seed=seed)
    found = [finding for finding in report.findings if finding.kind in TWO_SIDES]
    if seed and not found and (name, fault) in HIDDEN:
        stuck = (name, fault) in DEADLOCKS and "deadlock" in {finding.kind for finding in report.findings}
        assert stuck or HIDDEN[name, fault](out, launch(name, ranks=ranks)[1]), str(report)
        return
    assert FAULTS[name][fault] in {finding.kind for finding in found}, str(report)
    assert all(finding.pair[0].rank != finding.pair[1].rank for finding in found), str(report)
    words = " ".join(f"{finding.message} {finding.missing} {finding.fix}" for finding in found)
    assert ".gpu" not in words
    assert all(f"rank {access.rank}" in str(report) for finding in found for access in finding.pair)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_rule_changes_what_is_found(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, name, fault = MUTANTS[mutant]
    before = said(launch(name, fault, 4)[0])
    break_checker(monkeypatch, tmp_path, (grid, replay), *planted)
    assert said(launch(name, fault, 4)[0]) != before


PLACES = """
extern "C" __global__ void places(unsigned *out) {
    unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
    out[(z * gridDim.y + y) * gridDim.x + x] = 1000 * gridDim.z + 100 * z + 10 * y + x;
}
"""


@pytest.mark.parametrize("ranks", [2, 3, 16])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 1), (2, 1, 3)])
def test_each_rank_sees_its_own_grid(ranks: int, shape: tuple[int, int, int]) -> None:
    x, y, z = shape
    out = [np.zeros(x * y * z, np.uint32) for _ in range(ranks)]
    report = consan.launch(consan.Kernel(PLACES), shape, 1, lambda rank: [out[rank]], ranks=ranks, device="cpu")
    assert report.verdict == "clean"
    wanted = [1000 * z + 100 * c + 10 * b + a for c in range(z) for b in range(y) for a in range(x)]
    assert all(each.tolist() == wanted for each in out)


def test_a_finding_names_the_ranks_and_the_window() -> None:
    out = np.zeros(THREADS, np.float32)
    kernel = consan.Kernel('extern "C" __global__ void fill(float *out, float value) { out[threadIdx.x] = value; }')
    report = consan.launch(kernel, (1, 1, 2), THREADS, [[out, 1.0], [out, 2.0]], ranks=2, device="cpu")
    (finding,) = report.findings
    assert [(access.rank, access.block[2] < 2) for access in finding.accesses if access.block] == [(0, True), (1, True)]
    assert all(access.name.endswith("of rank 0, argument 1") for access in finding.accesses)
    assert "CTA (0,0,0), rank 1" in str(report)
    assert [access["rank"] for access in json.loads(report.to_json())["findings"][0]["accesses"]] == [0, 1]


NAMED_ALIKE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry named(.param .u64 out, .param .u32 out_value)
{
  .reg .b32 %out_value;
  .reg .b64 %out;
  ld.param.u64 %out, [out];
  ld.param.u32 %out_value, [out_value];
  st.global.u32 [%out], %out_value;
  ret;
}
"""


def test_a_register_may_have_the_name_of_a_parameter() -> None:
    out = [np.zeros(1, np.uint32) for _ in range(2)]
    report = consan.launch(consan.Kernel(NAMED_ALIKE), 1, 1, lambda rank: [out[rank], 5 + rank], ranks=2, device="cpu")
    assert (report.verdict, [int(each[0]) for each in out]) == ("clean", [5, 6])


LITERALS = """#include <cstdio>
#include <cassert>
extern "C" __global__ void k(int *out, int rank) { assert(rank < 2); if (rank > 2) printf("rank %d\\n", rank); *out = rank; }"""


def test_literals_are_no_variables_of_a_rank() -> None:
    out = [np.zeros(1, np.int32) for _ in range(2)]
    report = consan.launch(consan.Kernel(LITERALS), 1, 1, lambda rank: [out[rank], rank], ranks=2, device="cpu")
    assert (report.verdict, [int(each[0]) for each in out]) == ("clean", [0, 1])


GLOBAL = '__device__ int state; extern "C" __global__ void k(int *out) { out[0] = atomicAdd(&state, 1); }'
CLUSTERS = 'extern "C" __global__ void k(int *out) { int z; asm("mov.u32 %0, %clusterid.z;" : "=r"(z)); *out = z; }'


@pytest.mark.parametrize(
    ("source", "how", "said"),
    [
        (GLOBAL, {"ranks": 2}, "the variable state would be one of each rank"),
        (CLUSTERS, {"ranks": 2}, "%clusterid.z cannot be launched for several ranks"),
        (PLACES, {"ranks": 17}, "expected 1 to 16"),
        (PLACES, {"ranks": 0}, "expected 1 to 16"),
        (PLACES, {"ranks": 3}, "expected a list for each of 3 ranks"),
        (PLACES, {"ranks": 2, "engine": "inline"}, "know one GPU"),
        (PLACES, {"ranks": 2, "cooperative": True}, "grid-wide barrier"),
    ],
)
def test_what_is_not_supported_is_refused(source: str, how: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        consan.launch(consan.Kernel(source), 1, 1, [[np.zeros(4, np.int32)]] * 2, device="cpu", **how)


def test_launches_of_ranks_are_not_compared_with_others() -> None:
    with consan.check(device="cpu"), pytest.raises(UsageError, match="several ranks"):
        consan.launch(consan.Kernel(PLACES), 1, 1, [[np.zeros(4, np.int32)]] * 2, ranks=2, stream=consan.Stream())


LATER = """
extern "C" __global__ void kernel(unsigned *data, unsigned *flag, unsigned *out, int rank) {
    unsigned seen;
    if (rank == 0) {
        data[0] = 5;
        asm volatile("st.release.sys.global.u32 [%0], 7;" ::"l"(flag) : "memory");
        asm volatile("st.release.sys.global.u32 [%0], 0;" ::"l"(flag) : "memory");
    } else {
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (seen == 9);
        out[0] = data[0];
    }
}
"""


@pytest.mark.parametrize("seed", [12, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (19, 32, 34, 36))])
def test_what_a_flag_held_at_first_says_where_a_zero_comes_from(seed: int) -> None:
    """A poll that gives 0 has seen the last store: the flag held 9 before the launch. In these schedules its clock leaves both open."""
    data, flag, out = np.zeros(4, np.uint32), np.full(4, 9, np.uint32), np.zeros(4, np.uint32)
    report = consan.launch(consan.Kernel(LATER), 1, 1, lambda rank: [data, flag, out, rank], ranks=2, device="cpu", seed=seed)
    assert report.verdict == "clean", str(report)


ROUNDS = """
extern "C" __global__ void kernel(unsigned long long *mine, unsigned long long *other, int slots) {
    for (unsigned long long round = 1; round <= 2; ++round) {
        unsigned at = threadIdx.x + (slots == 2 ? (unsigned)(round & 1) * blockDim.x : 0);
        unsigned long long seen;
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(other + at), "l"(round) : "memory");
        do asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(mine + at) : "memory"); while (seen != round);
    }
}
"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slots", [1, 2])
def test_a_value_that_is_overwritten_before_it_is_seen(slots: int, seed: int) -> None:
    """It ends in a deadlock, also where the schedule delays those that poll: a poll that is delayed counts on."""
    words = [np.zeros(64, np.uint64) for _ in range(2)]
    kernel = consan.Kernel(ROUNDS)
    report = consan.launch(kernel, 1, 32, lambda rank: [words[rank], words[1 - rank], slots], ranks=2, device="cpu", seed=seed, timeout=20)
    found = report.verdict, {finding.kind for finding in report.findings}
    assert found in [("clean", set()), ("violations", {"deadlock"})][: 3 - slots], report
    assert seed != 1 or slots == 2 or report.findings, report
