"""Numba-CUDA on the GPU under `consan run`: what it launches is instrumented, found and clean where it should be, results unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import engines, found, marked, run

pytestmark = pytest.mark.gpu

HEAD = "import numpy as np\nfrom numba import cuda, float32\n"
VECTOR_ADD = (
    HEAD
    + """
@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]
x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
add[8, 128](x, x, out)
assert (out == 2 * x).all()
"""
)
REDUCTION = (
    HEAD
    + """
@cuda.jit
def total(x, out):
    tile = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    s = 128
    while s > 0:
        if t < s:
            tile[t] += tile[t + s]  # BOTH
        cuda.syncthreads()
        s //= 2
    if t == 0:
        out[cuda.blockIdx.x] = tile[0]
x = np.ones(1024, dtype=np.float32)
out = np.zeros(4, dtype=np.float32)
total[4, 256](x, out)
"""
)
MATMUL = (
    HEAD
    + """
T = 16
@cuda.jit
def matmul(a, b, c):
    sa = cuda.shared.array((T, T), float32)
    sb = cuda.shared.array((T, T), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for i in range(a.shape[1] // T):
        sa[ty, tx] = a[y, tx + i * T]
        sb[ty, tx] = b[ty + i * T, x]
        cuda.syncthreads()
        for k in range(T):
            total += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    c[y, x] = total
a, b = (np.random.default_rng(s).integers(-3, 4, (64, 64)).astype(np.float32) for s in (0, 1))
c = np.zeros_like(a)
matmul[(4, 4), (T, T)](a, b, c)
assert (c == a @ b).all()
"""
)
REDUCE = HEAD + "f = cuda.reduce(lambda a, b: a + b)\nassert f(np.arange(5000, dtype=np.float64)) == 12497500\n"
CACHED = VECTOR_ADD.replace("@cuda.jit", "@cuda.jit(cache=True)")
CLEAN = {
    "vector_add": VECTOR_ADD,
    "reduction": REDUCTION + "assert (out == 256).all()",
    "matmul": MATMUL,
    "cached": CACHED,
}


@pytest.fixture(autouse=True)
def _gpu() -> None:
    """Ask in a process of its own: a context here would hold memory."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    code = "import sys; from numba import cuda; sys.exit(not cuda.is_available())"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
        pytest.skip("no GPU")


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str, tmp_path: Path) -> None:
    status, report = run(tmp_path, CLEAN[name], NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (status, report["verdict"]) == (0, "clean"), report
    assert set(engines(report)) == {"record"}
    assert not report["uninstrumented"]
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_numbas_own_reduction_waits_for_a_warp_in_a_branch(tmp_path: Path) -> None:
    """numba-cuda 0.30's reduction.py: `if tid < 2: ...; cuda.syncwarp()`, whose mask names all lanes; the result is right all the same."""
    status, report = run(tmp_path, REDUCE)
    assert status == 66
    assert {finding["kind"] for finding in report["findings"]} == {"barrier-misuse"}
    assert {access["file"].rpartition("/")[2] for finding in report["findings"] for access in finding["accesses"]} == {"reduction.py"}


def test_a_race_points_at_lines_of_python(tmp_path: Path) -> None:
    status, report = run(tmp_path, REDUCTION.replace("        cuda.syncthreads()\n        s //= 2", "        s //= 2"))
    assert (status, report["verdict"]) == (66, "violations")
    assert {("script.py", line) for line in marked(tmp_path, "# BOTH")} <= found(report)


def test_a_kernel_with_grid_wide_synchronisation_is_listed_and_not_clean(tmp_path: Path) -> None:
    script = HEAD + (
        "@cuda.jit\ndef both(x):\n    x[cuda.grid(1)] += 1\n    cuda.cg.this_grid().sync()\n    x[cuda.grid(1)] += 1\n"
        "x = np.zeros(64, dtype=np.float32)\nboth[2, 32](x)\nassert (x == 2).all()"
    )
    status, report = run(tmp_path, script)
    assert (status, report["verdict"]) == (67, "incomplete")
    assert [entry["launches"] for entry in report["uninstrumented"]] == [1]


def test_sessions_one_after_another(tmp_path: Path) -> None:
    script = (
        VECTOR_ADD
        + """
import consan
for expected in (1, 2):
    with consan.check(device="gpu") as report:
        for _ in range(expected):
            add[8, 128](x, x, out)
    assert [k.launches for k in report.kernels] == [expected], report
add[8, 128](x, x, out)
"""
    )
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
