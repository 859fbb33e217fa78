"""numba-cuda-mlir: a tile that is written by one thread and read by another one."""

import sys

import numpy as np
from numba_cuda_mlir import cuda
from numba_cuda_mlir.types import int32

RACY = "racy" in sys.argv


@cuda.jit
def reverse(given, found):
    tile = cuda.shared.array(64, int32)
    thread = cuda.threadIdx.x
    tile[thread] = given[thread]
    if not RACY:
        cuda.syncthreads()
    found[thread] = tile[63 - thread]  # reader


values = np.arange(64, dtype=np.int32)
out = cuda.device_array(64, np.int32)
reverse[1, 64](cuda.to_device(values), out)
assert RACY or (out.copy_to_host() == values[::-1]).all()
