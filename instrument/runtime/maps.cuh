// Tensor maps in global memory (R-B7, R-PX): changed by this CTA, and used by its tensor copies.
//
// A copy reads its map through the tensormap proxy until it completes (a store: until wait_group.read). A thread that changes the map must
// have observed that. Before a copy uses a changed map, the change must pass a release fence of its thread and an acquire fence for this
// map (ISA "fence.proxy.tensormap"). Uses are kept in a ring. Changes by tensormap instructions, and acquire fences, are kept in a table
// by address. Changes by ordinary stores are found in the table of written cells.
//
// Not detected: changes by other CTAs and by bulk copies, and changes that are unordered with the use. Only the last fence of each warp is
// known. An acquire fence serves all threads ordered after it. A fence by a warp other than the changing one counts even if it came before
// the change.
#pragma once

#include "tensormap.cuh"
#include "written.cuh"

#if CONSAN_ENGINE
DEVICE bool is_global(u64 address) {
    u32 v;
    asm volatile("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(v) : "l"(address));
    return v;
}

// ---- uses -------------------------------------------------------------------------------------------------------------------------

DEVICE u64 use_at(u64 slot, u32 place) { return FIELD(tables_of(slot), GlobalTables, uses) + sizeof(MapUse) * place; }
static_assert(sizeof(MapUse) * MAP_USES == sizeof(((GlobalTables *)0)->uses) && sizeof(MapState) * MAPS == sizeof(((GlobalTables *)0)->maps), "GlobalTables");

struct Use { u64 map; Operation o; };

DEVICE Use load_use(u64 at) {
    Use u;
    u.map = load64(at);
    u64 site = load64(FIELD(at, MapUse, site)), thread = load64(FIELD(at, MapUse, thread)), phase = load64(FIELD(at, MapUse, phase));
    u.o.site = u.o.source = low_word(site); u.o.kind = high_word(site);
    u.o.thread = low_word(thread); u.o.barrier = high_word(thread);
    u.o.phase = low_word(phase); u.o.group = high_word(phase);
    u.o.low = u.o.high = u.o.sequence = 0; u.o.shape = u.o.shape2 = 0;
    return u;
}

DEVICE void keep_use(const Caller &c, u64 map, const Operation &o) {
    u64 globals = globals_of(c.slot);
    u32 position = add32(FIELD(globals, Globals, use_count), 1);
    u64 at = use_at(c.slot, position % MAP_USES);
    Caller anybody = c;
    anybody.flags |= GLOBAL_EDGES;
    if (position >= MAP_USES && !use_over(anybody, load_use(at).o)) store32(FIELD(globals, Globals, uses_lost), 1);
    store64(FIELD(at, MapUse, live), 0);
    record_fence();
    store64(at, map);
    store64(FIELD(at, MapUse, site), pack(o.site, o.kind));
    store64(FIELD(at, MapUse, thread), pack(o.thread, o.barrier));
    store64(FIELD(at, MapUse, phase), pack(o.phase, o.group));
    record_fence();
    store64(FIELD(at, MapUse, live), live_mark(c.slot, position));
    widen_span(FIELD(globals, Globals, map_low), map, map + MAP_BYTES);
    widen_interval(FIELD(c.slot, Slot, flight_low), map, map + MAP_BYTES);
}

// The caller changes [low, high): reports a copy in flight that uses a map there.
COLD void look_for_uses(Caller c, u64 low, u64 high) {
    u64 globals = globals_of(c.slot);
    u32 total = load32(FIELD(globals, Globals, use_count)), count = min(total, MAP_USES);
    if (load32(FIELD(globals, Globals, uses_lost))) count_evicted(c.slot);
    for (u32 i = 0; i < count; ++i) {
        u64 at = use_at(c.slot, i), map = load64(at);
        if (map >= high || map + MAP_BYTES <= low) continue;
        u64 mark = live_mark(c.slot, total - 1 - (total - 1 - i) % MAP_USES);
        if (load64(FIELD(at, MapUse, live)) != mark) continue;
        Use u = load_use(at);
        if (use_over(c, u.o)) continue;
        Finding f = make_conflict(c, KIND_MISSING_WAIT, HAZARD_WAR, u.o.site, u.o.thread, 0);
        f.flags = FLAG_OTHER_ASYNC | FLAG_GLOBAL; f.reason = REASON_MAP_CHANGED; f.conflict.address = low; f.bytes = (u32)(high - low);
        describe_conflict(c, f, u.o);
        report(c.slot, f);
    }
}

// ---- changes and fences --------------------------------------------------------------------------------------------------------------

// The epoch at which a warp executed a fence, with one of the lanes; 0 if it executed none.
DEVICE u32 fence_word(u64 state, u32 me) { return low_word(state) << 5 | me & 31; }

DEVICE u64 map_place(u64 slot, u64 map) { return FIELD(tables_of(slot), GlobalTables, maps) + sizeof(MapState) * (u32)(map / MAP_BYTES % MAPS); }
// The owner of a place: this map (1), another map of this CTA (2), none (0).
DEVICE u32 holds_map(u64 slot, u64 at, u64 map) { return load32(FIELD(at, MapState, born)) != load32(FIELD(slot, Slot, base)) + 1 ? 0 : load64(at) == map ? 1 : 2; }

DEVICE u64 take_place(u64 slot, u64 map) {
    u64 at = map_place(slot, map);
    if (holds_map(slot, at, map) == 1) return at;
    store64(FIELD(at, MapState, epoch), 0);
    store64(at, map);
    store32(FIELD(at, MapState, born), load32(FIELD(slot, Slot, base)) + 1);
    return at;
}

// Whether a fence, recorded in `words`, lies between the access of `warp` at an epoch and the caller.
DEVICE bool fenced_by(const Caller &c, u64 words, u32 warp, u32 epoch) {
    u32 warps = load32(FIELD(c.slot, Slot, warp_count)), base = load32(FIELD(c.slot, Slot, base));
    for (u32 w = 0; w < warps; ++w) {
        u32 word = load32(words + 4 * w);
        if (word >> 5 < base || (w == warp && word >> 5 < epoch)) continue;
        if (w == c.me >> 5 || happens_before(c, w << 5 | word & 31, word >> 5)) return true;
    }
    return false;
}

// Thread `other` changed the map at an epoch: checks whether the caller's copy may use it.
DEVICE bool check_change(Caller c, u64 map, u32 site, u32 other, u32 epoch, bool released) {
    if (!happens_before(c, other, epoch)) return true;
    u64 at = map_place(c.slot, map);
    u32 held = holds_map(c.slot, at, map);
    // If another map holds the place, the fences of this one are lost, and it counts as acquired.
    bool acquired = held == 2 || (held && fenced_by(c, FIELD(at, MapState, acquired), other >> 5, epoch));
    released |= fenced_by(c, FIELD(globals_of(c.slot), Globals, map_released), other >> 5, epoch);
    if (acquired && released) return true;
    Finding f = make_conflict(c, KIND_MISSING_PROXY_FENCE, HAZARD_RAW, site, other, 0);
    f.flags = FLAG_GLOBAL; f.reason = acquired ? REASON_MAP_NOT_RELEASED : REASON_MAP_NOT_ACQUIRED; f.bytes = MAP_BYTES;
    f.conflict.own_operation = c.flags & ACCESS_WRITE ? OPERATION_BULK_STORE : OPERATION_BULK_LOAD; f.conflict.address = map;
    report(c.slot, f);
    return false;
}

DEVICE void check_map(const Caller &c, u64 map) {
    u64 place = map_place(c.slot, map);
    bool known = holds_map(c.slot, place, map) == 1;
    u64 change = known ? load64(FIELD(place, MapState, epoch)) : 0, by = known ? load64(FIELD(place, MapState, site)) : 0;
    if (low_word(change) && !check_change(c, map, low_word(by), high_word(by), low_word(change), high_word(change))) return;
    if (!stores_may_overlap(c.slot, map, map + MAP_BYTES)) return;
    for (u64 at = map; at < map + MAP_BYTES; at += CELL_BYTES) {
        Store s = find_store(c, at);
        if (s.site && !check_change(c, map, s.site, s.thread, s.epoch, false)) return;
    }
}

// A tensor copy is about to use a map. `mbarrier` signals completion of a load; `stores`: it is a store, and its bulk group does.
HOOK void __consan_map_use(u64 slot, u64 state, u32 me, u32 site, u64 map, u32 mbarrier, u32 flags) {
    if (!slot || !is_global(map)) return;
    Caller c = {slot, state, me, site, flags, 0, MAP_BYTES};
    check_map(c, map);
    Operation o = new_operation(c, flags & ACCESS_WRITE ? OPERATION_BULK_STORE : OPERATION_BULK_LOAD, site);
    if (flags & ACCESS_WRITE) o.group = load32(THREAD_FIELD(thread_record(slot, me), bulk_commits));
    else {
        o.barrier = find_barrier(engine_of(slot), offset_of(slot, mbarrier));
        if (o.barrier == NO_BARRIER) return;
        o.phase = state_phase(load64(mbarrier_at(engine_of(slot), o.barrier)));
    }
    keep_use(c, map, o);
}

// tensormap.replace of a map in global memory, or a copy of one there (cp_fenceproxy, by a warp; `flags` 1: it is also a release).
HOOK void __consan_map_change(u64 slot, u64 state, u32 me, u32 site, u64 map, u32 flags) {
    if (!slot || !is_global(map)) return;
    if (flags & MAP_RELEASES && lane_id() != __ffs(active_mask()) - 1) return;
    Caller c = {slot, state, me, site, flags & GLOBAL_EDGES, 0, MAP_BYTES};
    look_for_uses(c, map, map + MAP_BYTES);
    u64 at = take_place(slot, map);
    for (u32 w = 0; w < MAX_WARPS; w += 2) store64(FIELD(at, MapState, acquired) + 4 * w, 0);
    store64(FIELD(at, MapState, site), pack(site, me));
    store64(FIELD(at, MapState, epoch), pack(low_word(state), flags & MAP_RELEASES));
    store64(kept_tensor(slot, map), 0);
}

// fence.proxy.tensormap::generic: .acquire of a map, or .release (`map` 0). A new epoch follows.
HOOK u64 __consan_map_fence(u64 slot, u64 state, u32 me, u64 map) {
    if (!slot) return state;
    u32 mask = active_mask();
    state = together(state, mask);
    u64 words = FIELD(globals_of(slot), Globals, map_released);
    if (map) {
        words = FIELD(take_place(slot, map), MapState, acquired);
        store64(kept_tensor(slot, map), 0);
    }
    store32(words + 4 * (me >> 5), fence_word(state, me));
    __syncwarp(mask);
    return advance(slot, state, me);
}
#endif
