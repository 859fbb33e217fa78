"""A program of CuTe DSL under `consan run --device cpu`, unmodified: a TMA load whose readers do not wait for it, and its repaired twin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import sys
import numpy as np
import cutlass
import cutlass.cute as cute
from cuda.bindings import driver
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_ptr

RACY = "racy" in sys.argv


@cute.kernel
def first_column(atom: cute.CopyAtom, source: cute.Tensor, layout: cute.ComposedLayout, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.memory.SmemAllocator()
    full = shared.allocate_array(cutlass.Int64, 1)
    tile = shared.allocate_tensor(cutlass.Float16, layout.outer, 1024, swizzle=layout.inner)
    if thread == 0:
        cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    box = cute.local_tile(source, (64, 64), (0, 0))
    to, from_ = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(box, 0, 2))
    if thread < 32:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 64 * 64 * 2)
        cute.copy(atom, from_, to, tma_bar_ptr=full)
    if cutlass.const_expr(not RACY):
        cute.arch.mbarrier_wait(full, 0)
    out[thread] = tile[thread % 64, 0]  # reader


@cute.jit
def launch(p: cute.Pointer, q: cute.Pointer, rows: cutlass.Int32, columns: cutlass.Int32):
    source = cute.make_tensor(p, cute.make_layout((rows, columns), stride=(columns, 1)))
    kind = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cutlass.Float16)
    layout = cute.tile_to_shape(kind, (64, 64), (0, 1))
    atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, layout, (64, 64))
    out = cute.make_tensor(q, cute.make_layout(128))
    first_column(atom, tensor, layout, out).launch(grid=(1, 1, 1), block=(128, 1, 1))


def ok(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
x, y = np.arange(300 * 72, dtype=np.float16).reshape(300, 72), np.zeros(128, np.float16)
a, b = ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuMemAlloc(y.nbytes))
ok(driver.cuMemcpyHtoD(a, x.ctypes.data, x.nbytes))
pointers = [make_ptr(cutlass.Float16, int(each), cute.AddressSpace.gmem, assumed_align=128) for each in (a, b)]
launch(*pointers, *x.shape)
ok(driver.cuMemcpyDtoH(y.ctypes.data, b, y.nbytes))
assert RACY or (y == np.tile(x[:64, 0], 2)).all()
"""
READER = next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# reader" in line)


def run(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "-o", "report.json", "program.py", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (folder / "report.json").exists(), done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("racy", [False, True])
def test_a_program_of_cute_dsl(tmp_path: Path, racy: bool) -> None:
    pytest.importorskip("cuda.bindings", exc_type=ImportError)
    pytest.importorskip("nvidia_cutlass_dsl", exc_type=ImportError)
    status, report = run(tmp_path, *["racy"] * racy)
    assert (status, report["verdict"]) == ((66, "violations") if racy else (0, "clean")), report["findings"]
    assert [each["launches"] for each in report["kernels"]] == [1]
    lines = {
        each["kind"]: {access["line"] for access in each["accesses"] if Path(access["file"]).name == "program.py"}
        for each in report["findings"]
    }
    assert set(lines) == ({"missing-wait", "lifetime"} if racy else set()), "the CTA ends before the load does"
    assert not racy or READER in lines["missing-wait"]
    assert not racy or "pipeline.consumer_wait()" in next(each["fix"] for each in report["findings"] if each["kind"] == "missing-wait")
