// The lanes of a mask execute a warp-synchronous instruction together, which orders no memory. A lane waits at one until the others are there
// or have exited. divergence.hpp tells where they never come together.
#pragma once

#include <vector>

#include "shape.hpp"

class Meetings {
  public:
    explicit Meetings(const Shape &shape) : members_(shape.threads()) {
        for (u32 thread = 0; thread < shape.threads(); ++thread) members_[thread] = shape.exists(thread) ? NOWHERE : GONE;
    }

    void arrive(u32 thread, u32 mask, std::vector<u32> &released) {
        members_[thread] = mask | 1u << thread % LANES;
        settle(thread, released);
    }

    void exit(u32 thread, std::vector<u32> &released) {
        members_[thread] = GONE;
        settle(thread, released);
    }

    // Lanes that wait for others go on, because those never come. Returns them.
    std::vector<u32> give_up() {
        std::vector<u32> found;
        for (u32 thread = 0; thread < members_.size(); ++thread)
            if (waits(thread)) members_[thread] = NOWHERE, found.push_back(thread);
        return found;
    }

  private:
    static constexpr u64 NOWHERE = 0, GONE = 1ull << 32;

    bool waits(u32 thread) const { return members_[thread] != NOWHERE && members_[thread] != GONE; }

    void settle(u32 thread, std::vector<u32> &released) {
        u32 first = thread / LANES * LANES, end = std::min(first + LANES, (u32)members_.size());
        for (u32 lane = first; lane < end; ++lane) {
            u64 members = members_[lane];
            bool missing = false;
            if (!waits(lane) || !(members >> (lane - first) & 1)) continue;
            for (u32 other = first; other < end; ++other) missing |= (members >> (other - first) & 1) && members_[other] == NOWHERE;
            if (missing) continue;
            for (u32 other = first; other < end; ++other)
                if (members >> (other - first) & 1 && waits(other)) members_[other] = NOWHERE, released.push_back(other);
        }
    }

    std::vector<u64> members_;  // of the instruction where a lane waits
};
