"""CuTe DSL with tensors of torch, by TVM-FFI, by DLPack and by their addresses. All reverse rows."""

import sys

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr

RACY = "racy" in sys.argv
ROWS, COLUMNS = 3, 128


@cute.kernel
def reverse(source: cute.Tensor, out: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(COLUMNS))
    tile[thread] = source[row, thread]
    if cutlass.const_expr(not RACY):
        cute.arch.sync_threads()
    out[row, thread] = tile[COLUMNS - 1 - thread]  # reader


@cute.jit
def launch(source: cute.Tensor, out: cute.Tensor):
    reverse(source, out).launch(grid=(ROWS, 1, 1), block=(COLUMNS, 1, 1))


@cute.jit
def launch_at(source: cute.Pointer, out: cute.Pointer):
    layout = cute.make_layout((ROWS, COLUMNS), stride=(COLUMNS, 1))
    launch(cute.make_tensor(source, layout), cute.make_tensor(out, layout))


assert torch.cuda.is_available()
x = torch.randn(ROWS + 1, COLUMNS, device="cuda")[1:]  # a view: its storage begins a row before it
assert x.is_cuda
first, second, third = torch.empty_like(x), torch.zeros_like(x), torch.zeros_like(x)
fast = cute.compile(launch, *(from_dlpack(each, enable_tvm_ffi=True) for each in (x, first)), options="--enable-tvm-ffi")
fast(x, first)
launch(from_dlpack(x), from_dlpack(second))
launch_at(*(make_ptr(cutlass.Float32, each.data_ptr(), cute.AddressSpace.gmem, assumed_align=16) for each in (x, third)))
x.mul_(2)
fast(x, first)  # sees what the host has done since
assert RACY or torch.equal(second, x.flip(1) / 2)
assert RACY or torch.equal(third, second)
assert RACY or torch.equal(first, x.flip(1))
