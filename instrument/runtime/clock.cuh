// Clocks of warps (CONSAN_PARTIAL) and their parts.
//
// A clock has one entry per warp: the latest epoch of that warp that happens before this warp's next access. With asynchronous engines it
// also has, per warp, the latest epoch that has passed a proxy fence (SEMANTICS section 5), and per mbarrier the number of observed
// phases (R-B1). All three travel with every edge.
// An edge that only some lanes of a warp took goes to a second row. That row serves the lanes in `acquired`, and joins the warp's own row
// at the next barrier of the whole warp. Edges of different lanes share the second row, which errs towards silence.
#pragma once

#include "records.cuh"

DEVICE u32 existing_lanes(u64 slot, u32 me) {
    u32 threads = load32(FIELD(slot, Slot, thread_count)) - (tid_of(slot, me) & ~31u);
#if CONSAN_CLUSTER
    if ((int)threads <= 0) return 0;  // each CTA has a power of two of warp numbers, and this one is unused
#endif
    return threads >= 32 ? 0xffffffffu : (1u << threads) - 1;
}

// The lanes of the caller's warp that have not exited.
DEVICE u32 living_lanes(u64 slot, u32 me) { return existing_lanes(slot, me) & ~load32(FIELD(slot, Slot, exited) + 4 * (me >> 5)); }

#if CONSAN_PARTIAL
// Lanes that release together use the latest epoch of any of them, and continue from it.
DEVICE u64 together(u64 state, u32 mask) { return pack(maximum_over(mask, low_word(state)), high_word(state)); }

DEVICE u64 clock_row(u64 slot, u32 warp) { return load64(FIELD(slot, Slot, vectors)) + 4ull * VECTOR * warp; }
DEVICE u64 own_vector(u64 slot, u32 me) { return clock_row(slot, me >> 5); }
#endif

#if CONSAN_ENGINE
DEVICE u64 engine_of(u64 slot) { return slot + ENGINE_AT; }

DEVICE u64 mbarrier_at(u64 engine, u32 index) { return engine + (MBARRIERS_AT - ENGINE_AT) + (u64)index * sizeof(MBarrier); }
DEVICE u64 mbarrier_clock(u64 engine, u32 index, u32 phase) {
    return engine + (CLOCKS_AT - ENGINE_AT) + (u64)(index * MBARRIER_CLOCKS + (phase & 1)) * (CLOCK * 4);
}
// The epoch of a warp at which it observed the latest phase of a barrier.
DEVICE u64 observed_at(u64 engine, u32 warp, u32 index) {
    return engine + (OBSERVED_AT - ENGINE_AT) + (u64)(warp * MBARRIERS + index) * 4;
}
DEVICE u64 operation_at(u64 engine, u32 index) {
    return engine + (OPERATIONS_AT - ENGINE_AT) + (u64)index * sizeof(OperationRecord);
}
// A copy of the ranges, stored contiguously for searches.
DEVICE u64 operation_range_at(u64 engine, u32 index) { return engine + (RANGES_AT - ENGINE_AT) + 8ull * index; }
#define FENCED MAX_WARPS  // first entry of the fenced epochs
#if CONSAN_CLUSTER
// D3: a fence may cover the shared memory of its own CTA only. So fenced epochs are kept by the rank of the owner of the memory, even or
// odd. In larger clusters several CTAs share an entry, and a fence for one counts for the others: this errs towards silence.
#define FENCED_BLOCKS 2u
// Epochs learnt through non-synchronising edges: the wait, or the arrival, was of .cta scope; or one of them was relaxed, so that only
// the execution order is known.
#define WIDE_WAITED ((1 + FENCED_BLOCKS) * MAX_WARPS)
#define WIDE_ARRIVED ((2 + FENCED_BLOCKS) * MAX_WARPS)
#define EXECUTED ((3 + FENCED_BLOCKS) * MAX_WARPS)
// Engine.weak_edges: the number of these blocks of a clock that are in use. Most kernels have no such edges and skip them.
#define WEAK_SCOPES 2u
#define WEAK_ALL 3u
DEVICE u32 weak_edges(u64 slot) { return load32(FIELD(engine_of(slot), Engine, weak_edges)); }
DEVICE void use_weak_edges(u64 slot, u32 blocks) {
    if (weak_edges(slot) < blocks) raise32(FIELD(engine_of(slot), Engine, weak_edges), blocks);
}
#endif

// First entry of the epochs that are fenced for the memory at an offset.
DEVICE u32 fenced_for(u64 slot, u32 offset) {
#if CONSAN_CLUSTER
    return FENCED + offset / cta_bytes(slot) % FENCED_BLOCKS * MAX_WARPS;
#else
    return FENCED;
#endif
}
#define PHASES (VECTOR - MBARRIERS)  // first entry of the phases

DEVICE bool lane_acquired(u64 slot, u32 me) { return load32(FIELD(engine_of(slot), Engine, acquired) + 4 * (me >> 5)) >> (me & 31) & 1; }

DEVICE u32 clock_entry(u64 slot, u32 me, u32 entry) {
    u64 row = own_vector(slot, me) + 4 * entry;
    u32 value = load32(row);
    return lane_acquired(slot, me) ? max(value, load32(row + 4ull * VECTOR * MAX_WARPS)) : value;
}

// Lanes of a warp share its entry in all clocks, so a clock cannot order them among themselves. Phases can, because they travel with every
// edge: a thread that has observed a phase, by any path, is ordered after all arrivals at it. So each warp keeps its last arrival per
// barrier and parity: the lanes, and the epoch up to which they have released. Barrier numbers that collide share a place, and a
// replaced arrival leaves lanes unordered. If lanes arrive at the same phase in parts (a loop that they leave one after another), the
// further arrivals go to unused places, as long as there are some.
static_assert(offsetof(Engine, arrivals) % 16 == 0, "an arrival is read at once");
static_assert(offsetof(Engine, at_main) % 16 == 0 && offsetof(Engine, full) % 16 == 0 && offsetof(Engine, keys) % 16 == 0, "four entries are read at once");
static_assert(offsetof(Engine, matrix_waits) % 16 == 0 && offsetof(Engine, copies_done) % 16 == 0 && offsetof(Engine, operands) % 16 == 0 && sizeof(Engine) % 16 == 0, "two words are read at once");
struct Arrival { u32 epoch, lanes; u64 key; };
#define ARRIVAL_MORE (1ull << 63)  // in a key: another arrival at the same phase follows

DEVICE u64 arrival_at(u64 slot, u32 warp, u32 place) {
    return FIELD(engine_of(slot), Engine, arrivals) + 16ull * (warp * ARRIVALS + place % ARRIVALS);
}
DEVICE Arrival load_arrival(u64 at) {
    u64 words[2];
    load_records<2>(at, words);
    return {low_word(words[0]), high_word(words[0]), words[1]};
}
// One store: other lanes of the warp may be here too, and an arrival must never be half written.
DEVICE void store_arrival(u64 at, const Arrival &a) {
    asm volatile("st.relaxed." CONSAN_SCOPE ".global.v2.u64 [%0], {%1, %2};" :: "l"(at), "l"(pack(a.epoch, a.lanes)), "l"(a.key) : "memory");
}
DEVICE u32 arrival_places(u64 slot) { return min(2 * load32(FIELD(engine_of(slot), Engine, barrier_count)), ARRIVALS); }

// Adds an arrival beside the one at `place`, which lacks some of its lanes or is later.
COLD void note_another(u64 slot, u32 warp, u32 place, Arrival now) {
    u32 places = arrival_places(slot);
#pragma unroll 1
    for (;;) {
        u64 at = arrival_at(slot, warp, place);
        Arrival last = load_arrival(at);
        bool same = (last.key & ~ARRIVAL_MORE) == now.key;
        if (same && last.lanes & ~now.lanes) {
            if (place + places < ARRIVALS) {
                if (!(last.key & ARRIVAL_MORE)) { last.key |= ARRIVAL_MORE; store_arrival(at, last); }
                place += places;
                continue;
            }
            // No place is free. Merge: together they have released up to the earlier epoch.
            now.epoch = min(now.epoch, last.epoch); now.lanes |= last.lanes;
        }
        store_arrival(at, now);
        return;
    }
}

DEVICE void note_arrival(u64 slot, u32 me, u32 index, u32 phase, u32 own, u32 mask) {
    u32 place = 2 * index + (phase & 1);
    u64 at = arrival_at(slot, me >> 5, place);
    Arrival last = load_arrival(at), now = {own, mask, pack(phase, index)};
    if ((last.key & ~ARRIVAL_MORE) == now.key && last.lanes & ~mask) note_another(slot, me >> 5, place, now);
    else store_arrival(at, now);
}

// The lanes of a warp that arrived somewhere after their accesses of an epoch, as far as the caller has observed.
COLD u32 lanes_arrived(u64 slot, u32 me, u32 warp, u32 epoch) {
    u32 places = arrival_places(slot), lanes = 0;
#pragma unroll 1
    for (u32 i = 0; i < places; ++i) {
        bool more = true;
#pragma unroll 1
        for (u32 place = i; more && place < ARRIVALS; place += places) {
            Arrival last = load_arrival(arrival_at(slot, warp, place));
            more = last.key & ARRIVAL_MORE;
            u32 index = high_word(last.key & ~ARRIVAL_MORE);
            if (epoch <= last.epoch && clock_entry(slot, me, PHASES + index) > low_word(last.key)) lanes |= last.lanes;
        }
    }
    return lanes;
}

// The other living lanes of the warp, less those that arrived after that epoch as far as the caller has observed.
COLD u32 lanes_behind(u64 slot, u32 me, u32 epoch) { return living_lanes(slot, me) & ~lanes_arrived(slot, me, me >> 5, epoch) & ~(1u << (me & 31)); }
#endif

#if CONSAN_PARTIAL
// Calls f(entry) for every fourth entry in use; clocks are read and written four entries at a time. Lanes share the work: the `first`th
// of `step`.
template <typename F> DEVICE void each_chunk(u64 slot, u32 first, u32 step, F f) {
    u32 warps = (load32(FIELD(slot, Slot, warp_count)) + 3) / 4, chunks = warps;
#if CONSAN_ENGINE
    u32 phases = (min(load32(FIELD(engine_of(slot), Engine, barrier_count)), MBARRIERS) + 3) / 4;
#if CONSAN_CLUSTER
    chunks = (1 + FENCED_BLOCKS) * warps + phases;
#else
    chunks = 2 * warps + phases;
#endif
#endif
#if CONSAN_CLUSTER
    // Blocks of non-synchronising edges come last, because lanes that share a clock may not agree yet on whether there are any.
    u32 before = chunks - phases, all = chunks + weak_edges(slot) * warps;
    for (u32 k = first; k < all; k += step) {
        u32 plain = k < before ? k : k - phases;
        f(k - before < phases ? PHASES + 4 * (k - before) : plain / warps * MAX_WARPS + 4 * (plain % warps));
    }
#else
#pragma unroll 2
    for (u32 k = first; k < chunks; k += step) f(k < warps ? 4 * k : k < 2 * warps ? MAX_WARPS + 4 * (k - warps) : 2 * MAX_WARPS + 4 * (k - 2 * warps));
#endif
}

// Raises four entries to `wanted` where that is larger.
DEVICE void raise_entries(u64 at, const u32 *now, const u32 *wanted) {
    for (u32 j = 0; j < 4; ++j)
        if (wanted[j] > now[j]) raise32(at + 4 * j, wanted[j]);
}

DEVICE void join_entries(u64 to, u64 from) {
    u32 now[4], wanted[4];
    load_entries<4>(from, wanted);
    load_entries<4>(to, now);
    raise_entries(to, now, wanted);
}

// Four entries of the clock that lanes of the caller's warp publish. `own` is their own epoch.
DEVICE void published(u64 slot, u64 row, u32 entry, u32 me, u32 own, u32 start, bool some, u32 *out) {
    load_entries<4>(row + 4 * entry, out);
#if CONSAN_ENGINE
    if (some) {
        u32 more[4];
        load_entries<4>(row + 4ull * VECTOR * MAX_WARPS + 4 * entry, more);
        for (u32 j = 0; j < 4; ++j) out[j] = max(out[j], more[j]);
    }
#endif
    if (entry >= MAX_WARPS || !same_cta(slot, entry, me >> 5)) return;
    for (u32 j = 0; j < 4; ++j) out[j] = entry + j == me >> 5 ? own : max(out[j], start - 1);
}

// Whether any lane of the mask has observed more than its whole warp.
DEVICE bool some_acquired(u64 slot, u32 me, u32 mask) {
#if CONSAN_ENGINE
    return (load32(FIELD(engine_of(slot), Engine, acquired) + 4 * (me >> 5)) & mask) != 0;
#else
    return false;
#endif
}

// The row for an edge that lanes `mask` take.
DEVICE u64 target_row(u64 slot, u32 me, u32 mask) {
    u64 row = own_vector(slot, me);
#if CONSAN_ENGINE
    u32 living = living_lanes(slot, me);
    if ((mask & living) == living) return row;
    or32(FIELD(engine_of(slot), Engine, acquired) + 4 * (me >> 5), mask);
    row += 4ull * VECTOR * MAX_WARPS;
#endif
    return row;
}
#endif

#if CONSAN_ENGINE
// After a barrier of lanes `mask` of the caller's warp: what some of them have observed, all have.
DEVICE void share_acquired(u64 slot, u32 me, u32 mask) {
    u64 at = FIELD(engine_of(slot), Engine, acquired) + 4 * (me >> 5), row = own_vector(slot, me);
    u32 living = living_lanes(slot, me);
    if ((mask & living) != living) { or32(at, mask); return; }
    each_chunk(slot, lanes_below(mask), __popc(mask), [&](u32 i) { join_entries(row + 4 * i, row + 4ull * VECTOR * MAX_WARPS + 4 * i); });
    __syncwarp(mask);
    store32(at, 0);
}
#endif
