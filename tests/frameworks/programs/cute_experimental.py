"""CuTe DSL's language `cutlass.cute.experimental`, which has a compiler of its own. Rows are reversed."""

import sys

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

RACY = "racy" in sys.argv
ROWS, COLUMNS = 3, 128


@cute.experimental.kernel
def reverse(source: cute.Tensor, out: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(COLUMNS))
    tile[thread] = source[row, thread]
    if cutlass.const_expr(not RACY):
        cute.arch.sync_threads()
    out[row, thread] = tile[COLUMNS - 1 - thread]  # reader


@cute.experimental.jit
def launch(source: cute.Tensor, out: cute.Tensor):
    reverse(source, out).launch(grid=(ROWS, 1, 1), block=(COLUMNS, 1, 1), smem=cute.Int64(1024))


x = torch.randn(ROWS, COLUMNS, device="cuda")
out = torch.zeros_like(x)
launch(from_dlpack(x), from_dlpack(out))
assert RACY or torch.equal(out, x.flip(1))
