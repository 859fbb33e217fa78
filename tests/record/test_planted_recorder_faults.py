"""Faults planted in what the recorder writes of copies, products, fences and clusters change what is found (test_planted_faults.py)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from record_support import file_of, found, kernel, twin_file

import consan
from consan.instrument import effects
from consan.instrument.record.analyses import clusters
from consan.instrument.record.families import accesses, global_memory, lowering, made, matrix, tensors
from consan.instrument.record.text import orders, text
from consan.instrument.rewriting import pieces
from consan.instrument.waits import given_up

Change = Callable[[Any], Any]


def _instead(value: Any) -> Change:
    return lambda old: lambda *given: value


def _with(name: Any, value: Any) -> Change:
    return lambda old: old | {name: value}


def _is(value: Any) -> Change:
    return lambda old: value


def _without_meetings(old: Any) -> Any:
    return lambda kernel, work, one, **more: None if one.kind is effects.WarpSync else old(kernel, work, one, **more)


def _in_own_memory(old: Any) -> Any:
    return lambda snippet, wide, low, high, window: old(snippet, wide, low, high, "shared")


def _without_scope(old: Any) -> Any:
    return lambda work, access: {**old(work, access), "narrow": False}


def _as(kind: type[effects.Effect], other: type[effects.Effect]) -> Change:
    """Effects of one kind are recorded as another one."""

    def changed(old: Any) -> Any:
        def lower(*given: Any) -> effects.Effect:
            event = old(*given)
            return other(site=event.site, guard=event.guard) if type(event) is kind else event

        return lower

    return changed


def _where(leaf: str, **fields: Any) -> Change:
    """Other fields of the effects that have a leaf."""

    def changed(old: Any) -> Any:
        def lower(*given: Any) -> effects.Effect:
            event = old(*given)
            return event.changed(**fields) if hasattr(event, leaf) else event

        return lower

    return changed


# The module, what changes in it and how, and a kernel: reported with the right one, or clean with it (False).
FAULTS: dict[str, tuple[ModuleType, str, Change, str, bool]] = {
    "vectors of sums": (accesses, "_sums_of_lanes", _instead(()), "sums_of_lanes_in_vectors", False),
    "a load's mbarrier": (lowering, "lower", _where("mbarrier_at", mbarrier_at=effects.WordValue()), "mbarrier_bulk_pipeline", False),
    "a copy's global address": (lowering, "global_address", _instead(0), "bulk_source_overwritten", True),
    "waits for groups": (lowering, "lower", _as(effects.BulkWait, effects.BulkCommit), "bulk_store_source_overwritten", False),
    "fenced memories": (lowering, "lower", _where("memories", memories=2), "fence_of_other_buffer", False),
    "copies to other CTAs": (lowering, "lower", _where("ctas", multicast=False), "cluster_pair_multicast", False),
    "the address of a tensor": (tensors, "_ADDRESS", _is((15, 15)), "tensor_result_read_wait", True),
    "extents of a map": (tensors, "_EXTENTS", _is(11), "tma_store_two_stages", True),
    "the box of a map": (tensors, "TILE_WORDS", _is((2, 7, 15, 15, 15)), "tma_store_two_stages", True),
    "maps in global memory": (tensors, "map_in_memory", _instead(False), "tensormap_not_acquired", True),
    "copies of maps by a warp": (lowering, "put", _without_meetings, "tensormap_reused", False),
    "operands of a product": (matrix, "operands_in_memory", _instead([]), "wgmma_operand_overwritten", True),
    "waits for products": (lowering, "lower", _as(effects.ProductWait, effects.ProductCommit), "wgmma_one_wait_for_two", False),
    "ranks of addresses": (orders, "is_ranked", _instead(False), "cluster_reduction", False),
    "an mbarrier of the peer": (orders, "operand_of", _instead(None), "cluster_pair_leader", False),
    "scopes": (lowering, "reach_of", _without_scope, "cluster_arrive_cta_scope", True),
    "relaxed arrivals": (lowering, "lower", _where("relaxed", relaxed=False), "mbarrier_relaxed_arrive", True),
    "the end of a log before a wait": (text, "stop", _instead(""), "mbarrier_32_arrivals_hang", True),
    "fences": (clusters, "relaxes", _instead(False), "mbarrier_relaxed_with_fences", False),
    "barriers of clusters": (made, "KINDS", _with(effects.ClusterBarrierWait, lambda *_: None), "cluster_reduction", False),
    "flags of other CTAs": (global_memory, "mark_shared", _in_own_memory, "cluster_flag_generic_address", False),
    "waits in a loop": (given_up, "natural_loops", _instead([]), "mbarriers_waited_in_a_loop", False),
    "values that are thrown away": (pieces, "is_thrown_away", _instead(False), "masked_tail", False),
    "clusters that kernels require": (clusters, "required", _instead((1, 1, 1)), "cluster_reduction", False),
}


def _outcome(name: str, racy: bool, fault: str) -> tuple[Any, ...]:
    spec = twin_file.read(file_of(name))
    text = f"{kernel(name, racy).ptx}\n// {fault}\n"  # modules are kept by their text
    built = consan.Kernel(text, entry="kernel")
    report = consan.launch(built, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu", engine="record")
    assert {each.engine for each in report.kernels} == {"record"}
    return found(report), {(one.kind, one.count) for one in report.findings}, report.verdict


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_recorder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, change, file, racy = FAULTS[name]
    right = _outcome(file, racy, "none")
    assert right[-1] == ("violations" if racy else "clean")
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert _outcome(file, racy, name) != right
