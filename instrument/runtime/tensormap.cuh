// Tensor maps that the device builds in shared memory: tensormap.replace and tensormap.cp_fenceproxy.
//
// maps.cuh follows maps in global memory.
#pragma once

#include "access_hooks.cuh"

#define MAP_BYTES 128u

// A weak operation on the whole map by one thread (ISA "tensormap.replace"). The other contents of a map are opaque, so it counts as a
// write of all of it, not as a read. Two threads count as writing different values, neither of them zero.
HOOK void __consan_map_write(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_WRITE, 0, MAP_BYTES};
    if (!enter_access(c, head_of(slot, me), address)) return;
    u32 mine = ~me;
#pragma unroll 1
    for (u32 at = 0; at < MAP_BYTES; at += 16) __consan_write16(slot, state, me, address + at, site, mine, mine, mine, mine);
}

#if CONSAN_PARTIAL
// A whole warp copies the map to global memory. The lanes synchronise (ISA "tensormap.cp_fenceproxy", .sync), each reads its share, and
// none continues before all have read. The assembler emits it so: a warp barrier, and one word per lane.
HOOK u64 __consan_map_copy(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return state;
    state = __consan_warp_sync(slot, state, me, 0xffffffffu, 0);
    Caller c = {slot, state, me, site, ACCESS_READ, 0, MAP_BYTES};
    u32 mask = existing_lanes(slot, me);
    if (enter_access(c, head_of(slot, me), address)) {
#pragma unroll 1
        for (u32 at = 4 * lanes_below(mask); at < MAP_BYTES; at += 4 * __popc(mask)) __consan_read4(slot, state, me, address + at, site);
    }
    return __consan_warp_sync(slot, state, me, 0xffffffffu, 0);
}
#endif
