"""Times an all-reduce in one shot on the virtual machine, checked, with one rank and with several."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import consan

THREADS, CTAS, REPEATS = 256, 64, 5
KERNEL = """
typedef unsigned u32;
extern "C" __global__ void all_reduce(float **buffers, u32 **signals, float *out, u32 rank, u32 ranks) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, seen;
    if (threadIdx.x < ranks) {
        u32 *theirs = &signals[threadIdx.x][blockIdx.x * ranks + rank], *mine = &signals[rank][blockIdx.x * ranks + threadIdx.x];
        asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(theirs) : "memory");
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory"); while (!seen);
    }
    __syncthreads();
    float sum = 0;
    for (u32 peer = 0; peer < ranks; ++peer) sum += buffers[peer][at];
    out[at] = sum;
}
"""


def launched(kernel: consan.Kernel, ranks: int) -> float:
    """Seconds for one launch."""
    count = THREADS * CTAS
    buffers = [np.ones(count, np.float32) for _ in range(ranks)]
    signals = [np.zeros(CTAS * ranks, np.uint32) for _ in range(ranks)]
    outs = [np.zeros(count, np.float32) for _ in range(ranks)]
    args: list[Any] = [[*buffers, *signals, outs[rank], rank] for rank in range(ranks)]
    began = time.perf_counter()
    how: dict[str, Any] = {"ranks": ranks} if ranks > 1 else {}
    report = consan.launch(kernel, CTAS, THREADS, args if ranks > 1 else args[0], device="cpu", **how)
    seconds = time.perf_counter() - began
    assert report.verdict == "clean", report
    assert all((out == ranks).all() for out in outs)
    return seconds


def kernel_of(ranks: int) -> consan.Kernel:
    """The kernel, with a parameter for each buffer."""
    pairs = [("float", "b"), ("u32", "s")]
    params = ", ".join(f"{kind} *{name}{rank}" for kind, name in pairs for rank in range(ranks))
    tables = " ".join(
        f"{kind} *{table}[] = {{{', '.join(f'{name}{rank}' for rank in range(ranks))}}};"
        for (kind, name), table in zip(pairs, ("buffers", "signals"), strict=True)
    )
    text = KERNEL.replace("float **buffers, u32 **signals, float *out, u32 rank, u32 ranks", f"{params}, float *out, u32 rank")
    return consan.Kernel(text.replace("u32 at =", f"const u32 ranks = {ranks}; {tables}\n    u32 at =", 1), "all_reduce")


if __name__ == "__main__":
    for ranks in (1, 2, 4):
        kernel = kernel_of(ranks)
        launched(kernel, ranks)
        print(f"{ranks} rank{'s' * (ranks > 1)} of {CTAS} CTAs: {min(launched(kernel, ranks) for _ in range(REPEATS)):.2f} s")
