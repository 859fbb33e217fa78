"""Kernels whose accesses to global memory are too many to be compared at once, launched again and again on a GPU.

    python tests/bench/slices.py [matmul] [cross] [--launches N] [--size N] [--options "--global on --trace-memory 256M"]

`matmul`: Triton's product of kernels_of_launches.py, SIZE x SIZE (4096). `cross`: liger-kernel's cross entropy of 4096 x 8192. Each alone,
then under `consan run` with the options: seconds of the process, a launch, GPU memory, the verdict, and what was not checked.
Needs torch and Triton, `cross` also liger-kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LONGEST = 100  # seconds of a process


def matmul(size: int) -> Callable[[], object]:
    """A launch of Triton's product of matrices."""
    import torch
    from kernels_of_launches import product

    a, b, out = (torch.rand((size, size), device="cuda", dtype=torch.float16) for _ in range(3))
    return lambda: product[size // 64, size // 64](a, b, out, size, size, size, tile=64, depth=32)


def cross(_: int) -> Callable[[], object]:
    """A launch of liger's cross entropy: it stores the derivative in place of the logits."""
    import torch
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    logits, wanted = torch.rand(4096, 8192, device="cuda"), torch.randint(8192, (4096,), device="cuda")
    return lambda: LigerCrossEntropyFunction.apply(logits.clone().requires_grad_(), wanted, None)


WORKS = {"matmul": matmul, "cross": cross}


def launched(name: str, size: int, launches: int) -> None:
    """In a process of its own: launch, wait for each, and print the milliseconds of one, and the memory."""
    import torch

    launch, times = WORKS[name](size), list[float]()
    for _ in range(launches):
        began = time.perf_counter()
        launch()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
        time.sleep(0.02)
    free, total = torch.cuda.mem_get_info()
    print(f"slices first {times[0]:.0f} ms, then {sorted(times[1:])[len(times) // 2]:.2f} ms, longest {max(times[1:]):.0f} ms, "
          f"device {(total - free) >> 20} MiB", flush=True)  # fmt: skip


def described(name: str, given: argparse.Namespace, options: list[str] | None) -> str:
    """The figures of one process. `options`: of `consan run`; None: alone."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = [] if options is None else ["-m", "consan", "run", "-o", str(report), *options]
        began = time.perf_counter()
        command = [sys.executable, *words, __file__, name, "--one", "--size", str(given.size), "--launches", str(given.launches)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST, env=dict(os.environ))
        except subprocess.TimeoutExpired:
            return f"over {LONGEST} s"
        found = [line for line in done.stdout.splitlines() if line.startswith("slices") or "consan's own" in line]
        text = f"{time.perf_counter() - began:.1f} s, status {done.returncode}; {'; '.join(map(str.strip, found)) or done.stderr[-600:]}"
        if not report.exists():
            return text
        made = json.loads(report.read_text())
        kernels = "; ".join(f"{each['name']} {each['launches']} launches, {each['engine']}" for each in made["kernels"])
        return f"{text}; {made['verdict']}; {kernels}; {made['not_checked']}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(WORKS))
    parser.add_argument("--launches", type=int, default=60)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--options", default="")
    parser.add_argument("--one", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        if given.one:
            launched(name, given.size, given.launches)
            continue
        print(f"{name}: plain {described(name, given, None)}", flush=True)
        print(f"{name}: consan {given.options} {described(name, given, given.options.split())}", flush=True)


if __name__ == "__main__":
    main()
