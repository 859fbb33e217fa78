"""Accesses inside called functions: not inlined, recursive, through pointers; the clock goes in with the call and comes back out."""

from __future__ import annotations

import numpy as np
import pytest
from device_support import Bench, found

SOURCE = """
__device__ __noinline__ void put(unsigned* tile, unsigned value) { tile[threadIdx.x] = value; }      /*@put*/
__device__ __noinline__ unsigned get(const unsigned* tile, unsigned at) { return tile[at]; }         /*@get*/
__device__ __noinline__ void barrier() { __syncthreads(); }
__device__ __noinline__ unsigned twice(unsigned* tile, unsigned at) { barrier(); return get(tile, at) * 2; }
extern "C" __global__ void calls(int with_barrier, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    put(tile, t);
    if (with_barrier) barrier();
    out[t] = get(tile, 63 - t);
}
extern "C" __global__ void nested(int skip, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    put(tile, t);
    unsigned sum = twice(tile, 63 - t);
    if (!skip) barrier();
    put(tile, sum);
    out[t] = twice(tile, 63 - t);
}
__device__ __noinline__ unsigned descend(unsigned* tile, int depth) {
    if (depth == 0) return 0;
    tile[threadIdx.x] = depth;                          /*@down*/
    __syncthreads();
    const unsigned seen = tile[63 - threadIdx.x];       /*@look*/
#ifndef RACY
    __syncthreads();
#endif
    return seen + descend(tile, depth - 1);
}
extern "C" __global__ void recursion(int depth, unsigned* out) {
    __shared__ unsigned tile[64];
    out[threadIdx.x] = descend(tile, depth);
}
typedef unsigned (*Step)(unsigned*, unsigned);
__device__ __noinline__ unsigned add(unsigned* tile, unsigned at) { return tile[at] + 1; }           /*@add*/
__device__ __noinline__ unsigned multiply(unsigned* tile, unsigned at) { return tile[at] * 3; }      /*@multiply*/
__device__ Step steps[2] = {add, multiply};
extern "C" __global__ void indirect(int with_barrier, int which, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@init*/
    if (with_barrier) __syncthreads();
    out[t] = steps[which < 0 ? t & 1 : which](tile, 63 - t);
}
extern "C" __global__ void divergent_calls(int with_barrier, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    put(tile, t);
    if (with_barrier) barrier();
    if (t % 3 == 0) out[t] = get(tile, 63 - t);
    else if (t % 3 == 1) out[t] = 2 * get(tile, t);
    else out[t] = 7;
}
"""
T = np.arange(64)


def run(device: str, entry: str, *args: int, defines: tuple[str, ...] = ()) -> tuple[set[tuple[str, ...]], list[int]]:
    bench = Bench(device, SOURCE, defines=defines)
    out = bench.zeros(64)
    bench.launch(entry, 4, 64, *args, out)
    report = bench.report()
    assert report.verdict in ("clean", "violations"), report.incomplete
    return found(report, SOURCE), bench.array(out, 64).tolist()


def test_accesses_in_called_functions(device: str) -> None:
    assert run(device, "calls", 0)[0] == {("data-race", "get", "put")}
    assert run(device, "calls", 1) == (set(), list(range(63, -1, -1)))


def test_barriers_in_called_functions_move_the_callers_clock(device: str) -> None:
    assert run(device, "nested", 1)[0] == {("data-race", "get", "put")}
    assert run(device, "nested", 0) == (set(), (4 * T).tolist())


@pytest.mark.parametrize("depth", [1, 2, 30])
def test_recursion(device: str, depth: int) -> None:
    assert run(device, "recursion", depth) == (set(), [depth * (depth + 1) // 2] * 64)
    assert run(device, "recursion", depth, defines=("RACY",))[0] == ({("data-race", "down", "look")} if depth > 1 else set())


@pytest.mark.parametrize("which", [-1, 0, 1])
def test_indirect_calls(device: str, which: int) -> None:
    racy, _ = run(device, "indirect", 0, which)
    assert racy == {("data-race", *sorted((name, "init"))) for k, name in enumerate(("add", "multiply")) if which in (-1, k)}
    fixed, out = run(device, "indirect", 1, which)
    assert (fixed, out) == (set(), [(63 - t) * 3 if (t & 1 if which < 0 else which) else 64 - t for t in range(64)])


def test_calls_under_divergence(device: str) -> None:
    assert run(device, "divergent_calls", 0)[0] == {("data-race", "get", "put")}
    assert run(device, "divergent_calls", 1) == (set(), [(63 - t, 2 * t, 7)[t % 3] for t in range(64)])
