"""Adds up the rows of a matrix on the device and compares with NumPy."""

from pathlib import Path

import cupy as cp
import numpy as np

ROWS, COLUMNS = 8, 128
SOURCE = Path(__file__).with_name("exercise.cu").read_text()

matrix = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) % 11
result = cp.zeros(COLUMNS, dtype=cp.float32)
sums = cp.RawKernel(SOURCE, "sums")
sums((1,), (COLUMNS + 32,), (cp.asarray(matrix), result, np.int32(ROWS)))

wrong = int((cp.asnumpy(result) != matrix.sum(0)).sum())
print(f"{wrong} of {result.size} numbers are wrong")
