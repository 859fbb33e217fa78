// R-W1 (ISA "bar.warp.sync"): the lanes of a mask wait for each other; their accesses before it happen before their accesses after it.
#pragma once

#include <vector>

#include "clocks.hpp"
#include "decisions.hpp"

class WarpBarriers {
  public:
    WarpBarriers(const Shape &shape, Clocks &clocks)
        : threads_(shape.threads()), clocks_(clocks), masks_(threads_, 0), waiting_(shape.warps(), 0), exited_(threads_) {
        for (u32 thread = 0; thread < threads_; ++thread) exited_[thread] = !shape.exists(thread);
    }

    // `is_added`: by a repair. Such lanes wait for each other alone (consan/checker/repairs/whole_barriers.py).
    void arrive(u32 thread, u32 mask, bool is_added, std::vector<u32> &released) {
        masks_[thread] = mask | 1u << thread % LANES | (u64)is_added << LANES;
        waiting_[thread / LANES] |= 1u << thread % LANES;
        settle(thread, released);
    }

    void exit(u32 thread, std::vector<u32> &released) {
        exited_[thread] = true;
        for (u32 left = waiting_[thread / LANES]; left; left &= left - 1) {
            u32 other = thread / LANES * LANES + (u32)__builtin_ctz(left);
            if (masks_[other] >> thread % LANES & 1) settle(other, released);
        }
    }

  private:
    void settle(u32 thread, std::vector<u32> &released) {
        u64 mask = masks_[thread];
        u32 first = thread / LANES * LANES;
        std::vector<u32> team;
        for (u32 lane = 0; lane < LANES && first + lane < threads_; ++lane) {
            if (!(mask >> lane & 1) || exited_[first + lane]) continue;
            if (masks_[first + lane] != mask) return;
            team.push_back(first + lane);
        }
        std::vector<Past> pasts;
        for (u32 member : team) {
            pasts.push_back(clocks_.release(member));
            masks_[member] = 0, waiting_[member / LANES] &= ~(1u << member % LANES);
        }
        if (decided<Edge::WARP_BARRIER>()) clocks_.acquire(team, clocks_.join(pasts));
        released.insert(released.end(), team.begin(), team.end());
    }

    u32 threads_;
    Clocks &clocks_;
    std::vector<u64> masks_;    // of lanes that wait
    std::vector<u32> waiting_;  // by warp: a bit for each of them
    std::vector<bool> exited_;
};
