// What threads know of other clusters of a launch. A thread that publishes (a release, a write to a flag) has a chain of
// moments, each later than the one before; a thread that observes a moment knows all that was known then. So what is known of a chain is
// one number (knowledge.hpp). It is part of what a thread's clock has, and goes the way of all happens-before.
//
// A chain is of one layer. KNOWN: what the thread knows. BEHIND_SC: the part of it that is behind a fence.sc (SEMANTICS 12, R-GM6). LOOSE: what
// would be known if every observation were a synchronisation; it orders nothing, and serves to say what is missing in a race.
#pragma once

#include <map>
#include <memory>
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
        u32 cluster, thread, slot;  // slot: among the chains of the cluster
        Layer layer;
        std::vector<Past> moments;
        std::vector<Knowledge> given;  // of each moment: what one knows of all chains who takes it
        std::vector<std::vector<u32>> warps;  // the same where each warp is one thread; not of a LOOSE one
        std::vector<u32> sites, made;  // of each moment: its site, and its number among all of the launch
        std::vector<u32> behind;  // of each moment: the last one, up to itself, that a fence.sc has made; 0 if there is none
        u32 rank;                 // fences of puts have made the moments, for signals to this rank and one; else 0
        std::shared_ptr<const Past> begin;  // of the put whose own signal it is
    };
    // What a thread has published. `made`: 0 if nothing.
    struct Published {
        u32 thread = 0, time = 0, site = 0, made = 0;
    };

    // `wide`: every scope counts as .sys. `rank_clusters`: those of a rank, which is a GPU; 0: all are of one.
    void resize(u32 clusters, u32 cta_threads, bool wide, u32 rank_clusters) {
        clusters_.resize(clusters), cta_threads_ = cta_threads, wide_ = wide, rank_clusters_ = rank_clusters, pool_.resize(clusters);
    }
    // Symmetric memory of the ranks begins there. `stride`: how far it is from that of one to that of the next.
    void lay_out(u64 begin, u32 stride) { memory_ = begin, stride_ = stride; }
    // The rank whose symmetric memory has an address, and one; 0 if it is other memory.
    u32 rank_at(u64 address) const {
        u64 rank = stride_ && address >= memory_ ? (address - memory_) / stride_ : ~0ull;
        return rank_clusters_ && rank < clusters_.size() / rank_clusters_ ? (u32)rank + 1 : 0;
    }

    // R-RK4: some fence is one of puts. A thread stores to the memory of another rank; all that was put before a moment is there.
    void count_puts() { puts_.resize(clusters_.size()), complete_.resize(clusters_.size()); }
    void note_access(u32 cluster, u32 thread, u64 stored) {
        if (puts_.empty()) return;
        u32 rank = rank_at(stored);
        if (rank == cluster / rank_clusters_ + 1) rank = 0;
        auto &own = puts_[cluster][thread];
        if ((own.empty() ? 0 : own.back().second) == rank) return;
        if (!own.empty()) clocks(cluster).release(thread);
        own.push_back({clocks(cluster).time(thread), rank});
    }
    void complete(u32 cluster, const Past &past) {
        if (!puts_.empty()) complete_[cluster].push_back(past);
    }

    // The narrowest scope that includes all threads of the launch, and that includes two of them.
    Scope all() const { return rank_clusters_ ? SYS_SCOPE : GPU_SCOPE; }
    Scope both(u32 cluster, u32 thread, u32 other_cluster, u32 other) const {
        if (cluster == other_cluster) return together(cluster, thread, other_cluster, other) ? CTA_SCOPE : CLUSTER_SCOPE;
        return rank_clusters_ && cluster / rank_clusters_ != other_cluster / rank_clusters_ ? SYS_SCOPE : GPU_SCOPE;
    }
    // The narrowest scope of a fence.sc that counts (R-GM6). `near`: .gpu, for threads of one rank, or .cta, for those of one CTA in a launch without
    // clusters; what is behind such a fence stays there.
    Scope sc() const { return near_ ? near_scope_ : all(); }
    void count_near(Scope scope) { near_ = true, near_scope_ = scope; }
    bool near() const { return near_; }
    bool is_near(u32 cluster, u32 other) const {
        if (near_scope_ < GPU_SCOPE) return cluster == other;
        return !rank_clusters_ || cluster / rank_clusters_ == other / rank_clusters_;
    }
    Scope scope(u32 order) const { return wide_ ? SYS_SCOPE : scope_of(order); }
    void set(u32 cluster, Clocks *clocks) { clusters_[cluster].clocks = clocks; }
    Clocks &clocks(u32 cluster) { return *clusters_[cluster].clocks; }
    // Whether threads are of one CTA, and whether a scope of the one includes the other.
    bool together(u32 cluster, u32 thread, u32 other_cluster, u32 other) const {
        return cluster == other_cluster && thread / cta_threads_ == other / cta_threads_;
    }
    bool includes(Scope scope, u32 cluster, u32 thread, u32 other_cluster, u32 other) const { return scope >= both(cluster, thread, other_cluster, other); }
    const Chain &chain(u32 number) const { return chains_[number]; }

    // How many moments there are.
    u32 made() const { return made_; }

    // `sc`: a fence.sc makes the moment.
    Moment publish_puts(u32 cluster, u32 thread, const Past &past, u32 site, u64 signal, const std::shared_ptr<const Past> &begin) {
        u32 of = rank_at(signal), rank = begin && !of ? ANY_RANK : of;  // the counters of collectives are of no rank
        Moment made = publish(cluster, thread, KNOWN, past, site, false, begin && rank ? rank | ++signals_ << 8 : rank);
        chains_[made.chain].begin = rank ? begin : nullptr;
        return made;
    }

    Moment publish(u32 cluster, u32 thread, Layer layer, const Past &past, u32 site, bool sc = false, u32 rank = 0) {
        auto made = numbers_.emplace(std::make_tuple(cluster, thread, layer, rank), (u32)chains_.size());
        if (made.second) {
            chains_.push_back({cluster, thread, (u32)clusters_[cluster].chains.size(), layer, {}, {}, {}, {}, {}, {}, rank & 255, nullptr});
            clusters_[cluster].chains.push_back(made.first->second);
        }
        Chain &own = chains_[made.first->second];
        own.moments.push_back(past);
        own.sites.push_back(site), own.made.push_back(++made_);
        own.behind.push_back(sc || layer == BEHIND_SC ? (u32)own.moments.size() : own.behind.empty() ? 0 : own.behind.back());
        own.given.push_back(given(own, past));
        if (layer == KNOWN && !rank) own.warps.emplace_back(), clocks(cluster).add_warp(past, own.warps.back());
        return {made.first->second, (u32)own.moments.size()};
    }

    // What one knows who takes a moment.
    const Knowledge &given(const Moment &moment) const { return chains_[moment.chain].given[moment.number - 1]; }

    // A thread comes to know more. With a moment of its own cluster it also knows what the thread of that moment knew.
    void take(u32 cluster, u32 thread, const Knowledge &more) {
        Clocks &own = clocks(cluster);
        Knowledge before = own.chains(thread), now = before.with(more);
        if (now == before) return;
        own.set_chains(thread, now);
        const std::vector<Known> &old = before.of(cluster), &rows = now.of(cluster);
        if (&old == &rows) return;
        Vector gathered;
        for (const Known &each : rows)
            if (each.number > before.of(cluster, each.slot)) join(gathered, cluster, thread, {clusters_[cluster].chains[each.slot], each.number});
        own.take(thread, gathered);
    }

    // The same for LOOSE chains.
    void take_loose(u32 cluster, u32 thread, const Knowledge &more) { clocks(cluster).add_loose(thread, more); }

    // Whether a moment of a thread is before what a thread does now.
    bool before(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        if (other_cluster == cluster) return clocks(cluster).before(other, time, thread);
        return reaches(other_cluster, other, time, cluster, thread);
    }

    // Whether a thread knows that an actor of a cluster, a thread or what is asynchronous, has come up to a number.
    bool reached(u32 other_cluster, u32 actor, u32 number, u32 cluster, u32 thread) {
        if (other_cluster != cluster) return reaches(other_cluster, actor, number, cluster, thread);
        return actor == thread || clocks(cluster).known(thread, actor) >= number;
    }

    // Whether a thread knew of another one's time when it published.
    bool knew(u32 cluster, const Past &past, u32 other_cluster, u32 other, u32 time) const {
        if (other_cluster == cluster) return other == past.thread ? past.time >= time : past.seen.own.at(other) >= time;
        auto covered = [&](const Known &each) { return covers(moment(other_cluster, each.slot, each.number), other, time); };
        return any(past.seen.chains.of(other_cluster), covered);
    }

    // Whether a time of a thread is part of what is known.
    bool known(const Knowledge &all, u32 cluster, u32 thread, u32 time) const {
        return any(all.of(cluster), [&](const Known &each) { return covers(moment(cluster, each.slot, each.number), thread, time); });
    }

    // Whether a moment of a thread is behind a proxy fence for global memory, for what a thread does now: the fence is on the way.
    bool fenced(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        if (other_cluster == cluster && clocks(cluster).fenced(other, time, thread, clocks(cluster).global_memory())) return true;
        auto is_behind = [&](const Known &each) {
            Moment last = moment(other_cluster, each.slot, each.number), behind = moment(other_cluster, each.slot, each.fenced);
            return each.number && (fenced_at(last, other, time) || covers(behind, other, time));
        };
        return any(clocks(cluster).chains(thread).of(other_cluster), is_behind);
    }

    // Whether what was known at a moment has a thread's time, of the CTA of its chain.
    bool covers(const Moment &moment, u32 thread, u32 time) const {
        if (!moment.number) return false;
        const Chain &from = chains_[moment.chain];
        const Past &past = from.moments[moment.number - 1];
        return time_of(from, past, thread) >= time && decided<Edge::PUT_IS_THERE>(!from.rank || is_there(from, past, thread, time));
    }

    // The same where each warp is one thread (R-W1): what one lane has taken of another cluster, all know.
    bool warps_before(u32 other_cluster, u32 other, u32 time, u32 warp_time, u32 cluster, u32 thread) {
        if (other_cluster == cluster) return clocks(cluster).warps_before(other, warp_time, thread);
        u32 first = thread / LANES * LANES, last = std::min(first + LANES, clocks(cluster).threads());
        auto covers = [&](const Known &each) {
            return each.number && warp_time_of(clusters_[other_cluster].chains[each.slot], each.number, other) >= warp_time;
        };
        for (u32 lane = first; lane < last; ++lane)
            if (any(clocks(cluster).chains(lane).of(other_cluster), covers) || before(other_cluster, other, time, cluster, lane)) return true;
        return false;
    }

    // The first LOOSE moment known to a thread that covers another thread's time; number 0 if there is none.
    Moment covering(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        for (const Known &each : clocks(cluster).loose_chains(thread).of(other_cluster)) {
            Moment last = moment(other_cluster, each.slot, each.number);
            if (!covers(last, other, time)) continue;
            const Chain &from = chains_[last.chain];
            auto earlier = [&](const Past &past, u32 wanted) { return time_of(from, past, other) < wanted; };
            auto first = std::lower_bound(from.moments.begin(), from.moments.begin() + last.number, time, earlier);
            return {last.chain, (u32)(first - from.moments.begin()) + 1};
        }
        return {};
    }

    // The last that a thread knows to have been published by another thread; if it knows of nothing, by that one's CTA.
    Published last_of(u32 other_cluster, u32 other, u32 cluster, u32 thread) const {
        Published last{};
        bool within = together(other_cluster, other, cluster, thread);
        for (const Known &each : clusters_[cluster].clocks->chains(thread).of(other_cluster)) {
            const Chain &from = chains_[clusters_[other_cluster].chains[each.slot]];
            bool near =
                within ? from.cluster == other_cluster && from.thread / LANES == other / LANES : together(from.cluster, from.thread, other_cluster, other);
            if (!each.number || !near || !time_of(from, from.moments[each.number - 1], from.thread)) continue;  // nothing is behind a fence.sc
            bool own = from.thread == other, later = from.made[each.number - 1] > last.made;
            if (!last.made || (own == (last.thread == other) ? later : own))
                last = {from.thread, from.moments[each.number - 1].time, from.sites[each.number - 1], from.made[each.number - 1]};
        }
        return last;
    }

  private:
    static constexpr u32 ANY_RANK = 255;

    struct Cluster {
        Clocks *clocks = nullptr;
        std::vector<u32> chains;  // by slot
    };

    template <typename F> static bool any(const std::vector<Known> &known, F f) { return std::any_of(known.begin(), known.end(), f); }

    // Whether a thread knows of a time of another cluster.
    bool reaches(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) { return known(clocks(cluster).chains(thread), other_cluster, other, time); }

    Moment moment(u32 cluster, u32 slot, u32 number) const { return {clusters_[cluster].chains[slot], number}; }

    // What one knows who takes the last moment of a chain.
    Knowledge given(const Chain &from, const Past &past) {
        Knowledge own(pool_.of(from.cluster, {from.slot, (u32)from.moments.size(), from.behind.back()}));
        if (from.layer == LOOSE) return past.seen.loose.with(own);
        return (from.layer == BEHIND_SC ? past.seen.chains.behind_sc() : past.seen.chains).with(own);
    }

    // Whether what a thread has put at a time is behind a fence of puts: it went to the rank that is signalled, or another fence completes it.
    bool is_there(const Chain &from, const Past &signal, u32 thread, u32 time) const {
        if (puts_.empty()) return true;
        auto own = puts_[from.cluster].find(thread);
        if (own == puts_[from.cluster].end()) return true;
        auto after = std::upper_bound(own->second.begin(), own->second.end(), time, [](u32 wanted, const auto &put) { return wanted < put.first; });
        u32 rank = after == own->second.begin() ? 0 : (after - 1)->second;
        if (!rank || ((rank == from.rank || from.rank == ANY_RANK) && !(from.begin && knew(from.cluster, *from.begin, from.cluster, thread, time))))
            return true;
        auto knows = [&](const Past &past, u32 of, u32 when) { return knew(from.cluster, past, from.cluster, of, when); };
        auto completes = [&](const Past &each) { return knows(signal, each.thread, each.time) && knows(each, thread, time); };
        return std::any_of(complete_[from.cluster].begin(), complete_[from.cluster].end(), completes);
    }

    u32 entry(u32 cluster, const Past &past, u32 actor, bool sc) const { return past.seen.own.at(actor, sc ? 1 + clusters_[cluster].clocks->sc_fence() : 0); }

    // Whether a thread's time is behind a proxy fence for global memory at a moment.
    bool fenced_at(const Moment &moment, u32 thread, u32 time) const {
        const Chain &from = chains_[moment.chain];
        const Past &past = from.moments[moment.number - 1];
        if (!clusters_[from.cluster].clocks->keeps_fences()) return false;
        u32 memory = clusters_[from.cluster].clocks->global_memory();
        return past.seen.own.at(thread, 1 + memory) >= time || (thread == past.thread && past.fenced[memory] >= time);
    }

    // When a thread of the chain's CTA is known at a moment.
    u32 time_of(const Chain &from, const Past &past, u32 thread) const {
        bool sc = from.layer == BEHIND_SC;
        u32 seen = entry(from.cluster, past, thread, sc);
        return thread == past.thread ? std::max(seen, sc ? past.fenced[clusters_[from.cluster].clocks->sc_fence()] : past.time) : seen;
    }

    u32 warp_time_of(u32 chain, u32 number, u32 thread) const {
        const Chain &from = chains_[chain];
        return from.warps.empty() ? 0 : from.warps[number - 1][thread / LANES * clusters_[from.cluster].clocks->stride()];
    }

    // What a thread of the same cluster had published.
    void join(Vector &gathered, u32 cluster, u32 thread, const Moment &moment) {
        const Past &past = chains_[moment.chain].moments[moment.number - 1];
        bool sc = chains_[moment.chain].layer == BEHIND_SC;
        if (!chains_[moment.chain].warps.empty()) clocks(cluster).take_warp(thread, chains_[moment.chain].warps[moment.number - 1]);
        Entries whole = clocks(cluster).join({past}).seen.own;
        Clocks::add(gathered, {sc ? whole.only(1 + clocks(cluster).sc_fence()) : whole});
    }

    KnowledgePool pool_;  // outlives what knows anything
    std::vector<Cluster> clusters_;
    u32 cta_threads_ = 1;
    bool wide_ = false;
    u32 rank_clusters_ = 0;
    bool near_ = false;
    Scope near_scope_ = GPU_SCOPE;
    u32 made_ = 0;
    std::vector<Chain> chains_;
    std::map<std::tuple<u32, u32, u32, u32>, u32> numbers_;
    u32 signals_ = 0;  // of puts
    u64 memory_ = 0;  // symmetric memory of the ranks
    u32 stride_ = 0;
    // By cluster and thread: from a time on, its stores go to this rank and one; 0: they do not go to another rank.
    std::vector<std::unordered_map<u32, std::vector<std::pair<u32, u32>>>> puts_;
    std::vector<std::vector<Past>> complete_;  // by cluster: whole fences
};
