"""Races in global memory between CTAs in programs of frameworks on a GPU, found by plain `consan run`, and their repaired twins."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from programs import run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

CUPY = '''
import cupy as cp
kernel = cp.RawKernel(r"""
extern "C" __global__ void rows(float *out, const float *from, int stride) {  // a stride below 256: tiles overlap
    int at = blockIdx.x * stride + threadIdx.x;
    out[at] = from[at] + blockIdx.x;
}
extern "C" __global__ void histogram(int *bins, const int *keys, int atomic) {
    int key = keys[blockIdx.x * 256 + threadIdx.x];
    if (atomic) atomicAdd(bins + key, 1); else bins[key] += 1;
}
extern "C" __global__ void last_block(float *out, float *parts, unsigned *count, int fenced) {
    if (threadIdx.x) return;
    parts[blockIdx.x] = blockIdx.x;
    if (fenced) __threadfence();
    if (atomicAdd(count, 1u) != gridDim.x - 1) return;
    if (fenced) __threadfence();
    for (int i = 0; i < gridDim.x; ++i) *out += parts[i];
}
""", {name!r})
x, y, z = cp.zeros(1 << 16, cp.float32), cp.zeros(1 << 16, cp.float32), cp.arange(1 << 16, dtype=cp.int32) % 64
'''
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def histogram(keys, bins, atomic: tl.constexpr, B: tl.constexpr):
    key = tl.load(keys + tl.program_id(0) * B + tl.arange(0, B))
    if atomic: tl.atomic_add(bins + key, 1)
    else: tl.store(bins + key, tl.load(bins + key) + 1)
@triton.jit
def split_k(parts, out, count, K: tl.constexpr, sem: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(parts + tl.program_id(0) * B + at, at * 1.0 + tl.program_id(0))
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem=sem) == K - 1:
        total = tl.zeros([B], tl.float32)
        for i in range(K): total += tl.load(parts + i * B + at)
        tl.store(out + at, total)
@triton.jit
def rows(x, out, n, stride, B: tl.constexpr):
    at = tl.program_id(0) * stride + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.program_id(0), mask=at < n)
zeros = lambda n, kind: torch.zeros(n, dtype=kind, device="cuda")
x, y = zeros(1 << 16, torch.float32), zeros(1 << 16, torch.float32)
keys, bins = torch.arange(1 << 14, dtype=torch.int32, device="cuda") % 64, zeros(64, torch.int32)
"""
TRITON_LAUNCHES = {
    "histogram": ("histogram[(8,)](keys, bins, {right}, B=256)", "False", "True"),
    "split_k": ("split_k[(16,)](x, y, zeros(1, torch.int32), 16, {right!r}, B=256)", "relaxed", "acq_rel"),
    "rows": ("rows[(64,)](x, y, 1 << 16, {right}, B=256)", "240", "256"),
}
INDUCTOR = """
import torch
f = torch.compile(lambda x: torch.softmax(torch.relu(x) * 2 + 1, dim=1))
x = torch.rand(64, 512, device="cuda")
for _ in range(5): y = f(x)
assert torch.allclose(y, torch.softmax(torch.relu(x) * 2 + 1, dim=1))
"""
COMPILED = """
import torch
kernel = torch.cuda._compile_kernel('extern "C" __global__ void rows(float *out, int n, int stride) '
    '{ int at = blockIdx.x * stride + threadIdx.x; if (at < n) out[at] = blockIdx.x + 1; }', "rows")
out = torch.zeros(1 << 14, device="cuda")
for _ in range(3): kernel(grid=(64, 1, 1), block=(256, 1, 1), args=[out, 1 << 14, {right}])
"""
LAUNCHES = {
    "rows": ("for _ in range({times}): kernel((64,), (256,), (x, y, cp.int32({right} or 240)))", "256"),
    "histogram": ("for _ in range({times}): kernel((8,), (256,), (cp.zeros(64, cp.int32), z, cp.int32({right})))", "1"),
    "last_block": ("for _ in range({times}): kernel((64,), (32,), (x, y, cp.zeros(1, cp.uint32), cp.int32({right})))", "1"),
}


def needs(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")


def global_gaps(report: dict[str, Any]) -> str:
    return " ".join(area for area in report["not_checked"] if area.startswith("global-memory"))


def outcome(status: int, report: dict[str, Any]) -> tuple[int, str, set[str]]:
    return status, report["verdict"], {finding["kind"] for finding in report["findings"] if finding["severity"] != "note"}


@pytest.mark.parametrize("name", LAUNCHES)
def test_cupy(name: str, tmp_path: Path) -> None:
    needs("cupy")
    text, right = LAUNCHES[name]
    head = CUPY.replace("{name!r}", repr(name))
    racy(tmp_path, head + text.format(times=3, right=0))
    clean(tmp_path, head + text.format(times=1, right=right))


def test_cupy_repeats(tmp_path: Path) -> None:
    """Launches that are proven apart count as checked, however many; others are named with their count."""
    needs("cupy")
    for name, checked in (("rows", True), ("histogram", False)):
        text, right = LAUNCHES[name]
        status, report = run(tmp_path, CUPY.replace("{name!r}", repr(name)) + text.format(times=50, right=right))
        assert outcome(status, report) == (0, "clean", set()), report
        assert ("global-memory" in report["checked"]) is checked, global_gaps(report)
        if not checked:
            assert "histogram: 49 of 50 launches: only the first launches" in global_gaps(report)


def test_cupys_own_kernels_are_proven(tmp_path: Path) -> None:
    needs("cupy")
    body = "import cupy as cp\na = cp.arange(1 << 20, dtype=cp.float32)\nfor _ in range(20): b = a * 2 + 1\nc = cp.sqrt(b); d = a.copy()\n"
    status, report = run(tmp_path, body)
    assert outcome(status, report) == (0, "clean", set()), report
    assert "global-memory" in report["checked"], global_gaps(report)


def racy(folder: Path, script: str) -> None:
    status, report = run(folder, script)
    assert (status, report["verdict"]) == (66, "violations"), report
    assert "global-race" in {finding["kind"] for finding in report["findings"]}, report


def clean(folder: Path, script: str) -> dict[str, Any]:
    status, report = run(folder, script)
    assert outcome(status, report) == (0, "clean", set()), report
    assert "global-memory" in report["checked"], global_gaps(report)
    return report


@pytest.mark.parametrize("name", TRITON_LAUNCHES)
def test_triton(name: str, tmp_path: Path) -> None:
    needs("triton"), needs("torch")
    text, wrong, right = TRITON_LAUNCHES[name]
    racy(tmp_path, TRITON + text.replace("{right!r}", repr(wrong)).replace("{right}", wrong))
    clean(tmp_path, TRITON + text.replace("{right!r}", repr(right)).replace("{right}", right))


def test_triton_repeats(tmp_path: Path) -> None:
    needs("triton"), needs("torch")
    report = clean(tmp_path, TRITON + "for _ in range(40): rows[(64,)](x, y, 1 << 16, 256, B=256)")
    (kernel,) = (kernel for kernel in report["kernels"] if kernel["launches"])
    assert (kernel["name"], kernel["launches"]) == ("rows", 40)
    assert kernel["global_proven"] > 0


def test_inductor(tmp_path: Path) -> None:
    needs("triton"), needs("torch")
    clean(tmp_path, INDUCTOR)


def test_compiled_by_torch(tmp_path: Path) -> None:
    needs("torch")
    if not hasattr(pytest.importorskip("torch").cuda, "_compile_kernel"):
        pytest.skip("this torch compiles no kernels")
    racy(tmp_path, COMPILED.replace("{right}", "240"))
    clean(tmp_path, COMPILED.replace("{right}", "256"))


ROWS = "int at = blockIdx.x * stride + threadIdx.x; out[at] = from[at] + blockIdx.x;"
TEMPLATE = f"template <typename T> __global__ void rows(T *out, const T *from, int stride) {{ {ROWS} }}"
NAMED = {
    "cupy": CUPY.replace("{name!r}", "'rows'") + "kernel((64,), (256,), (x, y, cp.int32(240)))",
    "module of cupy": f"""
import cupy as cp
x, y = cp.zeros(1 << 16, cp.float32), cp.zeros(1 << 16, cp.float32)
module = cp.RawModule(code='{TEMPLATE}', name_expressions=['rows<float>'])
module.get_function('rows<float>')((64,), (256,), (x, y, cp.int32(240)))
""",
    "elementwise": """
import cupy as cp
x, y = cp.zeros(1 << 16, cp.float32), cp.zeros(1 << 16, cp.float32)
cp.ElementwiseKernel("float32 from", "raw float32 out", "out[i % 100] = from + i", "rows")(y, x)
""",
    "triton": TRITON + "rows[(64,)](y, x, 1 << 16, 240, B=256)",
    "torch": COMPILED.replace("{right}", "240"),
    "cuda.core": f"""
import torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(); device.set_current()
x, y = torch.zeros(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
import numpy as np
program = Program('{TEMPLATE}', "c++", options=ProgramOptions(arch=f"sm_{{device.arch}}"))
kernel = program.compile("cubin", name_expressions=("rows<float>",)).get_kernel("rows<float>")
stream = device.create_stream()
launch(stream, LaunchConfig(grid=64, block=256), kernel, x.data_ptr(), y.data_ptr(), np.int32(240))
stream.sync()
""",
}
_NEEDS = {"triton": ("triton", "torch"), "torch": ("torch",), "cuda.core": ("cuda", "cuda.core", "torch")}


@pytest.mark.parametrize("how", NAMED)
def test_a_race_names_the_array_and_the_element(how: str, tmp_path: Path) -> None:
    for package in _NEEDS.get(how, ("cupy",)):
        needs(package)
    _, report = run(tmp_path, NAMED[how])
    race = next(finding for finding in report["findings"] if finding["kind"] == "global-race")
    names = [access["name"] for access in race["accesses"] if access["role"] != "culprit"]
    assert all(re.fullmatch(r"elements? \d+(\.\.\d+)? of argument \d \(out\)", name) for name in names), names
