// Replays the histories of one CTA, or of all CTAs of a cluster together: each thread does what its log says, and waits where it waited.
// Written from instrument/SEMANTICS.md.
#include "rules.hpp"
#include "waiting.hpp"
#include "expansion.hpp"

namespace {

class Replay : Rules {
  public:
    // `grid`: the replay is part of that of a whole launch, as one of its clusters.
    Replay(const Input &input, Output &output, Grid *grid = nullptr, u32 cluster = 0)
        : Rules(input, output, grid, cluster), waiting_(input, shape_, findings_, part_.stops()) {}

    void run() {
        while (advance() || unhold() || go_on()) {}
        end();
    }

    // Continue until no thread can. Returns whether one could.
    bool advance() {
        bool any = false;
        turns_.set_ready(part_.awake());
        while (output_.status == OK && !turns_.undefined() && !turns_.halts() && turns_.next()) any = true;
        return any;
    }

    bool unhold() { return turns_.unhold(); }

    // The same after nobody else can. What a thread waits for may come behind the place where a log was cut.
    bool go_on() { return output_.status == OK && !turns_.undefined() && !is_cut() && unpark(); }

    // A thread that waits for a write which never comes goes on.
    bool force() {
        u32 thread = part_.forced();
        if (thread != NOTHING) turns_.set_ready(thread);
        return thread != NOTHING;
    }

    void end() {
        if (output_.status == OK && is_cut()) output_.status = FULL;
        if (output_.status == OK && !turns_.undefined()) settle();
        if (output_.status != FULL && output_.status != HALTED) initialised_.finish();
        for (Barriers &each : barriers_) each.finish();
        findings_.each([this](Record &found) { issuers_.settle(found); });
        if (output_.status == OK && turns_.undefined()) output_.status = UNDEFINED;
        if (output_.status == OK && seals_.failed(findings_.count() > 0)) output_.status = SEAL_FAILED;
        if (findings_.overflow()) output_.status = TOO_MANY;
        output_.records = findings_.count();
        output_.by_address |= races_.by_value() * BY_VALUE;
    }

  private:
    // Whether a log ran out of room, and its thread has come there; of a launch whose clusters go on together: whether one did anywhere.
    bool is_cut() const { return turns_.cut() || part_.is_cut(); }

    // No other thread can continue: threads parked at an mbarrier that is never initialised use it now (R-M1). Returns whether there are any.
    bool unpark() {
        std::vector<u32> parted = convergence_.give_up();  // their divergence has been reported
        if (!parted.empty()) give_up();
        cluster_barrier_.part(parted);
        turns_.set_ready(parted);
        return !parted.empty() || turns_.force_parked() || end_exceeded() || pass_unarrived();
    }

    bool end_exceeded() {
        std::vector<u32> released;
        mbarriers_.end_exceeded(released);
        turns_.set_ready(released);
        return !released.empty();
    }

    // No other thread can continue: a chip has let threads pass a barrier.cluster.wait without an arrival (R-CL2). What comes behind is undefined.
    bool pass_unarrived() {
        for (u32 thread : cluster_barrier_.unarrived()) {
            LaneLog &log = turns_.logs()[thread];
            if (log.is_last()) continue;
            misuse(thread, (u32)log.event().site, NOT_ARRIVED);
            turns_.end_undefined();
        }
        return turns_.undefined();
    }

    // No thread can continue. If the launch ended, all threads have exited.
    void settle() {
        output_.overtaken = mbarriers_.overtaken();
        if (turns_.exited() == input_.ctas * input_.threads) {
            lifetimes_.finish();
            mbarriers_.finish(findings_.count() > 0);
            asynchronous_.finish();
            return tensor_.finish();
        }
        output_.status = STUCK;
        output_.stuck_lane = turns_.exited();
        mbarriers_.stick();
        if (!input_.closed) return;
        for (u32 thread = 0; thread < shape_.threads(); ++thread) {
            if (!shape_.exists(thread) || turns_.gone()[thread]) continue;
            note_position(thread);
            if (passed_a_failed_wait(thread)) mbarriers_.failed_there(thread);
        }
        output_.proven = !gave_up() && waiting_.proven();
        if (output_.proven) waiting_.report();
    }

    // Whether the last event of a thread is a wait that ended here. If the thread left at it, the wait had failed in the launch.
    bool passed_a_failed_wait(u32 thread) {
        LaneLog &log = turns_.logs()[thread];
        return turns_.stopped(thread) && log.has_event() && log.is_last() && log.event().kind == MBARRIER_WAIT;
    }

    // Where a thread stands that cannot continue.
    void note_position(u32 thread) {
        LaneLog &log = turns_.logs()[thread];
        Record found{};
        bool waits = !turns_.stopped(thread) && log.is_last(), mbarrier = false;
        if (waits) {
            const Event &event = log.event();
            found.site = (u32)event.site;
            if (event.kind == CTA_BARRIER) barriers(thread).describe(found, effects::CtaBarrier(log).id());
            else if (event.kind == CLUSTER_BARRIER_WAIT) found.number = Waiting::CLUSTER;
            else waits = mbarrier = event.kind == MBARRIER_WAIT && mbarriers_.awaited(found, place(thread, effects::MbarrierWait(log)), thread);
            found.offset = mbarrier ? place(thread, effects::MbarrierWait(log)) : 0;
            found.bytes = mbarrier ? 8 : 0;
        }
        if (waits) waiting_.at(thread, found, mbarrier);
        else waiting_.elsewhere(thread, log.following(), turns_.stopped(thread) && log.has_event() ? part_.polled(thread, log.event()) : Stopped{});
    }

    Waiting waiting_;
};

#include "launch.hpp"
#include "sweep.hpp"

}  // namespace

extern "C" void consan_replay_launch(const GridInput *input, GridOutput *output) {
    *output = GridOutput{};
    LaunchReplay(*input, *output).run();
}

extern "C" void consan_replay(const Input *input, Output *output) {
    *output = Output{};
    Replay(*input, *output).run();
}

extern "C" void consan_sweep(const SweepInput *input) { Sweep(*input).run(); }

extern "C" u32 consan_expand(const Expansion *given) { return expand(*given); }
