// The milestones of a cluster: rounds of a loop that repeat are replayed once (repeats.hpp), and accesses that are apart (disjoint.hpp) are not.
#pragma once

#include "disjoint.hpp"
#include "repeats.hpp"
#include "states.hpp"

class Milestones : protected States {
  protected:
    Milestones(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : States(input, output, grid, cluster, rules), repeats_(input), wanted_(repeats_.possible() && !grid && !turns_.full() && divergence_.none()),
          looks_ahead_(wanted_ && !repeats_.copies() && !repeats_.products() && !needs_places()), disjoint_(shape_.bytes()) {}

    // All threads that have not exited wait at one barrier, which is complete. `witness`: one of them.
    void pass_milestone(u32 witness) {
        if (wanted_) skip_repeats(witness);
        if (looks_ahead_ && !gave_up_ && !turns_.forced()) skip_disjoint();
    }
    // Lanes have gone on without others.
    void give_up() { gave_up_ = true; }
    bool gave_up() const { return gave_up_; }

  private:
    // All threads that have not exited wait at one barrier, which is complete: leave out what comes again (repeats.hpp).
    void skip_repeats(u32 witness) {
        std::vector<LaneLog> &logs = turns_.logs();
        const std::vector<bool> &gone = turns_.gone();
        for (u32 thread = 0; thread < logs.size(); ++thread)
            if (!gone[thread] && !logs[thread].between()) return;
        if (gave_up_ || turns_.forced() || !barriers_[0].idle()) return;
        Milestone now{};
        for (const LaneLog &each : logs) now.places.push_back(each.place());
        if (!repeats_.may_repeat(now, logs[witness], witness)) return repeats_.keep(std::move(now));
        look(now, witness);
        u64 times = 0;
        const Milestone *then = repeats_.find(now, logs, gone, times);
        if (!then) return repeats_.keep(std::move(now));
        output_.repeats += (u32)times;
        output_.lane_events += (output_.lane_events - then->events) * times;
        findings_.repeat(then->findings, times);
        if (repeats_.copies()) copies_.repeat(then->groups, times);
        if (repeats_.products()) asynchronous_.repeat(then->commits, times, gone, witness);
        for (u32 thread = 0; thread < logs.size(); ++thread) {
            if (!gone[thread]) logs[thread].skip((now.places[thread] - then->places[thread]) * times);
            now.places[thread] = logs[thread].place();
        }
        look(now, witness);
        repeats_.keep_only(std::move(now));
    }

    // All threads that have not exited wait at one barrier, which is complete: if all do nothing but access shared memory until they exit, or come to another
    // barrier for all, and no thread accesses what another one writes, none of these accesses races. Those before the first event of another kind are not
    // replayed: what they read is known to be initialised, so nothing depends on them but what they initialise.
    void skip_disjoint() {
        u64 events = 0, in_vain = 0;
        bool disjoint = look_ahead<false>(events);
        if (!disjoint && met_store_) in_vain = std::exchange(events, 0), disjoint = look_ahead<true>(events);
        if (!disjoint) {
            in_vain_ += in_vain + events;
            looks_ahead_ = in_vain_ <= MOST_IN_VAIN + passed_;
            return;
        }
        passed_ += events, output_.lane_events += events;
        output_.passed = (u32)std::min<u64>(passed_, ~0u);
        for (const Access &store : stores_) initialised_.add(store);
        for (u32 thread = 0; thread < shape_.threads(); ++thread) {
            if (turns_.gone()[thread] || !shape_.exists(thread)) continue;
            barriers_[0].touch(thread);
            turns_.go_to(thread, ahead_[thread]);
        }
    }

    // Whether all accesses are apart until all threads exit, or come to another barrier. `STORES`: else the first store ends the look, and no access is noted.
    template <bool STORES> bool look_ahead(u64 &events) {
        u32 ends[2] = {0, 0};  // threads that exit, that come to a barrier
        ahead_.clear(), stores_.clear(), met_store_ = false;
        if (STORES) disjoint_.begin();
        for (u32 thread = 0; thread < shape_.threads(); ++thread) {
            ahead_.push_back(turns_.logs()[thread]);
            if (turns_.gone()[thread] || !shape_.exists(thread)) continue;
            LaneLog::State state = pass<STORES>(thread, ahead_.back(), events);
            size_t left_out = stores_.size();
            LaneLog rest = ahead_.back();
            for (u64 more = 0; state == LaneLog::EVENT && is_of_lanes(rest.event());) state = pass<STORES>(thread, rest, more);
            stores_.resize(left_out);
            bool barrier = state == LaneLog::EVENT && is_for_all(rest);
            ++ends[barrier];
            if ((ends[0] && ends[1]) || !(barrier || state == LaneLog::FINISHED) || turns_.halts()) return false;
        }
        return true;
    }

    // Read a thread's log past its accesses, and count them. Returns what comes then.
    template <bool STORES> LaneLog::State pass(u32 thread, LaneLog &log, u64 &events) {
        for (;; ++events) {
            LaneLog::State state = log.next();
            if (state != LaneLog::EVENT) return state;
            i32 kind = log.event().kind;
            if (kind == GLOBAL_READ || kind == GLOBAL_WRITE) continue;
            if (log.event().flags & STRONG || (kind != READ && kind != WRITE)) return state;
            met_store_ |= kind == WRITE;
            if (kind == READ ? !passes<STORES>(thread, effects::Read(log), false) : !STORES || !passes<STORES>(thread, effects::Write(log), true))
                return LaneLog::STOPPED;
        }
    }

    // Whether an access is apart from those so far, and what it reads is initialised.
    template <bool STORES, typename E> bool passes(u32 thread, const E &access, bool writes) {
        u32 offset = place(thread, access), bytes = access.bytes();
        if (thread % LANES >= access.lanes()) return true;
        if (!shape_.holds(offset, bytes) || (STORES && !disjoint_.add(thread, offset, bytes, access.row(), writes))) return false;
        if (!writes) return initialised_.holds(offset, bytes) || (STORES && is_stored(offset, bytes));
        Access store{};
        store.thread = thread, store.offset = offset, store.bytes = bytes, store.writes = true;
        stores_.push_back(store);
        return true;
    }

    // Whether bytes are initialised, with what the thread has stored since the barrier.
    bool is_stored(u32 offset, u32 bytes) const {
        for (u32 cell = offset / 4, end = (offset + bytes + 3) / 4; cell < end; ++cell)
            if (Races::mask_of(offset, bytes, cell) & ~(initialised_.written(cell) | disjoint_.written(cell))) return false;
        return true;
    }

    // Whether an event is of the lanes of a warp among each other.
    static bool is_of_lanes(const Event &event) { return event.kind == POINT_REACHED || event.kind == JOIN_PASSED || event.kind == WARP_SYNC; }

    static bool is_for_all(const LaneLog &log) {
        if (log.event().kind != CTA_BARRIER) return false;
        effects::CtaBarrier barrier(log);
        return !barrier.warpgroup() && barrier.waits() && barrier.id() == 0 && barrier.threads() == NOTHING;
    }

    // What there is at a milestone. `witness`: one of the threads that wait. They all know the same.
    void look(Milestone &now, u32 witness) const {
        now.state = {turns_.exited(), initialised_.version(), barriers_[0].calls().conflicts()};
        now.findings = findings_.counts(), now.events = output_.lane_events;
        seals_.state(now.state);
        if (repeats_.copies()) copies_.state(now.state), now.groups = copies_.groups();
        if (repeats_.products()) asynchronous_.state(now.state, witness), now.commits = asynchronous_.commits();
    }

    Repeats repeats_;
    static constexpr u64 MOST_IN_VAIN = 1 << 14;  // events that were looked at ahead, and are replayed all the same
    bool wanted_, looks_ahead_, gave_up_ = false;
    u64 in_vain_ = 0, passed_ = 0;
    bool met_store_ = false;
    std::vector<LaneLog> ahead_;
    std::vector<Access> stores_;  // that are left out
    Disjoint disjoint_;
};
