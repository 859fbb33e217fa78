"""What a divergent barrier does to the other findings of its launch: those before it and those of other CTAs stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import plant

import consan
from consan.instrument.functions import points

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


@pytest.mark.parametrize("barrier", ["", "__syncthreads();", "__syncwarp();"])
def test_lanes_that_have_exited_before_a_barrier_are_missed_at_a_matrix_instruction(barrier: str) -> None:
    """A barrier does not wait for lanes that have exited; a matrix instruction behind it needs all."""
    source = f"""extern "C" __global__ void k(const float* x, float* out) {{
    int t = threadIdx.x;
    if (t % 32 >= 16) return;
    {barrier}
    unsigned a = 0, b = 0;
    float d[4];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%0, %1, %2, %3}}, {{%4, %4}}, {{%5}}, {{%6, %6, %6, %6}};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a), "r"(b), "f"(0.0f));
    out[t] = x[t] + d[0];
}}"""
    values = [np.zeros(64, np.float32), np.zeros(64, np.float32)]
    report = consan.launch(consan.Kernel(source, entry="k", arch="sm_80"), 1, 64, values, device="cpu")
    assert [(each.kind, each.situation) for each in report.findings] == [("barrier-misuse", "divergent-warp")]


@pytest.mark.parametrize("barrier", ["__syncwarp()", "__syncthreads()"])
@pytest.mark.parametrize("planted", [False, True])
def test_lanes_do_not_meet_across_a_place_that_all_pass(
    barrier: str, planted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted:
        plant(monkeypatch, points, "other in behind or (other == node and index > at)", "0")
    both = "if (t % 2 == {0}) found += __shfl_xor_sync(~0u, t, {1});"
    kernel = 'extern "C" __global__ void kernel(float* out) {{ int t = threadIdx.x, found = 0; {}; {}; {} out[t] = found; }}'
    text = kernel.format(both.format(0, 2), barrier, both.format(1, 4 if planted else 6))
    assert _kinds(_report(tmp_path, text, grid=1)) == ([] if planted else ["barrier-misuse"])


def test_lanes_meet_at_two_barriers_of_the_warp(tmp_path: Path) -> None:
    """One that some of them pass, and one that all pass: each lane passes three."""
    some = 'if (t % 2 == {}) asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); __syncwarp();'
    text = f'extern "C" __global__ void kernel(float* out) {{ int t = threadIdx.x; {some.format(0)} {some.format(1)} out[t] = 0; }}'
    assert _kinds(_report(tmp_path, text, grid=1)) == []
