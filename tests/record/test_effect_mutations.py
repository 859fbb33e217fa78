"""A mutation for each effect: a checker whose replay drops it reports something else of a kernel.

The faults follow from the declarations (instrument/effects), not from text of the checker, so that moving text does not disarm them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted import break_checker, dropped
from record_support import KERNELS, twin_file

import consan
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.instrument.effects import kinds

# A kernel of tests/kernels, racy (True) or repaired, with other findings without the effect.
KERNEL_OF: dict[str, tuple[str, bool]] = {
    "Read": ("volatile_broadcast_in_a_warp", True),
    "Write": ("annotated_shared_scratch", True),
    "Atomic": ("atomic_then_plain_read", True),
    "Fill": ("st_bulk_no_barrier", True),
    "GlobalRead": ("histogram_plain_add", True),
    "GlobalWrite": ("overlapping_tiles", True),
    "Publish": ("volatile_halo_no_barrier", True),
    "CtaBarrier": ("annotated_shared_scratch", True),
    "WarpSync": ("within_a_warp", False),
    "ClusterBarrierArrive": ("relaxed_cluster_barrier", True),
    "ClusterBarrierWait": ("relaxed_cluster_barrier", False),
    "Fence": ("lock_without_fence", False),
    "InitsFence": ("cluster_wait_cta_scope", True),
    "ProxyFence": ("bulk_store_at_exit", True),
    "MapFence": ("tensormap_stored_not_fenced", True),
    "CopyIssue": ("cp_async_own_read", True),
    "CopyCommit": ("cp_async_own_read", True),
    "CopyWait": ("cp_async_same_destination", True),
    "MbarrierInit": ("mbarrier_inval_before_others", True),
    "MbarrierInval": ("mbarrier_inval_before_others", True),
    "MbarrierArrive": ("mbarrier_inval_before_others", True),
    "MbarrierTransaction": ("mbarrier_tx_range", True),
    "MbarrierWait": ("mbarrier_inval_before_others", True),
    "MbarrierCopies": ("deadlock_copies_counted_twice", True),
    "BulkLoad": ("mbarrier_inval_in_flight", True),
    "TensorLoad": ("cluster_pair_multicast", True),
    "LaunchRequest": ("launch_no_proxy_fence", True),
    "BulkStore": ("bulk_store_never_written", True),
    "TensorStore": ("nvfuser_tma_store_reuse", True),
    "BulkPush": ("cluster_push_added", True),
    "StoreAsync": ("cluster_st_async_beside_store", True),
    "BulkCommit": ("bulk_store_never_written", True),
    "BulkWait": ("bulk_store_never_written", True),
    "LaunchAnswer": ("launch_id_of_refusal", True),
    "LaunchUse": ("launch_id_of_refusal", True),
    "ProductOperand": ("wgmma_copies_no_fence", True),
    "ProductCommit": ("wgmma_copies_no_fence", True),
    "ProductWait": ("wgmma_copies_no_fence", True),
    "TensorAllocRequest": ("isa_pair_dealloc", True),
    "TensorAlloc": ("not_freed", True),
    "TensorDealloc": ("pair_words_apart", True),
    "TensorLd": ("store_pending", True),
    "TensorSt": ("store_pending", True),
    "TensorWait": ("store_pending", True),
    "TensorMma": ("isa_issue_order", True),
    "TensorCp": ("isa_issue_order", True),
    "TensorCommit": ("isa_issue_order", True),
    "TensorFence": ("isa_pair_dealloc", True),
}
OTHERS = {
    "Observe": "the replay of strong accesses needs it; planted faults in edges.hpp break what it does",
    "PointReached": "test_planted_faults.py: lanes meet",
    "JoinPassed": "it ends what a divergence has made undefined",
    "GridWait": "between launches: tests/pipeline",
    "Unseen": "no rule: it is noted before the replay (test_unseen.py)",
    "TensorRelinquish": "test_tensor_memory.py",
    "TensorShift": "test_tensor_memory.py",
    "ProductFence": "only in changes of a text",
}


def _launch(name: str, racy: bool) -> Any:
    path = next(KERNELS.glob(f"*/{name}.cu"))
    spec = twin_file.read(path)
    options = {"smem": spec.smem, "device": "cpu", "global_memory": "on", "policy": spec.policy}
    return consan.launch(twin_file.kernel(path, racy), spec.grid, spec.block, spec.parameters(spec.fresh_args()), **options)


def _said(report: Any) -> Any:
    return report.verdict, sorted((one.kind, one.severity, one.situation, one.count) for one in report.findings), report.incomplete


def test_each_effect_has_a_mutation_or_a_reason() -> None:
    assert {effect.__name__ for effect in kinds.EFFECTS} == KERNEL_OF.keys() | OTHERS.keys()
    assert not KERNEL_OF.keys() & OTHERS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("effect", KERNEL_OF)
def test_a_dropped_effect_changes_what_is_found(effect: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = _said(_launch(*KERNEL_OF[effect]))
    break_checker(monkeypatch, tmp_path, (replay, grid), *dropped(effect))
    assert _said(_launch(*KERNEL_OF[effect])) != right
