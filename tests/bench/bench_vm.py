"""How many thread-instructions the PTX virtual machine runs in a second, uninstrumented.

Usage: python tests/bench/bench_vm.py

Two kernels (a saxpy loop, a tiled sgemm with 32x32 tiles or its 128-thread form) on one CTA of 128 threads and on a wide grid.
The first launch, which decodes, is not counted; the best of three is.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Callable

import numpy as np

from consan.backends.cpu import LaunchStats, LoadedModule, Machine
from consan.toolchain.nvrtc import compile_ptx

SOURCE = """
extern "C" __global__ void saxpy(const float* x, float* y, float a, int rounds, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  #pragma unroll 1
  for (int k = 0; k < rounds; k++) y[i] = a * x[i] + y[i];
}
template <int T, int ROWS> __device__ void tile(const float* A, const float* B, float* C, int n) {
  __shared__ float a[T][T], b[T][T];
  int x = threadIdx.x % T, y = threadIdx.x / T, c = blockIdx.x * T + x;
  float sum[T / ROWS] = {};
  for (int k = 0; k < n; k += T) {
    for (int j = 0; j < T / ROWS; j++) {
      int r = y + j * ROWS;
      a[r][x] = A[(blockIdx.y * T + r) * n + k + x];
      b[r][x] = B[(k + r) * n + c];
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < T; i++)
      for (int j = 0; j < T / ROWS; j++) sum[j] += a[y + j * ROWS][i] * b[i][x];
    __syncthreads();
  }
  for (int j = 0; j < T / ROWS; j++) C[(blockIdx.y * T + y + j * ROWS) * n + c] = sum[j];
}
extern "C" __global__ void sgemm128(const float* A, const float* B, float* C, int n) { tile<16, 8>(A, B, C, n); }
extern "C" __global__ void sgemm1024(const float* A, const float* B, float* C, int n) { tile<32, 32>(A, B, C, n); }
"""
GOALS = {"one CTA": 50, "wide grid": 1000}


def best(launch: Callable[[], LaunchStats]) -> float:
    launch()
    runs = [launch() for _ in range(3)]
    assert all(run.completed for run in runs), runs
    return max(run.instructions / run.seconds for run in runs) / 1e6


def saxpy(machine: Machine, module: LoadedModule, ctas: int, threads: int, rounds: int) -> float:
    n = ctas * threads
    x, y = machine.alloc(4 * n), machine.alloc(4 * n)
    machine.write(x, np.ones(n, np.float32))
    params = struct.pack("<QQfii", x, y, 1e-3, rounds, n)
    return best(lambda: machine.launch(module, "saxpy", (ctas, 1, 1), (threads, 1, 1), params))


def sgemm(machine: Machine, module: LoadedModule, entry: str, tile: int, threads: int, n: int, tiles: int) -> float:
    a, b, c = (machine.alloc(4 * n * n) for _ in range(3))
    machine.write(a, np.ones(n * n, np.float32))
    machine.write(b, np.ones(n * n, np.float32))
    params = struct.pack("<QQQi", a, b, c, n)
    speed = best(lambda: machine.launch(module, entry, (tiles, tiles, 1), (threads, 1, 1), params))
    assert (machine.view(c, np.float32, n * n).reshape(n, n)[: tile * tiles, : tile * tiles] == n).all()
    return speed


def main() -> int:
    machine = Machine()
    module = machine.load(compile_ptx(SOURCE, arch="sm_90a").ptx)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, {os.cpu_count()} CPUs")
    results = {
        ("one CTA", "saxpy, 1 x 128 threads"): saxpy(machine, module, 1, 128, 2000),
        ("one CTA", "sgemm tile, 1 x 128 threads"): sgemm(machine, module, "sgemm128", 16, 128, 512, 1),
        ("wide grid", "saxpy, 512 x 256 threads"): saxpy(machine, module, 512, 256, 60),
        ("wide grid", "sgemm tile, 64 x 1024 threads"): sgemm(machine, module, "sgemm1024", 32, 1024, 256, 8),
    }
    for (kind, name), speed in results.items():
        print(f"{kind:10} {name:32} {speed:8.0f} M thread-instructions/s   (goal {GOALS[kind]})")
    return 0 if all(speed >= GOALS[kind] for (kind, _), speed in results.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
