// The arrivals of one turn at an mbarrier (SEMANTICS R-M3). By 9.7.13.15.4 who arrives in a phase comes behind a wait for the phase before it. An
// arrival of another thread than those of that phase, which knows no more of the phases than they did, belongs to their turn: the phase
// was over too soon, and the count is too small.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "types.hpp"

class SameTurn {
  public:
    // `known`: the phases that the thread has observed, in the order of execution. `source`: the number of its place in the source.
    void arrive(u32 thread, u32 site, u32 source, u32 known, u32 phase, u32 count) {
        auto [own, is_new] = last_of_.try_emplace(thread, Last{phase + 1, source, 0});
        u32 most = std::max(own->second.count, count);
        weight_ += most - own->second.count;
        bool again = !is_new && own->second.phase == phase + 1;
        bool of_last = phase && last_.alike && last_.known == known && (is_new || own->second.phase != phase);
        repeats_ = again && own->second.source == source;
        if (of_last && !exceeded_) exceeded_ = true, site_ = site, thread_ = thread;
        now_ = {known, now_.any ? now_.alike && now_.known == known && !again : true, true};
        own->second = {phase + 1, source, most};
    }
    // Whether the last arrival was one more of its thread in one phase, from the same place: the thread goes on without a wait.
    bool repeats() const { return repeats_; }
    void end_phase() { last_ = now_, now_ = {}; }
    void drop() { dropped_ = true; }
    // A thread goes on without a wait: the count may be right.
    void lap() { lapped_ = true; }

    // Whether an arrival belonged to the turn of the phase before. A count that has room for all threads that ever arrive is right.
    bool exceeded(u32 expected) const { return exceeded_ && !dropped_ && !lapped_ && !covers(expected); }
    bool covers(u32 expected) const { return weight_ <= expected && !dropped_; }
    u32 site() const { return site_; }
    u32 thread() const { return thread_; }

  private:
    // The arrivals of a phase: what they knew, and whether that was the same, each of another thread.
    struct Arrivals {
        u32 known = 0;
        bool alike = false, any = false;
    };
    Arrivals last_, now_;
    struct Last {
        u32 phase, source;  // the phase is counted from 1
        u32 count;          // the largest of its arrivals
    };
    std::unordered_map<u32, Last> last_of_;  // the last arrival of each thread
    u32 site_ = 0, thread_ = 0, weight_ = 0;
    bool exceeded_ = false, dropped_ = false, repeats_ = false, lapped_ = false;
};
