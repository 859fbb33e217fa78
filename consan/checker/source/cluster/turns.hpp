// Which thread of a cluster goes on next: its threads take turns.
//
// The first warp that can continue runs until it cannot (in the other order: the last one). Both orders are legal, and the findings of both
// are united, so a finding does not depend on the order of one run.
//
// `Rules` does what an event says: handle(thread, log, released) returns whether the thread continues at once, exit(thread, released).
// waits(thread, event): whom a thread that does not continue keeps from going on; begun(thread): whether it is in the midst of an access.
// `released`: threads that wait no longer. Lanes that arrive at an mbarrier wait for each other: arriving(warp), arrive_together(warp).
#pragma once

#include <vector>

#include "holds.hpp"
#include "log.hpp"
#include "shape.hpp"

template <typename Rules> class Turns {
  public:
    // `together`: the lanes of a warp run together. `places`: where each thread is in the text matters (holds.hpp, catch_up).
    Turns(const Input &input, Output &output, const Shape &shape, bool together, bool places, Rules &rules)
        : input_(input), output_(output), rules_(rules), together_(together), places_(places), holds_(shape, input.ctas), last_(shape.threads(), nullptr),
          rounds_(shape.threads(), 0), ready_(shape.warps(), 0), again_(shape.threads(), false), stopped_(shape.threads(), false),
          gone_(shape.threads(), false) {
        for (u32 thread = 0; thread < shape.threads(); ++thread) {
            logs_.push_back(shape.exists(thread) ? LaneLog(input, thread) : LaneLog());
            if (!shape.exists(thread)) continue;
            set_ready(thread);
            full_ |= logs_.back().full();
        }
    }

    // Run some thread until it waits. Returns whether one can continue.
    bool next() { return together_ ? next_together() : next_alone(); }

    void set_ready(u32 thread) {
        ready_[thread / LANES] |= 1u << thread % LANES;
        if (!holds_.any()) return;
        for (u32 each : holds_.go(thread)) set_ready(each);
    }
    void set_ready(const std::vector<u32> &threads) {
        for (u32 each : threads) set_ready(each);
    }

    // Nobody else can continue: threads that stand still because another one waits go on. Returns whether there are any.
    bool unhold() {
        std::vector<u32> held = holds_.release();
        set_ready(held);
        return !held.empty();
    }

    // A thread goes on with the event of another place of its log, or to its exit if there is none.
    void go_to(u32 thread, const LaneLog &log) { logs_[thread] = log, again_[thread] = !log.is_over(); }

    // A thread waits before an event, which is handled again when others have gone on. Returns that it does not continue.
    bool park(u32 thread) {
        parked_.push_back(thread);
        return wait_before(thread);
    }
    // The same; somebody else lets it go on.
    bool wait_before(u32 thread) {
        again_[thread] = true;
        return false;
    }
    void release_parked(std::vector<u32> &released) {
        released.insert(released.end(), parked_.begin(), parked_.end());
        parked_.clear();
    }
    // Nobody else can continue: the threads that are parked no longer wait, nor does anybody from now on. Returns whether there are any.
    bool force_parked() {
        if (parked_.empty()) return false;
        forced_ = true;
        set_ready(parked_);
        parked_.clear();
        return true;
    }
    bool forced() const { return forced_; }

    // Before a thread releases: the other lanes of its warp do what comes before that in the text, as on a chip. Where each warp is one
    // thread (R-W1), the release covers it. Lanes that run together are as far already.
    void catch_up(u32 thread, std::vector<u32> &released) {
        if (together_) return;
        set_ready(released);
        released.clear();
        const Event *limit = &logs_[thread].event();
        u32 &ready = ready_[thread / LANES];
        for (u32 lanes = ready; lanes; lanes &= lanes - 1) {
            if (!(ready & lanes & -lanes)) continue;
            ready &= ~(lanes & -lanes);
            step(thread / LANES * LANES + (u32)__builtin_ctz(lanes), limit, rounds_[thread] + comes_again(thread));
        }
        released.clear();
    }

    // The behaviour is undefined from here on.
    void end_undefined() { undefined_ = true; }
    bool undefined() const { return undefined_; }

    // Whether the host has ended the replay.
    bool halts() {
        if (is_halted(input_)) output_.status = HALTED;
        return output_.status == HALTED;
    }

    std::vector<LaneLog> &logs() { return logs_; }
    const std::vector<bool> &gone() const { return gone_; }
    bool stopped(u32 thread) const { return stopped_[thread]; }
    u32 exited() const { return exited_; }
    // Whether some log ran out of room; whether a thread has come to the end of one.
    bool full() const { return full_; }
    bool cut() const { return cut_; }

  private:
    u32 nth_warp(u32 i) const { return input_.descending ? (u32)ready_.size() - 1 - i : i; }

    // Run the first lane that can continue, in the first such warp of this replay's order. Returns whether there is one.
    bool next_alone() {
        for (u32 i = 0; i < ready_.size(); ++i) {
            u32 warp = nth_warp(i);
            if (!ready_[warp] && rules_.arriving(warp)) rules_.arrive_together(warp);
            if (!ready_[warp]) continue;
            u32 lane = (u32)__builtin_ctz(ready_[warp]);
            ready_[warp] &= ready_[warp] - 1;
            step(warp * LANES + lane);
            return true;
        }
        return false;
    }

    // The same where it matters when a copy or a product is issued: the lanes of a warp run together, as on a chip. Those whose next event
    // is the first in the text execute it.
    bool next_together() {
        for (u32 i = 0; i < ready_.size(); ++i) {
            u32 warp = nth_warp(i), now = ready_[warp];
            if (!now && !rules_.arriving(warp)) continue;
            const Event *first = first_of(warp);
            const Event *arriving = rules_.arriving(warp);
            if (arriving && !(first && first <= arriving)) rules_.arrive_together(warp);
            else
                for (now = first ? ready_[warp] : 0; now; now &= now - 1) step_at(first, warp * LANES + (u32)__builtin_ctz(now));
            return true;
        }
        return false;
    }

    // The event that the lanes of a warp execute next: the first in the text, but not of a next iteration where an elected lane has not ended this one.
    const Event *first_of(u32 warp) {
        const Event *first = nullptr, *last = nullptr;
        bool again = false;
        for (u32 now = ready_[warp]; now; now &= now - 1) {
            u32 thread = warp * LANES + (u32)__builtin_ctz(now);
            if (!fetch(thread) || (holds_.any() && stands_still(thread))) continue;
            const Event *event = &logs_[thread].event();
            first = first ? std::min(first, event) : event, last = std::max(last, event);
            again |= comes_again(thread);
        }
        if (first == last || !again) return first;
        first = nullptr;
        for (u32 now = ready_[warp]; now; now &= now - 1) {
            u32 thread = warp * LANES + (u32)__builtin_ctz(now);
            const Event *event = &logs_[thread].event();
            if (first && event >= first) continue;
            if (event == last || !comes_again(thread) || coming_.to(last, thread, logs_[thread])) first = event;
        }
        return first;
    }

    // Whether a thread has come round a loop to its event.
    bool comes_again(u32 thread) const { return &logs_[thread].event() <= last_[thread]; }

    // A thread has handled an event.
    void note(u32 thread, const Event *event, bool goes_on) {
        if (!places_) return;
        if (!again_[thread]) rounds_[thread] += event <= last_[thread], last_[thread] = event;
        Holder group = goes_on ? Holder::NOBODY : rules_.waits(thread, *event);
        if (group != Holder::NOBODY) holds_.wait(thread, event, group == Holder::CTA);
    }

    // Whether a thread stands still before its event (holds.hpp).
    bool stands_still(u32 thread) {
        auto again = [&](const Event *event) { return comes_again(thread) && !coming_.to(event, thread, logs_[thread]); };
        if (rules_.begun(thread) || !holds_.holds(thread, &logs_[thread].event(), again)) return false;
        again_[thread] = true;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        return true;
    }

    // Read a thread's next event. Returns whether it has one.
    bool fetch(u32 thread) {
        if (again_[thread]) return true;
        LaneLog::State state = logs_[thread].next();
        if (state == LaneLog::EVENT) return again_[thread] = true;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        released_.clear();
        finish(thread, state, released_);
        set_ready(released_);
        return false;
    }

    void step_at(const Event *first, u32 thread) {
        if (!again_[thread] || &logs_[thread].event() != first || undefined_) return;
        again_[thread] = false;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        ++output_.lane_events;
        released_.clear();
        bool goes_on = rules_.handle(thread, logs_[thread], released_);
        note(thread, first, goes_on);
        if (goes_on) set_ready(thread);
        set_ready(released_);
    }

    // Run a thread until it waits or has exited. `limit`: only up to that place in the text, and not round a loop more often than `iterations`.
    void step(u32 thread, const Event *limit = nullptr, u32 iterations = 0) {
        LaneLog &log = logs_[thread];
        std::vector<u32> &released = released_;
        released.clear();
        for (bool again = again_[thread];; again = false) {
            if (again) again_[thread] = false;
            LaneLog::State state = again ? LaneLog::EVENT : log.next();
            if (state != LaneLog::EVENT) {
                finish(thread, state, released);
                break;
            }
            if (limit && (&log.event() >= limit || rounds_[thread] + comes_again(thread) > iterations)) {
                again_[thread] = true;
                set_ready(thread);
                break;
            }
            if (holds_.any() && stands_still(thread)) break;
            ++output_.lane_events;
            bool goes_on = rules_.handle(thread, log, released);
            note(thread, &log.event(), goes_on);
            if (!goes_on || undefined_) break;
            if (output_.lane_events % LOOK_EVERY == 0 && halts()) break;
        }
        set_ready(released);
    }

    // A thread's log has no further event.
    void finish(u32 thread, LaneLog::State state, std::vector<u32> &released) {
        if (state == LaneLog::BROKEN) output_.status = CORRUPT;
        cut_ |= state == LaneLog::CUT;
        stopped_[thread] = state == LaneLog::STOPPED;
        if (state != LaneLog::FINISHED) return;
        ++exited_;
        gone_[thread] = true;
        rules_.exit(thread, released);
    }

    static constexpr u32 LOOK_EVERY = 4096;  // events
    const Input &input_;
    Output &output_;
    Rules &rules_;
    bool together_, places_;
    Holds holds_;
    Coming coming_;
    std::vector<const Event *> last_;  // that each thread has executed
    std::vector<u32> rounds_;          // by thread: how often it has come round a loop
    std::vector<LaneLog> logs_;
    std::vector<u32> ready_;            // lanes that can continue, by warp
    std::vector<u8> again_;             // threads whose event is to be handled again
    std::vector<bool> stopped_, gone_;  // by thread: its log has ended before it exited; it has exited
    std::vector<u32> parked_, released_;
    u32 exited_ = 0;
    bool forced_ = false, undefined_ = false, full_ = false, cut_ = false;
};
