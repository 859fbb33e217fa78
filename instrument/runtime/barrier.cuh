// CTA barriers, named and partial barriers, warp barriers (R-BAR1 to R-BAR3, R-W1).
//
// CONSAN_PARTIAL=0: a whole-CTA barrier is `state += (1, 1)` in line in the kernel; only the scrub needs a call.
// CONSAN_PARTIAL=1: the epochs of warps differ, and a whole-CTA barrier aligns them. Every warp deposits its epoch in
// full_epoch[parity] before the real barrier and takes the maximum after it. Two parities are enough: no warp can deposit for barrier
// n + 2 before all warps have left barrier n + 1, and thus have read the maximum of barrier n. Partial barriers deposit and collect
// vector clocks that are tagged with the generation of the barrier. A deposit of a later generation replaces an older one.
#pragma once

#include "access.cuh"

#define OWN_CTA_OF_CLUSTER 17u  // not a barrier: holds what arrivals at the cluster barrier publish to threads of their own CTA only

DEVICE u32 warp_rounded(u32 threads) { return (threads + 31) & ~31u; }

// The place of a barrier in the tables. The barrier of the cluster uses the place of the first CTA.
DEVICE u32 named_place(u64 slot, u32 me, u32 id) {
    u32 place = id % NAMED_BARRIERS;
    return place == CLUSTER_BARRIER ? place : rank_of(slot, me) * NAMED_BARRIERS + place;
}

// The number of threads that a barrier of all threads waits for.
DEVICE u32 all_threads(u64 slot, u32 id) {
    u32 threads = warp_rounded(load32(FIELD(slot, Slot, thread_count)));
    return id == CLUSTER_BARRIER ? threads * cta_count(slot) : threads;
}

DEVICE void set_warp_epoch(u64 slot, u32 me, u32 epoch) { raise32(FIELD(slot, Slot, epochs) + 4 * (me >> 5), epoch); }

HOOK u64 __consan_scrub(u64 slot, u64 state, u32 me) {
    if (slot) epoch_moved(slot, me, low_word(state) - 1, low_word(state));
    return state;
}

#if CONSAN_PARTIAL
COLD void report_named(u64 slot, u64 state, u32 me, u32 site, u32 id, u32 reason, u32 other_site, u32 other) {
    Caller c = {slot, state, me, site, 0, 0, 0};
    Finding f = make_finding(c, KIND_BARRIER_MISUSE, reason, other_site);
    f.misuse.other_thread = other; f.misuse.number = id;
    report(slot, f);
}

DEVICE bool lanes_missing(u64 slot, u32 me, u32 here) {
    return existing_lanes(slot, me) & ~load32(FIELD(slot, Slot, exited) + 4 * (me >> 5)) & ~here;
}

// Whether these lanes complete the arrival of their warp. A warp may come to the hook in several groups of lanes. It counts once, when
// its last lane that has not exited arrives.
DEVICE bool warp_arrives(u64 slot, u32 me, u32 id, u32 mask) {
    u64 at = FIELD(slot, Slot, named_lanes) + 4 * ((id % NAMED_BARRIERS) * MAX_WARPS + (me >> 5));
    u32 before = or32(at, mask);
    if (lanes_missing(slot, me, before | mask)) {
        raise32(FIELD(slot, Slot, lanes_left), 1);
        record_fence();  // an exiting lane sees these lanes, or these lanes see its exit
        if (lanes_missing(slot, me, before | mask)) return false;
    }
    return (and32(at, ~(before | mask)) & mask) != 0;
}

// Counts a warp's arrival at a partial barrier. The word holds the generation, the number of arrived threads, and the thread count that
// the first arrival gave, also of the last generation. All arrivals must give the same count (R-BAR2; ISA "bar").
// `unordered`: 1 + a thread of the previous generation with which this arrival is unordered; 0 if there is none.
DEVICE void count_arrival(u64 slot, u64 state, u32 me, u32 site, u32 id, u32 count, u32 noted, u32 unordered) {
    u64 at = FIELD(slot, Slot, named) + 8 * named_place(slot, me, id), old = load64(at);
    u64 sites = FIELD(slot, Slot, named_sites) + 4 * named_place(slot, me, id);
    for (;;) {
        u32 arrived = low_word(old) & 0xffff, last = low_word(old) >> 16, wanted = arrived ? last : count, generation = high_word(old);
        u64 next = arrived + 32 >= wanted ? pack(wanted << 16, generation + 1) : pack(arrived + 32 | wanted << 16, generation);
        u64 seen = swap64(at, old, next);
        if (seen != old) { old = seen; continue; }
        if (generation != noted && !unordered) unordered = me + 1;
        bool disagree = last && last != count;
        if (unordered) {
            u32 first = load32(sites);  // not written yet if its warp arrived concurrently
            report_named(slot, state, me, site, id, disagree ? REASON_COUNTS_DISAGREE : REASON_SHARED_ID, first ? first : site, unordered - 1);
        }
        if (!arrived) store32(sites, site);
        else if (disagree && !unordered) report_named(slot, state, me, site, id, REASON_COUNTS_DISAGREE, load32(sites), me);
        return;
    }
}

#if CONSAN_ENGINE
// A warp arrives at the barrier of the cluster (without a cluster: of its CTA), or exits. The barrier does not wait for exited warps. One word
// counts arrivals and exits, so the later of them completes the phase. The bits that hold the thread count of other barriers hold the
// number of exited threads here.
// `arrived_at`: the generation in which an exiting warp was counted, or 0. If that generation is incomplete, the warp now counts as exited.
DEVICE void count_at_cluster(u64 slot, u32 arrive, u32 end, u32 arrived_at = 0) {
    u64 at = FIELD(slot, Slot, named) + 8 * CLUSTER_BARRIER, old = load64(at);
    u32 all = all_threads(slot, CLUSTER_BARRIER);
    for (;;) {
        u32 arrived = (low_word(old) & 0xffff) + arrive, ended = (low_word(old) >> 16) + end;
        if (arrived_at == high_word(old)) arrived -= min(arrived, end);
        bool over = arrived && arrived + ended >= all;
        u64 seen = swap64(at, old, pack((over ? 0 : arrived) | ended << 16, high_word(old) + over));
        if (seen == old) return;
        old = seen;
    }
}

// Lanes of a warp have exited and `living` ones remain. The exit may complete the arrival of the warp.
COLD void end_at_cluster(u64 slot, u32 me, u32 living) {
    u64 at = FIELD(slot, Slot, named_lanes) + 4 * (CLUSTER_BARRIER * MAX_WARPS + (me >> 5));
    record_fence();  // as in warp_arrives: an exiting lane sees these lanes, or these lanes see its exit
    u32 here = load32(at);
    if (living) {
        if (here && !(living & ~here) && and32(at, ~here) & living) count_at_cluster(slot, 32, 0);
        return;
    }
    // If lanes of this warp arrived and exited before its other lanes arrived, the warp has not been counted. A generation that an earlier CTA
    // left in the record is below the current one, so it removes no arrival.
    count_at_cluster(slot, 0, 32, here ? 0 : load32(THREAD_FIELD(thread_record(slot, me), cluster_generation)));
}
#endif

// A release: it ends the warp's epoch, and later accesses belong to the next one.
DEVICE u64 advance(u64 slot, u64 state, u32 me) {
    u32 epoch = low_word(state) + 1;
    set_warp_epoch(slot, me, epoch);
    epoch_moved(slot, me, epoch - 1, epoch);
    return pack(epoch, high_word(state));
}

DEVICE u64 deposit_place(u64 slot, u32 me, u32 id, u32 generation) {
    u32 place = min(named_place(slot, me, id), DEPOSIT_PLACES - 1);
    return load64(FIELD(slot, Slot, deposits)) + 8ull * VECTOR * (place * BARRIER_GENERATIONS + generation % BARRIER_GENERATIONS);
}

DEVICE void deposit_clock(u64 slot, u64 state, u32 me, u32 id, u32 generation, u32 mask) {
    u64 place = deposit_place(slot, me, id, generation), row = own_vector(slot, me);
    bool some = some_acquired(slot, me, mask);
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u32 values[4];
        published(slot, row, i, me, low_word(state), high_word(state), some, values);
        for (u32 j = 0; j < 4; ++j) raise64(place + 8 * (i + j), pack(values[j], generation + 1));
    });
}

DEVICE void collect_clock(u64 slot, u32 me, u32 id, u32 generation, u32 mask) {
    u64 place = deposit_place(slot, me, id, generation), row = target_row(slot, me, mask);
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u64 deposits[4];
        u32 now[4], wanted[4];
        load_records<4>(place + 8 * i, deposits);
        load_entries<4>(row + 4 * i, now);
        for (u32 j = 0; j < 4; ++j) wanted[j] = high_word(deposits[j]) == generation + 1 ? low_word(deposits[j]) : 0;
        raise_entries(row + 4 * i, now, wanted);
    });
}

// R-BAR3: all participants must be ordered after one generation of a barrier before a thread arrives at the next. A warp without that
// order could as well have been counted in the previous generation. Returns 1 + a participant of the previous generation that is unordered
// with the caller, or 0.
DEVICE u32 unordered_of_last_round(u64 slot, u64 state, u32 me, u32 id, u32 generation, u32 mask) {
    u64 place = deposit_place(slot, me, id, generation - 1), row = own_vector(slot, me);
    bool some = some_acquired(slot, me, mask);
    u32 warps = load32(FIELD(slot, Slot, warp_count)), found = 0;
    for (u32 w = lanes_below(mask); w < warps; w += __popc(mask)) {
        if (!same_cta(slot, w, me >> 5)) continue;
        u64 deposit = load64(place + 8 * w);
        u32 known = max(load32(row + 4 * w), high_word(state) - 1);
        if (some) known = max(known, load32(row + 4ull * VECTOR * MAX_WARPS + 4 * w));
        if (w != me >> 5 && high_word(deposit) == generation && low_word(deposit) > known) found = (w << 5) + 1;
    }
    return maximum_over(mask, found);
}

#if CONSAN_ENGINE
// ---- warps that exit --------------------------------------------------------------------------------------------------------------
//
// A barrier of all threads does not wait for exited threads and does not order their accesses (ISA "bar": of the participating
// threads). If a warp exits with accesses after its last such barrier, later barriers of its CTA begin no new interval: they order the
// participating warps entry by entry, and exited warps as far as the participants have observed them in another way.
// The upper half of a word is the base of the CTA, so words of an earlier CTA do not count. The lower half is the number of whole-CTA
// barriers that the warp has passed, plus one; for the minimum over warps it is the complement of that number.

DEVICE u64 end_of(u64 slot, u32 warp) { return FIELD(engine_of(slot), Engine, ended) + 8 * warp; }
DEVICE u64 first_end(u64 slot, u32 me) { return FIELD(engine_of(slot), Engine, first_end) + 8 * rank_of(slot, me); }

// Whether an exited warp with unordered accesses was missing at the `number`th barrier: any warp of the CTA, or (below) a given one.
DEVICE bool was_without_some(u64 slot, u32 me, u32 number) {
    u64 word = load64(first_end(slot, me));
    return high_word(word) == load32(FIELD(slot, Slot, base)) && low_word(word) && ~low_word(word) <= number;
}
DEVICE bool was_without(u64 slot, u32 warp, u32 number) {
    u64 word = load64(end_of(slot, warp));
    return high_word(word) == load32(FIELD(slot, Slot, base)) && low_word(word) && low_word(word) - 1 <= number;
}

// Lanes `mask`, the last ones of their warp, exit. `touched`: the warp has accessed shared memory since the last barrier.
DEVICE void note_end(u64 slot, u32 me, bool touched) {
    if (!touched) return;
    u32 passed = load32(THREAD_FIELD(thread_record(slot, me), full_barriers)), base = load32(FIELD(slot, Slot, base));
    store64(end_of(slot, me >> 5), pack(passed + 1, base));
    raise64(first_end(slot, me), pack(~passed, base));
}

// A whole-CTA barrier orders accesses by epochs alone. The other clock entries (epochs that have passed proxy fences, observed phases,
// and what is known of exited warps) are joined through a row of the CTA, with two parities like full_epoch.
DEVICE void join_before(u64 slot, u32 me, u32 parity, u32 mask) {
    u64 full = FIELD(engine_of(slot), Engine, full) + 4ull * CLOCK * (2 * rank_of(slot, me) + parity), row = own_vector(slot, me);
    bool some = some_acquired(slot, me, mask);
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u32 now[4], values[4];
        load_entries<4>(full + 4 * i, now);
        published(slot, row, i, me, 0, 1, some, values);
        raise_entries(full + 4 * i, now, values);
    });
    __syncwarp(mask);
}

// For exited warps, join what the participants have observed: that may be later than the participants' new epoch.
DEVICE void join_ahead(u64 to, u64 from, u32 epoch) {
    u32 known[4];
    load_entries<4>(from, known);
    for (u32 j = 0; j < 4; ++j)
        if (known[j] >= epoch) raise32(to + 4 * j, known[j]);
}

// `started`: the barrier began a new interval. Otherwise it orders the participating warps up to `epoch`.
DEVICE void join_after(u64 slot, u32 me, u32 number, u32 epoch, bool started, u32 mask) {
    u32 parity = number & 1;
    u64 engine = engine_of(slot), full = FIELD(engine, Engine, full) + 4ull * CLOCK * (2 * rank_of(slot, me) + parity), row = own_vector(slot, me);
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        bool own_cta = i < MAX_WARPS && same_cta(slot, i, me >> 5);
        if (!own_cta || !started) join_entries(row + 4 * i, full + 4 * i);
        if (!own_cta) return;
        if (started) return join_ahead(row + 4 * i, full + 4 * i, epoch);
        for (u32 j = 0; j < 4; ++j)
            if (!was_without(slot, i + j, number)) raise32(row + 4 * (i + j), epoch);
    });
    if (lane_id() == __ffs(mask) - 1) store32(FIELD(engine, Engine, acquired) + 4 * (me >> 5), 0);
    __syncwarp(mask);
}
#endif

// The generation that a thread arrived at. The cluster barrier keeps its own: other barriers may come between its arrive and its wait.
DEVICE u64 generation_at(u64 thread, u32 id) {
    return id == CLUSTER_BARRIER ? THREAD_FIELD(thread, cluster_generation) : THREAD_FIELD(thread, generation);
}

// ---- synchronisation through strong accesses to shared memory (SEMANTICS section 3: release and acquire patterns) ----------
//
// A flag cell serves all granules that hash to it. For each warp it holds the latest epoch that a release pattern on them published.
// The deposit precedes the store, so a reader may take the edge before it has read the value: this errs towards silence. Edges are kept
// per warp: a lane releases and acquires for its whole warp.

DEVICE u32 flag_index(u64 slot, u32 address) { return (offset_of(slot, address) / 4 * 0x9E3779B1u) >> 26; }
DEVICE u64 flag_cell(u64 slot, u32 index, u32 set = 0) { return load64(FIELD(slot, Slot, flags)) + 4ull * VECTOR * (set * FLAG_CELLS + index); }

DEVICE void take_flag(u64 slot, u32 me, u32 index, u32 set = 0) {
    u64 cell = flag_cell(slot, index, set), row = own_vector(slot, me);
    each_chunk(slot, 0, 1, [&](u32 i) { join_entries(row + 4 * i, cell + 4 * i); });
}

// Keeps the newest warp barrier of each lane mask. A newer mask replaces the masks that it contains.
DEVICE void remember_sync(u64 thread, u32 mask, u32 epoch) {
    u32 place = WARP_SYNCS - 1;
    for (u32 i = 0; i < WARP_SYNCS; ++i) {
        u64 sync = load64(THREAD_WORD(thread, syncs, i));
        if (!sync || (high_word(sync) & ~mask) == 0) { place = i; break; }
    }
    store64(THREAD_WORD(thread, syncs, place), pack(epoch, mask));
}

COLD void report_not_in_mask(u64 slot, u64 state, u32 me, u32 site) {
    Caller c = {slot, state, me, site, 0, 0, 0};
    report(slot, make_finding(c, KIND_BARRIER_MISUSE, REASON_NOT_IN_MASK, 0));
}

// After bar.warp.sync: orders the lanes of the mask with each other (R-W1). A lane that its own mask lacks is ordered with nobody.
HOOK u64 __consan_warp_sync(u64 slot, u64 state, u32 me, u32 mask, u32 site) {
    if (!slot) return state;
    if (!(mask >> lane_id() & 1)) { report_not_in_mask(slot, state, me, site); return state; }
#if CONSAN_ENGINE
    u32 some = some_acquired(slot, me, mask);
#endif
    u32 epoch = maximum_over(mask, low_word(state)) + 1, existing = existing_lanes(slot, me);
    u64 thread = thread_record(slot, me);
    if ((mask & existing) == existing) store32(THREAD_FIELD(thread, warp_epoch), epoch);
    else remember_sync(thread, mask, epoch);
    set_warp_epoch(slot, me, epoch);
    epoch_moved(slot, me, low_word(state), epoch);
#if CONSAN_ENGINE
    if (__ballot_sync(mask, some)) share_acquired(slot, me, mask);
#endif
    return pack(epoch, high_word(state));
}
#endif

// A called function loads the caller's clock from the thread's record, and stores its own there when it returns.
HOOK u64 __consan_load_state(u64 slot, u32 me) { return slot ? load64(THREAD_FIELD(thread_record(slot, me), state)) : 0; }
HOOK void __consan_store_state(u64 slot, u64 state, u32 me) { if (slot) store64(THREAD_FIELD(thread_record(slot, me), state), state); }
