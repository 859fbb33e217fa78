"""Faults planted in the recorder and in each rule of the checker change what is found, so the other tests would see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from planted import break_checker, dropped, leaf
from planted_cluster_rules import RULES as CLUSTERS
from record_support import found, launch

import consan
from consan.checker.compiled import build, replay
from consan.checker.judging import grid
from consan.instrument.record.text import text, words
from consan.reports.verdict import scopes

# ruff: noqa: E501 - one rule a line

# Rule by rule, but bounds (the virtual machine reports such an access too), what came before a copy, unpublished inits, and which writes still matter to a proxy fence (test_checker.py has all four): the file, what is replaced by what, and a twin that is reported only with the rule, or is clean only with it.
RULES = {
    "races: unordered": ("race_rule.hpp", "else add(compare(old, now, facts));", "", "raw", True),
    "races: reads before a write": ("races.hpp", "if (access.writes) compare(cell.reads", "if (false) compare(cell.reads", "war_loop", True),
    "races: morally strong": ("race_rule.hpp", "return old.strong && now.strong && same_bytes(old, now) && one_proxy", "return false && one_proxy", "shared_atomics", False),
    "races: same bytes": ("race_rule.hpp", "return old.element == now.element;", "return true;", "mixed_size_atomics", True),
    "races: same value": ("race_rule.hpp", "old.value == now.value", "true", "waw", True),
    "races: bytes of a cell": ("races.hpp", "if (!(item.mask & mask) || (weak", "if ((weak", "adjacent_bytes", False),
    "races: rows": (*leaf("SharedAccess", "row", "0"), "ldmatrix_own_row", True),
    "races: rows of words": ("races.hpp", "first + (of.row == ROW_OF_WORDS ?", "of.thread + 0 * (of.row == ROW_OF_WORDS ?", "matrix_rows_of_own_words", False),
    "races: rows of elements": ("races.hpp", "(of.row == ROW_OF_WORDS ?", "(true ?", "matrix_rows_of_own_words", False),
    "races: rows of one instruction": ("races.hpp", " && old.flag == (i32)rows_", "", "matrix_rows_in_a_loop", False),
    "races: what the address-giver has released": ("races.hpp", "item.time != clocks_.time(old.thread) :", "false :", "ldmatrix_own_row", False),
    "copies: rows": ("copies.hpp", "if (own && wait && wait->time", "if (false && wait && wait->time", "ldmatrix_of_own_copy", True),
    "initialised": ("initialised.hpp", "if (!missing ||", "if (true ||", "uninitialized_tail", True),
    "initialised: explained": ("initialised.hpp", "explain(reads_[number], access);", "(void)number;", "raw_first_use", True),
    "barriers: arrivals get nothing": (*leaf("CtaBarrier", "waits", "true"), "named_barrier_arrive_is_no_wait", True),
    "barriers: what a warp learns behind its arrival": ("barriers.hpp", "clocks_.acquire_warps(generation.waiting, generation.warps);", "for (const Past &past : generation.pasts) clocks_.add_warp(past, generation.warps);\n        clocks_.acquire_warps(generation.waiting, generation.warps);", "named_barrier_arrival_overtaken", True),
    "divergence: lanes that go on": ("divergence.hpp", "return point.passable() && (odd || gone);", "return false;", "divergent_shfl_then_syncwarp", True),
    "divergence: a mask that lacks the lane": ("divergence.hpp", "return point.masked && !(", "return point.masked && point.waits && !(", "shuffle_not_in_mask", True),
    "divergence: past": ("divergence.hpp", "if (u32 site = past(other, lane, point)) gone", "if (u32 site = 0) gone", "divergent_elect", True),
    "divergence: calls": ("divergence.hpp", "return over && ", "return false && over && ", "divergent_syncwarp_in_function", True),
    "divergence: of which call": ("divergence.hpp", "[function].size();", "[function].size(), point.call -= point.call > 0;", "divergent_syncwarp_in_function", False),
    "divergence: lanes that are gone": ("divergence.hpp", "if (lane >= lanes_.size() || has_ended(lane)) gone", "if (lane >= lanes_.size()) gone", "shuffle_from_exited_lane", True),
    "findings: products of another warpgroup": ("findings.hpp", "between_warpgroups(found) && !between_warpgroups(other)", "false", "wgmma_operand_of_two_groups", True),
    "divergence: lanes that are not in the mask": ("divergence.hpp", "if (!(gone | ~point.members) ||", "if (!gone ||", "shuffle_from_lane_outside_mask", True),
    "divergence: points at which lanes take values": (*leaf("PointReached", "shuffles", "false"), "shuffle_from_exited_lane", True),
    "copies: in flight": ("copies.hpp", "return all.observed(found_wait, item, cell, now);", "return true;", "cp_async_no_wait", True),
    "copies: refills": ("copies.hpp", "return !now.writes && !now.operation && (all.settled_[cell] || ", "return !now.writes && (false || ", "cp_async_refill_too_early", True),
    "copies: refills between lanes": ("copies.hpp", "(all.settled_[cell] || all.replaces(item, now, cell));", "all.settled_[cell];", "cp_async_refilled_by_lane", True),
    "copies: a round in which the reader has copied": ("copies.hpp", "if (threads_[access.thread].issued > item.number) return false;", "", "cp_async_lane_reads_unsynced", True),
    "operations: refills far ahead": ("operations.hpp", "return mbarriers_.nothing_since(thread, load.phase, time);", "return mbarriers_.phases_known(thread, load.phase) >= load.phase.phase && mbarriers_.nothing_since(thread, load.phase, time);", "bulk_load_refills_single_buffer", True),
    "races: the value before": ("race_rule.hpp", "if (is == Wrong::TOO_EARLY) turn(found, hazard_of(now, old));", "", "mbarrier_mailbox", True),
    "operations: a refill of what nobody has waited for": ("operations.hpp", " && mbarriers_.phases_known(thread, load.phase)) return true;", ") return true;", "bulk_loads_one_waited", True),
    "operations: asynchronous stores that come again": ("operations.hpp", "made.brings() && brought(", "made.loads() && brought(", "cluster_st_async_freed_early", True),
    "R-M7: a phase that bytes keep from its end": ("mbarriers.hpp", "if (!object.pending) exceeds(object);", ";", "bulk_bytes_of_one_copy", True),
    "operations: an issue that is too early": ("operations.hpp", "bool early() const { return !(", "bool early() const { return false && !(", "bulk_bytes_last_tile", True),
    "copies: groups in flight": ("copies.hpp", "own.retired = own.commits - pending;", "own.retired = own.commits;", "cp_async_off_by_one", True),
    "copies: commits": ("copies.hpp", "if (own.commits <= (u64)own.retired + pending) return;", "++own.commits;", "cp_async_wait_before_commit", True),
    "copies: sources": ("completions.hpp", "return copies_.any_end(of.thread, of.group, of.number, f);", "return true;", "cp_async_source_overwritten", True),
    "operations: sources at the exit": ("operations.hpp", "owner(each).read > each.group;", "owner(each).retired > each.group;", "bulk_store_at_exit", False),
    "copies: at the exit": ("rules.hpp", "        copies_.exit(thread);\n", "", "cp_async_at_exit", True),
    "copies: initialise": ("shared_rules.hpp", "seals_.copy(thread);\n        initialised_.add(access);", "seals_.copy(thread);", "cp_async_sizes", False),
    "mbarriers: stale parity": ("mbarriers.hpp", "if (((phase - 1) & 1) == (parity & 1)) {", "if (false) {", "mbarrier_stale_token", True),
    "mbarriers: arrivals together": ("mbarrier_rules.hpp", "if (each.event == event && each.place == place) team.push_back(each.arrival);", "if (team.empty()) team.push_back(each.arrival);", "mbarrier_32_arrivals", True),
    "mbarriers: laps": ("mbarriers.hpp", "return phase && object.waited < phase;", "return false;", "mbarrier_phase_lap", True),
    "mbarriers: a phase that one arrival ends": ("mbarriers.hpp", "bool alone = at_once &&", "bool alone = false &&", "mbarrier_first_turn_unwaited", True),
    "mbarriers: a wait for a phase that its thread knew to be over": ("mbarriers.hpp", "|| object->waited < phase ||", "||", "mbarrier_first_turn_unwaited", False),
    "mbarriers: turns of an unrolled loop": ("same_turn.hpp", "own->second.source == source", "false", "mbarrier_unrolled_turns", True),
    "mbarriers: who completed the phase before": ("mbarriers.hpp", "object.completed = {site, thread};", "object.completed = {site, object.thread};", "mbarrier_phase_lap", True),
    "mbarriers: who invalidated": ("mbarriers.hpp", "object->live = false;\n        object->last = {site, thread};", "object->live = false;\n        object->last = {site, object->thread};", "mbarrier_used_after_inval", True),
    "mbarriers: waits that decide nothing": ("mbarriers.hpp", "return objects_[phase.object].heeded > phase.phase;", "return waited(phase);", "mbarrier_result_ignored", True),
    "sums that differ by rounding": ("race_rule.hpp", "&& difference <= most;", "&& difference > most;", "sums_of_lanes", False),
    "sums of 16 bits that differ by rounding": ("race_rule.hpp", "most = half ? 1 :", "most = half ? 0 :", "sums_of_lanes_in_halves", False),
    "sums of other lanes": ("findings.hpp", "        retained.lane_bits |= found.lane_bits;\n", "", "sums_of_lanes_in_vectors", True),
    "W1: a lane that has exited": ("race_rule.hpp", "if (!facts.one_warp() && !facts.lanes_take()) return NO_BARRIER;", "", "write_before_exit", True),
    "flags: lanes of a warp": ("grid.hpp", "(found.reason != NO_BARRIER && found.reason != NO_WARP_SYNC)", "found.reason != NO_BARRIER", "lock_of_lanes_no_release", True),
    "flags: a thread's own look": ("edges.hpp", "bool is_own = flags_[number].thread == thread,", "bool is_own = false,", "flag_counted_by_lanes", True),
    "mbarriers: data": ("states.hpp", "if (mbarriers_.data(access)) return;\n        copies_", "copies_", "mbarrier_used_as_data", True),
    "mbarriers: reads of what a store left": ("mbarriers.hpp", "if (object.overwritten && !access.writes) continue;", "", "mbarrier_used_as_data", True),
    "mbarriers: copies over them": ("shared_rules.hpp", "if (mbarriers_.data(access)) return;\n        asynchronous_", "asynchronous_", "mbarrier_under_cp_async", True),
    "mbarriers: drop": ("mbarriers.hpp", ", object->expected -= std::min(total, object->expected);", ";", "mbarrier_drop", False),
    "convergence: lanes meet": ("barrier_rules.hpp", "convergence_.arrive(thread, point.members(), released);\n        return false;", "return true;", "exchange_before_next_read", True),
    "proxies: fences": (*dropped("ProxyFence"), "fence_of_other_buffer", False),
    "proxies: memories": (*leaf("ProxyFence", "memories", "3"), "global_store_no_proxy_fence", True),
    "proxies: kept beyond barriers": ("proxies.hpp", "known ? lacking(item, use, product) : ", "known ? NO_REASON : ", "wgmma_no_proxy_fence", True),
    "proxies: copies": ("proxies.hpp", "if (item.copy && product) return", "if (item.copy) return", "cp_async_then_bulk_store", True),
    "proxies: reads": ("asynchronous.hpp", "if (access.reads && !access.writes) proxies_.read(access);", "", "bulk_refill_no_fence", True),
    "operations: in flight": ("operations.hpp", "return all.observed(old(), now.thread) || all.covered(head, number, now.thread);", "return true;", "bulk_load_not_waited", True),
    "operations: issue": ("operations.hpp", "races_.meet(use, Actor{", "if (false) races_.meet(use, Actor{", "mbarrier_lanes_release", True),
    "operations: early release": ("operations.hpp", "return made.by_phase() && use.writes &&", "return false &&", "mbarrier_lanes_release", True),
    "operations: uninitialised": ("operations.hpp", "initialised_.add(use, [this", "if (false) initialised_.add(use, [this", "bulk_store_uninitialised", True),
    "operations: at the exit": ("replay.cpp", "            asynchronous_.finish();\n", "", "bulk_load_at_exit", True),
    "operations: bytes come": ("asynchronous.hpp", "for (const Receiver &each : to) mbarriers_.transact(", "for (const Receiver &each : to) if (false) mbarriers_.transact(", "mbarrier_bulk_pipeline", False),
    "operations: signals at inval": ("operations.hpp", "if (each.by_phase() && each.phase.object == now.object", "if (false && each.phase.object == now.object", "mbarrier_inval_in_flight", True),
    "groups: issuers": ("groups.hpp", "known(thread, bulk_[issuer].sources) > group", "bulk_[issuer].read > group || (thread != issuer && bulk_[thread].waits)", "bulk_store_wait_by_other", True),
    "groups: four warps": ("groups.hpp", "return inside ? seen == end - warp : seen != 0;", "return seen != 0;", "wgmma_waited_per_warp", True),
    "groups: signals of what is over": ("groups.hpp", "{signal, own.retired}", "{signal, own.commits}", "wgmma_signalled_for_older", True),
    "groups: signals are seen": ("groups.hpp", "scopes_.signals(thread, {signal, own.retired});", "clocks_.take(thread, {}, signal, own.retired);", "wgmma_signal_not_seen", True),
    "groups: products": ("groups.hpp", "if (own.commits <= pending || own.commits - pending <= own.retired) return;", "return;", "wgmma_one_wait_for_two", False),
    "completions: sources": ("completions.hpp", "return f(mbarriers_.actor(of.phase), of.phase.phase + 1);", "return true;", "bulk_source_overwritten", True),
    "completions: results": ("completions.hpp", "return groups_.bulk(of.thread).results != NOTHING && f(groups_.bulk(of.thread).results, of.group + 1);", "return true;", "bulk_result_no_wait", True),
    "operations: issues of two threads": ("operations.hpp", "return !now.writes || (old().by_commit() &&", "return true || (old().by_commit() &&", "cluster_pushes_of_two_ctas", True),
    "operations: issues of products": ("operations.hpp", "if (times[warp] && (", "if (false && (", "wgmma_signalled_before_wait", True),
    "copies: issues of two threads": ("copies.hpp", "bool awaited() const { return !now.writes; }", "bool awaited() const { return true; }", "cp_async_beside_store", True),
    "race rule: scopes": ("race_rule.hpp", "if (decided<ACCESS_SCOPE>(excluded(old, now, facts))) return ACCESS_SCOPE;", "", "cluster_atomics_cta_scope", True),
    "race rule: scopes of one proxy": ("race_rule.hpp", " && one_proxy(old, now);", ";", "cluster_push_added_beside_strong_store", True),
    "operations: two sizes": ("race_rule.hpp", "if (mixed_atomics(old, now, facts)) return Wrong::RACE;", "", "cluster_red_async_of_two_sizes", True),
    "operations: bytes of a store": ("asynchronous.hpp", "made.chosen = ((1u << bytes) - 1) << to.place % CHUNK;", "made.chosen = WHOLE_CHUNK;", "cluster_st_async_not_waited", False),
    "tensors: clipped": ("tensors.hpp", "in &= rest % counts_[d] < seen[d], rest /= counts_[d];", "rest /= counts_[d];", "tma_store_clipped", False),
    "matrix: swizzle": ("matrix.hpp", "return at ^ (((at >> 7) - base_) & (width_ / atom_ - 1)) << (3 + atom_);", "return at;", "wgmma_footprint_swizzled", True),
    "matrix: blocks": ("matrix.hpp", "row / 8 * stride_ + ", "row / 8 * 16 + ", "wgmma_footprint_blocks", True),
    "matrix: major": ("matrix.hpp", "if (major) mn_major", "if (false) mn_major", "wgmma_footprint_transposed", True),
    "replay: lanes together": ("turns.hpp", "together_ ? next_together() : next_alone()", "next_alone()", "mbarrier_lanes_by_way_of_warp", True),
    "clocks: own time": ("clocks.hpp", "        ++time_[thread];\n", "", "raw", True),
}  # fmt: skip
RULES |= CLUSTERS


def test_each_fault_changes_text_that_is_there() -> None:
    sources = build.sources()
    assert [rule for rule, (file, old, *_) in RULES.items() if sources[file].count(old) != 1] == []


@pytest.mark.slow  # each compiles the checker, which takes 10 s; test_planted_global.py has a quick one
@pytest.mark.parametrize("fault", RULES.values(), ids=RULES)
def test_a_fault_in_a_rule(fault: tuple[str, str, str, str, bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file, old, new, name, racy = fault
    right, _ = launch(name, racy, "record")
    break_checker(monkeypatch, tmp_path, (replay, grid), file, old, new)
    wrong, _ = launch(name, racy, "record")
    assert _details(wrong) != _details(right)


def test_a_scope_that_hides_what_its_pair_lacks_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    right, _ = launch("cluster_wait_cta_scope_no_fence", True, "record")
    monkeypatch.setattr(scopes, "hidden", lambda records, wide: np.zeros(len(wide), np.bool_))
    wrong, _ = launch("cluster_wait_cta_scope_no_fence", True, "record")
    assert {one.kind for one in right.findings} - {one.kind for one in wrong.findings} == {"missing-proxy-fence"}


def _details(report: Any) -> Any:
    threads = {tuple(access.thread for access in one.accesses) for one in report.findings}
    return found(report), threads, {(one.kind, one.hazard, one.situation, one.count) for one in report.findings}, report.verdict


SOURCE = """
extern "C" __global__ void FAULT(int* out, int odd) {
    __shared__ int tile[64];
    int t = threadIdx.x, mine = blockIdx.x == odd, sum = 0;
    tile[t] = t;
    __syncthreads();
    BODY
    out[blockIdx.x * 64 + t] = sum;
}
"""
GUARDED = """int at = (int)__cvta_generic_to_shared(tile);
asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 99; @p st.shared.s32 [%1], %0; }" :: "r"(t), "r"(at));"""
MOVED = """int at = (int)__cvta_generic_to_shared(tile) + 4 * t;
asm volatile("{ .reg .b32 a; mov.b32 a, %0; st.shared.s32 [a], %1; xor.b32 a, a, 128; ld.shared.s32 %1, [a]; }" : : "r"(at), "r"(sum));"""
ADDRESS = "tile[t] += 1; sum = tile[mine ? t ^ 32 : t];"
BARRIER = "tile[t] += 1; if (!mine) __syncthreads(); sum = tile[63 - t];"


def _outcome(body: str, fault: str) -> tuple[Any, ...]:
    name = fault.replace(" ", "_")  # modules are kept by their text
    kernel = consan.Kernel(SOURCE.replace("BODY", body).replace("FAULT", name), entry=name, arch="sm_80")
    report = consan.launch(kernel, 8, 64, [np.zeros(8 * 64, np.int32), np.int32(5)], device="cpu", engine="record")
    (summary,) = report.kernels
    return summary.engine, summary.histories, report.verdict, {(one.kind, one.ctas) for one in report.findings}


def _without_guard(add: Callable[..., Any]) -> Callable[..., Any]:
    def added(self: Any, what: Any, instruction: Any, registers: Any, load: str) -> Any:
        return add(self, what, _Unguarded(instruction), registers, load)

    return added


class _Unguarded:
    def __init__(self, instruction: Any) -> None:
        self.scope, self.predicate = instruction.scope, None


RECORDER = {
    "words not hashed": (text, "hash_word", lambda value: "", ADDRESS),
    "blocks not hashed": (text, "hash_constant", lambda value: "", BARRIER),
    "cursor not moved": (text, "close", lambda words: "", ADDRESS),
    "guard not folded": (words.Words, "word", _without_guard(words.Words.word), GUARDED),
    "word of a register that has changed": (words.Words, "written", lambda self, keys: None, MOVED),
}


@pytest.mark.parametrize("name", RECORDER)
def test_a_fault_in_the_recorder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken, body = RECORDER[name]
    right = _outcome(body, "none")
    monkeypatch.setattr(owner, attribute, broken)
    assert _outcome(body, name) != right
