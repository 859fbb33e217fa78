"""Whole programs of Triton and TorchInductor on a GPU: alone, under `consan run`, and under `consan run --engine inline`.

    python tests/bench/bench_framework.py [NAME ...] [--ways plain,recorded]

Each is a process of its own, with Triton's cache warm: wall time of the process, and of 50 launches in it. The host waits at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "adapters_triton"
HEAD = f"""
import sys, time
sys.path.insert(0, {str(KERNELS)!r})
import torch, triton, triton_kernels as kernels
from triton.tools.tensor_descriptor import TensorDescriptor
def timed(run):
    run(); torch.cuda.synchronize(); began = time.perf_counter()
    for _ in range(50): run()
    torch.cuda.synchronize(); print("launches", time.perf_counter() - began)
a, b = (torch.rand(2048, 2048, device="cuda").half() for _ in range(2)); c = torch.empty_like(a)
"""
BLOCKS = "BLOCK_M=128, BLOCK_N=128, BLOCK_K=64"
PROGRAMS = {
    "add": "x = torch.rand(1 << 22, device='cuda'); out = torch.empty_like(x)\n"
    "timed(lambda: kernels.add[(4096,)](x, x, out, 1 << 22, BLOCK=1024))",
    "matmul": f"timed(lambda: kernels.matmul[(16, 16)](a, b, c, 2048, 2048, 1, 2048, 1, 2048, {BLOCKS}, num_stages=3))",
    "matmul_host": "maps = [TensorDescriptor.from_tensor(x, s) for x, s in ((a, [128, 64]), (b, [64, 128]), (c, [128, 128]))]\n"
    f"timed(lambda: kernels.matmul_host[(16, 16)](*maps, 2048, {BLOCKS}))",
    "inductor": "f = torch.compile(lambda x: torch.softmax(x * 2 + 1, dim=1) + x.sum(1, keepdim=True))\n"
    "x = torch.rand(4096, 1000, device='cuda'); timed(lambda: f(x))",
}
WAYS = {"plain": [], "recorded": ["-m", "consan", "run"], "hooks": ["-m", "consan", "run", "--engine", "inline"]}


def measured(way: str, script: Path) -> str:
    """Seconds of the process, of its launches, and how it ended."""
    began = time.perf_counter()
    command = [sys.executable, *WAYS[way], str(script)]
    done = subprocess.run(command, cwd=script.parent, env=os.environ, capture_output=True, text=True, timeout=200, check=False)
    seconds = time.perf_counter() - began
    found = re.search(r"launches ([\d.e-]+)", done.stdout)
    verdict = re.search(r"consan: (\w+)", done.stdout + done.stderr)
    launches = f"{float(found[1]) * 20:.3f} ms" if found else f"failed: {(done.stderr or done.stdout)[-300:]}"
    return f"{seconds:.1f} s, {launches} a launch{f', {verdict[1]}' if verdict else ''}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", default=",".join(WAYS))
    given = parser.parse_args()
    ways = given.ways.split(",")
    with tempfile.TemporaryDirectory() as folder:
        print(f"| program | {' | '.join(ways)} |\n|---{'|---' * len(ways)}|")
        for name in given.names or PROGRAMS:
            script = Path(folder) / f"{name}.py"
            script.write_text(HEAD + PROGRAMS[name] + "\n")
            measured("plain", script)  # fills Triton's cache
            print(f"| {name} | {' | '.join(measured(way, script) for way in ways)} |", flush=True)


if __name__ == "__main__":
    main()
