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

    static constexpr bool releases(i32 kind) { return kind == MBARRIER_ARRIVE || kind == CTA_BARRIER || kind == CLUSTER_BARRIER_ARRIVE; }
    static constexpr bool is_operation(i32 kind) { return kind == LAUNCH_ANSWER || kind == LAUNCH_USE; }

    // Who stands still while a thread waits at an event (holds.hpp).
    Holder waits(u32 thread, const Event &event) const {
        if (event.kind == OBSERVE) return part_.in_shared_memory(thread) ? Holder::WARP : Holder::CTA;
        bool mbarrier = event.kind == MBARRIER_WAIT || event.kind == MBARRIER_ARRIVE || event.kind == MBARRIER_COPIES;
        return mbarrier ? Holder::WARP : Holder::NOBODY;
    }
    bool begun(u32 thread) const { return part_.begun(thread); }

    typedef std::vector<u32> Released;

    // Returns whether the thread continues at once.
    bool handle(u32 thread, LaneLog &log, Released &released) {
        if (releases(log.event().kind) && !turns_.forced() && !asynchronous_.together(thread)) return turns_.park(thread);
        return effects::dispatch(log, [&](const auto &effect) { return on(thread, effect, released); });
    }

    // -- shared memory, and cp.async -------------------------------------------------------------------------------------------

    bool on(u32 thread, const effects::Read &read, Released &) { return access(thread, read, true, false); }
    bool on(u32 thread, const effects::Write &write, Released &) { return access(thread, write, false, true); }
    bool on(u32 thread, const effects::Atomic &atomic, Released &) { return access(thread, atomic, true, true); }
    bool on(u32 thread, const effects::Fill &fill, Released &) {
        if (!part_.alone()) compare(access_of(thread, fill), fill.ignored());
        return true;
    }
    bool on(u32 thread, const effects::CopyIssue &copy, Released &) {
        if (copy.has_source()) part_.copy(thread, copy, asynchronous_);
        issue(thread, copy);
        return true;
    }
    bool on(u32 thread, const effects::CopyCommit &, Released &) { return copies_.commit(thread), true; }
    bool on(u32 thread, const effects::CopyWait &wait, Released &) {
        barriers(thread).touch(thread);
        copies_.wait(thread, wait.pending());
        return true;
    }

    // -- barriers ----------------------------------------------------------------------------------------------------------------

    bool on(u32 thread, const effects::JoinPassed &join, Released &) {
        if (divergence_.ends_at_join(thread, join.site())) turns_.end_undefined();
        return true;
    }
    bool on(u32 thread, const effects::ClusterBarrierArrive &arrive, Released &released) {
        if (cluster_barrier_.has_arrived(thread)) return misuse(thread, arrive.site(), ARRIVED_TWICE), true;
        return cluster_barrier_.arrive(thread, arrive.relaxed(), released);
    }
    bool on(u32 thread, const effects::ClusterBarrierWait &, Released &) { return cluster_barrier_.wait(thread); }
    bool on(u32 thread, const effects::WarpSync &barrier, Released &released) {
        if (!(barrier.mask() >> thread % LANES & 1)) return misuse(thread, barrier.site(), NOT_IN_MASK), true;
        warp_barriers_.arrive(thread, barrier.mask(), released);
        return false;
    }
    bool on(u32, const effects::ProductFence &, Released &) { return true; }  // it orders registers
    bool on(u32 thread, const effects::InitsFence &, Released &) { return mbarriers_.fence_inits(thread), true; }

    // -- global memory -----------------------------------------------------------------------------------------------------------

    bool on(u32 thread, const effects::Observe &access, Released &) {
        auto look_now = [&] { look(thread, access.log); };
        auto cross_now = [&](i32 store) { cross(thread, access.log, store); };
        return part_.observe(thread, look_now, cross_now) || turns_.wait_before(thread);
    }
    bool on(u32 thread, const effects::Publish &access, Released &released) {
        if (access.order() & GIVES) turns_.catch_up(thread, released);
        return part_.publish(thread);
    }
    bool on(u32 thread, const effects::GridWait &, Released &) { return part_.grid_wait(thread); }
    bool on(u32, const effects::Unseen &, Released &) { return true; }  // noted before the replay
    bool on(u32 thread, const effects::Fence &fence, Released &released) {
        if (fence.restricted() && part_.alone()) return true;  // R-SR1: it orders no accesses to global memory
        if (fence.order() & GIVES) turns_.catch_up(thread, released);
        scopes_.fence(thread, fence.acquires(), fence.releases(), !fence.narrow());
        return part_.fence(thread, fence);
    }
    bool on(u32 thread, const effects::MapFence &fence, Released &) {
        if (fence.acquires()) part_.acquire_map(thread, fence.map());
        else part_.release_maps(thread);
        return true;
    }
    bool on(u32 thread, const effects::GlobalRead &load, Released &) {
        if (!load.ignored()) part_.access(thread, load);
        return true;
    }
    bool on(u32 thread, const effects::GlobalWrite &store, Released &) {
        if (store.releases() && thread % LANES) return true;  // the first lane writes the map that a warp copies
        if (store.ignored()) return true;
        part_.access(thread, store);
        if (store.releases()) part_.release_maps(thread);
        return true;
    }

    // -- mbarriers, operations of asynchronous proxies, launch control -----------------------------------------------------------

    template <typename E> bool on(u32 thread, const E &effect, Released &released) {
        static_assert(E::asynchronous || E::mbarrier || is_operation(E::kind), "an effect that no rule takes");
        if constexpr (E::mbarrier) return mbarrier(thread, effect, released);
        else if constexpr (E::tensor_memory) return tensor(thread, effect, released);
        else return operation(thread, effect, released);
    }

    template <typename E> bool operation(u32 thread, const E &effect, Released &released) {
        if (!turns_.forced() && !asynchronous_.ready(thread, effect)) return turns_.park(thread);
        barriers(thread).touch(thread);
        if constexpr (sides::has_one(E::kind)) part_.copy(thread, effect, asynchronous_);
        output_.by_address |= asynchronous_.handle(thread, effect, released);
        if (E::kind == PRODUCT_COMMIT) turns_.release_parked(released);
        return true;
    }

    template <typename E> bool tensor(u32 thread, const E &effect, Released &released) {
        if (!turns_.forced() && !tensor_.ready(thread, effect)) return turns_.park(thread);
        barriers(thread).touch(thread);
        tensor_.handle(thread, effect, released);
        if (E::kind == TENSOR_ALLOC_REQUEST) turns_.release_parked(released);
        return true;
    }

    bool on(u32 thread, const effects::PointReached &point, Released &released) {
        if (Divergence::lacks(point, thread)) {
            ++points_[thread];
            return true;
        }
        if (divergence_.ends_at_point(thread, points_[thread]++)) turns_.end_undefined();
        meetings_.arrive(thread, point.members(), released);
        return false;
    }

    bool on(u32 thread, const effects::CtaBarrier &barrier, Released &released) {
        u32 id = barrier.id(), count = barrier.threads(), site = barrier.site();
        if (barrier.warpgroup()) {
            id = MOST_BARRIERS + thread % shape_.cta_threads() / WARPGROUP_THREADS;
            barriers(thread).arrive({thread, id, WARPGROUP_THREADS, site, true, 0}, released);
            return false;
        }
        if (Reason why = Barriers::out_of_range(id, count)) return misuse(thread, site, why, id), true;
        if (id == 0 && count == NOTHING) seals_.arrive(thread, barrier.seal(), copies_.waited(thread));
        u32 forgets = barriers(thread).forgets();
        barriers(thread).arrive({thread, id, count, site, barrier.waits(), barrier.call()}, released);
        if (barriers(thread).forgets() == forgets) return false;
        part_.pass_barrier();
        if (repeats_wanted_) skip_repeats(thread);
        return false;
    }

    bool access(u32 thread, const effects::SharedAccess &given, bool reads, bool writes) {
        if (part_.alone() || thread % LANES >= given.lanes()) return true;
        Access access = access_of(thread, given, reads, writes);
        if (access.strong && access.writes) access.flag = part_.strong_at(thread, given.at());
        if (access.data && !access.writes && looked_[thread]) access.looked = true, --looked_[thread];
        compare(access, given.ignored());
        return true;
    }

    void compare(const Access &access, bool ignored) {
        if (ignored) ignore(access);
        else add(access);
    }

    // A strong load of data comes next, and has observed nothing yet (R-MO1). Its pieces follow each other.
    void look(u32 thread, LaneLog log) {
        if (part_.alone() || log.event().flags & IGNORED) return;
        looked_[thread] = 0;
        auto is_load = [](const Event &event) { return event.kind == READ || event.kind == OBSERVE || event.kind == PUBLISH; };
        while (log.next(is_load) == LaneLog::EVENT && log.event().kind == READ) {
            Access access = access_of(thread, effects::Read(log), true, false);
            if (access.data && shape_.holds(access.offset, access.bytes)) races_.look(access), ++looked_[thread];
        }
    }

    // A look at another thread's flag in shared memory comes next (R-MO2).
    void cross(u32 thread, LaneLog log, i32 store) {
        auto is_look = [](const Event &event) { return event.kind == READ || event.kind == ATOMIC || event.kind == PUBLISH; };
        if (part_.alone() || log.event().flags & IGNORED || log.next(is_look) != LaneLog::EVENT || log.event().kind == PUBLISH) return;
        bool load = log.event().kind == READ;
        Access access = load ? access_of(thread, effects::Read(log), true, false) : access_of(thread, effects::Atomic(log), true, true);
        if (shape_.holds(access.offset, access.bytes)) races_.cross(access, store);
    }

    void issue(u32 thread, const effects::CopyIssue &copy) {
        Access access{};
        access.thread = thread;
        access.site = copy.site();
        access.offset = shape_.place(copy.at(), thread, false);
        access.bytes = access.element = (u8)copy.bytes();
        access.writes = true;
        if (!bounds_.holds(access)) return;
        barriers(thread).touch(thread);
        if (mbarriers_.data(access)) return;
        asynchronous_.access(access, true);
        copies_.issue(access, copy.reads());
        if (!copy.has_source()) seals_.copy(thread);
        initialised_.add(access);
    }

    // -- mbarriers -----------------------------------------------------------------------------------------------------------------

    // The bytes of an mbarrier.
    Access object_of(u32 thread, const effects::MbarrierEffect &effect) const {
        Access bytes{};
        bytes.thread = thread;
        bytes.site = effect.site();
        bytes.offset = place(thread, effect);
        bytes.bytes = bytes.element = 8;
        bytes.writes = true;
        return bytes;
    }

    template <typename E> bool mbarrier(u32 thread, const E &effect, Released &released) {
        Access object = object_of(thread, effect);
        if (!bounds_.holds(object)) return true;
        if (E::kind != MBARRIER_INIT && !mbarriers_.exists(object.offset) && !turns_.forced()) return turns_.park(thread);
        lifetimes_.use(thread, object.site, object.offset, 8);
        return at(object, effect, released);
    }

    bool at(const Access &object, const effects::MbarrierInit &init, Released &released) {
        barriers(object.thread).touch(object.thread);
        copies_.meet(object);
        asynchronous_.meet(object);
        races_.meet(object);
        initialised_.add(object);
        mbarriers_.init(object.thread, object.site, object.offset, init.count());
        turns_.release_parked(released);
        return true;
    }
    bool at(const Access &object, const effects::MbarrierInval &, Released &released) {
        barriers(object.thread).touch(object.thread);
        mbarriers_.inval(object.thread, object.site, object.offset, asynchronous_.signalling(object.offset, object.thread), released);
        races_.add(object);
        return true;
    }
    bool at(const Access &object, const effects::MbarrierTransaction &transaction, Released &released) {
        i32 bytes = (i32)transaction.size();
        mbarriers_.transact(object.thread, object.site, object.offset, transaction.complete() ? -bytes : bytes, released);
        return true;
    }
    bool at(const Access &object, const effects::MbarrierWait &wait, Released &) {
        return mbarriers_.wait(object.thread, object.site, object.offset, wait.parity(), wait.event().flags);
    }
    bool at(const Access &object, const effects::MbarrierCopies &copies, Released &) {
        complete_on(object.thread, object.offset);
        return arrive(object, copies.event(), 1, 0);
    }
    bool at(const Access &object, const effects::MbarrierArrive &arrival, Released &) {
        return arrive(object, arrival.event(), arrival.count(), arrival.expected());
    }

    bool arrive(const Access &object, const Event &event, u32 count, u32 expected) {
        arrivals_[object.thread / LANES].push_back({&event, object.offset, {object.thread, count, expected}});
        return false;
    }

    void complete_on(u32 thread, u32 place) {
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase) && decided<Edge::COPY_PHASE>()) copies_.complete_on(thread, phase);
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
