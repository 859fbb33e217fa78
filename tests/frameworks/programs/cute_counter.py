"""CuTe DSL: CTAs count by atomics. With `racy`, one of them reads the counter by a plain load, which nothing orders."""

import sys

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

RACY = "racy" in sys.argv
CTAS = 4


@cute.kernel
def counted(count: cute.Tensor, out: cute.Tensor):
    number, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        before = cute.arch.atomic_add(count.iterator.llvm_ptr, cutlass.Int32(1), sem="relaxed", scope="gpu")  # reader
        if cutlass.const_expr(RACY):
            before = count[0]
        out[number] = before


@cute.jit
def launch(count: cute.Tensor, out: cute.Tensor):
    counted(count, out).launch(grid=(CTAS, 1, 1), block=(32, 1, 1))


count, out = torch.zeros(1, device="cuda", dtype=torch.int32), torch.zeros(CTAS, device="cuda", dtype=torch.int32)
launch(from_dlpack(count), from_dlpack(out))
assert RACY or out.sort().values.tolist() == list(range(CTAS))
