"""Faults in the checker's rules about global memory (test_planted_global.py). Kernels are those of tests/kernels/global."""

from __future__ import annotations

# ruff: noqa: E501 - one rule a line

# The file, what is replaced by what, and a kernel that is reported only with the rule (True), or is clean only with it.
RULES = {
    "G1: same bytes": ("outer.hpp", "return old.element == now.element;", "return true;", "mixed_size_flag", True),
    "G1: morally strong": ("outer.hpp", "return old.strong && now.strong && scopes &&", "return false && old.strong && scopes &&", "atomics_beside_atomics", False),
    "G2: the release side": ("edges.hpp", "if (access.order & GIVES) own.releases", "own.releases", "split_k_relaxed_flag", True),
    "G2: the acquire side": ("edges.hpp", "if (access.order & TAKES) acquire(access.unit", "acquire(access.unit", "relaxed_poll_no_fence", True),
    "G2: fences release": ("edges.hpp", "if (fence.moment.number) carry(", "if (false) carry(", "fences_of_a_cta", False),
    "G2: fences acquire": ("edges.hpp", ", acquire(unit, thread, own, scope, 0, false);", ";", "fences_of_a_cta", False),
    "G3: the release's scope": ("edges.hpp", "if (!views_.includes(std::min(scope, each.carried.scope), ", "if (!views_.includes(scope, ", "scope_release_cta", True),
    "G3: the acquire's scope": ("edges.hpp", "if (!views_.includes(std::min(scope, each.carried.scope), ", "if (!views_.includes(each.carried.scope, ", "scope_fence_cta", True),
    "G3: the flag's scope": ("edges.hpp", "bool hop = meet(write, access);\n        if", "bool hop = true;\n        if", "scope_flag_cta", True),
    "G4: read-modify-writes hand on": ("edges.hpp", "if (hop || each.layer == LOOSE) carried.push_back(each);", ";", "last_block_release_sequence", False),
    "G4: stores do not": ("flags.hpp", "if (access.observes || access.updates) access.from = last;", "access.from = last, access.updates = access.writes;", "store_ends_release_sequence", True),
    "G5: what the thread knows": ("views.hpp", "u32 seen = entry(from.unit, past, thread, sc);", "u32 seen = 0;", "fence_after_barrier", False),
    "G6: fence.sc by all": ("edges.hpp", "views_.take(unit, thread, other.sc[i], false);", "(void)other;", "fence_by_all_then_barrier", False),
    "G8: observed writes": ("outer.hpp", "return old.flag >= 0 && old.writes && edges_.observed(old.flag, now.unit, now.thread);", "return false;", "counter_reset_by_last", False),
    "G8: only those": ("outer.hpp", "return old.flag >= 0 && old.writes && edges_.observed(old.flag, now.unit, now.thread);", "return old.flag >= 0;", "flag_seen_by_another_flag", True),
    "G11: when a store is over": ("sides.hpp", "if (over(store)) outer.add(store.access);", "", "bulk_store_read_too_early", True),
    "G11: reductions": ("outer.hpp", " || (old.reduces && now.reduces)", "", "bulk_reductions_of_ctas", False),
    "G13: .nc": ("outer.hpp", "report(item, access, !constant ?", "if (!constant) report(item, access, !constant ?", "nc_load_beside_store", True),
    "G13: written later": ("outer.hpp", "before && item.access.constant ? WRITTEN_LATER", "false ? WRITTEN_LATER", "written_after_constant_load", True),
    "G9: lanes": ("outer.hpp", "if (knows_as_warp(item, now)) return", "if (false) return", "acquired_by_other_lane", True),
    "G10: elements of a vector": ("outer.hpp", "return old.element == now.element;", "return old.element == now.element && old.address == now.address && old.bytes == now.bytes;", "vector_beside_its_element", False),
    "G3: gone with wide scopes": ("launch.hpp", "output_.narrow |= scope_of(event) < GPU_SCOPE;", "output_.narrow = 0;", "scope_fence_of_reader_cta", True),
    "CTAs": ("outer.hpp", "        findings_.add(found);\n", "", "overlapping_tiles", True),
    "bytes of a cell": ("outer.hpp", "if (!(item.mask & mask) || ", "if (", "bytes_exchanged", False),
    "footprints: others write": ("launch.hpp", "grid_.footprints.write(log.wide_value(), (u32)event.bytes, unit, thread);", "", "overlapping_tiles", True),
    "footprints: others read": ("launch.hpp", "if (event.kind == GLOBAL_READ) add(", "if (event.kind == GLOBAL_READ) return;\n        else if (false) add(", "halo_of_neighbour", True),
    "same value": ("outer.hpp", "old.value == now.value", "false", "same_value_flag", True),
}
