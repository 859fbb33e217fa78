// R-RACE (SEMANTICS 2, 4, 12; ISA 8.7 to 8.7.2, 8.9.1.1): the one rule for two accesses with common bytes, of any two actors, in every memory.
//
// An actor is a thread or an asynchronous operation. A memory finds accesses that have bytes in common, the earlier one of the replay first, and
// states the facts of two of them (`Facts`):
//   narrowest()         the narrowest scope that includes both threads
//   complete()      the later thread knows that the earlier access is over: of a thread, by happens-before; of an operation, by its completion
//   asynchronous()  the earlier access is one of an operation
//   issued()        then: the later access is behind its issue
//   early()         the later access is to see what was there before the earlier one, which therefore comes too early
//   awaited()       one is of an operation and brings what the other reads: to wait for it orders the two
//   of_lanes        both are accesses of threads, which may lack the order of single lanes (R-W1); only then:
//   in_step()       the two are in order once each warp is one thread; then:
//   one_warp()      both threads are of one warp
//   lanes_take()    single lanes of the later thread's warp have acquired something
//   lane_knows()    a lane of that warp is behind the earlier access
// and completes a finding by what it alone knows: the place, and which wait, lane, fence or synchronisation lacks (Facts of each memory).
#pragma once

#include "decisions.hpp"
#include "findings.hpp"

enum Proxy : u8 { GENERIC_PROXY = 0, ASYNC_PROXY, TENSORMAP_PROXY };

// One of two accesses, whatever the memory. `thread`: of an operation, the one that has issued it.
struct Side {
    u32 thread = 0, site = 0, bytes = 0, value = 0;
    i32 flag = -1;          // the number of a strong access that may synchronise, or of its part
    u8 element = 0;         // bytes: a vector is as many scalar accesses (G10)
    u8 scope = CTA_SCOPE;   // a Scope, of a strong access
    u8 proxy = GENERIC_PROXY;
    bool reads = false, writes = false, strong = false, has_value = false;
    bool data = false;   // R-MO1, of a strong load: the value is stored, and decides nothing; of a strong store: it counts
    bool again = false;  // of a load of data: a loop may throw the value away and load again

    bool updates() const { return reads && writes; }
};

namespace race_rule {

// The facts where a memory states no others: two weak accesses of threads of one CTA.
struct PlainFacts {
    static constexpr bool of_lanes = false;
    Scope narrowest() const { return CTA_SCOPE; }
    bool asynchronous() const { return false; }
    bool issued() const { return false; }
    bool early() const { return false; }
    bool awaited() const { return false; }
    void bridge(...) const {}
    void wait(Record &) const {}
    void race(Record &found, Reason reason, bool) const { found.kind = DATA_RACE, found.reason = reason; }
};

// What is wrong with two accesses in no order.
enum class Wrong { RACE, TOO_EARLY, NO_WAIT };

inline Hazard hazard_of(const Side &old, const Side &now) { return !now.writes ? RAW : old.writes ? WAW : WAR; }

// A vector is as many scalar accesses. They are aligned, so two of one size that meet are of the same bytes.
inline bool same_bytes(const Side &old, const Side &now) { return old.element == now.element; }

// A bulk reduction is through another proxy than what threads do. Its updates are taken to be morally strong with theirs (D24).
inline bool one_proxy(const Side &old, const Side &now) { return old.proxy == now.proxy || (old.updates() && now.updates()); }

template <typename Facts> inline bool both_strong(const Side &old, const Side &now, const Facts &facts) {
    return old.strong && now.strong && decided<Inclusion::STRONG>(std::min(old.scope, now.scope) >= (u8)facts.narrowest());
}

// ISA 8.7.
template <typename Facts> inline bool morally_strong(const Side &old, const Side &now, const Facts &facts) {
    return old.strong && now.strong && same_bytes(old, now) && one_proxy(old, now) && both_strong(old, now, facts);
}

// R-SCOPE: they would be morally strong, but a scope excludes the other thread.
template <typename Facts> inline bool excluded(const Side &old, const Side &now, const Facts &facts) {
    return old.strong && now.strong && same_bytes(old, now) && !both_strong(old, now, facts) && one_proxy(old, now);
}

// Each of two read-modify-writes that overlap in part is performed as a whole (ISA 8.7.2).
template <typename Facts> inline bool mixed_atomics(const Side &old, const Side &now, const Facts &facts) {
    return old.updates() && now.updates() && !same_bytes(old, now) && both_strong(old, now, facts);
}

// Two stores of one value. `place`: of the same bytes.
inline bool same_value(const Side &old, const Side &now, bool place) {
    bool values = old.has_value && now.has_value && old.value == now.value;
    return values && place && old.bytes == now.bytes && !(old.reads || now.reads);
}

// Two stores of values that can be one sum with other roundings, if they are floating-point numbers: the text says so (reports/verdict/tolerance.py).
// The recorder makes scalar stores of a vector of sums. In both formats of 16 bits, two such numbers are rounded to at most one unit apart.
inline bool near_value(const Side &old, const Side &now, bool place) {
    const bool half = old.bytes == 2;
    const u32 most = half ? 1 : 1 << 12, exponents = half ? 0x1f << 10 : 0xff << 23, exponent = old.value & exponents;
    bool values = old.has_value && now.has_value && old.value != now.value && exponent && exponent != exponents;
    u32 difference = old.value < now.value ? now.value - old.value : old.value - now.value;
    return values && place && (half || old.bytes == 4) && now.bytes == old.bytes && !(old.reads || now.reads) && difference <= most;
}

// R-MO1: whether two accesses are a load of data and a store.
inline bool gives_data(const Side &old, const Side &now) {
    const Side &load = now.writes ? old : now, &store = now.writes ? now : old;
    return load.data && !load.writes && !store.reads;
}

// What is wrong with two accesses in no order. Behind the issue of an operation, or where to wait for it orders the two, a wait lacks.
template <typename Facts> inline Wrong wrong(const Side &old, const Side &now, const Facts &facts) {
    if (mixed_atomics(old, now, facts)) return Wrong::RACE;
    if (facts.asynchronous() && facts.issued()) return Wrong::NO_WAIT;
    if (facts.early()) return Wrong::TOO_EARLY;
    return facts.awaited() ? Wrong::NO_WAIT : Wrong::RACE;
}

// R-W1: which lane lacks the order. Between warps, a barrier that the rest of a lane's warp passes without it: the lane has exited.
template <typename Facts> inline Reason lane(const Facts &facts) {
    if (!facts.one_warp() && !facts.lanes_take()) return NO_BARRIER;
    if (decided<NO_WARP_SYNC>(facts.one_warp())) return NO_WARP_SYNC;
    return decided<OTHER_LANES>(facts.lane_knows()) ? OTHER_LANES : OTHER_LANE_RELEASED;
}

// Why two accesses race.
template <typename Facts> inline Reason why(const Side &old, const Side &now, const Facts &facts) {
    if (decided<MIXED_ATOMICS>(mixed_atomics(old, now, facts))) return MIXED_ATOMICS;
    if (decided<ACCESS_SCOPE>(excluded(old, now, facts))) return ACCESS_SCOPE;
    if constexpr (Facts::of_lanes)
        if (facts.in_step()) return lane(facts);
    return NO_BARRIER;
}

// The earlier access comes too early, so it is the second of a finding.
inline void turn(Record &found, Hazard hazard) {
    found.hazard = hazard;
    std::swap(found.site, found.other_site);
    std::swap(found.thread, found.other_thread);
    std::swap(found.operation, found.own_operation);
    found.flags &= ~(u32)(OTHER_ASYNC | UNORDERED);
}

// A finding of two accesses, without its kind and reason.
template <typename Facts> inline Record pair(const Side &old, const Side &now, const Facts &facts) {
    Record found{};
    found.site = now.site, found.other_site = old.site;
    found.thread = now.thread, found.other_thread = old.thread;
    found.hazard = hazard_of(old, now);
    facts.place(found);
    return found;
}

// The finding of two accesses in no order.
template <typename Facts> inline Record compare(const Side &old, const Side &now, const Facts &facts) {
    Record found = pair(old, now, facts);
    Wrong is = wrong(old, now, facts);
    if (is == Wrong::NO_WAIT) {
        found.kind = MISSING_WAIT;
        facts.wait(found);
        return found;
    }
    Reason reason = why(old, now, facts);
    facts.race(found, reason, is == Wrong::TOO_EARLY);
    if (found.reason == ACCESS_SCOPE) found.kind = SCOPE;
    if (is == Wrong::TOO_EARLY) turn(found, hazard_of(now, old));
    return found;
}

// Two accesses with common bytes; one of them writes. `add` takes the finding, if there is one.
template <typename Facts, typename Add> inline void meet(const Side &old, const Side &now, const Facts &facts, Add add) {
    if (morally_strong(old, now, facts)) return;
    if (facts.complete()) facts.bridge(add);
    else add(compare(old, now, facts));
}

}  // namespace race_rule
