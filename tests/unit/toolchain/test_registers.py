"""Registers of kernels with hooks: few where that costs little, as many as they take where it does not."""

from __future__ import annotations

import re

import pytest

from consan._errors import EnvironmentFailure
from consan.instrument import Instrumented
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import parse
from consan.session.modules.runtime import library_for
from consan.toolchain import assemble, find, nvrtc, registers

pytestmark = pytest.mark.skipif(not (find.locate(find.NVJITLINK) or find.ptxas()), reason="no assembler is installed")
ARCH = "sm_90a"
SUM = """
extern "C" __global__ void BOUNDS sum(const float* x, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
"""
# Twelve values of a thread are live in each of its hooks.
WIDE = """
extern "C" __global__ void __launch_bounds__(256) wide(float4* out) {
    __shared__ float4 tile[2048];
    float4 sums[3];
    for (int i = 0; i < 3; ++i) sums[i] = out[threadIdx.x + 256 * i];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        tile[(threadIdx.x * 7 + 64 * k) & 2047] = sums[k % 3];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            float4 v = tile[(threadIdx.x + 256 * i + k) & 2047];
            sums[i].x += v.x * sums[(i + 1) % 3].y; sums[i].y += v.y; sums[i].z += v.z; sums[i].w += v.w * sums[(i + 2) % 3].x;
        }
        __syncthreads();
    }
    for (int i = 0; i < 3; ++i) out[threadIdx.x + 256 * i] = sums[i];
}
"""


def hooked(source: str) -> tuple[str, Instrumented]:
    """PTX of a kernel, and it with hooks as for a GPU."""
    try:
        plain = nvrtc.compile_ptx(source, name="kernel.cu", arch=ARCH).ptx
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    return plain, instrument(plain, library=library_for, inline=True)


def assembled(source: str, monkeypatch: pytest.MonkeyPatch) -> list[assemble.Assembled]:
    """What the assembler made of the module with hooks, attempt by attempt; the last one is taken."""
    plain, done = hooked(source)
    made: list[assemble.Assembled] = []

    def note(text: str, *arguments: object, **options: object) -> assemble.Assembled:
        made.append(assemble.assemble(text, *arguments, **options))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(assemble, "assemble_cached", note)
    cubin, notes = registers.assemble_with_hooks(plain, done, ARCH)
    assert (cubin, notes) == (made[-1].cubin, ())
    return made[1:]  # the first is the plain kernel's


def entry(made: assemble.Assembled) -> assemble.EntryInfo:
    (info,) = made.info.values()
    return info


def test_a_kernel_with_launch_bounds_gets_few(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = assembled(SUM.replace("BOUNDS", "__launch_bounds__(256)"), monkeypatch)
    assert entry(made).registers <= 64
    assert entry(made).spill_loads <= 200


def test_it_would_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test before is worth."""
    monkeypatch.setattr(registers, "FEW", ())
    (made,) = assembled(SUM.replace("BOUNDS", "__launch_bounds__(256)"), monkeypatch)
    assert entry(made).registers > 64


def test_a_kernel_whose_hooks_would_spill_keeps_its_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = assembled(WIDE, monkeypatch)
    assert len(made) > 1
    assert entry(made[-1]).spill_loads < entry(made[0]).spill_loads
    assert entry(made[-1]).registers > 80


def test_without_launch_bounds_1024_threads_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = assembled(SUM.replace("BOUNDS", ""), monkeypatch)
    assert entry(made).registers <= 64


@pytest.mark.parametrize(("threads", "most"), [(64, 255), (256, 255), (512, 128), (768, 80), (769, 72), (1024, 64)])
def test_a_cap_lets_the_largest_cta_start(threads: int, most: int) -> None:
    plain, _ = hooked(SUM.replace("BOUNDS", f"__launch_bounds__({threads})"))
    assert f".maxnreg {most} " in registers.cap_bounded_kernels(parse(plain), 255)


def test_a_cap_leaves_lines_where_they_are() -> None:
    plain, _ = hooked(SUM.replace("BOUNDS", "__launch_bounds__(256)"))
    capped = registers.cap_bounded_kernels(parse(plain), 72)
    assert re.sub(r"\.maxnreg 72 ", "", capped) == plain != capped
