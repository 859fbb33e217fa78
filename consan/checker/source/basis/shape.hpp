// The threads and the shared memory of the CTAs that are replayed together: one CTA, or those of a cluster.
//
// Numbers of threads and offsets in shared memory run through all CTAs, by rank. In a cluster the threads of a CTA take a multiple of 128
// numbers, so that warps and warpgroups belong to one CTA, and its bytes a multiple of 16; some numbers then stand for no thread.
//
// A 32-bit address has the rank of its CTA in bits 24 and up (measured on sm_90, and so in the virtual machine; the ISA leaves it open). In
// shared::cluster, and as a generic address, it means that CTA. In shared::cta it means the own one, and then rank 0 stands for it too.
#pragma once

#include <algorithm>
#include <utility>

#include "types.hpp"

class Shape {
  public:
    explicit Shape(const Input &input) : input_(input) {}

    u32 ctas() const { return input_.ctas; }
    u32 threads() const { return input_.ctas * input_.cta_threads; }
    u32 cta_threads() const { return input_.threads; }
    u32 warps() const { return (threads() + LANES - 1) / LANES; }
    u32 bytes() const { return input_.ctas == 1 ? input_.shared_bytes : input_.ctas * input_.cta_bytes; }

    u32 home(u32 thread) const { return input_.ctas == 1 ? 0 : thread / input_.cta_threads; }
    u32 first(u32 cta) const { return cta * input_.cta_threads; }
    bool exists(u32 thread) const { return thread < threads() && thread % input_.cta_threads < input_.threads; }
    u32 lanes(u32 warp) const {
        u32 first = warp * LANES % input_.cta_threads;
        return first < input_.threads ? std::min(LANES, input_.threads - first) : 0;
    }

    // The same offset in another CTA.
    u32 at(u32 cta, u32 place) const { return input_.ctas == 1 ? place : cta * input_.cta_bytes + inside(place); }

    u32 owner(u32 place) const { return input_.ctas == 1 ? 0 : place / input_.cta_bytes; }
    u32 inside(u32 place) const { return input_.ctas == 1 ? place : place % input_.cta_bytes; }
    bool holds(u32 place, u32 bytes) const {
        u32 at = inside(place);
        return owner(place) < input_.ctas && at < input_.shared_bytes && bytes <= input_.shared_bytes - at;
    }

    // The offset that an address of a thread means. Outside of all CTAs if there is no such CTA.
    u32 place(u32 address, u32 thread, bool ranked) const {
        if (input_.ctas == 1) return address - input_.window;
        u32 rank = address >> RANK_SHIFT, at = address & ((1u << RANK_SHIFT) - 1);
        if (!ranked && rank == 0) rank = home(thread);
        if (rank >= input_.ctas || at < input_.window || at - input_.window >= input_.cta_bytes || (!ranked && rank != home(thread))) return NOTHING - LANES;
        return rank * input_.cta_bytes + at - input_.window;
    }
    // R-SR1: whether a fence with .sync_restrict is taken. One with .release orders accesses to the shared memory of its own CTA only.
    bool takes_restricted(u32 thread, bool releases) const {
        if (input_.restricted < OF_CTA_RESTRICTED) return input_.restricted == ALL_RESTRICTED;
        return !releases || home(thread) == input_.restricted - OF_CTA_RESTRICTED;
    }
    // The bytes of shared memory whose findings are reported: the first, and the end.
    std::pair<u32, u32> reported_bytes() const {
        if (input_.restricted < OF_CTA_RESTRICTED || input_.ctas == 1) return {0, ~0u};
        u32 first = at(input_.restricted - OF_CTA_RESTRICTED, 0);
        return {first, first + input_.cta_bytes};
    }
    // The same bytes of another CTA.
    u32 there(u32 place, u32 cta) const { return input_.ctas == 1 ? place : cta * input_.cta_bytes + inside(place); }
    // The address without a rank that an offset has.
    u32 address(u32 place) const { return inside(place) + input_.window; }

  private:
    static constexpr u32 RANK_SHIFT = 24;
    const Input &input_;
};
