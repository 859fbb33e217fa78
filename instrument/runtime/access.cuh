// Checks of memory accesses against the shadow cells (R-RACE, R-UNINIT, R-OOB).
//
// A race is a conflicting pair with no happens-before edge. Each granule of shared memory has one record of its last write and, for
// every warp, one record of the warp's last read:
//  * The last write is enough (FastTrack, Flanagan and Freund 2009). A later write either is ordered after it and covers it, or is
//    reported.
//  * Reads are kept per warp. No reader is evicted, and recording needs a plain store, no atomic.
//  * Lanes of one warp that read a granule in one epoch share the record. `several` marks it, so a write by any lane of that warp
//    without a warp barrier still conflicts.
// Order. CONSAN_PARTIAL=0 (whole-CTA barriers only): all warps count the same barriers, and a record is unordered exactly if its
// epoch is the current one. CONSAN_PARTIAL=1: each warp has its own epochs and a vector clock.
// An access records first, then executes a sequentially consistent fence, then looks: of two concurrent conflicting accesses at least
// one sees the other. Writes swap their record in atomically, so two writers cannot both miss.
// Granule: 1, 2 or 4 bytes, the narrowest access of the module. Therefore no record needs a byte mask.
#pragma once

#include "order.cuh"
#include "report.cuh"

// In a record with HIGH_ASYNC these two flags give its type. Neither: a cp.async (payload: group). LOW_MARKER: an mbarrier (payload: its
// number). LOW_ATOMIC: a cp.async that completes with a phase (payload: number of the mbarrier, low byte of the phase).
#define LOW_TYPE (LOW_ATOMIC | LOW_MARKER)
// In clusters, a bit beside the width of a strong access: the access has .cta scope.
#define CTA_SCOPE 0x40u

DEVICE u64 make_record(u32 epoch, u32 me, u32 site, u32 high_flags, u32 low_flags) {
    return pack(site << RECORD_SITE_SHIFT | low_flags, (epoch & RECORD_EPOCH_MASK) << RECORD_EPOCH_SHIFT | me << RECORD_THREAD_SHIFT | high_flags);
}
DEVICE u32 make_entry(u32 epoch, u32 me, u32 site, u32 flags) {
    return (epoch & ENTRY_EPOCH_MASK) << ENTRY_EPOCH_SHIFT | min(site, READ_SITE_LIMIT) << ENTRY_SITE_SHIFT | flags | (me & 31);
}
DEVICE bool of_atomic(u32 entry) { return (entry & (ENTRY_ATOMIC | ENTRY_LOAD)) == ENTRY_ATOMIC; }
static_assert(READ_SITE_LIMIT <= ENTRY_SITE_MASK, "the highest number stands for all above");

DEVICE u32 write_epoch(const Caller &c, u64 record) {
    return widen(record_epoch(record), epoch_of_warp(c.slot, record_warp(record), low_word(c.state)), RECORD_EPOCH_MASK);
}

DEVICE bool alive(const Caller &c, u64 record, u32 epoch) {
    return record && ((u32)(record >> 32) & HIGH_OLD || epoch - load32(FIELD(c.slot, Slot, base)) < 0x80000000u);
}

// A finding at the caller's instruction. The fields of its event type are 0; the caller fills them in.
DEVICE Finding make_finding(const Caller &c, u32 kind, u32 reason, u32 other_site = 0) {
    Finding f;
    f.kind = kind; f.reason = reason; f.flags = 0; f.site = c.site; f.other_site = other_site; f.thread = c.me; f.offset = c.offset; f.bytes = c.bytes;
    for (u32 i = 0; i < sizeof(f.words) / 8; ++i) f.words[i] = 0;
    return f;
}

// The caller's access conflicts with one of thread `other`.
DEVICE Finding make_conflict(const Caller &c, u32 kind, u32 hazard, u32 other_site, u32 other, u32 flags) {
    bool same_warp = c.me >> 5 == other >> 5;
    Finding f = make_finding(c, kind, same_warp ? REASON_NO_WARP_SYNC : REASON_NO_BARRIER, other_site);
    f.flags = flags | (same_warp ? FLAG_SAME_WARP : 0); f.conflict.hazard = hazard; f.conflict.other_thread = other;
    return f;
}

#if CONSAN_CLUSTER
// R-SCOPE: if the edge exists at a narrower scope, report `scope`. `holds` asks for the edge as a caller that sees narrow edges too.
template <typename F> DEVICE void look_for_scope(const Caller &c, Finding &f, F holds) {
    Caller wide = c;
    wide.flags |= ACCESS_WIDE_WAIT;
    bool waited = holds(wide);
    wide.flags |= ACCESS_WIDE;
    if (!waited && !holds(wide)) return;
    f.kind = KIND_SCOPE;
    f.reason = waited ? REASON_WAIT_SCOPE : REASON_ARRIVE_SCOPE;
}

// R-SCOPE for an access by a thread of another CTA.
DEVICE void look_for_scope(const Caller &c, Finding &f, u32 other, u32 epoch) {
    if (same_cta(c.slot, other >> 5, c.me >> 5)) return;
    look_for_scope(c, f, [&](const Caller &wide) { return happens_before(wide, other, epoch); });
}
#endif

COLD void report_race(Caller c, u32 hazard, u32 site, u32 other, u32 epoch, u32 flags) {
    Finding f = make_conflict(c, KIND_DATA_RACE, hazard, site, other, flags);
#if CONSAN_CLUSTER
    look_for_scope(c, f, other, epoch);
#endif
#if CONSAN_ENGINE
    // Another lane of this warp took the edge that this lane lacks.
    if (other >> 5 != c.me >> 5 && load32(FIELD(engine_of(c.slot), Engine, acquired) + 4 * (c.me >> 5)) &&
        epoch <= load32(own_vector(c.slot, c.me) + 4ull * VECTOR * MAX_WARPS + 4 * (other >> 5))) f.reason = REASON_OTHER_LANES;
#endif
    report(c.slot, f);
}

// The warps that may access a place: those of its CTA, and those of CTAs that have visited it.
#if CONSAN_CLUSTER
DEVICE u32 ranks_that_may_access(u64 slot, u32 offset) {
    u32 home = offset / cta_bytes(slot);
    return load32(FIELD(slot, Slot, visitors) + 4 * home) | 1u << home;
}
// The next warp after `warp` that belongs to one of `ranks`.
DEVICE u32 next_of_ranks(u64 slot, u32 ranks, u32 warp) {
    u32 shift = cta_shift(slot), rank = warp >> shift;
    if (rank < 32 && ranks >> rank & 1) return warp;
    u32 rest = rank < 31 ? ranks >> rank << rank : 0;
    return rest ? (u32)(__ffs(rest) - 1) << shift : ~0u;
}
#define EACH_WARP_THAT_MAY_ACCESS(SLOT, OFFSET, W) _Pragma("unroll 1") \
    for (u32 may_access_ranks = ranks_that_may_access(SLOT, OFFSET), W = next_of_ranks(SLOT, may_access_ranks, 0); W != ~0u; W = next_of_ranks(SLOT, may_access_ranks, W + 1))
// Whether the scopes of two strong accesses include each other. `payload`: the payloads of both records, or-ed.
DEVICE bool mutual_scope(const Caller &c, u32 warp, u32 payload) {
    return same_cta(c.slot, warp, c.me >> 5) || !(payload & CTA_SCOPE || c.flags & ACCESS_CTA);
}
#else
#define EACH_WARP_THAT_MAY_ACCESS(SLOT, OFFSET, W) _Pragma("unroll 1") for (u32 W = 0; W < load32(FIELD(SLOT, Slot, warp_count)); ++W)
DEVICE bool mutual_scope(const Caller &, u32, u32) { return true; }
#endif

// ---- reads --------------------------------------------------------------------------------------------------------------

// The first reader of an unwritten granule leaves a marker, so that a later unordered write can explain the read. The marker of a
// strong load is flagged: a strong store does not race with it, so no race report would explain the read.
COLD void read_uninitialised(Caller c, u64 cell_at, u64 seen) {
    u64 marker = make_record(low_word(c.state), c.me, c.site, 0, LOW_MARKER | (c.flags & ACCESS_STRONG ? LOW_ATOMIC : 0));
    if (swap64(cell_at, seen, marker) != seen) return;  // a write came in between; it will look at our read record
    report(c.slot, make_finding(c, KIND_UNINITIALIZED_READ, REASON_NONE));
}

// A plain read also conflicts with atomics of other warps that a later atomic has replaced in the write record.
COLD void look_for_atomics(Caller c, u32 cell) {
    u64 reads = load64(FIELD(c.slot, Slot, reads));
    u32 stride = load32(FIELD(c.slot, Slot, row));
    EACH_WARP_THAT_MAY_ACCESS(c.slot, cell * CONSAN_GRANULE, w) {
        u32 entry = load32(reads + (u64)(w + 1) * stride + 4 * cell);
        if (!of_atomic(entry) || w == c.me >> 5) continue;
        u32 epoch = widen(entry_epoch(entry), epoch_of_warp(c.slot, w, low_word(c.state)), ENTRY_EPOCH_MASK);
        if (!happens_before(c, w << 5 | entry_lane(entry), epoch)) { report_race(c, HAZARD_RAW, entry_site(entry), w << 5 | entry_lane(entry), epoch, FLAG_OTHER_ATOMIC); return; }
    }
}

#if CONSAN_ASYNC && !CONSAN_PARTIAL
// With whole-CTA barriers only, a copy is complete for a thread if waits of its issuer before this interval cover the group; for the
// issuer, any of its waits. `retires` holds the epoch of the last wait, what it retired, and what waits of earlier epochs retired.
DEVICE bool copy_settled(const Caller &c, u64 record, u32 base) {
    u32 high = (u32)(record >> 32), own = low_word(c.state);
    if (high & HIGH_OLD || ((own - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK) > own - base) return false;
    u64 word = load64(THREAD_FIELD(thread_record(c.slot, record_thread(record)), retires));
    bool all = record_thread(record) == c.me || low_word(word) != own;
    u32 behind = ((all ? high_word(word) : high_word(word) >> 16) - (u32)record) & LOW_PAYLOAD;
    return behind && behind <= LOW_PAYLOAD / 2;
}
#endif

// Fast path: true if this CTA wrote the granule in an earlier interval, or this thread wrote it, and the record is neither a copy nor old.
DEVICE bool settled(const Caller &c, u64 record, u32 base) {
    u32 high = (u32)(record >> 32), own = low_word(c.state);
#if CONSAN_ASYNC && !CONSAN_PARTIAL
    if (high & HIGH_ASYNC) return copy_settled(c, record, base);
#endif
    if (!record || high & (HIGH_ASYNC | HIGH_OLD)) return false;
    u32 age = (own - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK;
#if CONSAN_CLUSTER
    if (!same_cta(c.slot, record_warp(record), c.me >> 5)) return false;
#endif
#if CONSAN_PARTIAL
    // Epochs of warps differ. Only what is certainly older than this interval is settled here.
    return age > own - high_word(c.state) && age <= min(own - base, WRITE_PERIOD) && own - high_word(c.state) < WRITE_PERIOD;
#else
    return (age != 0 || (high >> RECORD_THREAD_SHIFT & RECORD_THREAD_MASK) == c.me) && age <= own - base && !((u32)record & (LOW_MARKER | LOW_ATOMIC) && age == 0);
#endif
}

// The granules of one store have records with equal upper halves, and a record of an earlier interval is decided by its upper half. So
// one look per store is enough: `memo` is the upper half that was decided last. No record has both flags, so EMPTY_MEMO matches none.
#define EMPTY_MEMO (HIGH_ASYNC | HIGH_OLD)
DEVICE bool settled_by_memo(const Caller &c, u64 record, u32 base, u32 &memo) {
    u32 high = (u32)(record >> 32);
    if (high == memo && record) return true;
    if (!settled(c, record, base)) return false;
    if (!(high & HIGH_ASYNC) && (CONSAN_PARTIAL || (low_word(c.state) - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK)) memo = high;
    return true;
}

// ---- writes -------------------------------------------------------------------------------------------------------------

COLD void conflict_with_read(Caller c, u32 warp, u32 entry) {
    u32 other = warp << 5 | entry_lane(entry), epoch = widen(entry_epoch(entry), epoch_of_warp(c.slot, warp, low_word(c.state)), ENTRY_EPOCH_MASK);
    if (epoch - load32(FIELD(c.slot, Slot, base)) >= 0x80000000u) return;
    if (entry & ENTRY_ATOMIC && c.flags & (ACCESS_RMW | ACCESS_STRONG) && mutual_scope(c, warp, 0)) return;
    // Several lanes of this warp have read, so one of them is another lane.
    if (entry & ENTRY_SEVERAL && other == c.me) other = (warp << 5) | ((c.me & 31) ^ 1);
    if (!happens_before(c, other, epoch, entry & ENTRY_SEVERAL)) report_race(c, HAZARD_WAR, entry_site(entry), other, epoch, entry & ENTRY_ATOMIC ? FLAG_OTHER_ATOMIC : 0);
}

DEVICE bool read_is_recent(u32 entry, u32 own, u32 warp_epoch_now, u32 start) {
#if CONSAN_PARTIAL
    (void)own;
    return entry && (int)(widen(entry_epoch(entry), warp_epoch_now, ENTRY_EPOCH_MASK) - start) >= 0;
#else
    (void)warp_epoch_now; (void)start;
    return entry && entry_epoch(entry) == (own & ENTRY_EPOCH_MASK);
#endif
}

// Whether the warp's read record of this interval stays when the caller's access comes. An atomic does not replace the record of a plain
// read, because atomics of others conflict with the plain read only. A strong load does not replace the record of an atomic either, because
// plain loads of others conflict with the atomic only.
DEVICE bool outranks(const Caller &c, u32 entry) {
    // Another lane of the warp may be at a later epoch.
    u32 own = low_word(c.state), now = epoch_of_warp(c.slot, c.me >> 5, own), weaker = c.flags & ACCESS_RMW ? ENTRY_ATOMIC : ENTRY_LOAD;
    return !(entry & weaker) && read_is_recent(entry, own, now, high_word(c.state));
}

// The first row of the read cells is a summary: the start of the barrier interval in which the granule was last read. All readers
// of an interval store the same number, so the row needs no atomics. A write in an interval without a reader skips the warps' rows.
template <u32 COUNT> DEVICE bool read_in_interval(u64 summary, u32 start) {
    u32 marks[COUNT], differ = 1;
    load_entries<COUNT>(summary, marks);
    for (u32 i = 0; i < COUNT; ++i) differ *= marks[i] != start;
    return !differ;
}

// Checks the read records of every warp for COUNT granules from `cell` on.
template <u32 COUNT> DEVICE void check_readers(const Caller &c, u32 cell) {
    u64 reads = load64(FIELD(c.slot, Slot, reads)) + 4ull * cell;
    u32 stride = load32(FIELD(c.slot, Slot, row)), own = low_word(c.state);
#if CONSAN_CLUSTER
    // An interval belongs to one CTA. It orders nothing if the reader or the writer belongs to another CTA.
    u32 home = c.offset / cta_bytes(c.slot), start = load32(FIELD(c.slot, Slot, base));
    if (rank_of(c.slot, c.me) == home && !load32(FIELD(c.slot, Slot, visitors) + 4 * home)) {
        start = high_word(c.state);
        if (!read_in_interval<COUNT>(reads, start)) return;
    }
    EACH_WARP_THAT_MAY_ACCESS(c.slot, c.offset, w) {
        u64 at = reads + (u64)stride * (w + 1);
#else
    u32 warps = load32(FIELD(c.slot, Slot, warp_count)), start = high_word(c.state);
    if (!read_in_interval<COUNT>(reads, start)) return;
    reads += stride;
#pragma unroll 1
    for (u32 w = 0; w < warps; ++w, reads += stride) {
        u64 at = reads;
#endif
        u32 now = epoch_of_warp(c.slot, w, own);
        u32 entries[COUNT];
        load_entries<COUNT>(at, entries);
        for (u32 i = 0; i < COUNT; ++i) {
            u32 entry = entries[i];
            if (!read_is_recent(entry, own, now, start)) continue;
            if (w == c.me >> 5 && entry_lane(entry) == (c.me & 31) && !(entry & ENTRY_SEVERAL)) continue;
            conflict_with_read(c, w, entry);
        }
    }
}

// An atomic (or strong store) must not hide a concurrent plain write, because other atomics conflict with the plain write only. The plain
// write stays the record if it is this thread's own of this epoch, or if it is unordered with this access.
DEVICE bool own_plain_write(const Caller &c, u64 record) {
    u32 high = (u32)(record >> 32);
    return record && (high & (HIGH_ASYNC | HIGH_OLD)) == 0 && !((u32)record & (LOW_ATOMIC | LOW_MARKER)) && record_thread(record) == c.me &&
           (high >> RECORD_EPOCH_SHIFT) == (low_word(c.state) & RECORD_EPOCH_MASK);
}

DEVICE bool concurrent_plain_write(const Caller &c, u64 record) {
    if ((u32)(record >> 32) & (HIGH_ASYNC | HIGH_OLD) || (u32)record & (LOW_ATOMIC | LOW_MARKER)) return false;
    u32 epoch = write_epoch(c, record);
    return alive(c, record, epoch) && !happens_before(c, record_thread(record), epoch);
}

// Whether the record is an earlier copy by the caller that the caller has waited for. Pipelines refill each stage in this way.
DEVICE bool own_copy_over(const Caller &c, u64 record, u32 base, u32 retired) {
#if CONSAN_ENGINE
    u32 high = (u32)(record >> 32), own = low_word(c.state), behind = (retired - (u32)record) & LOW_PAYLOAD;
    if ((high & (HIGH_ASYNC | HIGH_OLD)) != HIGH_ASYNC || (u32)record & LOW_TYPE || record_thread(record) != c.me) return false;
    return behind && behind <= LOW_PAYLOAD / 2 && ((own - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK) <= own - base;
#else
    return false;
#endif
}

// 14 bits of the stored value. They distinguish two writers of one value from writers of different values (R-RACE).
DEVICE u32 value_hash(u32 value) { return (value * 0x9E3779B1u) >> 18; }
DEVICE u32 granule_value(const u32 *values, u32 i) {
    u32 word = values[i * CONSAN_GRANULE / 4], shift = 8 * (i * CONSAN_GRANULE % 4);
    return CONSAN_GRANULE == 4 ? word : word >> shift & ((1u << (8 * CONSAN_GRANULE % 32)) - 1);
}

// ---- hooks --------------------------------------------------------------------------------------------------------------

// Lanes that enter a hook together leave it together. The hook calls functions for some of them, and lanes that do not reconverge run
// all later code in parts, each at the cost of a whole warp.
#if CONSAN_ENGINE
struct Together {
    u32 mask;
    DEVICE_MEMBER Together() : mask(active_mask()) {}
    DEVICE_MEMBER ~Together() { converge(mask); }
};
#define TOGETHER Together together_;
#else
#define TOGETHER
#endif

COLD void out_of_bounds(Caller c) {
    report(c.slot, make_finding(c, KIND_OUT_OF_BOUNDS, REASON_NONE));
}

struct Head { u64 writes, reads; u32 low, bytes, own, base; };  // own: distance of this warp's read row from the summary

DEVICE Head head_of(u64 slot, u32 me) {
    Head h;
    u64 window, geometry;
#if CONSAN_CLUSTER
    constant_pair(slot, h.writes, h.reads);
    constant_pair(slot + 16, window, geometry);
#else
    // Four words at once: the compiler would move a second, weak load behind the branch that tests the words of the first.
    u64 words[4];
    load_records<4>(slot, words);
    h.writes = words[0]; h.reads = words[1]; window = words[2]; geometry = words[3];
#endif
    h.low = low_word(window); h.bytes = high_word(window); h.own = low_word(geometry) * ((me >> 5) + 1); h.base = high_word(geometry);
    return h;
}
static_assert(offsetof(Slot, writes) == 0 && offsetof(Slot, reads) == 8 && offsetof(Slot, low) == 16 && offsetof(Slot, row) == 24, "head_of");

#if CONSAN_CLUSTER
// The offset of an address; offsets run through all CTAs of the cluster.
DEVICE u32 offset_of(u64 slot, u32 address) {
    return address_rank(address) * cta_bytes(slot) + address_inside(address) - load32(FIELD(slot, Slot, low));
}

#else
DEVICE u32 offset_of(u64 slot, u32 address) { return address - load32(FIELD(slot, Slot, low)); }
#endif

// In clusters, a bit of the site number says that the access has .cta scope.
#if CONSAN_CLUSTER
#define SITE_MASK ~SITE_CTA
DEVICE u32 scope_flag(u32 site) { return site & SITE_CTA ? ACCESS_CTA : 0; }
#else
#define SITE_MASK ~0u
DEVICE u32 scope_flag(u32) { return 0; }
#endif

// Hooks that get the slot's geometry in the caller's registers. On the GPU their bodies are pasted in line.
#define FAST_PARAMETERS u64 slot, u64 state, u32 me, u32 address, u32 site, u64 writes, u64 reads, u32 low, u32 bytes, u32 own, u32 base
#define FAST_HEAD Head head = {writes, reads, low, bytes, own, base}
