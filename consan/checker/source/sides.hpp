// The sides of asynchronous copies in global memory: each is an access of an actor of its own (SEMANTICS 12, R-GM11), which begins when the copy
// is issued, and is over for who knows of its completion.
#pragma once

#include "outer.hpp"
#include "tensors.hpp"

namespace sides {

inline bool writes(const Event &event) { return event.kind == BULK_STORE || event.kind == TENSOR_STORE; }
inline bool reads(const Event &event) { return event.kind == COPY || event.kind == BULK_LOAD || event.kind == TENSOR_LOAD; }

// The bytes that a mask chooses of each chunk: f(address, bytes) for each run of them.
template <typename F> void each_chosen(const LaneLog &log, F f) {
    u64 mask = log.c() & ((1u << CHUNK) - 1);
    auto chosen = [&](u32 at) { return at < log.a() && mask >> at % CHUNK & 1; };
    for (u32 from = 0, to; from < log.a(); from = to + 1) {
        for (to = from; chosen(to); ++to) {}
        if (to > from) f(log.wide_value() + from, to - from);
    }
}

// The rows of global memory that a copy touches: f(address, bytes). False if they are not known.
template <typename F> bool each_row(const LaneLog &log, F f) {
    const Event &event = log.event();
    if (event.kind == COPY) return f(log.wide_value(), std::min(log.b(), (u32)event.bytes)), true;
    if (event.kind == BULK_STORE && event.flags & MASKED) return each_chosen(log, f), true;
    if (event.kind == BULK_STORE || event.kind == BULK_LOAD) return f(log.wide_value(), log.a()), true;
    std::vector<Region> regions = Tensor(log).regions();
    for (const Region &region : regions) region.any_row([&](u64 low, u64 high) { return f(low, (u32)(high - low)), false; });
    return !regions.empty();
}

// Compare a copy, part by part: those of a multicast are over one by one.
inline void add(Outer &outer, u32 unit, u32 thread, const LaneLog &log, const std::vector<Completion> &parts) {
    const Event &event = log.event();
    OuterAccess made{};
    made.unit = unit, made.thread = thread, made.site = (u32)event.site, made.flag = -1;
    made.writes = writes(event), made.reads = !made.writes;
    made.reduces = made.writes && event.flags & ADDS;
    made.fetches = made.reads && event.kind != COPY;
    for (const Completion &part : parts) {
        made.operation = outer.issue(part);
        bool known = each_row(log, [&](u64 address, u32 bytes) {
            made.address = address, made.bytes = bytes;
            outer.add(made);
        });
        if (!known) outer.skip();
    }
}

}  // namespace sides
