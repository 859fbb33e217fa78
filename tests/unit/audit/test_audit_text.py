"""Declarations of CUDA C++, and the two texts that are made of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.audit.host import sources, text
from consan.audit.host.program import expression
from consan.audit.host.sources import AuditedSource

SOURCE = """\
#include <vector>
// __global__ void no() {}
namespace n {
template <typename T, int N = 4> __global__ void __launch_bounds__(256, 2) k(const T *__restrict__ a, float4 v, int = N) { a[0]; }
}
extern "C" {
__device__ float half(float x) { return x / 2; }
}
__constant__ float table[2] = {1, 2};
static const int kSize = 4;
struct Shape { int rows; __device__ int area() const { return rows; } };
template <class T> __host__ __device__ T twice(T x) { return 2 * x; }
std::vector<int> cache = {1, 2};
int main(int argc, char **argv) {
  if (argc > 1)
    n::k<float, 4><<<dim3(1, 2), 32, 0>>>(nullptr, {}, 3);
  return 0;
}
"""


MACROS = """\
#define INLINE inline __attribute__((always_inline)) \\
  __device__
#define BOTH __host__ INLINE
#define CALL(x) __device__ x
#ifdef NEVER
#define KERNEL extern __global__ void
#endif
#define PLAIN inline
INLINE int a() { return 1; }
BOTH int b() { return 1; }
KERNEL c() {}
PLAIN int d() { return 1; }
int CALL() { return 1; }
"""


def test_a_macro_may_say_where_a_function_runs() -> None:
    found = [(item.kind, item.name) for item in text.items(MACROS)]
    assert found == [("device", "a"), ("both", "b"), ("kernel", "c"), ("host", "d"), ("host", "CALL")]


def test_declarations_are_told_apart() -> None:
    found = [(item.kind, item.name) for item in text.items(SOURCE)]
    expected = ["kernel", "device", "variable", "constant", "type", "both", "global", "host"]
    assert [kind for kind, _ in found] == expected
    assert (found[0][1], found[1][1], found[-1][1]) == ("k", "half", "main")


def test_both_texts_keep_their_lines() -> None:
    source = AuditedSource("k.cu", SOURCE)
    device, host = sources.for_device(source), sources.for_host(source)
    assert host.count("\n") == SOURCE.count("\n")
    assert device.splitlines()[-SOURCE.count("\n") :][3].startswith("template <typename T")
    assert "main" not in device
    assert "cache" not in device
    assert "<vector>" not in device
    assert "twice" in device
    assert "table" in device


def test_the_host_hands_over_arguments_and_launches_with_a_shape() -> None:
    host = sources.for_host(AuditedSource("k.cu", SOURCE))
    assert "int consan_2 = N) { ::consan::hand_over(a, v, consan_2); }" in host
    assert "::consan::shape(dim3(1, 2), 32, 0), n::k<float, 4>(nullptr, {}, 3);" in host
    assert "if (argc > 1)\n    ::consan::shape" in host


@pytest.mark.parametrize(
    ("launch", "made"),
    [
        ("k<<<1, 2>>>(a)", "::consan::shape(1, 2), k(a)"),
        ("this->kernel<<<g, b, s>>>()", "::consan::shape(g, b, s), this->kernel()"),
        ("table[i]<<<g, b>>>(x)", "::consan::shape(g, b), table[i](x)"),
        ("(*f)<<<g, b>>>(x)", "::consan::shape(g, b), (*f)(x)"),
        ("a::b<int, (3 > 2)> <<<f(1, 2), {3}>>> (x)", "::consan::shape(f(1, 2), {3}), a::b<int, (3 > 2)>  (x)"),
        ('puts("a<<<b>>>(c)");', 'puts("a<<<b>>>(c)");'),
    ],
)
def test_launches_are_rewritten(launch: str, made: str) -> None:
    assert sources.launches_rewritten(launch) == made


def test_tensors_of_the_device_are_on_the_cpu() -> None:
    host = sources.for_host(AuditedSource("k.cu", "void f(T x) { C(x.is_cuda()); AT_DISPATCH_ALL_TYPES(x.type(), [&] {}); }"))
    assert "x.is_cpu()" in host
    assert "AT_DISPATCH_ALL_TYPES(x.scalar_type()," in host


def test_branches_that_open_a_brace_each_count_once() -> None:
    found = text.items("void f(int a) {\n#ifdef X\n  if (a) {\n#else\n  if (!a) {\n#endif\n  }\n}\nint main() {}\n")
    assert [item.name for item in found] == ["f", "main"]


def test_a_header_in_one_of_several_files_gives_back_its_place(tmp_path: Path) -> None:
    """The sources of an extension are one text."""
    (tmp_path / "a.h").write_text("int of_a;\n")
    whole = sources.whole(str(tmp_path / "module.py"), '#line 1 "b.cpp"\nint b;\n#line 1 "k.cu"\n\n#include "a.h"\nint of_k;\n').text
    assert sources.place(whole, whole.index("int of_k")) == ("k.cu", 3)


def test_local_headers_are_read_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#pragma once\nint of_a;\n")
    path = tmp_path / "k.cu"
    whole = sources.whole(str(path), '#include "a.h"\n#include "a.h"\nint of_k;\n').text
    assert whole.count("of_a") == 1
    assert sources.place(whole, whole.index("of_a")) == (str(tmp_path / "a.h"), 2)
    assert sources.place(whole, whole.index("of_k")) == (str(path), 3)


def test_headers_in_angle_brackets_are_read_from_further_folders(tmp_path: Path) -> None:
    for name in ("near/math.h", "further/help.h", "further/more.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#include <more.h>\n#include <math.h>\nint found;\n")
    whole = sources.whole(str(tmp_path / "near/k.cu"), "#include <help.h>\n#include <math.h>\n", (tmp_path / "further",)).text
    assert whole.count("int found") == 2
    assert whole.count("#include <math.h>") == 3


@pytest.mark.parametrize(("before", "use", "has"), [("", "cub::", True), ("using namespace cub;", "", True), ("", "", False)])
def test_a_use_of_cub_has_its_header(before: str, use: str, *, has: bool) -> None:
    text = f"#include <cub/cub.cuh>\n{before}\n__global__ void k() {{ {use}BlockScan<int, 4> a; }}\n"
    assert ("#include <cub/block/block_scan.cuh>" in sources.for_device(AuditedSource("k.cu", text))) == has


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z1kPf", "k"),
        ("_Z1kIfLi4EEvPT_i", "k<float, 4>"),
        ("_ZN12_GLOBAL__N_13addEPfm", "add"),
        ("_ZN1n1kILb1EEEvv", "n::k<true>"),
        ("plain", "plain"),
    ],
)
def test_kernels_are_named_as_in_c(symbol: str, name: str) -> None:
    assert expression(symbol) == name


@pytest.mark.parametrize(
    ("more", "brief"),
    [
        ("#define CHECK(x) \\\n  if (x) { std::fprintf(stderr, #x); \\\n std::exit(1); }\n// std::vector\n", True),
        ("__device__ float f(float x) { return std::max(x, std::sqrt(x)); }\n", True),
        ("__device__ float f(float x) { return std::conditional_t<true, float, int>(x); }\n", False),
        ("#include <cub/block/block_reduce.cuh>\n", False),
    ],
)
def test_the_device_has_the_whole_of_std_where_its_code_needs_more(more: str, brief: bool) -> None:
    """NVRTC takes a second for the headers of the whole."""
    source = sources.AuditedSource("k.cu", f"{more}__global__ void k() {{}}\nint main() {{ std::vector<int> none; }}\n")
    assert ("consan_std.h" in sources.for_device(source, brief=True)) == brief


@pytest.mark.parametrize("place", ["include/deep/size.h", "common/deep/size.h", "deep/size.h", "src/include/deep/size.h"])
def test_a_header_of_the_project_is_found_without_options(tmp_path: Path, place: str) -> None:
    header, source = tmp_path / place, tmp_path / "src" / "kernels" / "k.cu"
    for each in (header, source):
        each.parent.mkdir(parents=True)
    header.write_text("int size;\n")
    assert "int size;" in sources.whole(str(source), '#include "deep/size.h"\n').text
    assert "int size;" not in sources.whole(str(source), "#include <deep/size.h>\n").text
