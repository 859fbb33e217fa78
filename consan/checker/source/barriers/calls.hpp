// R-BAR4: warps that meet at different calls of __syncthreads(). They meet in fact (ISA "bar": barrier 0), and CUDA C++ leaves it undefined.
//
// Two warps at two places of one loop are out of step if one of them has already been where the other one is now as often as that one:
// the same place of the loop then belongs to different rounds of the barrier.
#pragma once

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "decisions.hpp"

struct Arrival {
    u32 thread, id, count, site;
    bool waits;
    u32 call;  // of __syncthreads() in the source, by number; 0: another barrier
};

class Calls {
  public:
    // The first lane of a warp arrives.
    void arrive(u32 warp, const Arrival &arrival) {
        ++visits_[key(warp, arrival.call)];
        auto same = [&](const Visit &each) { return each.arrival.call == arrival.call; };
        if (std::none_of(round_.begin(), round_.end(), same)) round_.push_back({warp, arrival});
    }

    // All warps have arrived.
    void complete() {
        if (round_.size() < 2) first_ = {};
        for (size_t at = 1; at < round_.size() && !out_of_step_.count; ++at)
            for (size_t other = 0; other < at; ++other) meet(round_[at], round_[other]);
        round_.clear();
    }

    // `found`: of two arrivals, the reason, and how often they met. Once warps are out of step, only the round in which they parted counts.
    template <typename F> void finish(F found) const {
        if (out_of_step_.count) return found(out_of_step_.one, OUT_OF_STEP, out_of_step_.other, 1);
        for (const auto &each : met_) found(each.second.one, OTHER_CALL, each.second.other, each.second.count);
    }

    // How often warps met at different calls.
    u32 conflicts() const { return conflicts_; }

  private:
    struct Visit {
        u32 warp;
        Arrival arrival;
    };
    struct Conflict {
        Arrival one, other;
        u32 count = 0;
    };

    static u64 key(u32 first, u32 second) { return (u64)first << 32 | second; }

    void meet(const Visit &a, const Visit &b) {
        ++conflicts_;
        Conflict &met = met_[key(std::min(a.arrival.call, b.arrival.call), std::max(a.arrival.call, b.arrival.call))];
        if (!met.count++) met.one = a.arrival, met.other = b.arrival;
        if (!first_.count) first_ = met;
        if (out_of_step(a, b)) out_of_step_ = first_;
    }

    u32 visits(const Visit &who, const Visit &where) const {
        auto found = visits_.find(key(who.warp, where.arrival.call));
        return found == visits_.end() ? 0 : found->second;
    }

    bool out_of_step(const Visit &a, const Visit &b) const {
        u32 a_here = visits(a, a), a_there = visits(a, b), b_here = visits(b, b), b_there = visits(b, a);
        bool loop = a_there && b_there && std::max(a_here, b_here) > 1;
        return decided<OUT_OF_STEP>(loop && (b_there >= a_here || a_there >= b_here));
    }

    u32 conflicts_ = 0;
    std::unordered_map<u64, u32> visits_;  // of a warp at a call
    std::vector<Visit> round_;             // the first warp at each call
    std::map<u64, Conflict> met_;           // by the two calls
    Conflict first_, out_of_step_;          // of the rounds since all warps were last at one call; the one that led to others in different iterations
};
