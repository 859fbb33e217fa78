"""Where nothing orders CTAs, a few accesses of a word stand for all that are alike: what is found, and how often, stays the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted import break_checker

import consan
from consan.checker.judging import grid

CTAS, THREADS = 24, 32
OF_CTA = THREADS * (THREADS - 1) // 2
PAIRS = CTAS * (CTAS - 1) // 2 * THREADS * THREADS
SOURCE = """
extern "C" __global__ void hot(int* out, int* seen) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = blockIdx.x == gridDim.x - 1;
    BODY
}
"""
OTHER_SITE = """int one = i ? 7 : 8, other = 7;
    if (!last) asm volatile("st.global.u32 [%0], %1;" :: "l"(out), "r"(one) : "memory");
    else asm volatile("st.global.u32 [%0], %1;" :: "l"(out), "r"(other) : "memory");"""
EARLIER = (CTAS - 1) * (CTAS - 2) // 2 * THREADS * THREADS
# The body -> severity, kind, hazard and count of each finding.
BODIES = {
    "out[0] = i;": {("error", "data-race", "WAW", CTAS * OF_CTA), ("error", "global-race", "WAW", PAIRS)},
    "out[0] = 7;": {("note", "data-race", "WAW", CTAS * OF_CTA), ("warning", "global-race", "WAW", PAIRS)},
    "out[0] = 7 + last;": {("note", "data-race", "WAW", CTAS * OF_CTA), ("error", "global-race", "WAW", PAIRS)},
    "out[0] = i ? 7 : 8;": {("error", "data-race", "WAW", CTAS * OF_CTA), ("error", "global-race", "WAW", PAIRS)},
    OTHER_SITE: {
        ("error", "data-race", "WAW", (CTAS - 1) * OF_CTA),
        ("note", "data-race", "WAW", OF_CTA),
        ("error", "global-race", "WAW", EARLIER),
        ("error", "global-race", "WAW", PAIRS - EARLIER),
    },
    "if (last) out[0] = 1; else seen[i] = out[0];": {
        ("note", "data-race", "WAW", OF_CTA),
        ("error", "global-race", "WAR", (CTAS - 1) * THREADS * THREADS),
    },
    "if (last && i % 32 == 0) out[0] = 1; else atomicAdd(out, 1);": {
        ("error", "data-race", "WAW", THREADS - 1),
        ("error", "global-race", "WAW", (CTAS - 1) * THREADS),
    },
}


def report(body: str) -> consan.Report:
    kernel = consan.Kernel(SOURCE.replace("BODY", body), entry="hot", arch="sm_80")
    arrays = [np.zeros(1, np.int32), np.zeros(CTAS * THREADS, np.int32)]
    return consan.launch(kernel, CTAS, THREADS, arrays, device="cpu", engine="record", global_memory="on")


def findings(body: str) -> set[tuple[str, str, str | None, int]]:
    return {(each.severity, each.kind, each.hazard, each.count) for each in report(body).findings}


@pytest.mark.parametrize("body", BODIES)
def test_each_pair_is_counted(body: str) -> None:
    assert findings(body) == BODIES[body]


@pytest.mark.slow  # each compiles the checker
@pytest.mark.parametrize(
    ("file", "old", "new", "body"),
    [
        ("global_race_items.hpp", "items_[each].access.value == item.access.value ? VALUES : values + 1", "VALUES", OTHER_SITE),
        ("global_race_items.hpp", "items_[same].more += 1 + item.more;", "", "out[0] = i;"),
        (
            "global_races.hpp",
            "findings_.add(found, 1 + item.more);",
            "findings_.add(found);",
            "out[0] = i;",
        ),
    ],
)
def test_planted_faults(file: str, old: str, new: str, body: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_checker(monkeypatch, tmp_path, (grid,), file, old, new)
    assert findings(body) != BODIES[body]
