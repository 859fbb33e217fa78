"""The oracle on the kernels of tests/kernels: what is racy it reports, what is repaired or merely looks racy it does not.

That holds the oracle against expectations that people wrote, so that an agreement with consan means something.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import twin_file
from oracle_run import oracle
from oracle_verdict import UNINIT, Verdict

KERNELS = Path(__file__).parents[1] / "kernels"
TWINS = sorted((KERNELS / "twins").glob("*.cu"))
CLEAN = sorted((KERNELS / "clean").glob("*.cu"))
NOT_SEEN = {
    "bulk_result_no_wait": "data in global memory",
    "bulk_result_not_committed": "data in global memory",
    "bulk_result_other_threads": "data in global memory",
    "bulk_result_read_wait": "data in global memory",
    "bulk_result_wait_no_barrier": "data in global memory",
    "bulk_source_overwritten": "data in global memory",
    "deadlock_flag_set_too_late": "a loop that never ends, which only the machine with hooks stops",
    "cp_async_at_exit": "copies in flight at the end",
    "cp_async_source_overwritten": "data in global memory",
    "global_flag_no_proxy_fence": "policy isa",
    "global_store_fence_too_early": "data in global memory",
    "global_store_no_proxy_fence": "data in global memory",
    "mbarrier_result_ignored": "the result of a wait is a register",
    "tensor_result_read_wait": "data in global memory",
    "tensormap_changed_in_flight": "tensor maps in global memory",
    "tensormap_not_acquired": "tensor maps in global memory",
    "tensormap_stored_not_fenced": "tensor maps in global memory",
    "tma_epilogue_issuer_fences": "policy isa",
    "vector_neighbour": "values that nobody uses",
    "vector_padding": "values that nobody uses",
    "wgmma_fence_missing": "registers",
    "wgmma_flush_flag": "registers",
    "wgmma_fragment_reused": "registers",
    "wgmma_promoted_before_wait": "registers",
    "wgmma_written_below_fence": "registers",
}
# libcu++ counts the threads that leave a pipeline with one lane per warp: the others' last uses of its barriers are before the
# inval only if a warp is one thread.
WARNINGS = {"cuda_pipeline"}


def _name(path: Path) -> str:
    return path.stem


@functools.cache
def _verdict(path: Path, racy: bool) -> Verdict:
    spec = twin_file.read(path)
    kernel: Any = twin_file.kernel(path, racy)
    return oracle(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem)


@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_racy_twin(path: Path) -> None:
    if path.stem in NOT_SEEN:
        pytest.skip(f"not the oracle's: {NOT_SEEN[path.stem]}")
    spec, verdict = twin_file.read(path), _verdict(path, True)
    kinds = {kind for found in verdict.pairs.values() for kind in found.kinds} | verdict.kinds
    kinds |= {UNINIT} if verdict.maybe_uninitialized else set()
    kinds |= {"barrier-misuse"} if verdict.divergences else set()
    for expectation in spec.expected:
        assert kinds & set(expectation.kinds), f"{expectation}: the oracle has {verdict}"
    assert verdict.clean == all(expectation.severity != "error" for expectation in spec.expected)


@pytest.mark.parametrize("path", [*TWINS, *CLEAN], ids=_name)
def test_repaired_or_legal(path: Path) -> None:
    verdict = _verdict(path, False)
    assert verdict.clean, verdict
    assert not verdict.pairs or path.stem in WARNINGS
