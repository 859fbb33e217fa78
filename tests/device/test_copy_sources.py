"""Sources of cp.async in more tensors than the CTA has intervals for: a store into one in flight is found, one beside them is not."""

from __future__ import annotations

import numpy as np
import pytest
from device_support import Bench, found

TENSORS = 7  # in a row, 8 MiB apart: more than SOURCE_RANGES, and farther than SOURCE_GAP
APART = 8 << 20
SOURCE = """
#ifndef FALLING
#define FALLING 0
#endif
#define WAIT asm volatile("cp.async.wait_all;" ::: "memory")
extern "C" __global__ void copies(char* base, int tensors, long apart, long at) {
    __shared__ uint4 tiles[8][64];
    for (int i = 0; i < tensors; ++i) {
        const unsigned tile = __cvta_generic_to_shared(&tiles[i][threadIdx.x]);
        const char* source = base + i * apart + 16 * (FALLING ? 63 - threadIdx.x : threadIdx.x);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(tile), "l"(source) : "memory");  /*@copy*/
    }
#ifdef FIXED
    WAIT;
#endif
    __syncthreads();  // every copy is issued before the store
    if (threadIdx.x == 5) *(int*)(base + at) = 1;  /*@store*/
    WAIT;
    __syncthreads();
    if (tiles[0][threadIdx.x].x == 123456789) base[0] = 1;
}
"""


@pytest.mark.parametrize("tensor", [0, 3, 4, TENSORS - 1])
@pytest.mark.parametrize("defines", [(), ("FIXED",)], ids=["racy", "fixed"])
def test_a_store_into_a_source(device: str, tensor: int, defines: tuple[str, ...]) -> None:
    assert _stored_into(device, defines, tensor * APART + 16 * 40) == (set() if defines else {("missing-wait", "copy", "store")})


@pytest.mark.parametrize("lane", [0, 31, 32, 63])
def test_addresses_that_fall_from_lane_to_lane(device: str, lane: int) -> None:
    """The lane that takes an interval is not the one with the lowest address."""
    assert _stored_into(device, ("FALLING",), 16 * lane) == {("missing-wait", "copy", "store")}


def _stored_into(device: str, defines: tuple[str, ...], at: int) -> set[tuple[str, ...]]:
    bench = Bench(device, SOURCE, defines=defines)
    base = bench.buffer(np.zeros(TENSORS * APART, np.uint8))
    bench.launch("copies", 1, 64, base, TENSORS, APART, at)
    return found(bench.report(), SOURCE)


@pytest.mark.parametrize("at", [16 * 64, 4 << 20, 3 * APART - 4])
def test_a_store_beside_all_sources(device: str, at: int) -> None:
    bench = Bench(device, SOURCE)
    base = bench.buffer(np.zeros(TENSORS * APART, np.uint8))
    bench.launch("copies", 1, 64, base, TENSORS, APART, at)
    assert bench.report().verdict == "clean"
