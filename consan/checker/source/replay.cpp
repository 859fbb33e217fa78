// Replays the histories of one CTA, or of all CTAs of a cluster together: each thread does what its log says, and waits where it waited.
// Written from instrument/SEMANTICS.md.
//
// The first warp that can continue runs until it cannot (in the other order: the last one). Both orders are legal, and the findings of both
// are united, so a finding does not depend on the order of one run.
#include "asynchronous.hpp"
#include "barriers.hpp"
#include "clusters.hpp"
#include "divergence.hpp"
#include "grid.hpp"
#include "lifetimes.hpp"
#include "meetings.hpp"
#include "repeats.hpp"
#include "seals.hpp"
#include "tensor_memory.hpp"
#include "waiting.hpp"
#include "warp_barriers.hpp"

namespace {

class Replay {
  public:
    // `grid`: the replay is part of that of a whole launch, as one of its units.
    Replay(const Input &input, Output &output, Grid *grid = nullptr, u32 unit = 0)
        : input_(input), output_(output), shape_(input), part_(grid, unit, shape_), findings_(input.records, input.capacity, input.cta_threads), asynchronous_events_(Asynchronous::has(input)),
          clocks_(shape_, memories(), input.isa != 0 || input.ctas > 1 || any_event([](const Event &event) { return (event.flags & RELAXED) != 0; }), part_.fences()), scopes_(shape_, input.level, input.isa != 0, clocks_),
          races_(shape_, clocks_, findings_, [this](Record &found, u32 time) { part_.explain(found, time); }), initialised_(shape_, clocks_, findings_), bounds_(shape_, findings_), warp_barriers_(shape_, clocks_), meetings_(shape_),
          cluster_barrier_(shape_, clocks_, scopes_), lifetimes_(shape_, clocks_, findings_), divergence_(input, shape_, findings_), mbarriers_(clocks_, scopes_, findings_, input.isa != 0),
          issuers_(clocks_, mbarriers_), copies_(shape_, clocks_, races_, mbarriers_, findings_), seals_(shape_),
          asynchronous_(shape_, asynchronous_events_, input.isa != 0, clocks_, scopes_, races_, copies_, initialised_, bounds_, mbarriers_, lifetimes_, issuers_, findings_),
          tensor_(shape_, clocks_, bounds_, mbarriers_, issuers_, asynchronous_, lifetimes_, findings_, input.isa != 0, [this](const Access &word) { add(word, false); }), waiting_(input, shape_, findings_, part_.stops()), repeats_(input), ready_(shape_.warps(), 0) {
        for (u32 cta = 0; cta < input.ctas; ++cta) barriers_.emplace_back(shape_, cta, clocks_, races_, findings_);
        for (u32 thread = 0; thread < shape_.threads(); ++thread) {
            logs_.push_back(shape_.exists(thread) ? LaneLog(input, thread) : LaneLog());
            if (!shape_.exists(thread)) continue;
            set_ready(thread);
            full_ |= logs_.back().full();
        }
        points_.assign(shape_.threads(), 0);
        stopped_.assign(shape_.threads(), false);
        gone_.assign(shape_.threads(), false);
        again_.assign(shape_.threads(), false);
        arrivals_.resize(ready_.size());
        part_.begin(clocks_);
        looked_.assign(shape_.threads(), 0);
        races_.on_strong([this](const Access &old, u32 time, const Access &now, Record &found) { return part_.lacks_order(old, time, now, found); });
        repeats_wanted_ = repeats_.possible() && !grid && !full_ && divergence_.none();
    }

    void run() {
        while (advance() || go_on()) {
        }
        end();
    }

    // Continue until no thread can. Returns whether one could.
    bool advance() {
        bool any = false;
        for (u32 thread : part_.awake()) set_ready(thread);
        while (output_.status == OK && !undefined_ && !halts() && (asynchronous_events_ ? next_together() : next_alone())) any = true;
        return any;
    }

    // The same after nobody else can. What a thread waits for may come behind the place where a log was cut.
    bool go_on() { return output_.status == OK && !undefined_ && !is_cut() && unpark(); }

    // A thread that waits for a write which never comes goes on.
    bool force() {
        u32 thread = part_.forced();
        if (thread != NOTHING) set_ready(thread);
        return thread != NOTHING;
    }

    void end() {
        if (output_.status == OK && is_cut()) output_.status = FULL;
        if (output_.status == OK && !undefined_) settle();
        if (output_.status != FULL && output_.status != HALTED) initialised_.finish();
        for (Barriers &each : barriers_) each.finish();
        if (output_.status == OK && undefined_) output_.status = UNDEFINED;
        if (output_.status == OK && seals_.apart(findings_.count() > 0)) output_.status = APART;
        if (findings_.overflow()) output_.status = TOO_MANY;
        output_.records = findings_.count();
        output_.by_address |= races_.by_value() * BY_VALUE;
    }

  private:
    template <typename F> bool any_event(F f) const {
        for (u32 block = 1; block <= input_.block_count; ++block)
            for (i32 i = 0; i < input_.blocks[block].events; ++i)
                if (f(input_.events[input_.blocks[block].first + i])) return true;
        return false;
    }

    // The memories that proxy fences keep apart: shared and global memory; that of each CTA only if a fence is for one of them.
    u32 memories() const {
        if (!asynchronous_events_) return 0;
        bool apart = input_.ctas > 1 && any_event([](const Event &event) { return event.kind == PROXY_FENCE && event.flags & NARROW; });
        return (apart ? input_.ctas : 1) + 1;
    }

    Barriers &barriers(u32 thread) { return barriers_[shape_.home(thread)]; }
    u32 place(u32 thread, const LaneLog &log) const { return shape_.place(log.address(), thread, log.event().flags & RANKED); }

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

    // Whether the host has ended the replay.
    bool halts() {
        if (is_halted(input_)) output_.status = HALTED;
        return output_.status == HALTED;
    }

    // Whether a log ran out of room, and its thread has come there; of a launch whose units go on together: whether one did anywhere.
    bool is_cut() const { return cut_ || part_.is_cut(); }

    // Read a thread's next event. Returns whether it has one.
    bool fetch(u32 thread) {
        if (again_[thread]) return true;
        LaneLog::State state = logs_[thread].next();
        if (state == LaneLog::EVENT) return again_[thread] = true;
        if (state == LaneLog::BROKEN) output_.status = CORRUPT;
        cut_ |= state == LaneLog::CUT;
        ready_[thread / LANES] &= ~(1u << thread % LANES);
        stopped_[thread] = state == LaneLog::STOPPED;
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

    // Run a thread until it waits or has exited. `limit`: only while its events come one after the other in the text, and before that one.
    void step(u32 thread, const Event *limit = nullptr) {
        LaneLog &log = logs_[thread];
        std::vector<u32> &released = released_;
        released.clear();
        for (const Event *last = nullptr;; last = &log.event()) {
            LaneLog::State state = again_[thread] ? LaneLog::EVENT : log.next();
            again_[thread] = false;
            if (state == LaneLog::BROKEN) output_.status = CORRUPT;
            cut_ |= state == LaneLog::CUT;
            if (state == LaneLog::FINISHED) exit(thread, released);
            stopped_[thread] = state == LaneLog::STOPPED;
            if (state != LaneLog::EVENT) break;
            if (limit && (&log.event() >= limit || &log.event() <= last)) {
                again_[thread] = true;
                set_ready(thread);
                break;
            }
            ++output_.lane_events;
            if (!handle(thread, log, released) || undefined_) break;
            if (output_.lane_events % LOOK_EVERY == 0 && halts()) break;
        }
        for (u32 each : released) set_ready(each);
    }

    // Before a thread releases: the other lanes of its warp do what comes before that in the text, as on a chip. Where each warp is one
    // thread (R-W1), the release covers it. Lanes that run together are as far already.
    void catch_up(u32 thread, std::vector<u32> &released) {
        if (asynchronous_events_) return;
        for (u32 each : released) set_ready(each);
        released.clear();
        const Event *limit = &logs_[thread].event();
        u32 &ready = ready_[thread / LANES];
        for (u32 lanes = ready; lanes; lanes &= lanes - 1) {
            if (!(ready & lanes & -lanes)) continue;
            ready &= ~(lanes & -lanes);
            step(thread / LANES * LANES + (u32)__builtin_ctz(lanes), limit);
        }
        released.clear();
    }

    void exit(u32 thread, std::vector<u32> &released) {
        ++exited_;
        gone_[thread] = true;
        copies_.exit(thread);
        seals_.exit(thread);
        meetings_.exit(thread, released);
        barriers(thread).exit(thread, released);
        warp_barriers_.exit(thread, released);
        cluster_barrier_.exit(thread, released);
    }

    static bool releases(i32 kind) { return kind == MBARRIER_ARRIVE || kind == BARRIER || kind == CLUSTER_ARRIVE; }

    // Returns whether the thread continues at once.
    bool handle(u32 thread, LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        if (releases(event.kind) && !forced_ && !asynchronous_.together(thread)) return park(thread);
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
        case OBSERVE: return part_.observe(thread, [&] { look(thread, log); }) || (again_[thread] = true, false);
        case PUBLISH:
            if (event.offset & GIVES) catch_up(thread, released);
            return part_.publish(thread);
        case GRID_WAIT: return part_.grid_wait(thread);
        case UNSEEN: return true;
        case MAP_FENCE: part_.fence_map(thread, log); return true;
        case GLOBAL_WRITE:
            if (event.flags & RELEASES && thread % LANES) return true;  // the first lane writes the map that a warp copies
            [[fallthrough]];
        case GLOBAL_READ:
            if (event.flags & IGNORED) return true;
            part_.access(thread, log);
            if (event.flags & RELEASES) part_.fence_map(thread, log);
            return true;
        case BULK_LOAD:
        case TENSOR_LOAD:
        case STORE_ASYNC:
        case BULK_PUSH:
        case LAUNCH_REQUEST:
            if (!forced_ && !asynchronous_.ready(thread, log)) return park(thread);
            [[fallthrough]];
        case LAUNCH_ANSWER:
        case LAUNCH_USE:
        case PROXY_FENCE:
        case BULK_STORE:
        case BULK_COMMIT:
        case BULK_WAIT:
        case TENSOR_STORE:
        case PRODUCT:
        case PRODUCT_COMMIT:
        case PRODUCT_WAIT:
            barriers(thread).touch(thread);
            part_.copy(thread, log, asynchronous_);
            output_.by_address |= asynchronous_.handle(thread, log, released);
            if (event.kind == PRODUCT_COMMIT) release_parked(released);
            return true;
        case MBARRIER_INIT:
        case MBARRIER_INVAL:
        case MBARRIER_ARRIVE:
        case MBARRIER_TX:
        case MBARRIER_WAIT:
        case MBARRIER_COPIES: return mbarrier(thread, log, released);
        case POINT:
            if (Divergence::lacks(event.flags, log.a(), thread)) {
                ++points_[thread];
                return true;
            }
            undefined_ |= divergence_.ends_at_point(thread, points_[thread]++);
            meetings_.arrive(thread, log.a(), released);
            return false;
        case JOIN: undefined_ |= divergence_.ends_at_join(thread, (u32)event.site); return true;
        case BARRIER:
            if (event.flags & WARPGROUP) {
                u32 id = MOST_BARRIERS + thread % shape_.cta_threads() / WARPGROUP_THREADS;
                barriers(thread).arrive({thread, id, WARPGROUP_THREADS, (u32)event.site, true, 0}, released);
                return false;
            }
            if (Reason why = Barriers::out_of_range(log.a(), log.b())) return misuse(thread, (u32)event.site, why, log.a()), true;
            if (log.a() == 0 && log.b() == NOTHING) seals_.arrive(thread, event.flags & SEAL, copies_.waited(thread));
            {
                u32 forgets = barriers(thread).forgets();
                barriers(thread).arrive({thread, log.a(), log.b(), (u32)event.site, (event.flags & WAITS) != 0, (u32)event.c}, released);
                if (repeats_wanted_ && barriers(thread).forgets() != forgets) skip_repeats(thread);
            }
            return false;
        case CLUSTER_ARRIVE:
            if (cluster_barrier_.has_arrived(thread)) return misuse(thread, (u32)event.site, ARRIVED_TWICE), true;
            return cluster_barrier_.arrive(thread, event.flags & RELAXED, released);
        case CLUSTER_WAIT: return cluster_barrier_.wait(thread);
        case FENCE:
            if (event.offset & GIVES) catch_up(thread, released);
            scopes_.fence(thread, event.flags & ACQUIRES, event.flags & RELEASES, !(event.flags & NARROW));
            return part_.fence(thread, event);
        case INITS_FENCE: mbarriers_.fence_inits(thread); return true;
        case WARP_BARRIER:
            if (!(log.a() >> thread % LANES & 1)) return misuse(thread, (u32)event.site, NOT_IN_MASK), true;
            warp_barriers_.arrive(thread, log.a(), released);
            return false;
        default: return !TensorMemory::takes(event) || tensor(thread, log, released);
        }
    }

    // All threads that have not exited wait at one barrier, which is complete: leave out what comes again (repeats.hpp).
    void skip_repeats(u32 witness) {
        for (u32 thread = 0; thread < logs_.size(); ++thread)
            if (!gone_[thread] && !logs_[thread].between()) return;
        if (gave_up_ || forced_ || !barriers_[0].idle()) return;
        Milestone now{};
        for (const LaneLog &each : logs_) now.places.push_back(each.place());
        if (!repeats_.may_repeat(now, logs_[witness], witness)) return repeats_.keep(std::move(now));
        look(now, witness);
        u64 times = 0;
        const Milestone *then = repeats_.find(now, logs_, gone_, times);
        if (!then) return repeats_.keep(std::move(now));
        output_.repeats += (u32)times;
        output_.lane_events += (output_.lane_events - then->events) * times;
        findings_.repeat(then->findings, times);
        if (repeats_.copies()) copies_.repeat(then->groups, times);
        if (repeats_.products()) asynchronous_.repeat(then->commits, times, gone_, witness);
        for (u32 thread = 0; thread < logs_.size(); ++thread) {
            if (!gone_[thread]) logs_[thread].skip((now.places[thread] - then->places[thread]) * times);
            now.places[thread] = logs_[thread].place();
        }
        look(now, witness);
        repeats_.keep_only(std::move(now));
    }

    // What there is at a milestone. `witness`: one of the threads that wait. They all know the same.
    void look(Milestone &now, u32 witness) const {
        now.state = {exited_, initialised_.version()};
        now.findings = findings_.counts(), now.events = output_.lane_events;
        seals_.state(now.state);
        if (repeats_.copies()) copies_.state(now.state), now.groups = copies_.groups();
        if (repeats_.products()) asynchronous_.state(now.state, witness), now.commits = asynchronous_.commits();
    }

    void misuse(u32 thread, u32 site, Reason reason, u32 barrier = 0) {
        Record found{};
        found.number = barrier;
        found.kind = BARRIER_MISUSE;
        found.reason = reason;
        found.site = site;
        found.thread = found.other_thread = thread;
        findings_.add(found);
    }

    bool tensor(u32 thread, LaneLog &log, std::vector<u32> &released) {
        bool waits = log.event().kind == TENSOR_COMMIT ? !mbarriers_.exists(place(thread, log)) : !tensor_.ready(thread, log.event());
        if (waits && !forced_) return park(thread);
        barriers(thread).touch(thread);
        tensor_.handle(thread, log, released);
        if (log.event().kind == TENSOR_ALLOC_REQUEST) release_parked(released);
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

    Access access_of(u32 thread, const LaneLog &log) const {
        const Event &event = log.event();
        Access access{};
        access.thread = thread;
        access.site = (u32)event.site;
        access.offset = place(thread, log);
        access.bytes = event.kind == FILL ? log.b() : (u32)event.bytes;
        access.element = (u8)event.a;
        access.reads = event.kind != WRITE && event.kind != FILL;
        access.writes = event.kind != READ;
        access.strong = event.flags & STRONG;
        access.narrow = event.flags & NARROW;
        access.has_value = log.has_value();
        access.constant = event.flags & CONSTANT;
        access.value = access.has_value ? log.value() : 0;
        access.data = access.strong && event.flags & DATA, access.again = access.data && event.flags & AGAIN;
        return access;
    }

    // An access that is compared with no other: what it writes is initialised.
    void ignore(Access access) {
        access.reads = false;
        if (bounds_.holds(access) && access.writes) initialised_.add(access);
    }

    // `proxies`: whether the access needs a proxy fence before asynchronous ones; the word of tcgen05.alloc does not (T5).
    void add(const Access &access, bool proxies = true) {
        if (!bounds_.holds(access)) return;
        barriers(access.thread).touch(access.thread);
        lifetimes_.use(access.thread, access.site, access.offset, access.bytes);
        if (mbarriers_.data(access)) return;
        copies_.meet(access);
        if (proxies) asynchronous_.access(access);
        else asynchronous_.meet(access);
        races_.add(access);
        initialised_.add(access);
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
        if (event.kind != MBARRIER_INIT && !mbarriers_.exists(place) && !forced_) return park(thread);
        lifetimes_.use(thread, site, place, 8);
        switch (event.kind) {
        case MBARRIER_INIT:
            barriers(thread).touch(thread);
            copies_.meet(bytes);
            asynchronous_.meet(bytes);
            races_.meet(bytes);
            initialised_.add(bytes);
            mbarriers_.init(thread, site, place, log.a());
            release_parked(released);
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
        arrivals_[thread / LANES].push_back({&event, place, {thread, event.kind == MBARRIER_ARRIVE ? log.a() : 1, event.kind == MBARRIER_ARRIVE ? log.b() : 0}});
        return false;
    }

    void complete_on(u32 thread, u32 place) {
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase)) copies_.complete_on(thread, phase);
    }

    void release_parked(std::vector<u32> &released) {
        released.insert(released.end(), parked_.begin(), parked_.end());
        parked_.clear();
    }

    // A thread waits until the mbarrier that it uses is initialised, or the other CTA of its pair has asked for an allocation.
    bool park(u32 thread) {
        parked_.push_back(thread);
        again_[thread] = true;
        return false;
    }

    // No other thread can continue: threads parked at an mbarrier that is never initialised use it now (R-M1). Returns whether there are any.
    bool unpark() {
        std::vector<u32> apart = meetings_.give_up();  // their divergence has been reported
        gave_up_ |= !apart.empty();
        cluster_barrier_.part(apart);
        for (u32 thread : apart) set_ready(thread);
        if (!apart.empty()) return true;
        if (parked_.empty()) return end_exceeded() || pass_unarrived();
        forced_ = true;
        for (u32 thread : parked_) set_ready(thread);
        parked_.clear();
        return true;
    }

    bool end_exceeded() {
        std::vector<u32> released;
        mbarriers_.end_exceeded(released);
        for (u32 thread : released) set_ready(thread);
        return !released.empty();
    }

    // No other thread can continue: a chip has let threads pass a barrier.cluster.wait without an arrival (R-CL2). What comes behind is undefined.
    bool pass_unarrived() {
        for (u32 thread : cluster_barrier_.unarrived()) {
            if (logs_[thread].is_last()) continue;
            misuse(thread, (u32)logs_[thread].event().site, NOT_ARRIVED);
            undefined_ = true;
        }
        return undefined_;
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
        output_.overtaken = mbarriers_.overtaken();
        if (exited_ == input_.ctas * input_.threads) {
            lifetimes_.finish();
            mbarriers_.finish();
            asynchronous_.finish();
            return tensor_.finish();
        }
        output_.status = STUCK;
        output_.stuck_lane = exited_;
        if (!input_.closed) return;
        for (u32 thread = 0; thread < shape_.threads(); ++thread)
            if (shape_.exists(thread) && !gone_[thread]) stand(thread);
        output_.proven = !gave_up_ && waiting_.proven();
        if (output_.proven) waiting_.report();
    }

    // Where a thread stands that cannot continue.
    void stand(u32 thread) {
        LaneLog &log = logs_[thread];
        Record found{};
        bool waits = !stopped_[thread] && log.is_last(), mbarrier = false;
        if (waits) {
            const Event &event = log.event();
            found.site = (u32)event.site;
            if (event.kind == BARRIER) barriers(thread).describe(found, log.a());
            else if (event.kind == CLUSTER_WAIT) found.number = Waiting::CLUSTER;
            else waits = mbarrier = event.kind == MBARRIER_WAIT && mbarriers_.awaited(found, place(thread, log), thread);
            found.offset = mbarrier ? place(thread, log) : 0;
            found.bytes = mbarrier ? 8 : 0;
        }
        if (waits) waiting_.at(thread, found, mbarrier);
        else waiting_.elsewhere(thread, log.following(), stopped_[thread] && log.has_event() ? part_.polled(thread, log.event()) : Stopped{});
    }

    static constexpr u32 LOOK_EVERY = 4096;  // events
    const Input &input_;
    Output &output_;
    Shape shape_;
    Part part_;
    Findings findings_;
    bool asynchronous_events_;
    Clocks clocks_;
    Scopes scopes_;
    Races races_;
    Initialised initialised_;
    Bounds bounds_;
    std::vector<Barriers> barriers_;  // by CTA
    WarpBarriers warp_barriers_;
    Meetings meetings_;
    ClusterBarrier cluster_barrier_;
    Lifetimes lifetimes_;
    Divergence divergence_;
    Mbarriers mbarriers_;
    Issuers issuers_;
    Copies copies_;
    Seals seals_;
    Asynchronous asynchronous_;
    TensorMemory tensor_;
    Waiting waiting_;
    Repeats repeats_;
    bool repeats_wanted_ = false;
    struct Pending {
        const Event *event;
        u32 place;
        MbarrierArrival arrival;
    };
    std::vector<std::vector<Pending>> arrivals_;  // by warp
    std::vector<u32> parked_;
    std::vector<bool> again_;  // threads whose event is to be handled again
    bool forced_ = false;
    std::vector<u32> points_;
    std::vector<LaneLog> logs_;
    std::vector<u32> ready_;  // lanes that can continue, by warp
    std::vector<u32> released_;
    u32 exited_ = 0;
    bool undefined_ = false, gave_up_ = false;  // gave_up: lanes went on without others
    bool full_ = false, cut_ = false;            // some log ran out of room; a thread has come to the end of one
    std::vector<u32> looked_;                    // by thread: loads of data that were compared before they observed
    std::vector<bool> stopped_, gone_;           // by thread: its log has ended before it exited; it has exited
};

#include "launch.hpp"

}  // namespace

extern "C" void consan_replay_launch(const GridInput *input, GridOutput *output) {
    *output = GridOutput{};
    LaunchReplay(*input, *output).run();
}

extern "C" void consan_replay(const Input *input, Output *output) {
    *output = Output{};
    Replay(*input, *output).run();
}
