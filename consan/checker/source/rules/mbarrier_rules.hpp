// mbarriers (SEMANTICS 6).
#pragma once

#include "global_rules.hpp"

class MbarrierRules : protected GlobalRules {
  protected:
    MbarrierRules(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : GlobalRules(input, output, grid, cluster, rules), arrivals_(shape_.warps()) {}

    using GlobalRules::on;

    bool on(u32 thread, const effects::InitsFence &, Released &) { return mbarriers_.fence_inits(thread), true; }
    template <typename E> bool mbarrier(u32 thread, const E &effect, Released &released) {
        Access object = object_of(thread, effect);
        if (!bounds_.holds(object)) return true;
        if (E::kind != MBARRIER_INIT && !mbarriers_.exists(object.offset) && !turns_.forced()) return turns_.park(thread);
        lifetimes_.use(thread, object.site, object.offset, 8);
        return at(object, effect, released);
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

  private:
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
        return arrive(object, copies.event(), object.site, 1, 0);
    }
    bool at(const Access &object, const effects::MbarrierArrive &arrival, Released &) {
        return arrive(object, arrival.event(), arrival.source(), arrival.count(), arrival.expected());
    }

    bool arrive(const Access &object, const Event &event, u32 source, u32 count, u32 expected) {
        arrivals_[object.thread / LANES].push_back({&event, object.offset, {object.thread, count, expected, source}});
        return false;
    }

    void complete_on(u32 thread, u32 place) {
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase) && decided<Edge::COPY_PHASE>()) copies_.complete_on(thread, phase);
    }

    struct Pending {
        const Event *event;
        u32 place;
        MbarrierArrival arrival;
    };

    std::vector<std::vector<Pending>> arrivals_;  // by warp
};
