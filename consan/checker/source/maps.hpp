// Fences for tensor maps in global memory (ISA "fence.proxy.tensormap"). A copy reads its map through a proxy of its own: between a write of the
// map and its use lie a release fence, and an acquire fence for this map, each ordered with both. tensormap.cp_fenceproxy is a release itself.
#pragma once

#include <unordered_map>
#include <vector>

#include "clocks.hpp"

class MapFences {
  public:
    explicit MapFences(Clocks &clocks) : clocks_(clocks) {}

    void release(u32 thread) { releases_.push_back(clocks_.release(thread)); }
    void acquire(u32 thread, u64 map) { acquires_[map].push_back(clocks_.release(thread)); }

    bool released(u32 writer, u32 time, u32 user) const { return between(releases_, writer, time, user); }
    bool acquired(u64 map, u32 writer, u32 time, u32 user) const {
        auto found = acquires_.find(map);
        return found != acquires_.end() && between(found->second, writer, time, user);
    }

  private:
    // Whether a fence is ordered behind a write, and before what a thread does next. Later fences fit more often.
    bool between(const std::vector<Past> &fences, u32 writer, u32 time, u32 user) const {
        for (size_t i = fences.size(); i--;) {
            const Past &fence = fences[i];
            bool behind = fence.thread == writer ? fence.time >= time : clocks_.in(fence.seen, writer) >= time;
            if (behind && clocks_.before(fence.thread, fence.time, user)) return true;
        }
        return false;
    }

    Clocks &clocks_;
    std::vector<Past> releases_;
    std::unordered_map<u64, std::vector<Past>> acquires_;  // by map
};
