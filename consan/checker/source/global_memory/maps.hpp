// Fences for tensor maps in global memory (ISA "fence.proxy.tensormap"). A copy reads its map through a proxy of its own: between a write of the
// map and its use lie a release fence, and an acquire fence for this map, each ordered with both. tensormap.cp_fenceproxy ends with a release.
#pragma once

#include "views.hpp"
#include "decisions.hpp"

constexpr u32 MAP_BYTES = 128;  // ISA "tensormap.replace"

class MapFences {
  public:
    explicit MapFences(Views &views) : views_(views) {}

    void release(u32 cluster, u32 thread) { releases_.push_back({cluster, views_.clocks(cluster).release(thread)}); }
    void acquire(u32 cluster, u32 thread, u64 map) { acquires_[map].push_back({cluster, views_.clocks(cluster).release(thread)}); }

    // The fence that lacks between a write, at a thread's time, and a use of the map by a thread.
    Reason lacking(u64 map, u32 cluster, u32 writer, u32 time, u32 user_cluster, u32 user) {
        auto between = [&](const Fence &fence) {
            return views_.before(fence.cluster, fence.past.thread, fence.past.time, user_cluster, user) &&
                   views_.knew(fence.cluster, fence.past, cluster, writer, time);
        };
        auto any = [&](const std::vector<Fence> &fences) { return std::any_of(fences.rbegin(), fences.rend(), between); };  // later ones fit more often
        if (decided<MAP_NOT_ACQUIRED>(!any(acquires_[map]))) return MAP_NOT_ACQUIRED;
        return decided<MAP_NOT_RELEASED>(!any(releases_)) ? MAP_NOT_RELEASED : NO_REASON;
    }

  private:
    struct Fence {
        u32 cluster;
        Past past;
    };

    Views &views_;
    std::vector<Fence> releases_;
    std::unordered_map<u64, std::vector<Fence>> acquires_;  // by map
};
