"""Streams of native programs, by the calls that the interposer tells: a made-up CUPTI calls it behind each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from native_case import STATUS, Case

from consan.native import calls
from consan.native.build import compiler
from consan.reports.model import Report

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
TWO = ("stream1", "again", "{}", "stream2", "again")
GRAPH = ("stream1", "begin", "again", "end", "run", "{}", "stream2", "again")


@pytest.fixture(autouse=True)
def _cupti(case: Case, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calls, "libraries", lambda: iter([str(case.folder / "libcupti.so")]))
    yield


def run(case: Case, *steps: str, how: str = "asked", **more: str) -> Report:
    status, report, handed = case.run(how, "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "synchronize", *steps, FAKE_CUDA_RING="", **more)
    assert (status, report.incomplete) == (STATUS, ()), (report.incomplete, handed)
    return report


def gap(report: Report) -> str:
    return " ".join(area for area in report.not_checked if area.startswith("global-memory"))


@pytest.mark.parametrize("steps", [TWO, GRAPH], ids=["launches", "a graph"])
@pytest.mark.parametrize("edge", ["none", "edge"])
def test_launches_of_two_streams(steps: tuple[str, ...], edge: str, case: Case) -> None:
    report = run(case, *(step.format(edge) for step in steps))
    assert {finding.situation for finding in report.findings} == ({"no-stream-edge"} if edge == "none" else set()), gap(report)
    assert "compared" not in gap(report)
