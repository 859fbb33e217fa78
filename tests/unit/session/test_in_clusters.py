"""Kernels whose grid is counted in clusters: the text that a session loads, and the grids of frameworks."""

from __future__ import annotations

import types
from typing import Any

import consan
from consan.instrument.ptx import parse
from consan.session.modules.in_clusters import grid_in_ctas, in_ctas, units_of

SOURCE = """
extern "C" __global__ void __block_size__((64, 1, 1), (2, 3, 1)) counted(float* x) { x[blockIdx.x] = 1; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) plain(float* x) { x[blockIdx.x] = 1; }
"""


def test_the_text_that_is_loaded_counts_ctas() -> None:
    ptx = consan.Kernel(SOURCE, "counted", arch="sm_90").ptx
    freed = in_ctas(ptx)
    assert isinstance(freed, str)
    assert "blocksareclusters" in ptx
    assert "blocksareclusters" not in freed
    assert "reqnctapercluster 2, 3, 1" in freed
    assert [len(line) for line in freed.splitlines()] == [len(line) for line in ptx.splitlines()]
    assert in_ctas(freed) is freed


def test_grids_of_frameworks() -> None:
    ptx = consan.Kernel(SOURCE, "counted", arch="sm_90").ptx
    prepared: Any = types.SimpleNamespace(plain=ptx, instrumented=types.SimpleNamespace(module=parse(ptx, "k")))
    prepared.units = units_of(prepared)
    assert grid_in_ctas(prepared, "counted", (5, 2, 1)) == (10, 6, 1)
    assert grid_in_ctas(prepared, "plain", (6, 2, 1)) == (6, 2, 1)
    prepared.plain = ""
    prepared.units = units_of(prepared)
    assert grid_in_ctas(prepared, "counted", (5, 2, 1)) == (5, 2, 1)
