"""Faults planted in what the recorder writes of copies, products, fences and clusters change what is found (test_planted_faults.py)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from record_support import file_of, found, kernel, twin_file

import consan
from consan.instrument import effects
from consan.instrument.record import bulk, clusters, lowering, matrix, orders, rewrite, tensormaps, tensors, text

Change = Callable[[Any], Any]


def _instead(value: Any) -> Change:
    return lambda old: lambda *given: value


def _all(value: Any) -> Change:
    return lambda old: dict.fromkeys(old, value)


def _with(name: str, value: Any) -> Change:
    return lambda old: old | {name: value}


def _is(value: Any) -> Change:
    return lambda old: value


def _without_mask(old: Any) -> Any:
    return lambda work, role: None if role == "cta-mask" else old(work, role)


def _without_scope(old: Any) -> Any:
    return lambda work, access: {**old(work, access), "narrow": False}


def _as(kind: type[effects.Effect], other: type[effects.Effect]) -> Change:
    """Effects of one kind are recorded as another one."""

    def changed(old: Any) -> Any:
        def lower(kernel: Any, work: Any, asked: Any, *rest: Any, **given: Any) -> effects.Effect:
            event = old(kernel, work, asked, *rest, **given)
            return other(site=event.site, guard=event.guard) if asked is kind else event

        return lower

    return changed


def _ordering(old: Any) -> Any:
    """No effect is relaxed."""
    return lambda *given, **named: old(*given, **named | ({"relaxed": False} if "relaxed" in named else {}))


# The module, what changes in it and how, and a kernel: reported with the right one, or clean with it (False).
FAULTS: dict[str, tuple[ModuleType, str, Change, str, bool]] = {
    "a load's mbarrier": (bulk, "_mbarrier", _instead(effects.WordValue()), "mbarrier_bulk_pipeline", False),
    "a copy's global address": (lowering, "global_address", _instead(0), "bulk_source_overwritten", True),
    "waits for groups": (rewrite, "lower", _as(effects.BulkWait, effects.BulkCommit), "bulk_store_source_overwritten", False),
    "fenced memories": (bulk, "_FENCES", _all(2), "fence_of_other_buffer", False),
    "copies to other CTAs": (bulk, "operand_of", _without_mask, "cluster_pair_multicast", False),
    "the address of a tensor": (tensors, "_ADDRESS", _is((15, 15)), "tensor_result_read_wait", True),
    "extents of a map": (tensors, "_EXTENTS", _is(11), "tma_store_two_stages", True),
    "the box of a map": (tensors, "TILE_WORDS", _is((2, 7, 15, 15, 15)), "tma_store_two_stages", True),
    "maps in global memory": (tensors, "map_in_memory", _instead(False), "tensormap_not_acquired", True),
    "copies of maps by a warp": (tensormaps, "is_copy", _instead(False), "tensormap_reused", False),
    "operands of a product": (matrix, "operands_in_memory", _instead([]), "wgmma_operand_overwritten", True),
    "waits for products": (rewrite, "lower", _as(effects.ProductWait, effects.ProductCommit), "wgmma_one_wait_for_two", False),
    "ranks of addresses": (orders, "is_ranked", _instead(False), "cluster_reduction", False),
    "scopes": (lowering, "reach_of", _without_scope, "cluster_arrive_cta_scope", True),
    "relaxed arrivals": (rewrite, "lower", _ordering, "mbarrier_relaxed_arrive", True),
    "the end of a log before a wait": (text, "stop", _instead(""), "mbarrier_32_arrivals_hang", True),
    "fences": (clusters, "relaxes", _instead(False), "mbarrier_relaxed_with_fences", False),
    "barriers of clusters": (rewrite, "_HANDLERS", _with("cluster-barrier", lambda kernel, work: None), "cluster_reduction", False),
    "clusters that kernels require": (clusters, "required", _instead((1, 1, 1)), "cluster_reduction", False),
}


def _outcome(name: str, racy: bool, fault: str) -> tuple[Any, ...]:
    spec = twin_file.read(file_of(name))
    text = f"{kernel(name, racy).ptx}\n// {fault}\n"  # modules are kept by their text
    made = consan.Kernel(text, entry="kernel")
    report = consan.launch(made, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu", engine="record")
    assert {each.engine for each in report.kernels} == {"record"}
    return found(report), {(one.kind, one.count) for one in report.findings}, report.verdict


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_recorder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, change, file, racy = FAULTS[name]
    right = _outcome(file, racy, "none")
    assert right[-1] == ("violations" if racy else "clean")
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert _outcome(file, racy, name) != right
