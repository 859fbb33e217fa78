"""Runs small kernels on the virtual machine: PTX bodies by hand, CUDA C++ through NVRTC."""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu import LaunchStats, LoadedModule, Machine
from consan.toolchain.nvrtc import compile_ptx

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<20>; .reg .f64 %fd<8>; .reg .b128 %q<8>;
ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in];
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
"""
Array = npt.NDArray[Any]


def kernel(body: str, before: str = "", inside: str = "") -> str:
    """A module whose entry `k(out, in)` runs `body`; %r0 is %tid.x, %r3 the global index, %rd3 and %rd4 its words of out and in."""
    return f"{HEADER}{before}\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n{inside}{REGISTERS}{body}\nret;\n}}\n"


@functools.cache
def cuda(source: str) -> str:
    """PTX of CUDA C++."""
    return compile_ptx(source, arch="sm_90a").ptx


def _bytes(arg: Any, nbytes: int) -> bytes:
    if isinstance(arg, float):
        return struct.pack("<f", arg)
    return arg if isinstance(arg, bytes) else int(arg).to_bytes(nbytes, "little")


class Device:
    """A machine, a loaded module and the buffers of one test."""

    def __init__(self, ptx: str) -> None:
        self.machine = Machine()
        self.module: LoadedModule = self.machine.load(ptx)
        self.stats = LaunchStats()

    def buffer(self, values: Any) -> int:
        """A device copy of an array."""
        array = np.ascontiguousarray(values)
        address = self.machine.alloc(array.nbytes)
        self.machine.write(address, array)
        return address

    def launch(self, entry: str, grid: int, block: int, *args: Any, **more: Any) -> LaunchStats:
        """Launch with integer, float (as f32) or bytes arguments."""
        raw = b""
        for arg, param in zip(args, self.module.entry(entry).params, strict=True):
            raw += bytes(param.offset - len(raw))
            raw += _bytes(arg, param.nbytes)
        self.stats = self.machine.launch(self.module, entry, (grid, 1, 1), (block, 1, 1), raw, **more)
        return self.stats


def run(
    ptx: str, data: Any = (0,), *, grid: int = 1, block: int = 32, out: int | None = None, dtype: Any = np.uint32, **more: Any
) -> Array:
    """Run `k` of a module on `data` and return what it left in its output, which starts as zeros; it must complete."""
    device = Device(ptx)
    count = grid * block if out is None else out
    address = device.buffer(np.zeros(count, dtype))
    stats = device.launch("k", grid, block, address, device.buffer(data), **more)
    assert stats.completed, stats
    return device.machine.view(address, dtype, count).copy()
