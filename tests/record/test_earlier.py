"""Histories that an earlier process has replayed: they are not replayed again, unless a finding or a changed launch asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.checker.judging import recorder
from consan.reports.formats.phrases import summary
from consan.session.planning.options import SessionOptions

SOURCE = """extern "C" __global__ void reverse(int* out) {
    __shared__ int tile[128];
    tile[threadIdx.x] = threadIdx.x;
    BARRIER
    out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}"""


@pytest.fixture(autouse=True)
def _remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionOptions, "remembers", True)
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path))


def _launched(barrier: str = "__syncthreads();", threads: int = 64, **options: Any) -> tuple[Any, Any]:
    source = SOURCE.replace("BARRIER", barrier)
    report = consan.launch(consan.Kernel(source), 3, threads, [np.zeros(128, np.int32)], device="cpu", global_memory="off", **options)
    (kernel,) = report.kernels
    return report, (kernel.ctas, kernel.histories, kernel.recalled)


def test_the_second_run_replays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _launched()[1] == (3, 1, 0)
    monkeypatch.setattr(recorder, "replay", None)  # a replay would raise
    report, counts = _launched()
    assert (report.verdict, counts) == ("clean", (3, 1, 1))
    assert "1 distinct history replayed, 1 of them by earlier runs" in str(list(summary(report)))


def test_a_history_with_a_finding_is_replayed_each_time() -> None:
    for _ in range(2):
        report, counts = _launched(barrier="")
        assert (report.verdict, counts) == ("violations", (3, 1, 0))


def test_another_module_another_shape_and_another_reading_are_replayed() -> None:
    _launched()
    assert _launched(threads=96)[1] == (3, 1, 0)
    assert _launched(policy="isa")[1] == (3, 1, 0)
    assert _launched("__syncthreads(); __syncthreads();")[1] == (3, 1, 0)
    assert _launched()[1] == (3, 1, 1)


def test_exhaustive_and_kept_histories_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _launched()
    assert _launched(exhaustive=True)[1] == (3, 1, 0)
    monkeypatch.chdir(tmp_path)
    assert _launched(keep_histories=True)[1] == (3, 1, 0)


def test_a_damaged_file_is_a_miss(tmp_path: Path) -> None:
    _launched()
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.stat().st_size == 32 + 16:
            file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert _launched()[1] == (3, 1, 0)
