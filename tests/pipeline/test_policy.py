"""`--policy isa` on whole kernels: what it adds, that each addition says so, and that without it there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan.reports.model import Finding, Report

HEAD = """
typedef unsigned int u32;
typedef unsigned long long u64;
__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
#define FENCE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define WAIT(barrier, parity) \\
    asm volatile("{.reg .pred p;\\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n@!p bra W;}" \\
                 :: "r"(shared(barrier)), "r"(parity) : "memory")
__device__ void load(void* to, const void* from, u64* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(shared(barrier)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                 :: "r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(shared(barrier)) : "memory");
}
__device__ void store(void* to, const void* from) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(shared(from)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\\ncp.async.bulk.wait_group 0;" ::: "memory");
}
"""
# D2: a thread after the barrier fences for the writers.
ISSUER = (
    HEAD
    + """
extern "C" __global__ void k(float* out) {
    __shared__ alignas(128) float tile[64];
    int t = threadIdx.x;
    tile[t] = t;
    BEFORE
    __syncthreads();
    if (t == 0) {
        AFTER
        store(out, tile);
    }
}
"""
)
# D1: a stage is read, handed over with a barrier, and filled again.
REFILL = (
    HEAD
    + """
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared(&full)) : "memory");
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        if (t == 0) load(tile, in + 64 * i, &full);
        WAIT(&full, i & 1);
        out[64 * i + t] = tile[63 - t];
        BEFORE
        __syncthreads();
    }
}
"""
)

# D14: a flag in global memory (the first word, not zero once it is 1.0f) is polled, then a bulk load reads what it may tell of.
FLAG = (
    HEAD
    + """
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared(&full)) : "memory");
        while (*(volatile const float*)(in + 1) == 0) {}
        BEFORE
        load(tile, in, &full);
    }
    __syncthreads();
    WAIT(&full, 0);
    out[t] = tile[t];
}
"""
)


def launched(source: str, policy: str, before: str = "", after: str = "", engine: str = "auto") -> Report:
    kernel = consan.Kernel(source, defines={"BEFORE": before, "AFTER": after})
    arrays = [np.arange(128, dtype=np.float32) for _ in kernel.function.params]
    return consan.launch(kernel, 1, 64, arrays, device="cpu", policy=policy, engine=engine)


POINTS: tuple[tuple[str, dict[str, str], dict[str, str], str, str], ...] = (
    (ISSUER, {"before": "FENCE();"}, {"after": "FENCE();"}, "note", "D2"),
    (REFILL, {"before": "FENCE();"}, {}, "warning", "D1"),
    (FLAG, {"before": 'asm volatile("fence.proxy.async.global;" ::: "memory");'}, {"before": "FENCE();"}, "note", "D14"),
)
SLOW_INLINE = ("D1", "D2", "D14")  # each compiles a runtime of its own


def summary(finding: Finding) -> tuple[str, str, str]:
    return finding.kind, finding.severity, finding.policy


@pytest.mark.parametrize(
    ("source", "fixed", "racy", "severity", "point", "engine"),
    [
        pytest.param(
            *case, engine, id=f"{case[-1]}-{engine}", marks=pytest.mark.slow if case[-1] in SLOW_INLINE and engine == "inline" else ()
        )
        for engine in ("record", "inline")
        for case in POINTS
    ],
)
def test_a_point_of_the_policy(source: str, fixed: dict[str, str], racy: dict[str, str], severity: str, point: str, engine: str) -> None:
    for report in (launched(source, "default", **racy), launched(source, "default", **fixed)):
        assert (report.verdict, report.findings) == ("clean", ())
    report = launched(source, "isa", **fixed, engine=engine)
    assert (report.verdict, report.findings) == ("clean", ())
    report = launched(source, "isa", **racy, engine=engine)
    assert report.kernels[0].engine == engine
    assert (report.verdict, report.policy) == ("clean", "isa")
    assert {summary(finding) for finding in report.findings} == {("missing-proxy-fence", severity, "isa")}
    assert all(f"policy isa, {point}" in finding.missing for finding in report.findings)


@pytest.mark.parametrize("policy", ["default", "isa"])
def test_what_every_reading_forbids_is_of_the_default_policy(policy: str) -> None:
    report = launched(ISSUER, policy)
    assert report.verdict == "violations"
    assert {summary(finding) for finding in report.findings} == {("missing-proxy-fence", "error", "default")}


def test_the_command_line_and_the_context_manager_know_it(tmp_path: Path) -> None:
    file, out = tmp_path / "k.cu", tmp_path / "r.json"
    file.write_text(ISSUER)
    words = ["--device", "cpu", "--grid", "1", "--block", "64", "--arg", "f32[64]=zeros"]
    words += ["--define", "BEFORE=", "--define", "AFTER=FENCE();"]
    found: dict[str, Any] = {}
    for policy in ("default", "isa"):
        assert main(["check", str(file), *words, "--policy", policy, "-o", str(out), "--format", "json"]) == 0
        found[policy] = [finding["policy"] for finding in json.loads(out.read_text())["findings"]]
    assert found == {"default": [], "isa": ["isa"]}
    with consan.check(device="cpu", policy="isa") as report:
        pass
    assert report.policy == "isa"
