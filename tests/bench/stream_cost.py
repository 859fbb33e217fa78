"""The cost of the comparison of streams on the virtual machine: `consan run --device cpu tests/bench/stream_cost.py [none|edges|apart]`.

Two kernels (65,536 elements of y += 2x, and a matmul of 128) ten times: in the default stream; in two streams that wait for each
other; in two that do not. The host waits after each fifth time. Prints the seconds of processor time.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import cupy as cp

SOURCE = """
extern "C" __global__ void scaled(const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] += 2 * x[i]; }
extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];
        t[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""
N, COUNT = 128, 1 << 16


def seconds(how: str, times: int) -> float:
    module = cp.RawModule(code=SOURCE)
    scaled, product = module.get_function("scaled"), module.get_function("product")
    a, b, c = (cp.ones((N, N), cp.float32) for _ in range(3))
    x, y = cp.ones(COUNT, cp.float32), cp.zeros(COUNT, cp.float32)
    null = cp.cuda.Stream.null
    one, other = (null, null) if how == "none" else (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True))
    cp.cuda.Device().synchronize()

    def edge(first: Any, second: Any) -> None:
        if how == "edges":
            second.wait_event(first.record())

    def step() -> None:
        with one:
            scaled((COUNT // 256,), (256,), (x, y))
        edge(one, other)
        with other:
            product((N // 16, N // 16), (16, 16), (a, b, c, N))
        edge(other, one)

    step()
    began = time.process_time()
    for number in range(times):
        step()
        if number % 5 == 4:
            cp.cuda.Device().synchronize()
    return time.process_time() - began


if __name__ == "__main__":
    print(f"{seconds(sys.argv[1], 10):.2f}")
