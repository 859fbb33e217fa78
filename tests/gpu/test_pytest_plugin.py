"""`pytest --consan` on the GPU: a suite of CuPy's kernels as it is; each test has its findings, though launches return early."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _cupy() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("no GPU")


TESTS = '''
import cupy as cp
import pytest

SOURCE = r"""
extern "C" __global__ void shift(const float* in, float* out, int spin) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    for (long long until = clock64() + spin; clock64() < until;) {}
    tile[t] = in[t];
#ifdef FIXED
    __syncthreads();
#endif
    out[t] = tile[63 - t];
}
"""

def launch(*options, spin=0):
    x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
    cp.RawKernel(SOURCE, "shift", options=options)((1,), (64,), (x, out, cp.int32(spin)))

def test_racy(): launch()
def test_racy_and_slow(): launch(spin=100_000_000)
def test_fixed(): launch("-DFIXED")
def test_fixed_again(): launch("-DFIXED")
@pytest.mark.consan(expect="data-race")
def test_expected(): launch()
def test_library(): assert int(cp.random.randint(0, 2, 1000).sum()) >= 0
def test_check(consan):
    with consan.check() as report:
        launch()
    assert [finding.kind for finding in report.findings] == ["data-race"]
'''


def test_a_suite_on_the_gpu(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest_subprocess("--consan", "--consan-device=gpu", "--consan-report=r.json", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(["test_it.py RR.....*", "* in 2 tests", "    test_it.py::test_racy", "    test_it.py::test_racy_and_slow"])
    data = json.loads((pytester.path / "r.json").read_text())
    assert data["device"] not in ("cpu", "gpu")
    verdicts = {test["id"].partition("::")[2]: test["verdict"] for test in data["tests"]}
    assert verdicts["test_racy"] == verdicts["test_racy_and_slow"] == "violations"
    assert verdicts["test_fixed"] == verdicts["test_fixed_again"] == verdicts["test_expected"] == "clean"
    assert "test_check" not in verdicts
