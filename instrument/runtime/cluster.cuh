// Clusters (SEMANTICS 2.6, 2.7, 2.9): edges between CTAs, what a CTA may touch of another and when, multicast.
//
// All CTAs of a cluster share one slot, so a CTA is one more set of threads: records, clocks and operations are the same, with the rank
// in a thread's number and in an offset. What is of one CTA only: its barriers, and the start of its barrier intervals.
// Scopes: an edge between two CTAs whose release or acquire is of .cta scope goes to clock entries of its own (WIDE_*). They order
// nothing; a race that they would have ordered is told as one of scope.
// Lifetime: start and exit of a CTA are events. Who touches another CTA must know of something that happened in it (or of a barrier of
// the cluster); when a CTA ends, it must know of all that others have done to it. Both are asked of clocks, not of the moment.
#pragma once

#if CONSAN_CLUSTER
// ---- edges of too narrow a scope ----------------------------------------------------------------------------------------------

template <typename F> DEVICE void each_warp_chunk(u64 slot, u32 first, u32 step, F f) {
    for (u32 i = 4 * first; i < load32(FIELD(slot, Slot, warp_count)); i += 4 * step) f(i);
}

DEVICE void raise_to(u64 at, const u32 *wanted) {
    u32 now[4];
    load_entries<4>(at, now);
    raise_entries(at, now, wanted);
}

// Phases and fences are handed on whatever the scope: a race of the data itself tells enough.
template <typename F> DEVICE void each_other_chunk(u64 slot, u32 first, u32 step, F f) {
    each_chunk(slot, first, step, [&](u32 i) { if (i >= MAX_WARPS) f(i); });
}

DEVICE void deposit_narrow(u64 slot, u64 row, u64 place, u32 me, u32 own, u32 start, bool some, u32 first, u32 step) {
    each_warp_chunk(slot, first, step, [&](u32 i) {
        u32 values[4];
        published(slot, row, i, me, own, start, some, values);
        raise_to(place + 4 * (WIDE_ARRIVED + i), values);
    });
    each_other_chunk(slot, first, step, [&](u32 i) {
        u32 values[4];
        published(slot, row, i, me, own, start, some, values);
        raise_to(place + 4 * i, values);
    });
}

DEVICE void take_narrow(u64 slot, u64 row, u64 place, u32 first, u32 step) {
    each_warp_chunk(slot, first, step, [&](u32 i) {
        u32 values[4];
        load_entries<4>(place + 4 * i, values);
        raise_to(row + 4 * (WIDE_WAITED + i), values);
    });
    each_other_chunk(slot, first, step, [&](u32 i) { join_entries(row + 4 * i, place + 4 * i); });
}

// ---- the barrier of the cluster -------------------------------------------------------------------------------------------------

// fence.mbarrier_init: barriers that this thread has initialised are published by its next arrival, whatever that one's semantics.
HOOK void __consan_fence_inits(u64 slot, u64 state, u32 me) {
    if (slot) store32(THREAD_FIELD(thread_record(slot, me), inits_fenced), low_word(state) + 1);
}

COLD void publish_inits(u64 slot, u32 me, u32 fenced, u32 generation) {
    u64 engine = engine_of(slot);
    u32 count = min(load32(FIELD(engine, Engine, barrier_count)), MBARRIERS);
    for (u32 i = 0; i < count; ++i) {
        u64 at = mbarrier_at(engine, i);
        if (load32(FIELD(at, MBarrier, thread)) != me || load32(FIELD(at, MBarrier, epoch)) >= fenced || load32(FIELD(at, MBarrier, published))) continue;
        store32(FIELD(at, MBarrier, published), generation);
    }
}

DEVICE u64 cluster_wait_at(u64 slot, u32 warp) { return FIELD(slot, Slot, cluster_waits) + 8 * warp; }

DEVICE void note_cluster_arrival(u64 slot, u64 state, u32 me) {
    u32 generation = high_word(load64(FIELD(slot, Slot, named) + 8 * CLUSTER_BARRIER)) + 1, fenced = load32(THREAD_FIELD(thread_record(slot, me), inits_fenced));
    if (fenced) publish_inits(slot, me, fenced, generation);
    raise64(FIELD(slot, Slot, cluster_arrivals) + 8 * (me >> 5), pack(low_word(state), generation));
}

DEVICE void note_cluster_wait(u64 slot, u64 state, u32 me) {
    u32 generation = load32(generation_at(thread_record(slot, me), CLUSTER_BARRIER)) + 1;
    raise64(cluster_wait_at(slot, me >> 5), pack(low_word(state), generation));
}

// Whether the caller comes after a thread of its CTA that has passed the cluster's barrier of that generation, or a later one.
DEVICE bool knows_cluster_barrier(const Caller &c, u32 generation) {
    u32 shift = cta_shift(c.slot), first = c.me >> 5 >> shift << shift;
    for (u32 w = first; w < first + (1u << shift); ++w) {
        u64 wait = load64(cluster_wait_at(c.slot, w));
        if (wait && high_word(wait) >= generation && (w == c.me >> 5 || ordered(c, w << 5, low_word(wait)))) return true;
    }
    return false;
}

// ---- what one CTA does to another -------------------------------------------------------------------------------------------------

COLD void report_lifetime(Caller c, u32 reason) {
    Finding f = make_finding(c, KIND_LIFETIME, HAZARD_NONE, 0, c.me, 0);
    f.reason = reason; f.flags = 0;
    report(c.slot, f);
}

// Whether the caller knows of anything that happened in another CTA.
DEVICE bool knows_of(const Caller &c, u32 rank) {
    u32 shift = cta_shift(c.slot), first = rank << shift, base = load32(FIELD(c.slot, Slot, base));
    if (knows_cluster_barrier(c, 1)) return true;
    for (u32 w = first; w < first + (1u << shift); ++w)
        if (clock_entry(c.slot, c.me, w) >= base || clock_entry(c.slot, c.me, WIDE_WAITED + w) >= base || clock_entry(c.slot, c.me, WIDE_ARRIVED + w) >= base) return true;
    return false;
}

DEVICE u64 visit_at(u64 slot, u32 warp, u32 rank) { return FIELD(slot, Slot, visits) + 8ull * (warp * MAX_CTAS + rank); }

// An access to the shared memory of another CTA. What signals of asynchronous operations and relaxed arrivals do to a barrier is over
// when its owner has observed the phase.
COLD void visit(Caller c, u32 rank) {
    u64 started = FIELD(c.slot, Slot, started) + 4 * (c.me >> 5), visitors = FIELD(c.slot, Slot, visitors) + 4 * rank;
    u32 own = rank_of(c.slot, c.me);
    if (!(load32(started) >> rank & 1)) {
        if (knows_of(c, rank)) or32(started, 1u << rank);
        else report_lifetime(c, REASON_NOT_STARTED);
    }
    if (!(load32(visitors) >> own & 1)) or32(visitors, 1u << own);
    if (!(c.flags & ACCESS_ENGINE)) raise64(visit_at(c.slot, c.me >> 5, rank), pack(c.site | (c.me & 31) << 16, low_word(c.state)));
    record_fence();
    if (load32(FIELD(c.slot, Slot, gone) + 4 * rank)) report_lifetime(c, REASON_AFTER_EXIT);
}

// Whether some thread of a CTA knows of an epoch of another CTA's warp, by an edge of any scope.
DEVICE bool cta_knows(u64 slot, u32 rank, u32 warp, u32 epoch) {
    u32 shift = cta_shift(slot), first = rank << shift, known = 0;
    for (u32 w = first; w < first + (1u << shift); ++w)
        for (u32 rows = 0; rows < 2; ++rows) {
            u64 row = clock_row(slot, w + rows * MAX_WARPS) + 4 * warp;
            known = max(max(known, load32(row)), max(load32(row + 4 * WIDE_WAITED), load32(row + 4 * WIDE_ARRIVED)));
        }
    if (epoch <= known) return true;
    // A relaxed arrival publishes nothing, but who waits for it does not end before.
    u64 arrival = load64(FIELD(slot, Slot, cluster_arrivals) + 8 * warp);
    if (!arrival || epoch > low_word(arrival)) return false;
    for (u32 w = first; w < first + (1u << shift); ++w)
        if (high_word(load64(cluster_wait_at(slot, w))) >= high_word(arrival)) return true;
    return false;
}

DEVICE void check_operations_at_exit(u64 slot, u64 state);

// By the last thread of a CTA: what others have done to its memory must be over, and known.
DEVICE void cta_exits(u64 slot, u64 state) {
    u32 rank = cluster_rank(), warps = load32(FIELD(slot, Slot, warp_count)), base = load32(FIELD(slot, Slot, base));
    store32(FIELD(slot, Slot, gone) + 4 * rank, 1);
    record_fence();
    if (verdict_of(slot) & VERDICT_LEAVE) return;
    check_operations_at_exit(slot, state);
    if (!load32(FIELD(slot, Slot, visitors) + 4 * rank)) return;
    for (u32 w = 0; w < warps; ++w) {
        u64 visit = load64(visit_at(slot, w, rank));
        u32 epoch = high_word(visit);
        if (w >> cta_shift(slot) == rank || !visit || epoch < base || cta_knows(slot, rank, w, epoch)) continue;
        Caller c = {slot, state, w << 5 | (low_word(visit) >> 16 & 31), low_word(visit) & 0xffff, 0, rank * cta_bytes(slot), 0};
        report_lifetime(c, REASON_AFTER_EXIT);
    }
}

// ---- multicast ----------------------------------------------------------------------------------------------------------------------

// A copy to the same place in each CTA of a mask; each signals the barrier at the same place in its CTA, or with `pairs`
// (.cta_group::2) in the CTA of its pair whose rank has the parity of the given barrier's.
HOOK void __consan_bulk_multicast(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes, u32 mbarrier, u32 kind, u32 mask, u32 pairs) {
    if (!slot) return;
    u32 inside = address & (1u << ADDRESS_RANK) - 1, signalled = mbarrier & (1u << ADDRESS_RANK) - 1;
#pragma unroll 1
    for (u32 ranks = mask & 0xffff; ranks; ranks &= ranks - 1) {
        u32 rank = __ffs(ranks) - 1, to = pairs ? (rank & ~1u) | (mbarrier >> ADDRESS_RANK & 1) : rank;
        __consan_bulk_load(slot, state, me, rank << ADDRESS_RANK | inside, sites, bytes, to << ADDRESS_RANK | signalled, kind);
    }
}

// cp.async.bulk from this CTA's shared memory to another's: the barrier over there tells that the source was read, too.
HOOK void __consan_bulk_push(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes, u32 mbarrier, u32 source) {
    if (!slot) return;
    u64 engine = engine_of(slot);
    Caller c = {slot, state, me, sites & 0xffff, ACCESS_READ | ACCESS_ENGINE, 0, bytes};
    Operation o = new_operation(c, OPERATION_BULK_SOURCE, sites >> 16);
    u32 index = find_barrier(engine, offset_of(slot, mbarrier));
    if (index != NO_BARRIER) {
        o.barrier = index; o.phase = state_phase(load64(mbarrier_at(engine, index)));
        if (bulk_range(c, o, source, bytes)) issue(c, o);
    }
    __consan_bulk_load(slot, state, me, address, sites, bytes, mbarrier, OPERATION_BULK_LOAD);
}
#endif
