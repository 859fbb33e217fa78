// Tensor maps that the device builds in shared memory: tensormap.replace and tensormap.cp_fenceproxy.
//
// What becomes of a map in global memory is followed in maps.cuh.
#pragma once

#include "access_hooks.cuh"

#define MAP_BYTES 128u

// A weak operation on the whole map, by one thread (ISA "tensormap.replace"). Whatever else the map holds is opaque: it counts as a
// write of all of it, not as a read. Two threads are taken to leave different values, none of which is zero.
HOOK void __consan_map_write(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_WRITE, 0, MAP_BYTES};
    if (!enter_access(c, head_of(slot, me), address)) return;
    u32 mine = ~me;
#pragma unroll 1
    for (u32 at = 0; at < MAP_BYTES; at += 16) __consan_write16(slot, state, me, address + at, site, mine, mine, mine, mine);
}

#if CONSAN_PARTIAL
// The copy of a map to global memory, by a whole warp: the lanes meet (ISA "tensormap.cp_fenceproxy", .sync), each reads its share, and
// none goes on before all have. The assembler writes it so: a warp barrier, and a word for each lane.
HOOK u64 __consan_map_copy(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return state;
    state = __consan_warp_sync(slot, state, me, 0xffffffffu);
    Caller c = {slot, state, me, site, ACCESS_READ, 0, MAP_BYTES};
    u32 mask = existing_lanes(slot, me);
    if (enter_access(c, head_of(slot, me), address)) {
#pragma unroll 1
        for (u32 at = 4 * lanes_below(mask); at < MAP_BYTES; at += 4 * __popc(mask)) __consan_read4(slot, state, me, address + at, site);
    }
    return __consan_warp_sync(slot, state, me, 0xffffffffu);
}
#endif
