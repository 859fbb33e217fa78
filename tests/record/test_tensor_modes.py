"""Tensor copies in other modes than tile: of four rows (tile::gather4, tile::scatter4) and im2col. Racy kernels, repaired ones, faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_support import Work, compared
from planted import break_checker
from record_support import KERNELS, found
from sampled import but

import consan
from consan.checker.compiled import build, replay
from consan.instrument.record.families import tensors

HEAD = """#include "hopper.cuh"
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* matrix) {
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    tile[t] = t;
    BEFORE;
    if (t == 0) { init(full, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
    fence_async_shared();
    __syncthreads();
"""
LOAD = """    if (t == 0) {
        expect(full, BYTES);
        asm volatile("cp.async.bulk.tensor.MODE.mbarrier::complete_tx::bytes [%0], [%1, AT], [%2]MORE;"
                     ::"r"(shared(tile)), "l"(&map), "r"(shared(&full)) : "memory");
    }
    AFTER;
    if (WRITES) tile[t] = 1;
    wait(full, 0);
}"""
STORE = """    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.MODE.bulk_group [%0, AT], [%1];" ::"l"(&map), "r"(shared(tile)) : "memory");
        bulk_commit();
        AFTER;
    }
    __syncthreads();
    if (WRITES) tile[t] = 2;
    if (t == 0) bulk_wait<0>();
}"""
# Copy, mode, coordinates, operands behind the mbarrier, floats that are copied.
CASES = {
    "gather4": (LOAD, "2d.shared::cta.global.tile::gather4", "{4, 5, 6, 0, 9}", "", 32),
    "scatter4": (STORE, "2d.global.shared::cta.tile::scatter4", "{0, 5, 7, 0, 9}", "", 32),
    "im2col load": (LOAD, "3d.shared::cluster.global.im2col", "{0, 0, 0}", ", {0}", 64),
    "im2col store": (STORE, "3d.global.shared::cta.im2col_no_offs", "{0, 0, 0}", "", 64),
}
WAIT = {LOAD: "wait(full, 0)", STORE: "bulk_wait_read<0>()"}
each_case = pytest.mark.parametrize("name", CASES)


def _args(name: str) -> list[Any]:
    if "im2col" in name:
        image = np.arange(4 * 16 * 8, dtype=np.float32).reshape(4, 16, 8)
        return [consan.TensorMap.im2col(image, (0,), (0,), 8, 8), image]
    matrix = np.arange(160, dtype=np.float32).reshape(10, 16)
    return [consan.TensorMap(matrix, (1, 8)), matrix]


def _kernel(name: str, after: str = "", writes: str = "1", *, before: str = "", at: str = "") -> consan.Kernel:
    body, mode, coordinates, more, floats = CASES[name]
    words = {"MODE": mode, "AT": at or coordinates, "MORE": more, "BYTES": str(4 * floats)}
    source = HEAD + body
    for word, text in (words | {"AFTER": after, "WRITES": writes, "BEFORE": before}).items():
        source = source.replace(word, text)
    return consan.Kernel(source, "kernel", arch="sm_90a" if "im2col" in name else "sm_100a", include_dirs=[str(KERNELS)])


def _report(name: str, kernel: consan.Kernel, engine: str = "record") -> Any:
    report = consan.launch(kernel, 1, 128, _args(name), device="cpu", engine=engine)
    assert [each.engine for each in report.kernels] == [engine]
    return report


@pytest.mark.parametrize("name", but([each for each in CASES if "gather4" in each], CASES))  # hooks of another architecture
@pytest.mark.parametrize("repaired", [False, True], ids=["racy", "repaired"])
def test_the_engines_agree(name: str, repaired: bool) -> None:
    kernel = _kernel(name, WAIT[CASES[name][0]] if repaired else "")
    reports = [_report(name, kernel, engine) for engine in ("record", "inline")]
    assert found(reports[0]) == found(reports[1])
    assert {finding.kind for finding in reports[0].findings} == (set() if repaired else {"missing-wait"})
    assert reports[0].verdict == ("clean" if repaired else "violations")


@each_case
@pytest.mark.parametrize("outside", [False, True], ids=["last", "beyond"])
def test_the_bytes_are_those_of_the_box(name: str, outside: bool) -> None:
    """Nobody waits. The bytes behind the box are free; the last of it are not."""
    report = _report(name, _kernel(name, writes=f"t >= {CASES[name][4] - (not outside)}"))
    assert bool(report.findings) is not outside


@each_case
def test_compact_logs_are_as_full_ones(name: str) -> None:
    kernel = _kernel(name)
    assert compared(Work(kernel.ptx, "kernel", (1, 1, 1), (128, 1, 1), _args(name))) == ""


def test_a_row_outside_of_the_tensor_is_not_read() -> None:
    at = "{0, 5, 7, 20, 9}"
    assert not _report("scatter4", _kernel("scatter4", writes="t >= 16 && t < 24", at=at)).findings
    assert _report("scatter4", _kernel("scatter4", writes="t >= 16 && t < 25", at=at)).findings


STORES = "if (t < 16) matrix[ROW * 16 + t] = 3"


@pytest.mark.parametrize("row", [5, 7, 9])
def test_rows_of_global_memory(row: int) -> None:
    """A generic store to a row needs a proxy fence before the copy that reads it, and only then."""
    report = _report("gather4", _kernel("gather4", WAIT[LOAD], before=STORES.replace("ROW", str(row))))
    assert {finding.kind for finding in report.findings} == (set() if row == 7 else {"missing-proxy-fence"})


# What is changed in the checker, and the case that shows it.
FAULTS = {
    "rows": ("return (four_ ? ROWS : 1) * count", "return count", "gather4"),
    "pixels": ("counts_[1] = (upper_dims_ & 1023) + 1", "counts_[1] = 1", "im2col load"),
    "pixels of a store": ("counts_[1] = (upper_dims_ & 1023) + 1", "counts_[1] = 1", "im2col store"),
    "rows of a store": ("if (four_) rows = ROWS;", "", "scatter4"),
}


def test_each_fault_changes_text_that_is_there() -> None:
    text = build.sources()["tensors.hpp"]
    assert [fault for fault, (old, *_) in FAULTS.items() if text.count(old) != 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_checker(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new, name = FAULTS[fault]
    break_checker(monkeypatch, tmp_path, (replay,), "tensors.hpp", old, new)
    assert not _report(name, _kernel(name, writes=f"t >= {CASES[name][4] - 1}")).findings


def test_a_fault_in_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "IM2COL_WORDS", tensors.TILE_WORDS)
    assert not _report("im2col load", _kernel("im2col load", writes="t == 63")).findings  # no other test has this text


def test_the_fault_hides_a_finding() -> None:
    assert _report("im2col load", _kernel("im2col load", writes="t == 63 || t == 62")).findings
