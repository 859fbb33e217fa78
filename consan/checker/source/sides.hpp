// The sides of asynchronous copies in global memory: each is an access of an actor of its own (SEMANTICS 12, R-GM11), which begins when the copy
// is issued, and is over for who knows of its completion.
#pragma once

#include "outer.hpp"
#include "tensors.hpp"

namespace sides {

inline bool writes(const Event &event) { return event.kind == BULK_STORE || event.kind == TENSOR_STORE; }
inline bool reads(const Event &event) { return event.kind == COPY || event.kind == BULK_LOAD || event.kind == TENSOR_LOAD; }

// The bytes of an element of a reduction.
inline u32 element(const LaneLog &log) { return log.event().kind == TENSOR_STORE ? Tensor(log).element() : (u32)log.event().bytes; }

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

// The tensor map of a copy, if it may be in global memory; else 0.
inline u64 map_of(const LaneLog &log) {
    bool tensor = log.event().kind == TENSOR_LOAD || log.event().kind == TENSOR_STORE;
    return tensor ? Tensor(log).map() : 0;
}

inline OuterAccess access_of(u32 unit, u32 thread, const LaneLog &log) {
    OuterAccess made{};
    made.unit = unit, made.thread = thread, made.site = (u32)log.event().site, made.flag = -1;
    return made;
}

// A tensor copy reads its map, through a proxy of its own (R-B7).
inline void add_map(Outer &outer, u32 unit, u32 thread, const LaneLog &log, const Completion &end) {
    OuterAccess made = access_of(unit, thread, log);
    made.address = map_of(log), made.bytes = MAP_BYTES, made.proxy = TENSORMAP_PROXY, made.reads = true;
    made.operation = outer.issue(end);
    outer.add(made);
}

// Compare a copy, part by part: those of a multicast are over one by one.
inline void add(Outer &outer, u32 unit, u32 thread, const LaneLog &log, const std::vector<Completion> &parts) {
    const Event &event = log.event();
    OuterAccess made = access_of(unit, thread, log);
    made.writes = writes(event), made.reduces = made.strong = made.writes && event.flags & ADDS;
    made.reads = !made.writes || made.reduces;
    made.proxy = event.kind == COPY ? GENERIC_PROXY : ASYNC_PROXY;
    if (made.reduces) made.element = (u8)element(log), made.scope = GPU_SCOPE;
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
