"""`consan.audit.verify`: one source to one verdict. Modules with torch are skipped where it is not installed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
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


def test_several_threads_may_verify_at_once() -> None:
    sources = [RACE % (wait, ALL) for wait in ("__syncthreads();", "")]
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda source: verify(source, budget=20).verdict, sources))
    assert verdicts == ["clean", "violations"]


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


BETWEEN = '''
import torch
from torch.utils.cpp_extension import load_inline
source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
template <typename scalar_t> __global__ void reversed(const scalar_t* __restrict__ x, scalar_t* y, int64_t n) {
    __shared__ float tile[64];
    float least = -INFINITY, most = FLT_MAX;
    tile[threadIdx.x] = std::max(least, std::min(static_cast<float>(x[blockIdx.x * n + threadIdx.x]), most));
    WAIT
    y[blockIdx.x * n + threadIdx.x] = static_cast<scalar_t>(tile[63 - threadIdx.x]);
}
torch::Tensor turned(torch::Tensor x) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto stream = at::cuda::getCurrentCUDAStream();
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "turned", [&] {
        reversed<scalar_t><<<x.size(0), 64, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
torch::Tensor forward(torch::Tensor x, torch::Tensor w) {
    auto product = at::matmul(turned(x), w).contiguous();
    return turned(torch::relu(product).to(torch::kHalf)).to(torch::kFloat32) + 1;
}
"""
extension = load_inline("between", "torch::Tensor forward(torch::Tensor x, torch::Tensor w);", source, functions=["forward"])
class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.relu(x.flip(1) @ w).half().flip(1).float() + 1
class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return extension.forward(x, w)
batch_size = 16
def get_inputs():
    return [torch.rand(batch_size, 64).cuda(), torch.rand(64, 64).cuda()]
'''


@needs_torch
@pytest.mark.slow
@pytest.mark.timeout(MINUTES)
@pytest.mark.parametrize("right", [True, False])
def test_calls_of_torch_between_launches_compute(right: bool) -> None:
    found = verify(BETWEEN.replace("WAIT", "__syncthreads();" if right else ""), budget=20)
    verdicts = {row.kernel: row.verdict for row in found.result.rows if row.kernel}
    assert verdicts == dict.fromkeys(("reversed<float>", "reversed<c10::Half>"), "clean" if right else "violations"), found.to_json()
    assert {each.confirmed for each in found.places} == (set() if right else {"confirmed"})
    assert not right or (found.correct and found.error is not None and found.error < 0.01)


LOADED = """
import os
import torch
from torch.utils.cpp_extension import load
here = os.path.dirname(os.path.abspath(__file__))
extension = load(name="turned", sources=[os.path.join(here, name) for name in ("bind.cpp", "turned.cu")])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.turned(x)
def get_inputs():
    return [torch.rand(4, 64, device="cuda")]
"""
FILES = {
    "twice.cuh": "#pragma once\n__device__ float twice(float x) { return 2 * x; }\n",
    "bind.cpp": "#include <torch/extension.h>\ntorch::Tensor turned(torch::Tensor x);\n"
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("turned", &turned); }\n',
    "turned.cu": '#include <torch/extension.h>\n#include "twice.cuh"\n'
    "__global__ void reversed(const float *x, float *y) {\n  __shared__ float tile[64];\n"
    "  tile[threadIdx.x] = twice(x[blockIdx.x * 64 + threadIdx.x]);\n  y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];\n}\n"
    "torch::Tensor turned(torch::Tensor x) {\n  auto y = torch::empty_like(x);\n"
    "  reversed<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>());\n  return y;\n}\n",
}


@needs_torch
@pytest.mark.slow
@pytest.mark.timeout(MINUTES)
def test_an_extension_of_files_has_findings_in_their_lines(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "module.py").write_text(LOADED)
    found = verify(tmp_path / "module.py", budget=20)
    assert [(each.file, each.lines) for each in found.places] == [(str(tmp_path / "turned.cu"), (5, 6))], found.to_json()


FROM_THE_HOST = '''
import torch
from torch.utils.cpp_extension import load_inline
source = """
#include <ATen/cuda/CUDAContext.h>
#include <THC/THCAtomics.cuh>
#include <cub/block/block_reduce.cuh>
__global__ void summed(float **rows, float *out, int n) {
    using Reduce = cub::BlockReduce<float, 64>;
    __shared__ typename Reduce::TempStorage storage;
    float found = Reduce(storage).Reduce(rows[blockIdx.x][threadIdx.x + SHIFT], cub::Sum(), n);
    if (threadIdx.x == 0) out[blockIdx.x] = found;
}
torch::Tensor sums(std::vector<torch::Tensor> rows) {
    std::vector<int64_t> pointers;
    for (auto &row : rows) pointers.push_back(reinterpret_cast<int64_t>(row.data_ptr<float>()));
    auto table = torch::from_blob(pointers.data(), {int64_t(pointers.size())}, torch::kInt64).to(rows[0].device());
    auto out = torch::empty({int64_t(rows.size())}, rows[0].options());
    summed<<<rows.size(), 64>>>(reinterpret_cast<float **>(table.data_ptr<int64_t>()), out.data_ptr<float>(), 64);
    return out;
}
"""
functions = {"functions": ["sums"], "extra_cuda_cflags": ["-O3", "-DSHIFT=AT"]}
extension = load_inline("sums", "torch::Tensor sums(std::vector<torch::Tensor> rows);", source, **functions)
class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.sums([row.clone() for row in x])
def get_inputs():
    return [torch.rand(3, 64).cuda()]
'''


@needs_torch
@pytest.mark.slow
@pytest.mark.timeout(MINUTES)
@pytest.mark.parametrize(("shift", "verdict"), [("0", "clean"), ("1", "violations")])
def test_a_tensor_of_the_host_is_a_copy_on_the_device(shift: str, verdict: str) -> None:
    """Its pointers are in memory of the device; macros come from options, and names from earlier versions of torch and CUB."""
    found = verify(FROM_THE_HOST.replace("=AT", f"={shift}"), budget=20)
    assert found.verdict == verdict, found.to_json()
