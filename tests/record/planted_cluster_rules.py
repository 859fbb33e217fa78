"""Faults in the checker's rules about clusters, scopes and copies between CTAs (test_planted_faults.py)."""

from __future__ import annotations

from planted import dropped, leaf

# ruff: noqa: E501 - one rule a line

RULES = {
    "clusters: order": ("clusters.hpp", "        clocks_.take(thread, done_.seen);\n", "", "cluster_dsmem_no_barrier", False),
    "clusters: relaxed arrivals": (*leaf("ClusterBarrierArrive", "relaxed", "false"), "cluster_relaxed_arrive", True),
    "clusters: who is awaited": ("clusters.hpp", "if (!coming_ || coming_ < living_) return;", "if (!coming_) return;", "cluster_dsmem_no_barrier", False),
    "clusters: one arrival": ("rules.hpp", "if (cluster_barrier_.has_arrived(thread)) return", "if (false) return", "cluster_arrived_twice", True),
    "scopes: releases": ("scopes.hpp", "if (wide && far)", "if (far)", "cluster_arrive_cta_scope", True),
    "scopes: waits": ("scopes.hpp", "if (from.by.size() == 1 || !wide)", "if (from.by.size() == 1)", "cluster_wait_cta_scope", True),
    "scopes: fences": ("scopes.hpp", "if (wide || level_ >= SCOPES) clocks_.give(own.far, past);", "clocks_.give(own.far, past);", "cluster_halo_fence_block", True),
    "scopes: wider ones": ("scopes.hpp", "give(thread, wide || level_ >= SCOPES, to,", "give(thread, wide, to,", "cluster_arrive_cta_scope", True),
    "scopes: relaxed releases": ("scopes.hpp", "if (orders) clocks_.give(deposit, past);", "if (true) clocks_.give(deposit, past);", "mbarrier_relaxed_arrive", True),
    "scopes: relaxed waits": ("scopes.hpp", "if (orders) acquire(thread, from, wide, actor, number);", "if (true) acquire(thread, from, wide, actor, number);", "mbarrier_relaxed_wait", True),
    "scopes: acquire fences": ("scopes.hpp", "for (Seen &each : pending) acquire(thread, each.given, far && each.wide, each.actor, each.number);", "(void)far;", "mbarrier_relaxed_with_fences", False),
    "scopes: release fences": ("scopes.hpp", "        clocks_.give(own.near, past);\n", "", "mbarrier_relaxed_with_fences", False),
    "mbarriers: order of execution": ("mbarriers.hpp", "u32 phase = clocks_.executed(thread, object->actor);", "u32 phase = clocks_.known(thread, object->actor);", "mbarrier_empty_relaxed", True),
    "mbarriers: fences of inits": ("mbarriers.hpp", "scopes_.fence_inits(thread, inits);", "(void)inits;", "cluster_init_no_fence", False),
    "lifetimes: starts": ("lifetimes.hpp", "report({site, thread, place, bytes, {}}, NOT_STARTED);", "(void)0;", "cluster_before_start", True),
    "lifetimes: exits": ("lifetimes.hpp", "report(each.second, AFTER_EXIT);", "(void)0;", "cluster_peer_exits", True),
    "lifetimes: of operations": ("operations.hpp", "seen_by(each.target, each) && seen_by(each.signal, each)", "true", "bulk_load_at_exit", True),
    "races: scopes": ("races.hpp", "bool scopes = !(old.narrow", "bool scopes = true || !(old.narrow", "cluster_atomics_cta_scope", True),
    "shape: ranks": ("shape.hpp", "if (!ranked && rank == 0) rank = home(thread);", "ranked = false, rank = home(thread);", "cluster_dsmem_no_barrier", True),
    "asynchronous: receivers": ("asynchronous.hpp", "if (copy.ctas() >> cta & 1)", "if (cta == shape_.home(thread))", "cluster_gemm_2x1", False),
    "asynchronous: pairs": (*leaf("ToShared", "pair", "false"), "cluster_pair_multicast", False),
    "asynchronous: sources": ("asynchronous.hpp", "operations_.issue(source, thread, Tensor::chunks_of(from, bytes));", "{}", "cluster_push_source_overwritten", True),
    "operations: reductions": ("operations.hpp", "return both_strong(old, now) && old.element == now.element;", "return false;", "cluster_red_async", False),
    "operations: stores": ("asynchronous.hpp", "operations_.issue(made, thread, {to.place / CHUNK});", "{}", "cluster_st_async_not_waited", True),
    "operations: bytes of a chunk": ("operations.hpp", "if (!(nodes_[at].mask & mask_of(access, chunk)) || ", "if (", "cluster_st_async_not_waited", False),
    "accesses: st.bulk": (*dropped("Fill"), "st_bulk_no_barrier", True),
}  # fmt: skip
