"""Numba-CUDA: what one block has written, another one reads behind a barrier of the grid."""

import sys

import numpy as np
from numba import cuda

RACY = "racy" in sys.argv


@cuda.jit
def mirror(given, found):
    i, grid = cuda.grid(1), cuda.cg.this_grid()
    for _ in range(3):  # the barrier is used again
        given[i] += 1
        if not RACY:
            grid.sync()
        found[i] += given[given.size - 1 - i]  # reader
        if not RACY:
            grid.sync()


values = cuda.to_device(np.arange(128, dtype=np.int32))
out = cuda.to_device(np.zeros(128, np.int32))
mirror[4, 32](values, out)
assert RACY or (out.copy_to_host() == 3 * np.arange(128)[::-1] + 6).all()
