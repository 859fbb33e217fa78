"""What others need for the same Triton matmul: plain, under Triton's own sanitizer, under NVIDIA's racecheck.

    python tests/bench/bench_others.py 2048                                          plain
    TRITON_INSTRUMENTATION_MODE=consan python tests/bench/bench_others.py 2048       Triton's ConSan
    compute-sanitizer --tool racecheck python tests/bench/bench_others.py 256        racecheck

The kernels are those of the corpus (`triton_hopper.py`), launched by Triton itself; consan's own figures for them come from
`bench_real.py --device gpu --arch sm_90a`. Median of CUDA events after a warm-up, the time of the first launch with its compilation,
and the size of the PTX. Needs Triton, PyTorch and a Hopper GPU; nothing of consan.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus" / "producers"))

import torch
import triton
import triton_hopper as producers
from triton.tools.tensor_descriptor import TensorDescriptor

NAMES = ("matmul_3_stages", "matmul_4_stages", "matmul_host_tma")


def _launcher(name: str, n: int) -> Any:
    kernel, _, constants, options = producers.KERNELS[name]
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(n, n, device="cuda", dtype=torch.float16)
    grid = (triton.cdiv(n, constants["BLOCK_M"]) * triton.cdiv(n, constants["BLOCK_N"]),)
    if kernel is producers.matmul:
        return lambda: kernel[grid](a, b, c, n, n, n, stride_am=n, stride_bk=n, stride_cm=n, **constants, **options)
    boxes = [[constants[x], constants[y]] for x, y in (("BLOCK_M", "BLOCK_K"), ("BLOCK_N", "BLOCK_K"), ("BLOCK_M", "BLOCK_N"))]
    maps = [TensorDescriptor.from_tensor(tensor, box) for tensor, box in zip((a, b, c), boxes, strict=True)]
    return lambda: kernel[grid](*maps, n, n, n, **constants, **options)


def _milliseconds(launch: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def row(name: str, n: int, mode: str) -> str:
    """One kernel's line; a tool that does not get through is a result, too."""
    try:
        launch = _launcher(name, n)
        started = time.perf_counter()
        compiled = launch()
        torch.cuda.synchronize()
        first, lines = time.perf_counter() - started, compiled.asm["ptx"].count("\n")
        took = _milliseconds(launch, 1 if mode != "none" else 10)
    except Exception as error:
        return f"{name} n={n} mode={mode}: {type(error).__name__}: {str(error).splitlines()[0][:160]}"
    return f"{name} n={n} mode={mode}: {took:.3f} ms, first launch {first:.2f} s, PTX {lines} lines"


def main() -> int:
    """One line for each kernel."""
    parser = argparse.ArgumentParser(description="The matmul as Triton launches it.")
    parser.add_argument("n", type=int, help="size of the square matrices")
    parser.add_argument("names", nargs="*", default=NAMES)
    options = parser.parse_args()
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    for name in options.names:
        print(row(name, options.n, os.environ.get("TRITON_INSTRUMENTATION_MODE") or "none"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
