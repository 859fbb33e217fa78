"""Warp: threads add to one sum, all of them at the same time."""

import sys

import numpy as np
import warp as wp

RACY = "racy" in sys.argv


@wp.kernel
def add(given: wp.array(dtype=float), total: wp.array(dtype=float)):
    thread = wp.tid()
    if wp.static(RACY):
        total[0] = total[0] + given[thread]  # reader
    else:
        wp.atomic_add(total, 0, given[thread])


given, total = wp.full(64, 1.0, dtype=float, device="cuda"), wp.array(np.zeros(1, np.float32), device="cuda")
wp.launch(add, dim=64, inputs=[given, total], device="cuda")
assert RACY or total.numpy()[0] == 64
