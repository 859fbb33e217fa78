// Non-bulk cp.async (R-CP1 to R-CP6). The write of a copy is recorded at issue, as an operation in flight of its issuing thread, named by
// the thread's group counter. Completing a group is one store, however large the group is.
//
// The source of each copy in flight (R-CP4) is kept as a range of global memory, COPY_RANGES per thread. A store of the CTA to global memory
// is first compared with a few intervals that bound all sources of the CTA, and only then with these ranges. If a thread has more copies in
// flight, the oldest ranges are merged into one interval. A store into that interval cannot be checked, and is counted.
#pragma once

#include "access_hooks.cuh"

#if CONSAN_ASYNC
static_assert(offsetof(Slot, sources) % 16 == 0, "both ends of an interval are read at once");

// Whether one of the intervals contains a range (first function) or overlaps it (second).
DEVICE bool source_bounded(u64 slot, u64 low, u64 high) {
    u64 ends[2 * SOURCE_RANGES], outside = 1;
    load_records<2 * SOURCE_RANGES>(source_range(slot, 0), ends);
    for (u32 i = 0; i < SOURCE_RANGES; ++i) outside &= low < ends[2 * i] || high > ends[2 * i + 1];
    return !outside;
}
DEVICE bool sources_may_overlap(u64 slot, u64 low, u64 high) {
    u64 ends[2 * SOURCE_RANGES], inside = 0;
    load_records<2 * SOURCE_RANGES>(source_range(slot, 0), ends);
    for (u32 i = 0; i < SOURCE_RANGES; ++i) inside |= low < ends[2 * i + 1] && high > ends[2 * i];
    return inside;
}

// Extends the first interval within SOURCE_GAP of a source, or else takes a free one, or else extends the last one. A single interval would
// include what lies between two tensors, possibly the tensor that the CTA writes. Each store of the CTA would then search all ranges.
#define SOURCE_GAP (4ull << 20)
COLD void bound_source(u64 slot, u64 low, u64 high) {
#pragma unroll 1
    for (u32 i = 0; i < SOURCE_RANGES; ++i) {
        u64 at = source_range(slot, i), begin = load64(at);
        if (begin == ~0ull) begin = swap64(at, ~0ull, low);
        if (begin == ~0ull) begin = low;  // it was free, and now belongs to this source
        bool close = low + SOURCE_GAP >= begin && low <= max(load64(at + 8), begin) + SOURCE_GAP;
        if (!close && i < SOURCE_RANGES - 1) continue;
        if (low < begin) lower64(at, low);
        raise64(at + 8, high);
        return;
    }
}

// Where a thread notes its next source. It is loaded before the hook checks the destination, so that the latencies overlap.
struct SourcePlace { u32 position, retired; u64 info; bool bounded; };

DEVICE SourcePlace source_place(u64 slot, u64 thread, u64 source, u32 bytes) {
    SourcePlace p;
    p.position = load32(THREAD_FIELD(thread, ranges)); p.retired = load32(THREAD_FIELD(thread, retired));
    p.info = load64(THREAD_WORD(thread, range_info, p.position % COPY_RANGES));
    p.bounded = source_bounded(slot, source, source + bytes);
    return p;
}

DEVICE void lose_source(u64 thread, const SourcePlace &p) {
    u32 group = source_group(p.info);
    if (group < p.retired) return;
    u64 low = load64(THREAD_WORD(thread, range_address, p.position % COPY_RANGES)), high = low + source_bytes(p.info);
    if (load32(THREAD_FIELD(thread, lost_groups)) > p.retired) {  // ranges lost before are in flight too
        low = min(low, load64(THREAD_FIELD(thread, lost_low)));
        high = max(high, load64(THREAD_FIELD(thread, lost_high)));
    }
    store64(THREAD_FIELD(thread, lost_low), low);
    store64(THREAD_FIELD(thread, lost_high), high);
    store32(THREAD_FIELD(thread, lost_groups), group + 1);
}

DEVICE void remember_source(const Caller &c, u64 thread, const SourcePlace &p, u64 source, u32 bytes, u32 group) {
    u32 place = p.position % COPY_RANGES;
    if (p.position >= COPY_RANGES) lose_source(thread, p);
    store64(THREAD_WORD(thread, range_address, place), source);
    store64(THREAD_WORD(thread, range_info, place), (u64)c.site << 32 + SOURCE_SITE_SHIFT | (u64)(group & SOURCE_GROUP_MASK) << SOURCE_GROUP_SHIFT | bytes);
    store32(THREAD_FIELD(thread, ranges), p.position + 1);
    if (!p.bounded) bound_source(c.slot, source, source + bytes);
}

template <u32 BYTES> DEVICE void copy_hook(u64 slot, u64 state, u32 me, u32 address, u32 site, u64 source, u32 source_bytes) {
    if (!slot) return;
    TOGETHER
    u64 thread = thread_record(slot, me);
    u32 group = load32(THREAD_FIELD(thread, commits));
    source_bytes = min(source_bytes, BYTES);
    SourcePlace place = source_place(slot, thread, source, source_bytes);
#if CONSAN_ENGINE
    mark_copy(slot, me, address, group);
#endif
    write_hook<BYTES>(slot, state, me, address, site, ACCESS_WRITE | ACCESS_COPY, nullptr, HIGH_ASYNC, group & LOW_PAYLOAD, head_of(slot, me), place.retired);
    Caller c = {slot, state, me, site, ACCESS_COPY, 0, BYTES};
    if (source_bytes) remember_source(c, thread, place, source, source_bytes, group);
}
#define COPY_HOOK(N) HOOK void __consan_copy##N(u64 slot, u64 state, u32 me, u32 address, u32 site, u64 source, u32 source_bytes) { copy_hook<N>(slot, state, me, address, site, source, source_bytes); }
COPY_HOOK(4) COPY_HOOK(8) COPY_HOOK(16)

#define GROUP_PERIOD ((LOW_PAYLOAD + 1) / 4)

// A completed copy becomes a write by its issuer at the epoch of the wait. If that wait has left the history, the oldest remaining one
// replaces it, provided that all threads are ordered after it. Otherwise it is unknown who observed the copy, and that is counted.
DEVICE u64 settled_copy(u64 slot, u64 state, u64 record) {
    u64 thread = thread_record(slot, record_thread(record));
    u32 group = group_of(slot, record);
    if (group >= load32(THREAD_FIELD(thread, retired))) return record;
    u32 epoch = covering_wait(thread, group);
    bool passed = epoch < high_word(state), lost = load32(THREAD_FIELD(thread, lost_waits)) > group;
    if (!passed && load32(THREAD_FIELD(thread, commits)) - group < 2 * GROUP_PERIOD) return record;
    if (passed || !lost) return make_record(epoch, record_thread(record), record_site(record), 0, (u32)record & LOW_PAYLOAD);
    count_evicted(slot);
    return (record | (u64)HIGH_OLD << 32) & ~((u64)HIGH_ASYNC << 32);
}

// Runs once per period of groups, so that no record of a completed copy of this warp lives until the low bits of its group recur.
COLD void scrub_copies(u64 slot, u64 state, u32 me) {
    u32 mask = active_mask(), lanes = __popc(mask), cells = load32(FIELD(slot, Slot, row)) / 4;
    u64 writes = load64(FIELD(slot, Slot, writes));
    u32 base = load32(FIELD(slot, Slot, base));
    for (u32 i = lanes_below(mask); i < cells; i += lanes) {
        u64 record = load64(writes + 8ull * i);
        u32 high = (u32)(record >> 32), age = (low_word(state) - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK;
        // Skips what is no copy of this warp. By its age, a record of an earlier CTA is none.
        if (!(high & HIGH_ASYNC) || (u32)record & LOW_TYPE || record_warp(record) != me >> 5 || age > low_word(state) - base) continue;
        u64 after = settled_copy(slot, state, record);
        if (after != record) swap64(writes + 8ull * i, record, after);
    }
}

HOOK void __consan_copy_commit(u64 slot, u64 state, u32 me) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 commits = load32(THREAD_FIELD(thread, commits)) + 1;
    store32(THREAD_FIELD(thread, commits), commits);
    if (commits % GROUP_PERIOD == 0) scrub_copies(slot, state, me);
}

DEVICE void remember_wait(u64 thread, u32 epoch, u32 retired) {
#if !CONSAN_PARTIAL
    u64 word = THREAD_FIELD(thread, retires), before = load64(word);
    u32 earlier = low_word(before) == epoch ? high_word(before) >> 16 : high_word(before) & 0xffff;
    store64(word, pack(epoch, (retired & 0xffff) | earlier << 16));
#endif
    u32 count = load32(THREAD_FIELD(thread, wait_count)), place = (count - 1) % WAIT_HISTORY;
    if (!count || low_word(load64(THREAD_WORD(thread, waits, place))) != epoch) {
        place = count % WAIT_HISTORY;
        u64 lost = load64(THREAD_WORD(thread, waits, place));
        if (lost) store32(THREAD_FIELD(thread, lost_waits), high_word(lost));
        store32(THREAD_FIELD(thread, wait_count), count + 1);
    }
    store64(THREAD_WORD(thread, waits, place), pack(epoch, retired));
}

// `pending`: groups that may stay in flight.
HOOK void __consan_copy_wait(u64 slot, u64 state, u32 me, u32 pending) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 commits = load32(THREAD_FIELD(thread, commits)), retired = load32(THREAD_FIELD(thread, retired));
#if CONSAN_ENGINE
    note_copies_done(slot, state, me, max(retired, commits > pending ? commits - pending : 0));
#endif
    if (commits < pending + retired + 1) return;
    store32(THREAD_FIELD(thread, retired), commits - pending);
    remember_wait(thread, low_word(state), commits - pending);
}

DEVICE void check_lost_sources(const Caller &c, u64 thread, u32 issuer, u64 address, u32 bytes) {
    u32 lost = load32(THREAD_FIELD(thread, lost_groups));
    if (!lost || address >= load64(THREAD_FIELD(thread, lost_high)) || address + bytes <= load64(THREAD_FIELD(thread, lost_low))) return;
    if (!copy_state(c, issuer, lost - 1).done) count_evicted(c.slot);
}

COLD void source_overwritten(u64 slot, u64 state, u32 me, u32 site, u64 address, u32 bytes) {
    Caller c = {slot, state, me, site, ACCESS_WRITE, 0, bytes};
    u32 threads = load32(FIELD(slot, Slot, thread_count)), first = me - tid_of(slot, me);
    for (u32 t = first; t < first + threads; ++t) {
        u64 thread = thread_record(slot, t);
        check_lost_sources(c, thread, t, address, bytes);
        u32 kept = min(load32(THREAD_FIELD(thread, ranges)), COPY_RANGES);
        for (u32 i = 0; i < kept; ++i) {
            u64 source = load64(THREAD_WORD(thread, range_address, i)), info = load64(THREAD_WORD(thread, range_info, i));
            if (source >= address + bytes || source + source_bytes(info) <= address) continue;
            Copy s = copy_state(c, t, source_group(info));
            if (s.done) continue;
            Finding f = make_conflict(c, KIND_MISSING_WAIT, HAZARD_WAR, source_site(info), t, FLAG_OTHER_ASYNC);
            f.reason = REASON_SOURCE_OVERWRITTEN; f.conflict.address = address;
            describe_groups(f.conflict.completion, s.group, s.commits, s.retired);
            report(slot, f);
        }
    }
}

// A store to global memory by a CTA that has copies in flight.
HOOK void __consan_global_write(u64 slot, u64 state, u32 me, u64 address, u32 site, u32 bytes) {
    if (!slot) return;
    if (sources_may_overlap(slot, address, address + bytes)) source_overwritten(slot, state, me, site, address, bytes);
}

// R-CP5: a thread must wait for its last copy, and thereby for all its copies, before it exits. No other thread can wait for them. Copies that
// an mbarrier tracks are not checked here.
HOOK void __consan_copies_at_exit(u64 slot, u64 state, u32 me) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 ranges = load32(THREAD_FIELD(thread, ranges));
    if (!ranges) return;
    u64 info = load64(THREAD_WORD(thread, range_info, (ranges - 1) % COPY_RANGES));
    u32 group = source_group(info);
    if (group < load32(THREAD_FIELD(thread, retired))) return;
#if CONSAN_ENGINE
    u32 tags = load32(THREAD_FIELD(thread, tags));
    if (tags && low_word(load64(THREAD_WORD(thread, copy_tags, (tags - 1) % COPY_TAGS))) > group) return;
    if (load32(FIELD(engine_of(slot), Engine, verdict)) & 6u) return;  // the CTA was stopped early
#endif
    Caller c = {slot, state, me, source_site(info), ACCESS_COPY, 0, 0};
    Finding f = make_finding(c, KIND_LIFETIME, REASON_EXIT);
    describe_groups(f.lifetime.completion, group, load32(THREAD_FIELD(thread, commits)), load32(THREAD_FIELD(thread, retired)));
    report(slot, f);
}
#endif
