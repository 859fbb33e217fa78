"""`consan run --device cpu` on scripts that import CuPy: the stand-in, the virtual machine and the report together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SAXPY = '''
import cupy as cp
import numpy as np

saxpy = cp.RawKernel(r"""
extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
""", "saxpy")
n = 5000
cp.random.seed(1)
x, y = cp.random.rand(n, dtype=cp.float32), cp.ones(n, dtype=cp.float32)
start, end = cp.cuda.Event(), cp.cuda.Event()
start.record()
saxpy(((n + 255) // 256,), (256,), (x, y, np.float32(2), n))
end.record()
end.synchronize()
cp.testing.assert_allclose(y, 2 * x + 1, rtol=1e-6)
print("milliseconds", cp.cuda.get_elapsed_time(start, end))
'''

SHIFT = """
import cupy as cp

SOURCE = open("shift.cu").read()
x, y = cp.arange(128, dtype=cp.float32), cp.zeros(128, dtype=cp.float32)
cp.RawModule(code=SOURCE).get_function("shift")((1,), (128,), (x, y))
"""

SHIFT_CU = """extern "C" __global__ void shift(const float *x, float *y) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[(threadIdx.x + 33) % 128];
}
"""

MISSPELLED = """
import cupy as cp

def launch(body):
    kernel = cp.RawKernel('extern "C" __global__ void k(float* x) { %s; }' % body, "k")
    kernel((1,), (32,), (cp.zeros(32, cp.float32),))

try:
    launch("x[threadIdx.x] = nothing")
except NAME as error:
    print(error.get_message())
launch("x[threadIdx.x] = 1")
"""

GENERATED = '''
import cupy as cp
import numpy as np

a = cp.arange(999.0)
product = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y", "product")
assert (product(a, a) == a * a).all()
squares = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
assert float(squares(a)) == float((a.get() ** 2).sum())
b = cp.arange(12.0).reshape(3, 4)
assert (squares(b, axis=0).get() == (b.get() ** 2).sum(axis=0)).all()
module = cp.RawModule(code=r"""
__constant__ int table[4];
template <typename T> __global__ void fill(T *p, T v) {
    extern __shared__ unsigned char raw[];
    T *s = reinterpret_cast<T *>(raw);
    s[threadIdx.x] = v + v;
    __syncthreads();
    p[threadIdx.x] = s[31 - threadIdx.x] + table[threadIdx.x & 3];
}""", name_expressions=("fill<float>", "fill<double>"))
cp.ndarray((4,), cp.int32, module.get_global("table"))[...] = cp.arange(4, dtype=cp.int32)
for kind, name in (("f4", "float"), ("f8", "double")):
    out = cp.zeros(32, kind)
    module.get_function(f"fill<{name}>")((1,), (32,), (out, np.dtype(kind).type(3)), shared_mem=256)
    assert out.get().tolist() == [6, 7, 8, 9] * 8
'''

OUTSIDE = SAXPY.replace("if (i < n) y[i]", "if (i <= n + 63) y[i]").partition("cp.testing")[0]


def run(folder: Path, script: str, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", *options, "-o", "run.json", "script.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    stored = folder / "run.json"
    return done, json.loads(stored.read_text()) if stored.exists() else {}


def test_clean_script(tmp_path: Path) -> None:
    done, report = run(tmp_path, SAXPY)
    assert (done.returncode, report["verdict"]) == (0, "clean"), done.stderr
    assert "milliseconds" in done.stdout
    assert [(kernel["name"], kernel["launches"]) for kernel in report["kernels"]] == [("saxpy", 1)]
    assert any("stand-in" in note for note in report["notes"])


@pytest.mark.parametrize("fixed", [False, True])
def test_race_in_a_file_beside_the_script(tmp_path: Path, fixed: bool) -> None:
    (tmp_path / "shift.cu").write_text(SHIFT_CU.replace("x[threadIdx.x];\n", "x[threadIdx.x]; __syncthreads();\n") if fixed else SHIFT_CU)
    done, report = run(tmp_path, SHIFT)
    found = {(Path(access["file"]).name, access["line"]) for finding in report["findings"] for access in finding["accesses"]}
    assert (done.returncode, found) == ((0, set()) if fixed else (66, {("shift.cu", 3), ("shift.cu", 4)})), done.stderr


def test_generated_kernels_templates_and_globals(tmp_path: Path) -> None:
    done, report = run(tmp_path, GENERATED)
    assert (done.returncode, report["verdict"]) == (0, "clean"), done.stdout + done.stderr
    # The squares of rows, and of columns, are kernels of their own.
    assert sorted(kernel["name"] for kernel in report["kernels"]) == [
        "_Z4fillIdEvPT_S0_",
        "_Z4fillIfEvPT_S0_",
        "product",
        *["squares"] * 2,
    ]  # along rows, and across them


def test_write_past_an_array(tmp_path: Path) -> None:
    done, report = run(tmp_path, OUTSIDE)
    assert done.returncode == 66, done.stderr
    assert [finding["kind"] for finding in report["findings"]] == ["out-of-bounds"]
    line = 1 + next(number for number, text in enumerate(OUTSIDE.splitlines()) if "y[i] =" in text)
    access = report["findings"][0]["accesses"][0]
    assert access["line"] == line
    assert access["name"] == "directly past the end of argument 1 (x, 20,000 bytes)"


def test_what_the_stand_in_lacks_is_one_line(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "import cupy as cp\ncp.fuse\n")
    assert done.returncode == 2
    assert "cupy.fuse is not part of consan's CPU stand-in for CuPy" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("caught", [True, False])
def test_a_source_that_does_not_compile_is_cupys_exception(tmp_path: Path, caught: bool) -> None:
    """A program may go on, as with CuPy; else the message is one of consan's."""
    name = "cp.cuda.compiler.CompileException" if caught else "KeyError"
    done, report = run(tmp_path, MISSPELLED.replace("NAME", name))
    assert 'identifier "nothing" is undefined' in (done.stdout if caught else done.stderr)
    assert "Traceback" not in done.stderr
    assert (done.returncode, report["verdict"]) == ((0, "clean") if caught else (2, "incomplete"))
