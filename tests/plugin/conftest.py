"""The project that most tests run pytest in, and what has to be imported before that."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from consan.toolchain import cache

CACHE = str(cache.default_folder())

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))


@pytest.fixture(scope="session", autouse=True)
def _imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pytester unloads modules that a run in this process was the first to import; half of a package would then be there twice."""
    import pipeline_kernels as kernels

    import consan
    import consan.plugin.fixture
    import consan.plugin.ledger

    with consan.check(device="cpu") as report:
        import cupy

        path = tmp_path_factory.mktemp("kernels") / "module.ptx"
        path.write_text(kernels.MODULE)
        cupy.RawModule(path=str(path)).get_function("racy")((1,), (64,), (cupy.zeros(64, dtype=cupy.uint32), 5))
    assert "data-race" in str(report)
    report.to_json()


@pytest.fixture(autouse=True)
def _cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytester has a home of its own: what consan has compiled stays where it is."""
    monkeypatch.setenv(cache.VARIABLE, CACHE)


# A suite that knows nothing of consan: CuPy at the top of a conftest, kernels in files beside it.
CONFTEST = """
import cupy as cp
import pytest

@pytest.fixture
def shift():
    def call(entry="racy"):
        x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
        cp.RawModule(path="k.ptx").get_function(entry)((1,), (64,), (x, out))
        return cp.asnumpy(out)
    return call
"""
SOURCE = """extern "C" __global__ void racy(const float* in, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];
    out[t] = tile[63 - t];
}
extern "C" __global__ void fixed(const float* in, float* out) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    out[t] = tile[63 - t];
}
"""


@pytest.fixture(scope="session")
def compiled() -> str:
    """The source as PTX that names it by a relative path: the same text in every folder, so that it is prepared once."""
    from consan.toolchain.nvrtc import compile_ptx

    ptx = compile_ptx(SOURCE, name="k.cu", arch="sm_90").ptx
    return re.sub(r'(\.file\s+1\s+)"[^"]*"[^\n]*', r'\1"k.cu"', ptx)


@pytest.fixture
def project(pytester: pytest.Pytester, compiled: str) -> pytest.Pytester:
    """A folder with the suite and its kernels."""
    import pipeline_kernels as kernels

    (pytester.path / "k.cu").write_text(SOURCE)
    (pytester.path / "k.ptx").write_text(compiled)
    (pytester.path / "unmodelled.ptx").write_text(kernels.HEAD + kernels.UNMODELLED)
    pytester.makeconftest(CONFTEST)
    return pytester
