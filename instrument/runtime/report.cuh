// The cold path: merges findings by (module, kind, unordered pair of sites), and writes the first instance of each to the ring.
//
// The table is in device memory and its counts are exact. The ring is in host-mapped memory. It holds one full record per table entry,
// written before the entry is used again, so it survives a lost context. When table or ring is full, the finding is counted as dropped
// and the verdict becomes `incomplete`.
#pragma once

#include "base.cuh"

// The groups by which an operation completes.
DEVICE void describe_groups(Completion &done, u32 group, u32 commits, u32 retired) { done.group = group; done.commits = commits; done.retired = retired; }

DEVICE u64 finding_key(const Finding &f, u32 module) {
    u32 first = min(f.site, f.other_site), second = max(f.site, f.other_site);
    u32 high = 1u << KEY_USED_SHIFT | (module & KEY_MODULE_MASK) << KEY_MODULE_SHIFT | f.kind << KEY_KIND_SHIFT | (f.flags & KEY_FLAGS_MASK) << KEY_FLAGS_SHIFT | f.reason << KEY_REASON_SHIFT;
    return (u64)high << 32 | (u64)first << KEY_FIRST_SHIFT | second;
}

COLD void write_record(u64 slot, u64 at, const Finding &f, u32 entry_index) {
    FindingRecord r;
    Event &e = r.event;
    e.module = load32(FIELD(slot, Slot, module)); e.entry = load32(FIELD(slot, Slot, entry)); e.table = entry_index;
    e.kind = f.kind; e.reason = f.reason; e.flags = f.flags; e.site = f.site; e.other_site = f.other_site;
    e.thread = f.thread; e.offset = f.offset; e.bytes = f.bytes; e.shared_bytes = load32(FIELD(slot, Slot, bytes));
    e.ctaid[0] = ctaid_x(); e.ctaid[1] = ctaid_y(); e.ctaid[2] = ctaid_z();
    e.ntid[0] = ntid_x(); e.ntid[1] = ntid_y(); e.ntid[2] = ntid_z();
    e.valid = e.pad = e.cta_bytes = e.cta_threads = e.rank = e.cluster[0] = e.cluster[1] = e.cluster[2] = 0;
#if CONSAN_CLUSTER
    e.cta_bytes = cta_bytes(slot); e.cta_threads = 32u << cta_shift(slot); e.rank = cluster_rank();
    e.cluster[0] = ctas_x(); e.cluster[1] = ctas_y(); e.cluster[2] = ctas_z();
#endif
    for (u32 i = 0; i < sizeof(f.words) / 8; ++i) r.words[i] = f.words[i];
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
        // `low` holds the complement, so that the maximum serves both bounds and zeroed memory is its identity.
        gpu_max32(FIELD(entry, TableEntry, low), ~f.offset);
        gpu_max32(FIELD(entry, TableEntry, high), f.offset + f.bytes);
        count_cta(slot, entry, index);
        return;
    }
    gpu_add64(FIELD(runtime, Runtime, dropped_findings), 1);
}

DEVICE void count_evicted(u64 slot) { gpu_add64(FIELD(load64(FIELD(slot, Slot, runtime)), Runtime, evicted), 1); }
