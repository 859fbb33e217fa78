// Replays the history of one CTA: each thread does what its log says, and waits where it waited. Written from instrument/SEMANTICS.md.
//
// The first warp that can continue runs until it cannot (in the other order: the last one). Both orders are legal, and the findings of both
// are united, so a finding does not depend on the order of one run.
#include "asynchronous.hpp"
#include "barriers.hpp"
#include "divergence.hpp"
#include "warp_barriers.hpp"

namespace {

class Replay {
  public:
    Replay(const Input &input, Output &output)
        : input_(input), output_(output), findings_(input.records, input.capacity), asynchronous_events_(Asynchronous::has(input)), clocks_(input.threads, asynchronous_events_),
          races_(input.shared_bytes, clocks_, findings_), initialised_(input.shared_bytes, clocks_, findings_), bounds_(input.shared_bytes, findings_),
          barriers_(input.threads, clocks_, races_, findings_), warp_barriers_(input.threads, clocks_), divergence_(input, findings_),
          mbarriers_(clocks_, findings_), copies_(input, clocks_, races_, mbarriers_, findings_),
          asynchronous_(input, asynchronous_events_, clocks_, races_, copies_, initialised_, bounds_, mbarriers_, findings_), ready_((input.threads + LANES - 1) / LANES, 0) {
        for (u32 thread = 0; thread < input.threads; ++thread) {
            logs_.emplace_back(input, thread);
            set_ready(thread);
            if (logs_.back().full()) output_.status = FULL;
        }
        points_.assign(input.threads, 0);
        again_.assign(input.threads, false);
        meets_.assign(input.threads, 0);
        arrivals_.resize(ready_.size());
    }

    void run() {
        while (output_.status == OK && !undefined_ && ((asynchronous_events_ ? next_together() : next_alone()) || unpark())) {
        }
        if (output_.status == OK && !undefined_) settle();
        initialised_.finish();
        if (output_.status == OK && undefined_) output_.status = UNDEFINED;
        if (findings_.overflow()) output_.status = TOO_MANY;
        output_.records = findings_.count();
    }

  private:
    void set_ready(u32 thread) { ready_[thread / LANES] |= 1u << thread % LANES; }

    u32 nth_warp(u32 i) const { return input_.descending ? (u32)ready_.size() - 1 - i : i; }

    // Run the first lane that can continue, in the first such warp of this replay's order. Returns whether there is one.
    bool next_alone() {
        for (u32 i = 0; i < ready_.size(); ++i) {
            u32 warp = nth_warp(i);
            if (!ready_[warp] && !arrivals_[warp].empty()) arrive_together(warp);
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
            if (!now && arrivals_[warp].empty()) continue;
            const Event *first = nullptr;
            for (; now; now &= now - 1) {
                u32 thread = warp * LANES + (u32)__builtin_ctz(now);
                if (fetch(thread) && (!first || &logs_[thread].event() < first)) first = &logs_[thread].event();
            }
            if (!arrivals_[warp].empty() && !(first && first <= arrivals_[warp].front().event)) arrive_together(warp);
            else for (now = first ? ready_[warp] : 0; now; now &= now - 1) step_at(first, warp * LANES + (u32)__builtin_ctz(now));
            return true;
        }
        return false;
    }

    // Read a thread's next event. Returns whether it has one.
    bool fetch(u32 thread) {
        if (again_[thread]) return true;
        LaneLog::State state = logs_[thread].next();
        if (state == LaneLog::EVENT) return again_[thread] = true;
        if (state == LaneLog::BROKEN) output_.status = CORRUPT;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        released_.clear();
        if (state == LaneLog::FINISHED) exit(thread, released_);
        for (u32 each : released_) set_ready(each);
        return false;
    }

    void step_at(const Event *first, u32 thread) {
        if (!again_[thread] || &logs_[thread].event() != first || undefined_) return;
        again_[thread] = false;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        ++output_.lane_events;
        released_.clear();
        if (handle(thread, logs_[thread], released_)) set_ready(thread);
        for (u32 each : released_) set_ready(each);
    }

    // Run a thread until it waits or has exited.
    void step(u32 thread) {
        LaneLog &log = logs_[thread];
        std::vector<u32> &released = released_;
        released.clear();
        for (;;) {
            LaneLog::State state = again_[thread] ? LaneLog::EVENT : log.next();
            again_[thread] = false;
            if (state == LaneLog::BROKEN) output_.status = CORRUPT;
            if (state == LaneLog::FINISHED) exit(thread, released);
            if (state != LaneLog::EVENT) break;
            ++output_.lane_events;
            if (!handle(thread, log, released) || undefined_) break;
        }
        for (u32 each : released) set_ready(each);
    }

    void exit(u32 thread, std::vector<u32> &released) {
        ++exited_;
        copies_.exit(thread);
        meets_[thread] = GONE;
        settle_points(thread, released);
        barriers_.exit(thread, released);
        warp_barriers_.exit(thread, released);
    }

    // Returns whether the thread continues at once.
    bool handle(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        switch (event.kind) {
        case READ:
        case WRITE:
        case ATOMIC: access(thread, log); return true;
        case COPY: copy(thread, log); return true;
        case COPY_COMMIT: copies_.commit(thread); return true;
        case COPY_WAIT:
            barriers_.touch(thread);
            copies_.wait(thread, log.a());
            return true;
        case GLOBAL_WRITE: output_.by_address |= copies_.store(thread, (u32)event.site, log.wide_value(), (u32)event.bytes); [[fallthrough]];
        case GLOBAL_READ: output_.by_address |= asynchronous_.global_access(thread, log); return true;
        case BULK_LOAD:
        case TENSOR_LOAD:
            if (!mbarriers_.exists(log.b_address() - input_.window) && !forced_) return park(thread);
            [[fallthrough]];
        case PROXY_FENCE:
        case BULK_STORE:
        case BULK_COMMIT:
        case BULK_WAIT:
        case TENSOR_STORE:
        case PRODUCT:
        case PRODUCT_COMMIT:
        case PRODUCT_WAIT:
            barriers_.touch(thread);
            output_.by_address |= asynchronous_.handle(thread, log, released);
            return true;
        case MBARRIER_INIT:
        case MBARRIER_INVAL:
        case MBARRIER_ARRIVE:
        case MBARRIER_TX:
        case MBARRIER_WAIT:
        case MBARRIER_COPIES: return mbarrier(thread, log, released);
        case POINT:
            undefined_ |= divergence_.ends_at_point(thread, points_[thread]++);
            return meet_at_point(thread, log.a(), released);
        case JOIN: undefined_ |= divergence_.ends_at_join(thread, (u32)event.site); return true;
        case BARRIER:
            barriers_.arrive({thread, log.a(), log.b(), (u32)event.site, (event.flags & WAITS) != 0}, released);
            return false;
        case WARP_BARRIER:
            warp_barriers_.arrive(thread, log.a(), released);
            return false;
        default: return true;
        }
    }

    void access(u32 thread, LaneLog &log) {
        const Event &event = log.event();
        if (thread % LANES >= (u32)event.b) return;
        Access access{};
        access.thread = thread;
        access.site = (u32)event.site;
        access.offset = log.address() - input_.window;
        access.bytes = (u32)event.bytes;
        access.element = (u8)event.a;
        access.reads = event.kind != WRITE;
        access.writes = event.kind != READ;
        access.strong = event.flags & STRONG;
        access.has_value = log.has_value();
        access.value = access.has_value ? log.value() : 0;
        if (!bounds_.holds(access)) return;
        barriers_.touch(thread);
        if (mbarriers_.data(access)) return;
        copies_.meet(access);
        asynchronous_.access(access);
        races_.add(access);
        initialised_.add(access);
    }

    void copy(u32 thread, LaneLog &log) {
        const Event &event = log.event();
        Access access{};
        access.thread = thread;
        access.site = (u32)event.site;
        access.offset = log.address() - input_.window;
        access.bytes = access.element = (u8)event.bytes;
        access.writes = true;
        if (!bounds_.holds(access)) return;
        barriers_.touch(thread);
        asynchronous_.access(access, true);
        copies_.issue(access, log.wide_value(), log.b());
        initialised_.add(access);
    }

    bool mbarrier(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        u32 place = log.address() - input_.window, site = (u32)event.site;
        Access bytes{};
        bytes.thread = thread;
        bytes.site = site;
        bytes.offset = place;
        bytes.bytes = bytes.element = 8;
        bytes.writes = true;
        if (!bounds_.holds(bytes)) return true;
        if (event.kind != MBARRIER_INIT && !mbarriers_.exists(place) && !forced_) return park(thread);
        switch (event.kind) {
        case MBARRIER_INIT:
            barriers_.touch(thread);
            copies_.meet(bytes);
            asynchronous_.meet(bytes);
            races_.meet(bytes);
            initialised_.add(bytes);
            mbarriers_.init(thread, site, place, log.a());
            released.insert(released.end(), parked_.begin(), parked_.end());
            parked_.clear();
            return true;
        case MBARRIER_INVAL:
            barriers_.touch(thread);
            mbarriers_.inval(thread, site, place, asynchronous_.signalling(place, thread), released);
            races_.add(bytes);
            return true;
        case MBARRIER_TX: mbarriers_.transact(thread, site, place, event.flags & COMPLETE ? -(i32)log.a() : (i32)log.a(), released); return true;
        case MBARRIER_WAIT: return mbarriers_.wait(thread, site, place, log.a());
        case MBARRIER_COPIES: tie(thread, place); break;
        default: break;
        }
        arrivals_[thread / LANES].push_back({&event, place, {thread, event.kind == MBARRIER_ARRIVE ? log.a() : 1, event.kind == MBARRIER_ARRIVE ? log.b() : 0}});
        return false;
    }

    // The lanes of a mask execute a warp-synchronous instruction together, which orders no memory. Returns whether the thread continues at once.
    bool meet_at_point(u32 thread, u32 mask, std::vector<u32> &released) {
        meets_[thread] = mask | 1u << thread % LANES;
        settle_points(thread, released);
        return false;
    }

    void settle_points(u32 thread, std::vector<u32> &released) {
        u32 first = thread / LANES * LANES, end = std::min(first + LANES, input_.threads);
        for (u32 lane = first; lane < end; ++lane) {
            u64 members = meets_[lane];
            bool missing = false;
            if (members == 0 || members == GONE || !(members >> (lane - first) & 1)) continue;
            for (u32 other = first; other < end; ++other) missing |= (members >> (other - first) & 1) && meets_[other] == 0;
            if (missing) continue;
            for (u32 other = first; other < end; ++other)
                if (members >> (other - first) & 1 && meets_[other] && meets_[other] != GONE) meets_[other] = 0, released.push_back(other);
        }
    }

    void tie(u32 thread, u32 place) {
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase)) copies_.tie(thread, phase);
    }

    // A thread waits until the mbarrier that it uses is initialised.
    bool park(u32 thread) {
        parked_.push_back(thread);
        again_[thread] = true;
        return false;
    }

    // No other thread can continue: threads parked at an mbarrier that is never initialised use it now (R-M1). Returns whether there are any.
    bool unpark() {
        bool any = false;
        for (u32 thread = 0; thread < input_.threads; ++thread)
            if (meets_[thread] && meets_[thread] != GONE) meets_[thread] = 0, set_ready(thread), any = true;
        if (any) return true;  // these lanes wait for lanes that never come: the divergence has been reported
        if (parked_.empty()) return false;
        forced_ = true;
        for (u32 thread : parked_) set_ready(thread);
        parked_.clear();
        return true;
    }

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
        for (const MbarrierArrival &each : team) set_ready(each.thread);
        for (u32 each : released) set_ready(each);
    }

    // No thread can continue. If the launch ended, all threads have exited.
    void settle() {
        if (exited_ == input_.threads) return asynchronous_.finish();
        output_.status = STUCK;
        output_.stuck_lane = exited_;
    }

    const Input &input_;
    Output &output_;
    Findings findings_;
    bool asynchronous_events_;
    Clocks clocks_;
    Races races_;
    Initialised initialised_;
    Bounds bounds_;
    Barriers barriers_;
    WarpBarriers warp_barriers_;
    Divergence divergence_;
    Mbarriers mbarriers_;
    Copies copies_;
    Asynchronous asynchronous_;
    struct Pending {
        const Event *event;
        u32 place;
        MbarrierArrival arrival;
    };
    std::vector<std::vector<Pending>> arrivals_;  // by warp
    std::vector<u32> parked_;
    static constexpr u64 GONE = 1ull << 32;
    std::vector<u64> meets_;  // members of the point where a lane is; 0: it is at none; GONE: it has exited
    std::vector<bool> again_;  // threads whose event is to be handled again
    bool forced_ = false;
    std::vector<u32> points_;
    std::vector<LaneLog> logs_;
    std::vector<u32> ready_;  // lanes that can continue, by warp
    std::vector<u32> released_;
    u32 exited_ = 0;
    bool undefined_ = false;
};

}  // namespace

extern "C" void consan_replay(const Input *input, Output *output) {
    *output = Output{};
    Replay(*input, *output).run();
}
