// Hooks of wgmma: operands, commits and waits (R-G1 to R-G3).
#pragma once

#include "access_hooks.cuh"

#if CONSAN_ENGINE
// Checks the copies that overlap an operand; the lanes share them. `whole`: a copy that all lanes have observed covers the range.
DEVICE bool meet_copies(const Caller &c, const Operation &o, u32 place, u32 count, u32 base, bool &whole) {
    u64 engine = engine_of(c.slot);
    bool clean = true;
    for (u32 i = lane_id(); i < count; i += 32) {
        u64 range = load64(operation_range_at(engine, i));
        if (i == place || low_word(range) >= o.high || high_word(range) <= o.low) continue;
        Operation other = load_operation(operation_at(engine, i));
        if (other.sequence <= base || !(other.kind & OPERATION_WRITES)) continue;
        whole |= other.low <= o.low && other.high >= o.high;
        if (observed(c, other)) continue;
        clean = false;
        if (covers(o, other.low, other.high)) meet_operation(c, o, other);
    }
    return clean;
}

COLD void look_at_operand(u64 slot, u64 state, u32 me, u64 descriptor, u32 site, u32 rows, u32 depth, u32 form) {
    u64 engine = engine_of(slot);
    Operation o = operand_of(slot, me, descriptor, site, rows, depth, form);
    u32 base = load32(FIELD(engine, Engine, op_base)), window = shape_window(o);
    Caller c = {slot, state, me, site, ACCESS_READ | ACCESS_ENGINE, 0, o.high - o.low};
#if CONSAN_CLUSTER
    if (!enter_access(c, head_of(slot, me), rank_of(slot, me) << ADDRESS_RANK_SHIFT | o.low)) return;
    u64 range = pack(o.low, o.high);
    window -= rank_of(slot, me) * cta_bytes(slot);  // from offsets of the cluster to addresses of this CTA
    o.shape2 = pack_shape(shape_rows(o), depth, shape_major(o), window);
#else
    if (!enter_access(c, head_of(slot, me), o.low)) return;
    u64 range = pack(o.low, o.high);
#endif
    o.low -= window; o.high -= window;
    u32 place = OPERATIONS;
    if (me < o.thread + 32) {
        place = list_operand(c, o, __shfl_sync(0xffffffffu, min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), 0), base, depth);
        if (o.sequence) mark_operation(slot, o, lane_id(), 32);
    }
    record_fence();
    if (o.sequence && lane_id() == 0) operation_listed(engine);
    __syncwarp();
    bool whole = false, clean = meet_copies(c, o, place, min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), base, whole);
    if (!__ballot_sync(0xffffffffu, whole)) check_initialised(c, o, lane_id(), 32);
    clean &= check_blocks(c, o, lane_id(), 32);
    if (!__ballot_sync(0xffffffffu, clean != true) && lane_id() == 0) {
        // Computed here and not kept across the calls above, to save registers.
        u64 memo = operand_memo(engine_of(slot), me, low_word(range));
        store64(memo, range);
        store64(memo + 8, pack(place, memo_tag(load32(FIELD(engine_of(slot), Engine, op_base)), o)));
    }
    __syncwarp();
}

// One operand of one wgmma.mma_async, executed by a whole warp. `depth`: chunks along K, or elements if bit 0 of `form` (MN-major) is set.
// Bit 1 of `form`: each warp reads a quarter of the rows.
// A check without findings is remembered for the next slices of the same line. A conflict that arises meanwhile is found by the other
// side, which searches the list.
HOOK void __consan_matrix_operand(u64 slot, u64 state, u32 me, u64 descriptor, u32 site, u32 rows, u32 depth, u32 form) {
    if (!slot) return;
    if (!(form & 1)) {
        u64 engine = engine_of(slot), known[2];
        Operation o = operand_of(slot, me, descriptor, site, rows, depth, form);
        load_records<2>(operand_memo(engine, me, o.low), known);
        // Lanes may have looked at different times. If one checks, all check.
        if (__all_sync(0xffffffffu, known[0] == pack(o.low, o.high) && high_word(known[1]) == memo_tag(load32(FIELD(engine, Engine, op_base)), o))) {
            bool grown = me >= o.thread + 32 || lane_id() || grow_in_place(o, engine, low_word(known[1]), depth);
            if (__all_sync(0xffffffffu, grown)) return;
        }
    }
    look_at_operand(slot, state, me, descriptor, site, rows, depth, form);
}
#endif
