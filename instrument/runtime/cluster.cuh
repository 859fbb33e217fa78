// Clusters (R-CL, R-SCOPE, R-B8): edges between CTAs, and when a CTA may access the shared memory of another.
//
// All CTAs of a cluster share one slot. A CTA is one more set of threads: records, clocks and operations are the same, and thread numbers
// and offsets contain the rank. Barriers and the start of barrier intervals belong to one CTA.
// Scopes: an edge between two CTAs whose release or acquire is of .cta scope goes to separate clock entries (WIDE_*). They order
// nothing, but a race that they would have ordered is reported as `scope`. A fence of .cta scope after or before relaxed accesses,
// arrivals and waits makes such edges.
// Lifetime: start and exit of a CTA are events. A thread that accesses another CTA must be ordered after some event of it, or after a
// cluster barrier. When a CTA exits, the accesses of others to its memory must happen before the exit. Both are decided by clocks, not
// by the observed schedule. Execution order is enough for this, so relaxed arrivals and waits count, in entries of their own (EXECUTED).
#pragma once

#include "barrier.cuh"

#if CONSAN_CLUSTER
// ---- edges whose scope is too narrow -------------------------------------------------------------------------------------------

template <typename F> DEVICE void each_warp_chunk(u64 slot, u32 first, u32 step, F f) {
    for (u32 i = 4 * first; i < load32(FIELD(slot, Slot, warp_count)); i += 4 * step) f(i);
}

DEVICE void raise_to(u64 at, const u32 *wanted) {
    u32 now[4];
    load_entries<4>(at, now);
    raise_entries(at, now, wanted);
}

// Phases and fences are passed on at any scope: a race on the data itself already shows the narrow scope.
template <typename F> DEVICE void each_other_chunk(u64 slot, u32 first, u32 step, F f) {
    each_chunk(slot, first, step, [&](u32 i) { if (i >= MAX_WARPS) f(i); });
}

DEVICE void deposit_narrow(u64 slot, u64 row, u64 place, u32 me, u32 own, u32 start, bool some, u32 first, u32 step) {
    use_weak_edges(slot, WEAK_SCOPES);
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
    use_weak_edges(slot, WEAK_SCOPES);
    each_warp_chunk(slot, first, step, [&](u32 i) {
        u32 values[4];
        load_entries<4>(place + 4 * i, values);
        raise_to(row + 4 * (WIDE_WAITED + i), values);
    });
    each_other_chunk(slot, first, step, [&](u32 i) { join_entries(row + 4 * i, place + 4 * i); });
}

// ---- execution order ------------------------------------------------------------------------------------------------------------

// Four clock entries: epochs of warps learnt through any edge, synchronising or not.
template <typename F> DEVICE void known_anyhow(u32 *out, F entries) {
    entries(0, out);
#pragma unroll 1
    for (u32 block = WIDE_WAITED; block <= EXECUTED; block += MAX_WARPS) {
        u32 more[4];
        entries(block, more);
        for (u32 j = 0; j < 4; ++j) out[j] = max(out[j], more[j]);
    }
}

// A relaxed arrival at an mbarrier: its waiters execute after it.
DEVICE void deposit_executed(const Caller &c, u64 place, u32 own, u32 mask) {
    u64 row = own_vector(c.slot, c.me);
    bool some = some_acquired(c.slot, c.me, mask);
    use_weak_edges(c.slot, WEAK_ALL);
    each_warp_chunk(c.slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u32 values[4];
        known_anyhow(values, [&](u32 block, u32 *out) { published(c.slot, row, block + i, c.me, own, high_word(c.state), some, out); });
        raise_to(place + 4 * (EXECUTED + i), values);
    });
}

// A relaxed wait. It counts for the whole warp, which errs towards silence.
DEVICE void take_executed(u64 slot, u32 me, u64 place, u32 mask) {
    u64 row = own_vector(slot, me) + 4 * EXECUTED;
    use_weak_edges(slot, WEAK_ALL);
    each_warp_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        for (u32 others = 0; others < 2; ++others) {
            u64 from = place + others * (2 * CLOCK * 4) + 4 * i;
            u32 values[4];
            known_anyhow(values, [&](u32 block, u32 *out) { load_entries<4>(from + 4 * block, out); });
            raise_to(row + 4 * i, values);
        }
    });
}

// ---- the barrier of the cluster -------------------------------------------------------------------------------------------------

// fence.mbarrier_init: this thread's next cluster arrival publishes the mbarriers that it has initialised, even if it is relaxed.
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

// A relaxed arrival after fences. For threads of this CTA the last fence of any scope counts, for other CTAs the last fence of a wider
// scope. What only a fence of .cta scope covers is deposited apart (WIDE_ARRIVED).
DEVICE void deposit_fenced(u64 slot, u64 state, u32 me, u32 generation, u32 mask) {
    u64 thread = thread_record(slot, me);
    u32 released = maximum_over(mask, load32(THREAD_FIELD(thread, released))), wide = maximum_over(mask, load32(THREAD_FIELD(thread, released_wide)));
    if (wide) deposit_clock(slot, pack(wide, high_word(state)), me, CLUSTER_BARRIER, generation, mask);
    if (released <= wide) return;
    use_weak_edges(slot, WEAK_SCOPES);
    deposit_clock(slot, pack(released, high_word(state)), me, OWN_CTA_OF_CLUSTER, generation, mask);
    u64 place = deposit_place(slot, me, CLUSTER_BARRIER, generation), row = own_vector(slot, me);
    bool some = some_acquired(slot, me, mask);
    each_warp_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u32 values[4];
        published(slot, row, i, me, released, high_word(state), some, values);
        for (u32 j = 0; j < 4; ++j) raise64(place + 8 * (WIDE_ARRIVED + i + j), pack(values[j], generation + 1));
    });
}

// Whether the caller is ordered after a thread of its CTA that has passed the given or a later generation of the cluster barrier.
DEVICE bool knows_cluster_barrier(const Caller &c, u32 generation) {
    u32 shift = cta_shift(c.slot), first = c.me >> 5 >> shift << shift;
    for (u32 w = first; w < first + (1u << shift); ++w) {
        u64 wait = load64(cluster_wait_at(c.slot, w));
        if (wait && high_word(wait) >= generation && (w == c.me >> 5 || happens_before(c, w << 5, low_word(wait)))) return true;
    }
    return false;
}

// ---- accesses to another CTA ------------------------------------------------------------------------------------------------------

COLD void report_lifetime(Caller c, u32 reason) {
    report(c.slot, make_finding(c, KIND_LIFETIME, reason));
}

// Whether the caller has observed any event of another CTA.
DEVICE bool knows_of(const Caller &c, u32 rank) {
    u32 shift = cta_shift(c.slot), first = rank << shift, base = load32(FIELD(c.slot, Slot, base));
    if (knows_cluster_barrier(c, 1)) return true;
    for (u32 w = first; w < first + (1u << shift); ++w) {
        if (clock_entry(c.slot, c.me, w) >= base) return true;
        for (u32 block = WIDE_WAITED; block <= EXECUTED; block += MAX_WARPS)
            if (clock_entry(c.slot, c.me, block + w) >= base) return true;
    }
    return false;
}

DEVICE u64 visit_at(u64 slot, u32 warp, u32 rank) { return FIELD(slot, Slot, visits) + 8ull * (warp * MAX_CTAS + rank); }

// Notes the last visit of a warp. No atomic maximum: it would prefer the larger lane or site. Only lanes of that warp write here. Lanes of
// one instruction have the same site, and a lane of an older epoch does not overwrite a newer visit.
DEVICE void note_visit(u64 at, u64 visit) {
    if (high_word(load64(at)) <= high_word(visit)) store64(at, visit);
}

// An access to the shared memory of another CTA. A signal of an asynchronous operation to a remote mbarrier (ACCESS_ENGINE) is no visit: it
// is complete when the owner of the mbarrier has observed the phase.
COLD void visit(Caller c, u32 rank) {
    u64 started = FIELD(c.slot, Slot, started) + 4 * (c.me >> 5), visitors = FIELD(c.slot, Slot, visitors) + 4 * rank;
    u32 own = rank_of(c.slot, c.me);
    if (!(load32(started) >> rank & 1)) {
        if (knows_of(c, rank)) or32(started, 1u << rank);
        else report_lifetime(c, REASON_NOT_STARTED);
    }
    if (!(load32(visitors) >> own & 1)) or32(visitors, 1u << own);
    if (!(c.flags & ACCESS_ENGINE)) note_visit(visit_at(c.slot, c.me >> 5, rank), pack(c.site | (c.me & 31) << 16, low_word(c.state)));
    record_fence();
    if (load32(FIELD(c.slot, Slot, gone) + 4 * rank)) report_lifetime(c, REASON_AFTER_EXIT);
}

// Whether some thread of a CTA has learnt of an epoch of another CTA's warp, through any edge.
DEVICE bool cta_knows(u64 slot, u32 rank, u32 warp, u32 epoch) {
    u32 shift = cta_shift(slot), first = rank << shift, known = 0;
    for (u32 w = first; w < first + (1u << shift); ++w)
        for (u32 rows = 0; rows < 2; ++rows) {
            u64 row = clock_row(slot, w + rows * MAX_WARPS) + 4 * warp;
            known = max(known, load32(row));
            for (u32 block = WIDE_WAITED; block <= EXECUTED; block += MAX_WARPS) known = max(known, load32(row + 4 * block));
        }
    if (epoch <= known) return true;
    // A relaxed arrival at the cluster barrier publishes nothing, but its waiters do not exit before it.
    u64 arrival = load64(FIELD(slot, Slot, cluster_arrivals) + 8 * warp);
    if (!arrival || epoch > low_word(arrival)) return false;
    for (u32 w = first; w < first + (1u << shift); ++w)
        if (high_word(load64(cluster_wait_at(slot, w))) >= high_word(arrival)) return true;
    return false;
}
#endif
