"""Warp: a graph that halves values while they are large, and then adds by a branch. With `racy` a reader does not wait for the graph."""

import sys

import numpy as np
import warp as wp

RACY = "racy" in sys.argv


@wp.kernel
def halve(values: wp.array(dtype=wp.float32), large: wp.array(dtype=wp.int32)):
    i = wp.tid()
    values[i] = values[i] * 0.5
    if i == 0:
        large[0] = wp.where(values[i] > 3.0, 1, 0)


@wp.kernel
def add(values: wp.array(dtype=wp.float32), by: float):
    i = wp.tid()
    values[i] = values[i] + by


@wp.kernel
def reverse(values: wp.array(dtype=wp.float32), to: wp.array(dtype=wp.float32)):
    i = wp.tid()
    to[i] = values[values.shape[0] - 1 - i]  # reader


wp.init()
with wp.ScopedDevice("cuda:0") as device:
    values, to, other = wp.full(64, 16.0, dtype=wp.float32), wp.zeros(64, dtype=wp.float32), wp.Stream(device)
    large, even = wp.full(1, 1, dtype=wp.int32), wp.zeros(1, dtype=wp.int32)
    wp.load_module(device=device)
    other.wait_stream(device.stream)

    def more():
        wp.launch(halve, dim=64, inputs=[values, large])

    def by(amount):
        return lambda: wp.launch(add, dim=64, inputs=[values, amount])

    with wp.ScopedCapture() as capture:
        large.fill_(1)
        wp.capture_while(large, more)
        wp.capture_if(even, on_true=by(100.0), on_false=by(1.0))
    wp.capture_launch(capture.graph)
    even.fill_(1)
    wp.capture_launch(capture.graph)
    if not RACY:
        other.wait_stream(device.stream)
    wp.launch(reverse, dim=64, inputs=[values, to], stream=other)
    wp.synchronize_device()
    assert RACY or np.all(to.numpy() == 101.5), to.numpy()
