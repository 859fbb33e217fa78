// Asynchronous operations on shared memory that are too wide for the cells: bulk and tensor copies, operands of wgmma.
//
// Each operation is one record on a list: its byte range, and what its completion depends on (a phase of an mbarrier, or a group of the
// issuing thread or warp). The record stays after completion, because an access that has not observed the completion still conflicts.
// The next operation on the same range that is ordered after it replaces it.
// Generic accesses and operations find each other through a coarse table of blocks of 128 bytes. An operation writes its number into the
// blocks of its range, and an access that finds a number searches the list. An access leaves its warp's epoch in its block, and an
// operation that finds an epoch checks the cells. Both record first and look afterwards, so of two concurrent ones at least one sees
// the other. A block holds the epoch of the latest access of each warp.
#pragma once

#include "mbarrier.cuh"

#if CONSAN_ENGINE
// source: the first of the sites that one source place has (an unrolled loop has several).
struct Operation { u32 low, high, sequence, kind, site, thread, source, barrier, phase, group; u64 shape, shape2; };

#define OPERATION_WRITES 1u
// In `kind` of a load. INFORMED: the issuer had observed all phases before this one. REFILL: an earlier load wrote the same bytes.
#define INFORMED 0x100u
#define REFILL 0x200u
#define ADDS 0x400u  // red.async: relaxed, .cluster scope; no race with other strong accesses to the same bytes
#define RETIRED 0x10000u  // the place of the record is free
// Two bits in `shape2` of a copy that moves only part of its range. Operands of wgmma use other shapes.
#define SHAPE_ROWS (1ull << 62)  // rows of one size at one distance: `shape` is size and distance
#define SHAPE_BOX (2ull << 62)  // a box clipped at the edge of the tensor (bulk.cuh)

DEVICE u64 coarse_of(u64 slot) {
    u64 engine, coarse;
    constant_pair(FIELD(slot, Slot, engine), engine, coarse);
    return coarse;
}
// mark_operation: sequence numbers only grow, so the later one of two operations in a block is kept.
DEVICE u32 coarse_stride(u64 slot) { return COARSE_ROW(load32(FIELD(slot, Slot, row)) / 4 * CONSAN_GRANULE); }
enum CoarseRow : u32 { ROW_OPERATIONS = 0, ROW_READS = 1, ROW_WRITES = 2, ROW_COMPLETE = 3, ROW_PLACES = 4, ROW_WRITTEN = 5, ROW_WARPS = 7 };
enum WarpRow : u32 { WARP_READS = 0, WARP_WRITES = 1, WARP_GROUPS = 2 };  // per warp: rows of blocks, then of superblocks

#define COARSE_ASYNC 32u
#define COPIES_DONE 32u  // bytes per warp: the last two waits (epoch, groups), and the lanes that have executed the next one
// One thread issues the copies of a pipeline, so it looks at superblocks first. ROW_READS and ROW_WRITES have one entry per superblock.
#define SUPER_BYTES (16 * BLOCK_BYTES)

template <u32 UNIT> DEVICE u32 row_stride(u32 stride) { return UNIT == BLOCK_BYTES ? stride : SUPER_ROW(stride); }
template <u32 UNIT> DEVICE u64 warp_rows(u64 coarse, u32 stride, u32 warp) {
    return coarse + (u64)stride * ROW_WARPS + (u64)warp * 3 * (stride + SUPER_ROW(stride)) + (UNIT == BLOCK_BYTES ? 0 : 3ull * stride);
}

// Generic writes of whole words set one bit per word in the block's word, beside the mark of this CTA, so an operation that reads them
// need not look at each cell. A block with all bits set is fully written. A lost bit only costs that check of the cells.
DEVICE void note_words(const Caller &c, u64 at, u32 mark) {
    if (c.bytes < 4) return;
    u32 bits = ((1u << c.bytes / 4) - 1) << c.offset % BLOCK_BYTES / 4;
    u64 word = load64(at);
    while (high_word(word) != mark) {
        u64 found = swap64(at, word, pack(bits, mark));
        if (found == word) return;
        word = found;
    }
    if (bits & ~low_word(word)) or_bits(at, bits);
}

DEVICE void mark_block(const Caller &c, bool write, u32 base) {
    u32 stride = coarse_stride(c.slot), block = c.offset / BLOCK_BYTES * 4, super = c.offset / SUPER_BYTES * 4, epoch = low_word(c.state);
    u64 coarse = coarse_of(c.slot), blocks = warp_rows<BLOCK_BYTES>(coarse, stride, c.me >> 5);
    u32 entry = epoch << 6 | (c.flags & ACCESS_COPY ? COARSE_ASYNC : 0) | (c.me & 31);
    store32(blocks + write * stride + block, entry);
    store32(blocks + 3ull * stride + write * SUPER_ROW(stride) + super, entry);
    store32(coarse + (u64)stride * (write ? ROW_WRITES : ROW_READS) + super, write ? epoch : high_word(c.state));
    if (write) note_words(c, coarse + (u64)stride * ROW_WRITTEN + 2 * block, base + 1);
}

// Whether a warp has accessed shared memory of any CTA since an epoch. Executed by lanes `mask` of it together.
DEVICE bool touched_since(u64 slot, u32 warp, u32 start, u32 mask) {
    u32 stride = coarse_stride(slot), row = SUPER_ROW(stride);
    u64 supers = warp_rows<SUPER_BYTES>(coarse_of(slot), stride, warp);
    bool found = false;
    for (u32 at = 16 * lanes_below(mask); at < 2 * row && !found; at += 16 * __popc(mask)) {
        u32 entries[4];
        load_entries<4>(supers + at, entries);
        for (u32 j = 0; j < 4; ++j) found |= entries[j] && entries[j] >> 6 >= start;
    }
    return __any_sync(mask, found);
}

DEVICE void mark_copy(u64 slot, u32 me, u32 address, u32 group) {
    u32 offset = offset_of(slot, address), stride = coarse_stride(slot);
    if (offset >= load32(FIELD(slot, Slot, bytes)) * cta_count(slot)) return;
    u64 blocks = warp_rows<BLOCK_BYTES>(coarse_of(slot), stride, me >> 5);
    store32(blocks + (u64)WARP_GROUPS * stride + offset / BLOCK_BYTES * 4, group);
    store32(blocks + 3ull * stride + WARP_GROUPS * SUPER_ROW(stride) + offset / SUPER_BYTES * 4, group);
}

// Notes a wait that all lanes of a warp have executed, together or one after another: the groups that are retired for all of them.
DEVICE void note_copies_done(u64 slot, u64 state, u32 me, u32 retired) {
    u32 mask = active_mask(), living = living_lanes(slot, me);
    if (__reduce_min_sync(mask, retired) != __reduce_max_sync(mask, retired) || lane_id() != __ffs(mask) - 1) return;
    // Two waits are kept: if the warp has run ahead to its next wait, the one before covers what others look for.
    u64 at = FIELD(engine_of(slot), Engine, copies_done) + COPIES_DONE * (me >> 5), last = load64(at), part = load64(at + 16);
    if (high_word(last) >= retired) return;
    while ((mask & living) != living) {
        if (high_word(part) > retired) return;
        u32 so_far = mask | (high_word(part) == retired ? low_word(part) : 0);
        u64 found = swap64(at + 16, part, pack(so_far, retired));
        if (found == part) { mask = so_far; break; }
        part = found;
    }
    if ((mask & living) != living) return;
    store64(at + 8, last);
    store64(at, pack(epoch_of_warp(slot, me >> 5, low_word(state)), retired));
}

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

struct Waits { u64 history; u32 retired; };

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
    return epoch && ordered(c, issuer, epoch);
}

DEVICE u64 matrix_wait_at(u64 slot, u32 warp, u32 place) {
    return FIELD(engine_of(slot), Engine, matrix_waits) + 8ull * (warp * MATRIX_WAITS + place % MATRIX_WAITS);
}

// Whether a wait of `warp` that covers the group happens before the caller. The ring is not cleared between CTAs; epochs tell them apart.
DEVICE bool matrix_wait_observed(const Caller &c, u32 warp, u32 group) {
    u32 epoch = 0, base = load32(FIELD(c.slot, Slot, base));
    u64 waits[MATRIX_WAITS];
    load_records<MATRIX_WAITS>(matrix_wait_at(c.slot, warp, 0), waits);
    for (u32 i = 0; i < MATRIX_WAITS; ++i)
        if (low_word(waits[i]) >= base && high_word(waits[i]) > group && (!epoch || low_word(waits[i]) < epoch)) epoch = low_word(waits[i]);
    return epoch && ordered(c, warp << 5, epoch);
}

// A product is one operation of four warps, and each warp waits for itself. A commit creates one wgmma-group per warpgroup (ISA
// "wgmma.commit_group"). A thread that a barrier orders after the wait of one of the warps is taken to have observed the group (D12,
// and SEMANTICS section 9): shipped pipelines free a stage by the arrival of one thread. A warp of the warpgroup itself with nothing but
// its own wait has not observed it, because the other warps may be behind.
DEVICE bool matrix_observed(const Caller &c, const Operation &o) {
    u32 first = o.thread >> 5 & ~3u, seen = 0, own = c.me >> 5, base = load32(FIELD(c.slot, Slot, base));
    u64 known_at = FIELD(engine_of(c.slot), Engine, matrix_seen) + 8ull * (own * MAX_WARPGROUPS + first / 4), known = load64(known_at);
    if (high_word(known) == base && low_word(known) > o.group) return true;
    bool inside = own >= first && own < first + 4;
    for (u32 w = first; w < first + 4 && (inside || !seen); ++w) {
        u64 thread = thread_record(c.slot, w << 5);
        u32 retired = load32(THREAD_FIELD(thread, matrix_retired));
        seen += retired > o.group && (w == own || matrix_wait_observed(c, w, o.group));
    }
    bool over = inside ? seen == 4 : seen != 0;
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

DEVICE void describe_operation(const Caller &c, Finding &f, const Operation &o) {
    u64 engine = engine_of(c.slot), thread = thread_record(c.slot, o.thread);
    f.operation = kind_of(o); f.group = o.group;
    if (by_phase(o)) {
        u64 at = mbarrier_at(engine, o.barrier);
        f.barrier = load32(FIELD(engine, Engine, keys) + 4 * o.barrier);
        f.phase = o.phase - load32(FIELD(at, MBarrier, first_phase));
        f.barrier_state = load64(at); f.barrier_expected = load32(FIELD(at, MBarrier, expected));
        return;
    }
    bool matrix = kind_of(o) == OPERATION_WGMMA;
    f.commits = load32(matrix ? THREAD_FIELD(thread, matrix_commits) : THREAD_FIELD(thread, bulk_commits));
    f.retired = load32(matrix ? THREAD_FIELD(thread, matrix_retired) : THREAD_FIELD(thread, bulk_read));
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
    Finding f = make_finding(c, race ? KIND_DATA_RACE : KIND_MISSING_WAIT, hazard, o.site, o.thread, FLAG_OTHER_ASYNC);
    f.flags = FLAG_OTHER_ASYNC;
    if (!race) f.reason = own_operation ? why_not_observed(c, o) : why_refilled(c.slot, o, c.me, why_not_observed(c, o));
    else { f.reason = REASON_NO_BARRIER; f.hazard = HAZARD_WAR; }
    f.own_operation = own_operation;
    describe_operation(c, f, o);
#if CONSAN_CLUSTER
    if (!race) look_for_scope(c, f, [&](const Caller &wide) { return observed(wide, o); });
#endif
    report(c.slot, f);
}

// ---- generic accesses against operations ------------------------------------------------------------------------------------

// A block that was found fully written stays fully written for this CTA.
DEVICE u64 complete_at(u64 slot, u32 offset) { return coarse_of(slot) + (u64)coarse_stride(slot) * ROW_COMPLETE + offset / BLOCK_BYTES * 4; }
DEVICE u32 complete_mark(u64 slot) { return load32(FIELD(slot, Slot, base)) + 1; }

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

// An operation gets its number before it is listed, and several may be in between. One word counts both: if the counts agree, all
// numbers are listed.
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
DEVICE bool strong_beside(const Caller &c, const Operation &o, u32 warp, bool narrow, u32 offset, u32 bytes) {
    if (narrow && !same_cta(c.slot, o.thread >> 5, warp)) return false;
    if (!(o.shape2 & SHAPE_ROWS)) return offset == o.low && bytes == o.high - o.low;
    return bytes == row_size(o) && (offset - o.low) % row_distance(o) == 0;
}

DEVICE bool strong_beside(const Caller &c, const Operation &o) {
    return adds(o) && c.flags & (ACCESS_RMW | ACCESS_STRONG) && strong_beside(c, o, c.me >> 5, c.flags & ACCESS_CTA, c.offset, c.bytes);
}

DEVICE bool operation_near(const Caller &c) {
    u32 number = load32(coarse_of(c.slot) + c.offset / BLOCK_BYTES * 4);
    return number > load32(FIELD(engine_of(c.slot), Engine, op_base));
}

// ---- operations against generic accesses --------------------------------------------------------------------------------------

DEVICE bool fenced(const Caller &c, const Operation &o, u32 warp, u32 epoch) { return epoch <= clock_entry(c.slot, c.me, fenced_for(c.slot, o.low) + warp); }
// st.async and red.async write through the generic proxy, so they need no proxy fence (SEMANTICS section 5).
DEVICE bool passed(const Caller &c, const Operation &o, u32 warp, u32 epoch) { return kind_of(o) == OPERATION_STORE_ASYNC || fenced(c, o, warp, epoch); }

COLD void report_proxy(Caller c, u32 hazard, u32 site, u32 other, u32 own_operation, u32 reason) {
    Finding f = make_finding(c, KIND_MISSING_PROXY_FENCE, hazard, site, other, 0);
    f.flags = 0; f.reason = reason; f.own_operation = own_operation;
    report(c.slot, f);
}

COLD void report_access(Caller c, const Operation &o, u32 hazard, u32 site, u32 other, u32 epoch) {
    bool wait = o.kind & OPERATION_WRITES && kind_of(o) == OPERATION_BULK_LOAD && !too_early_refill(c.slot, o, other, epoch) && hazard == HAZARD_WAR;
    Finding f = make_finding(c, wait ? KIND_MISSING_WAIT : KIND_DATA_RACE, hazard, site, other, 0);
    f.own_operation = kind_of(o); f.other_epoch = epoch;
    if (wait) {
        describe_operation(c, f, o);
        f.operation = 0;
        f.reason = why_refilled(c.slot, o, other, why_not_observed(c, o));
    }
#if CONSAN_CLUSTER
    look_for_scope(c, f, other, epoch);
#endif
    report(c.slot, f);
}

// As `strong_beside`, for an atomic or strong store that left a record. It is aligned, so it covers the same bytes if it has the same
// width and the cell belongs to the reduction.
DEVICE bool strong_before(const Caller &c, const Operation &o, u64 record) {
    u32 bytes = (u32)record & LOW_PAYLOAD & ~CTA_SCOPE;
    return (u32)record & LOW_MARKER || strong_beside(c, o, record_warp(record), (u32)record & CTA_SCOPE, c.offset & ~(bytes - 1), bytes);
}

// Reports at most once per block for each site and warp.
DEVICE bool told_already(u64 told, u64 record) {
    return told && record_site(told) == record_site(record) && record_warp(told) == record_warp(record);
}

// Whether the caller is ordered after the latest write of its own warp to a block, by `lane`.
DEVICE bool own_in_order(const Caller &c, u32 lane, u32 epoch) { return lane == (c.me & 31) || all_ordered(c, lane, epoch); }

// A view of the caller's clock that is read four entries at a time.
struct Eyes { u64 row, coarse; u32 stride, base, start, warps; bool some; };

// An interval belongs to one CTA, and its start says nothing about warps of another CTA.
DEVICE u32 start_for(const Caller &c, const Eyes &e, u32 warp) { return same_cta(c.slot, warp, c.me >> 5) ? e.start : 0; }

DEVICE Eyes eyes_of(const Caller &c) {
    return {own_vector(c.slot, c.me), coarse_of(c.slot), coarse_stride(c.slot), load32(FIELD(c.slot, Slot, base)), high_word(c.state),
            load32(FIELD(c.slot, Slot, warp_count)), lane_acquired(c.slot, c.me)};
}

DEVICE void seen_by(const Eyes &e, u32 entry, u32 *out) {
    load_entries<4>(e.row + 4 * entry, out);
    if (!e.some) return;
    u32 more[4];
    load_entries<4>(e.row + 4ull * VECTOR * MAX_WARPS + 4 * entry, more);
    for (u32 j = 0; j < 4; ++j) out[j] = max(out[j], more[j]);
}

// A cp.async is complete for the caller if the caller has observed one of the last whole-warp waits that covers its group.
DEVICE bool group_in_order(const Caller &c, const Eyes &e, u32 warp, u32 group, u32 seen, u32 passed, bool fence) {
    u64 done[2];
    load_records<2>(FIELD(engine_of(c.slot), Engine, copies_done) + COPIES_DONE * warp, done);
    for (u32 i = 0; i < 2; ++i) {
        u32 epoch = low_word(done[i]);
        if (high_word(done[i]) > group && (epoch < start_for(c, e, warp) || (warp != c.me >> 5 && epoch <= seen)) && (!fence || epoch <= passed)) return true;
    }
    return false;
}

DEVICE bool copies_in_order(const Caller &c, const Eyes &e, u32 warp, u32 block, u32 seen, u32 passed, bool fence) {
    u32 group = load32(warp_rows<BLOCK_BYTES>(e.coarse, e.stride, warp) + (u64)WARP_GROUPS * e.stride + 4ull * block);
    return group_in_order(c, e, warp, group, seen, passed, fence);
}

DEVICE bool write_in_order(const Caller &c, const Eyes &e, const Operation &o, u32 warp, u32 block, u32 entry, u32 seen, u32 passed) {
    u32 epoch = entry >> 6;
    if (epoch < e.base) return true;
    if (entry & COARSE_ASYNC) return copies_in_order(c, e, warp, block, seen, passed, CONSAN_ISA || kind_of(o) != OPERATION_WGMMA);
#if CONSAN_ISA
    if (epoch > load32(FIELD(engine_of(c.slot), Engine, fenced) + 4 * warp)) return false;
#endif
    if (epoch > passed) return false;
    return warp == c.me >> 5 ? own_in_order(c, entry & 31, epoch) : epoch < start_for(c, e, warp) || epoch <= seen;
}

// Whether the coarse entries of a block show that everything in it is ordered. If not, the cells are checked.
DEVICE bool block_in_order(const Caller &c, const Eyes &e, const Operation &o, u32 block, bool written, bool read) {
#if CONSAN_CLUSTER
    EACH_WARP_NEAR(c.slot, block * BLOCK_BYTES, w) {
        if (w % 4) continue;
#else
#pragma unroll 1
    for (u32 w = 0; w < e.warps; w += 4) {
#endif
        u32 writes[4], reads[4], seen[4], passed[4];
        for (u32 j = 0; j < 4; ++j) {
            u64 rows = warp_rows<BLOCK_BYTES>(e.coarse, e.stride, min(w + j, e.warps - 1)) + 4ull * block;
            writes[j] = written ? load32(rows + e.stride) : 0;
            reads[j] = read ? load32(rows) : 0;
        }
        seen_by(e, w, seen);
        seen_by(e, fenced_for(c.slot, o.low) + w, passed);
        for (u32 j = 0; j < 4 && w + j < e.warps; ++j) {
            if (writes[j] && !write_in_order(c, e, o, w + j, block, writes[j], seen[j], passed[j])) return false;
            u32 epoch = reads[j] >> 6;
            if (!reads[j] || epoch < e.base) continue;
            // In the caller's own warp, another lane may have read too.
            if (w + j == c.me >> 5 ? epoch >= e.start : !(epoch < start_for(c, e, w + j) || epoch <= seen[j])) return false;
#if CONSAN_ISA
            if (epoch > passed[j]) return false;
#endif
        }
    }
    return true;
}

// As `block_in_order`, for one warp and many blocks (or superblocks): if the warp's latest entry is ordered, so are all earlier ones.
// Only the bytes of [low, high) count.
template <u32 UNIT> DEVICE bool warp_in_order(const Caller &c, const Eyes &e, const Operation &o, u32 w, u32 low, u32 high, bool written, bool read) {
    u32 stride = row_stride<UNIT>(e.stride), write = 0, reader = 0, group = 0, async = 0;
    u64 rows = warp_rows<UNIT>(e.coarse, e.stride, w);
#pragma unroll 2
    for (u32 four = low / UNIT & ~3u; four * UNIT < high; four += 4) {
        u32 w4[4] = {0, 0, 0, 0}, g4[4] = {0, 0, 0, 0}, r4[4] = {0, 0, 0, 0};
        if (written) { load_entries<4>(rows + WARP_WRITES * stride + 4 * four, w4); load_entries<4>(rows + WARP_GROUPS * stride + 4 * four, g4); }
        if (read) load_entries<4>(rows + 4 * four, r4);
        for (u32 j = 0; j < 4; ++j) {
            u32 at = (four + j) * UNIT;
            if (at + UNIT <= low || at >= high) continue;
            write = max(write, w4[j]); reader = max(reader, r4[j]);
            if (w4[j] & COARSE_ASYNC && w4[j] >> 6 >= e.base) { async |= COARSE_ASYNC; group = max(group, g4[j]); }
        }
    }
    u32 seen = clock_entry(c.slot, c.me, w), passed = clock_entry(c.slot, c.me, fenced_for(c.slot, o.low) + w), epoch = reader >> 6;
    if (async && !group_in_order(c, e, w, group, seen, passed, CONSAN_ISA || kind_of(o) != OPERATION_WGMMA)) return false;
    // The group settles a copy's entry. A plain store must also have passed a proxy fence.
    if (write && !(write & COARSE_ASYNC) && !write_in_order(c, e, o, w, 0, write, seen, passed)) return false;
    if (async && !(write & COARSE_ASYNC)) return false;
    if (!reader || epoch < e.base) return true;
    if (w == c.me >> 5 ? epoch >= e.start : !(epoch < start_for(c, e, w) || epoch <= seen)) return false;
#if CONSAN_ISA
    if (epoch > passed) return false;
#endif
    return true;
}

// What superblocks do not settle for a warp is checked superblock by superblock, and by blocks where needed. Lanes share the superblocks.
DEVICE bool blocks_in_order(const Caller &c, const Eyes &e, const Operation &o, u32 w, u32 first, u32 step, bool written, bool read) {
#pragma unroll 1
    for (u32 super = o.low / SUPER_BYTES + first; super * SUPER_BYTES < o.high; super += step) {
        u32 low = max(o.low, super * SUPER_BYTES), high = min(o.high, (super + 1) * SUPER_BYTES);
        if (!warp_in_order<SUPER_BYTES>(c, e, o, w, low, high, written, read) && !warp_in_order<BLOCK_BYTES>(c, e, o, w, low, high, written, read)) return false;
    }
    return true;
}

// Checks all warps. A full warp (`step` 32) takes one warp per lane, then shares the doubtful ones.
DEVICE bool rows_in_order(const Caller &c, const Eyes &e, const Operation &o, u32 first, u32 step, bool written, bool read) {
    if (step == 1) {
        EACH_WARP_NEAR(c.slot, o.low, w)
            if (!warp_in_order<SUPER_BYTES>(c, e, o, w, o.low, o.high, written, read) && !blocks_in_order(c, e, o, w, 0, 1, written, read)) return false;
        return true;
    }
#if CONSAN_CLUSTER
    u32 near = ranks_near(c.slot, o.low), shift = cta_shift(c.slot);
#endif
#pragma unroll 1
    for (u32 warps = 0; warps < e.warps; warps += 32) {
        u32 w = warps + first;
        bool mine = w < e.warps;
#if CONSAN_CLUSTER
        mine = mine && near >> (w >> shift) & 1;
#endif
        u32 doubt = __ballot_sync(0xffffffffu, mine && !warp_in_order<SUPER_BYTES>(c, e, o, w, o.low, o.high, written, read));
#pragma unroll 1
        for (; doubt; doubt &= doubt - 1)
            if (__any_sync(0xffffffffu, !blocks_in_order(c, e, o, warps + __ffs(doubt) - 1, first, step, written, read))) return false;
    }
    return true;
}

// Whether anything in the superblocks of the range was written or read.
DEVICE void touched(const Eyes &e, const Operation &o, u32 first, u32 step, bool &written, bool &read) {
#pragma unroll 2
    for (u32 four = (o.low / SUPER_BYTES & ~3u) + 4 * first; four * SUPER_BYTES < o.high; four += 4 * step) {
        u32 w4[4], r4[4] = {0, 0, 0, 0};
        load_entries<4>(e.coarse + (u64)e.stride * ROW_WRITES + 4 * four, w4);
        if (o.kind & OPERATION_WRITES) load_entries<4>(e.coarse + (u64)e.stride * ROW_READS + 4 * four, r4);
        for (u32 i = 0; i < 4; ++i) {
            u32 at = (four + i) * SUPER_BYTES;
            if (at + SUPER_BYTES <= o.low || at >= o.high) continue;
            // Epochs of an earlier CTA, and empty entries, do not count.
            written |= w4[i] >= e.base && w4[i];
#if CONSAN_ISA || CONSAN_CLUSTER
            read |= r4[i] >= e.base && r4[i];
#else
            read |= r4[i] == e.start;
#endif
        }
    }
}

// ---- issuing ----------------------------------------------------------------------------------------------------------------

DEVICE void mark_operation(u64 slot, const Operation &o, u32 first, u32 step) {
    u64 coarse = coarse_of(slot);
    u32 marks[4] = {o.sequence, o.sequence, o.sequence, o.sequence}, end = (o.high + BLOCK_BYTES - 1) / BLOCK_BYTES;
    u32 block = o.low / BLOCK_BYTES, head = min((block + 3) & ~3u, end), tail = max(end & ~3u, head);
    if (first == 0)
        for (; block < head; ++block) store32(coarse + 4ull * block, o.sequence);
#pragma unroll 4
    for (block = head + 4 * first; block < tail; block += 4 * step) store_entries<4>(coarse + 4ull * block, marks);
    for (block = tail + first; block < end; block += step) store32(coarse + 4ull * block, o.sequence);
}

// A later operation of the same kind on the same bytes takes over the record if it is ordered after the earlier one.
DEVICE bool supersedes(const Caller &c, const Operation &o, const Operation &old) {
    if (kind_of(o) == OPERATION_BULK_STORE) return o.thread == old.thread;
    return observed(c, old);
}

DEVICE bool claim(u64 at, const Operation &old, u32 base) {
    return swap64(at + 8, pack(old.sequence, old.kind), pack(base, old.kind)) == pack(old.sequence, old.kind);
}

// Removes from an older operation what a superseding one covers: all of it, or all but its first or last rows, or nothing. The new
// operation takes a freed place if it has none.
DEVICE void take_over(u64 engine, u32 index, const Operation &o, const Operation &old, u32 base, u32 &place) {
    u64 at = operation_at(engine, index);
    if (o.low <= old.low && o.high >= old.high) {
        if (place != OPERATIONS) swap64(at + 8, pack(old.sequence, old.kind), pack(base, RETIRED));
        else if (claim(at, old, base)) place = index;
        return;
    }
    bool rows = old.shape2 & SHAPE_ROWS;
    u32 low = old.low, high = old.high, size = rows ? row_size(old) : 1, distance = rows ? row_distance(old) : 1;
    if (o.low <= low && o.high >= low + size) low += ((o.high - low - size) / distance + 1) * distance;
    else if (o.high >= high && o.low + size <= high) high -= ((high - o.low - size) / distance + 1) * distance;
    if (swap64(at, pack(old.low, old.high), pack(low, high)) == pack(old.low, old.high)) store64(operation_range_at(engine, index), pack(low, high));
}

// Small copies that form rows share one record, if thread, source place and phase or group agree. The second copy sets the distance.
// Only the issuing thread extends such a record.
#define SMALL_COPY 1024u
COLD bool grow_copy(const Caller &c, u32 index, const Operation &o) {
    u64 engine = engine_of(c.slot), at = operation_at(engine, index);
    Operation old = load_operation(at);
    u32 size = o.high - o.low, first = old.shape2 & SHAPE_ROWS ? row_size(old) : old.high - old.low;
    u32 distance = old.shape2 & SHAPE_ROWS ? row_distance(old) : o.low - old.low;
    bool same = old.thread == o.thread && old.source == o.source && old.barrier == o.barrier && old.phase == o.phase && old.group == o.group;
    if (!same || (old.kind ^ o.kind) & ~REFILL || (old.shape2 & SHAPE_BOX) || size != first || o.low < old.high || old.high - first + distance != o.low) return false;
    if (old.sequence <= load32(FIELD(engine, Engine, op_base))) return false;
    store64(at + 40, (u64)size << 32 | distance);
    store64(at + 48, SHAPE_ROWS);
    store64(at, pack(old.low, o.high));
    store64(operation_range_at(engine, index), pack(old.low, o.high));
    return true;
}

// The record that a small copy joins: the last one of its thread, or one of the latest.
COLD u32 find_rows(const Caller &c, const Operation &o) {
    if (o.high - o.low > SMALL_COPY || o.shape2) return OPERATIONS;
    u64 engine = engine_of(c.slot);
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), last = load32(THREAD_FIELD(thread_record(c.slot, c.me), last_copy));
    if (last && last <= count && grow_copy(c, last - 1, o)) return last - 1;
    for (u32 i = count; i > 0 && i + 4 > count; --i)
        if (grow_copy(c, i - 1, o)) return i - 1;
    return OPERATIONS;
}

// A free place on a full list.
DEVICE u32 free_place(u64 engine, u32 sequence) {
    for (u32 i = 0; i < OPERATIONS; ++i) {
        u64 at = operation_at(engine, i), word = load64(at + 8);
        if (high_word(word) == RETIRED && swap64(at + 8, word, pack(low_word(word), sequence << 17)) == word) return i;
    }
    return OPERATIONS;
}

DEVICE u64 place_hint(u64 slot, const Operation &o) {
    return coarse_of(slot) + (u64)coarse_stride(slot) * ROW_PLACES + 4ull * (o.low / BLOCK_BYTES);
}

// The place of the last operation that began at the same byte, if that is the same copy of an earlier round, as in each stage of a
// pipeline. Other overlapping operations keep their places.
DEVICE u32 same_place(const Caller &c, u64 engine, Operation &o, u32 base) {
    u32 place = load32(place_hint(c.slot, o)) - 1;
    if (place >= OPERATIONS || o.shape2 || load64(operation_range_at(engine, place)) != pack(o.low, o.high)) return OPERATIONS;
    Operation old = load_operation(operation_at(engine, place));
    bool same = old.sequence > base && kind_of(old) == kind_of(o) && old.thread == o.thread && !old.shape2 && old.low == o.low && old.high == o.high;
    if (!same || !supersedes(c, o, old) || !claim(operation_at(engine, place), old, base)) return OPERATIONS;
    if (kind_of(o) == OPERATION_BULK_LOAD) o.kind |= REFILL;
    return place;
}

// `o` overlaps another operation whose completion its issuer has not observed.
COLD void meet_operation(Caller both, const Operation &o, const Operation &other) {
    both.offset = max(o.low, other.low); both.bytes = min(o.high, other.high) - both.offset;
    if (o.kind & OPERATION_WRITES || !too_early_refill(both.slot, other, both.me, low_word(both.state))) return report_operation(both, other, kind_of(o));
    Finding f = make_finding(both, KIND_DATA_RACE, HAZARD_WAR, other.site, other.thread, 0);
    f.own_operation = kind_of(o); f.flags = FLAG_OTHER_ASYNC;
    describe_operation(both, f, other);
    report(both.slot, f);
}

// R-M12: at `inval`, the caller must have observed all operations that signal the mbarrier.
COLD void signals_in_flight(Caller c, u32 index) {
    u64 engine = engine_of(c.slot);
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), base = load32(FIELD(engine, Engine, op_base));
    u32 first = load32(FIELD(mbarrier_at(engine, index), MBarrier, first_phase));
    for (u32 i = 0; i < count; ++i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= base || !by_phase(o) || o.barrier != index || o.phase < first || observed(c, o)) continue;
        report_barrier(c, engine, index, REASON_SIGNALS_PENDING, o.site, o.thread);
        return;
    }
}

// Reports an operation that reads an unwritten block (R-UNINIT).
COLD void read_unwritten(Caller c, const Operation &o) {
    Finding f = make_finding(c, KIND_UNINITIALIZED_READ, HAZARD_NONE, 0, c.me, 0);
    f.reason = REASON_NONE; f.flags = 0; f.own_operation = kind_of(o);
    report(c.slot, f);
}

#define CELLS_AT_ONCE 16
#define RECORD_LANE (31u << 2)  // lane bits of a record's upper half; the other bits tell whose epoch it is

// Whether one listed operation writes a whole range. If so, returns the range of that operation.
COLD bool written_at_once(const Caller &c, u32 low, u32 high, u32 &known_low, u32 &known_high) {
    u64 engine = engine_of(c.slot);
    u32 base = load32(FIELD(engine, Engine, op_base));
    bool found = false;
    each_overlap(c.slot, low, high, [&](u32 i) {
        if (found) return;
        Operation other = load_operation(operation_at(engine, i));
        if (other.sequence <= base || !(other.kind & OPERATION_WRITES) || other.shape2 || other.low > low || other.high < high) return;
        found = true; known_low = other.low; known_high = other.high;
    });
    return found;
}

// Whether COUNT blocks are fully written, found earlier or by their words. The result is noted.
template <u32 COUNT> DEVICE bool blocks_written(u64 slot, u32 block, u32 mark) {
    u64 found = complete_at(slot, block * BLOCK_BYTES), words[COUNT];
    u32 marks[COUNT], unlike = 0;
    load_entries<COUNT>(found, marks);
    for (u32 i = 0; i < COUNT; ++i) unlike |= marks[i] ^ mark;
    if (!unlike) return true;
    load_records<COUNT>(coarse_of(slot) + (u64)coarse_stride(slot) * ROW_WRITTEN + 8ull * block, words);
    for (u32 i = 0; i < COUNT; ++i)
        if (marks[i] != mark && words[i] != pack(~0u, mark)) return false;
    for (u32 i = 0; i < COUNT; ++i) marks[i] = mark;
    store_entries<COUNT>(found, marks);
    return true;
}
#endif
