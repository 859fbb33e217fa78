"""`nvshmem_fence` orders what a thread has put to a rank before its signals to that rank, and to no other one (SEMANTICS 12, R-RK4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planted import Plant

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid

SOURCE = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *data, uint64_t *signal, int *from, int *out) {
    int me = nvshmem_my_pe(), t = threadIdx.x;
    if (me == 0) {
        PUT;
        if (t == 0) {
            ORDER;
            nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, TO);
        }
    } else if (me == TO) {
        if (t == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        __syncthreads();
        if (t < 4) out[t] = nvshmem_int_g(data + t, OF);
    }
}
"""
PUTS = {
    "of a thread": "if (t == 0) nvshmem_int_put(data, from, 4, 1)",
    "of a CTA": "nvshmemx_int_put_block(data, from, 4, 1)",
    "of another warp": "if (t >= 32) nvshmemx_int_put_warp(data, from, 4, 1); __syncthreads()",
    "to both": "if (t == 0) nvshmem_int_put(data, from, 4, 1), nvshmem_int_put(data, from, 4, 2)",
    "by stores": "if (t == 0) for (int i = 0; i < 4; ++i) ((int *)nvshmem_ptr(data, 1))[i] = from[i]",
    "of single words": "if (t == 0) for (int i = 0; i < 4; ++i) nvshmem_int_p(data + i, from[i], 1)",
}
COMPLETE = {"by its thread": "if (t == 3) nvshmem_int_put(data, from, 4, 1), nvshmem_quiet(); __syncthreads()"}
LOCAL = "if (t == 0) for (int i = 0; i < 4; ++i) data[i] = from[i]"


def verdict(put: str, order: str, to: int, of: int = 1) -> tuple[str, set[str]]:
    kernel = consan.Kernel(SOURCE, "kernel", defines={"PUT": put, "ORDER": order, "TO": to, "OF": of})
    data, signal = (consan.Symmetric([np.zeros(4, kind) for _ in range(3)]) for kind in (np.int32, np.uint64))
    out = [np.zeros(4, np.int32) for _ in range(3)]
    args: Any = [[data, signal, np.arange(4, dtype=np.int32), out[rank]] for rank in range(3)]
    report = consan.launch(kernel, 1, 64, args, ranks=3, device="cpu")
    assert not report.incomplete, str(report)
    return report.verdict, {finding.kind for finding in report.findings}


@pytest.mark.parametrize("put", PUTS)
def test_a_fence_is_none_for_another_rank(put: str) -> None:
    assert verdict(PUTS[put], "nvshmem_fence()", 2) == ("violations", {"global-race"})
    assert verdict(PUTS[put], "nvshmem_fence()", 1) == ("clean", set())


@pytest.mark.parametrize("order", ["nvshmem_quiet()", "nvshmem_fence(), nvshmem_quiet()", "__threadfence_system()"])
def test_a_whole_fence_is_one_for_all(order: str) -> None:
    assert verdict(PUTS["of a CTA"], order, 2) == ("clean", set())


def test_what_is_complete_needs_no_other_fence() -> None:
    assert verdict(COMPLETE["by its thread"], "nvshmem_fence()", 2) == ("clean", set())
    assert verdict(LOCAL, "nvshmem_fence()", 2, of=0) == ("clean", set())


# Chunks that arrive with signals of their own, and a wait for the signal of another one; a put before a collective.
CHUNKS = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *data, int *more, uint64_t *signal, int *from, int *out) {
    int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes(), t = threadIdx.x;
    BEGIN;
    for (int chunk = 0; chunk < 4; ++chunk) {
        if (t == 0) nvshmem_signal_wait_until(signal + SLOT, NVSHMEM_CMP_GE, COUNT);
        __syncthreads();
        if (t < 16) out[16 * chunk + t] = data[16 * chunk + t];
        __syncthreads();
    }
}
"""
SENT = "for (int chunk = 0; chunk < 4; ++chunk) nvshmemx_int_put_signal_block(data + 16 * chunk, from, 16, signal"
OWN_SIGNALS = {
    "a signal each": (SENT + " + chunk, 1, NVSHMEM_SIGNAL_SET, next)", "chunk", "1", False),
    "one that is added to": (SENT + ", 1, NVSHMEM_SIGNAL_ADD, next)", "0", "chunk + 1", False),
    "the signal of another": (SENT + " + chunk, 1, NVSHMEM_SIGNAL_SET, next)", "3 - chunk", "1", True),
    "one add too few": (SENT + ", 1, NVSHMEM_SIGNAL_ADD, next)", "0", "chunk", True),
}
COLLECTIVE = (
    "if (next == 2) nvshmemx_int_put_block(data, from, 64, next); ORDER nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, more, from, 16, 1)"
)


def chunks(begin: str, slot: str, count: str) -> set[str]:
    kernel = consan.Kernel(CHUNKS, "kernel", defines={"BEGIN": begin, "SLOT": slot, "COUNT": count})
    data, more, signal = (consan.Symmetric([np.zeros(64, kind) for _ in range(3)]) for kind in (np.int32, np.int32, np.uint64))
    args: Any = [[data, more, signal, np.arange(64, dtype=np.int32), np.zeros(64, np.int32)] for _ in range(3)]
    report = consan.launch(kernel, 1, 64, args, ranks=3, device="cpu")
    assert not report.incomplete, str(report)
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("name", OWN_SIGNALS)
def test_the_signal_of_a_put_orders_its_own_data(name: str) -> None:
    *how, racy = OWN_SIGNALS[name]
    assert chunks(*how) == ({"global-race"} if racy else set())


def test_a_collective_completes_no_put() -> None:
    assert chunks(COLLECTIVE.replace("ORDER", ""), "0", "0") == {"global-race"}
    assert chunks(COLLECTIVE.replace("ORDER", "nvshmem_quiet(); __syncthreads();"), "0", "0") == set()


@pytest.mark.slow  # it compiles the checker
@pytest.mark.parametrize(("holds", "name"), [(False, "the signal of another"), (True, "a signal each")])
def test_a_fault_in_the_signals_of_puts(holds: bool, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *how, _ = OWN_SIGNALS[name]
    Plant(monkeypatch, (replay, grid)).decides("Edge::OWN_PUTS", holds)
    assert (chunks(*how) == set()) is not holds


@pytest.mark.slow  # it compiles the checker
@pytest.mark.parametrize(
    ("edge", "holds", "put", "order", "to"),
    [
        ("Edge::FENCE_OF_PUTS", False, "of a CTA", "nvshmem_fence()", 2),
        ("Edge::FENCE_OF_PUTS", True, "of a CTA", "nvshmem_fence(), nvshmem_quiet()", 2),
        ("Edge::PUT_IS_THERE", False, "of a CTA", "nvshmem_fence()", 1),
        ("Edge::PUT_IS_THERE", True, "of a CTA", "nvshmem_fence()", 2),
    ],
)
def test_a_fault_in_the_checker(edge: str, holds: bool, put: str, order: str, to: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = verdict(PUTS[put], order, to)
    Plant(monkeypatch, (replay, grid)).decides(edge, holds)
    assert verdict(PUTS[put], order, to) != before
