"""Smooths a few rows on the device and compares them with NumPy."""

from pathlib import Path

import cupy as cp
import numpy as np

STEPS = 4
SOURCE = Path(__file__).with_name("solution.cu").read_text()


def reference(x: np.ndarray) -> np.ndarray:
    for _ in range(STEPS):
        x = 0.5 * (x + np.pad(x, ((0, 0), (0, 1)))[:, 1:])
    return x


x = np.arange(4 * 128, dtype=np.float32).reshape(4, 128) % 31
out = cp.zeros((4, 128), dtype=cp.float32)
smooth = cp.RawKernel(SOURCE, "smooth")
smooth((4,), (128,), (cp.asarray(x), out, np.int32(STEPS)))

wrong = int((np.abs(cp.asnumpy(out) - reference(x)) > 1e-3).sum())
print(f"{wrong} of {x.size} numbers are wrong")
