"""Results of a kernel with a verified fix, in plain runs under several schedules (consan/session/asking/results.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import consan
from consan.backends.cpu import LaunchStats
from consan.reports.model import Finding, FixStep, VerifiedFix
from consan.reports.verdict.conclusion import assemble
from consan.reports.words.verified import sentence_of
from consan.session.asking.results import FEWEST_SCHEDULES, MOST_INSTRUCTIONS, SCHEDULES, PlainRuns

FIX = VerifiedFix((FixStep("add", "bar.sync 0", "before", "", "k.cu", 4, 40),), edits=((2, 2, "x"),))
REPORT = assemble(device="cpu", kernels=[], findings=[Finding("data-race", "k", fix="a barrier", verified=FIX)])


class Buffers:
    """What a run leaves: the answer to the number of the run."""

    def __init__(self, left: Callable[[int], bytes]) -> None:
        self.left, self.runs, self.after = left, 0, [b"after the launch"]

    def refresh(self) -> None:
        self.runs += 1

    def contents(self) -> list[bytes]:
        return [self.left(self.runs)] if self.runs else list(self.after)

    def put(self, contents: Sequence[bytes]) -> None:
        self.after, self.runs = list(contents), 0


class Backend:
    def __init__(self, stats: LaunchStats) -> None:
        self.stats = stats

    def launch(self, module: str, *_: Any, **_how: Any) -> LaunchStats:
        return self.stats

    def load(self, ptx: str, *, name: str) -> str:
        assert ptx == "abxc"
        return ptx

    def unload(self, module: str) -> None:
        pass


def _compared(left: Callable[[int], bytes] = lambda _: b"", stats: LaunchStats | None = None) -> VerifiedFix | None:
    buffers, backend = Buffers(left), Backend(stats or LaunchStats(instructions=10))
    runs = PlainRuns(backend, buffers, ("k", (1, 1, 1), (32, 1, 1), ()), {})  # type: ignore[arg-type]
    (finding,) = runs.compared(REPORT, "abc").findings
    assert buffers.contents() == [b"after the launch"]
    return finding.verified


def test_equal_results_are_said_with_the_fix() -> None:
    fix = _compared()
    assert fix is not None
    assert sentence_of(fix).endswith(f"and {SCHEDULES} schedules leave equal results")


def test_a_large_kernel_runs_in_few_schedules() -> None:
    fix = _compared(stats=LaunchStats(instructions=MOST_INSTRUCTIONS // SCHEDULES + 1))
    assert fix is not None
    assert fix.schedules == FEWEST_SCHEDULES


@pytest.mark.parametrize(
    ("left", "stats"),
    [(lambda run: bytes(run == SCHEDULES), None), (lambda run: bytes(run == 2), None), (lambda _: b"", LaunchStats(deadlocked=True))],
    ids=["the last result differs", "the second result differs", "a run does not end"],
)
def test_a_fix_after_which_results_depend_on_the_schedule_is_none(left: Callable[[int], bytes], stats: LaunchStats | None) -> None:
    assert _compared(left, stats) is None


def test_without_time_the_line_says_that_results_were_not_compared() -> None:
    fix = _compared(stats=LaunchStats(timed_out=True))
    assert fix is not None
    assert not fix.schedules
    assert "(results not compared)" in sentence_of(fix)


SLOTS = """extern "C" __global__ void k(unsigned* count, unsigned* out) {
    __shared__ unsigned s[64];
    s[threadIdx.x] = threadIdx.x;
    unsigned found = s[63 - threadIdx.x];
    if (threadIdx.x == 0) atomicExch(count, SLOT);
    out[blockIdx.x * 64 + threadIdx.x] = found;
}
"""


@pytest.mark.parametrize(("slot", "schedules"), [("1", SCHEDULES), ("blockIdx.x", None)])
def test_a_launch_compares_the_results(slot: str, schedules: int | None) -> None:
    """With a barrier nothing is found. Which CTA comes last decides what is in the slot."""
    kernel = consan.Kernel(SLOTS, entry="k", defines={"SLOT": slot})
    out = np.zeros(512, np.uint32)
    report = consan.launch(kernel, 8, 64, [np.zeros(1, np.uint32), out], device="cpu")
    (finding,) = [each for each in report.findings if each.severity == "error"]
    assert (finding.verified and finding.verified.schedules) == schedules
    assert finding.fix.startswith("put __syncthreads()")
    assert set(out[:64]) >= {63}, "the results are those of the launch"
