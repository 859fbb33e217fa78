// What a report says of a cp.async copy in flight: its group, or the mbarrier that tracks it (R-CP1 to R-CP6).
#pragma once

#include "mbarrier.cuh"

#if CONSAN_ENGINE
// The state of a copy that is known to complete with a phase.
DEVICE Copy tied_copy(const Caller &c, u32 issuer, u32 tie) {
    Copy s;
    u64 thread = thread_record(c.slot, issuer), at = mbarrier_at(engine_of(c.slot), tie_index(tie));
    s.commits = load32(THREAD_FIELD(thread, commits)); s.retired = load32(THREAD_FIELD(thread, retired));
    s.group = s.commits - 1; s.wait_epoch = 0; s.tie = tie; s.waited = false;
    u32 phase = widen(tie & TIE_MASK, state_phase(load64(at)), TIE_MASK);
    s.done = (issuer == c.me && s.retired == s.commits) || clock_entry(c.slot, c.me, PHASES + tie_index(tie)) > phase;
    return s;
}
#endif
COLD void report_copy(Caller c, u32 hazard, u32 site, u32 issuer, const Copy &s, u32 reason) {
    Finding f = make_finding(c, KIND_MISSING_WAIT, hazard, site, issuer, FLAG_OTHER_ASYNC);
    f.group = s.group; f.commits = s.commits; f.retired = s.retired;
#if CONSAN_ENGINE
    if (s.tie) {
        u64 engine = engine_of(c.slot), at = mbarrier_at(engine, tie_index(s.tie));
        f.barrier = load32(FIELD(engine, Engine, keys) + 4 * tie_index(s.tie));
        f.barrier_state = load64(at); f.barrier_expected = load32(FIELD(at, MBarrier, expected));
        f.phase = widen(s.tie & TIE_MASK, state_phase(f.barrier_state), TIE_MASK) - load32(FIELD(at, MBarrier, first_phase));
    }
#endif
    f.reason = reason ? reason : s.waited ? REASON_WAITED_NO_BARRIER : s.group >= s.commits ? REASON_NOT_COMMITTED : REASON_NOT_WAITED;
    report(c.slot, f);
}

// The state of the copy that left a record.
DEVICE Copy copy_of(const Caller &c, u64 record) {
#if CONSAN_ENGINE
    if ((u32)record & LOW_ATOMIC) return tied_copy(c, record_thread(record), (u32)record & (LOW_ATOMIC | LOW_PAYLOAD));
#endif
    return copy_state(c, record_thread(record), group_of(c.slot, record));
}

// Once the completion of a copy is observed, the record becomes a write by its issuer at the epoch of the issuer's wait. A thread that has
// observed that epoch has observed the copy, so later accesses take the fast path. A copy observed through an mbarrier names its phase.
DEVICE void check_copy(const Caller &c, u64 at, u64 record, u32 hazard) {
    Copy s = copy_of(c, record);
#if CONSAN_ENGINE
    if (s.done && s.tie && at && !((u32)record & LOW_ATOMIC)) swap64(at, record, pack(record_site(record) << 16 | s.tie, (u32)(record >> 32)));
    else
#endif
    if (s.done && s.wait_epoch && at) swap64(at, record, make_record(s.wait_epoch, record_thread(record), record_site(record), 0, (u32)record & LOW_PAYLOAD));
    if (!s.done) report_copy(c, hazard, record_site(record), record_thread(record), s, c.flags & ACCESS_COPY ? REASON_OVERLAPPING_COPIES : 0);
}
