// What threads know of other units, CTAs or clusters, of a launch. A thread that publishes (a release, a write to a flag) has a chain of
// moments, each later than the one before; a thread that observes a moment knows all that was known then. So what is known of a chain is
// one number (knowledge.hpp). It is part of what a thread's clock has, and goes the way of all happens-before.
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
        u32 unit, thread, slot;  // slot: among the chains of the unit
        Layer layer;
        std::vector<Past> moments;
        std::vector<Knowledge> given;  // of each moment: what one knows of all chains who takes it
        std::vector<std::vector<u32>> warps;  // the same where each warp is one thread; not of a LOOSE one
        std::vector<u32> sites, made;  // of each moment: its site, and its number among all of the launch
        std::vector<u32> behind;  // of each moment: the last one, up to itself, that a fence.sc has made; 0 if there is none
    };
    // What a thread has published. `made`: 0 if nothing.
    struct Published {
        u32 thread = 0, time = 0, site = 0, made = 0;
    };

    // `wide`: every scope counts as .sys. `rank_units`: those of a rank, which is a GPU; 0: all are of one.
    void resize(u32 units, u32 cta_threads, bool wide, u32 rank_units) {
        units_.resize(units), cta_threads_ = cta_threads, wide_ = wide, rank_units_ = rank_units, pool_.resize(units);
    }
    // The narrowest scope that includes all threads of the launch, and that includes two of them.
    Scope all() const { return rank_units_ ? SYS_SCOPE : GPU_SCOPE; }
    Scope both(u32 unit, u32 thread, u32 other_unit, u32 other) const {
        if (unit == other_unit) return together(unit, thread, other_unit, other) ? CTA_SCOPE : CLUSTER_SCOPE;
        return rank_units_ && unit / rank_units_ != other_unit / rank_units_ ? SYS_SCOPE : GPU_SCOPE;
    }
    Scope scope(u32 order) const { return wide_ ? SYS_SCOPE : scope_of(order); }
    void set(u32 unit, Clocks *clocks) { units_[unit].clocks = clocks; }
    Clocks &clocks(u32 unit) { return *units_[unit].clocks; }
    // Whether threads are of one CTA, and whether a scope of the one includes the other.
    bool together(u32 unit, u32 thread, u32 other_unit, u32 other) const { return unit == other_unit && thread / cta_threads_ == other / cta_threads_; }
    bool includes(Scope scope, u32 unit, u32 thread, u32 other_unit, u32 other) const { return scope >= both(unit, thread, other_unit, other); }
    const Chain &chain(u32 number) const { return chains_[number]; }

    // How many moments there are.
    u32 made() const { return made_; }

    // `sc`: a fence.sc makes the moment.
    Moment publish(u32 unit, u32 thread, Layer layer, const Past &past, u32 site, bool sc = false) {
        auto made = numbers_.emplace(std::make_tuple(unit, thread, layer), (u32)chains_.size());
        if (made.second) {
            chains_.push_back({unit, thread, (u32)units_[unit].chains.size(), layer, {}, {}, {}, {}, {}, {}});
            units_[unit].chains.push_back(made.first->second);
        }
        Chain &own = chains_[made.first->second];
        own.moments.push_back(past);
        own.sites.push_back(site), own.made.push_back(++made_);
        own.behind.push_back(sc || layer == BEHIND_SC ? (u32)own.moments.size() : own.behind.empty() ? 0 : own.behind.back());
        own.given.push_back(given(own, past));
        if (layer == KNOWN) own.warps.push_back(clocks(unit).join_warps({past}));
        return {made.first->second, (u32)own.moments.size()};
    }

    // What one knows who takes a moment.
    const Knowledge &given(const Moment &moment) const { return chains_[moment.chain].given[moment.number - 1]; }

    // A thread comes to know more. Of moments of its own unit it knows then what their threads knew.
    void take(u32 unit, u32 thread, const Knowledge &more) {
        Clocks &own = clocks(unit);
        Knowledge before = own.chains(thread), now = before.with(more);
        if (now == before) return;
        own.set_chains(thread, now);
        const std::vector<Known> &old = before.of(unit), &rows = now.of(unit);
        if (&old == &rows) return;
        std::vector<u32> gathered;
        for (const Known &each : rows)
            if (each.number > before.of(unit, each.slot)) join(gathered, unit, thread, {units_[unit].chains[each.slot], each.number});
        if (!gathered.empty()) own.take(thread, {std::make_shared<const std::vector<u32>>(std::move(gathered))});
    }

    // The same of LOOSE chains.
    void take_loose(u32 unit, u32 thread, const Knowledge &more) { clocks(unit).add_loose(thread, more); }

    // Whether a moment of a thread is before what a thread does now.
    bool before(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        if (other_unit == unit) return clocks(unit).before(other, time, thread);
        return reaches(other_unit, other, time, unit, thread);
    }

    // Whether a thread knows that an actor of a unit, a thread or what is asynchronous, has come up to a number.
    bool reached(u32 other_unit, u32 actor, u32 number, u32 unit, u32 thread) {
        if (other_unit != unit) return reaches(other_unit, actor, number, unit, thread);
        return actor == thread || clocks(unit).known(thread, actor) >= number;
    }

    // Whether a thread knew of another one's time when it published.
    bool knew(u32 unit, const Past &past, u32 other_unit, u32 other, u32 time) const {
        if (other_unit == unit) return other == past.thread ? past.time >= time : entry_of(unit, past, other, 0) >= time;
        auto covered = [&](const Known &each) { return covers(moment(other_unit, each.slot, each.number), other, time); };
        return any(past.seen.chains.of(other_unit), covered);
    }

    // Whether a moment of a thread is behind a proxy fence for global memory, for what a thread does now: the fence is on the way.
    bool fenced(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        if (other_unit == unit && clocks(unit).fenced(other, time, thread, clocks(unit).global_memory())) return true;
        auto is_behind = [&](const Known &each) {
            Moment last = moment(other_unit, each.slot, each.number), behind = moment(other_unit, each.slot, each.fenced);
            return each.number && (fenced_at(last, other, time) || covers(behind, other, time));
        };
        return any(clocks(unit).chains(thread).of(other_unit), is_behind);
    }

    // Whether what was known at a moment has a thread's time, of the CTA of its chain.
    bool covers(const Moment &moment, u32 thread, u32 time) const {
        return moment.number && time_of(chains_[moment.chain], chains_[moment.chain].moments[moment.number - 1], thread) >= time;
    }

    // The same where each warp is one thread (R-W1): what one lane has taken of another unit, all know.
    bool warps_before(u32 other_unit, u32 other, u32 time, u32 warp_time, u32 unit, u32 thread) {
        if (other_unit == unit) return clocks(unit).warps_before(other, warp_time, thread);
        u32 first = thread / LANES * LANES, last = std::min(first + LANES, clocks(unit).threads());
        auto covers = [&](const Known &each) { return each.number && warp_time_of(units_[other_unit].chains[each.slot], each.number, other) >= warp_time; };
        for (u32 lane = first; lane < last; ++lane)
            if (any(clocks(unit).chains(lane).of(other_unit), covers) || before(other_unit, other, time, unit, lane)) return true;
        return false;
    }

    // The first LOOSE moment known to a thread that covers another thread's time; number 0 if there is none.
    Moment covering(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        for (const Known &each : clocks(unit).loose_chains(thread).of(other_unit)) {
            Moment last = moment(other_unit, each.slot, each.number);
            if (!covers(last, other, time)) continue;
            const Chain &from = chains_[last.chain];
            auto earlier = [&](const Past &past, u32 wanted) { return time_of(from, past, other) < wanted; };
            auto first = std::lower_bound(from.moments.begin(), from.moments.begin() + last.number, time, earlier);
            return {last.chain, (u32)(first - from.moments.begin()) + 1};
        }
        return {};
    }

    // The last that a thread knows to have been published by another thread; if it knows of nothing, by that one's CTA.
    Published last_of(u32 other_unit, u32 other, u32 unit, u32 thread) const {
        Published last{};
        bool within = together(other_unit, other, unit, thread);
        for (const Known &each : units_[unit].clocks->chains(thread).of(other_unit)) {
            const Chain &from = chains_[units_[other_unit].chains[each.slot]];
            bool near = within ? from.unit == other_unit && from.thread / LANES == other / LANES : together(from.unit, from.thread, other_unit, other);
            if (!each.number || !near) continue;
            bool own = from.thread == other, later = from.made[each.number - 1] > last.made;
            if (!last.made || (own == (last.thread == other) ? later : own))
                last = {from.thread, from.moments[each.number - 1].time, from.sites[each.number - 1], from.made[each.number - 1]};
        }
        return last;
    }

  private:
    struct Unit {
        Clocks *clocks = nullptr;
        std::vector<u32> chains;  // by slot
    };

    template <typename F> static bool any(const std::vector<Known> &known, F f) { return std::any_of(known.begin(), known.end(), f); }

    // Whether a thread knows of a time of another unit.
    bool reaches(u32 other_unit, u32 other, u32 time, u32 unit, u32 thread) {
        auto covered = [&](const Known &each) { return covers(moment(other_unit, each.slot, each.number), other, time); };
        return any(clocks(unit).chains(thread).of(other_unit), covered);
    }

    Moment moment(u32 unit, u32 slot, u32 number) const { return {units_[unit].chains[slot], number}; }

    // What one knows who takes the last moment of a chain.
    Knowledge given(const Chain &from, const Past &past) {
        Knowledge own(pool_.of(from.unit, {from.slot, (u32)from.moments.size(), from.behind.back()}));
        if (from.layer == LOOSE) return past.seen.loose.with(own);
        return (from.layer == BEHIND_SC ? past.seen.chains.behind_sc() : past.seen.chains).with(own);
    }

    u32 entry(u32 unit, const Past &past, u32 actor, bool sc) const { return entry_of(unit, past, actor, sc ? 1 + units_[unit].clocks->sc_fence() : 0); }

    u32 entry_of(u32 unit, const Past &past, u32 actor, u32 place) const {
        size_t at = (size_t)actor * units_[unit].clocks->stride() + place;
        return at < past.seen.own->size() ? (*past.seen.own)[at] : 0;
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

    // What a thread of the same unit had published.
    void join(std::vector<u32> &gathered, u32 unit, u32 thread, const Moment &moment) {
        const Past &past = chains_[moment.chain].moments[moment.number - 1];
        bool sc = chains_[moment.chain].layer == BEHIND_SC;
        if (chains_[moment.chain].layer == KNOWN) clocks(unit).take_warp(thread, chains_[moment.chain].warps[moment.number - 1]);
        std::shared_ptr<const std::vector<u32>> whole = clocks(unit).join({past}).seen.own;
        u32 stride = clocks(unit).stride();
        if (gathered.size() < whole->size()) gathered.resize(whole->size(), 0);
        for (size_t i = 0; i < whole->size(); ++i) {
            u32 value = sc ? (*whole)[i - i % stride + 1 + clocks(unit).sc_fence()] : (*whole)[i];
            if (!sc || i % stride == 0) gathered[i] = std::max(gathered[i], value);
        }
    }

    KnowledgePool pool_;  // outlives what knows anything
    std::vector<Unit> units_;
    u32 cta_threads_ = 1;
    bool wide_ = false;
    u32 rank_units_ = 0;
    u32 made_ = 0;
    std::vector<Chain> chains_;
    std::map<std::tuple<u32, u32, u32>, u32> numbers_;
};
