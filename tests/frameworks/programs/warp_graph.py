"""Warp: a graph of two kernels. With `racy` the second one does not wait for the first: the two lie in streams without an order."""

import sys

import numpy as np
import warp as wp

RACY = "racy" in sys.argv


@wp.kernel
def fill(values: wp.array(dtype=wp.float32), by: float):
    i = wp.tid()
    values[i] = values[i] + by


@wp.kernel
def reverse(values: wp.array(dtype=wp.float32), to: wp.array(dtype=wp.float32)):
    i = wp.tid()
    to[i] = values[values.shape[0] - 1 - i]  # reader


wp.init()
with wp.ScopedDevice("cuda:0") as device:
    values, to, other = wp.zeros(128, dtype=wp.float32), wp.zeros(128, dtype=wp.float32), wp.Stream(device)
    wp.load_module(device=device)
    with wp.ScopedCapture() as capture:
        scratch = wp.zeros(128, dtype=wp.float32)
        wp.copy(scratch, values)
        other.wait_stream(device.stream)
        wp.launch(fill, dim=128, inputs=[scratch, 2.0], stream=other)
        if not RACY:
            device.stream.wait_stream(other)
        wp.launch(reverse, dim=128, inputs=[scratch, to])
        device.stream.wait_stream(other)
        wp.copy(values, to)
    del scratch
    for _ in range(3):
        wp.capture_launch(capture.graph)
    wp.synchronize_device()
    assert RACY or np.all(values.numpy() == 6.0), values.numpy()
