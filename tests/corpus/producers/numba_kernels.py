"""Numba CUDA kernels compiled to PTX without a GPU: `python numba_kernels.py NAME ARCH` prints PTX.

Runs in any interpreter that has numba-cuda; imports nothing of consan. NVRTC and NVVM must be on the loader's path.
"""

import sys

from numba import cuda, float32, int32


def block_sum(values, out):
    partial = cuda.shared.array(256, float32)
    lane = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[lane] = values[i] if i < values.size else float32(0)
    cuda.syncthreads()
    step = 128
    while step > 0:
        if lane < step:
            partial[lane] += partial[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        cuda.atomic.add(out, 0, partial[0])


def warp_sum(values, out):
    warps = cuda.shared.array(8, float32)
    lane = cuda.threadIdx.x % 32
    i = cuda.grid(1)
    total = values[i] if i < values.size else float32(0)
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
        offset //= 2
    if lane == 0:
        warps[cuda.threadIdx.x // 32] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for k in range(1, 8):
            total += warps[k]
        out[cuda.blockIdx.x] = total


def histogram(values, bins):
    local = cuda.shared.array(64, int32)
    for k in range(cuda.threadIdx.x, 64, cuda.blockDim.x):
        local[k] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(local, values[i] & 63, 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 64, cuda.blockDim.x):
        cuda.atomic.add(bins, k, local[k])


KERNELS = {
    "block_sum": (block_sum, (float32[:], float32[:])),
    "warp_sum": (warp_sum, (float32[:], float32[:])),
    "histogram": (histogram, (int32[:], int32[:])),
}


def compile_ptx(name, arch):
    function, signature = KERNELS[name]
    number = int(arch.removeprefix("sm_").rstrip("af"))
    ptx, _ = cuda.compile_ptx(function, signature, cc=divmod(number, 10), lineinfo=True)
    return ptx


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
