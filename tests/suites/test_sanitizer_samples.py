"""Kernels in the style of compute-sanitizer's samples for racecheck, synccheck and initcheck: consan reports what each is written to show.

They are our own. Initcheck's sample reads global memory that nobody has set, which consan does not look for: here it is shared memory.
"""

from __future__ import annotations

import numpy as np
import pytest

import consan

THREADS = 64
# What the fault is; the body, with the repair where REPAIR stands; the repair; what is reported.
SAMPLES = {
    "racecheck: a block's sum by one thread": (
        "part[t] = x[t]; REPAIR if (t == 0) { int s = 0; for (int i = 0; i < 64; i++) s += part[i]; out[0] = s; }",
        "__syncthreads();",
        ("data-race", "error"),
    ),
    "racecheck: a warp's sum by its first lane": (
        "part[t] = x[t]; REPAIR if (t % 32 == 0) { int s = 0; for (int i = 0; i < 32; i++) s += part[t + i]; out[t / 32] = s; }",
        "__syncwarp();",
        ("data-race", "error"),
    ),
    "synccheck: a barrier in a branch that some threads of a warp take": (
        "part[t] = x[t]; FIRST if (t < 48) { LAST } out[t] = part[t];",
        "__syncthreads();",
        ("barrier-misuse", "error"),
    ),
    "synccheck: __syncwarp of lanes that do not come": (
        "part[t] = x[t]; if (t % 32 < 16) __syncwarp(REPAIR); else x = x + 1; out[t] = part[t] + x[0];",
        "0x0000ffffu",
        ("barrier-misuse", "error"),
    ),
    "initcheck: bytes that nobody has set": (
        "if (t < LIMIT) part[t] = x[t]; __syncthreads(); out[t] = part[63 - t];",
        "64",
        ("uninitialized-read", "error"),
    ),
}
WRONG = {"0x0000ffffu": "0xffffffffu", "64": "32"}


def report_of(body: str, repair: str, *, racy: bool) -> consan.Report:
    """A launch of one CTA."""
    places = {"REPAIR": WRONG.get(repair, ""), "LIMIT": WRONG.get(repair, ""), "FIRST": "", "LAST": repair}
    right = {"REPAIR": repair, "LIMIT": repair, "FIRST": repair, "LAST": ""}
    for name, text in (places if racy else right).items():
        body = body.replace(name, text)
    source = f'extern "C" __global__ void sample(const int* x, int* out) {{ __shared__ int part[64]; int t = threadIdx.x; {body} }}\n'
    kernel = consan.Kernel(source, entry="sample")
    arguments = [np.arange(THREADS, dtype=np.int32), np.zeros(THREADS, np.int32)]
    return consan.launch(kernel, 1, THREADS, arguments, device="cpu", engine="inline")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_fault_is_reported_and_its_repair_is_clean(name: str) -> None:
    body, repair, expected = SAMPLES[name]
    assert expected in {(finding.kind, finding.severity) for finding in report_of(body, repair, racy=True).findings}
    clean = report_of(body, repair, racy=False)
    assert (clean.verdict, clean.findings) == ("clean", ())


def test_a_lane_beside_its_own_mask() -> None:
    report = report_of("part[t] = x[t]; __syncwarp(0xffff); out[t] = part[t];", "", racy=True)
    assert "barrier-misuse" in {finding.kind for finding in report.findings}
