// Hooks of bulk and tensor copies, also to other CTAs of the cluster (R-B1 to R-B9).
#pragma once

#include "mbarrier_hooks.cuh"

#if CONSAN_ENGINE
DEVICE bool bulk_range(Caller &c, Operation &o, u32 address, u32 bytes) {
    c.bytes = bytes;
    if (bytes == 0 || !enter_access(c, head_of(c.slot, c.me), address)) return false;
    o.low = c.offset; o.high = c.offset + bytes;
    return true;
}

COLD void issue(const Caller &c, Operation &o) {
    u32 place = list_operation(c, o);
    mark_operation(c.slot, o, 0, 1);
    record_fence();
    operation_listed(engine_of(c.slot));
    meet_other_operations(c, o, place);
    if (!(o.kind & OPERATION_WRITES)) check_initialised(c, o, 0, 1);
    check_blocks(c, o, 0, 1);
}

// A copy into shared memory that an mbarrier tracks.
HOOK void __consan_bulk_load(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes, u32 mbarrier, u32 kind) {
    if (!slot) return;
    u32 site = sites_site(sites);
    Caller c = {slot, state, me, site, ACCESS_WRITE | ACCESS_ENGINE, 0, bytes};
    Caller signalled = barrier_caller(slot, state, me, mbarrier, site);
    signalled.flags |= ACCESS_ENGINE;
    u32 index = barrier_in_use(signalled);
    Operation o = new_operation(c, kind, sites_source(sites));
    bool inside = bulk_range(c, o, address, bytes);
    if (index == NO_BARRIER) return;
    u64 at = mbarrier_at(engine_of(slot), index);
    o.barrier = index; o.phase = state_phase(load64(at));
    if (phases_observed(c, index) >= o.phase) o.kind |= INFORMED;
    if (inside) issue(c, o);
    Caller b = barrier_caller(slot, state, me, mbarrier, site);
    b.offset = offset_of(slot, b.offset);
    change_bytes(b, index, -(int)bytes);
}

HOOK void __consan_bulk_store(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes) {
    if (!slot) return;
    Caller c = {slot, state, me, sites_site(sites), ACCESS_READ | ACCESS_ENGINE, 0, bytes};
    Operation o = new_operation(c, OPERATION_BULK_STORE, sites_source(sites));
    o.group = load32(THREAD_FIELD(thread_record(slot, me), bulk_commits));
    if (bulk_range(c, o, address, bytes)) issue(c, o);
}

// A tiled tensor copy from shared memory. Elements beyond the edge of the tensor are not read.
HOOK void __consan_tensor_store(u64 slot, u64 state, u32 me, u32 address, u32 sites, u64 map, u32 x0, u32 x1, u32 x2, u32 x3, u32 x4) {
    if (!slot) return;
    u32 bytes = __consan_tensor_bytes(map, 1), place[5] = {x0, x1, x2, x3, x4};
    Caller c = {slot, state, me, sites_site(sites), ACCESS_READ | ACCESS_ENGINE, 0, bytes};
    Operation o = new_operation(c, OPERATION_BULK_STORE, sites_source(sites));
    o.group = load32(THREAD_FIELD(thread_record(slot, me), bulk_commits));
    if (bulk_range(c, o, address, bytes) && clip(o, map, place, load32(FIELD(slot, Slot, low)))) issue(c, o);
}

// st.bulk: zeros, written by the executing thread.
HOOK void __consan_fill(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 bytes) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_WRITE, 0, bytes};
    if (!enter_access(c, head_of(slot, me), address)) return;
#pragma unroll 1
    for (u32 at = 0; at < bytes; at += 8) __consan_write8(slot, state, me, address + at, site, 0, 0);
}
#endif
#if CONSAN_CLUSTER
// A copy to the same offset in each CTA of a mask (D13). Each copy signals the barrier at the same offset in its own CTA; with `pairs`
// (.cta_group::2), in that CTA of its pair whose rank has the parity of the given barrier's rank.
HOOK void __consan_bulk_multicast(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes, u32 mbarrier, u32 kind, u32 mask, u32 pairs) {
    if (!slot) return;
    u32 inside = address_inside(address), signalled = address_inside(mbarrier);
#pragma unroll 1
    for (u32 ranks = mask & 0xffff; ranks; ranks &= ranks - 1) {
        u32 rank = __ffs(ranks) - 1, to = pairs ? (rank & ~1u) | (address_rank(mbarrier) & 1) : rank;
        __consan_bulk_load(slot, state, me, rank << ADDRESS_RANK_SHIFT | inside, sites, bytes, to << ADDRESS_RANK_SHIFT | signalled, kind);
    }
}

// cp.async.bulk, or a reduction (ADDS in `kind`), from this CTA's shared memory to another CTA's: the barrier there also signals that the source was read.
HOOK void __consan_bulk_push(u64 slot, u64 state, u32 me, u32 address, u32 sites, u32 bytes, u32 mbarrier, u32 source, u32 kind) {
    if (!slot) return;
    u64 engine = engine_of(slot);
    Caller c = {slot, state, me, sites_site(sites), ACCESS_READ | ACCESS_ENGINE, 0, bytes};
    Operation o = new_operation(c, OPERATION_BULK_SOURCE, sites_source(sites));
    u32 index = find_barrier(engine, offset_of(slot, mbarrier));
    if (index != NO_BARRIER) {
        o.barrier = index; o.phase = state_phase(load64(mbarrier_at(engine, index)));
        if (bulk_range(c, o, source, bytes)) issue(c, o);
    }
    __consan_bulk_load(slot, state, me, address, sites, bytes, mbarrier, kind);
}
#endif
