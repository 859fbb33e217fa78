"""Faults in the checker's rules about clusters, scopes and copies between CTAs (test_planted_faults.py)."""

from __future__ import annotations

from planted import dropped, leaf

# ruff: noqa: E501 - one rule a line

RULES = {
    "clusters: relaxed arrivals": (*leaf("ClusterBarrierArrive", "relaxed", "false"), "cluster_relaxed_arrive", True),
    "clusters: who is awaited": ("clusters.hpp", "if (!coming_ || coming_ < living_) return;", "if (!coming_) return;", "cluster_dsmem_no_barrier", False),
    "clusters: what a warp learns behind its arrival": ("clusters.hpp", "warps_ = std::move(coming_warps_), coming_warps_ = {};", "warps_.clear();\n        for (const Past &past : pasts_) clocks_.add_warp(past, warps_);", "cluster_arrival_overtaken", True),
    "mbarriers: order of execution": ("mbarriers.hpp", "u32 phase = clocks_.executed(thread, object->actor);", "u32 phase = clocks_.known(thread, object->actor);", "mbarrier_empty_relaxed", True),
    "lifetimes: of operations": ("operations.hpp", "seen_by(each.target, each) && seen_by(each.signal, each)", "true", "bulk_load_at_exit", True),
    "shape: ranks": ("shape.hpp", "if (!ranked && rank == 0) rank = home(thread);", "ranked = false, rank = home(thread);", "cluster_dsmem_no_barrier", True),
    "asynchronous: receivers": ("asynchronous.hpp", "if (copy.ctas() >> cta & 1)", "if (cta == shape_.home(thread))", "cluster_gemm_2x1", False),
    "asynchronous: pairs": (*leaf("ToShared", "pair", "false"), "cluster_pair_multicast", False),
    "asynchronous: sources": ("asynchronous.hpp", "operations_.issue(made.source(shape_.home(thread)), thread, Tensor::chunks_of(from, bytes));", "{}", "cluster_push_source_overwritten", True),
    "operations: reductions": ("race_rule.hpp", " || (old.updates() && now.updates());", ";", "cluster_push_added_beside_cta_atomic", False),
    "operations: stores": ("asynchronous.hpp", "operations_.issue(made, thread, {to.place / CHUNK});", "{}", "cluster_st_async_not_waited", True),
    "operations: bytes of a chunk": ("operations.hpp", "if (!(nodes_[at].mask & mask_of(access, chunk)) || ", "if (", "cluster_st_async_not_waited", False),
    "initialised: strong data that comes late": ("initialised.hpp", " && !race_rule::gives_data(read.access, access)", "", "volatile_zeros_not_synced", True),
    "initialised: writes behind an operation": ("initialised.hpp", " || (read.over && read.over(access.thread))", "", "cluster_push_of_unwritten", True),
    "SR1: shared memory of other CTAs": ("shape.hpp", "return !releases || home(thread) == input_.restricted - OF_CTA_RESTRICTED;", "return true;", "cluster_push_restricted_fence", True),
    "SR1: shared memory of the own CTA": ("shape.hpp", "return !releases || home(thread) == input_.restricted - OF_CTA_RESTRICTED;", "return !releases;", "cluster_push_restricted_fence", True),
    "SR1: findings of one CTA": ("findings.hpp", "(found.offset < bytes_.first || found.offset >= bytes_.second)", "bytes_.first > bytes_.second", "cluster_push_restricted_fence", True),
    "accesses: st.bulk": (*dropped("Fill"), "st_bulk_no_barrier", True),
}  # fmt: skip
