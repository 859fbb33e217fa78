"""What the assembler makes of recorded kernels: no spill, no new warning of the C75xx kind, few more registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from record_support import file_of, kernel, twin_file

import consan
from consan.instrument.record import record
from consan.instrument.record.text.text import PLACES
from consan.toolchain import registers
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.nvrtc import compile_ptx
from consan.toolchain.registers import assemble_recorded

BENCH = Path(__file__).parents[1] / "bench"
TAKEN = (Path(__file__).parent / "recorded.txt").read_text().split()
MORE, TO_LEAVE = 16, 8  # registers; the second for kernels that the host can stop (bitonic_sort, which is unrolled, takes them)
FREE = 32  # registers with which 2,048 threads fill a multiprocessor: below, more registers cost nothing
# Twenty attempts at a wait in a row, each with a result that is live and a word that is hashed: with 40 registers it spills. Four rounds of
# polls of flags, unrolled.
ARGUED = {"mbarrier_complete_before_expect": 48, "slot_freed_by_leader": 80}
NAMES = ("raw", "war_loop", "ldmatrix_mma", "block_scan", "early_exit_lanes", "shared_atomics", "divergent_syncthreads_loop")
NAMES += ("cp_async_off_by_one", "mbarrier_pipeline", "bulk_results", "tensor_results", "wgmma_one_wait_for_two", "wgmma_tma_ring")
NAMES += ("cluster_gemm_2x2", "cluster_red_async", "mbarrier_relaxed_with_fences")
NAMES += ("barrier_in_function", "generic_pointer")
LEFT = ("war_loop", "named_barrier_partial", "mbarrier_pipeline", "wgmma_tma_ring", "cluster_red_async", "divergent_setmaxnreg")


def _check(ptx: str, arch: str, *, leaves: bool = False, free: int = FREE) -> None:
    plain, recorded = assemble_cached(ptx, arch), assemble_recorded(ptx, record(ptx, leaves=leaves).ptx, arch)
    assert "C75" not in recorded.log or "C75" in plain.log
    more = MORE + TO_LEAVE * leaves
    for entry, info in recorded.info.items():
        assert (info.spill_stores, info.spill_loads, info.stack) == (0, 0, plain.info[entry].stack)
        assert info.registers <= max(plain.info[entry].registers + more, free), entry


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name: str) -> None:
    _check(kernel(name).ptx, "sm_90a")


@pytest.mark.parametrize("name", LEFT)
def test_kernels_that_can_be_left(name: str) -> None:
    """As on a GPU, where the host can stop the launch."""
    _check(kernel(name).ptx, "sm_90a", leaves=True)


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [False, True], ids=["", "left"])
@pytest.mark.parametrize("name", TAKEN)
def test_every_kernel(name: str, leaves: bool) -> None:
    arch = twin_file.read(file_of(name)).arch
    _check(kernel(name).ptx, arch if arch.startswith("sm_100") else "sm_90a", leaves=leaves, free=ARGUED.get(name, FREE))


def test_a_warp_specialised_gemm() -> None:
    """One CTA of 384 threads is on a multiprocessor: it may have 168 registers. Lanes exchange what `stmatrix` stores."""
    _check(compile_ptx((BENCH / "tma_gemm.cu").read_text(), name="tma_gemm.cu", arch="sm_90a").ptx, "sm_90a", free=168)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_sgemm(arch: str) -> None:
    _check(compile_ptx((BENCH / "sgemm.cu").read_text(), name="sgemm.cu", arch=arch).ptx, arch)


CONSTANTS = """__constant__ float table[SIZE];
extern "C" __global__ void kernel(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = table[threadIdx.x];
    SYNC;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}"""


def _full_of_constants(size: int, sync: str = "__syncthreads()") -> consan.Kernel:
    return consan.Kernel(CONSTANTS.replace("SIZE", str(size)).replace("SYNC", sync), "kernel", arch="sm_80")


@pytest.mark.parametrize("leaves", [False, True], ids=["", "left"])
@pytest.mark.parametrize("size", [16384, 16373, 16300, 64])
def test_a_module_whose_constant_memory_is_full(size: int, leaves: bool) -> None:
    ptx = _full_of_constants(size).ptx
    recorded = record(ptx, leaves=leaves).ptx
    assemble_cached(recorded, "sm_80")
    assert (f".const .align 16 .u64 {PLACES}" in recorded) is (size <= 16300)


@pytest.mark.parametrize(("sync", "kinds"), [("", {"data-race"}), ("__syncthreads()", set())], ids=["racy", "repaired"])
def test_its_records_are_found(sync: str, kinds: set[str]) -> None:
    report = consan.launch(_full_of_constants(16384, sync), 1, 64, [np.zeros(64, np.float32)], device="cpu", engine="record")
    assert [kernel.engine for kernel in report.kernels] == ["record"]
    assert {finding.kind for finding in report.findings} == kinds


_GIVES_AWAY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) BOUNDS
{
 .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
 ld.param.u64 %rd1, [out];
 mov.u32 %r1, %tid.x;
 setp.lt.u32 %p1, %r1, 128;
 @%p1 bra MORE;
 setmaxnreg.dec.sync.aligned.u32 40;
 bra END;
MORE:
 setmaxnreg.inc.sync.aligned.u32 232;
END:
 mul.wide.u32 %rd2, %r1, 4;
 add.u64 %rd3, %rd1, %rd2;
 st.global.u32 [%rd3], %r1;
 ret;
}
"""


@pytest.mark.parametrize(("bounds", "takes_effect"), [("", False), (".maxntid 256", False), (".maxntid 256\n.minnctapersm 1", True)])
def test_setmaxnreg_takes_effect_only_where_it_does_in_the_plain_kernel(
    bounds: str, takes_effect: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without bounds the assembler ignores it. A limit on the registers fixes their number: `dec 40` of 32 is an illegal instruction."""
    ptx, texts = _GIVES_AWAY.replace("BOUNDS", bounds), []
    assemble = registers.assemble.assemble_cached
    monkeypatch.setattr(registers.assemble, "assemble_cached", lambda text, *a, **k: (texts.append(text), assemble(text, *a, **k))[1])
    found = assemble_recorded(ptx, record(ptx).ptx, "sm_90a")
    plain = assemble(ptx, "sm_90a")
    assert ("'setmaxnreg' ignored" in plain.log) != takes_effect
    assert ("setmaxnreg" in texts[-1]) == takes_effect
    if takes_effect:
        assert found.info["k"].registers == plain.info["k"].registers
