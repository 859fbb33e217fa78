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
