"""Races in global memory between CTAs in programs of frameworks on a GPU, found by plain `consan run`, and their repaired twins."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from programs import run

pytestmark = pytest.mark.gpu

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
x, y, z = cp.zeros(1 << 16, cp.float32), cp.zeros(1 << 16, cp.float32), cp.zeros(1 << 16, cp.int32)
'''
LAUNCHES = {
    "rows": ("for _ in range({times}): kernel((64,), (256,), (x, y, cp.int32({right} or 240)))", "256"),
    "histogram": ("for _ in range({times}): kernel((64,), (256,), (cp.zeros(64, cp.int32), z, cp.int32({right})))", "1"),
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
    status, report = run(tmp_path, head + text.format(times=3, right=0))
    assert (status, report["verdict"]) == (66, "violations"), report
    assert "global-race" in {finding["kind"] for finding in report["findings"]}, report
    status, report = run(tmp_path, head + text.format(times=1, right=right))
    assert outcome(status, report) == (0, "clean", set()), report
    assert "global-memory" in report["checked"], global_gaps(report)


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
