"""Reports of launches of several ranks: who is where, words about scopes, pictures, and deadlocks between ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from planted import break_checker, quick
from ranks_support import launch

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.reports import render
from consan.reports.formats.json_format import schema

HEAD = """
extern "C" __global__ void kernel(unsigned *mine, unsigned *other, int rank) {
    unsigned seen;
"""
WAIT = 'do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory"); while (seen != 1);'
FIRST = "element 0 of rank 0, argument"
SEND = 'asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(other) : "memory");'


def launched(body: str, grid: int = 1) -> Any:
    words = [np.zeros(4, np.uint32) for _ in range(2)]
    kernel = consan.Kernel(f"{HEAD}{body} }}")
    return consan.launch(kernel, (1, 1, grid), 1, lambda rank: [words[rank], words[1 - rank], rank], ranks=2, device="cpu")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"if (rank == 0) {{ {SEND} }} {WAIT}", f"rank 0 waits for {FIRST} 1 (value 0); rank 1 has ended"),
        (f"{WAIT} {SEND}", f"rank 0 waits for {FIRST} 1 (value 0); rank 1 waits for {FIRST} 2 (value 0)"),
    ],
)
def test_a_deadlock_says_which_rank_waits_for_what(body: str, said: str) -> None:
    report = launched(body, grid=2)
    (finding,) = report.findings
    assert (finding.kind, said in finding.message) == ("deadlock", True), finding.message
    assert {(tuple(waiter["block"]), waiter["rank"]) for waiter in finding.waiters} >= {((0, 0, 0), 0), ((0, 0, 1), 0)}
    assert all(waiter["block"][2] < 2 for waiter in finding.waiters)
    text = render(report, timeline=True)
    assert "CTA (0,0,0), rank 0" in text or "2 CTAs, rank 0" in text
    jsonschema.validate(json.loads(report.to_json()), schema())


def test_a_deadlock_says_for_what_a_rank_polls_and_not_who_waits_for_the_thread_that_polls() -> None:
    words = [np.zeros(4, np.uint32) for _ in range(2)]
    kernel = consan.Kernel(f"{HEAD} if (threadIdx.x == 0) {{ {WAIT} }} __syncthreads(); }}")
    report = consan.launch(kernel, 1, 64, lambda rank: [words[rank], words[1 - rank], rank], ranks=2, device="cpu")
    (finding,) = report.findings
    assert f"rank 0 waits for {FIRST} 1 (value 0); rank 1 waits for {FIRST} 2 (value 0)" in finding.message
    assert {waiter.get("why") for waiter in finding.waiters} >= {"barrier"}


@pytest.mark.parametrize("ends", [False, True])
def test_bytes_that_are_used_again_without_an_end_barrier(ends: bool) -> None:
    """Each rank reads what both have written, and writes there again: the peer may not have read it, whichever the schedule had first."""
    exchange = f"{SEND}\n{WAIT}\n"
    again = exchange.replace(", 1;", ", 2;").replace("!= 1", "!= 2") if ends else ""
    report = launched(f"mine[1] = rank;\n{exchange}seen = mine[1] + other[1];\n{again}mine[1] = seen;")
    assert report.verdict == ("clean" if ends else "violations"), report
    assert {(found.situation, found.hazard) for found in report.findings} == (set() if ends else {("released-reads-before", "WAR")})


def test_an_access_outside_of_memory_names_its_rank() -> None:
    report = launched("if (rank == 1 && blockIdx.z == 1) mine[1 << 20] = 1;", grid=2)
    (finding,) = report.findings
    assert [(access.block, access.rank) for access in finding.accesses] == [((0, 0, 1), 1)]
    assert "rank 1" in str(report)


def test_a_picture_has_a_lane_for_each_rank() -> None:
    report, _ = launch("put_with_signal", "RELAXED", 2)
    (finding,) = report.findings
    assert [access.thread for access in finding.pair] == [(0, 0, 0)] * 2
    lanes = next(line for line in render(report, timeline=True).splitlines() if line.startswith("  rank "))
    assert "rank 0, CTA (0,0,0)" in lanes
    assert "rank 1, CTA (0,0,0)" in lanes


FENCED = """
extern "C" __global__ void kernel(unsigned *data, unsigned *flag, unsigned *out, int rank) {
    unsigned seen;
    if (rank == 0) {
        data[0] = 5;
        asm volatile("RELEASE" ::: "memory");
        asm volatile("st.relaxed.sys.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        do asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        asm volatile("ACQUIRE" ::: "memory");
        out[0] = data[0];
    }
}
"""
SYSTEM = "fence.acq_rel.sys;"


@pytest.mark.parametrize("narrow", ["cta", "cluster", "gpu"])
@pytest.mark.parametrize("side", ["RELEASE", "ACQUIRE"])
def test_a_narrow_fence_between_ranks_excludes_the_other_rank(side: str, narrow: str) -> None:
    data, flag, out = (np.zeros(4, np.uint32) for _ in range(3))
    source = FENCED.replace(side, f"fence.acq_rel.{narrow};").replace("RELEASE", SYSTEM).replace("ACQUIRE", SYSTEM)
    report = consan.launch(consan.Kernel(source), 1, 1, lambda rank: [data, flag, out, rank], ranks=2, device="cpu")
    (finding,) = report.findings
    assert finding.kind == "scope", str(report)
    said = f"{finding.message} {finding.missing} {finding.fix}"
    assert "threads that its scope includes" in finding.message
    assert "its own CTA" not in said
    assert "another CTA" not in said
    assert "at .sys scope" in finding.missing
    assert "excludes the other rank" in finding.missing


def test_a_fixed_fence_is_clean() -> None:
    data, flag, out = (np.zeros(4, np.uint32) for _ in range(3))
    kernel = consan.Kernel(FENCED.replace("RELEASE", SYSTEM).replace("ACQUIRE", SYSTEM))
    assert consan.launch(kernel, 1, 1, lambda rank: [data, flag, out, rank], ranks=2, device="cpu").verdict == "clean"


HANDED_ON = """
extern "C" __global__ void kernel(unsigned *data, unsigned *first, unsigned *second, unsigned *out, int rank) {
    unsigned seen;
    if (rank == 0) {
        data[0] = 5;
        asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(first) : "memory");
    } else if (rank == 1) {
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(first) : "memory");
        while (!seen);
        asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(second) : "memory");
    } else {
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(second) : "memory");
        while (!seen);
        out[0] = data[0];
    }
}
"""
RECEIVES, SENDS_ON = "ld.acquire.sys.global.u32 %0, [%1];", "st.release.sys.global.u32 [%0], 1;"


def handed_on(*edit: str) -> Any:
    """A rank reads by a flag of a second rank, which has read one of a third."""
    before, middle, after = HANDED_ON.partition("else if (rank == 1)")
    middle_of_it, end, rest = after.partition("} else {")
    words = [np.zeros(4, np.uint32) for _ in range(4)]
    source = before + middle + middle_of_it.replace(*edit) + end + rest if edit else HANDED_ON
    return consan.launch(consan.Kernel(source), 1, 1, lambda rank: [*words, rank], ranks=3, device="cpu")


def test_a_flag_handed_on_is_clean() -> None:
    assert handed_on().verdict == "clean"


NOT_THROUGH: dict[str, tuple[tuple[str, str], str, str]] = {
    "nothing acquires": ((RECEIVES, RECEIVES.replace("acquire", "relaxed")), "no-acquire", "after the flag is read at kernel.cu:8"),
    "nothing releases": ((SENDS_ON, SENDS_ON.replace("release", "relaxed")), "no-release", "before the flag is written at kernel.cu:10"),
}


@pytest.mark.parametrize("fault", NOT_THROUGH)
def test_a_third_rank_hands_on_what_it_lacks(fault: str) -> None:
    """The finding is at the flag of the third rank at which something lacks, not between the two that race."""
    edit, situation, fix = NOT_THROUGH[fault]
    (finding,) = handed_on(*edit).findings
    assert (finding.kind, finding.situation, fix in finding.fix) == ("global-race", situation, True), finding.fix
    assert {access.rank for access in finding.pair} == {0, 2}


NONE_LOOKED_AT = quick("edges.hpp", "++looked > MOST_LOOKED", "++looked > 0")


@pytest.mark.slow  # it compiles the checker
def test_nobody_looks_at_third_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_checker(monkeypatch, tmp_path, (grid, replay), *NONE_LOOKED_AT)
    assert {finding.situation for edit, _, _ in NOT_THROUGH.values() for finding in handed_on(*edit).findings} == {"no-synchronisation"}


@pytest.mark.parametrize(
    ("flag", "situation", "said"),
    [
        (SENDS_ON, "flag-scope", "the scope of the flag that is written at kernel.cu:10 and read at kernel.cu:12 between them"),
        (RECEIVES, "grid-arrive-scope", "released only to threads that its scope includes"),
    ],
)
def test_a_narrow_scope_of_a_third_rank(flag: str, situation: str, said: str) -> None:
    (finding,) = [each for each in handed_on(flag, flag.replace("sys", "gpu")).findings if each.situation == situation]
    assert said in finding.message
    assert "cluster" not in finding.message


def test_no_order_between_ranks_is_mended_without_a_second_kernel() -> None:
    """Launches of two ranks may overlap: one more launch orders nothing."""
    report = launched("if (rank == 0) mine[1] = 1; else if (rank == 1) mine[2] = other[1];")
    (finding,) = report.findings
    assert "put a barrier of all ranks between the two" in finding.fix
    assert "second kernel" not in finding.fix


def test_an_atomic_that_names_no_scope_is_the_one_to_widen() -> None:
    report = launched("atomicAdd(rank ? other : mine, 1u);")
    (finding,) = report.findings
    assert (finding.kind, finding.fix.startswith("widen the scope at kernel.cu:4 to .sys")) == ("scope", True), finding.fix
    assert "the access at kernel.cu:4 does not include the other rank" in finding.message
