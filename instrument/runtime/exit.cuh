// Exit of a thread, a CTA and a cluster: operations still in flight, peers that may still use the memory, and release of the slot.
#pragma once

#include "bulk.cuh"
#include "cluster.cuh"
#include "leaving.cuh"
#include "slot.cuh"

#if CONSAN_ENGINE
// Lanes `mask` of a warp exit together.
DEVICE void count_exits(u64 slot, u64 state, u32 mask) {
    u32 lanes = __popc(mask) << 16, blocked = 0, gone = mask, me = self_number();
    if (lane_id() == __ffs(mask) - 1) gone |= or32(FIELD(slot, Slot, exited) + 4 * (me >> 5), mask);
    u32 living = existing_lanes(slot, me) & ~first_lanes(mask, gone);
    if (!living) {
        bool touched = touched_since(slot, me >> 5, high_word(state), mask);
        if (lane_id() == __ffs(mask) - 1) note_end(slot, me, touched);
    }
    if (lane_id() == __ffs(mask) - 1) {
        end_at_cluster(slot, me, living);
        blocked = count32(FIELD(engine_of(slot), Engine, blocked), lanes) + lanes;
    }
    if (all_blocked(slot, first_lanes(mask, blocked), mask)) examine(slot, state, mask);
}

// Reports copies that have brought more bytes to mbarrier `index` than expect-tx announced (R-M7): the last of them.
COLD void check_bytes_at_exit(u64 slot, u64 state, u32 index) {
    u64 engine = engine_of(slot), at = mbarrier_at(engine, index);
    if (load32(FIELD(at, MBarrier, life)) != LIFE_LIVE || state_tx(load64(at)) >= 0) return;
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), last = load32(FIELD(engine, Engine, op_base)), announced = load32(FIELD(at, MBarrier, announced));
    Caller c = barrier_caller(slot, state, load32(FIELD(at, MBarrier, thread)), load32(FIELD(engine, Engine, keys) + 4 * index) - 1, load32(FIELD(at, MBarrier, last_site)));
    for (u32 i = 0; i < count; ++i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= last || !by_phase(o) || o.barrier != index) continue;
        last = o.sequence; c.site = o.site; c.me = o.thread;
    }
    report_barrier(c, engine, index, REASON_BYTES_NOT_ANNOUNCED, announced & 0xffff, announced >> 16);
}

// Executed by the last thread of the CTA. Reports operations whose completion nobody has observed (R-CP5, R-M12).
DEVICE void check_operations_at_exit(u64 slot, u64 state) {
    u64 engine = engine_of(slot);
    if (load32(FIELD(engine, Engine, verdict)) & VERDICT_LEAVE) return;  // the CTA was stopped early
#if CONSAN_CLUSTER
    u32 rank = cluster_rank(), bytes = cta_bytes(slot);
#endif
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), base = load32(FIELD(engine, Engine, op_base));
    for (u32 i = 0; i < min(load32(FIELD(engine, Engine, barrier_count)), MBARRIERS); ++i) {
#if CONSAN_CLUSTER
        if (barrier_rank(slot, engine, i) != rank) continue;
#endif
        check_bytes_at_exit(slot, state, i);
    }
    for (u32 i = 0; i < count; ++i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= base) continue;
#if CONSAN_CLUSTER
        if (o.low / bytes != rank) continue;
#endif
        u64 thread = thread_record(slot, o.thread);
        bool over;
        if (by_phase(o)) over = load32(FIELD(mbarrier_at(engine, o.barrier), MBarrier, waited)) > o.phase;
        else if (kind_of(o) == OPERATION_WGMMA) over = load32(THREAD_FIELD(thread, matrix_retired)) > o.group;
        else over = load32(THREAD_FIELD(thread, bulk_read)) > o.group;
        if (!over) report_at_exit(slot, state, o.thread, o, o.high - o.low);
    }
}
#endif
#if CONSAN_CLUSTER
// Executed by the last thread of a CTA. Accesses of other CTAs to its memory must happen before its exit (R-CL).
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
#endif
HOOK void __consan_exit(u64 runtime, u64 slot, u64 state) {
    if (!runtime) return;
    u32 here = active_mask();
    if (slot) {
        u32 latest = maximum_over(here, low_word(state));
        if (lane_id() == __ffs(here) - 1) raise32(FIELD(slot, Slot, latest), latest);
    }
    u64 place = slot ? load64(FIELD(slot, Slot, directory)) : find_cta(runtime, cta_key());
    gpu_fence();
    u32 mask = active_mask(), leader = __ffs(mask) - 1;  // taken here, so that each thread is counted after its own search and fence
#if CONSAN_ENGINE
    if (slot) count_exits(slot, state, mask);
#endif
    if (lane_id() != leader) return;
#if CONSAN_PARTIAL && !CONSAN_ENGINE
    if (slot) gpu_or32(FIELD(slot, Slot, exited) + 4 * (linear_tid() >> 5), mask);
#elif !CONSAN_PARTIAL
    // Only the remaining lanes of the warp need this. If the whole warp exits, there are none.
    if (slot && mask != ~0u) {
        gpu_or32(FIELD(slot, Slot, exited) + 4 * (linear_tid() >> 5), mask);
        gpu_max32(FIELD(slot, Slot, lanes_left), 1);
    }
#endif
#if CONSAN_CLUSTER
    if (slot && gpu_add32(FIELD(slot, Slot, exits) + 4 * cluster_rank(), __popc(mask)) + __popc(mask) == thread_total()) cta_exits(slot, state);
    u32 before = gpu_add32(FIELD(place, Directory, exited), __popc(mask));
    if (before + __popc(mask) != thread_total() * cluster_size()) return;
#else
    u32 before = gpu_add32(FIELD(place, Directory, exited), __popc(mask));
    if (before + __popc(mask) != thread_total()) return;
#if CONSAN_ENGINE
    if (slot) check_operations_at_exit(slot, state);
#endif
#endif
    if (slot) release_slot(slot);
    gpu_release64(place, 0);
}

#if CONSAN_ENGINE
// Exit of a thread whose CTA is deadlocked, or whose launch the host stops. Does not return.
HOOK void __consan_leave(u64 runtime, u64 slot, u64 state, u32 me) {
    if (slot) {
        u32 mask = active_mask();
        u64 engine = engine_of(slot);
        if (lane_id() == __ffs(mask) - 1) or32(FIELD(engine, Engine, verdict), VERDICT_STOPPED);
        unregister_wait(slot, me, mask);
        record_fence();
        __syncwarp(mask);
#if CONSAN_NAMED
        arrive_for_missing(slot, me, mask);
#endif
        drain(engine);
    }
    __consan_exit(runtime, slot, state);
    asm volatile("exit;");
}
#endif
