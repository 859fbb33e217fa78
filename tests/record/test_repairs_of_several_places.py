"""Fixes of `consan check` that belong where all threads come, or into a function that is inlined several times."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import twin_file
from planted import plant

from consan.__main__ import main
from consan.checker.repairs import phases, text_repairs
from consan.reports.source import source_candidates
from consan.session.asking import reruns

KERNELS = Path(__file__).parents[1] / "kernels"
# A twin; what its fix says; a fault, with which it does not.
FIXES: dict[str, tuple[str, ModuleType, str, str]] = {
    "global/grid_barrier_one_thread_arrives": (
        "put bar.sync 0 (__syncthreads()) before the bra at grid_barrier_one_thread_arrives.cu:16",
        *(text_repairs, "self._around_flags, ", ""),
    ),
    "global/grid_barrier_one_thread_waits": (
        "at grid_barrier_one_thread_waits.cu:29, and put bar.sync 0 (__syncthreads()) before the add.f32",
        *(text_repairs, "self._around_flags, ", ""),
    ),
    "global/value_behind_its_flag": (
        "move line 19 before value_behind_its_flag.cu:17",
        *(source_candidates, "named + ahead + released", "named + released"),
    ),
    "twins/bulk_refill_waits_too_late": (
        "move line 29 before bulk_refill_waits_too_late.cu:26",
        *(reruns, "(later_waits(source.text, second, source.file, active) if second in own else ())", "()"),
    ),
    "twins/mbarrier_wait_of_some_rounds": (
        "leave out the condition at mbarrier_wait_of_some_rounds.cu:21",
        *(reruns, "itertools.chain(of_some, *first", "itertools.chain(*first"),
    ),
    "twins/cluster_some_read_peer": (
        "barrier.cluster.wait after cluster_some_read_peer.cu:22",
        *(reruns, "outside(self.source.text, line) if any(", "line if any("),
    ),
}


def _fix(name: str, folder: Path) -> str:
    spec = twin_file.read(KERNELS / f"{name}.cu")
    values = zip(spec.args.values(), ("arange", *["zeros"] * len(spec.args)), strict=False)
    words = [word for each, value in values for word in ("--arg", f"{each.dtype.kind}{8 * each.itemsize}[{each.size}]={value}")]
    shape = ("--grid", str(spec.grid[0]), "--block", str(spec.block[0]), "--arch", spec.arch, "--device", "cpu", "--explore", "0s")
    out = folder / "report.json"
    main(["check", str(spec.path), "--define", "RACY=1", *shape, *words, "--format", "json", "-o", str(out)])
    finding = json.loads(out.read_text())["findings"][0]
    return str(finding["fix"]) if "verified" in finding else ""


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] if each.endswith("waits") else []) for each in FIXES])
def test_a_fix_and_a_fault(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, module, old, new = FIXES[name]
    assert words in _fix(name, tmp_path)
    plant(monkeypatch, module, old, new)
    assert words not in _fix(name, tmp_path)


ROWS = """#include "mbarrier.cuh"
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ u64 full;
    __shared__ __align__(128) float rows[4][64];
    float sum = 0;
    if (threadIdx.x == 0) INIT(&full, 1);
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        if (threadIdx.x == 0) {
            ARRIVE_EXPECT(&full, 256);
#pragma unroll 1
            for (int r = 0; r < 4; r++) BULK_LOAD(rows[r], x + 256 * k + 64 * r, 256, &full);
        }
        WAIT(&full, k & 1);
        for (int r = 0; r < 4; r++) sum += rows[r][threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
"""


def _announced(folder: Path) -> str:
    (folder / "k.cu").write_text(ROWS)
    shape = ("-I", str(KERNELS), "--grid", "1", "--block", "64", "--arch", "sm_90", "--device", "cpu", "--explore", "0s")
    words = (*shape, "--arg", "f32[512]=arange", "--arg", "f32[64]=zeros", "--format", "json", "-o", str(folder / "report.json"))
    main(["check", str(folder / "k.cu"), *words])
    finding = json.loads((folder / "report.json").read_text())["findings"][0]
    return str(finding["fix"]) if "verified" in finding else ""


def test_as_many_bytes_are_announced_as_four_copies_bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "with 768 bytes more at" in _announced(tmp_path)
    plant(monkeypatch, phases, "number in (1, 2, 4, 3)", "number in (1, 2)")
    assert _announced(tmp_path) == ""
