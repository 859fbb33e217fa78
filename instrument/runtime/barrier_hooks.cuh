// Hooks of barriers, fences and flags (R-BAR1 to R-BAR3, SEMANTICS section 3).
#pragma once

#include "mbarrier_hooks.cuh"

#if CONSAN_PARTIAL
// Before the real barrier. bar.arrive has this hook only, because it does not wait. `waits`: look for a deadlock here.
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
    if (count != ALL_MIXED && (id > 15 || !count || count % 32)) report_named(slot, state, me, site, id, id > 15 ? REASON_BARRIER_NUMBER : REASON_THREAD_COUNT, site, me);
    // The generation cannot advance before this warp has been counted, so the value read here is the warp's own generation.
    u32 generation = high_word(load64(FIELD(slot, Slot, named) + 8 * named_place(slot, me, id)));
    u32 needed = count == ALL_MIXED ? all_threads(slot, id) : warp_rounded(count);
    store32(generation_at(thread, id), generation);
    state = together(state, mask);
    u32 unordered = id < CLUSTER_BARRIER ? unordered_of_last_round(slot, state, me, id, generation, mask) : 0;
    deposit_clock(slot, state, me, id, generation, mask);
    __syncwarp(mask);
    if (lane_id() == __ffs(mask) - 1 && warp_arrives(slot, me, id, mask)) {
#if CONSAN_ENGINE
        if (id == CLUSTER_BARRIER) count_at_cluster(slot, 32, 0);
        else
#endif
        count_arrival(slot, state, me, site, id, needed, generation, unordered);
    }
    // The hardware barrier needs the warp to be converged. So do the proof of a deadlock and the early exit.
    __syncwarp(mask);
    state = advance(slot, state, me);
#if CONSAN_ENGINE
    if (waits) wait_at_barrier(slot, state, me, id, generation, needed, site, mask);
#endif
    return state;
}

#if CONSAN_ENGINE
// barrier.cluster.arrive: the first half of a barrier of all threads. A relaxed arrival counts, and publishes what the last fence of its
// thread covers (R-CL).
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
    record_fence();  // the real arrival is relaxed: without this fence a waiter might not see the deposit
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
    // Lanes may have arrived in several groups at different epochs. All of them continue from the latest.
    u32 epoch = max(low_word(state), load32(FIELD(slot, Slot, epochs) + 4 * (me >> 5)));
    store32(THREAD_FIELD(thread, warp_epoch), epoch);
    epoch_moved(slot, me, low_word(state), epoch);
    state = pack(epoch, high_word(state));
    __syncwarp(mask);  // each lane has collected a part of the clock that all lanes use next
#if CONSAN_ENGINE
    barrier_passed(slot, state, me, false, mask);
#endif
    return state;
}

#if CONSAN_CLUSTER
// As `take_flag`, at a scope: takes what was published to threads of this CTA, and what was published to all.
DEVICE void take_flag_at(u64 slot, u32 me, u32 index, bool narrow) {
    take_flag(slot, me, index, 1 + rank_of(slot, me));
    if (narrow) take_narrow(slot, own_vector(slot, me), flag_cell(slot, index), 0, 1);
    else take_flag(slot, me, index);
}
#endif
// Before a strong store or atomic. A release publishes all earlier accesses; any other strong write, those before this thread's last fence.
HOOK u64 __consan_flag_write(u64 slot, u64 state, u32 me, u32 address, u32 releases) {
    if (!slot) return state;
    u64 thread = thread_record(slot, me);
#if CONSAN_CLUSTER
    bool narrow = releases & PATTERN_CTA;
    releases &= PATTERN_ORDERS;
#endif
    u32 released = releases ? low_word(state) : load32(THREAD_FIELD(thread, released));
    if (!released) return state;
    u64 row = own_vector(slot, me);
    bool some = some_acquired(slot, me, 1u << (me & 31));
    u32 index = flag_index(slot, address), set = 0;
#if CONSAN_CLUSTER
    // Other CTAs get what a release or a fence of wider scope covers. What only .cta scope covers is first deposited apart (WIDE_ARRIVED).
    u32 here = released, wide = narrow ? 0 : releases ? released : load32(THREAD_FIELD(thread, released_wide));
    if (wide < here) deposit_narrow(slot, row, flag_cell(slot, index), me, here, high_word(state), some, 0, 1);
    for (set = wide ? 0 : 1 + rank_of(slot, me); set != ~0u; set = set ? ~0u : 1 + rank_of(slot, me)) {
        released = set ? here : wide;
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
    if (!releases) record_fence();  // the kernel's own fence came before this deposit, so it does not make the deposit visible
#endif
    return releases ? advance(slot, state, me) : state;
}

// After a strong load or atomic. An acquire takes the edge now; otherwise this thread's next fence takes it.
HOOK void __consan_flag_read(u64 slot, u32 me, u32 address, u32 acquires) {
    if (!slot) return;
    u32 index = flag_index(slot, address);
    u64 thread = thread_record(slot, me), seen = THREAD_FIELD(thread, flags_read);
#if CONSAN_CLUSTER
    bool narrow = acquires & PATTERN_CTA;
    if (acquires & PATTERN_ORDERS) return take_flag_at(slot, me, index, narrow);
    if (narrow) seen = THREAD_FIELD(thread, flags_read_narrow);
#else
    if (acquires) return take_flag(slot, me, index);
#endif
    store64(seen, load64(seen) | 1ull << index);
}

// A fence takes the edges of earlier strong loads that were not acquires.
#if CONSAN_CLUSTER
DEVICE void take_flags_read(u64 slot, u32 me, u64 thread, bool narrow) {
    u64 wide = load64(THREAD_FIELD(thread, flags_read)), own_cta = load64(THREAD_FIELD(thread, flags_read_narrow));
    for (u64 seen = wide | own_cta; seen; seen &= seen - 1) {
        u32 index = __ffsll(seen) - 1;
        take_flag_at(slot, me, index, narrow || !(wide >> index & 1));
    }
    store64(THREAD_FIELD(thread, flags_read_narrow), 0);
    if (!narrow) store64(THREAD_FIELD(thread, flags_read), 0);  // else a wider fence may follow
}

// `narrow`: the fence has .cta scope.
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
#endif
