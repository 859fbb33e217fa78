// Bytes that a thread announces by expect-tx without an arrival (SEMANTICS R-M15). Nothing holds the phase for them but an arrival, or the bytes
// of a copy, that comes behind the expect-tx. Without one the phase can end first: then the bytes belong to the next phase.
//
// The phase ends at a moment at which no arrival and no byte lacks. Two such moments are tried: one behind all operations of the phase but
// those that the expect-tx comes before, and one behind the arrivals alone. Other moments would need a search, and are not looked for.
#pragma once

#include <algorithm>
#include <vector>

#include "clocks.hpp"
#include "decisions.hpp"

class LateBytes {
  public:
    struct Expect {
        u32 thread, site, time;
        i32 rest;             // the tx-count behind all operations of the phase so far that the expect-tx does not come before
        u32 arrival, arrived;  // the last arrival that it does not come before: site and thread
        i32 bytes;
    };

    bool any() const { return !expects_.empty(); }

    // `rest`: the tx-count before it.
    void expect(u32 thread, u32 site, u32 time, i32 rest, i32 bytes) { expects_.push_back({thread, site, time, rest, last_site_, last_thread_, bytes}); }

    // An arrival, with the bytes that it announces.
    void arrive(const Clocks &clocks, u32 thread, u32 site, i32 bytes) {
        promised_ += bytes;
        last_site_ = site, last_thread_ = thread;
        if (!any()) return;
        auto behind = [&](const Expect &each) { return is_behind(clocks, thread, each); };
        for (Expect &each : expects_) {
            if (behind(each)) promised_ += each.bytes;
            else each.rest += bytes, each.arrival = site, each.arrived = thread;
        }
        expects_.erase(std::remove_if(expects_.begin(), expects_.end(), behind), expects_.end());
    }

    // More bytes are announced, or a copy brings some (a negative number).
    void transact(const Clocks &clocks, u32 thread, i32 bytes) {
        for (Expect &each : expects_)
            if (!is_behind(clocks, thread, each)) each.rest += bytes;
    }

    // The phase ends. Calls `f` with each expect-tx that can come later.
    template <typename F> void end_phase(F f) {
        for (const Expect &each : expects_)
            if (decided<EXPECT_UNORDERED>(!each.rest || !promised_)) f(each);
        expects_.clear();
        promised_ = 0;
    }

  private:
    static bool is_behind(const Clocks &clocks, u32 thread, const Expect &each) {
        return thread == each.thread || clocks.executed(thread, each.thread) >= each.time;
    }

    std::vector<Expect> expects_;  // of this phase, those that no arrival is behind
    i32 promised_ = 0;             // bytes that are announced before some arrival
    u32 last_site_ = 0, last_thread_ = 0;
};
