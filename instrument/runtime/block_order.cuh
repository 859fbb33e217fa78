// Operations against the generic accesses before them: whether all accesses to a range happen before the operation and have passed a proxy
// fence (R-RACE, R-PX). The coarse table answers for most blocks; a block that it leaves in doubt is checked cell by cell (overlaps.cuh).
#pragma once

#include "operation.cuh"

#if CONSAN_ENGINE
DEVICE bool fenced(const Caller &c, const Operation &o, u32 warp, u32 epoch) { return epoch <= clock_entry(c.slot, c.me, fenced_for(c.slot, o.low) + warp); }
// st.async and red.async write through the generic proxy, so they need no proxy fence (SEMANTICS section 5).
DEVICE bool passed(const Caller &c, const Operation &o, u32 warp, u32 epoch) { return kind_of(o) == OPERATION_STORE_ASYNC || fenced(c, o, warp, epoch); }

COLD void report_proxy(Caller c, u32 hazard, u32 site, u32 other, u32 own_operation, u32 reason) {
    Finding f = make_conflict(c, KIND_MISSING_PROXY_FENCE, hazard, site, other, 0);
    f.flags = 0; f.reason = reason; f.conflict.own_operation = own_operation;
    report(c.slot, f);
}

COLD void report_access(Caller c, const Operation &o, u32 hazard, u32 site, u32 other, u32 epoch) {
    bool wait = o.kind & OPERATION_WRITES && kind_of(o) == OPERATION_BULK_LOAD && !too_early_refill(c.slot, o, other, epoch) && hazard == HAZARD_WAR;
    Finding f = make_conflict(c, wait ? KIND_MISSING_WAIT : KIND_DATA_RACE, hazard, site, other, 0);
    f.conflict.own_operation = kind_of(o);
    if (wait) {
        describe_operation(c, f.conflict.completion, o);
        f.reason = why_refilled(c.slot, o, other, why_not_observed(c, o));
    }
#if CONSAN_CLUSTER
    look_for_scope(c, f, other, epoch);
#endif
    report(c.slot, f);
}

// As `strong_together`, for an atomic or strong store that left a record. It is aligned, so it covers the same bytes if it has the same
// width and the cell belongs to the reduction.
DEVICE bool strong_before(const Caller &c, const Operation &o, u64 record) {
    u32 bytes = (u32)record & LOW_PAYLOAD & ~CTA_SCOPE;
    return (u32)record & LOW_MARKER || strong_together(c, o, record_warp(record), (u32)record & CTA_SCOPE, c.offset & ~(bytes - 1), bytes);
}

// Reports at most once per block for each site and warp.
DEVICE bool reported_already(u64 reported, u64 record) {
    return reported && record_site(reported) == record_site(record) && record_warp(reported) == record_warp(record);
}

// A view of the caller's clock that is read four entries at a time.
struct ClockView { u64 row, coarse; u32 stride, base, start, warps; bool some; };

// An interval belongs to one CTA, and its start says nothing about warps of another CTA.
DEVICE u32 start_for(const Caller &c, const ClockView &e, u32 warp) { return same_cta(c.slot, warp, c.me >> 5) ? e.start : 0; }

DEVICE ClockView view_of(const Caller &c) {
    return {own_vector(c.slot, c.me), coarse_of(c.slot), coarse_stride(c.slot), load32(FIELD(c.slot, Slot, base)), high_word(c.state),
            load32(FIELD(c.slot, Slot, warp_count)), lane_acquired(c.slot, c.me)};
}

DEVICE void seen_by(const ClockView &e, u32 entry, u32 *out) {
    load_entries<4>(e.row + 4 * entry, out);
    if (!e.some) return;
    u32 more[4];
    load_entries<4>(e.row + 4ull * VECTOR * MAX_WARPS + 4 * entry, more);
    for (u32 j = 0; j < 4; ++j) out[j] = max(out[j], more[j]);
}

// Lets `happens_before` read the view instead of the clock. `seen`: the entry of the other access's warp, loaded before.
struct ViewedClock {
    const ClockView &view;
    u32 seen;
    DEVICE_MEMBER bool covers(const Caller &c, u32 warp, u32 epoch) const { return epoch < start_for(c, view, warp) || epoch <= seen; }
};

// Whether what all lanes of a warp did up to an epoch happens before. In the caller's own warp, only the start of the interval tells that.
DEVICE bool warp_happens_before(const Caller &c, const ClockView &e, u32 warp, u32 epoch, u32 seen) {
    return ViewedClock{e, warp == c.me >> 5 ? 0 : seen}.covers(c, warp, epoch);
}

// A cp.async is complete for the caller if the caller has observed one of the last whole-warp waits that covers its group.
DEVICE bool group_in_order(const Caller &c, const ClockView &e, u32 warp, u32 group, u32 seen, u32 passed, bool fence) {
    u64 done[2];
    load_records<2>(FIELD(engine_of(c.slot), Engine, copies_done) + COPIES_DONE * warp, done);
    for (u32 i = 0; i < 2; ++i) {
        u32 epoch = low_word(done[i]);
        if (high_word(done[i]) > group && warp_happens_before(c, e, warp, epoch, seen) && (!fence || epoch <= passed)) return true;
    }
    return false;
}

DEVICE bool copies_in_order(const Caller &c, const ClockView &e, u32 warp, u32 block, u32 seen, u32 passed, bool fence) {
    u32 group = load32(warp_rows<BLOCK_BYTES>(e.coarse, e.stride, warp) + (u64)WARP_GROUPS * e.stride + 4ull * block);
    return group_in_order(c, e, warp, group, seen, passed, fence);
}

DEVICE bool write_in_order(const Caller &c, const ClockView &e, const Operation &o, u32 warp, u32 block, u32 entry, u32 seen, u32 passed) {
    u32 epoch = block_epoch(entry);
    if (epoch < e.base) return true;
    if (entry & BLOCK_ASYNC) return copies_in_order(c, e, warp, block, seen, passed, CONSAN_ISA || kind_of(o) != OPERATION_WGMMA);
#if CONSAN_ISA
    if (epoch > load32(FIELD(engine_of(c.slot), Engine, fenced) + 4 * warp)) return false;
#endif
    if (epoch > passed) return false;
    // An entry of the caller's own warp that names another lane may stand for several lanes.
    return happens_before(c, warp << 5 | block_lane(entry), epoch, block_lane(entry) != (c.me & 31), ViewedClock{e, seen});
}

// Whether the coarse entries of a block show that everything in it is ordered. If not, the cells are checked.
DEVICE bool block_in_order(const Caller &c, const ClockView &e, const Operation &o, u32 block, bool written, bool read) {
#if CONSAN_CLUSTER
    EACH_WARP_THAT_MAY_ACCESS(c.slot, block * BLOCK_BYTES, w) {
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
            u32 epoch = block_epoch(reads[j]);
            if (!reads[j] || epoch < e.base) continue;
            if (!warp_happens_before(c, e, w + j, epoch, seen[j])) return false;
#if CONSAN_ISA
            if (epoch > passed[j]) return false;
#endif
        }
    }
    return true;
}

// As `block_in_order`, for one warp and many blocks (or superblocks): if the warp's latest entry is ordered, so are all earlier ones.
// Only the bytes of [low, high) count.
template <u32 UNIT> DEVICE bool warp_in_order(const Caller &c, const ClockView &e, const Operation &o, u32 w, u32 low, u32 high, bool written, bool read) {
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
            if (w4[j] & BLOCK_ASYNC && block_epoch(w4[j]) >= e.base) { async |= BLOCK_ASYNC; group = max(group, g4[j]); }
        }
    }
    u32 seen = clock_entry(c.slot, c.me, w), passed = clock_entry(c.slot, c.me, fenced_for(c.slot, o.low) + w), epoch = block_epoch(reader);
    if (async && !group_in_order(c, e, w, group, seen, passed, CONSAN_ISA || kind_of(o) != OPERATION_WGMMA)) return false;
    // The group settles a copy's entry. A plain store must also have passed a proxy fence.
    if (write && !(write & BLOCK_ASYNC) && !write_in_order(c, e, o, w, 0, write, seen, passed)) return false;
    if (async && !(write & BLOCK_ASYNC)) return false;
    if (!reader || epoch < e.base) return true;
    if (!warp_happens_before(c, e, w, epoch, seen)) return false;
#if CONSAN_ISA
    if (epoch > passed) return false;
#endif
    return true;
}

// What superblocks do not settle for a warp is checked superblock by superblock, and by blocks where needed. Lanes share the superblocks.
DEVICE bool blocks_in_order(const Caller &c, const ClockView &e, const Operation &o, u32 w, u32 first, u32 step, bool written, bool read) {
#pragma unroll 1
    for (u32 super = o.low / SUPER_BYTES + first; super * SUPER_BYTES < o.high; super += step) {
        u32 low = max(o.low, super * SUPER_BYTES), high = min(o.high, (super + 1) * SUPER_BYTES);
        if (!warp_in_order<SUPER_BYTES>(c, e, o, w, low, high, written, read) && !warp_in_order<BLOCK_BYTES>(c, e, o, w, low, high, written, read)) return false;
    }
    return true;
}

// Checks all warps. In a full warp (`step` 32) each lane checks one warp; then all lanes share the warps that are left in doubt.
DEVICE bool rows_in_order(const Caller &c, const ClockView &e, const Operation &o, u32 first, u32 step, bool written, bool read) {
    if (step == 1) {
        EACH_WARP_THAT_MAY_ACCESS(c.slot, o.low, w)
            if (!warp_in_order<SUPER_BYTES>(c, e, o, w, o.low, o.high, written, read) && !blocks_in_order(c, e, o, w, 0, 1, written, read)) return false;
        return true;
    }
#if CONSAN_CLUSTER
    u32 ranks = ranks_that_may_access(c.slot, o.low), shift = cta_shift(c.slot);
#endif
#pragma unroll 1
    for (u32 warps = 0; warps < e.warps; warps += 32) {
        u32 w = warps + first;
        bool mine = w < e.warps;
#if CONSAN_CLUSTER
        mine = mine && ranks >> (w >> shift) & 1;
#endif
        u32 doubt = __ballot_sync(0xffffffffu, mine && !warp_in_order<SUPER_BYTES>(c, e, o, w, o.low, o.high, written, read));
#pragma unroll 1
        for (; doubt; doubt &= doubt - 1)
            if (__any_sync(0xffffffffu, !blocks_in_order(c, e, o, warps + __ffs(doubt) - 1, first, step, written, read))) return false;
    }
    return true;
}

// Whether anything in the superblocks of the range was written or read.
DEVICE void touched(const ClockView &e, const Operation &o, u32 first, u32 step, bool &written, bool &read) {
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
#endif
