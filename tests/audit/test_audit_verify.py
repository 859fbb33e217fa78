"""`consan.audit.verify`: one source to one verdict. Modules with torch are skipped where it is not installed."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path

import pytest

from consan._errors import UsageError
from consan.audit import verify

RACE = """
__global__ void k(float *p) {
  __shared__ float tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  %s
  p[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void other(float *p) { *p = 0; }
int main() {
  float *p;
  cudaMalloc(&p, 256);
  k<<<1, 64>>>(p);
  %s
}
"""
ALL = "other<<<1, 1>>>(p);"
MODULE = '''
import torch
from torch.utils.cpp_extension import load_inline
source = """
__global__ void doubled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}
torch::Tensor twice(torch::Tensor x, double unused = 1.0) {
    TORCH_CHECK(x.is_cuda(), "expected a tensor on the device");
    auto y = torch::empty_like(x);
    doubled<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
extension = load_inline("twice", "torch::Tensor twice(torch::Tensor x, double unused);", source, functions=["twice"])
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
class ModelNew(torch.nn.Module):
    def forward(self, x):
        CALL
batch_size, = 4096,
def get_inputs():
    return [torch.rand(3, 50, device="cuda")]
'''
needs_torch = pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
MINUTES = 600.0  # the first build compiles torch's headers


def test_a_source_that_is_right_scores_one() -> None:
    verdict = verify(RACE % ("__syncthreads();", ALL), budget=20)
    assert (verdict.verdict, verdict.correct, verdict.score, verdict.places) == ("clean", True, 1.0, ())
    verdict.raise_if_wrong()


def test_a_race_has_its_kind_and_its_lines() -> None:
    verdict = verify(RACE % ("", ALL), budget=20)
    assert (verdict.verdict, verdict.kinds, verdict.places[0].lines) == ("violations", ("data-race",), (4, 6))
    assert json.loads(verdict.to_json())["score"] == verdict.score < 1
    with pytest.raises(AssertionError, match="line 6"):
        verdict.raise_if_wrong()


def test_what_is_not_reached_is_not_correct() -> None:
    verdict = verify(RACE % ("__syncthreads();", ""), budget=20)
    assert (verdict.verdict, verdict.correct, verdict.score) == ("not reached", False, 0.0)


def test_hiding_a_race_scores_less_than_showing_it() -> None:
    hidden = RACE.replace("k<<<", "if (false) k<<<") % ("", ALL)
    assert verify(hidden, budget=20).score < verify(RACE % ("", ALL), budget=20).score


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        verify(tmp_path / "no.cu")


@needs_torch
@pytest.mark.timeout(MINUTES)
@pytest.mark.parametrize(
    ("factor", "call", "verdict"),
    [
        ("2", "return extension.twice(x.cuda(), 1.0)", "clean"),
        ("3", "return extension.twice(x, 1)", "wrong result"),
        ("2", "return 2 * x", "not reached"),
        (
            "2",
            "try:\n            return extension.twice(x.double(), 1.0)\n        except RuntimeError:\n            return 2 * x",
            "not reached",
        ),
    ],
)
def test_a_module_is_compared_with_its_reference(factor: str, call: str, verdict: str) -> None:
    found = verify(MODULE.replace("FACTOR", factor).replace("CALL", call), budget=20)
    assert found.verdict == verdict, found.to_json()
    assert found.error is not None


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_files_in_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    source, launches = tmp_path / "k.cu", tmp_path / "k.toml"
    source.write_text("// gr\u00f6\u00dfer\n__global__ void k(int *p) { p[threadIdx.x] = 1; }\n", encoding)
    launches.write_text('# gr\u00f6\u00dfer\n[[launch]]\ngrid = 1\nblock = 32\narguments = ["i32[32]=zeros"]\n', encoding)
    assert verify(source, budget=20).verdict == "clean"
