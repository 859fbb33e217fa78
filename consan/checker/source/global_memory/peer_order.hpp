// For a launch whose flags other GPUs read and write: the strong accesses of .sys scope, and which accesses come before their releases and behind
// their acquires. The host decides by their values which one has read from which of another launch (SEMANTICS 12, R-RK8;
// consan/session/comparing/peer_flags.py). A release and an acquire have a number each, from 1. An access has the names of two sets of them.
//
// Not kept apart: a value that is read again; an order that only the other lanes of the warp have (R-W1).
#pragma once

#include "decisions.hpp"
#include "flags.hpp"
#include "number_sets.hpp"
#include "views.hpp"

class PeerOrder {
  public:
    PeerOrder(const GridInput &input, Views &views)
        : flags_(input.synced && !input.rank_clusters ? input.peer_flags : nullptr), capacity_(input.peer_capacity),
          threads_(input.one.ctas * input.one.cta_threads), views_(views), sets_(input.peer_sets, flags_ ? input.peer_sets_capacity : 0),
          states_(flags_ ? (size_t)input.count * threads_ : 0) {}

    bool wanted() const { return flags_; }
    u32 count() const { return count_; }
    u32 words() const { return sets_.count(); }
    bool full() const { return full_ || (wanted() && sets_.full()); }

    void fence(u32 cluster, u32 thread, u32 order, Scope scope) {
        if (!wanted() || scope < SYS_SCOPE) return;
        for (const Pending &each : pending_)
            if (order & IS_ACQUIRE && is_before(each.cluster, each.thread, each.time, cluster, thread)) acquire(cluster, thread, flags_[each.flag]);
        if (order & IS_RELEASE) state(cluster, thread).fences.push_back(views_.clocks(cluster).release(thread));
    }

    // A strong access, behind it.
    void note(const Flags &all, u32 number) {
        for (u32 part = number; wanted() && part < number + all[number].parts; ++part) add(all, part);
    }

    // The acquires before what a thread does now.
    u32 begun(u32 cluster, u32 thread) {
        State &own = state(cluster, thread);
        own.known.resize(acquires_ + 1);
        u32 before = own.count;
        for (const Acquired &each : acquired_)
            if (!own.known[each.number] && views_.before(each.cluster, each.thread, each.time, cluster, thread)) own.knows(each.number);
        if (own.count != before) own.begun = sets_.name(own.numbers());
        return own.begun;
    }

    u32 time(u32 cluster, u32 thread) const { return views_.clocks(cluster).time(thread); }

    // All threads have come to their ends. Each access has its time instead of the releases behind it.
    void end(RetainedAccess *rows, u64 count) {
        std::map<std::tuple<u32, u32, u32>, u32> names;
        for (RetainedAccess *row = rows; row != rows + count; ++row) {
            auto made = names.emplace(std::make_tuple(row->cluster, row->thread, row->ends), 0);
            if (made.second) made.first->second = sets_.name(behind(*row, row->ends));
            row->ends = made.first->second;
        }
    }

  private:
    struct Place {
        u32 cluster;
        Past past;
    };
    struct Acquired {
        u32 number, cluster, thread, time;
    };
    typedef std::vector<Place> Pasts;
    struct Pending {  // a flag that a thread has read without an acquire
        u32 flag, cluster, thread, time;
    };
    struct State {
        u32 begun = 0, count = 0;  // the name of the set of the acquires before, and how many there are
        std::vector<bool> known;   // which: by number
        std::vector<Past> fences;  // that release
        std::vector<u32> own;      // its flags

        void knows(u32 number) { known[number] = true, ++count; }
        std::vector<u32> numbers() const {
            std::vector<u32> found;
            for (u32 number = 1; number < known.size(); ++number)
                if (known[number]) found.push_back(number);
            return found;
        }
    };

    // The releases behind an access.
    std::vector<u32> behind(const RetainedAccess &row, u32 time) const {
        std::vector<u32> found;
        for (u32 number = 1; number <= releases_.size(); ++number)
            if (covers(releases_[number - 1], row, time)) found.push_back(number);
        return found;
    }

    bool is_before(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        return (other_cluster == cluster && other == thread) || views_.before(other_cluster, other, time, cluster, thread);
    }

    // The fence of its own thread answers for most accesses.
    bool covers(const Pasts &pasts, const RetainedAccess &row, u32 time) const {
        auto knew = [&](const Place &at) { return views_.knew(at.cluster, at.past, row.cluster, row.thread, time); };
        auto own = [&](const Place &at) { return at.cluster == row.cluster && at.past.thread == row.thread && knew(at); };
        return std::any_of(pasts.begin(), pasts.end(), own) || std::any_of(pasts.begin(), pasts.end(), knew);
    }

    // R-GM6: a fence of another thread counts, if it comes before the write.
    void add_fences(const FlagAccess &access, Pasts &pasts) {
        for (u32 at = 0; at < states_.size(); ++at) {
            const std::vector<Past> &fences = states_[at].fences;
            auto last = std::find_if(fences.rbegin(), fences.rend(),
                                     [&](const Past &each) { return is_before(at / threads_, each.thread, each.time, access.cluster, access.thread); });
            if (last != fences.rend()) pasts.push_back({at / threads_, *last});
        }
    }

    State &state(u32 cluster, u32 thread) { return states_[(size_t)cluster * threads_ + thread]; }

    void acquire(u32 cluster, u32 thread, PeerFlag &flag) {
        if (!flag.acquired) flag.acquired = ++acquires_;
        acquired_.push_back({flag.acquired, cluster, thread, time(cluster, thread)});
        State &own = state(cluster, thread);
        own.known.resize(acquires_ + 1);
        if (own.known[flag.acquired]) return;
        own.knows(flag.acquired);
        own.begun = sets_.name(own.numbers());
    }

    // An update that leaves the value only reads it.
    static bool writes(const FlagAccess &access) { return access.writes && (access.changes || !(access.updates && access.observes)); }

    // Whether a thread polls: it reads again what it has read last.
    bool is_known(const State &own, const FlagAccess &access) const {
        auto last = std::find_if(own.own.rbegin(), own.own.rend(), [&](u32 at) { return flags_[at].address == access.address; });
        if (writes(access) || last == own.own.rend()) return false;
        return flags_[*last].bytes == access.bytes && !(flags_[*last].flags & PEER_WRITES) && flags_[*last].old == (u64)access.old;
    }

    void add(const Flags &all, u32 number) {
        const FlagAccess &access = all[number];
        if (access.scope < SYS_SCOPE || access.address >> 62 == 2 || !(access.observes || access.writes)) return;
        State &own = state(access.cluster, access.thread);
        if (is_known(own, access)) return;
        if (count_ == capacity_ || access.bytes > sizeof(u64)) return (void)(full_ = true);
        u32 kind = PEER_OBSERVES * access.observes | PEER_WRITES * writes(access) | PEER_UPDATES * access.updates;
        PeerFlag &flag = flags_[count_] = {access.address,
                                           (u64)access.old,
                                           (u64)access.first,
                                           (u64)access.second,
                                           access.bytes,
                                           access.operation,
                                           access.cluster,
                                           access.thread,
                                           access.site,
                                           kind,
                                           0,
                                           0,
                                           0,
                                           access.scope};
        if (writes(access) || access.operation == FlagOrder::EXCH) release(all, access, number, flag); // its value may be read for the same one before
        flag.begins = begun(access.cluster, access.thread);
        if (access.observes && decided<Edge::PEER_ACQUIRE>(access.order & IS_ACQUIRE)) acquire(access.cluster, access.thread, flag);
        else if (access.observes) pending_.push_back({count_, access.cluster, access.thread, time(access.cluster, access.thread)});
        own.own.push_back(count_++);
    }

    void release(const Flags &all, const FlagAccess &access, u32 number, PeerFlag &flag) {
        Pasts pasts;
        add_fences(access, pasts);
        if (decided<Edge::PEER_RELEASE>(access.order & IS_RELEASE)) pasts.push_back({access.cluster, views_.clocks(access.cluster).release(access.thread)});
        if (access.updates && access.from >= 0 && all[(u32)access.from].scope >= SYS_SCOPE) {
            const Pasts &more = by_write_[(u32)access.from];
            pasts.insert(pasts.end(), more.begin(), more.end());
        }
        by_write_[number] = pasts;
        if (pasts.empty()) return;
        releases_.push_back(pasts);
        flag.released = (u32)releases_.size();
    }

    PeerFlag *flags_;
    u32 capacity_, count_ = 0, threads_, acquires_ = 0;
    bool full_ = false;
    Views &views_;
    NumberSets sets_;
    std::vector<State> states_;  // by thread
    std::vector<Acquired> acquired_;
    std::vector<Pasts> releases_;  // of each: its own, those of fences before it, and those of the writes whose release sequence it continues
    std::vector<Pending> pending_;
    std::unordered_map<u32, Pasts> by_write_;
};
