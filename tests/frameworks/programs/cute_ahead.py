"""CuTe DSL, compiled ahead of time: one program leaves an object, and a second one loads it and reverses numbers through shared memory."""

import subprocess
import sys
import tempfile

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, load_module, make_fake_compact_tensor

RACY, COUNT = "racy" in sys.argv, 64


@cute.kernel
def turn(given: cute.Tensor, out: cute.Tensor):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(COUNT))
    thread, _, _ = cute.arch.thread_idx()
    shared[thread] = given[thread]
    if cutlass.const_expr(not RACY):
        cute.arch.sync_threads()
    out[thread] = shared[COUNT - 1 - thread]  # reader


@cute.jit
def reverse(given: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    turn(given, out).launch(grid=(1, 1, 1), block=(COUNT, 1, 1), stream=stream)


def load(folder: str) -> None:
    given = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    out = torch.zeros_like(given)
    load_module(f"{folder}/reverse.o").reverse(from_dlpack(given), from_dlpack(out), cuda.CUstream(0))
    assert RACY or out.cpu().tolist() == list(range(COUNT - 1, -1, -1))


if "--load" in sys.argv:
    load(sys.argv[-1])
else:
    with tempfile.TemporaryDirectory() as folder:
        tensors = [make_fake_compact_tensor(cutlass.Float32, (COUNT,)) for _ in range(2)]
        cute.compile(reverse, *tensors, cuda.CUstream(0)).export_to_c(folder, "reverse", function_prefix="reverse")
        subprocess.run([sys.executable, *sys.argv, "--load", folder], check=True)
