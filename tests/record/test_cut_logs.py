"""Logs that ran out of room are checked as far as they go: races up to there are found, and nothing behind it is said to be missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compact_support import Work
from planted import break_checker, quick

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker.compiled import replay as replays
from consan.checker.compiled.layouts import Status
from consan.checker.judging import grid
from consan.checker.logs.memory import LogMemory
from consan.instrument.record.text.templates import LINE_BYTES
from consan.reports.model import Report
from consan.toolchain.nvrtc import compile_ptx

LONG = """
__shared__ unsigned s[64];
s[threadIdx.x] = threadIdx.x;
ORDER;
unsigned a = s[threadIdx.x + 32 & 63];
__syncthreads();
for (int i = 0; i < n; ++i) { s[threadIdx.x] = a + i; __syncthreads(); a += s[threadIdx.x + 1 & 63]; __syncthreads(); }
out[blockIdx.x * 64 + threadIdx.x] = a;
"""
# The addresses of the loop follow from memory: their values are in a compact log.
ANY = "for (int i = 0; i < n; ++i) { a += s[out[i & 63] + threadIdx.x & 63]; }\nout[4096 + blockIdx.x * 64 + threadIdx.x] = a;"
ORDERED, RACY = "__syncthreads()", ""
COUNTS = """
__shared__ unsigned s[64];
out[blockIdx.x * SHIFT + threadIdx.x] = blockIdx.x;
for (int i = 0; i < n; ++i) { s[threadIdx.x] = i; __syncthreads(); }
"""
# CTA 0 gives its data long after the room of its log is over; CTA 1 has waited for it.
GIVES = """
__shared__ unsigned s[64];
unsigned *flag = out + 1000, sum = 0;
FIRST;
if (blockIdx.x == 0) {
    out[threadIdx.x] = 7;
    for (int i = 0; i < n; ++i) { s[threadIdx.x] = i; __syncthreads(); }
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
} else {
    unsigned came = 0;
    if (threadIdx.x == 0) while (!came) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(came) : "l"(flag) : "memory");
    __syncthreads();
    sum = out[threadIdx.x];
    out[64 + threadIdx.x] = sum;
}
"""


def kernel(body: str) -> str:
    return f'extern "C" __global__ void kernel(unsigned* out, int n) {{ {body} }}'


def launched(body: str, *, ctas: int = 2, rounds: int = 3000, memory: int = 1 << 19) -> Report:
    source = consan.Kernel(kernel(body), entry="kernel")
    return consan.launch(source, (ctas, 1, 1), (64, 1, 1), [np.zeros(8192, np.uint32), np.int32(rounds)], device="cpu", trace_memory=memory)


def outcome(report: Report) -> tuple[str, set[str], bool]:
    full = any("ran out of room" in why for why in report.incomplete)
    return report.verdict, {finding.kind for finding in report.findings}, full


@pytest.mark.parametrize("ctas", [1, 4])
def test_a_race_before_the_end_of_the_log_is_found(ctas: int) -> None:
    assert outcome(launched(LONG.replace("ORDER", RACY), ctas=ctas)) == ("violations", {"data-race"}, True)
    assert outcome(launched(LONG.replace("ORDER", ORDERED), ctas=ctas)) == ("incomplete", set(), True)
    assert outcome(launched(LONG.replace("ORDER", ORDERED), ctas=ctas, rounds=8)) == ("clean", set(), False)


def test_a_race_in_global_memory_too() -> None:
    assert outcome(launched(COUNTS.replace("SHIFT", "8"))) == ("violations", {"global-race"}, True)
    assert outcome(launched(COUNTS.replace("SHIFT", "64"))) == ("incomplete", set(), True)


def test_where_threads_may_synchronise_through_memory() -> None:
    """Another log may lack the write of a value that a thread has read: no thread is replayed behind a strong access."""
    assert outcome(launched(GIVES.replace("FIRST", ""))) == ("incomplete", set(), True)
    assert outcome(launched(GIVES.replace("FIRST", "out[2000 + threadIdx.x] = blockIdx.x"))) == ("violations", {"global-race"}, True)
    race = "s[threadIdx.x] = 1; out[3000 + blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ 32]; __syncthreads()"
    assert outcome(launched(GIVES.replace("FIRST", race)))[1:] == ({"data-race"}, True)
    assert outcome(launched(GIVES.replace("FIRST", ""), rounds=8)) == ("clean", set(), False)


# The mbarrier is initialised behind the end of a log.
INITIALISES = """
__shared__ unsigned s[64];
__shared__ unsigned long long b;
unsigned at = (unsigned)__cvta_generic_to_shared(&b);
s[threadIdx.x] = 0;
__syncthreads();
if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) atomicAdd(s, i);
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(at) : "memory");
}
if (threadIdx.x >= 32) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at) : "memory"); }
"""
FAULTS = {
    "parked threads go on": (quick("replay.cpp", "!turns_.undefined() && !is_cut()", "!turns_.undefined()"), INITIALISES),
    "strong accesses go on": (quick("grid.hpp", "if (is_cut()) return false;", ""), GIVES.replace("FIRST", "")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_how_a_log_ends(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault, body = FAULTS[name]
    right = outcome(launched(body))
    assert right == ("incomplete", set(), True)
    break_checker(monkeypatch, tmp_path, (replays, grid), *fault)
    assert outcome(launched(body)) != right


@pytest.mark.parametrize("compact", [True, False], ids=["compact", "full"])
@pytest.mark.parametrize("racy", [True, False])
def test_a_log_that_the_host_expands(racy: bool, compact: bool) -> None:
    body = LONG.partition("for")[0].replace("ORDER", RACY if racy else ORDERED) + ANY
    work = Work(compile_ptx(kernel(body), arch="sm_90a").ptx, "kernel", (1, 1, 1), (64, 1, 1), [np.zeros(8192, np.uint32), np.int32(900)])
    recorded = work.recorded(compact=compact)
    launch = work.run(recorded, LogMemory(VirtualBackend()), 2 * max(64, 2 * recorded.blocks.words) * LINE_BYTES)
    assert (launch.compact is not None) == compact
    done = replays.replay(recorded.blocks.tables, launch.histories([0])[0], descending=False)
    assert (done.status, len(done.records), done.events > 64 * 8) == (Status.FULL, int(racy), True)
