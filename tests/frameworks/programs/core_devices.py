"""cuda.core with two devices. With `racy` the second one writes to the memory of the first without an order, else behind an event."""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

RACY = "racy" in sys.argv
SOURCE = """
extern "C" __global__ void fill(int *out, int value) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;  // reader
}
"""
devices, streams, kernels, buffers = [], [], [], []
for number in (0, 1):
    device = Device(number)
    device.set_current()
    devices.append(device)
    streams.append(device.create_stream())
    kernels.append(Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fill"))
    buffers.append(device.allocate(1024, stream=streams[number]))
    streams[number].sync()
config = LaunchConfig(grid=2, block=128)
for number in (0, 1):  # each its own, as long as it likes
    devices[number].set_current()
    launch(streams[number], config, kernels[number], buffers[number], np.int32(number))
event = streams[0].record()
if not RACY:
    streams[1].wait(event)
launch(streams[1], config, kernels[1], buffers[0], np.int32(7))
streams[1].sync()
devices[0].set_current()
streams[0].sync()
