"""Whole programs of Triton, TorchInductor, CuPy and others on a GPU: alone, under `consan run`, also without
a look at global memory (`--global off`: "shared"), and under `consan run --engine inline`.

    python tests/bench/bench_framework.py [NAME ...] [--ways plain,recorded]

Each is a process of its own, with the frameworks' caches warm but for TorchInductor's tuning: wall time of the process, and of a launch (of
50 in it; one step of training). The host waits at the end. Programs whose packages are missing are left out with a line.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST = 200  # seconds of a process
KERNELS = Path(__file__).parents[1] / "adapters_triton"
TIMED = """
import sys, time
def timed(run, wait, times=50):
    run(); wait(); began = time.perf_counter()
    for _ in range(times): run()
    wait(); print("launches", (time.perf_counter() - began) / times)
"""
TORCH = f"""
sys.path.insert(0, {str(KERNELS)!r})
import torch, triton
wait = torch.cuda.synchronize
"""
TRITON = f"""{TORCH}
import triton_kernels as kernels
from triton.tools.tensor_descriptor import TensorDescriptor
a, b = (torch.rand(2048, 2048, device="cuda").half() for _ in range(2)); c = torch.empty_like(a)
"""
CUPY = """
import cupy as cp
wait = cp.cuda.Device().synchronize
"""
# 27 kernels or so: the templates of the product, and what is fused around it.
TUNED = """
import torch._inductor.config as config
config.max_autotune_gemm_backends = "TRITON"
config.force_disable_caches = True
f = torch.compile(lambda x, y: torch.relu(x @ y + 1).softmax(dim=1), mode="max-autotune-no-cudagraphs")
x, y = (torch.rand(2048, 2048, device="cuda").half() for _ in range(2)); timed(lambda: f(x, y), wait)
"""
TRAINED = """
from liger_kernel.transformers import LigerLayerNorm, LigerRMSNorm
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
torch.manual_seed(0)
net = torch.nn.Sequential(LigerRMSNorm(1024), torch.nn.Linear(1024, 1024), LigerLayerNorm(1024), torch.nn.Linear(1024, 8192)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x, y = torch.rand(4096, 1024, device="cuda"), torch.randint(8192, (4096,), device="cuda")
def step():
    loss = LigerCrossEntropyFunction.apply(net(x), y, None)
    loss = loss[0] if isinstance(loss, tuple) else loss
    loss.backward(); optimizer.step(); optimizer.zero_grad()
timed(step, wait)
"""
RAW = '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void sums(const float *x, float *out) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * 256 + t];
    for (int s = 128; s; s >>= 1) {
        __syncthreads();
        if (t < s) tile[t] += tile[t + s];
    }
    if (t == 0) out[blockIdx.x] = tile[0];
}
""", "sums")
x, out = cp.ones(1 << 22, dtype=cp.float32), cp.zeros(1 << 14, dtype=cp.float32)
timed(lambda: kernel((1 << 14,), (256,), (x, out)), wait)
assert (out == 256).all()
'''
# Elementwise, at another address in each launch; and at addresses that are loaded, which no proof takes.
ADDRESSES = '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void add(const float *x, const float *y, float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
""", "add")
n, counter = 1 << 18, iter(range(1 << 20))
x, y, z = (cp.zeros(2 * n, cp.float32) for _ in range(3))
timed(lambda: kernel((n // 256,), (256,), (x, y, z[64 * next(counter):], cp.int32(n))), wait, 1000)
'''
SCATTER = '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void sums(const float *x, float *y, const int *to, int n) {
    __shared__ float t[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    t[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) y[to[i]] = t[255 - threadIdx.x];
}
""", "sums")
n = 1 << 18
x, y, to = cp.zeros(n, cp.float32), cp.zeros(n, cp.float32), cp.arange(n, dtype=cp.int32)
timed(lambda: kernel((n // 256,), (256,), (x, y, to, cp.int32(n))), wait, 1000)
'''
NUMBA = """
import numpy as np
from numba import cuda, float32
@cuda.jit
def sums(x, out):
    tile = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    s = 128
    while s > 0:
        cuda.syncthreads()
        if t < s:
            tile[t] += tile[t + s]
        s //= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]
x, out = cuda.to_device(np.ones(1 << 22, np.float32)), cuda.to_device(np.zeros(1 << 14, np.float32))
timed(lambda: sums[1 << 14, 256](x, out), cuda.synchronize)
"""
BLOCKS = "BLOCK_M=128, BLOCK_N=128, BLOCK_K=64"
# Name: the packages that it needs, and its text.
PROGRAMS = {
    "add": (
        "triton torch",
        f"{TRITON}x = torch.rand(1 << 22, device='cuda'); out = torch.empty_like(x)\n"
        "timed(lambda: kernels.add[(4096,)](x, x, out, 1 << 22, BLOCK=1024), wait)",
    ),
    "matmul": (
        "triton torch",
        f"{TRITON}timed(lambda: kernels.matmul[(16, 16)](a, b, c, 2048, 2048, 1, 2048, 1, 2048, {BLOCKS}, num_stages=3), wait)",
    ),
    "matmul_host": (
        "triton torch",
        f"{TRITON}maps = [TensorDescriptor.from_tensor(x, s) for x, s in ((a, [128, 64]), (b, [64, 128]), (c, [128, 128]))]\n"
        f"timed(lambda: kernels.matmul_host[(16, 16)](*maps, 2048, {BLOCKS}), wait)",
    ),
    "inductor": (
        "triton torch",
        f"{TORCH}f = torch.compile(lambda x: torch.softmax(x * 2 + 1, dim=1) + x.sum(1, keepdim=True))\n"
        "x = torch.rand(4096, 1000, device='cuda'); timed(lambda: f(x), wait)",
    ),
    "inductor_tuned": ("triton torch", TORCH + TUNED),
    "liger_step": ("triton torch liger_kernel", TORCH + TRAINED),
    "cupy_sum": ("cupy", f"{CUPY}x = cp.ones(1 << 22, dtype=cp.float32)\ntimed(lambda: x.sum(), wait)"),
    "cupy_elementwise": ("cupy", f"{CUPY}x = cp.ones(1 << 22, dtype=cp.float32)\ntimed(lambda: x * 2 + 1, wait)"),
    "cupy_raw": ("cupy", CUPY + RAW),
    "cupy_addresses": ("cupy", CUPY + ADDRESSES),
    "cupy_scatter": ("cupy", CUPY + SCATTER),
    "numba_sums": ("numba_cuda", NUMBA),
}
RUN = ["-m", "consan", "run"]
WAYS = {"plain": [], "shared": [*RUN, "--global", "off"], "recorded": RUN, "hooks": [*RUN, "--engine", "inline"]}


def measured(way: str, script: Path) -> str:
    """Seconds of the process, of a launch, and how it ended."""
    began = time.perf_counter()
    command = [sys.executable, *WAYS[way], str(script)]
    try:
        done = subprocess.run(command, cwd=script.parent, env=os.environ, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return f"over {LONGEST} s"
    seconds = time.perf_counter() - began
    found = re.search(r"launches ([\d.e-]+)", done.stdout)
    verdict = re.search(r"verdict: (\w+)", done.stdout + done.stderr)
    launches = f"{float(found[1]) * 1000:.3f} ms a launch" if found else f"failed: {(done.stderr or done.stdout)[-300:]!r}"
    return f"{seconds:.1f} s, {launches}{f', {verdict[1]}' if verdict else ''}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", default=",".join(WAYS))
    given = parser.parse_args()
    ways = given.ways.split(",")
    with tempfile.TemporaryDirectory() as folder:
        print(f"| program | {' | '.join(ways)} |\n|---{'|---' * len(ways)}|")
        for name in given.names or PROGRAMS:
            needs, text = PROGRAMS[name]
            missing = [package for package in needs.split() if importlib.util.find_spec(package) is None]
            if missing:
                print(f"| {name} | left out: {', '.join(missing)} is not installed |", flush=True)
                continue
            script = Path(folder) / f"{name}.py"
            script.write_text(f"{TIMED}{text}\n")
            measured("plain", script)  # fills the caches
            print(f"| {name} | {' | '.join(measured(way, script) for way in ways)} |", flush=True)


if __name__ == "__main__":
    main()
