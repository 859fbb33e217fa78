"""PTX that NVRTC writes, with line information and with debug information."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import Function, Loc, Section, parse, print_module
from consan.toolchain.nvrtc import compile_ptx

SOURCE = r"""
extern "C" int printf(const char*, ...);
__device__ __forceinline__ float inner(float x) { return x * x + 1.0f; }
__device__ __forceinline__ float outer(float x) { return inner(x) * 3.0f; }
__device__ __noinline__ float called(float x, int n) { float s = 0; for (int i = 0; i < n; i++) s += x / i; return s; }
typedef int (*function)(int);
__device__ int f1(int x) { return x + 1; }
__device__ int f2(int x) { return x * 2; }
__device__ function table[2] = {f1, f2};
__constant__ float weights[4] = {1, 2, 3, 4};
extern __shared__ float dynamic[];
extern "C" __global__ void __launch_bounds__(128, 2) k(float* a, int n) {
  __shared__ float tile[128];
  tile[threadIdx.x] = a[threadIdx.x];
  dynamic[threadIdx.x] = 0;
  __syncthreads();
  asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 0; @p bra L1; nanosleep.u32 1; L1: }" ::"r"(n));
  if (n == 3) printf("x %f\n", a[0]);
  a[threadIdx.x] = outer(tile[n & 127]) + called(weights[n & 3], n) + table[n & 1](n) + dynamic[n];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float4* a) { a[threadIdx.x] = a[threadIdx.x + 1]; }
"""


def ptx(*options: str, arch: str = "sm_90a") -> str:
    return compile_ptx(SOURCE, name="source.cu", arch=arch, options=options).ptx


@pytest.mark.parametrize("options", [(), ("--device-debug",)], ids=["line-info", "debug"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_round_trip(options: tuple[str, ...], arch: str) -> None:
    if arch == "sm_80":
        source = SOURCE.replace("__cluster_dims__(2, 1, 1)", "")
        text = compile_ptx(source, name="source.cu", arch=arch, options=options).ptx
    else:
        text = ptx(*options, arch=arch)
    module = parse(text)
    assert print_module(module) == text
    assert module.target == arch
    defined = [function for function in module.functions if not function.is_declaration]
    assert {"k", "clustered"} <= {function.name for function in defined}
    for function in defined:
        assert all(isinstance(instruction.operands, tuple) for instruction in function.instructions())
    sections = {item.name for item in module.items if isinstance(item, Section)}
    assert (".debug_info" in sections) == (options == ("--device-debug",))


def entry(text: str, name: str) -> Function:
    return next(function for function in parse(text).functions if function.name == name)


def test_directives() -> None:
    text = ptx()
    assert entry(text, "k").directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,)}
    assert entry(text, "clustered").directives["reqnctapercluster"] == (2, 1, 1)


def test_every_statement_of_the_compiler_is_understood() -> None:
    text = ptx()
    opcodes = sum(instruction.text.count(";") for function in parse(text).functions for instruction in function.instructions())
    lines = [line.strip() for line in text.splitlines()]
    expected = [line for line in lines if line.endswith(";") and not line.startswith((".", "//", "{", ")", ";", "prototype", "call"))]
    assert opcodes > len(expected) > 60


def test_inlining_is_followed_to_the_kernel() -> None:
    text = ptx()
    module = parse(text)
    kernel = next(function for function in module.functions if function.name == "k")
    chains = [chain for instruction in kernel.instructions() if len(chain := _lines(instruction.loc)) == 3]
    inner = SOURCE[: SOURCE.index("float inner")].count("\n") + 1
    call = SOURCE[: SOURCE.index("outer(tile")].count("\n") + 1
    assert [inner, inner + 1, call] in chains
    loc = next(loc for instruction in kernel.instructions() if len(_lines(loc := instruction.loc)) == 3)
    assert loc is not None
    assert loc.inlined_at is not None
    assert [module.debug_string(part.function_name or "") for part in (loc, loc.inlined_at)] == ["_Z5innerf", "_Z5outerf"]


def _lines(loc: Loc | None) -> list[int]:
    lines = []
    while loc is not None:
        lines.append(loc.line)
        loc = loc.inlined_at
    return lines
