// cp.async copies: whether the caller has observed their completion, and what a report says of one in flight (R-CP1 to R-CP6).
#pragma once

#include "mbarrier.cuh"

struct Copy { u32 group, commits, retired, wait_epoch, tag; bool done, waited; };

// Epoch of the earliest wait in the history that covers a group; 0 if there is none. The history is an unordered ring. Its thread may
// append meanwhile; what it appends is later than the wait in question.
DEVICE u32 covering_wait(u64 thread, u32 group) {
    u32 epoch = 0;
    for (u32 i = 0; i < WAIT_HISTORY; ++i) {
        u64 wait = load64(THREAD_WORD(thread, waits, i));
        if (wait && high_word(wait) > group && (!epoch || low_word(wait) < epoch)) epoch = low_word(wait);
    }
    return epoch;
}

#if CONSAN_ENGINE
#define TAG_PHASE_BITS (MBARRIERS <= 64 ? 8u : 6u)  // bits of the phase
#define TAG_PHASE_MASK ((1u << TAG_PHASE_BITS) - 1)
DEVICE u32 tag_of(u32 index, u32 phase) { return LOW_ATOMIC | (index << TAG_PHASE_BITS | phase & TAG_PHASE_MASK); }
DEVICE u32 tag_barrier(u32 tag) { return tag >> TAG_PHASE_BITS & (MBARRIERS - 1); }
static_assert(MBARRIERS <= 256, "the payload of a tag");

// Copies before a cp.async.mbarrier.arrive complete with the phase that it arrives at. The latest such arrivals of each thread are
// kept. For an older one that nobody has looked at, it is unknown whether the caller has observed the copies; that is counted.
DEVICE void look_for_tag(const Caller &c, u64 thread, Copy &s) {
    u32 count = load32(THREAD_FIELD(thread, tags)), nearest = 0xffffffffu;
    for (u32 i = 0; i < min(count, COPY_TAGS); ++i) {
        u64 tag = load64(THREAD_WORD(thread, copy_tags, i));
        if (low_word(tag) <= s.group) continue;
        u32 index = high_word(tag) >> 24, phase = high_word(tag) & 0xffffff;
        bool seen = clock_entry(c.slot, c.me, PHASES + index) > phase;
        if (seen) s.done = true;
        if (seen || (low_word(tag) < nearest && !s.done)) s.tag = tag_of(index, phase);
        nearest = min(nearest, low_word(tag));
    }
    if (s.done || s.waited || count <= COPY_TAGS || nearest == s.group + 1 || nearest != s.commits + 1 - COPY_TAGS) return;
    s.done = true;
    count_evicted(c.slot);
}
#endif

// The issuer's own wait retires a group for the issuer; other threads also need an edge from that wait (R-CP1, R-CP2).
DEVICE Copy copy_state(const Caller &c, u32 issuer, u32 group) {
    Copy s;
    u64 thread = thread_record(c.slot, issuer);
    s.commits = load32(THREAD_FIELD(thread, commits));
    s.retired = load32(THREAD_FIELD(thread, retired));
    s.group = group; s.tag = 0;
    s.waited = s.group < s.retired;
    s.done = s.waited && issuer == c.me;
    s.wait_epoch = s.waited ? covering_wait(thread, s.group) : 0;
#if CONSAN_ENGINE
    if (!s.done) look_for_tag(c, thread, s);
#endif
    if (s.done || !s.waited) return s;
    s.done = s.wait_epoch && happens_before(c, issuer, s.wait_epoch);
    // The covering wait has left the history and no remaining one is observed. The answer is unknown, and is counted.
    if (!s.done && load32(THREAD_FIELD(thread, lost_waits)) > s.group) { s.done = true; s.wait_epoch = 0; count_evicted(c.slot); }
    return s;
}

// A record keeps the low bits of its group. `scrub_copies` keeps records younger than a period, so they do not alias.
DEVICE u32 group_of(u64 slot, u64 record) {
    return widen((u32)record & LOW_PAYLOAD, load32(THREAD_FIELD(thread_record(slot, record_thread(record)), commits)), LOW_PAYLOAD);
}

#if CONSAN_ENGINE
// The state of a copy that is known to complete with a phase.
DEVICE Copy tagged_copy(const Caller &c, u32 issuer, u32 tag) {
    Copy s;
    u64 thread = thread_record(c.slot, issuer), at = mbarrier_at(engine_of(c.slot), tag_barrier(tag));
    s.commits = load32(THREAD_FIELD(thread, commits)); s.retired = load32(THREAD_FIELD(thread, retired));
    s.group = s.commits - 1; s.wait_epoch = 0; s.tag = tag; s.waited = false;
    u32 phase = widen(tag & TAG_PHASE_MASK, state_phase(load64(at)), TAG_PHASE_MASK);
    s.done = (issuer == c.me && s.retired == s.commits) || clock_entry(c.slot, c.me, PHASES + tag_barrier(tag)) > phase;
    return s;
}
#endif
COLD void report_copy(Caller c, u32 hazard, u32 site, u32 issuer, const Copy &s, u32 reason) {
    Finding f = make_conflict(c, KIND_MISSING_WAIT, hazard, site, issuer, FLAG_OTHER_ASYNC);
    describe_groups(f.conflict.completion, s.group, s.commits, s.retired);
#if CONSAN_ENGINE
    if (s.tag) {
        u64 state = load64(mbarrier_at(engine_of(c.slot), tag_barrier(s.tag)));
        f.conflict.completion.barrier = barrier_state(engine_of(c.slot), tag_barrier(s.tag), widen(s.tag & TAG_PHASE_MASK, state_phase(state), TAG_PHASE_MASK));
    }
#endif
    f.reason = reason ? reason : s.waited ? REASON_WAITED_NO_BARRIER : s.group >= s.commits ? REASON_NOT_COMMITTED : REASON_NOT_WAITED;
    report(c.slot, f);
}

// The state of the copy that left a record.
DEVICE Copy copy_of(const Caller &c, u64 record) {
#if CONSAN_ENGINE
    if ((u32)record & LOW_ATOMIC) return tagged_copy(c, record_thread(record), (u32)record & (LOW_ATOMIC | LOW_PAYLOAD));
#endif
    return copy_state(c, record_thread(record), group_of(c.slot, record));
}

// Once the completion of a copy is observed, the record becomes a write by its issuer at the epoch of the issuer's wait. A thread that has
// observed that epoch has observed the copy, so later accesses take the fast path. A copy observed through an mbarrier names its phase.
DEVICE void check_copy(const Caller &c, u64 at, u64 record, u32 hazard) {
    Copy s = copy_of(c, record);
#if CONSAN_ENGINE
    if (s.done && s.tag && at && !((u32)record & LOW_ATOMIC)) swap64(at, record, pack(record_site(record) << RECORD_SITE_SHIFT | s.tag, (u32)(record >> 32)));
    else
#endif
    if (s.done && s.wait_epoch && at) swap64(at, record, make_record(s.wait_epoch, record_thread(record), record_site(record), 0, (u32)record & LOW_PAYLOAD));
    if (!s.done) report_copy(c, hazard, record_site(record), record_thread(record), s, c.flags & ACCESS_COPY ? REASON_OVERLAPPING_COPIES : 0);
}
