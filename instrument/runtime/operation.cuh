// Asynchronous operations on shared memory that are too wide for the cells: bulk and tensor copies, operands of wgmma.
//
// Each operation is one record on a list: its byte range, and what its completion depends on (a phase of an mbarrier, or a group of the
// issuing thread or warp). The record stays after completion, because an access that has not observed the completion still conflicts.
// The next operation on the same range that is ordered after it replaces it.
#pragma once

#include "blocks.cuh"
#include "mbarrier.cuh"

#if CONSAN_ENGINE
// source: the first of the sites with the same source place (an unrolled loop has several).
struct Operation { u32 low, high, sequence, kind, site, thread, source, barrier, phase, group; u64 shape, shape2; };

#define OPERATION_WRITES 1u
// Two bits in `shape2` of a copy that moves only part of its range. Operands of wgmma use other shapes.
#define SHAPE_ROWS (1ull << 62)  // rows of one size at one distance: `shape` is size and distance
#define SHAPE_BOX (2ull << 62)  // a box clipped at the edge of the tensor (bulk.cuh)

DEVICE Operation load_operation(u64 at) {
    Operation o;
    u64 words[7];
    for (u32 i = 0; i < 7; ++i) words[i] = load64(at + 8 * i);
    o.low = (u32)words[0]; o.high = (u32)(words[0] >> 32); o.sequence = (u32)words[1]; o.kind = (u32)(words[1] >> 32);
    o.site = (u32)words[2]; o.thread = (u32)(words[2] >> 32); o.source = (u32)words[3]; o.barrier = (u32)(words[3] >> 32);
    o.phase = (u32)words[4]; o.group = (u32)(words[4] >> 32); o.shape = words[5]; o.shape2 = words[6];
    return o;
}

DEVICE void store_operation(u64 at, u64 range_at, const Operation &o) {
    store64(at + 8, pack(0, o.kind));
    store64(at, pack(o.low, o.high));
    store64(range_at, pack(o.low, o.high));
    store64(at + 16, pack(o.site, o.thread)); store64(at + 24, pack(o.source, o.barrier));
    store64(at + 32, pack(o.phase, o.group)); store64(at + 40, o.shape); store64(at + 48, o.shape2);
    record_fence();
    store64(at + 8, pack(o.sequence, o.kind));
}

// Calls f(place) for every record whose range overlaps [low, high). It loads as many ranges at once as registers allow, because one
// thread issues the copies of a pipeline and all others wait for it.
#define RANGES_AT_ONCE 16
static_assert(OPERATIONS % RANGES_AT_ONCE == 0, "a round of ranges ends with the list");
template <typename F> DEVICE void each_overlap(u64 slot, u32 low, u32 high, F f) {
    u64 engine = engine_of(slot), ranges = operation_range_at(engine, 0);
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS);
#pragma unroll 1
    for (u32 i = 0; i < count; i += RANGES_AT_ONCE) {
        u64 range[RANGES_AT_ONCE];
        u32 hits = 0;
        load_records<RANGES_AT_ONCE>(ranges + 8ull * i, range);
        for (u32 j = 0; j < RANGES_AT_ONCE; ++j) hits |= (u32)(i + j < count && low_word(range[j]) < high && high_word(range[j]) > low) << j;
#pragma unroll 1
        for (; hits; hits &= hits - 1) f(i + __ffs(hits) - 1);
    }
}

DEVICE u32 kind_of(const Operation &o) { return o.kind & 0xff; }
// red.async exists in clusters only (ISA "red.async": %cluster_nctarank must be above 1).
DEVICE bool adds(const Operation &o) { return CONSAN_CLUSTER && o.kind & ADDS; }

// Whether a phase of an mbarrier signals completion; otherwise a group does.
DEVICE bool by_phase(const Operation &o) {
    return kind_of(o) == OPERATION_BULK_LOAD || kind_of(o) == OPERATION_STORE_ASYNC || (CONSAN_CLUSTER && kind_of(o) == OPERATION_BULK_SOURCE);
}

DEVICE u32 phases_observed(const Caller &c, u32 barrier) { return clock_entry(c.slot, c.me, PHASES + barrier); }

// ---- completion -----------------------------------------------------------------------------------------------------------

// Epoch of the earliest wait that covers a group; 0 if it has left the history.
DEVICE u32 covering_group_wait(u64 thread, u32 offset, u32 group) {
    u32 epoch = 0;
    for (u32 i = 0; i < GROUP_WAITS; ++i) {
        u64 wait = load64(thread_word(thread, offset + 8 * i));
        if (wait && high_word(wait) > group && (!epoch || low_word(wait) < epoch)) epoch = low_word(wait);
    }
    return epoch;
}

DEVICE bool group_observed(const Caller &c, u32 issuer, u32 group, u32 retired, u32 history) {
    if (retired <= group) return false;
    if (issuer == c.me) return true;
    u32 epoch = covering_group_wait(thread_record(c.slot, issuer), history, group);
    // If the covering wait has left the history, the oldest entry replaces it, which errs towards a finding. This needs an issuer
    // that waits GROUP_WAITS times while the caller learns of none of these waits.
    return epoch && happens_before(c, issuer, epoch);
}

DEVICE u64 matrix_wait_at(u64 slot, u32 warp, u32 place) {
    return FIELD(engine_of(slot), Engine, matrix_waits) + 8ull * (warp * MATRIX_WAITS + place % MATRIX_WAITS);
}

// The epoch of the first kept wait of `warp` that covers the group; 0: none. The ring is not cleared between CTAs; epochs tell them apart.
DEVICE u32 matrix_wait_epoch(const Caller &c, u32 warp, u32 group) {
    u32 epoch = 0, base = load32(FIELD(c.slot, Slot, base));
    u64 waits[MATRIX_WAITS];
    load_records<MATRIX_WAITS>(matrix_wait_at(c.slot, warp, 0), waits);
    for (u32 i = 0; i < MATRIX_WAITS; ++i)
        if (low_word(waits[i]) >= base && high_word(waits[i]) > group && (!epoch || low_word(waits[i]) < epoch)) epoch = low_word(waits[i]);
    return epoch;
}

DEVICE bool matrix_wait_observed(const Caller &c, u32 warp, u32 group) {
    u32 epoch = matrix_wait_epoch(c, warp, group);
    return epoch && happens_before(c, warp << 5, epoch);
}

// Whether a warp of a warpgroup has waited for a group, and then signalled: it has arrived at an mbarrier, in a phase that the caller has observed.
COLD bool matrix_signalled(const Caller &c, u32 first, u32 group) {
    for (u32 warp = first; warp < first + 4; ++warp) {
        u32 epoch = matrix_wait_epoch(c, warp, group);
        if (epoch && lanes_arrived(c.slot, c.me, warp, epoch)) return true;
    }
    return false;
}

// A product is one operation of four warps, and each warp waits for itself. A commit creates one wgmma-group per warpgroup (ISA
// "wgmma.commit_group"). A thread that a barrier orders after the wait of one of the warps is taken to have observed the group (D12,
// and SEMANTICS section 9): shipped pipelines free a stage by the arrival of one thread. A warp of the warpgroup itself with nothing but
// its own wait has not observed B, because the other warps may be behind; such an arrival tells it, too. Rows of A are read by one warp only (D25).
DEVICE bool matrix_observed(const Caller &c, const Operation &o) {
    u32 first = o.thread >> 5 & ~3u, seen = 0, own = c.me >> 5, base = load32(FIELD(c.slot, Slot, base));
    u64 known_at = FIELD(engine_of(c.slot), Engine, matrix_seen) + 8ull * (own * MAX_WARPGROUPS + first / 4), known = load64(known_at);
    if (high_word(known) == base && low_word(known) > o.group) return true;
    bool inside = own >= first && own < first + 4, one = inside && o.kind & OWN_ROWS;
    for (u32 w = one ? o.thread >> 5 : first; w < (one ? (o.thread >> 5) + 1 : first + 4) && (inside || !seen); ++w) {
        u64 thread = thread_record(c.slot, w << 5);
        u32 retired = load32(THREAD_FIELD(thread, matrix_retired));
        seen += retired > o.group && (w == own || matrix_wait_observed(c, w, o.group));
    }
    bool over = inside && !one ? seen == 4 : seen != 0;
    if (!over && inside) return matrix_signalled(c, first, o.group);
    if (one) return over;
    // Groups retire in order, so an observed group implies all earlier ones.
    if (over && !lane_acquired(c.slot, c.me) && !(c.flags & (ACCESS_WIDE_WAIT | ACCESS_WIDE))) store64(known_at, pack(o.group + 1, base));
    return over;
}

// Whether the caller has observed the completion of the operation.
DEVICE bool observed(const Caller &c, const Operation &o) {
    if (by_phase(o)) return phases_observed(c, o.barrier) > o.phase;
    if (kind_of(o) == OPERATION_WGMMA) return matrix_observed(c, o);
    return group_observed(c, o.thread, o.group, load32(THREAD_FIELD(thread_record(c.slot, o.thread), bulk_read)), offsetof(Thread, bulk_waits));
}

// ---- which bytes ------------------------------------------------------------------------------------------------------------

DEVICE u32 row_size(const Operation &o) { return (u32)(o.shape >> 32); }
DEVICE u32 row_distance(const Operation &o) { return (u32)o.shape; }

DEVICE bool rows_cover(const Operation &o, u32 low, u32 high) {
    u32 begin = max(low, o.low) - o.low, end = min(high, o.high) - o.low, within = begin % row_distance(o);
    return within < row_size(o) || within + (end - begin) > row_distance(o);
}

DEVICE bool is_shaped(const Operation &o) { return kind_of(o) == OPERATION_WGMMA || o.shape2 >> 62; }

// ---- findings ---------------------------------------------------------------------------------------------------------------

DEVICE u32 why_not_observed(const Caller &c, const Operation &o) {
    u64 engine = engine_of(c.slot), thread = thread_record(c.slot, o.thread);
    if (by_phase(o)) {
        if (load32(own_vector(c.slot, c.me) + 4ull * VECTOR * MAX_WARPS + 4 * (PHASES + o.barrier)) > o.phase) return REASON_OTHER_LANES;
        return load32(FIELD(mbarrier_at(engine, o.barrier), MBarrier, waited)) > o.phase ? REASON_WAITED_NO_BARRIER : REASON_NOT_WAITED;
    }
    bool matrix = kind_of(o) == OPERATION_WGMMA;
    u32 commits = load32(matrix ? THREAD_FIELD(thread, matrix_commits) : THREAD_FIELD(thread, bulk_commits));
    u32 retired = load32(matrix ? THREAD_FIELD(thread, matrix_retired) : THREAD_FIELD(thread, bulk_read));
    if (o.group >= commits) return REASON_NOT_COMMITTED;
    if (matrix && (o.thread ^ c.me) < 128 && load32(THREAD_FIELD(thread_record(c.slot, c.me & ~31u), matrix_retired)) > o.group)
        return c.flags & ACCESS_ENGINE ? REASON_WAITED_NO_BARRIER : REASON_OWN_WARP_WAITED;
    if (o.group < retired) return o.thread >> 5 == c.me >> 5 && !matrix ? REASON_OTHER_LANES : REASON_WAITED_NO_BARRIER;
    return load32(THREAD_FIELD(thread_record(c.slot, c.me), waits_on)) && o.thread != c.me ? REASON_OTHER_ISSUER : REASON_NOT_WAITED;
}

DEVICE void describe_operation(const Caller &c, Completion &done, const Operation &o) {
    u64 thread = thread_record(c.slot, o.thread);
    if (by_phase(o)) { done.barrier = barrier_state(engine_of(c.slot), o.barrier, o.phase); return; }
    bool matrix = kind_of(o) == OPERATION_WGMMA;
    u32 commits = load32(matrix ? THREAD_FIELD(thread, matrix_commits) : THREAD_FIELD(thread, bulk_commits));
    describe_groups(done, o.group, commits, load32(matrix ? THREAD_FIELD(thread, matrix_retired) : THREAD_FIELD(thread, bulk_read)));
}

// The conflict is with operation `o`.
DEVICE void describe_conflict(const Caller &c, Finding &f, const Operation &o) {
    f.conflict.operation = kind_of(o);
    describe_operation(c, f.conflict.completion, o);
}

// A refill that overtakes accesses of the last fill is a race, not a missing wait. That is so if the accessing warp has observed all
// earlier phases and released nothing since, or if the issuer had not observed the earlier phase.
DEVICE bool too_early_refill(u64 slot, const Operation &o, u32 accessor, u32 epoch) {
    if (kind_of(o) != OPERATION_BULK_LOAD || !(o.kind & REFILL)) return false;
    u64 engine = engine_of(slot);
    if (o.phase == load32(FIELD(mbarrier_at(engine, o.barrier), MBarrier, first_phase))) return false;
    if (!(o.kind & INFORMED)) return true;
    u32 phases = load32(clock_row(slot, accessor >> 5) + 4 * (PHASES + o.barrier));
    return phases >= o.phase && epoch == load32(observed_at(engine, accessor >> 5, o.barrier));
}

// A warp that observed the last fill of a stage accesses the next one: either it did not wait, or it released the stage too early.
DEVICE u32 why_refilled(u64 slot, const Operation &o, u32 accessor, u32 reason) {
    bool refilled = kind_of(o) == OPERATION_BULK_LOAD && o.kind & REFILL && reason == REASON_NOT_WAITED;
    return refilled && load32(clock_row(slot, accessor >> 5) + 4 * (PHASES + o.barrier)) == o.phase ? REASON_REFILLED : reason;
}

// Reports the caller's access (or operation) against operation `o`.
COLD void report_operation(Caller c, const Operation &o, u32 own_operation) {
    bool writes = own_operation ? own_operation & OPERATION_WRITES : (c.flags & (ACCESS_WRITE | ACCESS_RMW)) != 0;
    u32 hazard = !(kind_of(o) & OPERATION_WRITES) ? HAZARD_WAR : writes ? HAZARD_WAW : HAZARD_RAW;
    bool race = !own_operation && too_early_refill(c.slot, o, c.me, low_word(c.state));
    Finding f = make_conflict(c, race ? KIND_DATA_RACE : KIND_MISSING_WAIT, hazard, o.site, o.thread, FLAG_OTHER_ASYNC);
    f.flags = FLAG_OTHER_ASYNC;
    if (!race) f.reason = own_operation ? why_not_observed(c, o) : why_refilled(c.slot, o, c.me, why_not_observed(c, o));
    else { f.reason = REASON_NO_BARRIER; f.conflict.hazard = HAZARD_WAR; }
    f.conflict.own_operation = own_operation;
    describe_conflict(c, f, o);
#if CONSAN_CLUSTER
    if (!race) look_for_scope(c, f, [&](const Caller &wide) { return observed(wide, o); });
#endif
    report(c.slot, f);
}

// ---- generic accesses against operations ------------------------------------------------------------------------------------

DEVICE u64 over_at(const Caller &c, u32 number) {
    return FIELD(engine_of(c.slot), Engine, over) + 4ull * ((c.me >> 5) * OPERATIONS_OVER + number % OPERATIONS_OVER);
}

// A wait by one lane does not complete the operation for the other lanes.
DEVICE bool over_for_warp(const Caller &c, const Operation &o) { return kind_of(o) == OPERATION_WGMMA || o.thread >> 5 != c.me >> 5; }

// Operation `number` is complete for all lanes of the caller's warp. If all other operations of its blocks are too, this is noted: the
// warp need not search the list for these blocks until another operation marks them.
DEVICE void note_over(const Caller &c, u32 number, u64 range, u32 base) {
    u64 engine = engine_of(c.slot);
    bool over = !lane_acquired(c.slot, c.me);
    if (over) each_overlap(c.slot, low_word(range) & ~(BLOCK_BYTES - 1), high_word(range) + BLOCK_BYTES - 1 & ~(BLOCK_BYTES - 1), [&](u32 i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence > base && o.sequence != number) over &= over_for_warp(c, o) && observed(c, o);
    });
    if (over) store32(over_at(c, number), number);
}

// An operation gets its number before it is listed, so several may have a number and not be listed yet. One word holds both counts: if
// they agree, all numbers are listed.
static_assert(offsetof(Engine, op_next) % 8 == 0 && offsetof(Engine, op_listed) == offsetof(Engine, op_next) + 4, "both counts are read at once");

DEVICE void operation_listed(u64 engine) {
    add32(FIELD(engine, Engine, op_listed), 1);
    u64 counts = load64(FIELD(engine, Engine, op_next));
    if (low_word(counts) == high_word(counts)) raise32(FIELD(engine, Engine, op_complete), low_word(counts));
}

DEVICE u64 over_up_to(const Caller &c) { return FIELD(engine_of(c.slot), Engine, over_up_to) + 4 * (c.me >> 5); }

// Finds the last operation up to which all are complete for the caller's warp; the active lanes share the list. The search ends at an
// operation that could complete without the whole warp knowing, at one that a single lane waited for, and at unlisted numbers.
COLD void pass_operations(const Caller &c) {
    u64 engine = engine_of(c.slot);
    u32 mask = active_mask(), lanes = __popc(mask), base = load32(FIELD(engine, Engine, op_base)), last = load32(FIELD(engine, Engine, op_complete));
    if (__any_sync(mask, load32(FIELD(engine, Engine, acquired) + 4 * (c.me >> 5)))) return;
    record_fence();
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS);
#pragma unroll 1
    for (u32 i = lanes_below(mask); i < count; i += lanes) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence > base && o.sequence <= last && !(over_for_warp(c, o) && observed(c, o))) last = o.sequence - 1;
    }
    last = __reduce_min_sync(mask, last);
    if (lane_id() == __ffs(mask) - 1) raise32(over_up_to(c), last);
    __syncwarp(mask);
}

// Whether red.async and a strong access of a warp are morally strong (R-RACE): the same bytes, and each in the scope of the other.
// The reduction counts as a strong access by its issuing thread, so any scope includes threads of its CTA.
DEVICE bool strong_together(const Caller &c, const Operation &o, u32 warp, bool narrow, u32 offset, u32 bytes) {
    if (narrow && !same_cta(c.slot, o.thread >> 5, warp)) return false;
    if (!(o.shape2 & SHAPE_ROWS)) return offset == o.low && bytes == o.high - o.low;
    return bytes == row_size(o) && (offset - o.low) % row_distance(o) == 0;
}

DEVICE bool strong_together(const Caller &c, const Operation &o) {
    return adds(o) && c.flags & (ACCESS_RMW | ACCESS_STRONG) && strong_together(c, o, c.me >> 5, c.flags & ACCESS_CTA, c.offset, c.bytes);
}

DEVICE bool operation_may_cover(const Caller &c) {
    u32 number = load32(coarse_of(c.slot) + c.offset / BLOCK_BYTES * 4);
    return number > load32(FIELD(engine_of(c.slot), Engine, op_base));
}
#endif
