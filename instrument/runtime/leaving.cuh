// How a CTA ends early, when the host stops the launch or a deadlock is proven (R-M7).
//
// In a CTA with a proven deadlock, or in a launch that the host stops, threads exit inside their hooks: at a failed wait,
// at a barrier, at a loop's end. Exits release barriers of the whole CTA. At a barrier with a thread count, an exiting warp arrives for a
// missing one. If fewer warps exit than are missing, one arrives several times. The ISA does not define that, but nothing else could
// end the kernel.
#pragma once

#include "deadlock.cuh"

#if CONSAN_ENGINE
#define DRAIN_NANOSECONDS 100000ull
#define DRAIN_LOOKS 100000u

DEVICE u64 nanoseconds() { u64 v; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)); return v; }

#if CONSAN_NAMED
// Whether a warp will leave: some lane of it runs or waits at an mbarrier, and it has not begun to leave.
DEVICE bool will_leave(u64 slot, u64 engine, u32 warp) {
    u32 living = living_lanes(slot, warp << 5);
    if (load64(FIELD(engine, Engine, waiting) + 8 * warp)) return false;
    for (; living; living &= living - 1) {
        u64 word = wait_of(slot, warp << 5 | (__ffs(living) - 1));
        if (!word || wait_kind(word) == WAITS_MBARRIER) return true;
    }
    return false;
}

// The number of arrivals that this warp makes at an incomplete barrier, and marks as made; 0 if none is missing.
DEVICE u32 take_arrivals(u64 slot, u32 place, u32 others, u32 &wanted) {
    u64 at = FIELD(slot, Slot, named) + 8 * place, old = load64(at);
    for (;;) {
        u32 arrived = low_word(old) & 0xffff, missing;
        wanted = low_word(old) >> 16;
        if (!arrived) return 0;
        missing = (wanted - arrived + 31) / 32;
        u32 times = missing > others ? missing - others : 1;
        u64 seen = swap64(at, old, times == missing ? pack(0, high_word(old) + 1) : pack(arrived + 32 * times | wanted << 16, high_word(old)));
        if (seen == old) return times;
        old = seen;
    }
}

// The barrier name is a constant here. A name in a register would reserve all sixteen barriers of the CTA.
template <u32 ID> DEVICE void arrive_at_each(u64 slot, u32 me, u32 mask, u32 others) {
    if constexpr (ID < CONSAN_NAMED) {
        u32 wanted = 0, times = lane_id() == __ffs(mask) - 1 ? take_arrivals(slot, named_place(slot, me, ID), others, wanted) : 0;
        times = first_lanes(mask, times);
        wanted = first_lanes(mask, wanted);
#pragma unroll 1
        for (; times; --times) asm volatile("barrier.arrive %0, %1;" :: "n"(ID), "r"(wanted) : "memory");
        arrive_at_each<ID + 1>(slot, me, mask, others);
    }
}

// The first lanes that leave arrive for their whole warp. The hardware waits for its other lanes to arrive or exit.
COLD void arrive_for_missing(u64 slot, u32 me, u32 mask) {
    u64 engine = engine_of(slot);
    u32 leader = __ffs(mask) - 1, first = 0, others = 0;
    if (lane_id() == leader) first = !swap64(FIELD(engine, Engine, waiting) + 8 * (me >> 5), 0, 1);
    if (!__shfl_sync(mask, first, leader)) return;
    if (lane_id() == leader) for (u32 w = 0; w < load32(FIELD(slot, Slot, warp_count)); ++w) others += same_cta(slot, w, me >> 5) && will_leave(slot, engine, w);
    arrive_at_each<0>(slot, me, mask, others);
}

// Takes back the arrival of a warp that was counted at a barrier and does not enter it.
DEVICE void withdraw_arrival(u64 slot, u32 place, u32 generation) {
    u64 at = FIELD(slot, Slot, named) + 8 * place, old = load64(at);
    while (high_word(old) == generation && (low_word(old) & 0xffff) >= 32) {
        u64 seen = swap64(at, old, old - 32);
        if (seen == old) return;
        old = seen;
    }
}
#endif

// Copies in flight write into memory that the next CTA may get. Waits for them, within bounds.
DEVICE void drain(u64 engine) {
    if (!load32(FIELD(engine, Engine, op_count))) return;
    u64 start = nanoseconds();
#pragma unroll 1
    for (u32 i = 0; i < DRAIN_LOOKS && nanoseconds() - start < DRAIN_NANOSECONDS; ++i) asm volatile("" ::: "memory");
}
#endif
