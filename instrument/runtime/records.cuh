// Records of a CTA's slot: the words of each thread, and how old read and write records are cleared before their epochs come round again.
#pragma once

#include "base.cuh"

#define READ_PERIOD (1u << (CONSAN_READ_EPOCH_BITS - 2))
#define WRITE_PERIOD (1u << (CONSAN_WRITE_EPOCH_BITS - 2))

DEVICE u32 record_warp(u64 r) { return record_thread(r) >> 5; }

// Thread records are transposed word by word, so that the lanes of a warp access neighbouring words. The handle of a record is the
// address of its first word; its top byte holds the logarithm of the number of warps.
DEVICE u64 thread_record(u64 slot, u32 thread) { return load64(FIELD(slot, Slot, threads)) + 8ull * thread; }
DEVICE u64 thread_word(u64 handle, u32 offset) {
    return (handle & ((1ull << 56) - 1)) + ((u64)(offset / 8) << (8 + (u32)(handle >> 56))) + offset % 8;
}
#define THREAD_FIELD(HANDLE, NAME) thread_word(HANDLE, offsetof(Thread, NAME))
#define THREAD_WORD(HANDLE, NAME, INDEX) thread_word(HANDLE, offsetof(Thread, NAME) + 8 * (INDEX))

#if CONSAN_ASYNC
DEVICE u64 source_range(u64 slot, u32 i) { return FIELD(slot, Slot, sources) + 16 * i; }
#endif

COLD void clear_words(u64 thread, u32 first, u32 end) {
    for (u32 i = first; i < end; i += 8) store64(thread_word(thread, i), 0);
}

// In a short CTA most stores to the slot are these, so only the lengths of address ranges are cleared, not the addresses.
COLD void reset_thread(u64 slot, u32 me) {
    u64 at = thread_record(slot, me), state = load64(FIELD(slot, Slot, state));
    store64(THREAD_FIELD(at, state), state);
    clear_words(at, offsetof(Thread, full_barriers), min((u32)THREAD_BYTES, (u32)offsetof(Thread, range_address)));
#if CONSAN_ASYNC
    clear_words(at, offsetof(Thread, range_info), THREAD_BYTES);
#endif
}

DEVICE u32 read_age(u32 entry, u32 epoch) { return (epoch - entry_epoch(entry)) & ENTRY_EPOCH_MASK; }

DEVICE bool outlived(u32 entry, u32 epoch) { return entry && read_age(entry, epoch) > READ_PERIOD; }

// Removes the entries of a row that are older than a period, several at a time. Where mbarriers advance epochs, one lane may do this
// alone while the other threads of a pipeline wait for it. Elsewhere whole warps do it, and more entries at a time would spill registers.
// It uses compare-and-swap because other warps clear the row of an exited warp, and "exited" is inferred from the age of the row.
#define ENTRIES_AT_ONCE (CONSAN_ENGINE ? 16 : 4)
DEVICE void scrub_entries(u64 row, u32 cells, u32 epoch, u32 mask) {
#pragma unroll 1
    for (u32 c = ENTRIES_AT_ONCE * lanes_below(mask); c < cells; c += ENTRIES_AT_ONCE * __popc(mask)) {
        u32 entries[ENTRIES_AT_ONCE], old = 0;
        load_entries<ENTRIES_AT_ONCE>(row + 4 * c, entries);
        for (u32 i = 0; i < ENTRIES_AT_ONCE; ++i) old |= (u32)outlived(entries[i], epoch) << i;
#pragma unroll 1
        for (; old; old &= old - 1) {
            u64 at = row + 4 * (c + __ffs(old) - 1);
            u32 entry = load32(at);
            if (outlived(entry, epoch)) swap32(at, entry, 0);
        }
    }
}

COLD void scrub_row(u64 slot, u32 warp, u32 epoch) {
    u32 cells = load32(FIELD(slot, Slot, row)) / 4;
    scrub_entries(load64(FIELD(slot, Slot, reads)) + (u64)(warp + 1) * cells * 4, cells, epoch, active_mask());
}

// With whole-CTA barriers only, all living warps cross a period in the same interval. A row that lags two periods belongs to an
// exited warp, and another warp must clear it. With partial barriers the age of an entry is counted in epochs of its own warp,
// which stop at its exit, so nothing has to be done.
COLD void scrub_reads(u64 slot, u32 me, u32 epoch) {
    scrub_row(slot, me >> 5, epoch);
    store32(FIELD(slot, Slot, row_scrub) + 4 * (me >> 5), epoch);
#if !CONSAN_PARTIAL
    for (u32 w = 0; w < load32(FIELD(slot, Slot, warp_count)); ++w)
        if (epoch - load32(FIELD(slot, Slot, row_scrub) + 4 * w) >= 2 * READ_PERIOD) scrub_row(slot, w, epoch);
#endif
}

// Marks write records older than a period as `old`: initialised, and ordered before everything. With partial barriers it marks
// records of this warp only. Bound: a warp that has not synchronised with the writer for 2^(WRITE_EPOCH_BITS-2) of the writer's
// releases does not find the missing edge.
COLD void scrub_writes(u64 slot, u32 me, u32 epoch) {
    u32 mask = active_mask(), lanes = __popc(mask), cells = load32(FIELD(slot, Slot, row)) / 4;
    u64 writes = load64(FIELD(slot, Slot, writes));
    u32 base = load32(FIELD(slot, Slot, base));
    for (u32 c = lanes_below(mask); c < cells; c += lanes) {
        u64 record = load64(writes + 8 * c);
        u32 high = (u32)(record >> 32), age = (epoch - (high >> RECORD_EPOCH_SHIFT)) & RECORD_EPOCH_MASK;
        bool mine = !CONSAN_PARTIAL || record_warp(record) == me >> 5;
        if (!record || !mine || high & 1 || age <= WRITE_PERIOD) continue;
        // A copy stays a copy until its group has been waited for. Only its epoch is renewed.
        if (high & 2 && age <= epoch - base) {
            swap64(writes + 8 * c, record, (record & (1ull << 32 + RECORD_EPOCH_SHIFT) - 1) | (u64)(epoch & RECORD_EPOCH_MASK) << 32 + RECORD_EPOCH_SHIFT);
            continue;
        }
        // A record of an earlier CTA, or a marker of an uninitialised read: not initialised. The first period of a CTA ends before a
        // stale record could alias, so later scrubs cannot confuse the two.
        bool stale = age > epoch - base || record & 1u << 14;
        swap64(writes + 8 * c, record, stale ? 0 : (record | 1ull << 32) & ~(2ull << 32));
    }
    store32(FIELD(slot, Slot, has_old), 1);
}

// Must be called at every change of a thread's epoch.
DEVICE void epoch_moved(u64 slot, u32 me, u32 before, u32 after) {
    if ((before ^ after) >= READ_PERIOD) scrub_reads(slot, me, after);
    if ((before ^ after) >= WRITE_PERIOD) scrub_writes(slot, me, after);
}
