// Deadlocks, proven by the threads that are in them (R-M7, SEMANTICS section 8).
//
// A thread is registered in its record when it blocks. That is: a loop around test_wait or try_wait without any other effect
// (waits/waits.py decides that) that has failed for a phase that is incomplete in the shadow; or a CTA barrier, before the thread
// enters it. The shadow runs ahead of the hardware, so only hooks of threads can complete a phase that is incomplete in the shadow.
// Proof: two scans find every thread exited or registered, with the same words, so at one moment between them no thread ran. The second
// scan finds no wait satisfied, so none was satisfied at that moment. A registered wait ends only when it is satisfied. Its word names a
// phase, generation or number that never recurs, so equal words mean that the thread waited all the time.
// Threads scan when the counter of registered and exited threads reaches the total: the last one to register or exit, and failing
// polls. No thread waits for the scan of another: it leaves the work to the running scan, which repeats if anything has changed.
// In a cluster, the proof covers the threads of all CTAs.
// Not claimed: modules with an instruction that could signal unseen (Engine.open). Lanes that the hardware holds back until their warp
// reconverges, or that are in a warp collective, are not registered; the watchdog ends those runs.
#pragma once

#include "mbarrier.cuh"
#include "barrier.cuh"

#if CONSAN_ENGINE
enum WaitKind : u32 { WAITS_MBARRIER = 1, WAITS_CTA = 2, WAITS_NAMED = 3 };
enum Verdict : u32 { VERDICT_BUSY = 1, VERDICT_PROVEN = 2, VERDICT_STOPPED = 4, VERDICT_LEAVE = 6 };
#define CODE_WAIT (1u << 17)  // above all sites: keeps waiters of different barriers apart where findings are merged

DEVICE u32 count32(u64 at, u32 v) { u32 o; asm volatile("atom.acq_rel." CONSAN_SCOPE ".global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u64 wait_word(u32 kind, u32 index, u32 number) { return pack(kind << WAIT_KIND_SHIFT | index, number); }

// Thread numbers of all CTAs. Numbers without a thread count as exited.
DEVICE u32 thread_numbers(u64 slot) {
#if CONSAN_CLUSTER
    return load32(FIELD(slot, Slot, warp_count)) * 32;
#else
    return load32(FIELD(slot, Slot, thread_count));
#endif
}

DEVICE bool has_exited(u64 slot, u32 thread) {
#if CONSAN_CLUSTER
    if (tid_of(slot, thread) >= load32(FIELD(slot, Slot, thread_count))) return true;
#endif
    return load32(FIELD(slot, Slot, exited) + 4 * (thread >> 5)) >> (thread & 31) & 1;
}
DEVICE u64 wait_of(u64 slot, u32 thread) { return load64(THREAD_FIELD(thread_record(slot, thread), waiting)); }
DEVICE u64 detail_of(u64 slot, u32 thread) { return load64(THREAD_FIELD(thread_record(slot, thread), waiting_at)); }
DEVICE u32 verdict_of(u64 slot) { return load32(FIELD(engine_of(slot), Engine, verdict)); }
DEVICE u64 named_word(u64 slot, u32 id) { return load64(FIELD(slot, Slot, named) + 8 * (id % (NAMED_BARRIERS * MAX_CTAS))); }

// Engine.blocked: number of registered threads, and above bit 16 of exited threads. Threads at the main barrier of their CTA, the most
// frequent one, only set their bits in Engine.at_main and do not wait for an answer; the scan counts the bits.
DEVICE bool all_blocked(u64 slot, u32 blocked, u32 mask) {
    u64 bits = FIELD(engine_of(slot), Engine, at_main);
    u32 registered = 0, warps = load32(FIELD(slot, Slot, warp_count));
    for (u32 w = 4 * lanes_below(mask); w < warps; w += 4 * __popc(mask)) {
        u32 lanes[4];
        load_entries<4>(bits + 4 * w, lanes);
        for (u32 j = 0; j < 4; ++j) registered += __popc(lanes[j]);
    }
    registered = __reduce_add_sync(mask, registered) + (blocked & 0xffff);
    return registered && registered + (blocked >> 16) == load32(FIELD(slot, Slot, thread_count)) * cta_count(slot);
}

// ---- the proof --------------------------------------------------------------------------------------------------------------
//
// Executed by lanes `mask` of a warp together. The lanes share the threads.

#define EACH_THREAD(T) _Pragma("unroll 1") for (u32 T = lanes_below(mask); T < thread_numbers(slot); T += __popc(mask))

// A hash of what each thread waits for; 0 if some thread neither waits nor has exited.
COLD u64 look_at_waits(u64 slot, u32 mask) {
    u64 hash = 0;
    bool missing = false, some = false;
    EACH_THREAD(t) {
        if (has_exited(slot, t)) continue;
        u64 word = wait_of(slot, t);
        if (!word) { missing = true; break; }
        some = true;
        word = (word + t) * 0x9E3779B97F4A7C15ull;
        hash += (word ^ word >> 29) * 0xBF58476D1CE4E5B9ull;
    }
    if (__any_sync(mask, missing) || !__any_sync(mask, some)) return 0;
    return pack(__reduce_xor_sync(mask, low_word(hash)), __reduce_xor_sync(mask, high_word(hash))) | 1;
}

// A mask of the barriers (in a cluster: of the CTAs) whose whole-CTA barrier all living threads have reached. A barrier that also has
// counted arrivals is included, because it is unknown here who completes it.
#if CONSAN_CLUSTER
DEVICE u32 full_barriers_complete(u64 slot, u32 mask) {
    u32 complete = 0;
    for (u32 rank = 0; rank < cta_count(slot); ++rank) {
        u32 least = ~0u, most = 0;
        EACH_THREAD(t) {
            if (has_exited(slot, t) || rank_of(slot, t) != rank) continue;
            u64 word = wait_of(slot, t);
            u32 index = wait_kind(word) == WAITS_CTA ? wait_index(word) : ~0u;
            least = min(least, index); most = max(most, index);
        }
        least = __reduce_min_sync(mask, least); most = __reduce_max_sync(mask, most);
        if (least == ~0u) continue;
        if (least == most || low_word(named_word(slot, least)) & 0xffff) complete |= 1u << rank;
    }
    return complete;
}
#else
DEVICE u32 full_barriers_complete(u64 slot, u32 mask) {
    u32 used = 0, complete = 0;
    EACH_THREAD(t) {
        u64 word = wait_of(slot, t);
        if (!has_exited(slot, t) && wait_kind(word) == WAITS_CTA) used |= 1u << wait_index(word);
    }
    for (used = __reduce_or_sync(mask, used); used; used &= used - 1) {
        u32 id = __ffs(used) - 1;
        bool elsewhere = false;
        EACH_THREAD(t) {
            u64 word = wait_of(slot, t);
            elsewhere |= !has_exited(slot, t) && (wait_kind(word) == WAITS_MBARRIER || wait_index(word) != id);
        }
        if (!__any_sync(mask, elsewhere) || low_word(named_word(slot, id)) & 0xffff) complete |= 1u << id;
    }
    return complete;
}
#endif

// Whether a warp can arrive at a barrier of its CTA or of the cluster.
DEVICE bool concerns(u64 slot, u32 warp, u32 place) {
#if CONSAN_CLUSTER
    return existing_lanes(slot, warp << 5) && (place == CLUSTER_BARRIER || warp >> cta_shift(slot) == place / NAMED_BARRIERS);
#else
    return true;
#endif
}

// Threads that can still count as arrived at a counted barrier without a hook: an exit may count, and may complete a warp's arrival.
DEVICE u32 arrivals_by_exit(u64 slot, u32 id) {
    u32 warps = load32(FIELD(slot, Slot, warp_count)), threads = 0;
#pragma unroll 1
    for (u32 w = 0; w < warps; ++w) {
        if (!concerns(slot, w, id)) continue;
        u32 living = living_lanes(slot, w << 5), here = load32(FIELD(slot, Slot, named_lanes) + 4 * ((id % NAMED_BARRIERS) * MAX_WARPS + w));
        if (!living || (here && !(living & ~here))) threads += 32;
    }
    return threads;
}

// Whether a wait is satisfied, as far as its own word tells.
DEVICE bool moved_on(u64 slot, u64 engine, u64 word) {
    u32 index = wait_index(word), number = high_word(word);
    if (wait_kind(word) == WAITS_MBARRIER) {
        u64 at = mbarrier_at(engine, index);
        return load32(FIELD(at, MBarrier, life)) != LIFE_LIVE || state_phase(load64(at)) != number;
    }
    return wait_kind(word) == WAITS_NAMED && high_word(named_word(slot, index)) != number;
}

// `passed`: whole-CTA barriers that some thread has passed; `complete`: those that all threads have reached.
DEVICE bool satisfied(u64 slot, u64 engine, u64 word, u64 detail, u32 passed, u32 complete) {
    u32 index = wait_index(word);
    if (wait_kind(word) == WAITS_CTA) return passed > high_word(word) || complete >> (CONSAN_CLUSTER ? index / NAMED_BARRIERS : index) & 1;
    if (moved_on(slot, engine, word)) return true;
    if (wait_kind(word) == WAITS_MBARRIER) return false;
    u64 named = named_word(slot, index);
    u32 arrived = low_word(named) & 0xffff, wanted = arrived && index != CLUSTER_BARRIER ? low_word(named) >> 16 : high_word(detail);
    return arrived + arrivals_by_exit(slot, index) >= wanted;
}

// Looks at one thread of each warp for one that runs or can run; that thread scans when it waits again or exits. Pipelines wait for
// each other all the time, and a full scan by a single lane delays every thread behind it.
COLD bool somebody_goes_on(u64 slot, u32 mask) {
    u64 engine = engine_of(slot);
    bool found = false;
#pragma unroll 1
    for (u32 w = lanes_below(mask); w < load32(FIELD(slot, Slot, warp_count)) && !found; w += __popc(mask)) {
        u32 living = living_lanes(slot, w << 5);
        if (!living) continue;
        u64 word = wait_of(slot, w << 5 | (__ffs(living) - 1));
        found = !word || moved_on(slot, engine, word);
    }
    return __any_sync(mask, found);
}

COLD bool any_satisfied(u64 slot, u64 engine, u32 mask) {
    bool found = false;
    u32 complete = full_barriers_complete(slot, mask);
#pragma unroll 1
    for (u32 rank = 0; rank < cta_count(slot); ++rank) {
        u32 passed = 0;
        EACH_THREAD(t) if (rank_of(slot, t) == rank) passed = max(passed, load32(THREAD_FIELD(thread_record(slot, t), full_barriers)));
        passed = __reduce_max_sync(mask, passed);
        EACH_THREAD(t) {
            u64 word = wait_of(slot, t);
            if (!found && rank_of(slot, t) == rank && !has_exited(slot, t)) found = !word || satisfied(slot, engine, word, detail_of(slot, t), passed, complete);
        }
    }
    return __any_sync(mask, found);
}

// ---- the report -------------------------------------------------------------------------------------------------------------

#define REPORTED (1u << 31)  // in the upper half of waiting_at; only the reporting warp still writes it

// Counts and marks all threads that wait at the same place and for the same event as `first`.
COLD void report_waiter(u64 slot, u64 engine, u64 state, u32 kind, u32 first, u32 mask) {
    u64 word = wait_of(slot, first), detail = detail_of(slot, first);
    u32 threads = 0, lanes = 0, index = wait_index(word), whole = load32(FIELD(slot, Slot, thread_count));
    __syncwarp(mask);
    EACH_THREAD(t) {
        u64 other = detail_of(slot, t);
        if (has_exited(slot, t) || wait_of(slot, t) != word || low_word(other) != low_word(detail)) continue;
        ++threads;
        if (t >> 5 == first >> 5) lanes |= 1u << (t & 31);
        store64(THREAD_FIELD(thread_record(slot, t), waiting_at), other | (u64)REPORTED << 32);
    }
    threads = __reduce_add_sync(mask, threads);
    lanes = __reduce_or_sync(mask, lanes);
    if (lane_id() == __ffs(mask) - 1) {
        bool mbarrier = wait_kind(word) == WAITS_MBARRIER, all_threads = wait_kind(word) == WAITS_CTA;
        Caller c = {slot, state, first, low_word(detail), 0, 0, 0};
        Finding f = make_finding(c, kind, REASON_NONE, CODE_WAIT | (u32)!mbarrier << 16 | index);
        f.waiter.threads = threads; f.waiter.lanes = lanes;
        if (mbarrier) {
            f.waiter.barrier = barrier_state(engine, index, high_word(word));
            f.offset = f.waiter.barrier.place - 1; f.bytes = 8;
        } else {
            f.waiter.number = index % NAMED_BARRIERS;
            f.waiter.arrived = all_threads ? threads : low_word(named_word(slot, index)) & 0xffff;
            f.waiter.expected = all_threads ? whole : high_word(detail);
        }
        report(slot, f);
    }
    __syncwarp(mask);
}

// Writes one record for each pair of barrier and place at which threads wait.
COLD void report_deadlock(u64 slot, u64 engine, u64 state, u32 mask) {
    u32 kind = KIND_DEADLOCK;
    for (;;) {
        u32 first = ~0u;
        EACH_THREAD(t) if (first == ~0u && !has_exited(slot, t) && !(high_word(detail_of(slot, t)) & REPORTED)) first = t;
        first = __reduce_min_sync(mask, first);
        if (first == ~0u) return;
        report_waiter(slot, engine, state, kind, first, mask);
        kind = KIND_WAITER;
    }
}

// The value of the first lane.
DEVICE u32 first_lanes(u32 mask, u32 value) { return __shfl_sync(mask, value, __ffs(mask) - 1); }

DEVICE bool begin_look(u64 slot, u64 engine) {
    if (gpu_load32(FIELD(load64(FIELD(slot, Slot, runtime)), Runtime, abort))) return false;
    return !swap32(FIELD(engine, Engine, verdict), 0, VERDICT_BUSY);
}

// The fences order the counter against the lock: a thread that finds the lock taken has counted before the holder's last scan.
COLD void examine(u64 slot, u64 state, u32 mask) {
    u64 engine = engine_of(slot);
    bool leads = lane_id() == __ffs(mask) - 1;
    if (load32(FIELD(engine, Engine, open))) return;
    for (;;) {
        record_fence();
        if (!all_blocked(slot, first_lanes(mask, load32(FIELD(engine, Engine, blocked))), mask) || somebody_goes_on(slot, mask)) return;
        if (!first_lanes(mask, leads && begin_look(slot, engine))) return;
        record_fence();
        u64 seen = look_at_waits(slot, mask);
        record_fence();
        __syncwarp(mask);
        bool proven = seen && !any_satisfied(slot, engine, mask) && look_at_waits(slot, mask) == seen;
        if (proven) report_deadlock(slot, engine, state, mask);
        record_fence();
        __syncwarp(mask);
        if (leads) proven ? or32(FIELD(engine, Engine, verdict), VERDICT_PROVEN) : and32(FIELD(engine, Engine, verdict), ~VERDICT_BUSY);
        record_fence();
        __syncwarp(mask);
        if (proven || look_at_waits(slot, mask) == seen) return;  // a thread that changes anything from here on scans itself
    }
}

// ---- registering ------------------------------------------------------------------------------------------------------------

// Engine.elsewhere: threads registered at anything but the main barrier of the CTA. If it is 0, that barrier is complete.
DEVICE bool at_main_barrier(u64 word) { return wait_kind(word) == WAITS_CTA && wait_index(word) % NAMED_BARRIERS == 0; }

// Lanes `mask` of a warp together begin or continue a wait that is not at the main barrier.
DEVICE void register_wait(u64 slot, u64 state, u32 me, u32 mask, u64 word, u32 site, u32 needed) {
    u64 thread = thread_record(slot, me), engine = engine_of(slot);
    u64 before = load64(THREAD_FIELD(thread, waiting));
    if (before != word) {
        store64(THREAD_FIELD(thread, waiting_at), pack(site, needed));
        store64(THREAD_FIELD(thread, waiting), word);
    }
    u32 added = __popc(__ballot_sync(mask, before == 0));
    __syncwarp(mask);
    u64 at = FIELD(engine, Engine, blocked);
    u32 blocked = 0;
    if (lane_id() == __ffs(mask) - 1) {
        if (added) count32(FIELD(engine, Engine, elsewhere), added);
        blocked = added ? count32(at, added) + added : load32(at);
    }
    if (added) record_fence();  // a thread at the main barrier sees this one, or is seen here
    if (all_blocked(slot, first_lanes(mask, blocked), mask)) examine(slot, state, mask);
    __syncwarp(mask);
}

DEVICE u64 main_lanes(u64 slot, u32 me) { return FIELD(engine_of(slot), Engine, at_main) + 4 * (me >> 5); }

// As `register_wait`, for the main barrier. No scan is needed while nobody waits elsewhere, because the barrier is complete then.
DEVICE void register_at_main(u64 slot, u64 state, u32 me, u32 mask, u64 word, u32 site) {
    u64 thread = thread_record(slot, me), engine = engine_of(slot);
    store64(THREAD_FIELD(thread, waiting_at), pack(site, 0));
    store64(THREAD_FIELD(thread, waiting), word);
    __syncwarp(mask);
    if (lane_id() == __ffs(mask) - 1) set_bits(main_lanes(slot, me), mask);
    record_fence();
    if (first_lanes(mask, load32(FIELD(engine, Engine, elsewhere))) && all_blocked(slot, first_lanes(mask, load32(FIELD(engine, Engine, blocked))), mask))
        examine(slot, state, mask);
    __syncwarp(mask);
}

DEVICE void unregister_at_main(u64 slot, u32 me, u32 mask) {
    store64(THREAD_FIELD(thread_record(slot, me), waiting), 0);
    if (lane_id() == __ffs(mask) - 1) clear_bits(main_lanes(slot, me), mask);
}

DEVICE void unregister_wait(u64 slot, u32 me, u32 mask) {
    u64 at = THREAD_FIELD(thread_record(slot, me), waiting);
    u64 word = load64(at);
    if (word) store64(at, 0);
    u32 lanes = __ballot_sync(mask, word != 0), main = __ballot_sync(mask, word != 0 && at_main_barrier(word));
    if (!lanes || lane_id() != __ffs(mask) - 1) return;
    if (main) clear_bits(main_lanes(slot, me), main);
    if (lanes == main) return;
    count32(FIELD(engine_of(slot), Engine, blocked), 0 - __popc(lanes & ~main));
    count32(FIELD(engine_of(slot), Engine, elsewhere), 0 - __popc(lanes & ~main));
}

#endif
