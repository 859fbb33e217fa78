// Which rule an event goes to.
#pragma once

#include "repeats.hpp"
#include "states.hpp"
#include "turns.hpp"

class Rules : protected States {
    friend class Turns<Rules>;

  protected:
    Rules(const Input &input, Output &output, Grid *grid, u32 unit)
        : States(input, grid, unit), output_(output), turns_(input, output, shape_, asynchronous_events_, needs_places(), *this), repeats_(input),
          arrivals_(shape_.warps()), points_(shape_.threads(), 0), looked_(shape_.threads(), 0) {
        repeats_wanted_ = repeats_.possible() && !grid && !turns_.full() && divergence_.none();
    }

    void exit(u32 thread, std::vector<u32> &released) {
        copies_.exit(thread);
        seals_.exit(thread);
        meetings_.exit(thread, released);
        barriers(thread).exit(thread, released);
        warp_barriers_.exit(thread, released);
        cluster_barrier_.exit(thread, released);
    }

    static bool releases(i32 kind) { return kind == MBARRIER_ARRIVE || kind == BARRIER || kind == CLUSTER_ARRIVE; }
    static bool is_of_mbarriers(i32 kind) { return kind >= MBARRIER_INIT && kind <= MBARRIER_COPIES; }
    static bool is_operation(i32 kind) { return Asynchronous::is_one(kind) || kind == LAUNCH_ANSWER || kind == LAUNCH_USE; }

    // Who stands still while a thread waits at an event (holds.hpp).
    Holder waits(u32 thread, const Event &event) const {
        if (event.kind == OBSERVE) return part_.in_shared_memory(thread) ? Holder::WARP : Holder::CTA;
        bool mbarrier = event.kind == MBARRIER_WAIT || event.kind == MBARRIER_ARRIVE || event.kind == MBARRIER_COPIES;
        return mbarrier ? Holder::WARP : Holder::NOBODY;
    }
    bool begun(u32 thread) const { return part_.begun(thread); }

    // Returns whether the thread continues at once.
    bool handle(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        if (releases(event.kind) && !turns_.forced() && !asynchronous_.together(thread)) return turns_.park(thread);
        switch (event.kind) {
        case READ:
        case WRITE:
        case FILL:
        case ATOMIC: access(thread, log); return true;
        case COPY:
            part_.copy(thread, log, asynchronous_);
            copy(thread, log);
            return true;
        case COPY_COMMIT: copies_.commit(thread); return true;
        case COPY_WAIT:
            barriers(thread).touch(thread);
            copies_.wait(thread, log.a());
            return true;
        case POINT: return point(thread, log, released);
        case JOIN:
            if (divergence_.ends_at_join(thread, (u32)event.site)) turns_.end_undefined();
            return true;
        case BARRIER: return barrier(thread, log, released);
        case CLUSTER_ARRIVE:
            if (cluster_barrier_.has_arrived(thread)) return misuse(thread, (u32)event.site, ARRIVED_TWICE), true;
            return cluster_barrier_.arrive(thread, event.flags & RELAXED, released);
        case CLUSTER_WAIT: return cluster_barrier_.wait(thread);
        case WARP_BARRIER:
            if (!(log.a() >> thread % LANES & 1)) return misuse(thread, (u32)event.site, NOT_IN_MASK), true;
            warp_barriers_.arrive(thread, log.a(), released);
            return false;
        case INITS_FENCE: mbarriers_.fence_inits(thread); return true;
        default:
            if (is_of_mbarriers(event.kind)) return mbarrier(thread, log, released);
            if (TensorMemory::takes(event)) return tensor(thread, log, released);
            return is_operation(event.kind) ? operation(thread, log, released) : in_global_memory(thread, log, released);
        }
    }

    bool in_global_memory(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        switch (event.kind) {
        case OBSERVE: return part_.observe(thread, [&] { look(thread, log); }) || turns_.wait_before(thread);
        case PUBLISH:
            if (event.offset & GIVES) turns_.catch_up(thread, released);
            return part_.publish(thread);
        case GRID_WAIT: return part_.grid_wait(thread);
        case FENCE:
            if (event.offset & GIVES) turns_.catch_up(thread, released);
            scopes_.fence(thread, event.flags & ACQUIRES, event.flags & RELEASES, !(event.flags & NARROW));
            return part_.fence(thread, event);
        case MAP_FENCE: part_.fence_map(thread, log); return true;
        case GLOBAL_WRITE:
            if (event.flags & RELEASES && thread % LANES) return true;  // the first lane writes the map that a warp copies
            [[fallthrough]];
        case GLOBAL_READ:
            if (event.flags & IGNORED) return true;
            part_.access(thread, log);
            if (event.flags & RELEASES) part_.fence_map(thread, log);
            return true;
        default: return true;
        }
    }

    bool operation(u32 thread, LaneLog &log, std::vector<u32> &released) {
        i32 kind = log.event().kind;
        bool waits = kind == BULK_LOAD || kind == TENSOR_LOAD || kind == STORE_ASYNC || kind == BULK_PUSH || kind == LAUNCH_REQUEST;
        if (waits && !turns_.forced() && !asynchronous_.ready(thread, log)) return turns_.park(thread);
        barriers(thread).touch(thread);
        part_.copy(thread, log, asynchronous_);
        output_.by_address |= asynchronous_.handle(thread, log, released);
        if (kind == PRODUCT_COMMIT) turns_.release_parked(released);
        return true;
    }

    bool point(u32 thread, LaneLog &log, std::vector<u32> &released) {
        if (Divergence::lacks(log.event().flags, log.a(), thread)) {
            ++points_[thread];
            return true;
        }
        if (divergence_.ends_at_point(thread, points_[thread]++)) turns_.end_undefined();
        meetings_.arrive(thread, log.a(), released);
        return false;
    }

    bool barrier(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        if (event.flags & WARPGROUP) {
            u32 id = MOST_BARRIERS + thread % shape_.cta_threads() / WARPGROUP_THREADS;
            barriers(thread).arrive({thread, id, WARPGROUP_THREADS, (u32)event.site, true, 0}, released);
            return false;
        }
        if (Reason why = Barriers::out_of_range(log.a(), log.b())) return misuse(thread, (u32)event.site, why, log.a()), true;
        if (log.a() == 0 && log.b() == NOTHING) seals_.arrive(thread, event.flags & SEAL, copies_.waited(thread));
        u32 forgets = barriers(thread).forgets();
        barriers(thread).arrive({thread, log.a(), log.b(), (u32)event.site, (event.flags & WAITS) != 0, (u32)event.c}, released);
        if (barriers(thread).forgets() == forgets) return false;
        part_.pass_barrier();
        if (repeats_wanted_) skip_repeats(thread);
        return false;
    }

    bool tensor(u32 thread, LaneLog &log, std::vector<u32> &released) {
        bool waits = log.event().kind == TENSOR_COMMIT ? !mbarriers_.exists(place(thread, log)) : !tensor_.ready(thread, log.event());
        if (waits && !turns_.forced()) return turns_.park(thread);
        barriers(thread).touch(thread);
        tensor_.handle(thread, log, released);
        if (log.event().kind == TENSOR_ALLOC_REQUEST) turns_.release_parked(released);
        return true;
    }

    void access(u32 thread, LaneLog &log) {
        const Event &event = log.event();
        if (part_.alone()) return;
        if (event.kind != FILL && thread % LANES >= (u32)event.b) return;
        Access access = access_of(thread, log);
        if (access.strong && access.writes) access.flag = part_.strong_at(thread, log.address());
        if (access.data && !access.writes && looked_[thread]) access.looked = true, --looked_[thread];
        if (event.flags & IGNORED) ignore(access);
        else add(access);
    }

    // A strong load of data comes next, and has observed nothing yet (R-MO1). Its pieces follow each other.
    void look(u32 thread, LaneLog log) {
        if (part_.alone() || log.event().flags & IGNORED) return;
        looked_[thread] = 0;
        auto is_load = [](const Event &event) { return event.kind == READ || event.kind == OBSERVE || event.kind == PUBLISH; };
        while (log.next(is_load) == LaneLog::EVENT && log.event().kind == READ) {
            Access access = access_of(thread, log);
            if (access.data && shape_.holds(access.offset, access.bytes)) races_.look(access), ++looked_[thread];
        }
    }

    void copy(u32 thread, LaneLog &log) {
        const Event &event = log.event();
        Access access{};
        access.thread = thread;
        access.site = (u32)event.site;
        access.offset = place(thread, log);
        access.bytes = access.element = (u8)event.bytes;
        access.writes = true;
        if (!bounds_.holds(access)) return;
        barriers(thread).touch(thread);
        if (mbarriers_.data(access)) return;
        asynchronous_.access(access, true);
        copies_.issue(access, log.b());
        if (!log.has_value()) seals_.copy(thread);
        initialised_.add(access);
    }

    bool mbarrier(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        u32 place = this->place(thread, log), site = (u32)event.site;
        Access bytes{};
        bytes.thread = thread;
        bytes.site = site;
        bytes.offset = place;
        bytes.bytes = bytes.element = 8;
        bytes.writes = true;
        if (!bounds_.holds(bytes)) return true;
        if (event.kind != MBARRIER_INIT && !mbarriers_.exists(place) && !turns_.forced()) return turns_.park(thread);
        lifetimes_.use(thread, site, place, 8);
        switch (event.kind) {
        case MBARRIER_INIT:
            barriers(thread).touch(thread);
            copies_.meet(bytes);
            asynchronous_.meet(bytes);
            races_.meet(bytes);
            initialised_.add(bytes);
            mbarriers_.init(thread, site, place, log.a());
            turns_.release_parked(released);
            return true;
        case MBARRIER_INVAL:
            barriers(thread).touch(thread);
            mbarriers_.inval(thread, site, place, asynchronous_.signalling(place, thread), released);
            races_.add(bytes);
            return true;
        case MBARRIER_TX: mbarriers_.transact(thread, site, place, event.flags & COMPLETE ? -(i32)log.a() : (i32)log.a(), released); return true;
        case MBARRIER_WAIT: return mbarriers_.wait(thread, site, place, log.a(), event.flags);
        case MBARRIER_COPIES: complete_on(thread, place); break;
        default: break;
        }
        arrivals_[thread / LANES].push_back(
            {&event, place, {thread, event.kind == MBARRIER_ARRIVE ? log.a() : 1, event.kind == MBARRIER_ARRIVE ? log.b() : 0}});
        return false;
    }

    void complete_on(u32 thread, u32 place) {
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase)) copies_.complete_on(thread, phase);
    }

    // The arrival at which lanes of a warp wait for the others; null if none do.
    const Event *arriving(u32 warp) const { return arrivals_[warp].empty() ? nullptr : arrivals_[warp].front().event; }

    // Lanes of a warp that wait at the same arrival arrive together, once no other lane of the warp can continue.
    void arrive_together(u32 warp) {
        std::vector<Pending> waiting;
        waiting.swap(arrivals_[warp]);
        const Event *event = waiting.front().event;
        u32 place = waiting.front().place;
        std::vector<MbarrierArrival> team;
        for (const Pending &each : waiting) {
            if (each.event == event && each.place == place) team.push_back(each.arrival);
            else arrivals_[warp].push_back(each);
        }
        std::vector<u32> released;
        bool copies = event->kind == MBARRIER_COPIES;
        if (!copies || event->flags & NOINC) mbarriers_.arrive(team, (u32)event->site, place, event->flags, !copies, released);
        for (const MbarrierArrival &each : team) turns_.set_ready(each.thread);
        turns_.set_ready(released);
    }

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
        now.state = {turns_.exited(), initialised_.version()};
        now.findings = findings_.counts(), now.events = output_.lane_events;
        seals_.state(now.state);
        if (repeats_.copies()) copies_.state(now.state), now.groups = copies_.groups();
        if (repeats_.products()) asynchronous_.state(now.state, witness), now.commits = asynchronous_.commits();
    }

    struct Pending {
        const Event *event;
        u32 place;
        MbarrierArrival arrival;
    };

    Output &output_;
    Turns<Rules> turns_;
    Repeats repeats_;
    bool repeats_wanted_ = false, gave_up_ = false;  // gave_up: lanes went on without others
    std::vector<std::vector<Pending>> arrivals_;      // by warp
    std::vector<u32> points_;
    std::vector<u32> looked_;  // by thread: loads of data that were compared before they observed
};
