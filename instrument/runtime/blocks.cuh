// The coarse table: for each block of 128 bytes, which operation covers it and when each warp last accessed it.
//
// Through this table generic accesses and operations find each other. An operation writes its number into the blocks of its range, and an
// access that finds a number searches the list. An access leaves its warp's epoch in its block, and an operation that finds an epoch checks
// the cells. Both record first and look afterwards, so of two concurrent ones at least one sees the other.
#pragma once

#include "access.cuh"

#if CONSAN_ENGINE
DEVICE u64 coarse_of(u64 slot) {
    u64 engine, coarse;
    constant_pair(FIELD(slot, Slot, engine), engine, coarse);
    return coarse;
}
DEVICE u32 coarse_stride(u64 slot) { return COARSE_ROW(load32(FIELD(slot, Slot, row)) / 4 * CONSAN_GRANULE); }
enum CoarseRow : u32 { ROW_OPERATIONS = 0, ROW_READS = 1, ROW_WRITES = 2, ROW_COMPLETE = 3, ROW_PLACES = 4, ROW_WRITTEN = 5, ROW_WARPS = 7 };
enum WarpRow : u32 { WARP_READS = 0, WARP_WRITES = 1, WARP_GROUPS = 2 };  // per warp: rows of blocks, then of superblocks

#define COPIES_DONE 32u  // bytes per warp: the last two waits (epoch, groups), and the lanes that have executed the next one
// One thread issues the copies of a pipeline, so it looks at superblocks first. ROW_READS and ROW_WRITES have one entry per superblock.
#define SUPER_BYTES (16 * BLOCK_BYTES)

template <u32 UNIT> DEVICE u32 row_stride(u32 stride) { return UNIT == BLOCK_BYTES ? stride : SUPER_ROW(stride); }
template <u32 UNIT> DEVICE u64 warp_rows(u64 coarse, u32 stride, u32 warp) {
    return coarse + (u64)stride * ROW_WARPS + (u64)warp * 3 * (stride + SUPER_ROW(stride)) + (UNIT == BLOCK_BYTES ? 0 : 3ull * stride);
}

// Generic writes of whole words set one bit per word in the block's word, beside the mark of this CTA, so an operation that reads them
// need not look at each cell. A block with all bits set is fully written. If a bit is lost, the operation checks the cells.
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
    u32 entry = epoch << BLOCK_EPOCH_SHIFT | (c.flags & ACCESS_COPY ? BLOCK_ASYNC : 0) | (c.me & 31);
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
        for (u32 j = 0; j < 4; ++j) found |= entries[j] && block_epoch(entries[j]) >= start;
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
    // Two waits are kept: if the warp has run ahead to its next wait, other threads have observed the one before.
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

// A block that was found fully written stays fully written for this CTA.
DEVICE u64 complete_at(u64 slot, u32 offset) { return coarse_of(slot) + (u64)coarse_stride(slot) * ROW_COMPLETE + offset / BLOCK_BYTES * 4; }
DEVICE u32 complete_mark(u64 slot) { return load32(FIELD(slot, Slot, base)) + 1; }
#endif
