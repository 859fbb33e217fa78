// Vector clocks of the threads of a CTA, exact. SEMANTICS section 3: an edge goes from a thread's accesses before it arrives at a barrier to
// the accesses of the waiting threads after the barrier.
//
// After a barrier all its threads have the same clock, so threads share immutable vectors: a thread has a vector and its own time. A second
// set of clocks treats each warp as one thread; a pair that only this set orders lacks bar.warp.sync (R-W1), and is a warning.
//
// Besides threads there are actors: phases of an mbarrier, groups of asynchronous operations. What a thread knows of them goes the way of all
// happens-before. Where a module has asynchronous proxies, each entry has two more: what of it is behind a proxy fence (SEMANTICS 5).
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "types.hpp"

using Vector = std::shared_ptr<const std::vector<u32>>;

// What a thread publishes at one moment.
struct Past {
    u32 thread, time, warp_time, fenced[2];
    Vector seen;
};

// The memories that a proxy fence is for.
enum Memory : u32 { SHARED_MEMORY = 0, GLOBAL_MEMORY = 1 };

class Clocks {
  public:
    Clocks(u32 threads, bool fenced)
        : warps_((threads + LANES - 1) / LANES), stride_(fenced ? 3 : 1), row_(warps_ * stride_), actors_(threads), time_(threads, 1), warp_time_(warps_, 1),
          warp_seen_(warps_ * row_, 0), fenced_(2 * threads, 0), taken_(warps_, false) {
        seen_.assign(threads, std::make_shared<const std::vector<u32>>(threads * stride_, 0u));
    }

    u32 new_actor() { return actors_++; }
    u32 threads() const { return (u32)seen_.size(); }

    u32 time(u32 thread) const { return time_[thread]; }
    u32 warp_time(u32 thread) const { return warp_time_[thread / LANES]; }
    // What a thread knows of an actor.
    u32 known(u32 thread, u32 actor) const { return entry(thread, actor * stride_); }
    const Vector &seen(u32 thread) const { return seen_[thread]; }
    u32 time_in(const std::vector<u32> &joined, u32 thread) const { return joined[thread * stride_]; }

    bool before(u32 other, u32 time, u32 thread) const { return other == thread || (*seen_[thread])[other * stride_] >= time; }

    bool warps_before(u32 other, u32 warp_time, u32 thread) const {
        u32 from = other / LANES, to = thread / LANES;
        return from == to || warp_seen_[to * row_ + from * stride_] >= warp_time;
    }

    // Whether a moment is behind a proxy fence for what a thread does next.
    bool fenced(u32 other, u32 time, u32 thread, Memory memory) const {
        if (other == thread && fenced_[2 * thread + memory] >= time) return true;
        return (*seen_[thread])[other * stride_ + 1 + memory] >= time;  // of its own accesses too: another thread's fence may cover them
    }
    bool warps_fenced(u32 other, u32 warp_time, u32 thread, Memory memory) const {
        return warp_seen_[thread / LANES * row_ + other / LANES * stride_ + 1 + memory] >= warp_time;
    }
    u32 known_fenced(u32 thread, u32 actor, Memory memory) const { return entry(thread, actor * stride_ + 1 + memory); }

    // fence.proxy.async: all that the thread knows is behind it. It enters a new moment. `memories`: a bit for each memory.
    void fence(u32 thread, u32 memories) {
        Vector &own = seen_[thread];
        if (own != fence_own_ || memories != fence_memories_) {
            auto made = std::make_shared<std::vector<u32>>(*own);
            raise_fenced(made->data(), made->size(), memories);
            fence_own_ = own, fence_memories_ = memories, fence_made_ = made;
        }
        own = fence_made_;
        u32 warp = thread / LANES;
        u32 *row = &warp_seen_[warp * row_];
        raise_fenced(row, row_, memories);
        for (u32 m = 0; m < 2; ++m)
            if (memories >> m & 1) fenced_[2 * thread + m] = time_[thread], row[warp * stride_ + 1 + m] = warp_time_[warp];
        ++time_[thread], ++warp_time_[warp];
    }

    // What a thread publishes when it arrives. Its own time advances.
    Past release(u32 thread) {
        Past past{thread, time_[thread], warp_time_[thread / LANES], {fenced_[2 * thread], fenced_[2 * thread + 1]}, seen_[thread]};
        ++time_[thread];
        ++warp_time_[thread / LANES];
        return past;
    }

    Vector join(const std::vector<Past> &pasts) const {
        auto joined = std::make_shared<std::vector<u32>>(*pasts.front().seen);
        const std::vector<u32> *last = pasts.front().seen.get();
        for (const Past &past : pasts) {
            if (past.seen.get() == last) continue;
            last = past.seen.get();
            joined->resize(std::max(joined->size(), last->size()), 0);
            for (size_t i = 0; i < last->size(); ++i) (*joined)[i] = std::max((*joined)[i], (*last)[i]);
        }
        for (const Past &past : pasts) {
            u32 *own = &(*joined)[past.thread * stride_];
            own[0] = std::max(own[0], past.time);
            for (u32 m = 1; m < stride_; ++m) own[m] = std::max(own[m], past.fenced[m - 1]);
        }
        return joined;
    }

    // The maximum of a gathered clock and one more past.
    Vector join(const Vector &gathered, const Past &past) const {
        if (gathered == past.seen) return join({past});
        Past more = past;
        more.seen = gathered;
        return join({past, more});
    }

    // A thread takes what has been gathered, and knows an actor up to a number. `gathered`: null if nothing has been.
    void take(u32 thread, const Vector &gathered, u32 actor, u32 number) {
        Vector &own = seen_[thread];
        if (own != last_own_ || gathered != last_gathered_ || actor != last_actor_ || number != last_number_) {
            auto made = std::make_shared<std::vector<u32>>(*own);
            u32 at = actor * stride_;
            made->resize(std::max({made->size(), gathered ? gathered->size() : 0, (size_t)at + stride_}), 0);
            for (size_t i = 0; gathered && i < gathered->size(); ++i) (*made)[i] = std::max((*made)[i], (*gathered)[i]);
            (*made)[at] = std::max((*made)[at], number);
            last_own_ = own, last_gathered_ = gathered, last_actor_ = actor, last_number_ = number;
            last_made_ = made;
        }
        own = last_made_;
    }

    // The same where each warp is one thread.
    void add_warp(const Past &past, std::vector<u32> &to) const {
        u32 warp = past.thread / LANES;
        to.resize(row_, 0);
        for (u32 i = 0; i < row_; ++i) to[i] = std::max(to[i], warp_seen_[warp * row_ + i]);
        to[warp * stride_] = std::max(to[warp * stride_], past.warp_time);
    }
    void take_warp(u32 thread, const std::vector<u32> &gathered) {
        u32 *own = &warp_seen_[thread / LANES * row_];
        for (u32 i = 0; i < gathered.size(); ++i) own[i] = std::max(own[i], gathered[i]);
        taken_[thread / LANES] = true;
    }

    // Whether single lanes of the thread's warp have joined a clock (take_warp).
    bool lanes_take(u32 thread) const { return taken_[thread / LANES]; }

    // Threads take over a joined clock. It covers their own clocks, because they have waited since their own arrivals.
    void acquire(const std::vector<u32> &threads, const Vector &joined) {
        for (u32 thread : threads) seen_[thread] = joined;
    }

    // The same where each warp is one thread.
    void acquire_warps(const std::vector<u32> &threads, const std::vector<Past> &pasts) {
        std::vector<u32> joined(row_, 0);
        u32 done = NOTHING;
        for (const Past &past : pasts) {
            u32 warp = past.thread / LANES;
            joined[warp * stride_] = std::max(joined[warp * stride_], past.warp_time);
            if (warp == done) continue;
            done = warp;
            for (u32 i = 0; i < row_; ++i) joined[i] = std::max(joined[i], warp_seen_[warp * row_ + i]);
        }
        done = NOTHING;
        for (u32 thread : threads) {
            u32 warp = thread / LANES;
            if (warp == done) continue;
            done = warp;
            for (u32 i = 0; i < row_; ++i) warp_seen_[warp * row_ + i] = std::max(warp_seen_[warp * row_ + i], joined[i]);
        }
    }

  private:
    u32 entry(u32 thread, u32 at) const { return at < seen_[thread]->size() ? (*seen_[thread])[at] : 0; }

    void raise_fenced(u32 *entries, size_t size, u32 memories) const {
        for (size_t i = 0; i < size; i += stride_)
            for (u32 m = 0; m < 2; ++m)
                if (memories >> m & 1) entries[i + 1 + m] = std::max(entries[i + 1 + m], entries[i]);
    }

    u32 warps_, stride_, row_, actors_;  // stride: words of an entry; row: words of a warp's clock
    std::vector<u32> time_, warp_time_, warp_seen_, fenced_;  // fenced: up to when a thread's own accesses are behind its proxy fences
    std::vector<bool> taken_;
    std::vector<Vector> seen_;
    // The lanes of a warp mostly take the same: the last result serves them all.
    Vector last_own_, last_gathered_, last_made_, fence_own_, fence_made_;
    u32 last_actor_ = 0, last_number_ = 0, fence_memories_ = 0;
};
