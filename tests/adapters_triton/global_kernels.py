"""Triton kernels of two programs that meet in global memory: the first does something, the second waits for its signal and goes on.

The shapes are those of the failure tests of Triton's GSan: read after write, write after read, write after write, and descriptors in
place of a load or a store. SIGNAL and WAIT are the semantics of the two atomics: relaxed orders nothing.
"""

# ruff: noqa: N803 - names as in Triton's tutorials

import triton
import triton.language as tl


@triton.jit
def signal(done, SIGNAL: tl.constexpr):
    tl.atomic_add(done, 1, sem=SIGNAL)


@triton.jit
def wait(done, WAIT: tl.constexpr):
    while tl.atomic_add(done, 0, sem=WAIT) == 0:
        pass


@triton.jit
def read_after_write(data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 5)
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(out, tl.load(data))


@triton.jit
def write_after_read(data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, tl.load(data))
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(data, 7)


@triton.jit
def write_after_write(data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 5)
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(data, 7)


@triton.jit
def read_after_descriptor_store(tile, data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        tile.store([0, 0], tl.full((16, 16), 5, tl.int32))
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(out, tl.load(data + 17))


@triton.jit
def write_after_descriptor_load(tile, copy, data, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        copy.store([0, 0], tile.load([0, 0]))
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(data + 17, 7)


@triton.jit
def write_after_gather(rows, tile, data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        found = tile.gather(tl.load(rows + tl.arange(0, 8)), 0)
        at = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
        tl.store(out + at, found)
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tl.store(data + 5 * 16, 7)


@triton.jit
def scatter_after_read(rows, tile, data, out, done, SIGNAL: tl.constexpr, WAIT: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, tl.load(data + 5 * 16))
        signal(done, SIGNAL)
    else:
        wait(done, WAIT)
        tile.scatter(tl.full((8, 8), 7, tl.int32), tl.load(rows + tl.arange(0, 8)), 0)
