"""Tests as people have them: a kernel, some numbers, and what should come out. And one that asks for more."""

from pathlib import Path

import cupy as cp
import numpy as np
import pytest

FILE = Path(__file__).with_name("kernels.cu")


def test_reverse():
    x, out = cp.arange(128, dtype=cp.float32), cp.zeros(128, dtype=cp.float32)
    cp.RawKernel(FILE.read_text(), "reverse")((1,), (128,), (x, out))
    assert (cp.asnumpy(out) == np.arange(128)[::-1]).all()


@pytest.mark.parametrize("threads", [32, 64, 128])
def test_sum_is_clean(consan, threads):
    x, out = np.ones(threads, np.float32), np.zeros(1, np.float32)
    consan.assert_clean(consan.Kernel(FILE, entry="sum"), 1, threads, [x, out])


def test_any_negative():
    x, out = cp.asarray([1, -2, 3, -4] * 32, dtype=cp.float32), cp.zeros(1, dtype=cp.int32)
    cp.RawKernel(FILE.read_text(), "any_negative")((1,), (128,), (x, out))
    assert int(out[0]) == 1
