"""CUDA C++ to PTX: headers that kernels include, source paths, and errors that name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan._errors import EnvironmentFailure, UsageError
from consan.toolchain import find, nvrtc
from consan.toolchain.cache import Cache

KERNEL = 'extern "C" __global__ void k(int* out) { out[threadIdx.x] = VALUE; }\n'
HEADERS = """
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdint.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void k(std::uint32_t* out, std::size_t n)
{
    assert(n > 0);
    std::tuple<int, float> pair{INT_MAX, FLT_MAX};
    uint64_t wide = std::numeric_limits<std::int32_t>::max();
    out[0] = std::min<uint32_t>(out[1], std::get<0>(pair)) + static_cast<uint32_t>(wide);
    static_assert(std::is_same_v<std::uint8_t, unsigned char>);
}
"""


def test_ptx_for_the_architecture() -> None:
    result = nvrtc.compile_ptx(KERNEL, arch="sm_80", defines={"VALUE": "7"})
    assert ".target sm_80" in result.ptx
    assert ".visible .entry k(" in result.ptx
    assert result.log == ""


def test_target_keeps_its_suffix() -> None:
    assert ".target sm_90a" in nvrtc.compile_ptx(KERNEL, arch="sm_90a", defines={"VALUE": "7"}).ptx


def test_define_without_a_value_is_one() -> None:
    assert "mov.u32" in nvrtc.compile_ptx(KERNEL, defines={"VALUE": None}).ptx


def test_line_information_names_the_given_path(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "kernel.cu"
    ptx = nvrtc.compile_ptx(KERNEL, name=str(path), defines={"VALUE": "7"}).ptx
    assert f'"{path}"' in ptx
    assert ".loc" in ptx


def test_relative_name_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert f'"{tmp_path / "kernel.cu"}"' in nvrtc.compile_ptx(KERNEL, name="kernel.cu", defines={"VALUE": "7"}).ptx


def test_quoted_include_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 12345\n")
    ptx = nvrtc.compile_ptx('#include "value.h"\n' + KERNEL, name=str(tmp_path / "kernel.cu")).ptx
    assert "12345" in ptx


def test_include_folder(tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 12345\n")
    assert "12345" in nvrtc.compile_ptx("#include <value.h>\n" + KERNEL, include_dirs=[tmp_path]).ptx


def test_headers_that_kernels_include() -> None:
    assert ".entry k(" in nvrtc.compile_ptx(HEADERS, std="c++17").ptx


def test_integers_without_libcudacxx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "include_dirs", lambda: ())
    source = '#include <cstdint>\nextern "C" __global__ void k(std::uint16_t* out, uint64_t v) { out[0] = static_cast<uint16_t>(v); }\n'
    assert "st.global" in nvrtc.compile_ptx(source).ptx


def test_error_names_file_and_line() -> None:
    with pytest.raises(UsageError) as caught:
        nvrtc.compile_ptx("__global__ void k()\n{\n    int x = y;\n}\n", name="/src/broken.cu")
    message = str(caught.value)
    assert message.startswith("/src/broken.cu does not compile:")
    assert '/src/broken.cu:3: error: identifier "y" is undefined' in message


def test_warning_is_kept() -> None:
    result = nvrtc.compile_ptx("__global__ void k()\n{\n    int unused;\n}\n", name="/src/warns.cu")
    assert "/src/warns.cu:3: warning" in result.log


def test_host_header_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="device code only"):
        nvrtc.compile_ptx("#include <vector>\n")


def test_whole_cub_is_its_collectives() -> None:
    text = """#include <cub/cub.cuh>
#include <new>
__global__ void k(int* out) {
    __shared__ cub::BlockScan<int, 64>::TempStorage scan;
    __shared__ cub::WarpReduce<int>::TempStorage sums[2];
    int* mine = new (out + threadIdx.x) int(threadIdx.x), sum;
    cub::BlockScan<int, 64>(scan).InclusiveSum(*mine, sum);
    *mine = cub::WarpReduce<int>(sums[threadIdx.x / 32]).Sum(sum);
}
"""
    assert "shfl.sync" in nvrtc.compile_ptx(text).ptx


def test_a_header_of_the_host_of_cub_gets_a_hint() -> None:
    with pytest.raises(UsageError, match=r"block_reduce\.cuh"):
        nvrtc.compile_ptx("#include <cub/device/device_reduce.cuh>\n")


def test_a_name_in_a_source_that_does_not_compile_is_not_to_blame() -> None:
    with pytest.raises(nvrtc.CompileError, match="Missing"):
        nvrtc.compile_ptx("__global__ void k(Missing *p) { *p = 1; }", instantiate=("k",))
    with pytest.raises(nvrtc.MisnamedKernelError, match='"none" is undefined'):
        nvrtc.compile_ptx("__global__ void k(int *p) { *p = 1; }", instantiate=("none",))


def test_unknown_option() -> None:
    with pytest.raises(UsageError, match="--no-such-option"):
        nvrtc.compile_ptx(KERNEL, defines={"VALUE": "7"}, options=["--no-such-option"])


@pytest.mark.parametrize("arch", ["90", "gfx90a", "sm_", "sm_90b"])
def test_malformed_architecture(arch: str) -> None:
    with pytest.raises(UsageError, match="not an architecture"):
        nvrtc.compile_ptx(KERNEL, arch=arch)


def test_unsupported_architecture() -> None:
    with pytest.raises(UsageError, match="rejects an option"):
        nvrtc.compile_ptx(KERNEL, arch="sm_20", defines={"VALUE": "7"})


def test_the_version() -> None:
    assert nvrtc.version() >= (12, 0)


def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "locate", lambda _: None)
    find.load.cache_clear()
    nvrtc._library.cache_clear()
    with pytest.raises(EnvironmentFailure, match="pip install"):
        nvrtc.compile_ptx(KERNEL)
    monkeypatch.undo()
    find.load.cache_clear()
    nvrtc._library.cache_clear()


@pytest.mark.parametrize("name", ["INFINITY", "FLT_MAX", "INT_MAX"])
def test_macros_that_nvcc_includes_get_a_hint(name: str) -> None:
    with pytest.raises(UsageError, match="note: nvcc includes the headers of these names by itself"):
        nvrtc.compile_ptx(f"__global__ void k(float* x) {{ x[0] = {name}; }}")


def test_headers_of_torch_get_a_hint() -> None:
    with pytest.raises(UsageError, match="note: the headers of torch and Python are for the host"):
        nvrtc.compile_ptx("#include <torch/extension.h>\n__global__ void k() {}")


@pytest.mark.parametrize(
    "headers", ["<math.h>\n#include <float.h>", "<cmath>\n#include <cfloat>", "<math.h>\n#include <cmath>\n#include <cfloat>"]
)
def test_headers_of_the_macros_define_them(headers: str) -> None:
    assert "st.global" in nvrtc.compile_ptx(f"#include {headers}\n__global__ void k(float* x) {{ x[0] = -INFINITY; x[1] = FLT_MAX; }}").ptx


@pytest.mark.parametrize("header", ["cfloat", "float.h"])
def test_limits_of_floats_are_defined_where_libcudacxx_has_none(header: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As that of CUDA 13.0."""
    monkeypatch.setattr(find, "include_dirs", lambda: [tmp_path])
    (tmp_path / "cuda" / "std").mkdir(parents=True)
    (tmp_path / "cuda" / "std" / "cfloat").touch()
    source = f"#include <{header}>\n__global__ void k(float* x, double* y) {{ *x = -FLT_MAX; *y = DBL_EPSILON; }}"
    ptx = nvrtc.compile_ptx(source).ptx
    assert str(~0x800000) in ptx
    assert str(0x3CB << 52) in ptx


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The sources that the compiler sees, with an empty cache."""
    seen, compiled = list[str](), nvrtc.compile_anew
    monkeypatch.setattr(nvrtc, "CACHE", Cache(tmp_path / "cache"))
    monkeypatch.setattr(nvrtc, "compile_anew", lambda source, *others: seen.append(source) or compiled(source, *others))
    return seen


def test_the_ptx_of_a_text_is_kept(compilations: list[str]) -> None:
    warns = KERNEL.replace("{", "{ int unused;")
    first = nvrtc.compile_ptx(warns, defines={"VALUE": "7"})
    assert first.log
    assert nvrtc.compile_ptx(warns, defines={"VALUE": "7"}) == first
    assert len(compilations) == 1


def test_other_inputs_are_compiled_anew(compilations: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvrtc.compile_ptx(KERNEL, defines={"VALUE": "7"})
    assert "9;" in nvrtc.compile_ptx(KERNEL, defines={"VALUE": "9"}).ptx
    nvrtc.compile_ptx(KERNEL, defines={"VALUE": "7"}, arch="sm_80")
    nvrtc.compile_ptx(KERNEL, defines={"VALUE": "7"}, name="other.cu")
    monkeypatch.chdir(tmp_path)
    assert f'"{tmp_path}/kernel.cu"' in nvrtc.compile_ptx(KERNEL, defines={"VALUE": "7"}).ptx
    assert len(compilations) == 5


@pytest.mark.parametrize("directive", ['#include "value.h"', '#inc\\\nlude "value.h"'])
def test_a_source_that_reads_a_file_is_not_kept(compilations: list[str], tmp_path: Path, directive: str) -> None:
    for value in (7, 9):
        (tmp_path / "value.h").write_text(f"#define VALUE {value}\n")
        assert f"{value};" in nvrtc.compile_ptx(f"{directive}\n{KERNEL}", include_dirs=[tmp_path]).ptx
    assert len(compilations) == 2
