"""What a divergent barrier does to the other findings of its launch: those before it and those of other CTAs stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import consan

HEAD = """
extern "C" __global__ void kernel(float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = 0;
    __syncthreads();
"""
RACE = "tile[t] = t; out[t] = tile[63 - t];  /*%s*/\n"
DIVERGENT = "if (t < 16) __syncthreads();\n"
STUCK = 'if (t < 32) asm volatile("bar.sync 1, 64;");\n'
NOT_INLINED = """
extern "C" __device__ __noinline__ void half(int t) { if (t < 16) __syncthreads(); }
extern "C" __global__ void kernel(float* out) { half(threadIdx.x); out[threadIdx.x] = 1; }
"""


def _report(tmp_path: Path, text: str, grid: int = 2) -> Any:
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    return consan.launch(consan.Kernel(path, entry="kernel"), grid, 64, [np.zeros(64, np.float32)], device="cpu")


def _kinds(report: Any) -> list[str]:
    return sorted(finding.kind for finding in report.findings)


def _blocks(report: Any, kind: str) -> set[tuple[int, ...]]:
    return {access.block for finding in report.findings if finding.kind == kind for access in finding.accesses}


def test_a_race_before_it_is_told(tmp_path: Path) -> None:
    report = _report(tmp_path, HEAD + RACE + "__syncthreads();\n" + DIVERGENT + "__syncthreads(); out[t] += tile[t];\n}\n", grid=1)
    assert _kinds(report) == ["barrier-misuse", "data-race"]


def test_a_race_of_another_cta_is_told(tmp_path: Path) -> None:
    report = _report(tmp_path, HEAD + "if (blockIdx.x == 0) {\n" + DIVERGENT + "out[t] = 1;\n} else {\n" + RACE + "}\n}\n")
    assert set(_kinds(report)) == {"barrier-misuse", "data-race"}
    assert _blocks(report, "barrier-misuse") == {(0, 0, 0)}
    assert _blocks(report, "data-race") == {(1, 0, 0)}


def test_a_deadlock_of_another_cta_is_told(tmp_path: Path) -> None:
    body = "if (blockIdx.x == 0) {\n" + DIVERGENT + "__syncthreads(); out[t] = 1; __syncthreads();\n} else {\n" + STUCK + "}\n}\n"
    assert _kinds(_report(tmp_path, HEAD + body)) == ["barrier-misuse", "deadlock"]


def test_its_own_deadlock_is_not(tmp_path: Path) -> None:
    body = DIVERGENT + "__syncthreads(); out[t] = 1; __syncthreads(); out[t] = 2;\n}\n"
    assert _kinds(_report(tmp_path, HEAD + body)) == ["barrier-misuse"]


def test_what_is_seen_in_part_only_is_said(tmp_path: Path) -> None:
    report = _report(tmp_path, NOT_INLINED)
    assert [area for area in report.not_checked if area.startswith("divergence: ")], report.not_checked
