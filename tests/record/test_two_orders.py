"""A CTA is replayed in two orders of its warps, but where the first one decides (Blocks.in_any_order)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import consan
from consan.checker.judging import recorder
from consan.instrument.record import record

SOURCE = """
extern "C" __global__ void NAME(int* out) {
    __shared__ int tile[96];
    int t = threadIdx.x;
    unsigned place = (unsigned)__cvta_generic_to_shared(tile);
    tile[t] = t;
    __syncthreads();
    BODY
    out[t + 64 * blockIdx.x] = tile[63 - t];
}
"""
ASM = 'asm volatile("{}" :: "r"(place + 4 * t), "r"(t) : "memory");'
# The body, whether the first order decides, and whether it finds nothing.
BODIES = {
    "nothing more": ("", True, True),
    "a warp barrier": ("if (t & 1) tile[64 + t / 2] = 1; __syncwarp();", True, True),
    "a race": ("tile[t] = 7;", True, False),
    "an atomic": ("atomicAdd(tile + t, 1); __syncthreads();", False, True),
    "a strong store": (ASM.format("st.relaxed.cta.shared.u32 [%0], %1;") + " __syncthreads();", False, True),
    "a barrier of some": ('asm volatile("bar.sync %0, 32;" :: "r"(1 + t / 32) : "memory");', False, True),
    "an arrival": ('if (t < 32) asm volatile("bar.arrive 1, 64;"); else asm volatile("bar.sync 1, 64;" ::: "memory");', False, True),
    "a copy": (f"""{ASM.format("cp.async.ca.shared.global [%0], [%2], 4;").replace('"r"(t)', '"r"(t), "l"(out)')}
                asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads();""", False, True),
}  # fmt: skip


@functools.cache
def _kernel(name: str) -> consan.Kernel:
    entry = name.replace(" ", "_")
    return consan.Kernel(SOURCE.replace("NAME", entry).replace("BODY", BODIES[name][0]), entry=entry, arch="sm_80")


@pytest.mark.parametrize("name", BODIES)
def test_whether_the_first_order_decides(name: str) -> None:
    assert record(_kernel(name).ptx).blocks.in_any_order == BODIES[name][1]


@pytest.mark.parametrize("name", [name for name in BODIES if name != "a copy"])
def test_the_orders_in_which_a_cta_is_replayed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    orders, replay = list[bool](), recorder.replay

    def noted(*given: Any, **how: Any) -> Any:
        orders.append(how["descending"])
        return replay(*given, **how)

    monkeypatch.setattr(recorder, "replay", noted)
    report = consan.launch(_kernel(name), 2, 64, [np.zeros(128, np.int32)], device="cpu", engine="record", global_memory="off")
    _, decides, clean = BODIES[name]
    assert (report.verdict == "clean") == clean
    assert set(orders) == ({False} if decides and clean else {False, True})
