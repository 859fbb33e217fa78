"""How a launch can end otherwise than by returning: time limit, trap, failed assertion, illegal address; and early exits of threads."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from device_support import Bench, found, markers

SPINS = """
extern "C" __global__ void spin(volatile unsigned* flag, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@write*/
#ifndef RACY
    __syncthreads();
#endif
    out[t] = tile[63 - t];                              /*@read*/
    unsigned looks = 0;
    while (*flag == 0) ++looks;                         /*@spin*/
    out[t] += 1 + (looks >> 31);
}
extern "C" __global__ void spin_without_shared(volatile unsigned* flag) { unsigned n = 0; while (*flag == 0) ++n; flag[1] = n; }
extern "C" __global__ void fine(unsigned* out) {
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize("racy", [False, True])
def test_a_spin_ends_by_the_time_limit(device: str, racy: bool) -> None:
    bench = Bench(device, SPINS, defines=("RACY",) if racy else (), timeout=3.0)  # it has to come as far as the loop
    flag, out = bench.zeros(1), bench.zeros(64)
    started = time.monotonic()
    bench.launch("spin", 2, 64, flag, out)
    report = bench.report()
    assert time.monotonic() - started < 30
    assert report.verdict == ("violations" if racy else "incomplete")
    assert found(report, SPINS) == ({("data-race", "read", "write")} if racy else set())
    (reason,) = report.incomplete
    assert "did not run to its end: stopped after 3 s (--timeout SECONDS)" in reason
    (line,) = (line for line, name in markers(SPINS).items() if name == "spin")
    assert reason.endswith(f"4 warps of 2 CTAs (the first is (0,0,0)), 128 lanes, at kernel.cu:{line}:5, `ld.volatile.global.u32`")


def test_a_spin_in_a_kernel_without_shared_memory_ends(device: str) -> None:
    bench = Bench(device, SPINS, timeout=1.0)
    bench.launch("spin_without_shared", 1, 32, bench.zeros(1))
    report = bench.report()
    assert (report.findings, report.verdict) == ((), "incomplete")
    assert not bench.session.device_lost


def test_the_device_works_on_after_a_time_limit(device: str) -> None:
    bench = Bench(device, SPINS, timeout=3.0)
    out = bench.zeros(64)
    bench.launch("spin", 1, 64, bench.zeros(1), bench.zeros(64))
    bench.launch("fine", 300, 64, out)
    assert bench.array(out, 64).tolist() == list(range(63, -1, -1))
    report = bench.report()
    assert (report.findings, report.verdict) == ((), "incomplete")
    assert bench.counters().checked_ctas == 301


def test_a_kernel_within_the_limit_is_left_alone(device: str) -> None:
    bench = Bench(device, SPINS, timeout=60.0)
    out = bench.zeros(64)
    bench.launch("spin", 1, 64, bench.buffer(np.ones(1, np.uint32)), out)
    assert (bench.report().verdict, bench.array(out, 64).tolist()) == ("clean", list(range(64, 0, -1)))


EXITS = """
extern "C" __global__ void early(int leave, unsigned* out) {
    __shared__ unsigned tile[128];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@store*/
    __syncthreads();
    if (t >= leave) return;
    out[t] = tile[127 - t];                             /*@load*/
#ifdef RACY
    tile[t] = 1;                                        /*@again*/
#endif
}
extern "C" __global__ void warps_leave(unsigned* out) {
    __shared__ unsigned tile[128];
    const unsigned t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    if (t >= 64) return;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    tile[t] = t + 1;                                    /*@mine*/
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = tile[63 - t] + tile[64 + t];
}
"""


@pytest.mark.parametrize("leave", [0, 1, 33, 64, 127, 128])
def test_early_exits_release_the_slot(device: str, leave: int) -> None:
    """Threads that leave early count as left; a slot that was never released would show as arena used by later CTAs."""
    bench = Bench(device, EXITS)
    out = bench.zeros(128)
    for _ in range(4):
        bench.launch("early", 300, 128, leave, out)
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())
    assert (bench.counters().checked_ctas, bench.counters().dropped_ctas) == (1200, 0)
    assert bench.array(out, 128)[:leave].tolist() == list(range(127, 127 - leave, -1))


def test_a_race_after_an_early_exit(device: str) -> None:
    """Threads below 100 read and write again: words 28 to 99 are both."""
    bench = Bench(device, EXITS, defines=("RACY",))
    bench.launch("early", 3, 128, 100, bench.zeros(128))
    report = bench.report()
    assert found(report, EXITS) == {("data-race", "again", "load")}
    assert report.findings[0].ctas == 3


def test_named_barriers_after_warps_left(device: str) -> None:
    bench = Bench(device, EXITS)
    out = bench.zeros(64)
    bench.launch("warps_leave", 20, 128, out)
    assert bench.report().verdict == "clean"
    assert bench.array(out, 64).tolist() == [64 - t + 64 + t for t in range(64)]


STOPS = """
#include <cassert>
#include <cstdio>
extern "C" __global__ void stops(int how, unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@write*/
    out[t] = tile[63 - t];                              /*@read*/
    __syncthreads();
    if (how == 1 && t == 7) asm volatile("trap;");      /*@trap*/
    if (how == 2) assert(tile[t] != 9);                 /*@assert*/
    if (how == 3) out[(1ull << 40) + t] = 1;            /*@wild*/
    if (how == 4 && t < 2) printf("thread %u of %u\\n", t, blockIdx.x);
}
"""
CHILD = """
    import sys
    sys.path[:0] = {folders!r}
    import test_endings
    from device_support import Bench
    bench = Bench({device!r}, test_endings.STOPS, arena=64 << 20)
    bench.launch("stops", 2, 64, {how}, bench.zeros(64))
    print("REPORT" + bench.report().to_json())
"""


def _child(device: str, how: int) -> tuple[dict[str, object], str]:
    """In a process of its own: on a GPU the context is gone afterwards."""
    here = Path(__file__).parent
    script = textwrap.dedent(CHILD).format(folders=[str(here), str(here.parent / "kernels")], device=device, how=how)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    output, _, text = done.stdout.partition("REPORT")
    return json.loads(text), output


def _lines(report: dict[str, object], kind: str) -> set[tuple[str, ...]]:
    names = markers(STOPS)
    findings = [finding for finding in report["findings"] if finding["kind"] == kind]  # type: ignore[attr-defined, index]
    return {tuple(sorted(names.get(access["line"], "?") for access in finding["accesses"])) for finding in findings}


@pytest.mark.parametrize(("how", "word"), [(1, "trap"), pytest.param(2, "assert", marks=pytest.mark.slow), (3, "address")])
def test_findings_survive_a_launch_that_ends_badly(device: str, how: int, word: str) -> None:
    """The race comes before the end: it is reported, with both lines, and so is what was lost."""
    report, _ = _child(device, how)
    assert report["verdict"] == "violations"
    assert _lines(report, "data-race") == {("read", "write")}
    if device == "cpu" and how == 3:
        assert _lines(report, "out-of-bounds") == {("wild",)}
    elif device == "cpu":
        assert _lines(report, "fault")
        assert any(word in reason for reason in report["incomplete"])  # type: ignore[attr-defined]
    else:
        assert ["CUDA_ERROR" in finding["message"] for finding in report["findings"] if finding["kind"] == "fault"] == [True]  # type: ignore[attr-defined]
        assert any("CUDA_ERROR" in reason and "lower bounds" in reason for reason in report["incomplete"])  # type: ignore[attr-defined]


def test_device_printf(device: str) -> None:
    report, output = _child(device, 4)
    assert sorted(output.split("\n")) == ["", "thread 0 of 0", "thread 0 of 1", "thread 1 of 0", "thread 1 of 1"]
    assert _lines(report, "data-race") == {("read", "write")}
