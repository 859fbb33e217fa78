// The sides of asynchronous copies in global memory: each is an access of an actor of its own (SEMANTICS 12, R-GM11), which begins when the copy
// is issued, and is over for who knows of its completion.
#pragma once

#include "global_races.hpp"
#include "tensors.hpp"

namespace global_operands {

constexpr bool writes(i32 kind) { return kind == BULK_STORE || kind == TENSOR_STORE; }
constexpr bool reads(i32 kind) { return kind == COPY_ISSUE || kind == BULK_LOAD || kind == TENSOR_LOAD; }
// Whether a copy has a side in global memory.
constexpr bool has_one(i32 kind) { return reads(kind) || writes(kind); }

using effects::BulkLoad;
using effects::BulkStore;
using effects::TensorLoad;
using effects::TensorStore;

// The rows of global memory that a copy touches: f(address, bytes). False if they are not known.
template <typename F> bool each_row(const effects::CopyIssue &copy, F f) { return f(copy.source(), std::min(copy.reads(), copy.bytes())), true; }

// The address is a multiple of 16. Its lowest and highest four bits say how many bytes at the beginning and at the end are not read (.ignore_oob).
template <typename F> bool each_row(const BulkLoad &copy, F f) {
    u64 from = copy.source() & ~(15ull << 60);
    u32 unread = (u32)(from & 15) + (u32)(copy.source() >> 60);
    return f(from, copy.size() - std::min(unread, copy.size())), true;
}

// With a mask: for each run of the bytes that it chooses of each chunk.
template <typename F> bool each_row(const BulkStore &copy, F f) {
    if (!copy.masked()) return f(copy.target(), copy.size()), true;
    auto chosen = [&](u32 at) { return at < copy.size() && copy.chosen() >> at % CHUNK & 1; };
    for (u32 from = 0, to; from < copy.size(); from = to + 1) {
        for (to = from; chosen(to); ++to) {}
        if (to > from) f(copy.target() + from, to - from);
    }
    return true;
}

template <typename F> bool each_row(const Tensor &tensor, F f) {
    std::vector<Region> regions = tensor.regions();
    for (const Region &region : regions) region.any_row([&](u64 low, u64 high) { return f(low, (u32)(high - low)), false; });
    return !regions.empty();
}
template <typename F> bool each_row(const TensorLoad &copy, F f) { return each_row(Tensor(copy), f); }
template <typename F> bool each_row(const TensorStore &copy, F f) { return each_row(Tensor(copy), f); }

// The tensor map of a copy, if it may be in global memory; else 0.
inline u64 map_of(const effects::Effect &) { return 0; }
inline u64 map_of(const TensorLoad &copy) { return Tensor(copy).map(); }
inline u64 map_of(const TensorStore &copy) { return Tensor(copy).map(); }

// The bytes of an element of a reduction; 0 of what is none.
inline u32 reduced(const effects::Effect &) { return 0; }
inline u32 reduced(const BulkStore &copy) { return copy.adds() ? copy.element() : 0; }
inline u32 reduced(const TensorStore &copy) { return copy.adds() ? Tensor(copy).element() : 0; }

inline RacingAccess access_of(u32 cluster, u32 thread, const effects::Effect &copy) {
    RacingAccess made{};
    made.cluster = cluster, made.thread = thread, made.site = copy.site();
    return made;
}

// A tensor copy reads its map, through a proxy of its own (R-B7).
template <typename Copy> void add_map(GlobalRaces &global_races, u32 cluster, u32 thread, const Copy &copy, const Completion &end) {
    RacingAccess made = access_of(cluster, thread, copy);
    made.address = map_of(copy), made.bytes = MAP_BYTES, made.proxy = TENSORMAP_PROXY, made.reads = true;
    made.operation = global_races.issue(end);
    global_races.add(made);
}

// Compare a copy, part by part: those of a multicast are over one by one.
// `content`: alike for copies of the same bytes.
template <typename Copy> void add(GlobalRaces &global_races, u32 cluster, u32 thread, const Copy &copy, u32 content, const std::vector<Completion> &parts) {
    RacingAccess made = access_of(cluster, thread, copy);
    made.writes = writes(Copy::kind), made.strong = made.writes && copy.event().flags & ADDS;
    made.reads = !made.writes || made.strong;
    made.proxy = Copy::kind == COPY_ISSUE ? GENERIC_PROXY : ASYNC_PROXY;
    made.has_value = made.writes && !made.strong, made.value = content;
    if (made.strong) made.element = (u8)reduced(copy), made.scope = GPU_SCOPE;
    for (const Completion &part : parts) {
        made.operation = global_races.issue(part);
        bool known = each_row(copy, [&](u64 address, u32 bytes) {
            made.address = address, made.bytes = bytes;
            global_races.add(made);
        });
        if (!known) global_races.skip();
    }
}

}  // namespace global_operands
