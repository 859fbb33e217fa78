"""Numba with two devices. With `racy` the second one writes to the memory of the first without an order, else behind an event."""

import sys

import numpy as np
from numba import cuda

RACY = "racy" in sys.argv


@cuda.jit
def fill(out, value):
    out[cuda.grid(1)] = value  # reader


streams, arrays = [], []
for device in (0, 1):
    with cuda.gpus[device]:
        arrays.append(cuda.to_device(np.zeros(256, np.int32)))
        streams.append(cuda.stream())
        cuda.synchronize()
for device in (0, 1):  # each its own, as long as it likes
    with cuda.gpus[device]:
        fill[2, 128, streams[device]](arrays[device], device + 5)
with cuda.gpus[0]:
    event = cuda.event(timing=False)
    event.record(streams[0])
with cuda.gpus[1]:
    if not RACY:
        event.wait(streams[1])
    fill[2, 128, streams[1]](arrays[0], 7)
    streams[1].synchronize()
with cuda.gpus[0]:
    streams[0].synchronize()
    assert (arrays[0].copy_to_host() == 7).all()
with cuda.gpus[1]:
    assert (arrays[1].copy_to_host() == 6).all()
