// Generic stores to global memory, then bulk loads of the same bytes by the same CTA: ordered, but through another proxy (R-PX).
//
// A store leaves its thread and epoch in a table by address, with cells of 16 bytes, the unit of bulk copies. A store to another
// address may replace the cell. A load first compares its range with intervals that bound all stores, by site. Proxy fences that
// cover global memory are events with the clock of their thread. A store is fenced if a fence whose clock includes it happens before
// the load. A fence of shared memory alone does not count.
//
// Not detected: stores that are unordered with the load (a race on global memory), other CTAs, and loads in im2col or gather mode.
// The last FENCE_EVENTS fences of each warp are known. If an older one could have served, the store counts as fenced.
#pragma once

#include "globals.cuh"

#if CONSAN_ENGINE
#define CELL_BYTES 16u
static_assert((WRITTEN & (WRITTEN - 1)) == 0 && sizeof(FenceEvent) * FENCE_EVENTS * MAX_WARPS == sizeof(((GlobalTables *)0)->fences), "GlobalTables");

DEVICE u64 written_at(u64 slot, u64 address) { return FIELD(tables_of(slot), GlobalTables, written) + (address & CELL_BYTES * (WRITTEN - 1)); }

// A generic store, atomic or reduction of at most two cells. Both words of a cell are written at once.
HOOK void __consan_global_written(u64 slot, u64 state, u32 me, u64 address, u32 site, u32 bytes) {
    if (!slot) return;
    u64 globals = globals_of(slot), by = pack(low_word(state), site << CONSAN_THREAD_BITS | me);
    for (u64 at = address & ~(u64)(CELL_BYTES - 1); at < address + bytes; at += CELL_BYTES)
        asm volatile("st.relaxed." CONSAN_SCOPE ".global.v2.u64 [%0], {%1, %2};" :: "l"(written_at(slot, at)), "l"(at), "l"(by) : "memory");
    widen_span(FIELD(globals, Globals, written_low), address, address + bytes);
    widen_span(FIELD(globals, Globals, written_areas) + 16 * (site % WRITTEN_AREAS), address, address + bytes);
}

// ---- proxy fences that cover global memory ----------------------------------------------------------------------------------------

DEVICE u64 fence_event(u64 slot, u32 warp, u32 number) {
    return FIELD(tables_of(slot), GlobalTables, fences) + sizeof(FenceEvent) * (warp * FENCE_EVENTS + number % FENCE_EVENTS);
}

// Before fence.proxy.async or fence.proxy.async.global. A new epoch follows. `advances`: no other hook advances the epoch.
HOOK u64 __consan_global_fence(u64 slot, u64 state, u32 me, u32 advances) {
    if (!slot) return state;
    u32 mask = active_mask(), warps = load32(FIELD(slot, Slot, warp_count)), warp = me >> 5;
    u64 counter = FIELD(globals_of(slot), Globals, fence_count) + 4 * warp, row = own_vector(slot, me);
    state = together(state, mask);
    bool some = some_acquired(slot, me, mask);
    u32 number = load32(counter);
    u64 at = fence_event(slot, warp, number);
    for (u32 w = 4 * lanes_below(mask); w < warps; w += 4 * __popc(mask)) {
        u32 values[4];
        published(slot, row, w, me, low_word(state), high_word(state), some, values);
        for (u32 j = 0; j < 4; ++j) store32(FIELD(at, FenceEvent, clock) + 4 * (w + j), values[j]);
    }
    __syncwarp(mask);
    if (lane_id() == __ffs(mask) - 1) {
        store64(at, pack(low_word(state), mask));
        store32(counter, number + 1);
    }
    __syncwarp(mask);
    return advances ? advance(slot, state, me) : state;
}

DEVICE bool fence_ordered(const Caller &c, u32 warp, u64 event) {
    u32 lanes = high_word(event);
    if (warp == c.me >> 5 && lanes >> (c.me & 31) & 1) return true;
    return happens_before(c, warp << 5 | __ffs(lanes) - 1, low_word(event));
}

// Whether accesses of `warp` up to an epoch have passed a fence for global memory that happens before the caller.
COLD bool fenced_for_global(const Caller &c, u32 warp, u32 epoch) {
    u32 warps = load32(FIELD(c.slot, Slot, warp_count));
    for (u32 w = 0; w < warps; ++w) {
        u32 count = load32(FIELD(globals_of(c.slot), Globals, fence_count) + 4 * w);
        for (u32 i = 1; i <= min(count, FENCE_EVENTS); ++i) {
            u64 at = fence_event(c.slot, w, count - i);
            if (load32(FIELD(at, FenceEvent, clock) + 4 * warp) < epoch) break;  // older fences cover less
            if (fence_ordered(c, w, load64(at)) || (i == FENCE_EVENTS && count > FENCE_EVENTS)) return true;
        }
    }
    return false;
}

#if CONSAN_ISA
// A strong load of global memory, possibly of a flag for data that another CTA has written. The last one of each warp is kept.
HOOK void __consan_global_poll(u64 slot, u64 state, u32 me, u32 site) {
    if (slot) store64(FIELD(globals_of(slot), Globals, polls) + 8 * (me >> 5), pack(low_word(state), site << 5 | me & 31));
}

// Bulk loads after such a load, with no proxy fence between (D14). Whether the flag guards the loaded data is unknown.
COLD void check_polls(Caller c, u64 address) {
    u32 warps = load32(FIELD(c.slot, Slot, warp_count));
    for (u32 w = 0; w < warps; ++w) {
        u64 poll = load64(FIELD(globals_of(c.slot), Globals, polls) + 8 * w);
        u32 other = w << 5 | high_word(poll) & 31;
        if (!poll || !happens_before(c, other, low_word(poll)) || fenced_for_global(c, w, low_word(poll))) continue;
        Finding f = make_conflict(c, KIND_MISSING_PROXY_FENCE, HAZARD_RAW, high_word(poll) >> 5, other, 0);
        f.flags = FLAG_GLOBAL; f.reason = REASON_POLL_NO_FENCE; f.conflict.own_operation = OPERATION_BULK_LOAD; f.conflict.address = address; f.bytes = 0;
        report(c.slot, f);
        return;
    }
}
#endif

// ---- what bulk loads read ----------------------------------------------------------------------------------------------------------

struct Store { u32 site, thread, epoch; };

// The last generic store of this CTA to a cell; no site if there was none.
DEVICE Store find_store(const Caller &c, u64 at) {
    u64 words[2];
    load_records<2>(written_at(c.slot, at), words);
    u32 epoch = low_word(words[1]), by = high_word(words[1]);
    if (words[0] != at || epoch < load32(FIELD(c.slot, Slot, base))) return {0, 0, 0};
    return {by >> CONSAN_THREAD_BITS, by & (1u << CONSAN_THREAD_BITS) - 1, epoch};
}

// Looks for the first cell of a range with a store that happens before the caller and is not fenced. Returns whether there is none.
COLD bool check_stores(Caller c, u64 low, u64 high) {
#pragma unroll 1
    for (u64 at = low & ~(u64)(CELL_BYTES - 1); at < high; at += CELL_BYTES) {
        Store s = find_store(c, at);
        if (!s.site || !happens_before(c, s.thread, s.epoch) || fenced_for_global(c, s.thread >> 5, s.epoch)) continue;
        Finding f = make_conflict(c, KIND_MISSING_PROXY_FENCE, HAZARD_RAW, s.site, s.thread, 0);
        f.flags = FLAG_GLOBAL; f.reason = REASON_NO_PROXY_FENCE; f.conflict.own_operation = OPERATION_BULK_LOAD; f.conflict.address = at; f.bytes = CELL_BYTES;
        report(c.slot, f);
        return false;
    }
    return true;
}

DEVICE bool stores_may_overlap(u64 slot, u64 low, u64 high) {
    u64 globals = globals_of(slot);
    if (!overlaps(load_span(FIELD(globals, Globals, written_low)), low, high)) return false;
    bool found = false;
    for (u32 i = 0; i < WRITTEN_AREAS; ++i) found |= overlaps(load_span(FIELD(globals, Globals, written_areas) + 16 * i), low, high);
    return found;
}

// A range that bounds the whole tensor of a map; cached by the address of the map.
COLD Span measure_tensor(u64 slot, u64 map, u64 kept) {
    Box box = read_box(map);
    u32 upper = map_word(map, 7);
    u64 low = (u64)map_word(map, 1) << 32 | map_word(map, 0);
    u64 bytes = ((u64)map_word(map, 8) + 1) << min(box.size_shift, 4u);
    for (u32 d = 1; d < box.rank; ++d) bytes += (u64)map_word(map, 8 + d) * (((u64)(upper >> 4 * (d - 1) & 15) << 32 | map_word(map, 2 + d)) * ROW_UNIT);
    store64(kept, 0);
    store64(FIELD(kept, TensorRange, low), low);
    store64(FIELD(kept, TensorRange, high), low + bytes);
    store64(kept, map);
    widen_interval(FIELD(slot, Slot, flight_low), low, low + bytes);
    return {low, low + bytes};
}

DEVICE u64 kept_tensor(u64 slot, u64 map) { return FIELD(globals_of(slot), Globals, tensors) + sizeof(TensorRange) * (map >> 6 & TENSORS - 1); }

DEVICE Span tensor_range(u64 slot, u64 map) {
    u64 kept = kept_tensor(slot, map);
    if (load64(kept) != map) return measure_tensor(slot, map, kept);
    return {load64(FIELD(kept, TensorRange, low)), load64(FIELD(kept, TensorRange, high))};
}

COLD void check_box(const Caller &c, const Result &r) {
    u32 inner = low_word(r.shape[2]), counts = high_word(r.shape[2]);
    u64 strides[4] = {low_word(r.shape[0]), high_word(r.shape[0]), low_word(r.shape[1]), high_word(r.shape[1])};
    u32 rows = 1;
    for (u32 k = 0; k < 4; ++k) rows *= (counts >> 8 * k & 255) + 1;
#pragma unroll 1
    for (u32 i = 0; i < rows; ++i) {
        u64 at = r.low;
        u32 rest = i;
        for (u32 k = 0; k < 4; ++k) {
            u32 count = (counts >> 8 * k & 255) + 1;
            at += rest % count * strides[k] * ROW_UNIT;
            rest /= count;
        }
        if (!check_stores(c, at, at + inner)) return;
    }
}
#endif
