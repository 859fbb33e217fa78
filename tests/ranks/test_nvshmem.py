"""Kernels that call NVSHMEM's device functions, in launches of several ranks, with consan/include/nvshmem.h as their header."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan import UsageError

KERNEL = Path(__file__).with_name("nvshmem_put.cu")
THREADS = 32
FORMS: dict[str, tuple[str, ...]] = {"put with signal": (), "put and flag": ("FLAG",), "put and signal": ("SIGNAL_OP",)}
FAULTS: dict[str, tuple[str, ...]] = {
    "a flag without a fence": ("FLAG", "NO_FENCE"),
    "a signal without quiet": ("SIGNAL_OP", "NO_FENCE"),
    "a wait for the round before": ("WRONG_SIGNAL",),
}


BARRIERS = {
    "of a CTA": "nvshmemx_barrier_all_block()",
    "of a team": "nvshmemx_barrier_block(NVSHMEM_TEAM_WORLD)",
    "of a warp": "nvshmemx_barrier_all_warp()",
    "of a thread": "__syncthreads(); if (t == 0) nvshmem_barrier_all(); __syncthreads()",
}


@functools.cache
def kernel(source: str | Path, *defines: str, **more: str) -> consan.Kernel:
    return consan.Kernel(source, "kernel", defines={**dict.fromkeys(defines, 1), **more})


def ring(*defines: str, ranks: int = 2, seed: int = 0) -> tuple[Any, list[Any]]:
    data = consan.Symmetric([np.zeros(THREADS, np.float32) for _ in range(ranks)])
    signals = consan.Symmetric([np.zeros(2, np.uint64) for _ in range(ranks)])
    values, out = ([np.zeros(count, np.float32) for _ in range(ranks)] for count in (THREADS, 2 * THREADS))
    own = [[data, signals, values[rank], out[rank], rank] for rank in range(ranks)]
    return consan.launch(kernel(KERNEL, *defines), 1, THREADS, own, ranks=ranks, device="cpu", seed=seed), out


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", [pytest.param(form, marks=pytest.mark.slow if form == "put and signal" else ()) for form in FORMS])
def test_what_is_ordered_is_clean(form: str, ranks: int, seed: int) -> None:
    report, out = ring(*FORMS[form], ranks=ranks, seed=seed)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    wanted = [[(rank - 1) % ranks + round_ for round_ in (1, 2) for _ in range(THREADS)] for rank in range(ranks)]
    assert [each.tolist() for each in out] == wanted


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", [pytest.param(fault, marks=pytest.mark.slow if at else ()) for at, fault in enumerate(FAULTS)])
def test_a_fault_is_found_between_two_ranks(fault: str, ranks: int, seed: int) -> None:
    report, _ = ring(*FAULTS[fault], ranks=ranks, seed=seed)
    assert {finding.kind for finding in report.findings if finding.severity == "error"} == {"global-race"}, str(report)
    assert all(finding.pair[0].rank != finding.pair[1].rank for finding in report.findings)
    if "NO_FENCE" in FAULTS[fault]:
        assert all("nvshmem_quiet()" in each.fix and "put with signal" in each.fix for each in report.findings), str(report)


TWO_PUTS = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *data, int *more, uint64_t *signal, int *from, int *out, int rank) {
    if (rank == 0) {
#ifdef STORED
        ((int *)nvshmem_ptr(more, 1))[1] = from[1];
#else
        nvshmem_putmem(more, from, 16, 1);
#endif
#ifdef FENCED
        nvshmem_fence();
#endif
        nvshmem_int_put_signal(data, from, 4, signal, 1, NVSHMEM_SIGNAL_ADD, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_NE, 0);
        out[0] = data[0] + more[1] + nvshmem_int_g(from, 0);
    }
}
"""


@pytest.mark.parametrize(
    ("defines", "kinds"), [((), {"global-race"}), (("FENCED",), set()), (("STORED",), {"global-race"}), (("STORED", "FENCED"), set())]
)
def test_a_signal_orders_no_other_put(defines: tuple[str, ...], kinds: set[str]) -> None:
    """The signal of a put orders the data of that put alone."""
    symmetric = [consan.Symmetric([np.arange(4, dtype=kind) for _ in range(2)]) for kind in (np.int32, np.int32, np.uint64, np.int32)]
    symmetric[2].arrays[1][0] = 0
    out = np.zeros(4, np.int32)
    given = kernel(TWO_PUTS, *defines)
    report = consan.launch(given, 1, 1, lambda rank: [*symmetric, out, rank], ranks=2, device="cpu")
    assert ({each.kind for each in report.findings}, report.incomplete) == (kinds, ()), str(report)
    assert out[0] == 1


def test_nvshmem_needs_ranks_and_symmetric_memory() -> None:
    words = [np.zeros(THREADS, np.float32), np.zeros(2, np.uint64), np.zeros(THREADS, np.float32), np.zeros(2 * THREADS, np.float32)]
    with pytest.raises(UsageError, match="need several ranks"):
        consan.launch(kernel(KERNEL), 1, THREADS, [*words, 0], device="cpu")
    with pytest.raises(UsageError, match=r"in consan\.Symmetric arguments only"):
        consan.launch(kernel(KERNEL), 1, THREADS, lambda rank: [*words, rank], ranks=2, device="cpu")


def meeting(barrier: str, *defines: str, ranks: int = 2, seed: int = 0) -> tuple[Any, list[Any]]:
    data = consan.Symmetric([np.zeros(THREADS, np.float32) for _ in range(ranks)])
    out = [np.full(3 * THREADS, rank, np.float32) for rank in range(ranks)]
    given = kernel(KERNEL.with_name("nvshmem_meet.cu"), *defines, BARRIER=barrier)
    return consan.launch(given, 1, THREADS, lambda rank: [data, out[rank], rank], ranks=ranks, device="cpu", seed=seed), out


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
@pytest.mark.parametrize("barrier", [pytest.param(each, marks=pytest.mark.slow if at else ()) for at, each in enumerate(BARRIERS)])
def test_a_barrier_orders_what_all_ranks_do(barrier: str, seed: int) -> None:
    report, out = meeting(BARRIERS[barrier], ranks=3, seed=seed)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    assert [set(each[:THREADS].tolist()) for each in out] == [{3.0}, {1.0}, {2.0}]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
@pytest.mark.parametrize("fault", ["NO_END", pytest.param("NO_MIDDLE", marks=pytest.mark.slow)])
def test_a_missing_barrier_is_found(fault: str, seed: int) -> None:
    report, _ = meeting(BARRIERS["of a CTA"], fault, ranks=3, seed=seed)
    assert {finding.kind for finding in report.findings if finding.severity == "error"} == {"global-race"}, str(report)
    assert all(finding.pair[0].rank != finding.pair[1].rank for finding in report.findings)


def test_sync_completes_no_puts_and_that_is_not_known_here() -> None:
    report, _ = meeting("nvshmemx_sync_all_block()")
    assert (report.verdict, report.findings) == ("incomplete", ()), str(report)
    assert "sync completes no puts" in report.incomplete[0]


CALLED = """
#include <nvshmem.h>
__device__ __noinline__ void meet() { nvshmem_barrier_all(); }
extern "C" __global__ void kernel(int *data) { data[0] = 1; meet(); }
"""


def test_what_barriers_do_not_know_is_named() -> None:
    report, _ = meeting("nvshmemx_barrier_block(7)")
    assert {finding.kind for finding in report.findings} == {"fault"}
    data = consan.Symmetric([np.zeros(1, np.int32) for _ in range(2)])
    with pytest.raises(UsageError, match=r"a barrier of NVSHMEM in .*meet.*, which is called"):
        consan.launch(kernel(CALLED), 1, 1, lambda rank: [data], ranks=2, device="cpu")


ATOMICS = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *word, uint64_t *wide, double *from, double *to, int *found, int rank) {
    if (threadIdx.x == 0) {
        nvshmem_int_atomic_inc(word, 0);
        nvshmem_int_atomic_add(word, 10, 0);
        nvshmem_uint64_atomic_fetch_add(wide, (uint64_t)1 << 40, 0);
        found[0] = nvshmem_int_atomic_compare_swap(word + 1, 0, rank + 1, 0);
    }
    nvshmemx_barrier_all_block();
    found[1] = nvshmem_int_atomic_fetch(word, 0);
    nvshmemx_double_get_warp(to, from, 2, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 1, NVSHMEM_TEAM_SHARED));
    found[2] = nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD);
    found[3] = nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID);
}
"""


def test_atomics_gets_and_teams() -> None:
    kinds = (np.int32, np.uint64, np.float64)
    word, wide, given = (consan.Symmetric([np.arange(2).astype(kind) * rank for rank in range(2)]) for kind in kinds)
    to, found = [np.zeros(2) for _ in range(2)], [np.zeros(4, np.int32) for _ in range(2)]
    args = [[word, wide, given, to[rank], found[rank], rank] for rank in range(2)]
    report = consan.launch(kernel(ATOMICS), 1, THREADS, args, ranks=2, device="cpu")
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    assert [each[1:].tolist() for each in found] == [[22, 2, -1]] * 2
    assert sorted(int(each[0]) for each in found) in ([0, 1], [0, 2])
    assert (int(wide.arrays[0][0]), [each.tolist() for each in to]) == (2 << 40, [[0.0, 1.0]] * 2)


MOVES = """
#include <nvshmem.h>
#define WORLD NVSHMEM_TEAM_WORLD
extern "C" __global__ void kernel(int *source, int *to, int *out, int rank) {
    int n = nvshmem_n_pes(), me = nvshmem_my_pe(), t = threadIdx.x;
    for (int i = t; i < 4 * n; i += blockDim.x) source[i] = 100 * me + i;
    nvshmemx_barrier_all_block();
    CALL;
    for (int i = t; i < 4 * n; i += blockDim.x) out[i] = to[i];
    END;
}
"""
RANKS = 3
BROADCAST = "nvshmemx_int_broadcast_block(WORLD, to, source, 12, 1)"


def moved(call: str, end: str = "", seed: int = 0) -> tuple[Any, list[list[int]]]:
    source, to = (consan.Symmetric([np.full(4 * RANKS, -1, np.int32) for _ in range(RANKS)]) for _ in range(2))
    out = [np.zeros(4 * RANKS, np.int32) for _ in range(RANKS)]
    args = [[source, to, out[rank], rank] for rank in range(RANKS)]
    report = consan.launch(kernel(MOVES, CALL=call, END=end), 1, THREADS, args, ranks=RANKS, device="cpu", seed=seed)
    return report, [each.tolist() for each in out]


SOURCES = [[100 * rank + at for at in range(4 * RANKS)] for rank in range(RANKS)]
COLLECTIVES: dict[str, tuple[str, list[list[int]]]] = {
    "broadcast": (BROADCAST, [SOURCES[1]] * RANKS),
    "gather": ("nvshmemx_int_fcollect_warp(WORLD, to, source, 4)", [[value for each in SOURCES for value in each[:4]]] * RANKS),
    "all to all": (
        "if (t == 0) nvshmem_int_alltoall(WORLD, to, source, 4); __syncthreads()",
        [[value for each in SOURCES for value in each[4 * rank : 4 * rank + 4]] for rank in range(RANKS)],
    ),
    "sum": ("nvshmemx_int_sum_reduce_block(WORLD, to, source, 12)", [[sum(each) for each in zip(*SOURCES, strict=True)]] * RANKS),
    "maximum in place": ("nvshmemx_int_max_reduce_block(WORLD, source, source, 12); to = source", [SOURCES[-1]] * RANKS),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_move_data(name: str) -> None:
    call, wanted = COLLECTIVES[name]
    report, out = moved(call)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    assert out == wanted


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_a_collective_does_not_wait_until_its_destination_is_free(seed: int) -> None:
    """A rank that comes late to the first one sees the signal of the second, and that orders all: its results show that."""
    report, out = moved(BROADCAST, f"if (me == 1) source[t] += 1000; __syncthreads(); {BROADCAST}", seed)
    if seed and not report.findings:
        assert [each[0] for each in out] == [1100, 100, 1100]
        return
    (finding,) = [each for each in report.findings if each.severity == "error"]
    assert finding.kind == "global-race", str(report)
    assert finding.pair[0].rank != finding.pair[1].rank
    assert moved(BROADCAST, "nvshmemx_barrier_all_block();" + BROADCAST, seed)[0].verdict == "clean"


def test_a_collective_orders_its_own_data_alone_and_that_is_not_known_here() -> None:
    report, _ = moved("nvshmemx_int_get_block(out, source, 1, 0);" + BROADCAST)
    assert (report.verdict, report.findings) == ("incomplete", ()), str(report)
    assert "collectives order their own data alone" in report.incomplete[0]


def test_copies_with_strides() -> None:
    report, out = moved(
        "if (t == 0) nvshmem_int_iput(to, source, 2, 1, 3, (me + 1) % n), nvshmem_int_iget(to + 6, source, 1, 3, 4, (me + 1) % n);"
        "nvshmemx_barrier_all_block()"
    )
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    put, got = ([SOURCES[(rank + by) % RANKS] for rank in range(RANKS)] for by in (-1, 1))
    assert out == [[a[0], -1, a[1], -1, a[2], -1, *b[::3], -1, -1] for a, b in zip(put, got, strict=True)]


AT_ONCE = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *data, uint64_t *signal, int *from, int *out) {
    int other = 1 - nvshmem_my_pe();
    CALL
    from[0] = 7;
    nvshmem_quiet();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, other);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_NE, 0);
    out[0] = data[0];
}
"""


@pytest.mark.parametrize("call", ["nvshmem_putmem_nbi(data, from, 16, other);", "nvshmem_int_get_nbi(out, data, 4, other);"])
def test_what_is_not_over_before_quiet_is_not_known_here(call: str) -> None:
    """The source of the put is used again too early. With a blocking one that is right."""
    for text, verdict in ((call, "incomplete"), (call.replace("_nbi", ""), "clean")):
        symmetric = [consan.Symmetric([np.zeros(4, kind) for _ in range(2)]) for kind in (np.int32, np.uint64)]
        args = [[*symmetric, np.zeros(4, np.int32), np.zeros(4, np.int32)] for _ in range(2)]
        report = consan.launch(kernel(AT_ONCE.replace("CALL", text)), 1, 1, args, ranks=2, device="cpu")
        assert (report.verdict, report.findings) == (verdict, ()), str(report)
        assert verdict == "clean" or "up to quiet" in report.incomplete[0]
