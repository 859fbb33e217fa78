// The cold path: merges findings by (module, kind, unordered pair of sites), and writes the first instance of each to the ring.
//
// The table is in device memory and its counts are exact. The ring is in host-mapped memory. It holds one full record per table entry,
// written before the entry is used again, so it survives a lost context. When table or ring is full, the finding is counted as dropped
// and the verdict becomes `incomplete`.
#pragma once

#include "base.cuh"

struct Finding {
    u32 kind, hazard, reason, flags, site, other_site, me, other, offset, bytes, epoch, other_epoch, group, commits, retired;
    u64 address;
    u32 operation, own_operation, barrier, phase, barrier_expected, parity;
    u64 barrier_state;
};

DEVICE u64 finding_key(const Finding &f, u32 module) {
    u32 first = min(f.site, f.other_site), second = max(f.site, f.other_site);
    return 1ull << 63 | (u64)(module & 0xfff) << 51 | (u64)f.kind << 46 | (u64)(f.flags & 3) << 44 | (u64)f.reason << 36 | (u64)first << 18 | second;
}

COLD void write_record(u64 slot, u64 at, const Finding &f, u32 entry_index) {
    FindingRecord r;
    r.module = load32(FIELD(slot, Slot, module)); r.kind = f.kind; r.hazard = f.hazard; r.reason = f.reason; r.flags = f.flags;
    r.site = f.site; r.other_site = f.other_site; r.entry = load32(FIELD(slot, Slot, entry)); r.table = entry_index;
    r.ctaid[0] = ctaid_x(); r.ctaid[1] = ctaid_y(); r.ctaid[2] = ctaid_z();
    r.ntid[0] = ntid_x(); r.ntid[1] = ntid_y(); r.ntid[2] = ntid_z();
    r.thread = f.me; r.other_thread = f.other; r.offset = f.offset; r.bytes = f.bytes; r.epoch = f.epoch; r.other_epoch = f.other_epoch;
    r.group = f.group; r.commits = f.commits; r.retired = f.retired; r.shared_bytes = load32(FIELD(slot, Slot, bytes)); r.address = f.address;
    r.operation = f.operation; r.own_operation = f.own_operation; r.barrier = f.barrier; r.phase = f.phase;
    r.barrier_state = f.barrier_state; r.barrier_expected = f.barrier_expected; r.parity = f.parity;
    r.cta_bytes = r.cta_threads = r.rank = r.cluster[0] = r.cluster[1] = r.cluster[2] = 0;
#if CONSAN_CLUSTER
    r.cta_bytes = cta_bytes(slot); r.cta_threads = 32u << cta_shift(slot); r.rank = cluster_rank();
    r.cluster[0] = ctas_x(); r.cluster[1] = ctas_y(); r.cluster[2] = ctas_z();
#endif
    r.valid = 0;
    const u64 *words = (const u64 *)&r;
    for (u32 i = 1; i < sizeof(r) / 8; ++i) host_store64(at + 8 * i, words[i]);
    host_fence();
    host_store64(at, words[0] | 1);
}

DEVICE void count_cta(u64 slot, u64 entry, u32 index) {
    u64 word = FIELD(slot, Slot, found) + 4 * (index / 32);
    store32(FIELD(slot, Slot, found_any), 1);
    if (!(gpu_or32(word, 1u << (index % 32)) & (1u << (index % 32)))) gpu_count32(FIELD(entry, TableEntry, ctas), 1);
}

// Slot.lanes_left: 0; 1: the next CTA must clear it; 2: an .aligned instruction was divergent. The behaviour of the CTA is then undefined
// (ISA "bar, barrier"), so no later finding is reported, except a deadlock, which the host reports together with the divergence.
#define AFTER_DIVERGENCE 2u
DEVICE bool follows_divergence(u64 slot, const Finding &f) {
    return load32(FIELD(slot, Slot, lanes_left)) == AFTER_DIVERGENCE && f.kind != KIND_DEADLOCK && f.kind != KIND_WAITER;
}

COLD void report(u64 slot, const Finding &f) {
    if (follows_divergence(slot, f)) return;
    u64 runtime = load64(FIELD(slot, Slot, runtime)), table = load64(FIELD(runtime, Runtime, table));
    u64 key = finding_key(f, load32(FIELD(slot, Slot, module)));
    u32 index = (u32)((key * 0x9E3779B97F4A7C15ull) >> 40) % TABLE_ENTRIES;
    for (u32 probe = 0; probe < TABLE_ENTRIES; ++probe, index = (index + 1) % TABLE_ENTRIES) {
        u64 entry = table + (u64)index * sizeof(TableEntry), seen = gpu_load64(entry);
        if (seen == 0) {
            seen = gpu_swap64(entry, 0, key);
            if (seen == 0) {
                u32 position = gpu_add32(FIELD(runtime, Runtime, ring_count), 1);
                if (position < RING_ENTRIES) write_record(slot, load64(FIELD(runtime, Runtime, ring)) + (u64)position * sizeof(FindingRecord), f, index);
                else gpu_add64(FIELD(runtime, Runtime, dropped_findings), 1);
                seen = key;
            }
        }
        if (seen != key) continue;
        gpu_count32(FIELD(entry, TableEntry, count), 1);
        // `low` holds the complement, so that zeroed memory is the identity of max for both bounds.
        gpu_max32(FIELD(entry, TableEntry, low), ~f.offset);
        gpu_max32(FIELD(entry, TableEntry, high), f.offset + f.bytes);
        count_cta(slot, entry, index);
        return;
    }
    gpu_add64(FIELD(runtime, Runtime, dropped_findings), 1);
}

DEVICE void count_evicted(u64 slot) { gpu_add64(FIELD(load64(FIELD(slot, Slot, runtime)), Runtime, evicted), 1); }
