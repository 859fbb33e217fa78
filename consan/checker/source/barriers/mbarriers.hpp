// mbarriers (SEMANTICS section 6, R-M1 to R-M12). Phases are numbered from the init on. A wait names a parity only. Let K be the first phase
// that its thread has not observed. If K has that parity, the thread waits for K; if K - 1 has it, that phase is over and adds no order.
//
// The number of phases that a thread has observed is an entry of its clock, after the entries of the threads, so every edge carries it. Which
// phase a wait is for follows from the order of execution, since relaxed waits and arrivals count there.
#pragma once

#include <unordered_map>
#include <vector>

#include "last_waits.hpp"
#include "mbarrier_object.hpp"
#include "races.hpp"
#include "scopes.hpp"

struct MbarrierArrival {
    u32 thread, count, bytes, source;  // the number of its place in the source
};

class Mbarriers {
  public:
    Mbarriers(Clocks &clocks, Scopes &scopes, Findings &findings, bool isa) : isa_(isa), clocks_(clocks), scopes_(scopes), findings_(findings) {}

    // Whether these eight bytes have ever been initialised.
    bool exists(u32 place) const { return places_.count(place) != 0; }

    void init(u32 thread, u32 site, u32 place, u32 count) {
        auto known = places_.find(place);
        if (count == 0 || count >= 1u << 20) misuse(thread, site, place, nullptr, COUNT_RANGE, 0, thread);
        if (known != places_.end() && objects_[known->second].live) {
            Object &old = objects_[known->second];
            misuse(thread, site, place, &old, INITIALISED_TWICE, old.site, old.thread);
            old.live = false;
        }
        places_[place] = (u32)objects_.size();
        low_ = std::min(low_, place), high_ = std::max(high_, place + 8);
        Object made;
        made.live = true;
        made.actor = scopes_.new_actor();
        made.place = place;
        made.pending = made.expected = count;
        made.site = site;
        made.thread = thread;
        made.last = {site, thread};
        made.time = clocks_.time(thread);
        objects_.push_back(made);
    }

    // `signal`: the site and thread of an operation that will signal it, if the thread does not know that it is over; 0 if there is none.
    void inval(u32 thread, u32 site, u32 place, std::pair<u32, u32> signal, std::vector<u32> &released) {
        Object *object = use(thread, site, place);
        if (!object) return;
        for (const auto &each : object->observers)
            if (each.first != thread / LANES && !over(each.second, thread)) {  // a wait is its warp's
                misuse(thread, site, place, object, WAITERS_PENDING, 0, each.second.thread);
                break;
            }
        if (object->tx) misuse(thread, site, place, object, SIGNALS_PENDING, object->last.site, object->last.thread);
        else if (signal.first) misuse(thread, site, place, object, SIGNALS_PENDING, signal.first, signal.second);
        else if (object->commit.site && clocks_.executed(thread, object->commit.actor) < object->commit.number)
            misuse(thread, site, place, object, SIGNALS_PENDING, object->commit.site, object->commit.thread);
        for (const Waiter &waiter : object->waiters) {
            misuse(thread, site, place, object, WAITERS_PENDING, 0, waiter.thread);
            released.push_back(waiter.thread);
        }
        object->waiters.clear();
        object->live = false;
        object->last = {site, thread};
    }

    // Lanes of one warp arrive by one instruction. `publishes`: the arrival is a release.
    void arrive(const std::vector<MbarrierArrival> &team, u32 site, u32 place, i32 flags, bool publishes, std::vector<u32> &released) {
        Object *object = nullptr;
        u32 total = 0, leader = team.front().thread;
        for (const MbarrierArrival &each : team) {
            object = use(each.thread, site, place);
            if (!object) continue;
            total += each.count;
            note(*object, each.thread, site, each.source, (i32)each.bytes, each.count);
            if (each.bytes) announce(*object, each.thread, site, (i32)each.bytes);
            if (decided<Edge::MBARRIER_ARRIVAL>(publishes)) scopes_.release(each.thread, !(flags & RELAXED), !(flags & NARROW), object->gathered);
        }
        if (!object) return;
        if (flags & DROP) object->arrivals.drop(), object->expected -= std::min(total, object->expected);
        count(*object, total, leader, site, flags, publishes, released);
    }

    // tcgen05.commit: one arrival. Who observes it knows that an actor has come up to a number.
    void signal(u32 thread, u32 site, u32 place, u32 actor, u32 number, std::vector<u32> &released) {
        Object *object = use(thread, site, place);
        if (!object) return;
        scopes_.signal(thread, {actor, number}, object->gathered);
        if (actor != NOTHING) object->commit = {site, thread, actor, number};
        note(*object, thread, site, site);
        count(*object, 1, thread, site, 0, false, released);
    }

    // expect-tx, or complete-tx with a negative number.
    void transact(u32 thread, u32 site, u32 place, i32 bytes, std::vector<u32> &released) {
        Object *object = use(thread, site, place);
        if (!object) return;
        u32 before = object->phase;
        object->ending = {site, thread};
        object->late.transact(clocks_, thread, bytes);
        if (bytes > 0) object->late.expect(thread, site, clocks_.time(thread), object->tx, bytes);
        announce(*object, thread, site, bytes);
        settle(*object, released);
        if (object->phase != before) check_lap(*object, before, thread, site);
        check_bytes(*object, thread, site);
        object->last = {site, thread};
    }

    // No thread can continue, and in the launch all did: phases that lack no arrival, and have more bytes than were announced, were over
    // there before all of their copies had landed (R-M7). Releases their waiters.
    void end_exceeded(std::vector<u32> &released) {
        for (Object &object : objects_) {
            if (object.waiters.empty() || object.pending || !decided<BYTES_NOT_ANNOUNCED>(object.live && object.tx < 0)) continue;
            early_.push_back({(u32)(&object - objects_.data()), not_announced(object)});
            i32 left = object.tx;
            object.tx = 0;
            settle(object, released);
            object.tx += left;  // of later phases
        }
    }

    // The last wait of a thread ended here, and failed in the launch, which did not end. The copies of one instruction can complete together:
    // there they brought more bytes than were expected, at once, so that no phase ended (R-M7).
    void failed_there(u32 thread) {
        for (Object &object : objects_) {
            auto last = object.seen_at.find(thread);
            bool waited = (object.pending == object.expected && last != object.seen_at.end()) && last->second == clocks_.time(thread);
            if (waited && !object.failed && exceeds(object)) object.failed = true;
        }
    }

    // The launch has ended. `harmed`: something else was found. Arrivals that no phase has taken are of a count that is too small.
    void finish(bool harmed) {
        // If all bytes are announced in the end, a copy came before the round that it belongs to: what else was found is the cause.
        for (const auto &each : early_) {
            bool never = objects_[each.first].brought > objects_[each.first].announced;
            if (!harmed || never) findings_.add(never ? too_few(each.second) : each.second);
        }
        for (Object &object : objects_) {
            if (decided<BYTES_NOT_ANNOUNCED>(object.live && object.tx < 0)) findings_.add(too_few(not_announced(object)));
            if (object.live && object.pending < object.expected) exceed(object, harmed ? TOO_MANY_ARRIVALS : ARRIVALS_LEFT);
        }
    }
    // No thread can continue.
    void stick() {
        for (const auto &each : early_) findings_.add(each.second);
        for (Object &object : objects_) {
            if (!object.pending) exceeds(object);  // its phase lacks no arrival, and cannot end
            exceed(object, TOO_MANY_ARRIVALS);
        }
    }

    // fence.mbarrier_init: the initialisations by a thread.
    void fence_inits(u32 thread) {
        std::vector<u32> inits;
        for (Object &object : objects_) {
            if (object.thread != thread || !object.live) continue;
            if (object.init == NOTHING) object.init = clocks_.new_actor();
            inits.push_back(object.init);
        }
        if (decided<Edge::MBARRIER_INIT_FENCE>()) scopes_.fence_inits(thread, inits);
    }

    // Returns whether the thread continues at once.
    bool wait(u32 thread, u32 site, u32 place, u32 parity, i32 flags) {
        Object *object = use(thread, site, place);
        if (!object) return true;
        u32 phase = clocks_.executed(thread, object->actor);
        waits_.wait(thread, site, place, object->actor, phase - (((phase - 1) & 1) == (parity & 1)));
        if (((phase - 1) & 1) == (parity & 1)) {
            overtaken_ |= ((object->phase - 1) & 1) != (parity & 1);
            bool new_order = clocks_.known(thread, object->actor) < phase || object->waited < phase || (isa_ && phase && !(flags & NARROW));
            if (new_order) observe(*object, {thread, phase - 1, flags});  // so far only a relaxed wait, or a narrow one, had seen it
            return true;
        }
        if (object->phase > phase) {
            observe(*object, {thread, phase, flags});
            return true;
        }
        object->waiters.push_back({thread, phase, flags});
        return false;
    }

    // An access touches bytes of a live object (R-M2). Returns whether it does. What reads what was written over an object is no fault of its own.
    bool data(const Access &access) { return access.offset < high_ && access.offset + access.bytes > low_ && data_between(access); }
    bool data_between(const Access &access) {
        bool found = false;
        for (const auto &each : places_) {
            Object &object = objects_[each.second];
            if (!object.live || each.first >= access.offset + access.bytes || access.offset >= each.first + 8) continue;
            found = true;
            if (object.overwritten && !access.writes) continue;
            object.overwritten |= access.writes;
            Record record = misuse_record(access.thread, access.site, each.first, &object, BYTES_USED, object.site, object.thread);
            record.offset = access.offset;
            record.bytes = access.bytes;
            findings_.add(record);
        }
        return found;
    }

    // A phase of an object, for copies that complete with it.
    struct Phase {
        u32 object, phase;
    };
    bool current(u32 place, Phase &found) const {
        auto known = places_.find(place);
        if (known == places_.end() || !objects_[known->second].live) return false;
        found = {known->second, objects_[known->second].phase};
        return true;
    }
    bool overtaken() const { return overtaken_; }
    bool waited(const Phase &phase) const { return objects_[phase.object].waited > phase.phase; }
    // By a wait whose result decides something (R-M14).
    bool heeded(const Phase &phase) const { return objects_[phase.object].heeded > phase.phase; }
    // Whether a thread has waited for a phase, and `time` is still the moment of the last one: it has released nothing since.
    bool nothing_since(u32 thread, const Phase &phase, u32 time) const {
        const Object &object = objects_[phase.object];
        auto last = object.seen_at.find(thread);
        return last != object.seen_at.end() && last->second == time;
    }
    const LastWaits &waits() const { return waits_; }
    // Whether a thread has waited for phases of the object by itself.
    bool waits(u32 thread, const Phase &phase) const { return objects_[phase.object].seen_at.count(thread) != 0; }
    // The phases that some thread of a CTA has seen, in the order of execution.
    u32 phases_seen(const Shape &shape, u32 cta, u32 object) const {
        u32 most = 0;
        for (u32 i = 0; i < shape.cta_threads(); ++i) most = std::max(most, clocks_.executed(shape.first(cta) + i, objects_[object].actor));
        return most;
    }
    u32 phases_known(u32 thread, const Phase &phase) const { return clocks_.known(thread, objects_[phase.object].actor); }
    bool fenced(u32 thread, const Phase &phase, u32 memory) const { return clocks_.known_fenced(thread, objects_[phase.object].actor, memory) > phase.phase; }
    u32 actor(const Phase &phase) const { return objects_[phase.object].actor; }
    // The same by acquires of .cluster scope (D5).
    bool knows_widely(u32 thread, const Phase &phase) const { return clocks_.known(thread, objects_[phase.object].actor + 1) > phase.phase; }
    bool knows(u32 thread, const Phase &phase) const { return clocks_.known(thread, objects_[phase.object].actor) > phase.phase; }
    // The phase that a thread waits for. Returns whether it waits.
    bool awaited(Record &record, u32 place, u32 thread) const {
        auto known = places_.find(place);
        if (known == places_.end()) return false;
        const Object &object = objects_[known->second];
        for (const Waiter &waiter : object.waiters)
            if (waiter.thread == thread) return describe(record, object, waiter.phase), true;
        return false;
    }
    void describe(Record &record, const Phase &phase) const { describe(record, objects_[phase.object], phase.phase); }

  private:
    using Waiter = MbarrierObject::Waiter;
    using Object = MbarrierObject;
    using Use = MbarrierObject::Use;
    using Moment = MbarrierObject::Moment;

    Object *use(u32 thread, u32 site, u32 place) {
        auto known = places_.find(place);
        if (known == places_.end()) {
            misuse(thread, site, place, nullptr, NOT_INITIALISED, 0, thread);
            return nullptr;
        }
        Object &object = objects_[known->second];
        if (!object.live) {
            misuse(thread, site, place, &object, INVALIDATED, object.last.site, object.last.thread);
            return nullptr;
        }
        bool published = clocks_.before(object.thread, object.time, thread) || (object.init != NOTHING && clocks_.known(thread, object.init));
        if (decided<INIT_NOT_PUBLISHED>(!published)) misuse(thread, site, place, &object, INIT_NOT_PUBLISHED, object.site, object.thread);
        return &object;
    }

    // Whether a thread comes behind a wait that has returned. For that the order of execution is enough, as of a relaxed barrier.
    bool over(const Moment &wait, u32 thread) const {
        return clocks_.warps_before(wait.thread, wait.warp_time, thread) || clocks_.executed(thread, wait.thread) >= wait.time;
    }

    // `at_once`: the threads arrive themselves, not what they have issued.
    void count(Object &object, u32 total, u32 leader, u32 site, i32 flags, bool at_once, std::vector<u32> &released) {
        u32 before = object.phase;
        object.ending = {site, leader};
        bool fits = total <= object.pending;
        bool lapped = unwaited(object, before);  // then the count is right, and threads go on without a wait
        bool again = !fits && !lapped && (object.arrivals.repeats() || object.arrivals.covers(object.expected));
        // The phase ends here in any schedule, and no wait has to tell the thread so.
        bool alone = at_once && total == object.expected && object.pending == total && !object.announced && !object.brought;
        if (again) object.arrivals.lap(), misuse(leader, site, object.place, &object, PHASE_LAPPED, site, leader);
        else if (!fits && !lapped) misuse(leader, site, object.place, &object, TOO_MANY_ARRIVALS, object.site, object.thread);
        while (total && object.pending) {
            u32 now = std::min(total, object.pending);
            object.pending -= now;
            total -= now;
            settle(object, released);
        }
        if (alone && object.phase != before) {
            clocks_.take(leader, {}, object.actor, before + 1);
            clocks_.take_executed(leader, {}, object.actor, before + 1);
        }
        if (fits || lapped) check_lap(object, before, leader, site);
        if (decided<NO_COMPLETE_REASON>(flags & NO_COMPLETE && object.phase != before))
            misuse(leader, site, object.place, &object, NO_COMPLETE_REASON, object.site, object.thread);
        check_bytes(object, leader, site);
        object.last = {site, leader};
    }

    void settle(Object &object, std::vector<u32> &released) {
        while (object.pending == 0 && object.tx == 0) {
            object.done.push_back(object.gathered);
            object.late.end_phase(
                [&](const LateBytes::Expect &each) { misuse(each.thread, each.site, object.place, &object, EXPECT_UNORDERED, each.arrival, each.arrived); });
            ++object.phase;
            waits_.end_phase(object.actor, object.ending.site, object.ending.thread);
            object.arrivals.end_phase();
            object.pending = object.expected;
            std::vector<Waiter> waiting;
            waiting.swap(object.waiters);
            for (const Waiter &waiter : waiting) {
                if (waiter.phase >= object.phase) {
                    object.waiters.push_back(waiter);
                    continue;
                }
                observe(object, waiter);
                released.push_back(waiter.thread);
            }
            if (!object.expected) return;
        }
    }

    void observe(Object &object, const Waiter &waiter) {
        u32 thread = waiter.thread, phase = waiter.phase;
        object.waited = std::max(object.waited, phase + 1);
        // Nobody looks at the result: the thread goes on as it would without it, and nothing is ordered (R-M14).
        if (waiter.flags & UNUSED) return clocks_.take_executed(thread, object.done[phase].executed, object.actor, phase + 1);
        object.heeded = std::max(object.heeded, phase + 1);
        if (decided<Edge::MBARRIER_PHASE>())
            scopes_.take(thread, object.done[phase], !(waiter.flags & RELAXED), !(waiter.flags & NARROW), object.actor, phase + 1);
        object.observers[thread / LANES] = {thread, clocks_.time(thread), clocks_.warp_time(thread)};
        object.seen_at[thread] = clocks_.time(thread);
    }

    // The first number is what an expect-tx announces, a negative one what a copy brings.
    void announce(Object &object, u32 thread, u32 site, i32 bytes) {
        object.tx += bytes;
        (bytes < 0 ? object.brought : object.announced) += (u64)std::abs((long long)bytes);
        (bytes < 0 ? object.copy : object.expect) = {site, thread};
    }

    // Reports bytes that no expect-tx announces. Returns whether there are any.
    bool exceeds(const Object &object) {
        bool found = decided<BYTES_NOT_ANNOUNCED>(object.live && object.tx < 0);
        if (found) findings_.add(not_announced(object));
        return found;
    }
    // The launch is over, and nobody has announced the bytes.
    static Record too_few(Record found) {
        found.reason = BYTES_TOO_FEW;
        return found;
    }
    Record not_announced(const Object &object) const {
        return misuse_record(object.copy.thread, object.copy.site, object.place, &object, BYTES_NOT_ANNOUNCED, object.expect.site, object.expect.thread);
    }

    void note(Object &object, u32 thread, u32 site, u32 source, i32 bytes = 0, u32 count = 1) {
        object.arrivals.arrive(thread, site, source, clocks_.executed(thread, object.actor), object.phase, count);
        object.late.arrive(clocks_, thread, site, bytes);
    }

    // Reports arrivals of one round in two phases. Returns whether there are any.
    bool exceed(Object &object, Reason reason) {
        bool found = object.arrivals.exceeded(object.expected);
        if (found && !object.surplus) misuse(object.arrivals.thread(), object.arrivals.site(), object.place, &object, reason, object.site, object.thread);
        object.surplus |= found;
        return found;
    }

    // Whether nobody has waited for the phase before one.
    static bool unwaited(const Object &object, u32 phase) { return phase && object.waited < phase; }

    void check_lap(Object &object, u32 before, u32 thread, u32 site) {
        if (object.phase != before && unwaited(object, before) && exceed(object, TOO_MANY_ARRIVALS)) return;
        Use first = object.completed.site ? object.completed : object.last;
        // By the text of 9.7.13.15.4 the first arrival of the next phase is one too many (D11).
        if (unwaited(object, before) && decided<PHASE_NOT_WAITED>(isa_ || object.phase != before))
            misuse(thread, site, object.place, &object, object.phase != before ? PHASE_LAPPED : PHASE_NOT_WAITED, first.site, first.thread);
        if (object.phase != before) object.completed = {site, thread};
    }

    void check_bytes(const Object &object, u32 thread, u32 site) {
        if (object.tx >= 1 << 20 || object.tx <= -(1 << 20)) misuse(thread, site, object.place, &object, TX_RANGE, object.last.site, object.last.thread);
    }

    void misuse(u32 thread, u32 site, u32 place, const Object *object, Reason reason, u32 other_site, u32 other) {
        findings_.add(misuse_record(thread, site, place, object, reason, other_site, other));
    }

    Record misuse_record(u32 thread, u32 site, u32 place, const Object *object, Reason reason, u32 other_site, u32 other) const {
        Record found{};
        found.kind = BARRIER_MISUSE;
        found.reason = reason;
        found.site = site;
        found.other_site = other_site;
        found.thread = thread;
        found.other_thread = other;
        found.offset = place;
        found.bytes = 8;
        if (object) describe(found, *object, object->phase);
        found.place = place + 1;
        return found;
    }

    static void describe(Record &record, const Object &object, u32 phase) {
        u64 state = (u64)object.phase << 42 | (u64)(object.pending & 0xFFFFF) << 22 | ((u32)object.tx & 0x3FFFFF);
        record.place = object.place + 1;
        record.phase = phase;
        record.expected = object.expected;
        record.state_low = (u32)state;
        record.state_high = (u32)(state >> 32);
    }

    const bool isa_;
    Clocks &clocks_;
    Scopes &scopes_;
    Findings &findings_;
    LastWaits waits_;
    std::vector<Object> objects_;
    std::vector<std::pair<u32, Record>> early_;  // objects with bytes that no expect-tx had announced when a phase ended, and what to report
    bool overtaken_ = false;  // a wait passed although the phase of its parity was not the last one that had ended
    std::unordered_map<u32, u32> places_;  // the latest object of each place
    u32 low_ = NOTHING, high_ = 0;         // the bytes that have all places
};
