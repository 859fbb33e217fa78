// Threads that wait: they register before a blocking instruction, and exit when a deadlock is proven.
#pragma once

#include "exit.cuh"

#if CONSAN_ENGINE
// Exits from a wait. If the host stops the launch, records the place of the wait.
COLD void leave_wait(u64 slot, u64 state, u32 me) {
    u64 runtime = load64(FIELD(slot, Slot, runtime));
    u32 site = low_word(detail_of(slot, me));
    if (gpu_load32(FIELD(runtime, Runtime, abort)))
        __consan_stands(runtime, slot, load32(FIELD(slot, Slot, module)), NO_ENTRY, STAND_AT_SITE | site);
    __consan_leave(runtime, slot, state, me);
}
DEVICE void leave_on_verdict(u64 slot, u64 state, u32 me) {
    if (verdict_of(slot) & VERDICT_LEAVE) leave_wait(slot, state, me);
}

// A test_wait or try_wait has failed, in a loop without other effects.
COLD void wait_failed(u64 slot, u64 state, u32 me, u64 snapshot, u32 site, u32 parity) {
    u32 index = high_word(snapshot), before = low_word(snapshot), mask = __match_any_sync(active_mask(), snapshot);
    bool incomplete = index != NO_BARRIER;
    // The phase that the hardware is at has the requested parity. If the shadow is at it too, nothing has completed it yet.
    if (incomplete) incomplete = before == state_phase(load64(mbarrier_at(engine_of(slot), index))) && (before & 1) == parity;
    mask = __ballot_sync(mask, incomplete);
    if (incomplete) register_wait(slot, state, me, per_lane(mask), wait_word(WAITS_MBARRIER, index, before), site, 0);
    leave_on_verdict(slot, state, me);
}

// A thread that has been counted at a barrier is about to enter it. `needed`: threads that it waits for; 0: all of the CTA.
COLD void wait_at_barrier(u64 slot, u64 state, u32 me, u32 id, u32 number, u32 needed, u32 site, u32 mask) {
    u32 place = named_place(slot, me, id);
    u64 word = wait_word(needed ? WAITS_NAMED : WAITS_CTA, place, number);
    if (!__all_sync(mask, first_lanes(mask, number) == number)) mask = __match_any_sync(mask, word);
    if (at_main_barrier(word)) register_at_main(slot, state, me, mask, word, site);
    else register_wait(slot, state, me, mask, word, site, needed);
#if CONSAN_NAMED
    record_fence();  // either a leaving thread sees this arrival, or this thread sees the verdict that the other one follows
#endif
    if (!__any_sync(mask, verdict_of(slot) & VERDICT_LEAVE)) return;
#if CONSAN_NAMED
    u32 living = living_lanes(slot, me);
    if (needed && (mask & living) == living && lane_id() == __ffs(mask) - 1) withdraw_arrival(slot, place, number);
    __syncwarp(mask);
#endif
    leave_on_verdict(slot, state, me);
}

#if CONSAN_CLUSTER
// Before barrier.cluster.wait. The arrival was a separate instruction.
HOOK void __consan_cluster_wait(u64 slot, u64 state, u32 me, u32 site) {
    if (!slot) return;
    u32 generation = load32(generation_at(thread_record(slot, me), CLUSTER_BARRIER));
    if (high_word(named_word(slot, CLUSTER_BARRIER)) == generation) wait_at_barrier(slot, state, me, CLUSTER_BARRIER, generation, all_threads(slot, CLUSTER_BARRIER), site, active_mask());
}
#endif
COLD void barrier_passed(u64 slot, u64 state, u32 me, bool main, u32 mask) {
    main ? unregister_at_main(slot, me, mask) : unregister_wait(slot, me, mask);
    leave_on_verdict(slot, state, me);
}
#endif
