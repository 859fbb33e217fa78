"""What the assembler makes of recorded kernels: no spill, no new warning of the C75xx kind, few more registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from record_support import file_of, kernel, twin_file

from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.nvrtc import compile_ptx
from consan.toolchain.registers import assemble_recorded

BENCH = Path(__file__).parents[1] / "bench"
TAKEN = (Path(__file__).parent / "taken.txt").read_text().split()
MORE, TO_LEAVE = 16, 8  # registers; the second for kernels that the host can stop (bitonic_sort, which is unrolled, takes them)
FREE = 32  # registers with which 2,048 threads fill a multiprocessor: below, more registers cost nothing
NAMES = ("raw", "war_loop", "ldmatrix_mma", "block_scan", "early_exit_lanes", "shared_atomics", "divergent_syncthreads_loop")
NAMES += ("cp_async_off_by_one", "mbarrier_pipeline", "bulk_results", "tensor_results", "wgmma_one_wait_for_two", "wgmma_tma_ring")
NAMES += ("cluster_gemm_2x2", "cluster_red_async", "mbarrier_relaxed_with_fences")
NAMES += ("barrier_in_function", "generic_pointer")
LEFT = ("war_loop", "named_barrier_partial", "mbarrier_pipeline", "wgmma_tma_ring", "cluster_red_async", "divergent_setmaxnreg")


def _check(ptx: str, arch: str, *, leaves: bool = False) -> None:
    plain, recorded = assemble_cached(ptx, arch), assemble_recorded(ptx, record(ptx, leaves=leaves).ptx, arch)
    assert "C75" not in recorded.log or "C75" in plain.log
    more = MORE + TO_LEAVE * leaves
    for entry, info in recorded.info.items():
        assert (info.spill_stores, info.spill_loads, info.stack) == (0, 0, plain.info[entry].stack)
        assert info.registers <= max(plain.info[entry].registers + more, FREE), entry


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
    _check(kernel(name).ptx, arch if arch.startswith("sm_100") else "sm_90a", leaves=leaves)


def test_a_warp_specialised_gemm() -> None:
    _check(compile_ptx((BENCH / "tma_gemm.cu").read_text(), name="tma_gemm.cu", arch="sm_90a").ptx, "sm_90a")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_sgemm(arch: str) -> None:
    _check(compile_ptx((BENCH / "sgemm.cu").read_text(), name="sgemm.cu", arch=arch).ptx, arch)
