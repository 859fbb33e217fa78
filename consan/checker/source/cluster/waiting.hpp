// Where the threads of a launch stand that the host has stopped, and deadlocks among them (R-M7).
//
// A thread that left at a wait has written down the wait that failed. If the replay satisfies no such wait, and each other thread has exited or
// waits too, nobody could go on: only threads of the CTA, or of its cluster, could have let them, and all that they did is in the logs.
// A copy counts as complete where it is issued, so one that was still in flight is no excuse.
//
// A thread that left a loop behind a strong read polls, perhaps: the host decides, which knows the text and the memory (consan/checker/judging/spins.py).
//
// Not claimed: where a thread left another loop, or waits at a warp-synchronous instruction.
#pragma once

#include <vector>

#include "findings.hpp"
#include "shape.hpp"

class Waiting {
  public:
    static constexpr u32 AT_SITE = 1u << 31, CLUSTER = 16;  // instrument/abi/sizes.py: STAND_AT_SITE, CLUSTER_BARRIER

    // `stops`: of the cluster's threads, or null.
    Waiting(const Input &input, const Shape &shape, Findings &findings, Stopped *stops)
        : positions_(input.positions), stops_(stops), shape_(shape), findings_(findings) {}

    // A thread waits at an event: the barrier's finding with its counts.
    void at(u32 thread, Record found, bool mbarrier) {
        note_position(thread, AT_SITE | found.site);
        note(thread, {0, 0, 0, 0, found.site, STOPPED_WAITS, 0});
        found.thread = thread;
        found.threads = 1;
        found.lanes = 1u << thread % LANES;
        found.other_site = mbarrier ? found.place & PLACES : PLACES + 1 + found.number;  // keeps waiters of several barriers apart
        for (Record &each : waiters_) {
            if (each.site != found.site || each.other_site != found.other_site || each.phase != found.phase) continue;
            ++each.threads;
            if (each.thread / LANES == thread / LANES) each.lanes |= found.lanes;
            return;
        }
        waiters_.push_back(found);
    }

    // A thread stands elsewhere: at a line of the PTX, if it has left there. `last`: the strong read that it polls, perhaps.
    void elsewhere(u32 thread, u32 mark, const Stopped &last) {
        bool left = mark >= LEFT && mark < STOP, polls = left && last.kind == STOPPED_POLLS;
        free_ |= !polls;
        note(thread, polls ? last : Stopped{0, 0, 0, 0, 0, STOPPED_FREE, 0});
        if (left) note_position(thread, mark - LEFT);
    }

    // Reports the deadlock that is proven.
    void report() {
        for (Record &each : waiters_) {
            each.kind = &each == &waiters_.front() ? DEADLOCK : WAITER;
            findings_.add(each);
        }
    }

    bool proven() const { return !free_ && !waiters_.empty(); }

  private:
    static constexpr u32 PLACES = (1u << 21) - 1;

    void note_position(u32 thread, u32 place) {
        if (positions_ && shape_.exists(thread)) positions_[thread] = place;
    }

    void note(u32 thread, const Stopped &stop) {
        if (stops_ && shape_.exists(thread)) stops_[thread] = stop;
    }

    u32 *positions_;
    Stopped *stops_;
    const Shape &shape_;
    Findings &findings_;
    std::vector<Record> waiters_;  // the first thread of each place and barrier, with the number of all
    bool free_ = false;            // some thread does not wait
};
