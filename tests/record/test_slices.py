"""Launches whose logs have no room are looked at in slices: some CTAs have logs, and other ones in the next launch of the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_support import BLOCK, Framework
from leaving_support import slow_clock
from planted import plant

import consan
from consan.checker.judging import replayable
from consan.checker.logs import slices
from consan.checker.logs.slices import LogSlots, Slice, Slices
from consan.session.executing import dividing, executor
from consan.session.executing.executor import Executor

CTAS = 16
ROOM = 1 << 14  # bytes: logs of a few of the CTAs
# Each CTA does what no other does, by data.
SHIFTS = """
extern "C" __global__ void shifts(unsigned* out, const unsigned* by, int racing) {
    __shared__ unsigned values[256];
    unsigned shift = by[blockIdx.x];
    values[threadIdx.x + shift] = threadIdx.x;
    if (blockIdx.x != racing) __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[63 - threadIdx.x + shift];
}
"""
# Two CTAs write to the same words, where data say so.
SCATTERS = """
extern "C" __global__ void scatters(unsigned* out, const unsigned* to, int) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[to[blockIdx.x] * blockDim.x + threadIdx.x] = values[63 - threadIdx.x] + blockIdx.x;
}
"""


def launched(source: str, data: Any, number: int, monkeypatch: pytest.MonkeyPatch, room: int = ROOM, **options: Any) -> tuple[Any, int]:
    """The report of a launch, and how often the kernel ran."""
    runs, once = [0], Executor._once

    def counted(*args: Any, **more: Any) -> bool:
        runs[0] += 1
        return once(*args, **more)

    monkeypatch.setattr(Executor, "_once", counted)
    out = np.zeros(CTAS * BLOCK[0], np.uint32)
    report = consan.launch(consan.Kernel(source), CTAS, BLOCK, (out, data, np.int32(number)), device="cpu", trace_memory=room, **options)
    return report, runs[0]


@pytest.fixture
def shift() -> Any:
    return np.arange(CTAS, dtype=np.uint32)


def test_a_launch_that_can_be_repeated_has_all_slices(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SHIFTS, shift, -1, monkeypatch, global_memory="off")
    assert (report.verdict, list(report.incomplete)) == ("clean", [])
    (kernel,) = report.kernels
    assert (kernel.launches, kernel.ctas, kernel.histories) == (1, CTAS, CTAS)
    assert runs > 2


@pytest.mark.parametrize("racing", [0, 7, CTAS - 1])
def test_a_race_is_found_in_any_slice(racing: int, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = launched(SHIFTS, shift, racing, monkeypatch, global_memory="off")
    assert (report.verdict, [each.kind for each in report.findings]) == ("violations", ["data-race"])
    assert {each.ctas for each in report.findings} == {1}
    whole, runs = launched(SHIFTS, shift, racing, monkeypatch, 1 << 30, global_memory="off")
    assert runs == 1
    assert [each.count for each in whole.findings] == [each.count for each in report.findings]


def test_ctas_that_did_the_same_need_one_slice(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SHIFTS, shift * 0, -1, monkeypatch, global_memory="off")
    assert (report.verdict, runs) == ("clean", 1)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 12), (7, 8), (0, CTAS - 1)])
def test_a_race_between_ctas_is_found_in_any_pair_of_sets(first: int, second: int, shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shift[second] = first
    report, runs = launched(SCATTERS, shift, 0, monkeypatch, 1 << 15, global_memory="on")
    assert (report.verdict, {each.kind for each in report.findings}) == ("violations", {"global-race"})
    (found,) = report.findings
    assert {access.block[0] for access in found.pair} == {first, second}
    whole, once = launched(SCATTERS, shift, 0, monkeypatch, 1 << 30, global_memory="on")
    assert once == 1 < runs
    assert [(each.kind, each.count) for each in whole.findings] == [(each.kind, each.count) for each in report.findings]


def test_ctas_without_a_race_are_clean_in_all_pairs_of_sets(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = launched(SCATTERS, shift, 0, monkeypatch, 1 << 15, global_memory="on")
    assert (report.verdict, list(report.incomplete), runs) == ("clean", [], 6)  # of four sets
    assert [(each.launches, each.global_ctas) for each in report.kernels] == [(1, CTAS)]


def test_a_loop_whose_log_is_full_has_longer_logs_of_fewer_ctas(shift: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SHIFTS.replace("values[threadIdx.x + shift] =", "for (unsigned i = 0; i < 200; ++i) values[threadIdx.x + shift + by[gridDim.x + i]] =")
    shift = np.concatenate([shift, np.zeros(200, np.uint32)])
    report, runs = launched(source, shift, -1, monkeypatch, 1 << 19, global_memory="off")
    assert (report.verdict, list(report.incomplete)) == ("clean", [])
    assert runs > 2
    report, _ = launched(source, shift, CTAS - 2, monkeypatch, 1 << 19, global_memory="off")
    assert report.verdict == "violations"
