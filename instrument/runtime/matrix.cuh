// Operands of wgmma in shared memory: which bytes a descriptor names, and until when they are read (R-G1 to R-G3).
//
// All four warps of a warpgroup read the same B, and each its own rows of A (D25). Each warp waits for itself. The first warp lists B, and
// each warp its rows of A. All check that the data they read is complete. B is free when all four have waited, rows of A when their warp
// has (matrix_observed, SEMANTICS section 4.3).
// Footprints are exact to the 16-byte chunk (ISA "Strides", "Canonical Layouts"). Consecutive slices along K within one line of the
// swizzle pattern share a record.
#pragma once

#include "operation.cuh"

#if CONSAN_ENGINE
// `shape` is the descriptor. `shape2` holds rows, chunks along K (K-major) or elements along K, major, and the base of shared memory.
DEVICE u64 pack_shape(u32 rows, u32 depth, u32 major, u32 window) { return (u64)window << 32 | major << 31 | depth << 16 | rows; }
DEVICE u32 shape_rows(const Operation &o) { return (u32)o.shape2 & 0xffff; }
DEVICE u32 shape_depth(const Operation &o) { return (u32)o.shape2 >> 16 & 0x7fff; }
DEVICE u32 shape_major(const Operation &o) { return (u32)o.shape2 >> 31; }
DEVICE u32 shape_window(const Operation &o) { return (u32)(o.shape2 >> 32); }

struct Descriptor { u32 start, leading, stride, base, width; };  // width: chunks in a line of the swizzle pattern

DEVICE Descriptor read_descriptor(u64 bits) {
    Descriptor d;
    d.start = ((u32)bits & 0x3fff) << 4; d.leading = ((u32)(bits >> 16) & 0x3fff) << 4; d.stride = ((u32)(bits >> 32) & 0x3fff) << 4;
    d.base = (u32)(bits >> 49) & 7;
    u32 mode = (u32)(bits >> 62);
    d.width = mode ? 16u >> mode : 1;
    return d;
}

// Whether the chunk at distance `at` from the start, swizzle undone, belongs to a line of `width` chunks; returns line and chunk.
DEVICE bool in_lines(u32 at, u32 width, u32 &line, u32 &chunk) {
    line = at / (16 * width); chunk = at % (16 * width) / 16;
    return at < 128 * width;
}

DEVICE bool k_major_covers(const Operation &o, const Descriptor &d, u32 distance) {
    u32 steps = d.width == 1 ? shape_depth(o) : 1, line, chunk;
    for (u32 c = 0; c < steps; ++c) {
        u32 at = distance - c * d.leading;
        if ((int)at < 0) return false;
        u32 eight = d.stride ? at / d.stride : 0;
        if (in_lines(at - eight * d.stride, d.width, line, chunk) && eight * 8 + line < shape_rows(o) && (d.width == 1 || chunk < shape_depth(o))) return true;
    }
    return false;
}

DEVICE bool mn_major_covers(const Operation &o, const Descriptor &d, u32 distance) {
    u32 chunks = shape_rows(o) / 8, outer = (chunks + d.width - 1) / d.width, line, chunk;
    u32 across = d.width == 1 ? d.stride : d.leading, along = d.width == 1 ? d.leading : d.stride;
    for (u32 q = 0; q < outer; ++q)
        for (u32 k = 0; k < (shape_depth(o) + 7) / 8; ++k) {
            u32 at = distance - q * across - k * along;
            if ((int)at >= 0 && in_lines(at, d.width, line, chunk) && k * 8 + line < shape_depth(o) && q * d.width + chunk < chunks) return true;
        }
    return false;
}

DEVICE bool matrix_covers(const Operation &o, u32 low, u32 high) {
    Descriptor d = read_descriptor(o.shape);
    for (u32 chunk = low & ~15u; chunk < high; chunk += 16) {
        u32 address = chunk + shape_window(o);
        address ^= (((address >> 7) - d.base) & (d.width - 1)) << 4;
        u32 distance = address - d.start;
        if ((int)distance >= 0 && (shape_major(o) ? mn_major_covers(o, d, distance) : k_major_covers(o, d, distance))) return true;
    }
    return false;
}

// The range that contains all chunks.
DEVICE void bound_operand(Operation &o, u32 rows, u32 depth, u32 major) {
    Descriptor d = read_descriptor(o.shape);
    u32 low = d.start & ~(16 * d.width - 1), chunks = rows / 8, span;
    if (!major) span = (rows + 7) / 8 * d.stride - d.stride + (d.width == 1 ? (depth - 1) * d.leading : 0);
    else if (d.width == 1) span = ((depth + 7) / 8 - 1) * d.leading + (chunks - 1) * d.stride;
    else span = ((depth + 7) / 8 - 1) * d.stride + ((chunks + d.width - 1) / d.width - 1) * d.leading;
    o.low = low; o.high = low + span + 128 * d.width;
}

// Extends the record by the next slice along K within one line of the pattern. False if this is not the next slice.
DEVICE bool grow_operand(const Operation &o, u64 at, u32 depth) {
    Operation old = load_operation(at);
    if (old.kind != o.kind || old.thread != o.thread || old.group != o.group || (old.shape ^ o.shape) >> 16 || shape_major(old)) return false;
    u32 first = (u32)old.shape & 0x3fff, mine = (u32)o.shape & 0x3fff;
    if (mine >= first && mine + depth <= first + shape_depth(old)) return true;
    if (mine != first + shape_depth(old)) return false;
    store64(at + 48, pack_shape(shape_rows(old), shape_depth(old) + depth, 0, shape_window(old)));
    return true;
}

// A record of this warpgroup on the same range, searched by the lanes together; OPERATIONS if there is none.
DEVICE u32 same_operand(const Caller &c, const Operation &o, u32 count, u32 base) {
    u64 engine = engine_of(c.slot), range = pack(o.low, o.high);
    for (u32 first = 0; first < count; first += 32) {
        u32 i = first + lane_id();
        bool mine = i < count && load64(operation_range_at(engine, i)) == range;
        if (mine) {
            Operation old = load_operation(operation_at(engine, i));
            mine = old.sequence > base && old.kind == o.kind && old.thread == o.thread && (old.shape ^ o.shape) >> 16 == 0;
        }
        u32 found = __ballot_sync(0xffffffffu, mine);
        if (found) return first + __ffs(found) - 1;
    }
    return OPERATIONS;
}

// Lists an operand, by the first warp that reads it: in the record of an earlier product, or in a new one.
DEVICE u32 list_operand(const Caller &c, Operation &o, u32 count, u32 base, u32 depth) {
    u64 engine = engine_of(c.slot);
    u32 place = same_operand(c, o, count, base), sequence = 0, fresh = OPERATIONS;
    if (lane_id() == 0) {
        if (place < OPERATIONS && grow_operand(o, operation_at(engine, place), depth)) fresh = place;
        else {
            sequence = o.sequence = add32(FIELD(engine, Engine, op_next), 1) + 1;
            fresh = place < OPERATIONS ? place : add32(FIELD(engine, Engine, op_count), 1);
            if (fresh >= OPERATIONS) { fresh = OPERATIONS; count_evicted(c.slot); }
            else store_operation(operation_at(engine, fresh), operation_range_at(engine, fresh), o);
        }
    }
    o.sequence = __shfl_sync(0xffffffffu, sequence, 0);
    return __shfl_sync(0xffffffffu, fresh, 0);
}

// The descriptor of a warp's rows of A: 16 rows are two groups of 8 (K-major), or two chunks of a line (MN-major).
DEVICE u64 rows_of_warp(u64 descriptor, u32 warp, u32 major) {
    Descriptor d = read_descriptor(descriptor);
    u32 chunk = 2 * (warp & 3), groups = chunk / d.width, across = d.width == 1 ? d.stride : d.leading;
    u32 distance = major ? groups * across + chunk % d.width * 16 : chunk * d.stride;
    return (descriptor & ~0x3fffull) | ((u32)descriptor + (distance >> 4) & 0x3fff);
}

DEVICE Operation operand_of(u64 slot, u32 me, u64 descriptor, u32 site, u32 rows, u32 depth, u32 form) {
    Operation o;
    u32 major = form & 1, own_rows = form >> 1;
    if (own_rows) { descriptor = rows_of_warp(descriptor, me >> 5, major); rows /= 4; }
    o.kind = OPERATION_WGMMA | (own_rows ? OWN_ROWS : 0); o.site = site; o.thread = me & (own_rows ? ~31u : ~127u); o.source = site; o.sequence = o.barrier = o.phase = 0;
    o.group = load32(THREAD_FIELD(thread_record(slot, o.thread), matrix_commits));
    o.shape = descriptor; o.shape2 = pack_shape(rows, depth, major, load32(FIELD(slot, Slot, low)));
    bound_operand(o, rows, depth, major);
    return o;
}

// What a warp remembers of a range: its place on the list, and that everything was ordered in that group.
DEVICE u64 operand_memo(u64 engine, u32 me, u32 low) {
    return FIELD(engine, Engine, operands) + 16ull * ((me >> 5) * MATRIX_OPERANDS + ((low >> 10) * 0x9E3779B1u >> 29) % MATRIX_OPERANDS);
}
DEVICE u32 memo_tag(u32 base, const Operation &o) { return (base << 12) ^ (o.group + 1); }

COLD bool grow_in_place(const Operation &o, u64 engine, u32 place, u32 depth) { return place < OPERATIONS && grow_operand(o, operation_at(engine, place), depth); }

HOOK void __consan_matrix_commit(u64 slot, u64 state, u32 me) {
    if (!slot) return;
    u64 at = THREAD_FIELD(thread_record(slot, me & ~31u), matrix_commits);
    u32 commits = load32(at);
    __syncwarp();
    if (lane_id() == 0) store32(at, commits + 1);
    __syncwarp();
}

HOOK void __consan_matrix_wait(u64 slot, u64 state, u32 me, u32 pending) {
    if (!slot) return;
    __syncwarp();
    u64 thread = thread_record(slot, me & ~31u);
    u32 commits = load32(THREAD_FIELD(thread, matrix_commits));
    if (lane_id() == 0 && commits > pending && commits - pending > load32(THREAD_FIELD(thread, matrix_retired))) {
        u32 number = load32(THREAD_FIELD(thread, matrix_wait_count));
        store64(matrix_wait_at(slot, me >> 5, number), pack(low_word(state), commits - pending));
        store32(THREAD_FIELD(thread, matrix_wait_count), number + 1);
        record_fence();
        store32(THREAD_FIELD(thread, matrix_retired), commits - pending);
    }
    __syncwarp();
}
#endif
