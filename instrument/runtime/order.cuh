// The one question of order: does what a thread did at an epoch happen before what the caller does next (R-RACE, SEMANTICS section 3)?
//
// All checks call `happens_before`. Whether an asynchronous operation is complete (`observed`, copies.cuh, operation.cuh) and whether an
// access has passed a proxy fence (`fenced`) are separate questions.
#pragma once

#include "clock.cuh"

// Who asks: a thread, the site and the bytes of its access. `flags` is a set of ACCESS_*.
struct Caller { u64 slot, state; u32 me, site, flags, offset, bytes; };

// The full epoch from its low bits. Records are scrubbed while they are younger than a quarter of the truncated range.
DEVICE u32 widen(u32 truncated, u32 now, u32 mask) { return now - ((now - truncated) & mask); }

DEVICE u32 epoch_of_warp(u64 slot, u32 warp, u32 own) {
#if CONSAN_PARTIAL
    (void)own;
    return load32(FIELD(slot, Slot, epochs) + 4 * warp);
#else
    return own;
#endif
}

// The latest epoch of `warp` that happens before the caller's next access.
DEVICE u32 latest_before(const Caller &c, u32 warp) {
    u32 seen = same_cta(c.slot, warp, c.me >> 5) ? high_word(c.state) - 1 : 0;
#if CONSAN_PARTIAL
#if CONSAN_ENGINE
    u32 vector = clock_entry(c.slot, c.me, warp);
#else
    u32 vector = load32(own_vector(c.slot, c.me) + 4 * warp);
#endif
#if CONSAN_CLUSTER
    if (c.flags & ACCESS_WIDE_WAIT) vector = max(vector, clock_entry(c.slot, c.me, WIDE_WAITED + warp));
    if (c.flags & ACCESS_WIDE) vector = max(vector, clock_entry(c.slot, c.me, WIDE_ARRIVED + warp));
#endif
    // Clocks are not cleared between CTAs. Entries of an earlier CTA are below the start of this interval.
    seen = max(seen, vector);
#endif
    return seen;
}

// R-W1: whether a warp barrier orders the caller after `lane` of its warp at `epoch`.
DEVICE bool lanes_synced(const Caller &c, u32 lane, u32 epoch) {
#if CONSAN_PARTIAL
    u64 thread = thread_record(c.slot, c.me);
    if (epoch < max(load32(THREAD_FIELD(thread, warp_epoch)), high_word(c.state))) return true;
    for (u32 i = 0; i < WARP_SYNCS; ++i) {
        u64 sync = load64(THREAD_WORD(thread, syncs, i));
        if ((high_word(sync) >> lane & 1) && epoch < low_word(sync)) return true;
    }
    return false;
#else
    (void)lane;
    return epoch < high_word(c.state);
#endif
}

// The epochs of other warps that the caller knows, from its clock. A view of the clock (blocks.cuh) can take its place.
struct OwnClock {
    DEVICE_MEMBER bool covers(const Caller &c, u32 warp, u32 epoch) const { return epoch <= latest_before(c, warp); }
};

// Whether the access of `thread` at `epoch` happens before the caller's next access (R-RACE; within a warp R-W1).
// `several`: the record names one lane and stands for others of its warp too, so all of them must be ordered.
template <typename Clock = OwnClock> DEVICE bool happens_before(const Caller &c, u32 thread, u32 epoch, bool several = false, const Clock &clock = {}) {
    if (thread == c.me && !several) return true;
    if (thread >> 5 != c.me >> 5) return clock.covers(c, thread >> 5, epoch);
    if (lanes_synced(c, thread & 31, epoch)) return true;
#if CONSAN_ENGINE
    return several ? !lanes_behind(c.slot, c.me, epoch) : lanes_arrived(c.slot, c.me, c.me >> 5, epoch) >> (thread & 31) & 1;
#else
    return false;
#endif
}
