// Checks of memory accesses against the shadow cells.
//
// A race is a pair with no happens-before edge (SEMANTICS 2.1). Each granule of shared memory has one record of its last
// write and, for every warp, one record of that warp's last read:
//  * the last write suffices (FastTrack, Flanagan and Freund 2009): a write that is ordered after it covers it, one that is
//    not is reported;
//  * reads are kept per warp, so no reader is ever evicted and recording needs a plain store, no atomic;
//  * lanes of one warp that read a granule in one epoch share the record; `several` says so, hence a write by any lane of
//    that warp without a warp barrier still conflicts.
// Order. CONSAN_PARTIAL=0 (the module synchronises with whole-CTA barriers only): all warps count the same barriers, and a
// record is unordered exactly if its epoch is the current one. CONSAN_PARTIAL=1: own epochs and a vector clock per warp.
// Record first, sequentially consistent fence, then look: of two concurrent conflicting accesses one sees the other. Writes
// swap their record in atomically, so two writers cannot both miss.
// Granule: 1, 2 or 4 bytes, the narrowest access that the module contains; so no record needs a byte mask.
#pragma once

#include "clock.cuh"
#include "report.cuh"

enum Access : u32 { ACCESS_READ = 0, ACCESS_WRITE = 1, ACCESS_RMW = 2, ACCESS_STRONG = 4, ACCESS_COPY = 8, ACCESS_BARRIER = 16, ACCESS_ENGINE = 32, ACCESS_CTA = 64, ACCESS_WIDE_WAIT = 128, ACCESS_WIDE = 256 };

struct Caller { u64 slot, state; u32 me, site, flags, offset, bytes; };

#define HIGH_ASYNC 2u
#define HIGH_OLD 1u
#define LOW_ATOMIC (1u << 15)
#define LOW_MARKER (1u << 14)
#define LOW_PAYLOAD 0x3fffu
// With HIGH_ASYNC the two flags say what the record is: 0 a cp.async (payload: group), LOW_MARKER an mbarrier (payload: its number),
// LOW_ATOMIC a cp.async that completes with a phase (payload: the mbarrier's number and the phase's low byte).
#define LOW_TYPE (LOW_ATOMIC | LOW_MARKER)
// In clusters, of a strong access's width: its scope is the CTA.
#define CTA_SCOPE 0x40u

DEVICE u32 record_site(u64 r) { return (u32)r >> 16; }
DEVICE u64 make_record(u32 epoch, u32 me, u32 site, u32 high_flags, u32 low_flags) {
    return pack(site << 16 | low_flags, (epoch & WRITE_EPOCH_MASK) << EPOCH_SHIFT | me << 2 | high_flags);
}
DEVICE u32 make_entry(u32 epoch, u32 me, u32 site, u32 flags) {
    return (epoch & READ_EPOCH_MASK) << 20 | min(site, READ_SITE_LIMIT) << 7 | flags | (me & 31);
}
#define ENTRY_ATOMIC (1u << 6)  // an atomic, or a strong load
#define ENTRY_LOAD (1u << 19)   // with ENTRY_ATOMIC: a strong load
DEVICE bool of_atomic(u32 entry) { return (entry & (ENTRY_ATOMIC | ENTRY_LOAD)) == ENTRY_ATOMIC; }
static_assert(READ_SITE_LIMIT < 1u << 12, "bits 7 to 18 are the site's");
#define ENTRY_SEVERAL (1u << 5)

// Full epoch from its low bits: records are scrubbed while younger than a quarter of the truncated range.
DEVICE u32 widen(u32 truncated, u32 now, u32 mask) { return now - ((now - truncated) & mask); }

DEVICE u32 epoch_of_warp(u64 slot, u32 warp, u32 own) {
#if CONSAN_PARTIAL
    (void)own;
    return load32(FIELD(slot, Slot, epochs) + 4 * warp);
#else
    return own;
#endif
}

DEVICE u32 write_epoch(const Caller &c, u64 record) {
    return widen((u32)(record >> 32 + EPOCH_SHIFT), epoch_of_warp(c.slot, record_warp(record), low_word(c.state)), WRITE_EPOCH_MASK);
}

// The latest epoch of `warp` whose accesses are ordered before this thread's next access.
DEVICE u32 seen_of_warp(const Caller &c, u32 warp) {
    u32 seen = same_cta(c.slot, warp, c.me >> 5) ? high_word(c.state) - 1 : 0;
#if CONSAN_PARTIAL
#if CONSAN_ENGINE
    u32 vector = clock_entry(c.slot, c.me, warp);
#else
    u32 vector = load32(own_vector(c.slot, c.me) + 4 * warp);
#endif
#if CONSAN_CLUSTER
    if (c.flags & ACCESS_WIDE_WAIT) vector = max(vector, clock_entry(c.slot, c.me, WIDE_WAITED + warp));
    if (c.flags & ACCESS_WIDE) vector = max(vector, clock_entry(c.slot, c.me, WIDE_ARRIVED + warp));
#endif
    // Vectors are not cleared between CTAs: entries of an earlier CTA are below this interval's start.
    seen = max(seen, vector);
#endif
    return seen;
}

// Barriers between the lanes of the caller's warp.
DEVICE bool lanes_synced(const Caller &c, u32 lane, u32 epoch) {
#if CONSAN_PARTIAL
    u64 thread = thread_record(c.slot, c.me);
    if (epoch < max(load32(THREAD_FIELD(thread, warp_epoch)), high_word(c.state))) return true;
    for (u32 i = 0; i < WARP_SYNCS; ++i) {
        u64 sync = load64(THREAD_WORD(thread, syncs, i));
        if ((high_word(sync) >> lane & 1) && epoch < low_word(sync)) return true;
    }
    return false;
#else
    (void)lane;
    return epoch < high_word(c.state);
#endif
}

// Happens-before from an access of (thread `other`, `epoch`) to the caller's access.
DEVICE bool ordered(const Caller &c, u32 other, u32 epoch) {
    if (other == c.me) return true;
    if (other >> 5 != c.me >> 5) return epoch <= seen_of_warp(c, other >> 5);
    if (lanes_synced(c, other & 31, epoch)) return true;
#if CONSAN_ENGINE
    return lanes_arrived(c.slot, c.me, epoch) >> (other & 31) & 1;
#else
    return false;
#endif
}

// The same of a record that names one lane of the caller's warp and may stand for others.
DEVICE bool all_ordered(const Caller &c, u32 lane, u32 epoch) {
    if (lanes_synced(c, lane, epoch)) return true;
#if CONSAN_ENGINE
    return !lanes_behind(c.slot, c.me, epoch);
#else
    return false;
#endif
}

// The same of an entry of reads.
DEVICE bool reads_ordered(const Caller &c, u32 entry, u32 other, u32 epoch) {
    return entry & ENTRY_SEVERAL && other >> 5 == c.me >> 5 ? all_ordered(c, other & 31, epoch) : ordered(c, other, epoch);
}

DEVICE bool alive(const Caller &c, u64 record, u32 epoch) {
    return record && ((u32)(record >> 32) & HIGH_OLD || epoch - load32(FIELD(c.slot, Slot, base)) < 0x80000000u);
}

DEVICE Finding make_finding(const Caller &c, u32 kind, u32 hazard, u32 other_site, u32 other, u32 flags) {
    Finding f;
    f.kind = kind; f.hazard = hazard; f.site = c.site; f.other_site = other_site; f.me = c.me; f.other = other;
    f.offset = c.offset; f.bytes = c.bytes; f.epoch = low_word(c.state); f.other_epoch = 0; f.flags = flags;
    f.reason = (c.me >> 5 == other >> 5) ? REASON_NO_WARP_SYNC : REASON_NO_BARRIER;
    if (c.me >> 5 == other >> 5) f.flags |= FLAG_SAME_WARP;
    f.group = f.commits = f.retired = 0; f.address = c.offset;
    f.operation = f.own_operation = f.barrier = f.phase = f.barrier_expected = f.parity = 0; f.barrier_state = 0;
    return f;
}

#if CONSAN_CLUSTER
// What a finding lacks may be there, but as an edge of too narrow a scope (SEMANTICS 2.7): `holds` asks for it as that caller.
template <typename F> DEVICE void look_for_scope(const Caller &c, Finding &f, F holds) {
    Caller wide = c;
    wide.flags |= ACCESS_WIDE_WAIT;
    bool waited = holds(wide);
    wide.flags |= ACCESS_WIDE;
    if (!waited && !holds(wide)) return;
    f.kind = KIND_SCOPE;
    f.reason = waited ? REASON_WAIT_SCOPE : REASON_ARRIVE_SCOPE;
}

// The same for an access of another CTA's thread.
DEVICE void look_for_scope(const Caller &c, Finding &f, u32 other, u32 epoch) {
    if (same_cta(c.slot, other >> 5, c.me >> 5)) return;
    look_for_scope(c, f, [&](const Caller &wide) { return ordered(wide, other, epoch); });
}
#endif

COLD void report_race(Caller c, u32 hazard, u32 site, u32 other, u32 epoch, u32 flags) {
    Finding f = make_finding(c, KIND_DATA_RACE, hazard, site, other, flags);
    f.other_epoch = epoch;
#if CONSAN_CLUSTER
    look_for_scope(c, f, other, epoch);
#endif
#if CONSAN_ENGINE
    // Other lanes of this warp have taken the edge that this one lacks.
    if (other >> 5 != c.me >> 5 && load32(FIELD(engine_of(c.slot), Engine, acquired) + 4 * (c.me >> 5)) &&
        epoch <= load32(own_vector(c.slot, c.me) + 4ull * VECTOR * MAX_WARPS + 4 * (other >> 5))) f.reason = REASON_OTHER_LANES;
#endif
    report(c.slot, f);
}

// Warps that may have accessed a place: its CTA's, and those of the CTAs that have come to it.
#if CONSAN_CLUSTER
DEVICE u32 ranks_near(u64 slot, u32 offset) {
    u32 home = offset / cta_bytes(slot);
    return load32(FIELD(slot, Slot, visitors) + 4 * home) | 1u << home;
}
// The next warp after `warp` of those in `ranks`.
DEVICE u32 next_near(u64 slot, u32 ranks, u32 warp) {
    u32 shift = cta_shift(slot), rank = warp >> shift;
    if (rank < 32 && ranks >> rank & 1) return warp;
    u32 rest = rank < 31 ? ranks >> rank << rank : 0;
    return rest ? (u32)(__ffs(rest) - 1) << shift : ~0u;
}
#define EACH_WARP_NEAR(SLOT, OFFSET, W) _Pragma("unroll 1") \
    for (u32 near_ranks = ranks_near(SLOT, OFFSET), W = next_near(SLOT, near_ranks, 0); W != ~0u; W = next_near(SLOT, near_ranks, W + 1))
// Whether two strong accesses include each other in their scopes; `payload`: of their records, joined.
DEVICE bool mutual_scope(const Caller &c, u32 warp, u32 payload) {
    return same_cta(c.slot, warp, c.me >> 5) || !(payload & CTA_SCOPE || c.flags & ACCESS_CTA);
}
#else
#define EACH_WARP_NEAR(SLOT, OFFSET, W) _Pragma("unroll 1") for (u32 W = 0; W < load32(FIELD(SLOT, Slot, warp_count)); ++W)
DEVICE bool mutual_scope(const Caller &, u32, u32) { return true; }
#endif

// ---- completion of cp.async, seen from another thread -------------------------------------------------------------------

struct Copy { u32 group, commits, retired, wait_epoch, tie; bool done, waited; };

// Epoch of the earliest wait in the history that covers a group; 0 if there is none. The history is a ring, in no order: its
// thread may add to it meanwhile, and what it adds is later than what is looked for.
DEVICE u32 covering_wait(u64 thread, u32 group) {
    u32 epoch = 0;
    for (u32 i = 0; i < WAIT_HISTORY; ++i) {
        u64 wait = load64(THREAD_WORD(thread, waits, i));
        if (wait && high_word(wait) > group && (!epoch || low_word(wait) < epoch)) epoch = low_word(wait);
    }
    return epoch;
}

#if CONSAN_ENGINE
#define TIE_PHASE (MBARRIERS <= 64 ? 8u : 6u)  // bits of the phase
#define TIE_MASK ((1u << TIE_PHASE) - 1)
DEVICE u32 tie_of(u32 index, u32 phase) { return LOW_ATOMIC | (index << TIE_PHASE | phase & TIE_MASK); }
DEVICE u32 tie_index(u32 tie) { return tie >> TIE_PHASE & (MBARRIERS - 1); }
static_assert(MBARRIERS <= 256, "the payload of a tie");

// Copies before a cp.async.mbarrier.arrive complete with the phase that it arrives at. Those of a thread's latest such arrivals are
// kept; of earlier ones, which nobody has looked at meanwhile, it is not known whether the caller has observed them: that is counted.
DEVICE void look_for_tie(const Caller &c, u64 thread, Copy &s) {
    u32 count = load32(THREAD_FIELD(thread, ties)), nearest = 0xffffffffu;
    for (u32 i = 0; i < min(count, COPY_TIES); ++i) {
        u64 tie = load64(THREAD_WORD(thread, copy_ties, i));
        if (low_word(tie) <= s.group) continue;
        u32 index = high_word(tie) >> 24, phase = high_word(tie) & 0xffffff;
        bool seen = clock_entry(c.slot, c.me, PHASES + index) > phase;
        if (seen) s.done = true;
        if (seen || (low_word(tie) < nearest && !s.done)) s.tie = tie_of(index, phase);
        nearest = min(nearest, low_word(tie));
    }
    if (s.done || s.waited || count <= COPY_TIES || nearest == s.group + 1 || nearest != s.commits + 1 - COPY_TIES) return;
    s.done = true;
    count_evicted(c.slot);
}
#endif

// A group is retired for its issuer by the issuer's own wait; for others by that wait plus an edge from it (R-CP1, R-CP2).
DEVICE Copy copy_state(const Caller &c, u32 issuer, u32 group) {
    Copy s;
    u64 thread = thread_record(c.slot, issuer);
    s.commits = load32(THREAD_FIELD(thread, commits));
    s.retired = load32(THREAD_FIELD(thread, retired));
    s.group = group; s.tie = 0;
    s.waited = s.group < s.retired;
    s.done = s.waited && issuer == c.me;
    s.wait_epoch = s.waited ? covering_wait(thread, s.group) : 0;
#if CONSAN_ENGINE
    if (!s.done) look_for_tie(c, thread, s);
#endif
    if (s.done || !s.waited) return s;
    s.done = s.wait_epoch && ordered(c, issuer, s.wait_epoch);
    // The covering wait has left the history and what is left is not visible: the answer is unknown, and is counted.
    if (!s.done && load32(THREAD_FIELD(thread, lost_waits)) > s.group) { s.done = true; s.wait_epoch = 0; count_evicted(c.slot); }
    return s;
}

// A record keeps the low bits of its group; `scrub_copies` sees to it that none is older than a period.
DEVICE u32 group_of(u64 slot, u64 record) {
    return widen((u32)record & LOW_PAYLOAD, load32(THREAD_FIELD(thread_record(slot, record_thread(record)), commits)), LOW_PAYLOAD);
}

// ---- reads --------------------------------------------------------------------------------------------------------------

// First reader of a granule that this CTA has not written: leave a marker, so that a later unordered write can explain it. Of a strong
// load it says so: no race with a strong store would tell of both.
COLD void read_uninitialised(Caller c, u64 cell_at, u64 seen) {
    u64 marker = make_record(low_word(c.state), c.me, c.site, 0, LOW_MARKER | (c.flags & ACCESS_STRONG ? LOW_ATOMIC : 0));
    if (swap64(cell_at, seen, marker) != seen) return;  // a write came in between: it will look at our read record
    Finding f = make_finding(c, KIND_UNINITIALIZED_READ, HAZARD_NONE, 0, c.me, 0);
    f.reason = REASON_NONE; f.flags = 0;
    report(c.slot, f);
}

// A plain read also conflicts with atomics of other warps that a later atomic has replaced in the write record.
COLD void look_for_atomics(Caller c, u32 cell) {
    u64 reads = load64(FIELD(c.slot, Slot, reads));
    u32 stride = load32(FIELD(c.slot, Slot, row));
    EACH_WARP_NEAR(c.slot, cell * CONSAN_GRANULE, w) {
        u32 entry = load32(reads + (u64)(w + 1) * stride + 4 * cell);
        if (!of_atomic(entry) || w == c.me >> 5) continue;
        u32 epoch = widen(entry >> 20, epoch_of_warp(c.slot, w, low_word(c.state)), READ_EPOCH_MASK);
        if (!ordered(c, w << 5 | (entry & 31), epoch)) { report_race(c, HAZARD_RAW, entry >> 7 & READ_SITE_LIMIT, w << 5 | (entry & 31), epoch, FLAG_OTHER_ATOMIC); return; }
    }
}

#if CONSAN_ASYNC && !CONSAN_PARTIAL
// With whole-CTA barriers only, a copy is complete for a thread if its issuer's waits before this interval cover the group (its
// own: all its waits). `retires` holds the epoch of the last wait, what it retired, and what the waits of earlier epochs had.
DEVICE bool copy_settled(const Caller &c, u64 record, u32 base) {
    u32 high = (u32)(record >> 32), own = low_word(c.state);
    if (high & HIGH_OLD || ((own - (high >> EPOCH_SHIFT)) & WRITE_EPOCH_MASK) > own - base) return false;
    u64 word = load64(THREAD_FIELD(thread_record(c.slot, record_thread(record)), retires));
    bool all = record_thread(record) == c.me || low_word(word) != own;
    u32 behind = ((all ? high_word(word) : high_word(word) >> 16) - (u32)record) & LOW_PAYLOAD;
    return behind && behind <= LOW_PAYLOAD / 2;
}
#endif

// True if the write record needs no second look: written by this CTA in an earlier interval (or by this very thread) and
// neither a copy nor an old record.
DEVICE bool settled(const Caller &c, u64 record, u32 base) {
    u32 high = (u32)(record >> 32), own = low_word(c.state);
#if CONSAN_ASYNC && !CONSAN_PARTIAL
    if (high & HIGH_ASYNC) return copy_settled(c, record, base);
#endif
    if (!record || high & (HIGH_ASYNC | HIGH_OLD)) return false;
    u32 age = (own - (high >> EPOCH_SHIFT)) & WRITE_EPOCH_MASK;
#if CONSAN_CLUSTER
    if (!same_cta(c.slot, record_warp(record), c.me >> 5)) return false;
#endif
#if CONSAN_PARTIAL
    // Epochs of warps differ: only what is older than this interval for certain is settled here.
    return age > own - high_word(c.state) && age <= min(own - base, WRITE_PERIOD) && own - high_word(c.state) < WRITE_PERIOD;
#else
    return (age != 0 || (high >> 2 & THREAD_MASK) == c.me) && age <= own - base && !((u32)record & (LOW_MARKER | LOW_ATOMIC) && age == 0);
#endif
}

// Granules that one store wrote have records with equal upper halves, which are all that counts where the record is of an earlier interval: of
// each such store one record is looked at. Both flags at once, which no record has: none yet.
#define NONE_SETTLED (HIGH_ASYNC | HIGH_OLD)
DEVICE bool settled_like(const Caller &c, u64 record, u32 base, u32 &like) {
    u32 high = (u32)(record >> 32);
    if (high == like && record) return true;
    if (!settled(c, record, base)) return false;
    if (!(high & HIGH_ASYNC) && (CONSAN_PARTIAL || (low_word(c.state) - (high >> EPOCH_SHIFT)) & WRITE_EPOCH_MASK)) like = high;
    return true;
}

// ---- writes -------------------------------------------------------------------------------------------------------------

COLD void conflict_with_read(Caller c, u32 warp, u32 entry) {
    u32 other = warp << 5 | (entry & 31), epoch = widen(entry >> 20, epoch_of_warp(c.slot, warp, low_word(c.state)), READ_EPOCH_MASK);
    if (epoch - load32(FIELD(c.slot, Slot, base)) >= 0x80000000u) return;
    if (entry & ENTRY_ATOMIC && c.flags & (ACCESS_RMW | ACCESS_STRONG) && mutual_scope(c, warp, 0)) return;
    // Several lanes of my own warp read: one of them is not me.
    if (entry & ENTRY_SEVERAL && other == c.me) other = (warp << 5) | ((c.me & 31) ^ 1);
    if (!reads_ordered(c, entry, other, epoch)) report_race(c, HAZARD_WAR, entry >> 7 & READ_SITE_LIMIT, other, epoch, entry & ENTRY_ATOMIC ? FLAG_OTHER_ATOMIC : 0);
}

DEVICE bool read_is_recent(u32 entry, u32 own, u32 warp_epoch_now, u32 start) {
#if CONSAN_PARTIAL
    (void)own;
    return entry && (int)(widen(entry >> 20, warp_epoch_now, READ_EPOCH_MASK) - start) >= 0;
#else
    (void)warp_epoch_now; (void)start;
    return entry && entry >> 20 == (own & READ_EPOCH_MASK);
#endif
}

// Whether a warp's record of this interval stays. An atomic leaves that of a plain read: others' atomics conflict with the plain read only. A
// strong load leaves that of an atomic, too: others' plain loads conflict with the atomic only.
DEVICE bool outranks(const Caller &c, u32 entry) {
    // Another lane of the warp may be ahead.
    u32 own = low_word(c.state), now = epoch_of_warp(c.slot, c.me >> 5, own), weaker = c.flags & ACCESS_RMW ? ENTRY_ATOMIC : ENTRY_LOAD;
    return !(entry & weaker) && read_is_recent(entry, own, now, high_word(c.state));
}

// The first row of the read cells is their summary: the start of the barrier interval in which anybody last read the granule.
// All readers of an interval store the same number, so the row needs no atomics, and a write whose interval has no reader
// skips the rows of the warps.
template <u32 COUNT> DEVICE bool read_in_interval(u64 summary, u32 start) {
    u32 marks[COUNT], differ = 1;
    load_entries<COUNT>(summary, marks);
    for (u32 i = 0; i < COUNT; ++i) differ *= marks[i] != start;
    return !differ;
}

// Scans every warp's read records of COUNT granules starting at `cell`.
template <u32 COUNT> DEVICE void check_readers(const Caller &c, u32 cell) {
    u64 reads = load64(FIELD(c.slot, Slot, reads)) + 4ull * cell;
    u32 stride = load32(FIELD(c.slot, Slot, row)), own = low_word(c.state);
#if CONSAN_CLUSTER
    // Intervals are a CTA's own: where readers or writer are another's, they tell nothing.
    u32 home = c.offset / cta_bytes(c.slot), start = load32(FIELD(c.slot, Slot, base));
    if (rank_of(c.slot, c.me) == home && !load32(FIELD(c.slot, Slot, visitors) + 4 * home)) {
        start = high_word(c.state);
        if (!read_in_interval<COUNT>(reads, start)) return;
    }
    EACH_WARP_NEAR(c.slot, c.offset, w) {
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
            if (w == c.me >> 5 && (entry & 31) == (c.me & 31) && !(entry & ENTRY_SEVERAL)) continue;
            conflict_with_read(c, w, entry);
        }
    }
}

// An atomic (or strong store) must not hide a plain write that is concurrent with other atomics: against those only the plain
// write conflicts. It stays the record if it is this thread's own of this epoch, or not ordered before this access.
DEVICE bool own_plain_write(const Caller &c, u64 record) {
    u32 high = (u32)(record >> 32);
    return record && (high & (HIGH_ASYNC | HIGH_OLD)) == 0 && !((u32)record & (LOW_ATOMIC | LOW_MARKER)) && record_thread(record) == c.me &&
           (high >> EPOCH_SHIFT) == (low_word(c.state) & WRITE_EPOCH_MASK);
}

DEVICE bool concurrent_plain_write(const Caller &c, u64 record) {
    if ((u32)(record >> 32) & (HIGH_ASYNC | HIGH_OLD) || (u32)record & (LOW_ATOMIC | LOW_MARKER)) return false;
    u32 epoch = write_epoch(c, record);
    return alive(c, record, epoch) && !ordered(c, record_thread(record), epoch);
}

// A copy replaces one of its own thread that the thread has waited for: what pipelines do in each of their stages.
DEVICE bool own_copy_over(const Caller &c, u64 record, u32 base, u32 retired) {
#if CONSAN_ENGINE
    u32 high = (u32)(record >> 32), own = low_word(c.state), behind = (retired - (u32)record) & LOW_PAYLOAD;
    if ((high & (HIGH_ASYNC | HIGH_OLD)) != HIGH_ASYNC || (u32)record & LOW_TYPE || record_thread(record) != c.me) return false;
    return behind && behind <= LOW_PAYLOAD / 2 && ((own - (high >> EPOCH_SHIFT)) & WRITE_EPOCH_MASK) <= own - base;
#else
    return false;
#endif
}

// 14 bits of the value stored, so that two writers of the same value can be told from two of different ones (2.15).
DEVICE u32 value_hash(u32 value) { return (value * 0x9E3779B1u) >> 18; }
DEVICE u32 granule_value(const u32 *values, u32 i) {
    u32 word = values[i * CONSAN_GRANULE / 4], shift = 8 * (i * CONSAN_GRANULE % 4);
    return CONSAN_GRANULE == 4 ? word : word >> shift & ((1u << (8 * CONSAN_GRANULE % 32)) - 1);
}

// ---- hooks --------------------------------------------------------------------------------------------------------------

// Lanes that come to a hook together leave it together: it calls functions for some of them, and what a compiler does not bring together
// again goes on in parts through all that follows, each at the price of the whole.
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
    Finding f = make_finding(c, KIND_OUT_OF_BOUNDS, HAZARD_NONE, 0, c.me, 0);
    f.reason = REASON_NONE; f.flags = 0;
    report(c.slot, f);
}

struct Head { u64 writes, reads; u32 low, bytes, own, base; };  // own: distance of this warp's read row from the summary

DEVICE Head head_of(u64 slot, u32 me) {
    Head h;
    u64 window, geometry;
#if CONSAN_CLUSTER
    constant_pair(slot, h.writes, h.reads);
    constant_pair(slot + 16, window, geometry);
#else
    // All of it on its way at once: a weak load would be moved behind the test that the other half allows.
    u64 words[4];
    load_records<4>(slot, words);
    h.writes = words[0]; h.reads = words[1]; window = words[2]; geometry = words[3];
#endif
    h.low = low_word(window); h.bytes = high_word(window); h.own = low_word(geometry) * ((me >> 5) + 1); h.base = high_word(geometry);
    return h;
}
static_assert(offsetof(Slot, writes) == 0 && offsetof(Slot, reads) == 8 && offsetof(Slot, low) == 16 && offsetof(Slot, row) == 24, "head_of");

#if CONSAN_CLUSTER
// Where an address lies, among the offsets of the cluster.
DEVICE u32 offset_of(u64 slot, u32 address) {
    return (address >> ADDRESS_RANK) * cta_bytes(slot) + (address & (1u << ADDRESS_RANK) - 1) - load32(FIELD(slot, Slot, low));
}

#else
DEVICE u32 offset_of(u64 slot, u32 address) { return address - load32(FIELD(slot, Slot, low)); }
#endif

// In clusters the site's number says whether the scope is the CTA.
#if CONSAN_CLUSTER
#define SITE_MASK 0x7fffffffu
DEVICE u32 scope_flag(u32 site) { return site >> 31 ? ACCESS_CTA : 0; }
#else
#define SITE_MASK ~0u
DEVICE u32 scope_flag(u32) { return 0; }
#endif

// The same hooks with the slot's geometry in the caller's registers: the bodies that are pasted in line on the GPU.
#define FAST_PARAMETERS u64 slot, u64 state, u32 me, u32 address, u32 site, u64 writes, u64 reads, u32 low, u32 bytes, u32 own, u32 base
#define FAST_HEAD Head head = {writes, reads, low, bytes, own, base}
