// mbarriers: life cycle, phases, counts, and the edges that they carry (R-M1 to R-M14).
//
// Each mbarrier of the CTA has a number, a shadow of its state in one word, and two clocks, one per parity of the phase. An arrival
// joins its thread's clock to the clock of the phase that it arrives at. A wait takes the clock of the phase that it has observed.
// The shadow is updated before the real instruction, and bytes are credited when a copy is issued. So the shadow runs ahead of the
// hardware, in a legal program by one phase at most.
// Phases are numbered through all the CTAs that a slot serves. The first phase of an mbarrier is even.
#pragma once

#include "access.cuh"

#if CONSAN_ENGINE
#define NO_BARRIER 0xffffffffu
#define TX_LIMIT (1 << 20)
enum Life : u32 { LIFE_NONE = 0, LIFE_LIVE = 1, LIFE_OVER = 2 };
#define RELAXED_CTA (1u << 31)  // with the number of a barrier in Thread.relaxed_wait: the wait was of .cta scope

DEVICE u64 make_state(u32 phase, u32 pending, int tx) { return (u64)phase << 32 + STATE_PHASE_SHIFT | (u64)(pending & STATE_PENDING_MASK) << STATE_PENDING_SHIFT | ((u32)tx & STATE_TX_MASK); }

struct Change { u64 before, after; };

// Applies arrivals and bytes in one step. A complete phase is followed by the next one (ISA "Phase Completion of the mbarrier object").
DEVICE Change change_barrier(u64 at, u32 arrivals, int bytes) {
    u64 before = load64(at);
    for (;;) {
        u32 phase = state_phase(before), pending = state_pending(before), expected = load32(FIELD(at, MBarrier, expected));
        int tx = state_tx(before) + bytes;
        u32 left = pending - min(arrivals, pending), over = arrivals - min(arrivals, pending);
        if (left == 0 && tx == 0) {
            // Arrivals beyond the pending count go to the following phases, and may complete each of them.
            u32 each = expected ? expected : 1;
            phase += 1 + over / each;
            left = expected - over % each;
        }
        u64 after = make_state(phase, left, tx), seen = swap64(at, before, after);
        if (seen == before) return {before, after};
        before = seen;
    }
}

#if CONSAN_CLUSTER
// The rank of the CTA that owns a barrier.
DEVICE u32 barrier_rank(u64 slot, u64 engine, u32 index) { return (load32(FIELD(engine, Engine, keys) + 4 * index) - 1) / cta_bytes(slot); }
#endif

// What a finding says of an mbarrier, at one of its phases.
DEVICE BarrierState barrier_state(u64 engine, u32 index, u32 phase) {
    u64 at = mbarrier_at(engine, index);
    BarrierState b;
    b.place = load32(FIELD(engine, Engine, keys) + 4 * index); b.state = load64(at);
    b.expected = load32(FIELD(at, MBarrier, expected)); b.phase = phase - load32(FIELD(at, MBarrier, first_phase)); b.pad = 0;
    return b;
}

COLD void report_barrier(Caller c, u64 engine, u32 index, u32 reason, u32 other_site, u32 other) {
    Finding f = make_finding(c, KIND_BARRIER_MISUSE, reason, other_site);
    f.bytes = 8; f.misuse.other_thread = other;
    if (index < MBARRIERS) f.misuse.barrier = barrier_state(engine, index, state_phase(load64(mbarrier_at(engine, index))));
    f.misuse.barrier.place = c.offset + 1;
    report(c.slot, f);
}

DEVICE u32 find_barrier(u64 engine, u32 offset, u32 except = NO_BARRIER) {
    u32 count = min(load32(FIELD(engine, Engine, barrier_count)), MBARRIERS);
    u64 keys = FIELD(engine, Engine, keys);
    for (u32 i = 0; i < count; i += 4) {
        u32 k[4];
        load_entries<4>(keys + 4 * i, k);
        for (u32 j = 0; j < 4; ++j)
            if (k[j] == offset + 1 && i + j != except) return i + j;
    }
    return NO_BARRIER;
}

DEVICE Caller barrier_caller(u64 slot, u64 state, u32 me, u32 address, u32 site) {
    Caller c = {slot, state, me, site, ACCESS_BARRIER, address, 8};
    return c;
}

COLD void barrier_bytes_used(Caller c, u64 record) {
    if (c.flags & ACCESS_BARRIER) return;
    u64 engine = engine_of(c.slot);
    u32 index = (u32)record & LOW_PAYLOAD;
    if (index >= MBARRIERS || load32(FIELD(mbarrier_at(engine, index), MBarrier, life)) != LIFE_LIVE) return;
    report_barrier(c, engine, index, REASON_BYTES_USED, record_site(record), record_thread(record));
}

COLD void initialised_twice(Caller c, u64 engine, u32 index) {
    u64 at = mbarrier_at(engine, index);
    report_barrier(c, engine, index, REASON_INITIALISED_TWICE, load32(FIELD(at, MBarrier, site)), load32(FIELD(at, MBarrier, thread)));
}

// Another warp whose last successful wait on this barrier is unordered with the caller; NO_BARRIER if there is none.
DEVICE u32 unordered_waiter(const Caller &c, u64 engine, u32 index) {
    u32 warps = load32(FIELD(c.slot, Slot, warp_count)), base = load32(FIELD(c.slot, Slot, base));
    for (u32 w = 0; w < warps; ++w) {
        u32 epoch = load32(observed_at(engine, w, index));
        if (w != c.me >> 5 && epoch && epoch >= base && !happens_before(c, w << 5, epoch)) return w << 5;
    }
    return NO_BARRIER;
}

// Lanes that name the same barrier in the same way act as one: the first does the work for all.
struct Group { u32 mask, leader; };

DEVICE Group barrier_group(u32 address, u32 way) {
    u32 mask = lanes_alike(way), leader = __ffs(mask) - 1;
    u32 first = __shfl_sync(mask, address, leader);
    if (__ballot_sync(mask, first == address) == mask) return {mask, leader};
    mask = __match_any_sync(mask, address);
    return {mask, (u32)__ffs(mask) - 1};
}

// Reports what is wrong with an arrival, from the state before and after it (R-M3, R-M5).
DEVICE void check_arrival(const Caller &c, u64 engine, u32 index, const Change &change, u32 arrivals, u32 flags) {
    u64 at = mbarrier_at(engine, index);
    u32 last = load32(FIELD(at, MBarrier, last_site)), thread = load32(FIELD(at, MBarrier, thread)), waited = load32(FIELD(at, MBarrier, waited));
    u32 before = state_phase(change.before), after = state_phase(change.after);
    if (arrivals > state_pending(change.before)) report_barrier(c, engine, index, REASON_TOO_MANY_ARRIVALS, load32(FIELD(at, MBarrier, site)), thread);
    // R-M5: two phases complete, and no thread has waited for the first one.
    else if (after != before && before > load32(FIELD(at, MBarrier, first_phase)) && waited < before) report_barrier(c, engine, index, REASON_PHASE_LAPPED, last, thread);
    if (flags & ARRIVE_NO_COMPLETE && after != before) report_barrier(c, engine, index, REASON_NO_COMPLETE, load32(FIELD(at, MBarrier, site)), thread);
    int tx = state_tx(change.after);
    if (tx >= TX_LIMIT || tx <= -TX_LIMIT) report_barrier(c, engine, index, REASON_TX_RANGE, last, thread);
    store32(FIELD(at, MBarrier, last_site), c.site);
}

DEVICE void note_announced(const Caller &c, u64 at) { store32(FIELD(at, MBarrier, announced), c.me << 16 | c.site); }

// expect-tx (positive) and complete-tx (negative) without an arrival.
DEVICE void change_bytes(const Caller &c, u32 index, int bytes) {
    u64 engine = engine_of(c.slot);
    check_arrival(c, engine, index, change_barrier(mbarrier_at(engine, index), 0, bytes), 0, 0);
}

// ---- waits ----------------------------------------------------------------------------------------------------------------

// The phase that a successful wait has observed. The hardware is at the shadow's phase or one behind. Among two phases with the requested
// parity, the wait can have observed the later one only if the shadow has advanced since.
DEVICE u32 observed_phase(u32 before, u32 after, u32 parity) {
    if (((before - 1) & 1) == parity) return before - 1;
    return after > before ? before : before - 2;
}

// After a wait, the lane continues from the latest epoch of its warp. The arrival of another lane may have released the epoch that this
// lane was in, and the accesses after the wait do not belong to that release.
DEVICE u64 catch_up(u64 slot, u64 state, u32 me) {
    u32 epoch = load32(FIELD(slot, Slot, epochs) + 4 * (me >> 5)), own = low_word(state);
    if (epoch <= own) return state;
    epoch_moved(slot, me, own, epoch);
    return pack(epoch, high_word(state));
}

// The barrier was invalidated during a wait: the wait succeeded before inval, its after-hook ran later.
COLD void invalidated_meanwhile(u64 slot, u64 state, u32 me, u32 index) {
    u64 engine = engine_of(slot), at = mbarrier_at(engine, index);
    u32 thread = load32(FIELD(at, MBarrier, thread)), epoch = load32(FIELD(at, MBarrier, epoch));
    u32 offset = load32(FIELD(engine, Engine, keys) + 4 * index) - 1;
    Caller c = barrier_caller(slot, pack(epoch, high_word(state)), thread, offset, load32(FIELD(at, MBarrier, last_site)));
    report_barrier(c, engine, index, REASON_WAITERS_PENDING, 0, me);
}
#endif
