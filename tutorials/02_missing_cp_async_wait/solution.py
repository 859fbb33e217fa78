"""Multiplies two matrices on the device and compares the product with NumPy's."""

from pathlib import Path

import cupy as cp
import numpy as np

N, K = 32, 96
SOURCE = Path(__file__).with_name("solution.cu").read_text()

a = np.arange(N * K, dtype=np.float32).reshape(N, K) % 7
b = np.arange(K * N, dtype=np.float32).reshape(K, N) % 5
c = cp.zeros((N, N), dtype=cp.float32)
matmul = cp.RawKernel(SOURCE, "matmul")
matmul((N // 16, N // 16), (64,), (cp.asarray(a), cp.asarray(b), c, np.int32(N), np.int32(K)))

wrong = int((cp.asnumpy(c) != a @ b).sum())
print(f"{wrong} of {c.size} numbers are wrong")
