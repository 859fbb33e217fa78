// What threads know of other units, CTAs or clusters, of a launch. A thread that publishes (a release, a write to a flag) has a chain of moments, each later than the one
// before; a thread that observes a moment knows all that was known then. So what is known of a chain is one number, and each chain is an
// actor in the clocks of the units that know of it: it goes the way of all happens-before.
//
// A chain is of one layer. KNOWN: what the thread knows. BEHIND_SC: the part of it that is behind a fence.sc (SEMANTICS 12, G6). LOOSE: what
// would be known if every observation were a synchronisation; it orders nothing, and tells what a race lacks.
#pragma once

#include <map>
#include <unordered_map>

#include "clocks.hpp"
#include "flags.hpp"

enum Layer : u32 { KNOWN = 0, BEHIND_SC = 1, LOOSE = 2 };

// A moment of a chain.
struct Moment {
    u32 chain = 0, number = 0;
};

class Views {
  public:
    struct Chain {
        u32 unit, thread;
        Layer layer;
        std::vector<Past> moments;
        std::vector<std::vector<u32>> warps;  // the same where each warp is one thread; not of a LOOSE one
        std::vector<u32> sites, made;         // of each moment: its site, and its number among all of the launch
        std::vector<u32> behind;              // of each moment: the last one, up to itself, that a fence.sc has made; 0 if there is none
    };
    // What a thread has published. `made`: 0 if nothing.
    struct Published {
        u32 thread = 0, time = 0, site = 0, made = 0;
    };

    // `wide`: every scope counts as .sys.
    void resize(u32 units, u32 cta_threads, bool wide) { units_.resize(units), cta_threads_ = cta_threads, wide_ = wide; }
    Scope scope(const Event &event) const { return wide_ ? SYS_SCOPE : scope_of(event); }
    void set(u32 unit, Clocks *clocks) { units_[unit].clocks = clocks; }
    Clocks &clocks(u32 unit) { return *units_[unit].clocks; }
    // Whether threads are of one CTA, and whether a scope of the one includes the other.
    bool together(u32 unit, u32 thread, u32 other_unit, u32 other) const { return unit == other_unit && thread / cta_threads_ == other / cta_threads_; }
    bool includes(Scope scope, u32 unit, u32 thread, u32 other_unit, u32 other) const {
        return scope >= (unit != other_unit ? GPU_SCOPE : together(unit, thread, other_unit, other) ? CTA_SCOPE : CLUSTER_SCOPE);
    }
    const Chain &chain(u32 number) const { return chains_[number]; }

    // How many moments there are.
    u32 made() const { return made_; }

    // `sc`: a fence.sc makes the moment.
    Moment publish(u32 unit, u32 thread, Layer layer, const Past &past, u32 site, bool sc = false) {
        auto made = numbers_.emplace(std::make_tuple(unit, thread, layer), (u32)chains_.size());
        if (made.second) chains_.push_back({unit, thread, layer, {}, {}, {}, {}, {}});
        Chain &own = chains_[made.first->second];
        own.moments.push_back(past);
        own.sites.push_back(site), own.made.push_back(++made_);
        own.behind.push_back(sc || layer == BEHIND_SC ? (u32)own.moments.size() : own.behind.empty() ? 0 : own.behind.back());
        if (layer == KNOWN) own.warps.push_back(clocks(unit).join_warps({past}));
        return {made.first->second, (u32)own.moments.size()};
    }

    // A thread takes what was known at a moment. `loose`: it is only told what a race lacks.
    void take(u32 unit, u32 thread, const Moment &moment, bool loose) {
        if (known(unit, thread, moment.chain, loose) >= moment.number) return;
        const Chain &from = chains_[moment.chain];
        const Past &past = from.moments[moment.number - 1];
        auto gathered = std::make_shared<std::vector<u32>>();
        bool sc = from.layer == BEHIND_SC;
        if (!loose && from.unit == unit) join(*gathered, unit, thread, moment);
        // The list of the source may grow while the thread learns of new chains, if it is of the same unit. What is known loosely comes
        // with the LOOSE moment that each write hands on.
        for (size_t i = 0, count = units_[from.unit].known.size(); i < count; ++i) {
            const Known each = units_[from.unit].known[i];
            if (each.loose && !loose) continue;
            u32 number = entry(from.unit, past, each.actor, sc && !each.loose);
            if (!loose) raise_behind(*gathered, unit, each.chain, entry(from.unit, past, each.actor, true));
            if (!loose && clocks(from.unit).keeps_fences()) raise_fenced(*gathered, unit, each.chain, entry_of(from.unit, past, each.actor, 1 + clocks(from.unit).global_memory()));
            if (!number || known(unit, thread, each.chain, loose) >= number) continue;
            if (!loose && chains_[each.chain].unit == unit) join(*gathered, unit, thread, {each.chain, number});
            raise(*gathered, unit, actor(unit, each.chain, loose), number);
        }
        u32 own = actor(unit, moment.chain, loose);
        if (!loose) raise_behind(*gathered, unit, moment.chain, from.behind[moment.number - 1]);
        clocks(unit).take(thread, gathered, own, moment.number);
    }

    // Whether a moment of a thread is before what a thread does now.
    bool before(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        if (other_unit == unit) return clocks(unit).before(other, time, thread);
        return covering(other_unit, other, time, unit, thread, false).number != 0;
    }

    // Whether a thread knows that an actor of a unit, a thread or what is asynchronous, has come up to a number.
    bool reached(u32 other_unit, u32 actor, u32 number, u32 unit, u32 thread) {
        if (other_unit != unit) return covering(other_unit, actor, number, unit, thread, false).number != 0;
        return actor == thread || clocks(unit).known(thread, actor) >= number;
    }

    // Whether a thread knew of another one's time when it published.
    bool knew(u32 unit, const Past &past, u32 other_unit, u32 other, u32 time) const {
        if (other_unit == unit) return other == past.thread ? past.time >= time : entry_of(unit, past, other, 0) >= time;
        auto known_chains = units_[unit].by_owner.find(other_unit);
        if (known_chains == units_[unit].by_owner.end()) return false;
        auto covered = [&](const Known &each) { return !each.loose && covers({each.chain, entry_of(unit, past, each.actor, 0)}, other, time); };
        return std::any_of(known_chains->second.begin(), known_chains->second.end(), covered);
    }

    // Whether a moment of a thread is behind a proxy fence for global memory, for what a thread does now: the fence is on the way.
    bool fenced(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        if (other_unit == unit && clocks(unit).fenced(other, time, thread, clocks(unit).global_memory())) return true;
        auto known_chains = units_[unit].by_owner.find(other_unit);
        if (known_chains == units_[unit].by_owner.end()) return false;
        for (const Known &each : known_chains->second) {
            u32 number = each.loose ? 0 : clocks(unit).known(thread, each.actor), memory = clocks(unit).global_memory();
            u32 behind = number ? clocks(unit).known_fenced(thread, each.actor, memory) : 0;
            if (number && fenced_at({each.chain, number}, other, time)) return true;
            if (behind && covers({each.chain, behind}, other, time)) return true;
        }
        return false;
    }

    // Whether what was known at a moment has a thread's time, of the CTA of its chain.
    bool covers(const Moment &moment, u32 thread, u32 time) const { return moment.number && time_of(chains_[moment.chain], chains_[moment.chain].moments[moment.number - 1], thread) >= time; }

    // The same where each warp is one thread (R-W1): what one lane has taken of another unit, all know.
    bool warps_before(u32 other_unit, u32 other, u32 time, u32 warp_time, u32 unit, u32 thread) {
        if (other_unit == unit) return clocks(unit).warps_before(other, warp_time, thread);
        u32 first = thread / LANES * LANES, last = std::min(first + LANES, clocks(unit).threads());
        auto known_chains = units_[unit].by_owner.find(other_unit);
        if (known_chains == units_[unit].by_owner.end()) return false;
        for (const Known &each : known_chains->second)
            for (u32 lane = first; lane < last && !each.loose; ++lane)
                if (u32 number = clocks(unit).known(lane, each.actor); number && warp_time_of(each.chain, number, other) >= warp_time) return true;
        for (u32 lane = first; lane < last; ++lane)
            if (before(other_unit, other, time, unit, lane)) return true;
        return false;
    }

    // The first moment known to a thread that covers another thread's time; number 0 if there is none.
    Moment covering(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread, bool loose) {
        auto known_chains = units_[unit].by_owner.find(other_unit);
        if (known_chains == units_[unit].by_owner.end()) return {};
        for (const auto &each : known_chains->second) {
            if (each.loose && !loose) continue;
            u32 number = clocks(unit).known(thread, each.actor);
            const Chain &from = chains_[each.chain];
            if (!number || time_of(from, from.moments[number - 1], other) < time) continue;
            auto covers = [&](const Past &past, u32 wanted) { return time_of(from, past, other) < wanted; };
            auto first = std::lower_bound(from.moments.begin(), from.moments.begin() + number, time, covers);
            return {each.chain, (u32)(first - from.moments.begin()) + 1};
        }
        return {};
    }

    // The last that a thread knows to have been published by another thread; if it knows of nothing, by that one's CTA.
    Published last_of(u32 other_unit, u32 other, u32 unit, u32 thread) const {
        Published last{};
        auto known_chains = units_[unit].by_owner.find(other_unit);
        if (known_chains == units_[unit].by_owner.end()) return last;
        for (const Known &each : known_chains->second) {
            const Chain &from = chains_[each.chain];
            u32 number = units_[unit].clocks->known(thread, each.actor);
            if (each.loose || !number || !together(from.unit, from.thread, other_unit, other)) continue;
            bool own = from.thread == other, later = from.made[number - 1] > last.made;
            if (!last.made || (own == (last.thread == other) ? later : own)) last = {from.thread, from.moments[number - 1].time, from.sites[number - 1], from.made[number - 1]};
        }
        return last;
    }

  private:
    struct Known {
        u32 chain, actor;
        bool loose;
    };
    struct Unit {
        Clocks *clocks = nullptr;
        std::vector<u32> actors;                               // 2 * chain + whether it is known loosely only: the actor, or NOTHING
        std::vector<Known> known;                              // the same as a list
        std::unordered_map<u32, std::vector<Known>> by_owner;  // and by the CTA of the chain
    };

    u32 actor(u32 unit, u32 chain, bool loose) {
        Unit &own = units_[unit];
        u32 place = 2 * chain + loose;
        if (own.actors.size() <= place) own.actors.resize(place + 1, NOTHING);
        if (own.actors[place] == NOTHING) {
            own.actors[place] = own.clocks->new_actor();
            own.known.push_back({chain, own.actors[place], loose});
            own.by_owner[chains_[chain].unit].push_back(own.known.back());
        }
        return own.actors[place];
    }

    u32 known(u32 unit, u32 thread, u32 chain, bool loose) const {
        const std::vector<u32> &actors = units_[unit].actors;
        u32 place = 2 * chain + loose;
        return place >= actors.size() || actors[place] == NOTHING ? 0 : units_[unit].clocks->known(thread, actors[place]);
    }

    u32 entry(u32 unit, const Past &past, u32 actor, bool sc) const { return entry_of(unit, past, actor, sc ? 1 + units_[unit].clocks->sc_fence() : 0); }

    u32 entry_of(u32 unit, const Past &past, u32 actor, u32 place) const {
        size_t at = (size_t)actor * units_[unit].clocks->stride() + place;
        return at < past.seen->size() ? (*past.seen)[at] : 0;
    }

    // Whether a thread's time is behind a proxy fence for global memory at a moment.
    bool fenced_at(const Moment &moment, u32 thread, u32 time) const {
        const Chain &from = chains_[moment.chain];
        const Past &past = from.moments[moment.number - 1];
        if (!units_[from.unit].clocks->keeps_fences()) return false;
        u32 memory = units_[from.unit].clocks->global_memory();
        return entry_of(from.unit, past, thread, 1 + memory) >= time || (thread == past.thread && past.fenced[memory] >= time);
    }

    // When a thread of the chain's CTA is known at a moment.
    u32 time_of(const Chain &from, const Past &past, u32 thread) const {
        bool sc = from.layer == BEHIND_SC;
        u32 seen = entry(from.unit, past, thread, sc);
        return thread == past.thread ? std::max(seen, sc ? past.fenced[units_[from.unit].clocks->sc_fence()] : past.time) : seen;
    }

    u32 warp_time_of(u32 chain, u32 number, u32 thread) const {
        const Chain &from = chains_[chain];
        return from.warps.empty() ? 0 : from.warps[number - 1][thread / LANES * units_[from.unit].clocks->stride()];
    }

    void raise(std::vector<u32> &gathered, u32 unit, u32 actor, u32 number) {
        size_t at = (size_t)actor * clocks(unit).stride();
        if (gathered.size() <= at) gathered.resize(at + clocks(unit).stride(), 0);
        gathered[at] = std::max(gathered[at], number);
    }

    // The same of what is behind a fence.sc: it stays so for whoever acquires it (R-GM6: the fence comes before what that one writes).
    void raise_behind(std::vector<u32> &gathered, u32 unit, u32 chain, u32 number) {
        if (clocks(unit).keeps_sc()) raise_memory(gathered, unit, chain, number, clocks(unit).sc_fence());
    }

    // And of what is behind a proxy fence for global memory.
    void raise_fenced(std::vector<u32> &gathered, u32 unit, u32 chain, u32 number) {
        if (clocks(unit).keeps_fences()) raise_memory(gathered, unit, chain, number, clocks(unit).global_memory());
    }

    void raise_memory(std::vector<u32> &gathered, u32 unit, u32 chain, u32 number, u32 memory) {
        if (!number) return;
        size_t at = (size_t)actor(unit, chain, false) * clocks(unit).stride(), behind = at + 1 + memory;
        if (gathered.size() < at + clocks(unit).stride()) gathered.resize(at + clocks(unit).stride(), 0);
        gathered[behind] = std::max(gathered[behind], number);
    }

    // What a thread of the same unit had published.
    void join(std::vector<u32> &gathered, u32 unit, u32 thread, const Moment &moment) {
        const Past &past = chains_[moment.chain].moments[moment.number - 1];
        bool sc = chains_[moment.chain].layer == BEHIND_SC;
        if (chains_[moment.chain].layer == KNOWN) clocks(unit).take_warp(thread, chains_[moment.chain].warps[moment.number - 1]);
        Vector whole = clocks(unit).join({past}).seen;
        u32 stride = clocks(unit).stride();
        if (gathered.size() < whole->size()) gathered.resize(whole->size(), 0);
        for (size_t i = 0; i < whole->size(); ++i) {
            u32 value = sc ? (*whole)[i - i % stride + 1 + clocks(unit).sc_fence()] : (*whole)[i];
            if (!sc || i % stride == 0) gathered[i] = std::max(gathered[i], value);
        }
    }

    std::vector<Unit> units_;
    u32 cta_threads_ = 1;
    bool wide_ = false;
    u32 made_ = 0;
    std::vector<Chain> chains_;
    std::map<std::tuple<u32, u32, u32>, u32> numbers_;
};
