// Hooks of mbarrier operations: life cycle, arrivals, waits (R-M1 to R-M14).
#pragma once

#include "access_hooks.cuh"
#include "waits.cuh"

#if CONSAN_ENGINE
// The number of a barrier that is about to be used. Reports a misuse (R-M1, R-M8).
COLD u32 barrier_in_use(Caller c) {
    if (!enter_access(c, head_of(c.slot, c.me), c.offset)) return NO_BARRIER;
    u64 engine = engine_of(c.slot);
    u32 index = find_barrier(engine, c.offset);
    if (index == NO_BARRIER) {
        // Barriers beyond the end of the table are not followed.
        if (load32(FIELD(engine, Engine, barrier_count)) > MBARRIERS) count_evicted(c.slot);
        else report_barrier(c, engine, NO_BARRIER, REASON_NOT_INITIALISED, 0, c.me);
        return NO_BARRIER;
    }
    u64 at = mbarrier_at(engine, index);
    u32 thread = load32(FIELD(at, MBarrier, thread)), epoch = load32(FIELD(at, MBarrier, epoch));
    if (load32(FIELD(at, MBarrier, life)) != LIFE_LIVE) {
        report_barrier(c, engine, index, REASON_INVALIDATED, load32(FIELD(at, MBarrier, last_site)), thread);
        return NO_BARRIER;
    }
    // Fast path: a barrier of the CTA since the init has published it.
    bool behind = epoch < high_word(c.state) && same_cta(c.slot, thread >> 5, c.me >> 5);
#if CONSAN_CLUSTER
    behind |= load32(FIELD(at, MBarrier, published)) && knows_cluster_barrier(c, load32(FIELD(at, MBarrier, published)));
#endif
    if (!behind && !happens_before(c, thread, epoch))
        report_barrier(c, engine, index, REASON_INIT_NOT_PUBLISHED, load32(FIELD(at, MBarrier, site)), thread);
    return index;
}

// init and inval write the eight bytes of the barrier. `high` and `low` make the record of init name the barrier.
DEVICE void write_barrier_bytes(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 high, u32 low) {
    write_hook<8>(slot, state, me, address, site, ACCESS_WRITE | ACCESS_BARRIER, nullptr, high, low, head_of(slot, me));
}

COLD void initialise(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 count) {
    Caller c = barrier_caller(slot, state, me, address, site);
    if (!enter_access(c, head_of(slot, me), address)) return;
    u64 engine = engine_of(slot);
    if (count == 0 || count >= 1u << 20) report_barrier(c, engine, NO_BARRIER, REASON_COUNT_RANGE, 0, me);
    u32 index = find_barrier(engine, c.offset);
    bool known = index != NO_BARRIER;
    if (!known) {
        index = add32(FIELD(engine, Engine, barrier_count), 1);
        if (index >= MBARRIERS) { count_evicted(slot); return; }
    } else if (swap32(FIELD(mbarrier_at(engine, index), MBarrier, life), LIFE_OVER, LIFE_LIVE) == LIFE_LIVE) initialised_twice(c, engine, index);
    u64 at = mbarrier_at(engine, index);
    u32 first = state_phase(load64(at)) + 2 & ~1u;
    if (first < load32(FIELD(engine, Engine, phase_base)) || !load32(FIELD(engine, Engine, keys) + 4 * index)) first = load32(FIELD(engine, Engine, phase_base));
    store32(FIELD(at, MBarrier, expected), count);
    store32(FIELD(at, MBarrier, first_phase), first);
    store32(FIELD(at, MBarrier, waited), first);
    store32(FIELD(at, MBarrier, thread), me);
    store32(FIELD(at, MBarrier, epoch), low_word(state));
    store32(FIELD(at, MBarrier, site), site);
    store32(FIELD(at, MBarrier, last_site), site);
    store32(FIELD(at, MBarrier, published), 0);
    store32(FIELD(at, MBarrier, announced), 0);
    store64(at, make_state(first, count, 0));
    store32(FIELD(at, MBarrier, life), LIFE_LIVE);
    record_fence();
    store32(FIELD(engine, Engine, keys) + 4 * index, c.offset + 1);
    record_fence();
    // If two warps initialise the same barrier at once, each adds an entry; at least one of them finds the other's here.
    u32 again = known ? NO_BARRIER : find_barrier(engine, c.offset, index);
    if (again != NO_BARRIER) initialised_twice(c, engine, again);
    write_barrier_bytes(slot, state, me, address, site, HIGH_ASYNC, LOW_MARKER | index);
}

// Lanes that initialise one barrier together share its entry: the first adds it, and the others find it.
HOOK void __consan_mbarrier_init(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 count) {
    if (!slot) return;
    Group g = barrier_group(address, 0);
    if (lane_id() == g.leader) initialise(slot, state, me, address, site, count);
    converge(g.mask);
    if (lane_id() != g.leader) initialise(slot, state, me, address, site, count);
}

HOOK void __consan_mbarrier_inval(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return;
    Caller c = barrier_caller(slot, state, me, address, site);
    u32 index = barrier_in_use(c);
    c.offset = offset_of(slot, c.offset);
    if (index == NO_BARRIER) return;
    u64 at = mbarrier_at(engine_of(slot), index), word = load64(at);
    u32 waiter = unordered_waiter(c, engine_of(slot), index);
    if (waiter != NO_BARRIER) report_barrier(c, engine_of(slot), index, REASON_WAITERS_PENDING, 0, waiter);
    if (state_tx(word) != 0) report_barrier(c, engine_of(slot), index, REASON_SIGNALS_PENDING, load32(FIELD(at, MBarrier, last_site)), load32(FIELD(at, MBarrier, thread)));
    else signals_in_flight(c, index);
    store32(FIELD(at, MBarrier, last_site), site);
    store32(FIELD(at, MBarrier, thread), me);
    store32(FIELD(at, MBarrier, epoch), low_word(state));
    record_fence();
    store32(FIELD(at, MBarrier, life), LIFE_OVER);
    write_barrier_bytes(slot, state, me, address, site, 0, 0);
}

// Publishes epochs up to `own` at a barrier of the caller's CTA, and up to `wide` (at most `own`) at a barrier of another CTA.
DEVICE void deposit_at_barrier(const Caller &c, u64 engine, u32 index, u32 phase, u32 own, u32 wide, u32 mask) {
    u64 place = mbarrier_clock(engine, index, phase), row = own_vector(c.slot, c.me);
    bool some = some_acquired(c.slot, c.me, mask);
#if CONSAN_CLUSTER
    if (rank_of(c.slot, c.me) != barrier_rank(c.slot, engine, index)) {
        if (wide < own) deposit_narrow(c.slot, row, place, c.me, own, high_word(c.state), some, lanes_below(mask), __popc(mask));
        if (!wide) return;
        own = wide;
        place += 2 * (CLOCK * 4);
    }
#endif
    each_chunk(c.slot, lanes_below(mask), __popc(mask), [&](u32 i) {
        u32 now[4], values[4];
        load_entries<4>(place + 4 * i, now);
        published(c.slot, row, i, c.me, own, high_word(c.state), some, values);
        raise_entries(place + 4 * i, now, values);
    });
}

HOOK u64 __consan_mbarrier_arrive(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 count, u32 bytes, u32 flags) {
    if (!slot) return state;
    Caller c = barrier_caller(slot, state, me, address, site);
    u32 index = barrier_in_use(c);
    c.offset = offset_of(slot, c.offset);
    Group group = barrier_group(address, flags);
    state = together(state, group.mask);
    if (index == NO_BARRIER) return advance(slot, state, me);
    u64 engine = engine_of(slot), at = mbarrier_at(engine, index);
    u32 own = low_word(state), phase = 0;
    // A relaxed arrival publishes what the last fence of one of these lanes covers (R-M10).
    if (flags & ARRIVE_RELAXED) own = maximum_over(group.mask, load32(THREAD_FIELD(thread_record(slot, me), released)));
    u32 wide = own;
#if CONSAN_CLUSTER
    if (flags & ARRIVE_RELAXED) wide = maximum_over(group.mask, load32(THREAD_FIELD(thread_record(slot, me), released_wide)));
    if (flags & ARRIVE_CTA) wide = 0;
#endif
    u32 total = __reduce_add_sync(group.mask, count);
    int tx = (int)__reduce_add_sync(group.mask, bytes);
    if (lane_id() == group.leader) {
        if (flags & ARRIVE_DROP) {
            u32 expected = load32(FIELD(at, MBarrier, expected));
            store32(FIELD(at, MBarrier, expected), expected - min(total, expected));
        }
        if (tx) { change_barrier(at, 0, tx); note_announced(c, at); }
        Change change = change_barrier(at, total, 0);
        phase = state_phase(change.before);
        check_arrival(c, engine, index, change, total, flags);
#if CONSAN_CLUSTER
        // A .cta release, or a .cta wait, makes no edge between CTAs (R-M9).
        if (rank_of(slot, me) == barrier_rank(slot, engine, index))
#endif
        if (!(flags & ARRIVE_RELAXED)) note_arrival(slot, me, index, phase, own, group.mask);
    }
    // The arrival goes to the clock of the phase that the shadow counted it in. If the initial count is too small, the last arrival falls
    // into a later phase. No wait can succeed before the real arrival, which follows.
    phase = __shfl_sync(group.mask, phase, group.leader);
#if CONSAN_CLUSTER
    if (flags & ARRIVE_RELAXED) deposit_executed(c, mbarrier_clock(engine, index, phase), low_word(state), group.mask);
#endif
    if (own) deposit_at_barrier(c, engine, index, phase, own, wide, group.mask);
#if CONSAN_CLUSTER
    // An arrival that orders nothing may still complete the phase for a waiter in another CTA. The deposit must be visible before.
    if (flags & (ARRIVE_RELAXED | ARRIVE_CTA) && rank_of(slot, me) != barrier_rank(slot, engine, index)) record_fence();
#endif
    __syncwarp(group.mask);
    return !CONSAN_CLUSTER && flags & ARRIVE_RELAXED ? state : advance(slot, state, me);
}

HOOK void __consan_mbarrier_tx(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 bytes) {
    if (!slot) return;
    Caller c = barrier_caller(slot, state, me, address, site);
    c.flags |= ACCESS_ENGINE;
    u32 index = barrier_in_use(c);
    c.offset = offset_of(slot, c.offset);
    if (index == NO_BARRIER) return;
    if ((int)bytes > 0) note_announced(c, mbarrier_at(engine_of(slot), index));
    change_bytes(c, index, (int)bytes);
}

// cp.async.mbarrier.arrive: earlier copies of this thread complete with the current phase. Without .noinc the pending count goes up and
// down again; the shadow, which is ahead of the hardware, need not model that.
HOOK void __consan_mbarrier_copies(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 noinc) {
    if (!slot) return;
    Caller c = barrier_caller(slot, state, me, address, site);
    u32 index = barrier_in_use(c);
    c.offset = offset_of(slot, c.offset);
    if (index == NO_BARRIER) return;
    u64 engine = engine_of(slot), at = mbarrier_at(engine, index), thread = thread_record(slot, me);
    u32 group = load32(THREAD_FIELD(thread, commits)) + 1, tags = load32(THREAD_FIELD(thread, tags));
    store64(THREAD_WORD(thread, copy_tags, tags % COPY_TAGS), pack(group, index << 24 | state_phase(load64(at))));
    store32(THREAD_FIELD(thread, tags), tags + 1);
    store32(THREAD_FIELD(thread, commits), group);
    Group lanes = barrier_group(address, noinc);
    __syncwarp(lanes.mask);  // all have noted the current phase
    u32 total = __popc(lanes.mask);
    if (noinc && lane_id() == lanes.leader) check_arrival(c, engine, index, change_barrier(at, total, 0), total, 0);
    __syncwarp(lanes.mask);
}

// Before the instruction: returns the number of the barrier and the phase of its shadow.
HOOK u64 __consan_mbarrier_before(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return 0;
    u32 index = barrier_in_use(barrier_caller(slot, state, me, address, site));
    if (index == NO_BARRIER) return pack(0, NO_BARRIER);
    return pack(state_phase(load64(mbarrier_at(engine_of(slot), index))), index);
}

DEVICE void observe(const Caller &c, u64 engine, u32 index, u32 phase, u32 mask, bool narrow) {
    u64 place = mbarrier_clock(engine, index, phase), row = target_row(c.slot, c.me, mask);
#if CONSAN_CLUSTER
    u64 others = place + 2 * (CLOCK * 4);
    if (narrow) take_narrow(c.slot, row, others, lanes_below(mask), __popc(mask));
    else each_chunk(c.slot, lanes_below(mask), __popc(mask), [&](u32 i) { join_entries(row + 4 * i, others + 4 * i); });
#endif
    each_chunk(c.slot, lanes_below(mask), __popc(mask), [&](u32 i) { join_entries(row + 4 * i, place + 4 * i); });
    if (lane_id() == __ffs(mask) - 1) {
        raise32(row + 4 * (PHASES + index), phase + 1);
        raise32(observed_at(engine, c.me >> 5, index), low_word(c.state));
    }
}

// A fence after a relaxed wait makes an acquire pattern, at the narrower of their scopes. A later, wider fence can widen it.
DEVICE void take_relaxed_wait(u64 slot, u32 me, u64 thread, bool narrow) {
    u64 wait = load64(THREAD_FIELD(thread, relaxed_wait));
    if (!wait) return;
    bool narrow_wait = high_word(wait) & RELAXED_CTA;
    if (!narrow || narrow_wait) store64(THREAD_FIELD(thread, relaxed_wait), 0);
    Caller c = {slot, load64(FIELD(slot, Slot, state)), me, 0, 0, 0, 0};
    observe(c, engine_of(slot), high_word(wait) & ~RELAXED_CTA, low_word(wait) - 1, 1u << lane_id(), narrow || narrow_wait);
}

// Notes a relaxed wait for a later fence. Only one is kept: if another wait comes first, the older one counts as fenced.
DEVICE void note_relaxed_wait(u64 slot, u32 me, u64 wait) {
    u64 thread = thread_record(slot, me), at = THREAD_FIELD(thread, relaxed_wait), last = load64(at);
    if (last && last != wait) take_relaxed_wait(slot, me, thread, false);
    store64(at, wait);
}

HOOK u64 __consan_mbarrier_after(u64 slot, u64 state, u32 me, u64 snapshot, u32 site, u32 parity, u32 flags) {
    if (!slot) return state;
    if (!(flags & WAIT_DONE)) {
        if (flags & WAIT_PURE) wait_failed(slot, state, me, snapshot, site, parity);
        return state;
    }
    u32 index = high_word(snapshot), before = low_word(snapshot);
    u32 mask = __match_any_sync(lanes_alike(site << 8 | parity << 7 | flags), snapshot);
    if (index == NO_BARRIER) return state;
    if (flags & WAIT_PURE) unregister_wait(slot, me, mask);
    u64 engine = engine_of(slot), at = mbarrier_at(engine, index);
    u32 first = load32(FIELD(at, MBarrier, first_phase));
    if (load32(FIELD(at, MBarrier, life)) == LIFE_OVER) invalidated_meanwhile(slot, state, me, index);
    u32 phase = __shfl_sync(mask, observed_phase(before, state_phase(load64(at)), parity), __ffs(mask) - 1);
    if ((int)(phase - first) < 0) return state;
    if (lane_id() == __ffs(mask) - 1) raise32(FIELD(at, MBarrier, waited), phase + 1);
    Caller c = {slot, state, me, site, 0, 0, 0};
    if (flags & WAIT_RELAXED) {
        note_relaxed_wait(slot, me, pack(phase + 1, index | (flags & WAIT_CTA ? RELAXED_CTA : 0)));
#if CONSAN_CLUSTER
        take_executed(slot, me, mbarrier_clock(engine, index, phase), mask);
#endif
    } else observe(c, engine, index, phase, mask, flags & WAIT_CTA);
    __syncwarp(mask);
    return catch_up(slot, state, me);
}
#endif
