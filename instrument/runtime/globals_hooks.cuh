// The hook of generic accesses to global memory, in modules whose copies use it too.
#pragma once

#include "maps.cuh"
#include "fetches.cuh"

#if CONSAN_ENGINE
// A generic access within the interval that bounds everything in flight.
HOOK void __consan_global_access(u64 slot, u64 state, u32 me, u64 address, u32 site, u32 bytes, u32 flags) {
    if (!slot) return;
    Caller c = {slot, state, me, site, flags, 0, bytes};
    if (address < load64(FIELD(slot, Slot, result_high)) && address + bytes > load64(FIELD(slot, Slot, result_low))) look_for_results(c, address);
    if (!(flags & (ACCESS_WRITE | ACCESS_RMW))) return;
    if (overlaps(load_span(FIELD(globals_of(slot), Globals, map_low)), address, address + bytes)) look_for_uses(c, address, address + bytes);
    if (load32(FIELD(globals_of(slot), Globals, fetch_count))) look_for_fetches(c, address, address + bytes);
}
#endif
