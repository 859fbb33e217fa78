// CTA barriers, named and partial barriers, warp barriers (SEMANTICS 2.8).
//
// CONSAN_PARTIAL=0: a whole-CTA barrier is `state += (1, 1)` inline in the kernel; only the scrub needs a call.
// CONSAN_PARTIAL=1: own epochs differ between warps. A whole-CTA barrier aligns them again: every warp deposits its epoch in
// full_epoch[parity] before the real barrier and takes the maximum after it. Two parities suffice: nobody can deposit for
// barrier n + 2 before all have left barrier n + 1, hence have read n. Partial barriers deposit and collect vector clocks,
// tagged with the generation of the barrier; the tag makes a deposit of a later generation replace an older one.
#pragma once

#include "access.cuh"

#define ALL_THREADS 0xffffffffu  // every thread of the CTA takes part, and waits
#define ALL_MIXED 0xfffffffeu    // every thread takes part, but some may only arrive
#define CLUSTER_BARRIER 16u
#define OWN_CTA_OF_CLUSTER 17u  // no barrier: what arrivals at the cluster's publish within a CTA only

DEVICE u32 warp_rounded(u32 threads) { return (threads + 31) & ~31u; }

// A barrier's place in the tables: that of the CTA, or for the barrier of the cluster the first one's.
DEVICE u32 named_place(u64 slot, u32 me, u32 id) {
    u32 place = id % NAMED_BARRIERS;
    return place == CLUSTER_BARRIER ? place : rank_of(slot, me) * NAMED_BARRIERS + place;
}

// Threads that a barrier of all of them waits for.
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
    Finding f = make_finding(c, KIND_BARRIER_MISUSE, HAZARD_NONE, other_site, other, 0);
    f.reason = reason; f.flags = 0; f.group = id;
    report(slot, f);
}

DEVICE bool lanes_missing(u64 slot, u32 me, u32 here) {
    return existing_lanes(slot, me) & ~load32(FIELD(slot, Slot, exited) + 4 * (me >> 5)) & ~here;
}

// Whether these lanes complete their warp's arrival. A warp may come to the hook in several groups of lanes, although the
// barrier itself waits for all of them; it counts once, when its last lane that has not exited is there.
DEVICE bool warp_arrives(u64 slot, u32 me, u32 id, u32 mask) {
    u64 at = FIELD(slot, Slot, named_lanes) + 4 * ((id % NAMED_BARRIERS) * MAX_WARPS + (me >> 5));
    u32 before = or32(at, mask);
    if (lanes_missing(slot, me, before | mask)) {
        raise32(FIELD(slot, Slot, lanes_left), 1);
        record_fence();  // who ends now sees these lanes, or is seen here
        if (lanes_missing(slot, me, before | mask)) return false;
    }
    return (and32(at, ~(before | mask)) & mask) != 0;
}

// A warp's arrival at a partial barrier. The word holds the generation, the threads arrived, and the count that the first of
// them gave: all that meet at a barrier must give the same (ISA "bar").
// `stranger`: 1 + a thread of the last round that this arrival does not come after.
DEVICE void count_arrival(u64 slot, u64 state, u32 me, u32 site, u32 id, u32 count, u32 noted, u32 stranger) {
    u64 at = FIELD(slot, Slot, named) + 8 * named_place(slot, me, id), old = load64(at);
    u64 sites = FIELD(slot, Slot, named_sites) + 4 * named_place(slot, me, id);
    for (;;) {
        u32 arrived = low_word(old) & 0xffff, wanted = arrived ? low_word(old) >> 16 : count, generation = high_word(old);
        u64 next = arrived + 32 >= wanted ? pack(0, generation + 1) : pack(arrived + 32 | wanted << 16, generation);
        u64 seen = swap64(at, old, next);
        if (seen != old) { old = seen; continue; }
        if (generation != noted && !stranger) stranger = me + 1;
        if (stranger) {
            u32 first = load32(sites);  // not there yet, if its warp came here together with this one
            report_named(slot, state, me, site, id, REASON_SHARED_ID, first ? first : site, stranger - 1);
        }
        if (!arrived) store32(sites, site);
        else if (wanted != count) report_named(slot, state, me, site, id, REASON_COUNTS_DISAGREE, load32(sites), me);
        return;
    }
}

#if CONSAN_ENGINE
// A warp arrives at the barrier of the cluster (of one CTA, where there is none), or ends: no round waits for those. Where other barriers keep
// the count, this one's word has the threads that have ended; it is one word, so that of an arrival and an end the later one completes the round.
// `arrived_at`: the generation that a warp which ends has been counted in, or 0; if it is not over, it is one of those that have ended there.
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

// Lanes of a warp have ended and left `living` ones. They may have been what the others of the warp were short of.
COLD void end_at_cluster(u64 slot, u32 me, u32 living) {
    u64 at = FIELD(slot, Slot, named_lanes) + 4 * (CLUSTER_BARRIER * MAX_WARPS + (me >> 5));
    record_fence();  // as in warp_arrives
    u32 here = load32(at);
    if (living) {
        if (here && !(living & ~here) && and32(at, ~here) & living) count_at_cluster(slot, 32, 0);
        return;
    }
    // Lanes that came and ended with some of their warp missing have not been counted. Generations of a CTA begin above those of earlier ones.
    count_at_cluster(slot, 0, 32, here ? 0 : load32(THREAD_FIELD(thread_record(slot, me), cluster_generation)));
}
#endif

// A release: what this warp did so far is one epoch, what follows is the next.
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

// A round of a barrier must be over, for all that came to it, before anybody comes to the next one; a warp that does not know that could
// as well have been taken for part of the last round (R-BAR3). Returns 1 + a thread of whose arrival the caller's warp does not know.
DEVICE u32 stranger_of_last_round(u64 slot, u64 state, u32 me, u32 id, u32 generation, u32 mask) {
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
// ---- warps that end ---------------------------------------------------------------------------------------------------------------
//
// A barrier of all threads does not wait for threads that have ended, and orders nothing of theirs (ISA "bar": of the participating
// threads). Where a warp ends with accesses that no such barrier is behind, the barriers that follow in its CTA begin no new interval: they
// order the warps that are there, entry by entry, and of others what is known of them in another way.
// The words hold the CTA's base above, so that those of an earlier CTA count for nothing; below, how many barriers of all threads the warp
// has passed (and one, or the complement, since the fewest is looked for).

DEVICE u64 end_of(u64 slot, u32 warp) { return FIELD(engine_of(slot), Engine, ended) + 8 * warp; }
DEVICE u64 first_end(u64 slot, u32 me) { return FIELD(engine_of(slot), Engine, first_end) + 8 * rank_of(slot, me); }

// Whether the `number`th barrier has been without a warp that has something to be ordered: one of its CTA, or that one.
DEVICE bool was_without_some(u64 slot, u32 me, u32 number) {
    u64 word = load64(first_end(slot, me));
    return high_word(word) == load32(FIELD(slot, Slot, base)) && low_word(word) && ~low_word(word) <= number;
}
DEVICE bool was_without(u64 slot, u32 warp, u32 number) {
    u64 word = load64(end_of(slot, warp));
    return high_word(word) == load32(FIELD(slot, Slot, base)) && low_word(word) && low_word(word) - 1 <= number;
}

// Lanes `mask` of a warp, the last ones of it, end. `touched`: since the last barrier the warp has accessed shared memory.
DEVICE void note_end(u64 slot, u32 me, bool touched) {
    if (!touched) return;
    u32 passed = load32(THREAD_FIELD(thread_record(slot, me), full_barriers)), base = load32(FIELD(slot, Slot, base));
    store64(end_of(slot, me >> 5), pack(passed + 1, base));
    raise64(first_end(slot, me), pack(~passed, base));
}

// A barrier of the whole CTA orders all accesses by epochs alone; what proxy fences have passed and which phases were observed is
// joined through a row of the CTA, of two parities like full_epoch. So is what is known of warps, for those that have ended.
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

// Of warps that are not there, since they have ended: what those that are there know of them may be later than their own new epoch.
DEVICE void join_ahead(u64 to, u64 from, u32 epoch) {
    u32 known[4];
    load_entries<4>(from, known);
    for (u32 j = 0; j < 4; ++j)
        if (known[j] >= epoch) raise32(to + 4 * j, known[j]);
}

// `started`: the barrier has begun a new interval, else the warps that came to it are ordered up to `epoch`.
DEVICE void join_after(u64 slot, u32 me, u32 number, u32 epoch, bool started, u32 mask) {
    u32 parity = number & 1;
    u64 engine = engine_of(slot), full = FIELD(engine, Engine, full) + 4ull * CLOCK * (2 * rank_of(slot, me) + parity), row = own_vector(slot, me);
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        bool near = i < MAX_WARPS && same_cta(slot, i, me >> 5);
        if (!near || !started) join_entries(row + 4 * i, full + 4 * i);
        if (!near) return;
        if (started) return join_ahead(row + 4 * i, full + 4 * i, epoch);
        for (u32 j = 0; j < 4; ++j)
            if (!was_without(slot, i + j, number)) raise32(row + 4 * (i + j), epoch);
    });
    if (lane_id() == __ffs(mask) - 1) store32(FIELD(engine, Engine, acquired) + 4 * (me >> 5), 0);
    __syncwarp(mask);
}
#endif

// The generation that a thread came to: between its arrival at the barrier of the cluster and its wait there may be others.
DEVICE u64 generation_at(u64 thread, u32 id) {
    return id == CLUSTER_BARRIER ? THREAD_FIELD(thread, cluster_generation) : THREAD_FIELD(thread, generation);
}

// ---- synchronisation through strong accesses to shared memory (SEMANTICS 2.3, release and acquire patterns) ----------------
//
// A flag cell stands for the granules that hash to it, and holds for each warp the latest epoch that a release pattern on them
// published. The deposit precedes the store, so a reader that has not seen the value yet may already take the edge: the bound
// errs towards silence. Edges are kept per warp: a lane publishes, and takes, for its whole warp.

DEVICE u32 flag_index(u64 slot, u32 address) { return (offset_of(slot, address) / 4 * 0x9E3779B1u) >> 26; }
DEVICE u64 flag_cell(u64 slot, u32 index, u32 set = 0) { return load64(FIELD(slot, Slot, flags)) + 4ull * VECTOR * (set * FLAG_CELLS + index); }

DEVICE void take_flag(u64 slot, u32 me, u32 index, u32 set = 0) {
    u64 cell = flag_cell(slot, index, set), row = own_vector(slot, me);
    each_chunk(slot, 0, 1, [&](u32 i) { join_entries(row + 4 * i, cell + 4 * i); });
}

#if CONSAN_CLUSTER
#define FLAG_CTA 2u
#endif

// Keeps the newest barrier of each set of lanes; a set that a newer one contains is dropped with it.
DEVICE void remember_sync(u64 thread, u32 mask, u32 epoch) {
    u32 place = WARP_SYNCS - 1;
    for (u32 i = 0; i < WARP_SYNCS; ++i) {
        u64 sync = load64(THREAD_WORD(thread, syncs, i));
        if (!sync || (high_word(sync) & ~mask) == 0) { place = i; break; }
    }
    store64(THREAD_WORD(thread, syncs, place), pack(epoch, mask));
}

// After bar.warp.sync: orders the lanes of the mask with each other.
HOOK u64 __consan_warp_sync(u64 slot, u64 state, u32 me, u32 mask) {
    if (!slot) return state;
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

// A called function finds the caller's clock in the thread's record, and leaves its own there.
HOOK u64 __consan_load_state(u64 slot, u32 me) { return slot ? load64(THREAD_FIELD(thread_record(slot, me), state)) : 0; }
HOOK void __consan_store_state(u64 slot, u64 state, u32 me) { if (slot) store64(THREAD_FIELD(thread_record(slot, me), state), state); }
