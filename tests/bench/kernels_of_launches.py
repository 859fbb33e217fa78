"""The kernels of launches.py."""

from __future__ import annotations

import contextlib

SUMS = """
extern "C" __global__ void sums(const float* given, float* out) {
    __shared__ float values[256];
    values[threadIdx.x] = given[blockIdx.x * 256 + threadIdx.x];
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = values[0];
}
"""

with contextlib.suppress(ImportError):  # a program of CuPy needs no Triton
    import triton
    import triton.language as tl

    @triton.jit
    def added(x, y, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
        """The sum of two vectors."""
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    @triton.jit
    def product(a, b, out, m, n, k, tile: tl.constexpr, depth: tl.constexpr):  # type: ignore[no-untyped-def]
        """The product of two matrices, in rows."""
        row, column = tl.program_id(0) * tile + tl.arange(0, tile), tl.program_id(1) * tile + tl.arange(0, tile)
        inner, total = tl.arange(0, depth), tl.zeros((tile, tile), tl.float32)
        for at in range(0, k, depth):
            left = tl.load(a + row[:, None] * k + at + inner[None, :])
            right = tl.load(b + (at + inner)[:, None] * n + column[None, :])
            total += tl.dot(left, right)
        tl.store(out + row[:, None] * n + column[None, :], total.to(tl.float16))
