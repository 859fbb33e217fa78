"""CuPy on the GPU under `consan run`: everything that it compiles is instrumented, found and clean where it should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import engines

pytestmark = pytest.mark.gpu

HEAD = "import cupy as cp, numpy as np\n"

RACY = '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void shift(const float *x, float *y) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];          // WRITE
    y[threadIdx.x] = tile[(threadIdx.x + 33) % 128];  // READ
}
""", "shift")
x, y = cp.arange(128, dtype=cp.float32), cp.zeros(128, dtype=cp.float32)
kernel((1,), (128,), (x, y))
cp.cuda.Device().synchronize()
'''

SOURCE = '''
SRC = r"""
template <typename T> __device__ T twice(T v) { return v + v; }
template <typename T> __global__ void fill(T *p, T v) {
    __shared__ T s[32];
    s[threadIdx.x] = twice(v);
    __syncthreads();
    p[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void plain(int *p) { p[threadIdx.x] = threadIdx.x; }
"""
'''

CLEAN = {
    "raw_kernel": SOURCE + "k = cp.RawKernel(SRC, 'plain'); a = cp.zeros(32, 'i4'); k((1,), (32,), (a,)); assert int(a.sum()) == 496",
    "templates": SOURCE
    + "m = cp.RawModule(code=SRC, name_expressions=('fill<float>', 'fill<double>'))\n"
    + "for t, n in (('f4', 'float'), ('f8', 'double')):\n"
    + "    a = cp.zeros(32, t); m.get_function(f'fill<{n}>')((1,), (32,), (a, np.dtype(t).type(3))); assert (a.get() == 6).all()",
    "ptx_file": SOURCE
    + "from cupy.cuda import compiler\n"
    + "cc = cp.cuda.Device().compute_capability\n"
    + "ptx, _ = compiler._NVRTCProgram(SRC, 'k.cu', method='ptx').compile((f'-arch=compute_{cc}',))\n"
    + "open('k.ptx', 'wb').write(ptx.rstrip(b'\\0'))\n"
    + "k = cp.RawModule(path='k.ptx').get_function('plain'); a = cp.zeros(32, 'i4'); k((1,), (32,), (a,)); assert int(a.sum()) == 496",
    "elementwise": "k = cp.ElementwiseKernel('T x, T y', 'T z', 'z = x * y', 'mul'); a = cp.arange(9.0); assert (k(a, a) == a * a).all()",
    "reduction": "k = cp.ReductionKernel('T x', 'T y', 'x * x', 'a + b', 'y = a', '0', 'ss'); a = cp.arange(999.0)\n"
    + "assert float(k(a)) == float((a.get() ** 2).sum())",
    "fusion": "@cp.fuse(kernel_name='fused')\ndef f(x, y):\n    return x * y + 1\na = cp.arange(9.0)\n"
    + "assert (f(a, a).get() == a.get() ** 2 + 1).all()",
    "jit": "from cupyx import jit\n@jit.rawkernel()\ndef k(x, y, n):\n    i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x\n"
    + "    if i < n:\n        y[i] = x[i] + 1\na = cp.arange(99.0); b = cp.zeros(99); k[4, 32](a, b, 99); assert (b == a + 1).all()",
    "routines": "a = cp.arange(5000.0)[::-1]; assert float(a.sum()) == float(a.get().sum())\n"
    + "assert (cp.cumsum(a).get() == np.cumsum(a.get())).all()",
}


@pytest.fixture(autouse=True)
def _gpu() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("no GPU")


def run(folder: Path, script: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Run a script under consan; the exit status and the report."""
    (folder / "script.py").write_text(HEAD + script + "\n")
    output = folder / "report.json"
    command = [sys.executable, "-m", "consan", "run", "--device", "gpu", "--format", "json", "-o", str(output), "script.py"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False)
    assert output.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(output.read_text())


def test_a_race_points_at_the_lines_of_the_script(tmp_path: Path) -> None:
    status, report = run(tmp_path, RACY)
    assert (status, report["verdict"]) == (66, "violations")
    lines = (tmp_path / "script.py").read_text().splitlines()
    marks = {number for number, text in enumerate(lines, 1) if "// WRITE" in text or "// READ" in text}
    found = {(Path(access["file"]).name, access["line"]) for finding in report["findings"] for access in finding["accesses"]}
    assert found == {("script.py", number) for number in marks}
    # CuPy launches a kernel of its own, too, to make x.
    assert [(kernel["engine"], kernel["launches"]) for kernel in report["kernels"] if kernel["name"] == "shift"] == [("record", 1)]


@pytest.mark.parametrize("name", sorted(CLEAN))
def test_clean_and_instrumented(tmp_path: Path, name: str) -> None:
    status, report = run(tmp_path, CLEAN[name])
    assert (status, report["verdict"]) == (0, "clean"), report["findings"]
    assert report["kernels"], "nothing was instrumented"
    assert set(engines(report)) == {"record"}


def test_a_launch_into_a_graph_is_recorded(tmp_path: Path) -> None:
    script = SOURCE + (
        "k = cp.RawKernel(SRC, 'plain'); a = cp.zeros(32, 'i4'); k((1,), (32,), (a,)); cp.cuda.Device().synchronize()\n"
        "with cp.cuda.Stream(non_blocking=True) as stream:\n"
        "    stream.begin_capture(); k((1,), (32,), (a,)); graph = stream.end_capture()\n"
        "    graph.launch(stream); graph.launch(stream); stream.synchronize()\n"
        "assert int(a.get().sum()) == 496"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (0, "clean"), report
    assert engines(report) == {"record": 3}


def test_a_module_with_variables_is_recorded(tmp_path: Path) -> None:
    """The program writes them, and each form of the module reads them: the framework's, and those with global memory and with hooks."""
    script = (
        'm = cp.RawModule(code=\'extern "C" { static __device__ int n; __device__ int c[1]; __constant__ int f[2];'
        " __global__ void k(int *p, int *q) { p[q[threadIdx.x]] = c[0] + f[threadIdx.x & 1]; if (!threadIdx.x) n++; }"
        " __global__ void r(int *p) { p[0] = n; } }')\n"
        "cp.ndarray(1, 'i4', memptr=m.get_global('c'))[:] = 5; cp.ndarray(2, 'i4', memptr=m.get_global('f'))[:] = 2\n"
        "a, q, k = cp.zeros(32, 'i4'), cp.arange(32, dtype='i4'), m.get_function('k')\n"
        "for i in range(3): a.fill(0); k((1,), (32,), (a, q)); assert (a.get() == 7).all()\n"
        "with cp.cuda.Stream(non_blocking=True) as stream:\n"
        "    stream.begin_capture(); k((1,), (32,), (a, q)); graph = stream.end_capture()\n"
        "    graph.launch(stream); stream.synchronize()\n"
        "m.get_function('r')((1,), (1,), (a,)); assert int(a[0]) == 4, a"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"], report["findings"]) == (0, "clean", []), report
    assert {kernel["engine"] for kernel in report["kernels"] if kernel["name"] == "k"} == {"record"}


def test_errors_of_the_driver_are_cupys(tmp_path: Path) -> None:
    script = SOURCE + (
        "k = cp.RawKernel(SRC, 'plain'); a = cp.zeros(32, 'i4')\n"
        "try:\n    k((1,), (32,), (a,), shared_mem=1 << 30)\n    raise AssertionError\n"
        "except cp.cuda.driver.CUDADriverError as error:\n    assert 'INVALID_VALUE' in str(error), error\n"
        "k((1,), (32,), (a,)); assert int(a.get().sum()) == 496"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"], engines(report)) == (0, "clean", {"record": 1}), report


def test_sessions_one_after_another(tmp_path: Path) -> None:
    script = SOURCE + (
        "import consan\nk = cp.RawKernel(SRC, 'plain'); a = cp.zeros(32, 'i4')\n"
        "for expected in (1, 2):\n"
        "    with consan.check(device='gpu') as report:\n"
        "        for _ in range(expected): k((1,), (32,), (a,))\n"
        "    assert [kernel.launches for kernel in report.kernels if kernel.name == 'plain'] == [expected], report\n"
        "    a.fill(0); k((1,), (32,), (a,)); assert int(a.get().sum()) == 496\n"
    )
    (tmp_path / "script.py").write_text(HEAD + script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr


def test_the_users_cache_is_neither_read_nor_written(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(tmp_path, CLEAN["elementwise"], CUPY_CACHE_DIR=str(cache))
    assert list(cache.rglob("*.cubin")) == []


def test_library_kernels_are_listed(tmp_path: Path) -> None:
    _, report = run(tmp_path, "cp.random.rand(100); cp.arange(9) + 1")
    assert any("cuRAND" in str(entry) for entry in report["uninstrumented"])
    assert report["verdict"] == "clean"


def test_binary_module_is_listed(tmp_path: Path) -> None:
    script = SOURCE + (
        "from cupy.cuda import compiler\ncc = cp.cuda.Device().compute_capability\n"
        "cubin, _ = compiler._NVRTCProgram(SRC, 'k.cu', method='cubin').compile((f'-arch=sm_{cc}',))\nopen('k.cubin', 'wb').write(cubin)\n"
        "k = cp.RawModule(path='k.cubin').get_function('plain'); a = cp.zeros(32, 'i4'); k((1,), (32,), (a,)); assert a[31] == 31"
    )
    status, report = run(tmp_path, script)
    assert status == 0
    assert any("k.cubin" in str(entry) for entry in report["uninstrumented"])
