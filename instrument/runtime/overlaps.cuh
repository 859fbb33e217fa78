// Accesses against overlapping asynchronous operations in flight, operations against each other, and operations against the cells
// (R-CP3, R-B1, R-B2, R-G1, R-G3).
#pragma once

#include "block_order.cuh"
#include "bulk.cuh"
#include "copies.cuh"
#include "listing.cuh"
#include "matrix.cuh"

#if CONSAN_ENGINE
DEVICE bool covers(const Operation &o, u32 low, u32 high) {
    if (o.low >= high || low >= o.high) return false;
    if (kind_of(o) == OPERATION_WGMMA) return matrix_covers(o, max(low, o.low), min(high, o.high));
    if (o.shape2 & SHAPE_ROWS) return rows_cover(o, low, high);
    return !(o.shape2 & SHAPE_BOX) || box_covers(o, low, high);
}

// Whether two operations whose ranges overlap have bytes in common.
DEVICE bool meet(const Operation &a, const Operation &b) {
    u32 low = max(a.low, b.low), high = min(a.high, b.high);
    if (!is_shaped(a)) return covers(b, low, high);
    if (!is_shaped(b)) return covers(a, low, high);
    for (u32 at = low & ~15u; at < high; at += 16)
        if (covers(a, max(at, low), min(at + 16, high)) && covers(b, max(at, low), min(at + 16, high))) return true;
    return false;
}

// Returns whether an operation writes bytes of the access.
COLD bool meet_operations(Caller c, bool report_them) {
    u64 engine = engine_of(c.slot), range = 0;
    u32 base = load32(FIELD(engine, Engine, op_base)), number = load32(coarse_of(c.slot) + c.offset / BLOCK_BYTES * 4);
    // If the list has overflowed, an operation that is missing from it may have written the bytes.
    bool writes = c.flags & (ACCESS_WRITE | ACCESS_RMW), written = load32(FIELD(engine, Engine, op_count)) > OPERATIONS, whole = false;
    u32 block = c.offset & ~(BLOCK_BYTES - 1);
    each_overlap(c.slot, c.offset, c.offset + c.bytes, [&](u32 i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= base) return;
        bool last = o.sequence == number, met = covers(o, c.offset, c.offset + c.bytes);
        if (met && o.kind & OPERATION_WRITES) {
            written = true;
            whole |= !is_shaped(o) && o.low <= block && o.high >= block + BLOCK_BYTES;
        }
        bool counts = met && report_them && (writes || o.kind & OPERATION_WRITES) && !strong_together(c, o);
        if (!counts && !last) return;
        bool done = observed(c, o);
        if (counts && !done) report_operation(c, o, 0);
        if (last && done && over_for_warp(c, o)) range = pack(o.low, o.high);
    });
    if (whole) store32(complete_at(c.slot, block), complete_mark(c.slot));
    if (range) note_over(c, number, range, base);
    return written;
}

DEVICE void look_for_operations(const Caller &c) {
    u32 number = load32(coarse_of(c.slot) + c.offset / BLOCK_BYTES * 4);
    if (number <= load32(FIELD(engine_of(c.slot), Engine, op_base)) || number <= load32(over_up_to(c)) || number == load32(over_at(c, number))) return;
    pass_operations(c);
    if (number > load32(over_up_to(c))) meet_operations(c, true);
}

DEVICE bool written_by_operation(const Caller &c, u32 cell) {
    if (!operation_may_cover(c)) return false;
    if (load32(complete_at(c.slot, c.offset)) == complete_mark(c.slot)) return true;
    Caller granule = c;
    granule.offset = cell * CONSAN_GRANULE; granule.bytes = CONSAN_GRANULE;
    return meet_operations(granule, false);
}

// Whether a bulk load has replaced the bytes of a fenced write, and the caller has observed the load: then the bytes need no further
// proxy fence. A write after the load would come from a warp that had observed the load's phase.
COLD bool replaced_by_load(const Caller &c, u32 writer, u32 epoch) {
    u64 engine = engine_of(c.slot);
    u32 base = load32(FIELD(engine, Engine, op_base)), warp = writer >> 5;
    bool found = false;
    each_overlap(c.slot, c.offset, c.offset + c.bytes, [&](u32 i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= base || kind_of(o) != OPERATION_BULK_LOAD || !covers(o, c.offset, c.offset + c.bytes) || !observed(c, o)) return;
        u64 issuer = clock_row(c.slot, o.thread >> 5) + 4 * (fenced_for(c.slot, o.low) + warp);
        if (max(load32(issuer), load32(issuer + 4ull * VECTOR * MAX_WARPS)) < epoch) return;
        u32 phases = load32(clock_row(c.slot, warp) + 4 * (PHASES + o.barrier));
        found |= phases <= o.phase || (phases == o.phase + 1 && load32(observed_at(engine, warp, o.barrier)) > epoch);
    });
    return found;
}

// As `look_for_atomics`, for an operation: atomics that a later one has replaced in the write record, the last one of each warp.
// If the latest atomic lacks the proxy fence itself, that is reported.
COLD bool atomic_at_fault(const Caller &c, const Operation &o, u32 cell, u32 hazard) {
    u64 record = load64(load64(FIELD(c.slot, Slot, writes)) + 8ull * cell);
    bool latest_fenced = fenced(c, o, record_thread(record) >> 5, write_epoch(c, record));
    u64 reads = load64(FIELD(c.slot, Slot, reads)) + 4ull * cell;
    u32 stride = load32(FIELD(c.slot, Slot, row)), base = load32(FIELD(c.slot, Slot, base));
    bool found = false;
    EACH_WARP_THAT_MAY_ACCESS(c.slot, cell * CONSAN_GRANULE, w) {
        u32 entry = load32(reads + (u64)(w + 1) * stride), other = w << 5 | entry_lane(entry), site = entry_site(entry);
        if (!of_atomic(entry)) continue;
        u32 epoch = widen(entry_epoch(entry), epoch_of_warp(c.slot, w, low_word(c.state)), ENTRY_EPOCH_MASK);
        if (epoch - base >= 0x80000000u) continue;
        bool fence = fenced(c, o, w, epoch);
        if (!happens_before(c, other, epoch) && (w != c.me >> 5 || fence)) report_access(c, o, hazard, site, other, epoch);
        else if (!fence && latest_fenced && !replaced_by_load(c, other, epoch)) report_proxy(c, hazard, site, other, kind_of(o), REASON_NO_PROXY_FENCE);
        else continue;
        // A race within the caller's warp is only a warning, so go on: another warp may be at fault too.
        found = true;
        if (w != c.me >> 5) break;
    }
    return found;
}

// Checks one written cell against an operation: the write must happen before it and must have passed a proxy fence (R-PX). Returns
// whether it reported.
DEVICE bool check_written_cell(Caller c, const Operation &o, u32 cell, u64 record) {
    u32 epoch = write_epoch(c, record), other = record_thread(record), hazard = o.kind & OPERATION_WRITES ? HAZARD_WAW : HAZARD_RAW;
    if (!alive(c, record, epoch) || (u32)(record >> 32) & HIGH_OLD) return false;
    c.offset = cell * CONSAN_GRANULE; c.bytes = CONSAN_GRANULE;
    if ((u32)(record >> 32) & HIGH_ASYNC) {
        if ((u32)record & LOW_MARKER) { barrier_bytes_used(c, record); return false; }
        Copy s = copy_of(c, record);
        if (!s.done) { report_copy(c, hazard, record_site(record), other, s, 0); return true; }
        if (s.tag) return false;  // observed by its phase: the shadow does not keep whether a fence followed
        // A copy that was waited for counts as a write by its issuer.
        epoch = s.waited ? covering_wait(thread_record(c.slot, other), s.group) : epoch;
        // Shipped libraries feed wgmma with data of cp.async without a proxy fence. The ISA asks for one, so only --policy isa reports it.
        if (kind_of(o) == OPERATION_WGMMA) {
#if CONSAN_ISA
            if (!fenced(c, o, other >> 5, epoch)) { report_proxy(c, hazard, record_site(record), other, kind_of(o), REASON_COPY_NO_FENCE); return true; }
#endif
            return false;
        }
    } else if (adds(o) && (u32)record & LOW_ATOMIC && strong_before(c, o, record)) {
        return false;
    } else if ((u32)record & LOW_MARKER) {
        if (happens_before(c, other, epoch)) return false;
        Caller reader = c;
        reader.site = record_site(record); reader.me = other;
        report(c.slot, make_finding(reader, KIND_READ_EXPLAINED, REASON_NONE));
        return false;
    } else if ((u32)record & LOW_ATOMIC && atomic_at_fault(c, o, cell, hazard)) {
        return true;
    } else if (!happens_before(c, other, epoch) && (other >> 5 != c.me >> 5 || passed(c, o, other >> 5, epoch))) {
        // Within one warp the missing fence is reported first: warps run nearly in step, but the fence is never implied.
        report_access(c, o, hazard, record_site(record), other, epoch);
        return true;
    }
    if (!passed(c, o, other >> 5, epoch)) {
        if (replaced_by_load(c, other, epoch)) return false;
        report_proxy(c, hazard, record_site(record), other, kind_of(o), REASON_NO_PROXY_FENCE);
        return true;
    }
#if CONSAN_ISA
    if (kind_of(o) != OPERATION_STORE_ASYNC && epoch > load32(FIELD(engine_of(c.slot), Engine, fenced) + 4 * (other >> 5))) { report_proxy(c, hazard, record_site(record), other, kind_of(o), REASON_WRITER_NO_FENCE); return true; }
#endif
    return false;
}

COLD void check_written_block(Caller c, const Operation &o, u32 low, u32 high) {
    u64 writes = load64(FIELD(c.slot, Slot, writes)), last = 0, reported = 0;
    for (u32 chunk = low & ~15u; chunk < high; chunk += 16) {
        if (!covers(o, max(chunk, low), min(chunk + 16, high))) continue;
        for (u32 at = max(chunk, low); at < min(chunk + 16, high); at += CONSAN_GRANULE) {
            u64 record = load64(writes + 8ull * (at / CONSAN_GRANULE));
            if (!record || record == last || reported_already(reported, record)) continue;
            last = record;
            if (check_written_cell(c, o, at / CONSAN_GRANULE, record)) reported = record;
        }
    }
}

COLD void check_read_block(Caller c, const Operation &o, u32 low, u32 high, u32 warp) {
    u64 row = load64(FIELD(c.slot, Slot, reads)) + (u64)load32(FIELD(c.slot, Slot, row)) * (warp + 1);
    u32 reported = 0;  // 1 + the last site reported
    for (u32 at = low; at < high; at += CONSAN_GRANULE) {
        u32 entry = load32(row + 4ull * (at / CONSAN_GRANULE)), site = entry_site(entry);
        if (!entry || site + 1 == reported || !covers(o, at, at + CONSAN_GRANULE)) continue;
        u32 other = warp << 5 | entry_lane(entry), epoch = widen(entry_epoch(entry), epoch_of_warp(c.slot, warp, low_word(c.state)), ENTRY_EPOCH_MASK);
        if (epoch - load32(FIELD(c.slot, Slot, base)) >= 0x80000000u) continue;
        c.offset = at; c.bytes = CONSAN_GRANULE;
        if (entry & ENTRY_SEVERAL && other == c.me) other = (warp << 5) | ((c.me & 31) ^ 1);
        if (adds(o) && entry & ENTRY_ATOMIC) continue;
        bool race = !happens_before(c, other, epoch, entry & ENTRY_SEVERAL);
        if (race) report_access(c, o, HAZARD_WAR, site, other, epoch);
#if CONSAN_ISA
        else if (!passed(c, o, warp, epoch)) { report_proxy(c, HAZARD_WAR, site, other, kind_of(o), REASON_READ_NO_FENCE); race = true; }
#endif
        if (race) reported = site + 1;
    }
}

// Checks the latest accesses of all warps to one block of the operation's range.
COLD void check_block(const Caller &c, const Operation &o, u32 block, bool written, bool read) {
    u64 coarse = coarse_of(c.slot);
    u32 stride = coarse_stride(c.slot), base = load32(FIELD(c.slot, Slot, base));
    u32 low = max(o.low, block * BLOCK_BYTES), high = min(o.high, (block + 1) * BLOCK_BYTES);
    if (low >= high) return;
    bool suspect = false;
    EACH_WARP_THAT_MAY_ACCESS(c.slot, low, w) {
        u64 rows = warp_rows<BLOCK_BYTES>(coarse, stride, w) + 4ull * block;
        u32 entry = written ? load32(rows + (u64)WARP_WRITES * stride) : 0;
        if (entry && block_epoch(entry) >= base) {
            bool async = entry & BLOCK_ASYNC;
            bool fine = happens_before(c, w << 5 | block_lane(entry), block_epoch(entry), block_lane(entry) != (c.me & 31));
            suspect |= async || !fine || !fenced(c, o, w, block_epoch(entry));
#if CONSAN_ISA
            suspect |= block_epoch(entry) > load32(FIELD(engine_of(c.slot), Engine, fenced) + 4 * w);
#endif
        }
        u32 reader = read ? load32(rows) : 0;
        if (!reader || block_epoch(reader) < base) continue;
        bool fine = w != c.me >> 5 && happens_before(c, w << 5, block_epoch(reader));
#if CONSAN_ISA
        fine &= fenced(c, o, w, block_epoch(reader));
#endif
        if (!fine) check_read_block(c, o, low, high, w);
    }
    if (suspect) check_written_block(c, o, low, high);
}

// Checks groups of four blocks, from group `first` on in steps of `step`: a warp shares the blocks of an operand among its lanes.
// Returns whether the coarse entries settled everything.
DEVICE bool check_blocks(const Caller &c, const Operation &o, u32 first, u32 step) {
    ClockView e = view_of(c);
    bool written = false, read = false;
    touched(e, o, first, step, written, read);
    if (step > 1) { written = __any_sync(0xffffffffu, written); read = __any_sync(0xffffffffu, read); }
    if (!(written || read)) return true;
    if (rows_in_order(c, e, o, first, step, written, read)) return true;
    u32 begin = (o.low / BLOCK_BYTES & ~3u) + 4 * first;
    bool clean = true;
#pragma unroll 1
    for (u32 four = begin; four * BLOCK_BYTES < o.high; four += 4 * step)
#pragma unroll 1
        for (u32 i = 0; i < 4; ++i) {
            if (block_in_order(c, e, o, four + i, written, read)) continue;
            clean = false;
            check_block(c, o, four + i, written, read);
        }
    return clean;
}

// Puts an operation of one thread on the list. Returns its place; OPERATIONS if the list is full.
DEVICE u32 list_operation(const Caller &c, Operation &o) {
    u64 engine = engine_of(c.slot);
    u32 base = load32(FIELD(engine, Engine, op_base)), rows = find_rows(c, o), place = rows;
    o.sequence = add32(FIELD(engine, Engine, op_next), 1) + 1;
    if (rows == OPERATIONS) place = same_place(c, engine, o, base);
    if (rows != OPERATIONS || place == OPERATIONS) each_overlap(c.slot, o.low, o.high, [&](u32 i) {
        if (i == rows) return;
        Operation old = load_operation(operation_at(engine, i));
        if (old.sequence <= base || kind_of(o) != kind_of(old) || !meet(o, old)) return;
        if (kind_of(o) == OPERATION_BULK_LOAD) o.kind |= REFILL;
        if (supersedes(c, o, old)) take_over(engine, i, o, old, base, place);
    });
    if (rows != OPERATIONS) {
        u64 word = load64(operation_at(engine, rows) + 8);
        if (o.kind & REFILL) store64(operation_at(engine, rows) + 8, pack(low_word(word), high_word(word) | REFILL));
        return rows;
    }
    if (place == OPERATIONS && load32(FIELD(engine, Engine, op_count)) >= OPERATIONS) place = free_place(engine, o.sequence);
    if (place == OPERATIONS) place = add32(FIELD(engine, Engine, op_count), 1);
    if (place >= OPERATIONS) { count_evicted(c.slot); return OPERATIONS; }
    store_operation(operation_at(engine, place), operation_range_at(engine, place), o);
    store32(THREAD_FIELD(thread_record(c.slot, c.me), last_copy), place + 1);
    store32(place_hint(c.slot, o), place + 1);
    return place;
}

// Reports the conflicts with other operations on the list.
COLD void meet_other_operations(const Caller &c, const Operation &o, u32 place) {
    u64 engine = engine_of(c.slot);
    u32 base = load32(FIELD(engine, Engine, op_base));
    each_overlap(c.slot, o.low, o.high, [&](u32 i) {
        if (i == place) return;
        Operation other = load_operation(operation_at(engine, i));
        if (other.sequence <= base || !((o.kind | other.kind) & OPERATION_WRITES)) return;
        if (o.kind & other.kind & ADDS) return;
        if (!observed(c, other) && meet(o, other)) meet_operation(c, o, other);
    });
}

// The first cell in [low, high) that the operation reads and nothing has written, or `high`. `complete`: every cell is written.
COLD u32 first_unwritten(const Caller &c, const Operation &o, u32 low, u32 high, bool &complete) {
    u64 writes = load64(FIELD(c.slot, Slot, writes));
    Caller cell = c;
    cell.bytes = CONSAN_GRANULE; cell.flags = 0;
    complete = true;
    u32 good = 0;  // warp, epoch and flags of a living write; most neighbours have the same
#pragma unroll 1
    for (u32 round = low; round < high; round += CELLS_AT_ONCE * CONSAN_GRANULE) {
        u64 records[CELLS_AT_ONCE];
        load_records<CELLS_AT_ONCE>(writes + 8ull * (round / CONSAN_GRANULE), records);
        u32 head = (u32)(records[0] >> 32) & ~RECORD_LANE;
        if (head != good && alive(c, records[0], write_epoch(c, records[0]))) good = head;
        u32 unlike = !good || high - round < CELLS_AT_ONCE * CONSAN_GRANULE;
        for (u32 j = 0; j < CELLS_AT_ONCE; ++j) unlike |= ((u32)(records[j] >> 32) & ~RECORD_LANE) ^ good | ((u32)records[j] & LOW_MARKER);
        if (!unlike) continue;
#pragma unroll 1
        for (u32 j = 0; j < CELLS_AT_ONCE; ++j) {
            u64 record = records[j];
            u32 at = round + j * CONSAN_GRANULE;
            if (at >= high) break;
            if (alive(c, record, write_epoch(c, record)) && !((u32)record & LOW_MARKER && !((u32)(record >> 32) & HIGH_ASYNC))) continue;
            cell.offset = at;
            if (meet_operations(cell, false)) continue;
            complete = false;
            if (covers(o, at, at + CONSAN_GRANULE)) return at;
        }
    }
    return high;
}

// Whole blocks are checked, also where the range begins or ends inside one: a block found complete is not checked again.
COLD void check_initialised(const Caller &c, const Operation &o, u32 first, u32 step) {
    u32 mark = complete_mark(c.slot), known_low = 0, known_high = 0;
    bool ask = true;  // search the list once, then again only beyond the range it gave
    for (u32 block = o.low / BLOCK_BYTES + first; block * BLOCK_BYTES < o.high; block += step) {
        if (step == 1 && block % 4 == 0 && (block + 4) * BLOCK_BYTES <= o.high && blocks_written<4>(c.slot, block, mark)) { block += 3; continue; }
        if (blocks_written<1>(c.slot, block, mark)) continue;
        u32 low = block * BLOCK_BYTES, high = low + BLOCK_BYTES, at = high;
        bool complete = true;
        if (!(low >= known_low && high <= known_high)) {
            bool known = ask && written_at_once(c, low, high, known_low, known_high);
            ask = known;
            if (!known) at = first_unwritten(c, o, low, high, complete);
        }
        if (at != high) {
            Caller chunk = c;
            chunk.offset = at; chunk.bytes = min(min(16 - at % 16, high - at), o.high - at);
            read_unwritten(chunk, o);
            return;
        }
        if (complete) store32(complete_at(c.slot, low), mark);
    }
}
#endif
