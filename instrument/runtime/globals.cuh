// The sides of bulk and tensor copies in global memory (R-B3), against accesses of the same CTA.
//
// Each write of a copy to global memory is a separate record, because the list of operations (operation.cuh) forgets a copy when its bytes
// of shared memory are reused. Completion is the issuing thread's wait_group without .read; .read only promises that the source has been
// read (ISA "cp.async.bulk.wait_group"). A generic access first compares its address, in line (passes/globals.py), with an interval that
// bounds everything in flight. It calls the hook only if the address lies within.
//
// Not detected: accesses of other CTAs, conflicts of two copies, and pairs in which the copy comes second. Where threads may synchronise
// through global memory, a copy that was waited for counts as complete for all threads, because such edges are not followed. Among many
// copies that nobody has waited for, the oldest are merged into one interval. An access in it cannot be checked, and is counted.
#pragma once

#include "bulk.cuh"

#if CONSAN_ENGINE

typedef long long i64;
struct Result { u64 low, high, shape[3]; u32 site, thread, group, flags; };

DEVICE u64 globals_of(u64 slot) { return slot + GLOBALS_AT; }
DEVICE u64 tables_of(u64 slot) { return slot + TABLES_AT; }
DEVICE u64 result_at(u64 slot, u32 place) { return FIELD(tables_of(slot), GlobalTables, results) + (u64)place * sizeof(ResultRecord); }
static_assert(sizeof(ResultRecord) == 64, "GlobalTables.results");
// A complete record contains this mark. A record of an earlier CTA, or of an earlier round of the ring, has another one.
DEVICE u64 live_mark(u64 slot, u32 position) { return pack(position, load32(FIELD(slot, Slot, base))); }

DEVICE Result load_result(u64 at) {
    Result r;
    u64 words[6];
    for (u32 i = 0; i < 5; ++i) words[i] = load64(at + 8 * i);
    r.low = words[0]; r.high = words[1];
    for (u32 i = 0; i < 3; ++i) r.shape[i] = words[2 + i];
    words[5] = load64(FIELD(at, ResultRecord, site));
    r.site = low_word(words[5]); r.thread = high_word(words[5]);
    words[5] = load64(FIELD(at, ResultRecord, group));
    r.group = low_word(words[5]); r.flags = high_word(words[5]);
    return r;
}

// ---- waits ------------------------------------------------------------------------------------------------------------------------

// After cp.async.bulk.wait_group without .read, and before what __consan_bulk_wait does.
HOOK void __consan_result_wait(u64 slot, u64 state, u32 me, u32 pending) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 commits = load32(THREAD_FIELD(thread, bulk_commits)), done = commits > pending ? commits - pending : 0;
    if (done <= load32(THREAD_FIELD(thread, bulk_retired))) return;
    u32 count = load32(THREAD_FIELD(thread, result_wait_count)), place = (count - 1) % GROUP_WAITS;
    if (!count || low_word(load64(THREAD_WORD(thread, result_waits, place))) != low_word(state)) {
        place = count % GROUP_WAITS;
        if (count >= GROUP_WAITS) store32(THREAD_FIELD(thread, result_waits_lost), high_word(load64(THREAD_WORD(thread, result_waits, place))));
        store32(THREAD_FIELD(thread, result_wait_count), count + 1);
    }
    store64(THREAD_WORD(thread, result_waits, place), pack(low_word(state), done));
}

// Whether the caller has observed the completion of a group of bulk stores. A wait that has left the history counts as observed.
DEVICE bool results_observed(const Caller &c, u32 issuer, u32 group) {
    u64 thread = thread_record(c.slot, issuer);
    if (load32(THREAD_FIELD(thread, bulk_retired)) <= group) return false;
    if (issuer == c.me || c.flags & GLOBAL_EDGES || load32(THREAD_FIELD(thread, result_waits_lost)) > group) return true;
    u32 epoch = covering_group_wait(thread, offsetof(Thread, result_waits), group);
    return epoch && happens_before(c, issuer, epoch);
}

DEVICE u32 why_result_not_observed(const Caller &c, const Result &r) {
    u64 thread = thread_record(c.slot, r.thread);
    if (r.group >= load32(THREAD_FIELD(thread, bulk_commits))) return REASON_NOT_COMMITTED;
    if (r.group < load32(THREAD_FIELD(thread, bulk_retired))) return r.thread >> 5 == c.me >> 5 ? REASON_OTHER_LANES : REASON_WAITED_NO_BARRIER;
    if (r.group < load32(THREAD_FIELD(thread, bulk_read))) return REASON_READ_WAIT_ONLY;
    return load32(THREAD_FIELD(thread_record(c.slot, c.me), waits_on)) && r.thread != c.me ? REASON_OTHER_ISSUER : REASON_NOT_WAITED;
}

// Whether the caller has observed the completion of the copy. Where threads may synchronise through global memory that is unknown, and it is
// enough that some thread has waited.
DEVICE bool use_over(const Caller &c, const Operation &o) {
    if (!(c.flags & GLOBAL_EDGES)) return observed(c, o);
    if (kind_of(o) == OPERATION_BULK_LOAD) return load32(FIELD(mbarrier_at(engine_of(c.slot), o.barrier), MBarrier, waited)) > o.phase;
    return load32(THREAD_FIELD(thread_record(c.slot, o.thread), bulk_read)) > o.group;
}

// ---- what copies write ------------------------------------------------------------------------------------------------------------

// An interval: the complement of its lower end, and its upper end.
struct Span { u64 low, high; };

DEVICE Span load_span(u64 at) { return {~load64(at), load64(at + 8)}; }
DEVICE bool overlaps(const Span &s, u64 low, u64 high) { return low < s.high && high > s.low; }
DEVICE void widen_span(u64 at, u64 low, u64 high) {
    Span s = load_span(at);
    if (low < s.low) raise64(at, ~low);
    if (high > s.high) raise64(at + 8, high);
}
DEVICE void widen_interval(u64 low_at, u64 low, u64 high) {  // one of the slot, which kernels read in line
    if (low < load64(low_at)) lower64(low_at, low);
    if (high > load64(low_at + 8)) raise64(low_at + 8, high);
}

DEVICE u64 lost_at(u64 slot, u32 i) { return FIELD(globals_of(slot), Globals, lost) + i * sizeof(LostResults); }
#define SEVERAL_THREADS 0xffffffffu

// Merges a record into an interval before its place is reused, if nobody has waited for its copy. The last interval serves all threads
// that find no other one.
COLD void lose_result(u64 slot, u64 at) {
    Result r = load_result(at);
    if (load32(THREAD_FIELD(thread_record(slot, r.thread), bulk_retired)) > r.group) return;
    for (u32 i = 0; i < LOST_RESULTS; ++i) {
        u64 lost = lost_at(slot, i);
        u32 before = swap32(FIELD(lost, LostResults, thread), 0, r.thread + 1);
        if (before && before != r.thread + 1) {
            if (i + 1 < LOST_RESULTS) continue;
            store32(FIELD(lost, LostResults, thread), SEVERAL_THREADS);
        }
        raise32(FIELD(lost, LostResults, group), r.group);
        widen_span(lost, r.low, r.high);
        return;
    }
}

DEVICE void keep_result(const Caller &c, const Result &r) {
    u64 globals = globals_of(c.slot);
    u32 position = add32(FIELD(globals, Globals, result_count), 1);
    u64 at = result_at(c.slot, position % RESULTS);
    if (position >= RESULTS) lose_result(c.slot, at);
    store64(FIELD(at, ResultRecord, live), 0);
    store64(at, r.low); store64(at + 8, r.high);
    for (u32 i = 0; i < 3; ++i) store64(at + 16 + 8 * i, r.shape[i]);
    store64(FIELD(at, ResultRecord, site), pack(r.site, r.thread));
    store64(FIELD(at, ResultRecord, group), pack(r.group, r.flags));
    store64(FIELD(at, ResultRecord, live), live_mark(c.slot, position));
    widen_interval(FIELD(c.slot, Slot, result_low), r.low, r.high);
    widen_interval(FIELD(c.slot, Slot, flight_low), r.low, r.high);
}

// A bulk copy or reduction to `bytes` bytes of global memory. `sites`: the instruction's, and flags above it.
HOOK void __consan_result(u64 slot, u64 state, u32 me, u32 sites, u64 address, u32 bytes) {
    if (!slot || !bytes) return;
    Caller c = {slot, state, me, result_site_site(sites), ACCESS_WRITE, 0, bytes};
    Result r = {address, address + bytes, {0, 0, 0}, c.site, me, load32(THREAD_FIELD(thread_record(slot, me), bulk_commits)), result_site_flags(sites)};
    keep_result(c, r);
}

// ---- boxes of tensors ---------------------------------------------------------------------------------------------------------------
//
// The box of a tiled tensor copy in global memory, clipped at the edge of the tensor: rows of `inner` bytes, repeated along up to four
// dimensions. The dimensions are sorted by stride. Each stride is at least the size of what lies within, so a byte has one place at most.
// Other forms (a tensor that overlaps itself, strides of 64 GiB) are not kept.

#define ROW_UNIT 16u  // strides are multiples of this

struct Rows { u32 count, stride; };  // stride in units

DEVICE void sort_rows(Rows &a, Rows &b) {
    if (a.stride <= b.stride) return;
    Rows c = a;
    a = b; b = c;
}

// Clips one dimension: moves `start` to its first element inside the tensor and returns the number of elements inside.
DEVICE u32 clip_dimension(u64 &start, int place, u32 count, u32 extent, u32 step, u64 distance) {
    u32 first = place < 0 ? (0 - (u32)place + step - 1) / step : 0;
    i64 room = (i64)extent - place;
    if (room <= 0) return 0;
    u32 last = (u32)min((i64)count, (room + step - 1) / step);
    start += (u64)((i64)place + (i64)first * step) * distance;
    return last > first ? last - first : 0;
}

DEVICE bool find_box(u64 map, const u32 *place, Result &r) {
    Box box = read_box(map);
    if (box.modes || box.size_shift == 15) return false;
    u32 steps = map_word(map, 13), upper = map_word(map, 7);
    u64 start = (u64)map_word(map, 1) << 32 | map_word(map, 0);
    u32 inner = clip_dimension(start, place[0], box.counts[0], map_word(map, 8) + 1, 1, 1u << box.size_shift) << box.size_shift;
    bool some = inner != 0;
    Rows rows[4];
    for (u32 d = 1; d < 5; ++d) {
        rows[d - 1] = {1, 0xffffffffu};
        if (d >= box.rank) continue;
        u32 step = (steps >> 3 * d & 7) + 1;
        u64 stride = (u64)(upper >> 4 * (d - 1) & 15) << 32 | map_word(map, 2 + d);
        u32 count = clip_dimension(start, place[d], box.counts[d], map_word(map, 8 + d) + 1, step, stride * ROW_UNIT);
        some &= count != 0;
        if (count > 1 && stride * step >> 32) return false;
        if (count > 1) rows[d - 1] = {count, (u32)(stride * step)};
    }
    sort_rows(rows[0], rows[1]); sort_rows(rows[2], rows[3]); sort_rows(rows[0], rows[2]); sort_rows(rows[1], rows[3]); sort_rows(rows[1], rows[2]);
    u64 bytes = inner;
    u32 counts = 0;
    for (u32 k = 0; k < 4; ++k) {
        if (rows[k].count == 1) continue;
        u64 stride = (u64)rows[k].stride * ROW_UNIT;
        if (stride < bytes) return false;
        bytes += (rows[k].count - 1) * stride;
        counts |= rows[k].count - 1 << 8 * k;
    }
    r.low = start; r.high = start + bytes;
    r.shape[0] = pack(rows[0].stride, rows[1].stride); r.shape[1] = pack(rows[2].stride, rows[3].stride); r.shape[2] = pack(inner, counts);
    return some;
}

// Whether a record covers some of bytes [low, high), which overlap its range.
DEVICE bool result_covers(const Result &r, u64 low, u64 high) {
    u32 inner = low_word(r.shape[2]), counts = high_word(r.shape[2]);
    if (!inner) return true;
    u64 begin = max(low, r.low) - r.low, end = min(high, r.high) - r.low;
#pragma unroll
    for (u32 k = 4; k-- > 0;) {
        u32 last = counts >> 8 * k & 255;
        if (!last) continue;
        u64 stride = (u64)(u32)(r.shape[k / 2] >> 32 * (k & 1)) * ROW_UNIT, row = min(begin / stride, (u64)last);
        if (row < last && (row + 1) * stride < end) return true;  // a row begins within
        begin -= row * stride; end -= row * stride;
    }
    return begin < inner;
}

// A tiled tensor store or reduction.
HOOK void __consan_tensor_result(u64 slot, u64 state, u32 me, u32 sites, u64 map, u32 x0, u32 x1, u32 x2, u32 x3, u32 x4) {
    if (!slot) return;
    u32 place[5] = {x0, x1, x2, x3, x4};
    Caller c = {slot, state, me, result_site_site(sites), ACCESS_WRITE, 0, 0};
    Result r;
    r.site = c.site; r.thread = me; r.flags = result_site_flags(sites); r.group = load32(THREAD_FIELD(thread_record(slot, me), bulk_commits));
    if (find_box(map, place, r)) keep_result(c, r);
}

// ---- generic accesses against results -------------------------------------------------------------------------------------------------

COLD void report_result(Caller c, const Result &r, u64 address) {
    u64 thread = thread_record(c.slot, r.thread);
    Finding f = make_conflict(c, KIND_MISSING_WAIT, c.flags & ACCESS_WRITE ? HAZARD_WAW : HAZARD_RAW, r.site, r.thread, 0);
    f.flags = FLAG_OTHER_ASYNC | FLAG_GLOBAL;
    f.reason = why_result_not_observed(c, r);
    f.conflict.operation = OPERATION_BULK_STORE; f.conflict.address = address;
    describe_groups(f.conflict.completion, r.group, load32(THREAD_FIELD(thread, bulk_commits)), load32(THREAD_FIELD(thread, bulk_retired)));
    report(c.slot, f);
}

DEVICE void look_at_lost(const Caller &c, u64 address) {
    for (u32 i = 0; i < LOST_RESULTS; ++i) {
        u64 lost = lost_at(c.slot, i);
        if (!overlaps(load_span(lost), address, address + c.bytes)) continue;
        u32 thread = load32(FIELD(lost, LostResults, thread));
        if (thread != SEVERAL_THREADS && results_observed(c, thread - 1, load32(FIELD(lost, LostResults, group)))) continue;
        count_evicted(c.slot);
        return;
    }
}

COLD void look_for_results(const Caller &c, u64 address) {
    u32 total = load32(FIELD(globals_of(c.slot), Globals, result_count)), count = min(total, RESULTS);
#pragma unroll 4
    for (u32 i = 0; i < count; ++i) {
        u64 at = result_at(c.slot, i);
        if (load64(at) >= address + c.bytes || load64(at + 8) <= address) continue;
        u32 position = total - 1 - (total - 1 - i) % RESULTS;  // the latest one of this place
        Result r = load_result(at);
        if (load64(FIELD(at, ResultRecord, live)) != live_mark(c.slot, position) || !result_covers(r, address, address + c.bytes)) continue;
        // Reductions, by copies or by atomics, commute.
        if (c.flags & ACCESS_RMW && r.flags & RESULT_REDUCES) continue;
        if (!results_observed(c, r.thread, r.group)) report_result(c, r, address);
    }
    look_at_lost(c, address);
}
#endif
