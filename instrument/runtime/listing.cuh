// The list of operations: finds a place for a new operation, removes operations that it supersedes, and reports conflicts on the way.
#pragma once

#include "operation.cuh"

#if CONSAN_ENGINE
// A plain store suffices: sequence numbers only grow, so of two operations in a block the later one leaves its number.
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
    Finding f = make_conflict(both, KIND_DATA_RACE, HAZARD_WAR, other.site, other.thread, 0);
    f.conflict.own_operation = kind_of(o); f.flags = FLAG_OTHER_ASYNC;
    describe_conflict(both, f, other);
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
    Finding f = make_finding(c, KIND_UNINITIALIZED_READ, REASON_NONE);
    f.read.own_operation = kind_of(o);
    report(c.slot, f);
}

#define CELLS_AT_ONCE 16
#define RECORD_LANE (31u << RECORD_THREAD_SHIFT)  // lane bits of a record's upper half; the other bits tell whose epoch it is

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
