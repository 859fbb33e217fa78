"""Multiplies a vector by a matrix, split over the CTAs of a grid, and compares with NumPy."""

import sys
from pathlib import Path

import cupy as cp
import numpy as np

CTAS, EACH, THREADS = 4, 8, 64
SOURCE = Path(__file__).with_name("exercise.cu").read_text()

x = np.arange(CTAS * EACH, dtype=np.float32) % 5
a = np.arange(CTAS * EACH * THREADS, dtype=np.float32).reshape(-1, THREADS) % 7
parts, count, out = cp.zeros((CTAS, THREADS), cp.float32), cp.zeros(1, cp.uint32), cp.zeros(THREADS, cp.float32)
product = cp.RawKernel(SOURCE, "product")
product((CTAS,), (THREADS,), (cp.asarray(x), cp.asarray(a), parts, count, out, np.int32(EACH)))

wrong = int((cp.asnumpy(out) != x @ a).sum())
print(f"{wrong} of {out.size} numbers are wrong")
sys.exit(wrong > 0)
