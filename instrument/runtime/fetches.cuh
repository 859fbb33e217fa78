// The sources of bulk loads in global memory, against ordinary stores of the same CTA: a store must not overwrite a source while a load
// that nobody has waited for may still read it (section 4.2 of SEMANTICS).
//
// Loads are kept in a ring as they are issued: address and size, or tensor map and coordinates. The latter are only decoded once a store
// lies in the tensor's range. Each warp remembers up to where it has found all loads complete.
//
// Not detected: bulk stores that overwrite a source; loads in im2col, gather or multicast mode; tensors that overlap themselves. Where
// threads may synchronise through global memory, a load counts as complete once any thread has waited for it.
#pragma once

#include "written.cuh"

#if CONSAN_ENGINE
DEVICE u64 fetch_at(u64 slot, u32 position) { return FIELD(tables_of(slot), GlobalTables, fetches) + sizeof(FetchRecord) * (position % FETCHES); }
static_assert(sizeof(FetchRecord) * FETCHES == sizeof(((GlobalTables *)0)->fetches), "GlobalTables");

DEVICE Operation fetch_of(u64 at) {
    Operation o;
    u64 site = load64(FIELD(at, FetchRecord, bytes)), thread = load64(FIELD(at, FetchRecord, thread));
    o.kind = OPERATION_BULK_LOAD; o.site = o.source = high_word(site); o.thread = low_word(thread); o.barrier = high_word(thread);
    o.phase = load32(FIELD(at, FetchRecord, phase));
    o.low = o.high = o.sequence = o.group = 0; o.shape = o.shape2 = 0;
    return o;
}

// `bytes`: 0 for a tensor; `source` is then its map.
DEVICE void keep_fetch(const Caller &c, u32 mbarrier, u64 source, u32 bytes, const u32 *place) {
    u64 globals = globals_of(c.slot);
    u32 index = find_barrier(engine_of(c.slot), offset_of(c.slot, mbarrier));
    if (index == NO_BARRIER) return;
    u32 position = add32(FIELD(globals, Globals, fetch_count), 1);
    u64 at = fetch_at(c.slot, position);
    Caller anybody = c;
    anybody.flags |= GLOBAL_EDGES;
    if (position >= FETCHES && !use_over(anybody, fetch_of(at))) store32(FIELD(globals, Globals, fetches_lost), 1);
    store64(FIELD(at, FetchRecord, live), 0);
    record_fence();
    store64(at, source);
    store64(FIELD(at, FetchRecord, bytes), pack(bytes, c.site));
    store64(FIELD(at, FetchRecord, thread), pack(c.me, index));
    store64(FIELD(at, FetchRecord, phase), pack(state_phase(load64(mbarrier_at(engine_of(c.slot), index))), place[0]));
    store64(FIELD(at, FetchRecord, place) + 4, pack(place[1], place[2]));
    store64(FIELD(at, FetchRecord, place) + 12, pack(place[3], place[4]));
    record_fence();
    store64(FIELD(at, FetchRecord, live), live_mark(c.slot, position));
}

// Whether a load reads any of bytes [low, high).
COLD bool fetch_covers(u64 at, u64 low, u64 high) {
    u64 source = load64(at);
    u32 bytes = load32(FIELD(at, FetchRecord, bytes));
    if (bytes) return source < high && source + bytes > low;
    u32 place[5];
    for (u32 d = 0; d < 5; ++d) place[d] = load32(FIELD(at, FetchRecord, place) + 4 * d);
    Result r;
    return find_box(source, place, r) && r.low < high && r.high > low && result_covers(r, low, high);
}

DEVICE bool fetches_may_overlap(u64 slot, u64 low, u64 high) {
    bool found = false;
    for (u32 i = 0; i < FETCH_AREAS; ++i) found |= overlaps(load_span(FIELD(globals_of(slot), Globals, fetch_areas) + 16 * i), low, high);
    for (u32 i = 0; i < TENSORS; ++i) {
        u64 kept = FIELD(globals_of(slot), Globals, tensors) + sizeof(TensorRange) * i;
        found |= load64(FIELD(kept, TensorRange, low)) < high && load64(FIELD(kept, TensorRange, high)) > low;
    }
    return found;
}

// The caller stores to [low, high).
COLD void look_for_fetches(Caller c, u64 low, u64 high) {
    if (!fetches_may_overlap(c.slot, low, high)) return;
    u64 globals = globals_of(c.slot), over_at = FIELD(globals, Globals, fetch_over) + 4 * (c.me >> 5);
    u32 total = load32(FIELD(globals, Globals, fetch_count)), over = load32(over_at), first = max(over, total > FETCHES ? total - FETCHES : 0);
    bool all = !lane_acquired(c.slot, c.me);
    if (load32(FIELD(globals, Globals, fetches_lost))) count_evicted(c.slot);
#pragma unroll 1
    for (u32 i = first; i < total; ++i) {
        u64 at = fetch_at(c.slot, i);
        if (load64(FIELD(at, FetchRecord, live)) != live_mark(c.slot, i)) { all = false; continue; }
        Operation o = fetch_of(at);
        bool over = use_over(c, o);
        all &= over;
        if (all) store32(over_at, i + 1);
        if (over || !fetch_covers(at, low, high)) continue;
        Finding f = make_conflict(c, KIND_MISSING_WAIT, HAZARD_WAR, o.site, o.thread, 0);
        f.flags = FLAG_OTHER_ASYNC | FLAG_GLOBAL; f.reason = REASON_SOURCE_OVERWRITTEN; f.conflict.address = low; f.bytes = (u32)(high - low);
        describe_conflict(c, f, o);
        report(c.slot, f);
    }
}

// ---- hooks ------------------------------------------------------------------------------------------------------------------------

// A bulk load; `mbarrier` signals its completion.
HOOK void __consan_fetch(u64 slot, u64 state, u32 me, u32 site, u32 mbarrier, u64 address, u32 bytes) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_READ | ACCESS_ENGINE, 0, bytes};
#if CONSAN_ISA
    check_polls(c, address);
#endif
    if (stores_may_overlap(slot, address, address + bytes)) check_stores(c, address, address + bytes);
    u32 nowhere[5] = {0, 0, 0, 0, 0};
    widen_span(FIELD(globals_of(slot), Globals, fetch_areas) + 16 * (site % FETCH_AREAS), address, address + bytes);
    widen_interval(FIELD(slot, Slot, flight_low), address, address + bytes);
    keep_fetch(c, mbarrier, address, bytes, nowhere);
}

// A tiled tensor load.
HOOK void __consan_tensor_fetch(u64 slot, u64 state, u32 me, u32 site, u32 mbarrier, u64 map, u32 x0, u32 x1, u32 x2, u32 x3, u32 x4) {
    if (!slot) return;
    Span whole = tensor_range(slot, map);
    Caller c = {slot, state, me, site, ACCESS_READ | ACCESS_ENGINE, 0, 0};
#if CONSAN_ISA
    check_polls(c, whole.low);
#endif
    u32 place[5] = {x0, x1, x2, x3, x4};
    keep_fetch(c, mbarrier, map, 0, place);
    if (!stores_may_overlap(slot, whole.low, whole.high)) return;
    Result r;
    if (find_box(map, place, r) && stores_may_overlap(slot, r.low, r.high)) check_box(c, r);
}
#endif
