// How a thread enters the runtime: it finds or makes the slot of its CTA. Also the hooks of a whole kernel: counters, and the end of a run.
#pragma once

#include "slot.cuh"

HOOK u64 __consan_enter(u64 runtime, u32 module, u32 entry, u32 counter) {
    if (!runtime) return 0;
    u64 key = cta_key();
    u32 me = self_number(), mask = active_mask();
    if (me == 0) {
        if (linear_cta() == 0) gpu_add64(load64(FIELD(runtime, Runtime, launches)) + 8ull * counter, 1);
        insert_cta(runtime, key, module, entry);
    }
    u64 place = find_cta(runtime, key);
    // Acquires the release of thread 0 and of the slot's previous owner: L1 may hold lines of this slot from an earlier CTA of this SM.
    gpu_fence();
    u64 slot = gpu_load64(FIELD(place, Directory, slot));
    if (slot != NO_SLOT) reset_thread(slot, me);
    // Thread 0 comes here after the other lanes of its warp. Without this the warp continued in two parts, on an H200 until an aligned barrier.
    __syncwarp(mask);
    return slot == NO_SLOT ? 0 : slot;  // unchecked, but still counted out of the directory
}

// The slot of the running CTA, for a called function.
HOOK u64 __consan_find(u64 runtime) {
    if (!runtime) return 0;
    u64 place = find_cta(runtime, cta_key()), slot = gpu_load64(FIELD(place, Directory, slot));
    return slot == NO_SLOT ? 0 : slot;
}

// The shared-space address of the CTA's first own byte.
HOOK u32 __consan_low() { return reserved_shared(); }

#if CONSAN_CLUSTER
// The number of this thread in its cluster.
HOOK u32 __consan_self() { return self_number(); }
#endif

// The host stops the launch: records where these lanes were before they exit. The record follows the findings in host memory, so it survives a
// lost context too. `place`: a line of the PTX, or with STAND_AT_SITE a site.
HOOK void __consan_stands(u64 runtime, u64 slot, u32 module, u32 entry, u32 place) {
    u32 mask = active_mask();
    if (!runtime || lane_id() != __ffs(mask) - 1) return;
    u32 index = gpu_add32(FIELD(runtime, Runtime, stands), 1);
    if (index >= STANDS) { gpu_add32(FIELD(runtime, Runtime, stands_over), __popc(mask)); return; }
    StandRecord r;
    r.valid = 0; r.module = module; r.entry = entry == NO_ENTRY && slot ? load32(FIELD(slot, Slot, entry)) : entry;
    r.place = place; r.warp = linear_tid() >> 5; r.lanes = mask;
    r.ctaid[0] = ctaid_x(); r.ctaid[1] = ctaid_y(); r.ctaid[2] = ctaid_z(); r.pad = 0;
    const u64 *words = (const u64 *)&r;
    u64 at = load64(FIELD(runtime, Runtime, ring)) + (u64)RING_ENTRIES * sizeof(FindingRecord) + (u64)index * sizeof(StandRecord);
    for (u32 i = 1; i < sizeof(r) / 8; ++i) host_store64(at + 8 * i, words[i]);
    host_fence();
    host_store64(at, words[0] | 1);
}

HOOK u32 __consan_poll(u64 runtime) { return runtime ? gpu_load32(FIELD(runtime, Runtime, abort)) : 0; }

// A kernel without checked accesses takes no slot. Its launches are counted all the same.
HOOK void __consan_count(u64 runtime, u32 counter) {
    if (runtime && linear_tid() == 0 && linear_cta() == 0) gpu_add64(load64(FIELD(runtime, Runtime, launches)) + 8ull * counter, 1);
}
