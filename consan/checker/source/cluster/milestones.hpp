// Rounds of a loop that repeat are replayed once (repeats.hpp): what a milestone is in the state of a cluster.
#pragma once

#include "repeats.hpp"
#include "states.hpp"

class Milestones : protected States {
  protected:
    Milestones(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : States(input, output, grid, cluster, rules), repeats_(input), wanted_(repeats_.possible() && !grid && !turns_.full() && divergence_.none()) {}

    // All threads that have not exited wait at one barrier, which is complete. `witness`: one of them.
    void pass_milestone(u32 witness) {
        if (wanted_) skip_repeats(witness);
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

    // What there is at a milestone. `witness`: one of the threads that wait. They all know the same.
    void look(Milestone &now, u32 witness) const {
        now.state = {turns_.exited(), initialised_.version(), barriers_[0].calls().conflicts()};
        now.findings = findings_.counts(), now.events = output_.lane_events;
        seals_.state(now.state);
        if (repeats_.copies()) copies_.state(now.state), now.groups = copies_.groups();
        if (repeats_.products()) asynchronous_.state(now.state, witness), now.commits = asynchronous_.commits();
    }

    Repeats repeats_;
    bool wanted_, gave_up_ = false;
};
