// The barrier of a cluster (ISA "barrier.cluster"): all threads of all its CTAs that have not exited arrive once in a phase. A launch without
// clusters has one CTA in each. A wait without an arrival since the last one is for the phase that its own thread holds up.
#pragma once

#include "scopes.hpp"

class ClusterBarrier {
  public:
    ClusterBarrier(const Shape &shape, Clocks &clocks, Scopes &scopes)
        : clocks_(clocks), scopes_(scopes), live_(shape.threads()), arrived_(shape.threads()), turn_(shape.threads(), 0), waited_(shape.threads(), 0) {
        for (u32 thread = 0; thread < shape.threads(); ++thread) living_ += live_[thread] = shape.exists(thread);
    }

    // Whether a thread has arrived in this phase: it may do so only once ("barrier.cluster": "Each thread must arrive at the barrier only once").
    bool has_arrived(u32 thread) const { return arrived_[thread]; }

    // Returns whether the thread continues at once. Else it does so with the rest of its warp: where each warp is one thread (R-W1), what
    // it does next is behind the arrival of the warp.
    bool arrive(u32 thread, bool relaxed, std::vector<u32> &released) {
        if (relaxed) scopes_.release(thread, false, true, given_);
        else pasts_.push_back(clocks_.release(thread));
        turn_[thread] = phase_ + 1;
        coming_ += !arrived_[thread];
        arrived_[thread] = true;
        bool whole = whole_warp(thread);
        if (whole) publish(thread / LANES), pass(thread / LANES, released);
        else passing_.push_back(thread);
        settle(released);
        return whole;
    }

    // Nobody else can continue: lanes go on without the rest of their warps.
    void part(std::vector<u32> &released) {
        for (u32 thread : passing_) publish(thread / LANES);
        released.insert(released.end(), passing_.begin(), passing_.end());
        passing_.clear();
    }

    // Returns whether the thread continues at once.
    bool wait(u32 thread) {
        waited_[thread] = std::max(turn_[thread], waited_[thread] + 1);
        if (waited_[thread] > phase_) {
            waiting_.push_back(thread);
            return false;
        }
        let_go(thread);
        return true;
    }

    // The threads that wait for a phase in which they have not arrived: while they live, it does not complete.
    std::vector<u32> unarrived() const {
        std::vector<u32> found;
        std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(found), [&](u32 thread) { return turn_[thread] < waited_[thread]; });
        return found;
    }

    void exit(u32 thread, std::vector<u32> &released) {
        live_[thread] = false, --living_;
        coming_ -= arrived_[thread], arrived_[thread] = false;
        if (whole_warp(thread) && pass(thread / LANES, released)) publish(thread / LANES);
        settle(released);
    }

  private:
    bool whole_warp(u32 thread) const {
        u32 first = thread / LANES * LANES, last = std::min(first + LANES, (u32)live_.size());
        for (u32 lane = first; lane < last; ++lane)
            if (live_[lane] && !arrived_[lane]) return false;
        return true;
    }

    // The last arrival of a warp is what it publishes where each warp is one thread.
    void publish(u32 warp) {
        if (const Past *last = last_of_warp(pasts_, warp * LANES)) clocks_.add_warp(*last, coming_warps_);
    }

    // Returns whether lanes of the warp have waited for the rest of it.
    bool pass(u32 warp, std::vector<u32> &released) {
        auto others = std::stable_partition(passing_.begin(), passing_.end(), [&](u32 thread) { return thread / LANES != warp; });
        released.insert(released.end(), others, passing_.end());
        bool any = others != passing_.end();
        passing_.erase(others, passing_.end());
        return any;
    }

    void settle(std::vector<u32> &released) {
        if (!coming_ || coming_ < living_) return;
        ++phase_, coming_ = 0;
        std::fill(arrived_.begin(), arrived_.end(), false);
        done_ = pasts_.empty() ? Joined{} : clocks_.join(pasts_);
        warps_ = std::move(coming_warps_), coming_warps_ = {};
        pasts_.clear();
        fenced_ = std::move(given_), given_ = Given();
        std::vector<u32> waiting;
        waiting.swap(waiting_);
        for (u32 thread : waiting) let_go(thread);
        released.insert(released.end(), waiting.begin(), waiting.end());
    }

    void let_go(u32 thread) {
        if (decided<Edge::CLUSTER_BARRIER>()) clocks_.take(thread, done_.seen);
        clocks_.take_executed(thread, done_.executed);
        clocks_.take_warp(thread, warps_);
        scopes_.take(thread, fenced_, true, true, NOTHING, 0);
    }

    Clocks &clocks_;
    Scopes &scopes_;
    std::vector<bool> live_, arrived_;
    std::vector<u32> turn_, waited_;  // the phases of a thread's last arrival and of its last wait, from 1
    u32 phase_ = 0, living_ = 0, coming_ = 0;  // phases completed; threads that live, and that have arrived
    std::vector<Past> pasts_;
    Given given_, fenced_;  // by relaxed arrivals: in this phase and in the last one
    Joined done_;
    std::vector<u32> warps_, coming_warps_;  // what warps have published, each as one thread: in the last phase and in this one
    std::vector<u32> waiting_, passing_;
};
