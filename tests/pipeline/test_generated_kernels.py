"""Kernels that CuPy's stand-in generates: they read and write arrays where they are, so arguments that share memory race, and the
findings name the program's line.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.reports.model import Report

SHIFT, TRANSPOSE, NORM = "y = x * 2", "y = x + 0", "x * x"


def shifted(cp: Any, *, racy: bool) -> list[Any]:
    doubled = cp.ElementwiseKernel("float32 x", "float32 y", "y = x * 2", "doubled")
    x = cp.arange(512, dtype=cp.float32)
    given = x[:-1] if racy else x[:-1].copy()
    return [doubled(given, x[1:])[1:3]]


def transposed(cp: Any, *, racy: bool) -> list[Any]:
    move = cp.ElementwiseKernel("T x", "T y", "y = x + 0", "move")
    x = cp.arange(32 * 32, dtype=cp.float32).reshape(32, 32)
    return [move(x.T if racy else x.T.copy(), x)[1, :3]]


def reduced(cp: Any, *, racy: bool) -> list[Any]:
    length = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    x = cp.ones((16, 4), dtype=cp.float32)
    out = x.reshape(-1)[:16] if racy else cp.empty(16, cp.float32)
    length(x, out, axis=1)
    return [out[:2]]


EXPECTED = {shifted: [2, 4], transposed: [1, 33, 65], reduced: [2, 2]}
WORDS = {shifted: SHIFT, transposed: TRANSPOSE, reduced: NORM}


def ran(program: Any, *, racy: bool) -> tuple[Report, Any]:
    with consan.check(device="cpu") as live:
        values = program(importlib.import_module("cupy"), racy=racy)[0].get()
    return live.report, values


@pytest.mark.parametrize("program", WORDS)
def test_arguments_that_share_memory(program: Any) -> None:
    report, _ = ran(program, racy=True)
    assert report.verdict == "violations"
    lines = Path(__file__).read_text().split("\n")
    for finding in report.findings:
        for access in finding.accesses:
            assert access.file == str(Path(__file__).absolute())
            assert f'"{WORDS[program]}"' in lines[(access.line or 0) - 1]
    assert "shares memory with what the kernel writes" in " ".join(report.notes)
    report, values = ran(program, racy=False)
    assert (report.verdict, values.tolist()) == ("clean", EXPECTED[program])
    assert "shares memory" not in " ".join(report.notes)


def test_arrays_with_gaps_and_of_less_dimensions() -> None:
    with consan.check(device="cpu") as live:
        cp = importlib.import_module("cupy")
        mixed = cp.ElementwiseKernel("T x, T y", "T z", "z = x * 10 + y", "mixed")
        total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
        rows, columns = cp.arange(3, dtype=cp.float32)[:, None], cp.arange(4, dtype=cp.float32)[::-1]
        gaps = cp.zeros((3, 8), cp.float32)
        mixed(rows, columns, gaps[:, ::2])
        table = cp.arange(12, dtype=cp.float32).reshape(3, 4)
        sums = [total(table, axis=0), total(table.T, axis=1), total(table[:, ::2], axis=1, keepdims=True), total(table)]
        with pytest.raises(ValueError, match="Output shape is mismatched"):
            total(table, cp.empty(3, cp.float32), axis=0)
        found = [gaps.get(), *(each.get() for each in sums)]
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert found[0].tolist() == [[10 * row + (3 - at // 2) * (at % 2 == 0) if at % 2 == 0 else 0 for at in range(8)] for row in range(3)]
    for value, expected in zip(found[1:], (host.sum(0), host.sum(0), host[:, ::2].sum(1, keepdims=True), host.sum()), strict=True):
        np.testing.assert_array_equal(value, expected)
    assert live.report.verdict == "clean"
