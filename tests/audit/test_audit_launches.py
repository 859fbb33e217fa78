"""Kernels without a host's code: launches of a launch file, and guessed ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_server import server

from consan.audit import Verdict, rows, table
from consan.audit.rows import FileResult, KernelRow
from consan.audit.runner import AuditRequest
from consan.toolchain.nvrtc import compile_ptx

SOURCE = """
__global__ void rev(float *p) {
  __shared__ float tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  BARRIER
  p[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void scale(float *p, int n, float by) {
  if (blockIdx.x * blockDim.x + threadIdx.x < n) p[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}
template <typename T> __global__ void shifted(T *p) {
  __shared__ T tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  BARRIER
  p[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
}
"""
LAUNCH = '[[launch]]\nkernel = "{}"\ngrid = 1\nblock = 64\narguments = [{}]\n'
ARRAYS = '[arrays]\na = "f32[64]=random"\n'
REV, SCALE = LAUNCH.format("rev", '"a"'), LAUNCH.format("scale", '"a", "i32=64", "f32=2"')


def _source(*, right: bool) -> str:
    return SOURCE.replace("BARRIER", "__syncthreads();" if right else "")


def _result(name: str, text: str, launches: str | None, **more: Any) -> FileResult:
    return server().result(AuditRequest(name, text, launches=launches, **more))


def _by_kernel(result: FileResult) -> dict[str, KernelRow]:
    return {row.kernel: row for row in result.rows}


@pytest.mark.parametrize("right", [True, False])
def test_ptx_is_launched_as_its_launch_file_says(right: bool) -> None:
    ptx = compile_ptx(_source(right=right), name="k.cu").ptx
    found = _by_kernel(_result("k.ptx", ptx, ARRAYS + REV + SCALE + SCALE))
    assert {name: (row.verdict, row.launches, row.launch) for name, row in found.items()} == {
        "rev": ("clean" if right else "violations", 1, "1 x 64"),
        "scale": ("clean", 2, "1 x 64"),
    }
    assert [(each.kind, each.lines, each.file.endswith("k.cu")) for each in found["rev"].findings] == (
        [] if right else [("data-race", (4, 6), True)]
    )


def test_a_kernel_without_a_launch_is_not_reached() -> None:
    found = _result("k.ptx", compile_ptx(_source(right=True), name="k.cu").ptx, ARRAYS + REV)
    assert [(row.kernel, row.verdict) for row in found.rows] == [("rev", "clean"), ("scale", rows.NOT_REACHED)]


def test_a_file_with_a_launch_file_has_its_headers_in_other_folders(tmp_path: Path) -> None:
    (tmp_path / "kernels.cuh").write_text(_source(right=True))
    launch = LAUNCH.format("rev", '"f32[64]=random"')
    assert _by_kernel(_result("k.cu", '#include "kernels.cuh"\n', launch, folders=(str(tmp_path),)))["rev"].verdict == "clean"


def test_a_source_that_does_not_compile_has_its_first_error() -> None:
    launch = LAUNCH.format("rev", '"f32[64]=random"')
    wrong = _by_kernel(_result("k.cu", _source(right=True).replace("63 -", "n -"), launch))["rev"]
    assert (wrong.verdict, wrong.note) == (rows.NOT_COMPILED, 'launch 1: k.cu:6: identifier "n" is undefined')


@pytest.mark.parametrize("right", [True, False])
def test_an_instance_of_a_template_is_launched_by_its_name(right: bool) -> None:
    launch = LAUNCH.format("shifted<int>", '"i32[64]=arange"')
    row = _by_kernel(_result("k.cu", _source(right=right), launch))["shifted<int>"]
    assert (row.verdict, [each.lines for each in row.findings]) == (("clean", []) if right else ("violations", [(13, 15)]))


@pytest.mark.parametrize(
    ("launches", "why"),
    [
        ("[[launch]]", "the launch file: launch 1: expected grid"),
        (LAUNCH.format("rev", ""), "launch 1: _Z3revPf takes 1 argument (8 bytes), 0 given"),
        (LAUNCH.format("rev", '"f32=1"'), "launch 1: argument 1 'f32=1': is a float"),
        (LAUNCH.format("rve", '"f32[64]=zeros"'), "launch 1: k.ptx has no kernel called 'rve'"),
    ],
)
def test_a_launch_that_does_not_fit_is_said(launches: str, why: str) -> None:
    result = _result("k.ptx", compile_ptx(_source(right=True), name="k.cu").ptx, launches)
    assert result.verdict == rows.NOT_REACHED
    assert any(row.note.startswith(why) for row in result.rows), result.rows


# -- guessed launches ---------------------------------------------------------------------------------------------------------

TRANSPOSE = """
#define TILE 32
__global__ void transpose(const float *in, float *out, int rows, int cols) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < cols && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * cols + x];
  BARRIER
  x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y;
  if (x < rows && y < cols) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}
struct Pair { int n; float *p; };
__global__ void packed(Pair pair) { pair.p[threadIdx.x] = pair.n; }
template <typename T, int N, bool B = true> __global__ void filled(T *p, int n) { for (int i = threadIdx.x; i < n; i += N) p[i] = 1; }
"""
BROKEN_HOST = "int main() { undeclared(); }"


@pytest.mark.parametrize("host", ["", BROKEN_HOST])
def test_a_finding_of_a_guessed_launch_is_a_warning(host: str) -> None:
    result = _result("k.cu", TRANSPOSE.replace("BARRIER", "") + host, None)
    row = _by_kernel(result)["transpose"]
    assert (row.verdict, row.launch, row.guessed) == ("warnings (guessed launch)", "2,2 x 32,32", True)
    assert [(each.kind, each.severity, each.lines) for each in row.findings] == [("data-race", "warning", (6, 9))]
    assert row.findings[0].message.endswith("(guessed launch)")
    assert result.verdict == (rows.NOT_COMPILED if host else "warnings (guessed launch)")
    assert table.status([result]) == 67
    assert table.status([result], strict=True) == 66


def test_a_guessed_launch_without_a_finding_is_not_clean() -> None:
    result = _result("k.cu", TRANSPOSE.replace("BARRIER", "__syncthreads();"), None)
    assert {name: row.verdict for name, row in _by_kernel(result).items()} == {
        "transpose": "clean (guessed launch)",
        "packed": rows.NOT_REACHED,
        "filled<float, 128, true>": "clean (guessed launch)",
    }
    assert table.status([replace(result, rows=result.rows[:1])]) == 67
    assert _by_kernel(result)["packed"].note == "no launch is guessed: its parameter 1 is a struct: Pair pair"
    assert "2,2 x 32,32 guessed" in table.as_text([result])


@pytest.mark.parametrize("right", [True, False])
def test_ptx_without_a_launch_file_is_guessed(right: bool) -> None:
    text = _source(right=right).replace("void rev", "void __launch_bounds__(64) rev")
    found = _by_kernel(_result("k.ptx", compile_ptx(text, name="k.cu").ptx, None))
    assert found["scale"].verdict == "clean (guessed launch)"
    assert {each.severity for row in found.values() for each in row.findings} <= {"warning"}
    assert ("data-race" in {each.kind for each in found["rev"].findings}) == (not right)


def test_a_guess_is_not_correct() -> None:
    text = TRANSPOSE.partition("struct Pair")[0].replace("BARRIER", "__syncthreads();")
    verdict = Verdict(_result("k.cu", text, None))
    assert (verdict.verdict, verdict.correct, verdict.score) == ("clean (guessed launch)", False, 0.25)


FRICTION = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <algorithm>
#include <vector>
__global__ void names(float *out, const float *in, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = std::max(-INFINITY, std::min(in[i], FLT_MAX)) + M_PI + std::numeric_limits<float>::epsilon() + (NAN == NAN);
}
__global__ void halves(at::Half *out, const c10::BFloat16 *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<at::Half>(static_cast<float>(in[i]) + UINT_MAX * 0.0f + INT64_MAX * 0.0f);
}
template <typename scalar_t, int THREADS = 128> __global__ void typed(scalar_t *out, const scalar_t *in, size_t n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) out[i] = in[i];
}
torch::Tensor run(torch::Tensor x) { std::vector<int> host; return x; }
"""


def test_names_that_nvcc_has_compile() -> None:
    found = _by_kernel(_result("k.cu", FRICTION, None))
    assert {name: found[name].verdict for name in ("names", "halves")} == dict.fromkeys(("names", "halves"), "clean (guessed launch)")
    launch = LAUNCH.format("typed<at::Half, 64>", '"f16[64]=zeros", "f16[64]=random", "u64=64"')
    assert _by_kernel(_result("k.cu", FRICTION, launch))["typed<__half, 64>"].verdict == "clean"


def test_a_program_whose_smaller_sizes_launch_nothing_has_larger_ones() -> None:
    main = "int main() {\n  int n = 1 << 24;\n  float *p;\n  cudaMalloc(&p, n * 4);\n  rev<<<n / 2048, 64>>>(p);\n}\n"
    found = _result("k.cu", f"#include <cuda_runtime.h>\n{_source(right=False)}{main}", None)
    row = _by_kernel(found)["rev"]
    assert (row.verdict, row.launch) == ("violations", "2 x 64")


def test_sources_with_names_of_each_other_are_a_program(tmp_path: Path) -> None:
    start = 'static int size() { return 64; }\nextern "C" void start(float *p) { rev<<<1, size()>>>(p); }\n'
    main = 'static long size() { return 256; }\nextern "C" void start(float *p);\nint main() { start((float *)malloc(size())); }\n'
    (tmp_path / "k.cu").write_text(f"#include <cuda_runtime.h>\n{_source(right=False)}{start}")
    (tmp_path / "main.cpp").write_text(f"#include <cstdlib>\n{main}".replace("malloc(size())", "0"))
    (tmp_path / "CMakeLists.txt").write_text("add_executable(app main.cpp k.cu)\n")
    found = _result(str(tmp_path / "k.cu"), (tmp_path / "k.cu").read_text(), None)
    assert _by_kernel(found)["rev"].launch == "1 x 64"
    assert rows.NOT_COMPILED not in {row.verdict for row in found.rows}


def test_a_kernel_reaches_no_memory_of_the_host() -> None:
    main = """int main() {
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  float *p = nullptr, *host = (float *)malloc(256);
  if (device.pageableMemoryAccess || cudaHostRegister(host, 256, 0) == cudaSuccess) p = host;
  else cudaMallocManaged(&p, 256);
  rev<<<1, 64>>>(p);
}
"""
    found = _result("k.cu", f"#include <cuda_runtime.h>\n#include <cstdlib>\n{_source(right=True)}{main}", None)
    assert _by_kernel(found)["rev"].verdict == "clean"


GUESSED = """
#define HEIGHT 4
#include <torch/extension.h>
namespace outer { namespace inner {
template <typename T, bool wide> __global__ void scaled(T *p, const uint3 by, int n) {
  static_assert(sizeof(T) == 2 && wide, "halves");
  register int i = blockIdx.x * blockDim.x + threadIdx.x;
  __asm__ __volatile__("" ::: "memory");
  cudaGridDependencySynchronize();
  if (i < n) p[i] = p[i] * T(float(by.z));
}
} }
template <int N> __global__ void few(float *p) { static_assert(N == 64, "tile"); p[threadIdx.x + threadIdx.y] = threadIdx.x + threadIdx.y; }
void run(torch::Tensor x) { dim3 block(16, HEIGHT); few <64> << <1, block >> >(x.data_ptr<float>()); }
"""


def test_an_instance_is_guessed_that_compiles() -> None:
    """A kernel in namespaces, of halves, with a vector by value; the source writes out the instance of the other one."""
    found = {row.kernel: (row.verdict, row.launch, row.note) for row in _result("k.cu", GUESSED, None).rows}
    assert {name: (shape, note) for name, (_, shape, note) in found.items()} == {
        "outer::inner::scaled<__half, true>": ("2 x 128", ""),
        "few<64>": ("1 x 16,4", ""),
    }
    assert found["outer::inner::scaled<__half, true>"][0] == rows.GUESSED["clean"]


def test_what_follows_from_launches_that_were_left_out_is_no_error() -> None:
    """The loop's second kernel has equal arguments each time, and is not made for the last keys: all places are 0 still."""
    kernels = (
        "__global__ void next(int *keys, int i) { keys[threadIdx.x] = i < 3 ? 0 : threadIdx.x; }\n"
        "__global__ void places(const int *keys, int *at) { at[threadIdx.x] = keys[threadIdx.x]; }\n"
        "__global__ void scatter(const int *at, int *to) { to[at[threadIdx.x]] = threadIdx.x; }\n"
    )
    loop = "for (int i = 0; i < 4; ++i) { next<<<1, 32>>>(keys, i); places<<<1, 32>>>(keys, at); } scatter<<<1, 32>>>(at, to);"
    program = f"{kernels}int main() {{ int *keys, *at, *to; cudaMalloc(&keys, 128); cudaMalloc(&at, 128); cudaMalloc(&to, 128); {loop} }}"
    found = {row.kernel: row.verdict for row in server().result(AuditRequest("k.cu", program, timeout=60.0)).rows}
    assert found == {"next": "clean", "places": "clean", "scatter": "incomplete"}
