// The lanes of a mask execute a warp-synchronous instruction together, which orders no memory. A lane waits at one until the others are there
// or have exited. divergence.hpp tells where they never come together.
#pragma once

#include <vector>

#include "shape.hpp"

class Convergence {
  public:
    explicit Convergence(const Shape &shape) : masks_(shape.threads()), warps_(shape.warps()) {
        for (u32 thread = 0; thread < shape.warps() * LANES; ++thread)
            if (!shape.exists(thread)) of(thread).gone |= bit(thread);
    }

    void arrive(u32 thread, u32 mask, std::vector<u32> &released) {
        masks_[thread] = mask | bit(thread);
        of(thread).waiting |= bit(thread);
        settle(thread, released);
    }

    void exit(u32 thread, std::vector<u32> &released) {
        of(thread).waiting &= ~bit(thread), of(thread).gone |= bit(thread);
        settle(thread, released);
    }

    // Lanes that wait for others go on, because those never come. Returns them.
    std::vector<u32> give_up() {
        std::vector<u32> found;
        for (u32 first = 0; first < masks_.size(); first += LANES) release(first, of(first).waiting, found);
        return found;
    }

  private:
    struct Warp {
        u32 waiting = 0, gone = 0;  // a bit for each lane; threads that do not exist are gone
    };

    static u32 bit(u32 thread) { return 1u << thread % LANES; }
    Warp &of(u32 thread) { return warps_[thread / LANES]; }

    void release(u32 first, u32 lanes, std::vector<u32> &released) {
        of(first).waiting &= ~lanes;
        for (; lanes; lanes &= lanes - 1) released.push_back(first + (u32)__builtin_ctz(lanes));
    }

    void settle(u32 thread, std::vector<u32> &released) {
        Warp &warp = of(thread);
        u32 first = thread / LANES * LANES;
        for (u32 left = warp.waiting; left; left &= left - 1) {
            u32 lane = (u32)__builtin_ctz(left), members = masks_[first + lane];
            if (warp.waiting >> lane & 1 && !(members & ~(warp.waiting | warp.gone))) release(first, members & warp.waiting, released);
        }
    }

    std::vector<u32> masks_;  // the members of the instruction where a lane waits
    std::vector<Warp> warps_;
};
