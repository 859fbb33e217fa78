// Hooks of loads, stores and atomics: cells first (access.cuh), then operations in flight (overlaps.cuh).
#pragma once

#include "overlaps.cuh"
#include "cluster.cuh"

DEVICE void check_asynchronous(const Caller &c, u64 at, u64 record, u32 hazard) {
#if CONSAN_ENGINE
    if ((u32)record & LOW_MARKER) return barrier_bytes_used(c, record);
#endif
    check_copy(c, at, record, hazard);
}

COLD void read_slow(Caller c, u32 cell) {
    u64 at = load64(FIELD(c.slot, Slot, writes)) + 8ull * cell, record = load64(at);
    u32 epoch = write_epoch(c, record);
    if (!alive(c, record, epoch)) {
#if CONSAN_ENGINE
        if (written_by_operation(c, cell)) return;
#endif
        return read_uninitialised(c, at, record);
    }
    if ((u32)(record >> 32) & HIGH_ASYNC) return check_asynchronous(c, at, record, HAZARD_RAW);
    if ((u32)record & LOW_MARKER) {
#if CONSAN_ENGINE
        written_by_operation(c, cell);
#endif
        return;
    }
    if ((u32)(record >> 32) & HIGH_OLD) return;
    bool atomic = (u32)record & LOW_ATOMIC;
    if (atomic && c.flags & ACCESS_STRONG && ((u32)record & LOW_PAYLOAD & ~CTA_SCOPE) == c.bytes && mutual_scope(c, record_warp(record), (u32)record)) return;
    bool before = happens_before(c, record_thread(record), epoch);
    if (!before) report_race(c, HAZARD_RAW, record_site(record), record_thread(record), epoch, atomic ? FLAG_OTHER_ATOMIC : 0);
    // A race within the caller's warp is only a warning: an atomic that the record replaced may be the worse partner.
    if (atomic && (before || record_thread(record) >> 5 == c.me >> 5)) look_for_atomics(c, cell);
}

COLD void write_slow(Caller c, u64 record, u64 mine) {
    u32 epoch = write_epoch(c, record), low = (u32)record, other = record_thread(record);
    if (!alive(c, record, epoch)) return;
    if ((u32)(record >> 32) & HIGH_ASYNC) return check_asynchronous(c, 0, record, HAZARD_WAW);
    if (low & LOW_MARKER) {
        // check_readers reports the race with that read. This event only tells the host that the race explains the uninitialised read.
        if (happens_before(c, other, epoch) || (low & LOW_ATOMIC && c.flags & (ACCESS_STRONG | ACCESS_RMW))) return;
        Caller reader = c;
        reader.site = record_site(record); reader.me = other;
        return report(c.slot, make_finding(reader, KIND_READ_EXPLAINED, REASON_NONE));
    }
    if ((u32)(record >> 32) & HIGH_OLD) return;
    bool atomic = low & LOW_ATOMIC;
    // Morally strong only with complete overlap (8.7): the widths must agree.
    if (atomic && c.flags & (ACCESS_RMW | ACCESS_STRONG) && !((low ^ (u32)mine) & LOW_PAYLOAD & ~CTA_SCOPE) && mutual_scope(c, other >> 5, low | (u32)mine)) return;
    if (happens_before(c, other, epoch)) return;
    bool same = !atomic && !(c.flags & (ACCESS_RMW | ACCESS_COPY)) && !((low ^ (u32)mine) & LOW_PAYLOAD);
    report_race(c, HAZARD_WAW, record_site(record), other, epoch, (atomic ? FLAG_OTHER_ATOMIC : 0) | (same ? FLAG_SAME_VALUE : 0));
}

// An atomic also reads, so bytes that this CTA has not written are an uninitialised read (R-UNINIT).
DEVICE void check_rmw_source(const Caller &c, u64 old, u32 cell) {
    u32 epoch = write_epoch(c, old);
    if (alive(c, old, epoch)) return;
#if CONSAN_ENGINE
    if (written_by_operation(c, cell)) return;
#endif
    report(c.slot, make_finding(c, KIND_UNINITIALIZED_READ, REASON_NONE));
}

DEVICE void atomic_cell(const Caller &c, u64 at, u32 cell, u64 mine, u32 base) {
    u64 before = load64(at);
    if (own_plain_write(c, before)) return;
    if (before && !settled(c, before, base)) {
        write_slow(c, before, mine);
        if (concurrent_plain_write(c, before)) return;
    }
    u64 old = exchange64(at, mine);
    if (c.flags & ACCESS_RMW) check_rmw_source(c, old, cell);
    if (old && !settled(c, old, base)) write_slow(c, old, mine);
}

// Plain stores and copies swap in two records before they look at the first old one. More would not fit the registers of a kernel
// of 1024 threads; modules with asynchronous engines call their hooks and have room for four. The granules of one copy hold equal
// records, so one look serves them all.
// `retired`: groups that the copying thread has waited for.
template <u32 COUNT> DEVICE void plain_cells(const Caller &c, u64 at, u32 high, const u32 *lows, u32 base, u32 retired) {
    constexpr u32 MOST = CONSAN_ENGINE ? 4 : 2, STEP = COUNT < MOST ? COUNT : MOST;
    u64 last = 0;
    u32 memo = EMPTY_MEMO;
    for (u32 first = 0; first < COUNT; first += STEP) {
        u64 old[STEP];
        for (u32 i = 0; i < STEP; ++i) old[i] = exchange64(at + 8 * (first + i), pack(lows[first + i], high));
        for (u32 i = 0; i < STEP; ++i) {
            bool again = old[i] == last && (u32)(old[i] >> 32) & HIGH_ASYNC;
            last = old[i];
            if (last && !again && !settled_by_memo(c, last, base, memo) && !own_copy_over(c, last, base, retired)) write_slow(c, last, lows[first + i]);
        }
    }
}

#if CONSAN_CLUSTER
DEVICE bool enter_access(Caller &c, const Head &head, u32 address) {
    u32 rank = address_rank(address), inside = address_inside(address) - head.low;
    c.offset = rank * cta_bytes(c.slot) + inside;
    if (rank >= cta_count(c.slot) || inside > head.bytes || inside + c.bytes > head.bytes) { out_of_bounds(c); return false; }
    if (rank != rank_of(c.slot, c.me)) visit(c, rank);
    return true;
}
#else
DEVICE bool enter_access(Caller &c, const Head &head, u32 address) {
    c.offset = address - head.low;
    if (c.offset + c.bytes <= head.bytes && c.offset <= head.bytes) return true;
    out_of_bounds(c);
    return false;
}
#endif
template <u32 BYTES> DEVICE void read_hook(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 flags, const Head &head) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_READ | flags, 0, BYTES};
    if (!enter_access(c, head, address)) return;
    constexpr u32 COUNT = BYTES / CONSAN_GRANULE ? BYTES / CONSAN_GRANULE : 1;
    u32 cell = c.offset / CONSAN_GRANULE, base = head.base;
    u64 writes = head.writes + 8ull * cell;
    u64 summary = head.reads + 4ull * cell, row = summary + head.own;
    u32 entry = make_entry(low_word(state), me, site, flags & ACCESS_STRONG ? ENTRY_ATOMIC | ENTRY_LOAD : 0);
    u32 entries[COUNT];
    load_entries<COUNT>(row, entries);
    for (u32 i = 0; i < COUNT; ++i) {
        bool other_lane = entries[i] && !((entries[i] ^ entry) >> ENTRY_EPOCH_SHIFT) && (entries[i] & 63) != (me & 31);
        if (flags & ACCESS_STRONG && outranks(c, entries[i])) continue;
        entries[i] = entry | (other_lane ? ENTRY_SEVERAL : 0);
    }
    store_entries<COUNT>(row, entries);
    u32 marks[COUNT];
    for (u32 i = 0; i < COUNT; ++i) marks[i] = high_word(state);
#if CONSAN_CLUSTER
    if (address_rank(address) == rank_of(slot, me))
#endif
    store_entries<COUNT>(summary, marks);
#if CONSAN_ENGINE
    mark_block(c, false, base);
#endif
    record_fence();
    load_entries<COUNT>(row, entries);
    u64 records[COUNT];
    load_records<COUNT>(writes, records);
    u32 memo = EMPTY_MEMO;
    for (u32 i = 0; i < COUNT; ++i) {
        // Lanes of one instruction that read the same granule overwrite each other's entry. The lane whose entry was lost adds `several`.
        if (entry_lane(entries[i]) != (me & 31) && !(flags & ACCESS_STRONG && outranks(c, entries[i]))) store32(row + 4 * i, entry | ENTRY_SEVERAL);
        // A 16-byte copy leaves equal records, so one look serves them all.
        if (i && records[i] == records[i - 1]) continue;
        if (!settled_by_memo(c, records[i], base, memo)) read_slow(c, cell + i);
    }
#if CONSAN_ENGINE
    look_for_operations(c);
#endif
}

template <u32 BYTES> DEVICE void write_hook(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 flags, const u32 *values, u32 high, u32 low, const Head &head, u32 retired = 0) {
    if (!slot) return;
    Caller c = {slot, state, me, site, flags, 0, BYTES};
    if (!enter_access(c, head, address)) return;
    constexpr u32 COUNT = BYTES / CONSAN_GRANULE ? BYTES / CONSAN_GRANULE : 1;
    u32 cell = c.offset / CONSAN_GRANULE, base = head.base;
    u64 writes = head.writes + 8ull * cell;
    u64 mine = make_record(low_word(state), me, site, high, low);
    u32 lows[COUNT];
    // For later comparison: the value of a plain store, the width of an atomic or strong access.
    for (u32 i = 0; i < COUNT; ++i) lows[i] = (u32)mine | (values ? value_hash(granule_value(values, i)) : low & LOW_ATOMIC ? BYTES | (flags & ACCESS_CTA ? CTA_SCOPE : 0) : 0);
    if (flags & (ACCESS_RMW | ACCESS_STRONG))
        for (u32 i = 0; i < COUNT; ++i) atomic_cell(c, writes + 8 * i, cell + i, pack(lows[i], high_word(mine)), base);
    else
        plain_cells<COUNT>(c, writes, high_word(mine), lows, base, retired);
#if CONSAN_ENGINE
    mark_block(c, true, base);
#endif
    record_fence();
    check_readers<COUNT>(c, cell);
#if CONSAN_ENGINE
    look_for_operations(c);
#endif
}

#define READ_HOOK(N) HOOK void __consan_read##N(u64 slot, u64 state, u32 me, u32 address, u32 site) { TOGETHER if (slot) read_hook<N>(slot, state, me, address, site, 0, head_of(slot, me)); }

READ_HOOK(1) READ_HOOK(2) READ_HOOK(4) READ_HOOK(8) READ_HOOK(16)

HOOK void __consan_write1(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 a) { TOGETHER u32 v[1] = {a}; if (slot) write_hook<1>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head_of(slot, me)); }

HOOK void __consan_write2(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 a) { TOGETHER u32 v[1] = {a}; if (slot) write_hook<2>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head_of(slot, me)); }

HOOK void __consan_write4(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 a) { TOGETHER u32 v[1] = {a}; if (slot) write_hook<4>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head_of(slot, me)); }

HOOK void __consan_write8(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 a, u32 b) { TOGETHER u32 v[2] = {a, b}; if (slot) write_hook<8>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head_of(slot, me)); }

HOOK void __consan_write16(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 a, u32 b, u32 x, u32 y) { TOGETHER u32 v[4] = {a, b, x, y}; if (slot) write_hook<16>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head_of(slot, me)); }

// Strong loads and stores (volatile, relaxed, acquire, release) are morally strong among themselves, so they do not race (R-RACE).
#define STRONG_HOOKS(N) \
    HOOK void __consan_strong_read##N(u64 slot, u64 state, u32 me, u32 address, u32 site) { TOGETHER if (slot) read_hook<N>(slot, state, me, address, site & SITE_MASK, ACCESS_STRONG | scope_flag(site), head_of(slot, me)); } \
    HOOK void __consan_strong_write##N(u64 slot, u64 state, u32 me, u32 address, u32 site) { TOGETHER if (slot) write_hook<N>(slot, state, me, address, site & SITE_MASK, ACCESS_WRITE | ACCESS_STRONG | scope_flag(site), nullptr, 0, LOW_ATOMIC, head_of(slot, me)); }

STRONG_HOOKS(1) STRONG_HOOKS(2) STRONG_HOOKS(4) STRONG_HOOKS(8) STRONG_HOOKS(16)

template <u32 BYTES> DEVICE void atomic_hook(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    if (!slot) return;
    u32 flags = ACCESS_RMW | scope_flag(site);
    site &= SITE_MASK;
    Caller c = {slot, state, me, site, flags, 0, BYTES};
    Head head = head_of(slot, me);
    if (!enter_access(c, head, address)) return;
    constexpr u32 COUNT = BYTES / CONSAN_GRANULE ? BYTES / CONSAN_GRANULE : 1;
    u32 cell = c.offset / CONSAN_GRANULE;
    u64 summary = head.reads + 4ull * cell, row = summary + head.own;
    for (u32 i = 0; i < COUNT; ++i) {
        if (!outranks(c, load32(row + 4 * i))) store32(row + 4 * i, make_entry(low_word(state), me, site, ENTRY_ATOMIC));
#if CONSAN_CLUSTER
        if (address_rank(address) == rank_of(slot, me))
#endif
        store32(summary + 4 * i, high_word(state));
    }
    write_hook<BYTES>(slot, state, me, address, site, flags, nullptr, 0, LOW_ATOMIC, head);
}

#define ATOMIC_HOOK(N) HOOK void __consan_atomic##N(u64 slot, u64 state, u32 me, u32 address, u32 site) { TOGETHER atomic_hook<N>(slot, state, me, address, site); }

ATOMIC_HOOK(1) ATOMIC_HOOK(2) ATOMIC_HOOK(4) ATOMIC_HOOK(8) ATOMIC_HOOK(16)

#define FAST_READ(N) HOOK void __consan_fast_read##N(FAST_PARAMETERS) { TOGETHER FAST_HEAD; read_hook<N>(slot, state, me, address, site, 0, head); }

FAST_READ(1) FAST_READ(2) FAST_READ(4) FAST_READ(8) FAST_READ(16)

#define FAST_WRITE(N, COUNT, VALUES, ...) HOOK void __consan_fast_write##N(FAST_PARAMETERS, VALUES) { TOGETHER FAST_HEAD; u32 v[COUNT] = {__VA_ARGS__}; write_hook<N>(slot, state, me, address, site, ACCESS_WRITE, v, 0, 0, head); }

// Wide stores are called: in line they cost more assembly time than they save at run time.
FAST_WRITE(1, 1, u32 a, a) FAST_WRITE(2, 1, u32 a, a) FAST_WRITE(4, 1, u32 a, a)
