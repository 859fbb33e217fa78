// CTA barriers, named and partial barriers, warp barriers (SEMANTICS 2.8).
//
// CONSAN_PARTIAL=0: a whole-CTA barrier is `state += (1, 1)` inline in the kernel; only the scrub needs a call.
// CONSAN_PARTIAL=1: own epochs differ between warps. A whole-CTA barrier aligns them again: every warp deposits its epoch in
// full_epoch[parity] before the real barrier and takes the maximum after it. Two parities suffice: nobody can deposit for
// barrier n + 2 before all have left barrier n + 1, hence have read n. Partial barriers deposit and collect vector clocks,
// tagged with the generation of the barrier; the tag makes a deposit of a later generation replace an older one.
#pragma once

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

#if CONSAN_ENGINE
COLD void wait_at_barrier(u64 slot, u64 state, u32 me, u32 id, u32 number, u32 needed, u32 site, u32 mask);
COLD void barrier_passed(u64 slot, u64 state, u32 me, bool main, u32 mask);
#endif

// The generation that a thread came to: between its arrival at the barrier of the cluster and its wait there may be others.
DEVICE u64 generation_at(u64 thread, u32 id) {
    return id == CLUSTER_BARRIER ? THREAD_FIELD(thread, cluster_generation) : THREAD_FIELD(thread, generation);
}

// Before the real barrier; for bar.arrive, a source of edges that never waits, the only hook. `waits`: a deadlock could be proven here.
HOOK u64 __consan_barrier_before(u64 slot, u64 state, u32 me, u32 id, u32 count, u32 site, u32 waits) {
    if (!slot) return state;
    u64 thread = thread_record(slot, me);
    u32 mask = lanes_alike(site);
    if (count == ALL_THREADS) {
        u32 number = load32(THREAD_FIELD(thread, full_barriers)), parity = number & 1, epoch = maximum_over(mask, low_word(state));
        if (lane_id() == __ffs(mask) - 1) raise32(FIELD(slot, Slot, full_epoch) + 4 * (2 * rank_of(slot, me) + parity), epoch);
#if CONSAN_ENGINE
        join_before(slot, me, parity, mask);
        if (waits) wait_at_barrier(slot, state, me, id, number, 0, site, mask);
#endif
        return state;
    }
    // The generation cannot move on before this warp has been counted, so what is read here is the one that it belongs to.
    u32 generation = high_word(load64(FIELD(slot, Slot, named) + 8 * named_place(slot, me, id)));
    u32 needed = count == ALL_MIXED ? all_threads(slot, id) : warp_rounded(count);
    store32(generation_at(thread, id), generation);
    state = together(state, mask);
    u32 stranger = id < CLUSTER_BARRIER ? stranger_of_last_round(slot, state, me, id, generation, mask) : 0;
    deposit_clock(slot, state, me, id, generation, mask);
    __syncwarp(mask);
    if (lane_id() == __ffs(mask) - 1 && warp_arrives(slot, me, id, mask)) {
#if CONSAN_ENGINE
        if (id == CLUSTER_BARRIER) count_at_cluster(slot, 32, 0);
        else
#endif
        count_arrival(slot, state, me, site, id, needed, generation, stranger);
    }
    // The chip's barrier wants the warp together, and so do the proof of a deadlock and who leaves it.
    __syncwarp(mask);
    state = advance(slot, state, me);
#if CONSAN_ENGINE
    if (waits) wait_at_barrier(slot, state, me, id, generation, needed, site, mask);
#endif
    return state;
}

#if CONSAN_CLUSTER
DEVICE void note_cluster_arrival(u64 slot, u64 state, u32 me);
DEVICE void note_cluster_wait(u64 slot, u64 state, u32 me);
DEVICE void deposit_fenced(u64 slot, u64 state, u32 me, u32 generation, u32 mask);
#endif

#if CONSAN_ENGINE
// barrier.cluster.arrive: a barrier of all threads whose two halves are two instructions. A relaxed arrival counts, and publishes what
// the thread's last fence covers.
HOOK u64 __consan_cluster_arrive(u64 slot, u64 state, u32 me, u32 site, u32 relaxed) {
    if (!slot) return state;
#if CONSAN_CLUSTER
    note_cluster_arrival(slot, state, me);
#endif
    if (!relaxed) return __consan_barrier_before(slot, state, me, CLUSTER_BARRIER, ALL_MIXED, site, 0);
    u32 mask = lanes_alike(site), generation = high_word(load64(FIELD(slot, Slot, named) + 8 * named_place(slot, me, CLUSTER_BARRIER)));
    store32(generation_at(thread_record(slot, me), CLUSTER_BARRIER), generation);
#if CONSAN_CLUSTER
    deposit_fenced(slot, state, me, generation, mask);
    record_fence();  // the real arrival is relaxed: without this its waiters could come before what it leaves here
#else
    u32 released = maximum_over(mask, load32(THREAD_FIELD(thread_record(slot, me), released)));
    if (released) deposit_clock(slot, pack(released, high_word(state)), me, CLUSTER_BARRIER, generation, mask);
#endif
    __syncwarp(mask);
    if (lane_id() == __ffs(mask) - 1 && warp_arrives(slot, me, CLUSTER_BARRIER, mask)) count_at_cluster(slot, 32, 0);
    __syncwarp(mask);
    return advance(slot, together(state, mask), me);
}
#endif

// After the real barrier (sync and red).
HOOK u64 __consan_barrier_after(u64 slot, u64 state, u32 me, u32 id, u32 count) {
    if (!slot) return state;
    u64 thread = thread_record(slot, me);
    u32 mask = lanes_alike(count << 8 ^ id);
    if (count == ALL_THREADS) {
        u32 number = load32(THREAD_FIELD(thread, full_barriers)), epoch = load32(FIELD(slot, Slot, full_epoch) + 4 * (2 * rank_of(slot, me) + (number & 1))) + 1;
#if CONSAN_ENGINE
        bool started = !__any_sync(mask, was_without_some(slot, me, number));
        u32 start = started ? epoch : high_word(state);
#else
        u32 start = epoch;
#endif
        store32(THREAD_FIELD(thread, full_barriers), number + 1);
        store32(THREAD_FIELD(thread, warp_epoch), epoch);
        if (lane_id() == __ffs(mask) - 1) set_warp_epoch(slot, me, epoch);
        epoch_moved(slot, me, low_word(state), epoch);
#if CONSAN_ENGINE
        join_after(slot, me, number, epoch - 1, started, mask);
        barrier_passed(slot, pack(epoch, start), me, id == 0, mask);
#endif
        return pack(epoch, start);
    }
    collect_clock(slot, me, id, load32(generation_at(thread, id)), mask);
#if CONSAN_CLUSTER
    if (id == CLUSTER_BARRIER) {
        if (weak_edges(slot)) collect_clock(slot, me, OWN_CTA_OF_CLUSTER, load32(generation_at(thread, id)), mask);
        note_cluster_wait(slot, state, me);
    }
#endif
    // Lanes may have come to the barrier in several groups, of different epochs: all go on from the latest.
    u32 epoch = max(low_word(state), load32(FIELD(slot, Slot, epochs) + 4 * (me >> 5)));
    store32(THREAD_FIELD(thread, warp_epoch), epoch);
    epoch_moved(slot, me, low_word(state), epoch);
    state = pack(epoch, high_word(state));
    __syncwarp(mask);  // each lane has collected a share of what all of them are about to use
#if CONSAN_ENGINE
    barrier_passed(slot, state, me, false, mask);
#endif
    return state;
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
// In clusters a flag has one clock for all, and one for each CTA's own threads (set 1 and up). What is of .cta scope crosses to other
// CTAs as an edge that is too narrow only (the fields of a flag's word: bit 0 releases or acquires, bit 1 .cta scope).
DEVICE void deposit_narrow(u64 slot, u64 row, u64 place, u32 me, u32 own, u32 start, bool some, u32 first, u32 step);
DEVICE void take_narrow(u64 slot, u64 row, u64 place, u32 first, u32 step);
#define FLAG_CTA 2u

// The same at a scope: what there is for threads of this CTA, and for all.
DEVICE void take_flag_at(u64 slot, u32 me, u32 index, bool narrow) {
    take_flag(slot, me, index, 1 + rank_of(slot, me));
    if (narrow) take_narrow(slot, own_vector(slot, me), flag_cell(slot, index), 0, 1);
    else take_flag(slot, me, index);
}
#endif

// Before a strong store or atomic. It publishes what precedes it if it releases, else what precedes this thread's last fence.
HOOK u64 __consan_flag_write(u64 slot, u64 state, u32 me, u32 address, u32 releases) {
    if (!slot) return state;
    u64 thread = thread_record(slot, me);
#if CONSAN_CLUSTER
    bool narrow = releases & FLAG_CTA;
    releases &= 1;
#endif
    u32 released = releases ? low_word(state) : load32(THREAD_FIELD(thread, released));
    if (!released) return state;
    u64 row = own_vector(slot, me);
    bool some = some_acquired(slot, me, 1u << (me & 31));
    u32 index = flag_index(slot, address), set = 0;
#if CONSAN_CLUSTER
    // To other CTAs goes what a wider fence covers, or the release itself; in front of that what the scope is too narrow for.
    u32 near = released, wide = narrow ? 0 : releases ? released : load32(THREAD_FIELD(thread, released_wide));
    if (wide < near) deposit_narrow(slot, row, flag_cell(slot, index), me, near, high_word(state), some, 0, 1);
    for (set = wide ? 0 : 1 + rank_of(slot, me); set != ~0u; set = set ? ~0u : 1 + rank_of(slot, me)) {
        released = set ? near : wide;
#endif
    u64 cell = flag_cell(slot, index, set);
    each_chunk(slot, 0, 1, [&](u32 i) {
        u32 now[4], values[4];
        load_entries<4>(cell + 4 * i, now);
        published(slot, row, i, me, released, high_word(state), some, values);
        raise_entries(cell + 4 * i, now, values);
    });
#if CONSAN_CLUSTER
    }
    if (!releases) record_fence();  // the fence that makes the store a release came before this
#endif
    return releases ? advance(slot, state, me) : state;
}

// After a strong load or atomic. It takes what was published if it acquires, else this thread's next fence does.
HOOK void __consan_flag_read(u64 slot, u32 me, u32 address, u32 acquires) {
    if (!slot) return;
    u32 index = flag_index(slot, address);
    u64 thread = thread_record(slot, me), seen = THREAD_FIELD(thread, flags_read);
#if CONSAN_CLUSTER
    bool narrow = acquires & FLAG_CTA;
    if (acquires & 1) return take_flag_at(slot, me, index, narrow);
    if (narrow) seen = THREAD_FIELD(thread, flags_read_near);
#else
    if (acquires) return take_flag(slot, me, index);
#endif
    store64(seen, load64(seen) | 1ull << index);
}

#if CONSAN_ENGINE
DEVICE void take_relaxed_wait(u64 slot, u32 me, u64 thread, bool narrow);
#endif

// What strong loads have read that acquire nothing themselves.
#if CONSAN_CLUSTER
DEVICE void take_flags_read(u64 slot, u32 me, u64 thread, bool narrow) {
    u64 wide = load64(THREAD_FIELD(thread, flags_read)), near = load64(THREAD_FIELD(thread, flags_read_near));
    for (u64 seen = wide | near; seen; seen &= seen - 1) {
        u32 index = __ffsll(seen) - 1;
        take_flag_at(slot, me, index, narrow || !(wide >> index & 1));
    }
    store64(THREAD_FIELD(thread, flags_read_near), 0);
    if (!narrow) store64(THREAD_FIELD(thread, flags_read), 0);  // else a wider fence may follow
}

// `narrow`: of .cta scope.
HOOK u64 __consan_fence(u64 slot, u64 state, u32 me, u32 narrow) {
#else
DEVICE void take_flags_read(u64 slot, u32 me, u64 thread, bool) {
    for (u64 seen = load64(THREAD_FIELD(thread, flags_read)); seen; seen &= seen - 1) take_flag(slot, me, __ffsll(seen) - 1);
    store64(THREAD_FIELD(thread, flags_read), 0);
}

HOOK u64 __consan_fence(u64 slot, u64 state, u32 me) {
    constexpr bool narrow = false;
#endif
    if (!slot) return state;
    u64 thread = thread_record(slot, me);
#if CONSAN_ENGINE
    take_relaxed_wait(slot, me, thread, narrow);
#endif
    take_flags_read(slot, me, thread, narrow);
    store32(THREAD_FIELD(thread, released), low_word(state));
#if CONSAN_CLUSTER
    if (!narrow) store32(THREAD_FIELD(thread, released_wide), low_word(state));
#endif
    return advance(slot, state, me);
}

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
