// D14 (SEMANTICS 9): a strong load reads a flag in global memory, and behind it a copy reads bytes that nobody has written in the launch, through
// the async proxy. The flag may announce these bytes: the host, another launch or another device has written them. Nothing tells whether it does.
#pragma once

#include "global_operands.hpp"

class Announced {
  public:
    Announced(bool isa, u32 threads, Views &views, const Footprints &footprints, Findings &findings)
        : isa_(isa), threads_(threads), views_(views), footprints_(footprints), findings_(findings) {}

    // A strong access. A relaxed read-modify-write counts or hands out work, so it is no poll.
    void poll(const FlagAccess &read) {
        bool global = !(read.address >> 62), polls = read.observes && (!read.updates || read.order & IS_ACQUIRE);
        if (isa_ && global && polls) polls_[read.cluster][read.thread] = {read.site, views_.clocks(read.cluster).time(read.thread)};
    }

    // A copy is issued. For each thread of its cluster the latest poll is enough: a fence behind it is behind the earlier ones.
    template <typename Copy> void copy(u32 cluster, u32 thread, const Copy &copy) {
        auto known = polls_.find(cluster);
        if (known == polls_.end() || (Copy::kind != BULK_LOAD && Copy::kind != TENSOR_LOAD)) return;
        bool given = false;
        Record found{};
        global_operands::each_row(copy, [&](u64 address, u32 bytes) { given |= !footprints_.written(address, bytes); });
        for (auto each = known->second.begin(); given && each != known->second.end(); ++each) {
            const auto &[other, last] = *each;
            if (!views_.before(cluster, other, last.time, cluster, thread) || views_.fenced(cluster, other, last.time, cluster, thread)) continue;
            found.kind = MISSING_PROXY_FENCE, found.reason = POLL_NO_FENCE, found.hazard = RAW, found.flags = GLOBAL;
            found.site = copy.site(), found.other_site = last.site;
            found.thread = cluster * threads_ + thread, found.other_thread = cluster * threads_ + other;
            found.own_operation = BULK_LOAD_OPERATION;
            return findings_.add(found);
        }
    }

  private:
    struct Poll {
        u32 site, time;
    };

    bool isa_;
    u32 threads_;
    Views &views_;
    const Footprints &footprints_;
    Findings &findings_;
    std::unordered_map<u32, std::map<u32, Poll>> polls_;  // by cluster and thread
};
