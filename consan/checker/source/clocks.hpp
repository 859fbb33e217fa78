// Vector clocks of the threads of a CTA, exact. SEMANTICS 2.3: an edge goes from what a thread did before it arrived at a barrier to what
// the threads that wait there do afterwards.
//
// After a barrier all its threads know the same, so threads share immutable vectors: a thread has a vector and its own time. A second
// set of clocks takes each warp for one thread; a pair that only these order lacks bar.warp.sync (R-W1), and is a warning.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "types.hpp"

using Vector = std::shared_ptr<const std::vector<u32>>;

// What a thread publishes at one moment.
struct Past {
    u32 thread, time, warp_time;
    Vector seen;
};

class Clocks {
  public:
    explicit Clocks(u32 threads) : warps_((threads + LANES - 1) / LANES), time_(threads, 1), warp_time_(warps_, 1), warp_seen_(warps_ * warps_, 0), taken_(warps_, false) {
        seen_.assign(threads, std::make_shared<const std::vector<u32>>(threads, 0u));
    }

    u32 time(u32 thread) const { return time_[thread]; }
    u32 warp_time(u32 thread) const { return warp_time_[thread / LANES]; }
    // `other`: a thread, or (behind the threads) an mbarrier, whose times are phases.
    u32 known(u32 thread, u32 other) const { return other < seen_[thread]->size() ? (*seen_[thread])[other] : 0; }
    const Vector &seen(u32 thread) const { return seen_[thread]; }

    bool before(u32 other, u32 time, u32 thread) const { return other == thread || (*seen_[thread])[other] >= time; }

    bool warps_before(u32 other, u32 warp_time, u32 thread) const {
        u32 from = other / LANES, to = thread / LANES;
        return from == to || warp_seen_[to * warps_ + from] >= warp_time;
    }

    // The past of a thread that arrives; it enters a new moment.
    Past release(u32 thread) {
        Past past{thread, time_[thread], warp_time_[thread / LANES], seen_[thread]};
        ++time_[thread];
        ++warp_time_[thread / LANES];
        return past;
    }

    static Vector join(const std::vector<Past> &pasts) {
        auto joined = std::make_shared<std::vector<u32>>(*pasts.front().seen);
        const std::vector<u32> *last = pasts.front().seen.get();
        for (const Past &past : pasts) {
            if (past.seen.get() == last) continue;
            last = past.seen.get();
            joined->resize(std::max(joined->size(), last->size()), 0);
            for (size_t i = 0; i < last->size(); ++i) (*joined)[i] = std::max((*joined)[i], (*last)[i]);
        }
        for (const Past &past : pasts) (*joined)[past.thread] = std::max((*joined)[past.thread], past.time);
        return joined;
    }

    // What has been gathered, and one more past.
    static Vector join(const Vector &gathered, const Past &past) {
        if (gathered == past.seen) return join({past});
        return join({past, {past.thread, past.time, past.warp_time, gathered}});
    }

    // A thread takes what has been gathered, and knows phases of an mbarrier. `gathered`: null if nothing has been.
    void take(u32 thread, const Vector &gathered, u32 actor, u32 phases) {
        Vector &own = seen_[thread];
        if (own != last_own_ || gathered != last_gathered_ || actor != last_actor_ || phases != last_phases_) {
            auto made = std::make_shared<std::vector<u32>>(*own);
            made->resize(std::max({made->size(), gathered ? gathered->size() : 0, (size_t)actor + 1}), 0);
            for (size_t i = 0; gathered && i < gathered->size(); ++i) (*made)[i] = std::max((*made)[i], (*gathered)[i]);
            (*made)[actor] = std::max((*made)[actor], phases);
            last_own_ = own, last_gathered_ = gathered, last_actor_ = actor, last_phases_ = phases;
            last_made_ = made;
        }
        own = last_made_;
    }

    // The same where each warp is one thread.
    void add_warp(const Past &past, std::vector<u32> &to) const {
        u32 warp = past.thread / LANES;
        to.resize(warps_, 0);
        for (u32 i = 0; i < warps_; ++i) to[i] = std::max(to[i], warp_seen_[warp * warps_ + i]);
        to[warp] = std::max(to[warp], past.warp_time);
    }
    void take_warp(u32 thread, const std::vector<u32> &gathered) {
        u32 *own = &warp_seen_[thread / LANES * warps_];
        for (u32 i = 0; i < gathered.size(); ++i) own[i] = std::max(own[i], gathered[i]);
        taken_[thread / LANES] = true;
    }

    // Whether lanes of the thread's warp have taken something by themselves.
    bool lanes_take(u32 thread) const { return taken_[thread / LANES]; }

    // Threads take a joined past. A thread that waited since its own arrival knew nothing else.
    void acquire(const std::vector<u32> &threads, const Vector &joined) {
        for (u32 thread : threads) seen_[thread] = joined;
    }

    // The same where each warp is one thread.
    void acquire_warps(const std::vector<u32> &threads, const std::vector<Past> &pasts) {
        std::vector<u32> joined(warps_, 0);
        u32 done = NOTHING;
        for (const Past &past : pasts) {
            u32 warp = past.thread / LANES;
            joined[warp] = std::max(joined[warp], past.warp_time);
            if (warp == done) continue;
            done = warp;
            for (u32 i = 0; i < warps_; ++i) joined[i] = std::max(joined[i], warp_seen_[warp * warps_ + i]);
        }
        done = NOTHING;
        for (u32 thread : threads) {
            u32 warp = thread / LANES;
            if (warp == done) continue;
            done = warp;
            for (u32 i = 0; i < warps_; ++i) warp_seen_[warp * warps_ + i] = std::max(warp_seen_[warp * warps_ + i], joined[i]);
        }
    }

  private:
    u32 warps_;
    std::vector<u32> time_, warp_time_, warp_seen_;
    std::vector<bool> taken_;
    std::vector<Vector> seen_;
    // The lanes of a warp mostly take the same: the last result serves them all.
    Vector last_own_, last_gathered_, last_made_;
    u32 last_actor_ = 0, last_phases_ = 0;
};
