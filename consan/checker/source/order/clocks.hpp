// Vector clocks of threads, exact. SEMANTICS section 3: an edge goes from a thread's accesses before it arrives at a barrier to the accesses
// of the waiting threads after the barrier.
//
// After a barrier all its threads have the same clock, so threads share immutable vectors: a thread has a vector and its own time. A second
// set of clocks treats each warp as one thread; a pair that only this set orders lacks bar.warp.sync (R-W1), and is a warning.
//
// Besides threads there are actors: phases of an mbarrier, groups of asynchronous operations. A thread's knowledge of them goes the way of all
// happens-before. Where a module has asynchronous proxies, each entry has more: what of it is behind a proxy fence (SEMANTICS 5), for each
// memory that fences keep apart.
//
// Where a release need not publish (relaxed arrivals, scopes), a third set is the order of execution: who has waited for whom. It says which
// phases are over and which CTAs run, and nothing about data.
#pragma once

#include <algorithm>
#include <vector>

#include "entries.hpp"
#include "knowledge.hpp"
#include "shape.hpp"

// What somebody knows: of the actors of the cluster, and of the chains of all clusters; of these also what it would know if every observation were a
// synchronisation (views.hpp).
struct Vector {
    Entries own;
    Knowledge chains = {}, loose = {};

    explicit operator bool() const { return (bool)own; }
    bool operator==(const Vector &other) const { return own == other.own && chains == other.chains && loose == other.loose; }
    void join_chains(const Vector &more) { chains.join(more.chains), loose.join(more.loose); }
    bool operator!=(const Vector &other) const { return !(*this == other); }
};

constexpr u32 MOST_MEMORIES = 18;  // shared memory of each CTA of a cluster, global memory, and what is behind a fence.sc

// The clocks that a thread publishes at one moment. `executed`: in the order of execution.
struct Past {
    u32 thread, time, warp_time, fenced[MOST_MEMORIES];
    Vector seen, executed;
};

// The last arrival of a warp, by the number of its first thread; none if it has not arrived.
inline const Past *last_of_warp(const std::vector<Past> &arrivals, u32 first) {
    auto last = std::find_if(arrivals.rbegin(), arrivals.rend(), [&](const Past &past) { return past.thread >= first && past.thread < first + LANES; });
    return last == arrivals.rend() ? nullptr : &*last;
}

// The clocks that several threads have published together.
struct Joined {
    Vector seen, executed;
    explicit operator bool() const { return (bool)seen; }
};

// The clocks that some arrivals have published, the second where each warp is one thread.
struct Deposit {
    Vector seen;
    std::vector<u32> warps;
};

class Clocks {
  public:
    // `memories`: those that proxy fences keep apart; the last is global memory. `executed`: whether the order of execution is another one.
    // `sc`: what is behind a fence.sc is kept as if that were one more memory.
    Clocks(const Shape &shape, u32 memories, bool executed, bool sc = false)
        : warps_(shape.warps()), sc_(sc), memories_(memories + sc), stride_(1 + memories_), row_(warps_ * stride_), actors_(shape.threads()),
          time_(shape.threads(), 1), warp_time_(warps_, 1), warp_seen_(warps_ * row_, 0), fenced_(memories_ * shape.threads(), 0), taken_(warps_, false) {
        seen_.assign(shape.threads(), {Entries(stride_)});
        if (executed) executed_ = seen_;
    }

    u32 new_actor() { return actors_++; }
    u32 threads() const { return (u32)seen_.size(); }

    // The numbers of memories: the shared memory of a CTA, and global memory.
    u32 shared_memory(u32 cta) const { return memories_ - sc_ > 2 ? cta : 0; }
    u32 global_memory() const { return memories_ - sc_ - 1; }
    bool keeps_fences() const { return memories_ > sc_; }
    u32 sc_fence() const { return memories_ - 1; }
    bool keeps_sc() const { return sc_; }
    u32 stride() const { return stride_; }

    u32 time(u32 thread) const { return time_[thread]; }
    u32 warp_time(u32 thread) const { return warp_time_[thread / LANES]; }
    // The time of an actor that a thread knows.
    u32 known(u32 thread, u32 actor) const { return seen_[thread].own.at(actor); }
    // The same in the order of execution.
    u32 executed(u32 thread, u32 actor) const { return executed(thread).own.at(actor); }
    const Vector &seen(u32 thread) const { return seen_[thread]; }
    const Vector &executed(u32 thread) const { return executed_.empty() ? seen_[thread] : executed_[thread]; }
    // The time of an actor in a vector.
    static u32 in(const Vector &vector, u32 actor) { return vector ? vector.own.at(actor) : 0; }
    static u32 time_in(const Joined &joined, u32 thread) { return joined.seen.own.at(thread); }

    bool before(u32 other, u32 time, u32 thread) const { return other == thread || known(thread, other) >= time; }

    bool warps_before(u32 other, u32 warp_time, u32 thread) const {
        u32 from = other / LANES, to = thread / LANES;
        return from == to || warp_seen_[to * row_ + from * stride_] >= warp_time;
    }

    // Whether a moment is behind a proxy fence for what a thread does next to a memory.
    bool fenced(u32 other, u32 time, u32 thread, u32 memory) const {
        if (other == thread && fenced_[memories_ * thread + memory] >= time) return true;
        return known_fenced(thread, other, memory) >= time;  // of its own accesses too: another thread's fence may cover them
    }
    // Whether a thread has executed a proxy fence since a moment of its own.
    bool fenced_own(u32 thread, u32 time, u32 memory) const { return fenced_[memories_ * thread + memory] >= time; }
    bool warps_fenced(u32 other, u32 warp_time, u32 thread, u32 memory) const {
        return warp_seen_[thread / LANES * row_ + other / LANES * stride_ + 1 + memory] >= warp_time;
    }
    u32 known_fenced(u32 thread, u32 actor, u32 memory) const { return seen_[thread].own.at(actor, 1 + memory); }

    // fence.proxy.async: all that the thread knows is behind it. It enters a new moment. `memories`: a bit for each memory.
    void fence(u32 thread, u32 memories) {
        Vector &own = seen_[thread];
        if (own != fence_own_ || memories != fence_memories_)
            fence_own_ = own, fence_memories_ = memories, fence_made_ = {own.own.fenced(memories), own.chains.fenced(fences_of(memories)), own.loose};
        own = fence_made_;
        u32 warp = thread / LANES;
        u32 *row = &warp_seen_[warp * row_];
        raise_fenced(row, row_, memories);
        for (u32 m = 0; m < memories_; ++m)
            if (memories >> m & 1) fenced_[memories_ * thread + m] = time_[thread], row[warp * stride_ + 1 + m] = warp_time_[warp];
        ++time_[thread], ++warp_time_[warp];
    }

    // The clock that a thread publishes when it arrives. Its own time advances.
    Past release(u32 thread) {
        Past past{thread, time_[thread], warp_time_[thread / LANES], {}, seen_[thread], executed_.empty() ? Vector{} : executed_[thread]};
        std::copy_n(fenced_.data() + memories_ * thread, memories_, past.fenced);
        ++time_[thread];
        ++warp_time_[thread / LANES];
        return past;
    }

    Joined join(const std::vector<Past> &pasts) const { return {join(pasts, &Past::seen), executed_.empty() ? Vector{} : join(pasts, &Past::executed)}; }

    // Add what a thread has published.
    void give(Deposit &to, const Past &past) const {
        add(to.seen, past, &Past::seen);
        add_warp(past, to.warps);
    }
    void give_executed(Vector &to, const Past &past) const {
        if (!executed_.empty()) add(to, past, &Past::executed);
    }
    // Add what is in another deposit.
    static void give(Deposit &to, const Deposit &more) {
        add(to.seen, more.seen);
        to.warps.resize(std::max(to.warps.size(), more.warps.size()), 0);
        for (size_t i = 0; i < more.warps.size(); ++i) to.warps[i] = std::max(to.warps[i], more.warps[i]);
    }
    static void add(Vector &to, const Vector &more) {
        if (!more || to == more) return;
        if (!to) return (void)(to = more);
        to.own.raise(more.own);
        to.join_chains(more);
    }

    // A vector with some actors at a number and nothing else.
    Vector only(const std::vector<u32> &actors, u32 number = 1) const {
        Vector made{Entries(stride_)};
        for (u32 actor : actors) made.own.raise(actor, 0, number);
        return made;
    }

    // A thread takes what has been gathered, and knows an actor up to a number. `gathered`: null if nothing has been.
    void take(u32 thread, const Vector &gathered, u32 actor, u32 number) { take(seen_[thread], gathered, actor, number, last_); }
    void take_executed(u32 thread, const Vector &gathered, u32 actor, u32 number) {
        if (!executed_.empty()) take(executed_[thread], gathered, actor, number, last_executed_);
    }
    void take(u32 thread, const Vector &gathered) { take(thread, gathered, NOTHING, 0); }
    void take_executed(u32 thread, const Vector &gathered) { take_executed(thread, gathered, NOTHING, 0); }

    // What a thread knows of chains.
    const Knowledge &chains(u32 thread) const { return seen_[thread].chains; }
    const Knowledge &loose_chains(u32 thread) const { return seen_[thread].loose; }
    void set_chains(u32 thread, const Knowledge &known) { seen_[thread].chains = known; }
    void add_loose(u32 thread, const Knowledge &more) { seen_[thread].loose.join(more); }

    // The same where each warp is one thread.
    void take_warp(u32 thread, const std::vector<u32> &gathered) {
        u32 *own = &warp_seen_[thread / LANES * row_];
        for (u32 i = 0; i < gathered.size(); ++i) own[i] = std::max(own[i], gathered[i]);
        taken_[thread / LANES] = true;
    }

    // Whether single lanes of the thread's warp have joined a clock (take_warp).
    bool lanes_take(u32 thread) const { return taken_[thread / LANES]; }

    // Threads take over a joined clock. It covers their own clocks, because they have waited since their own arrivals.
    void acquire(const std::vector<u32> &threads, const Joined &joined) {
        for (u32 thread : threads) {
            seen_[thread] = joined.seen;
            if (!executed_.empty()) executed_[thread] = joined.executed;
        }
    }

    // The same where each warp is one thread.
    void acquire_warps(const std::vector<u32> &threads, const std::vector<u32> &joined) {
        u32 done = NOTHING;
        for (u32 thread : threads) {
            u32 warp = thread / LANES;
            if (warp == done) continue;
            done = warp;
            for (u32 i = 0; i < row_; ++i) warp_seen_[warp * row_ + i] = std::max(warp_seen_[warp * row_ + i], joined[i]);
        }
    }

    // Add what a warp publishes where each warp is one thread. It may learn more before others take it, so this is for the moment of the arrival.
    void add_warp(const Past &past, std::vector<u32> &to) const {
        u32 warp = past.thread / LANES;
        to.resize(row_, 0);
        for (u32 i = 0; i < row_; ++i) to[i] = std::max(to[i], warp_seen_[warp * row_ + i]);
        to[warp * stride_] = std::max(to[warp * stride_], past.warp_time);
    }

  private:
    struct Last {
        Vector own, gathered, made;
        u32 actor = 0, number = 0;
    };

    void raise_own(Entries &entries, const Past &past) const {
        entries.raise(past.thread, 0, past.time);
        for (u32 m = 0; m < memories_; ++m) entries.raise(past.thread, 1 + m, past.fenced[m]);
    }

    Vector join(const std::vector<Past> &pasts, Vector Past::*seen) const {
        Vector made;
        for (const Past &past : pasts) add(made, past.*seen);
        for (const Past &past : pasts) raise_own(made.own, past);
        return made;
    }

    void add(Vector &to, const Past &past, Vector Past::*seen) const {
        add(to, past.*seen);
        raise_own(to.own, past);
    }

    // The lanes of a warp mostly take the same: the last result serves them all.
    void take(Vector &own, const Vector &gathered, u32 actor, u32 number, Last &last) {
        if (!gathered && actor == NOTHING) return;
        if (own != last.own || gathered != last.gathered || actor != last.actor || number != last.number) {
            Vector joined = own;
            add(joined, gathered);
            if (actor != NOTHING) joined.own.raise(actor, 0, number);
            last = {own, gathered, joined, actor, number};
        }
        own = last.made;
    }

    u32 fences_of(u32 memories) const {
        bool sc = sc_ && memories >> sc_fence() & 1, proxy = memories_ > sc_ && memories >> global_memory() & 1;
        return sc * (u32)FENCE_SC | proxy * (u32)FENCE_PROXY;
    }

    void raise_fenced(u32 *entries, size_t size, u32 memories) const {
        for (size_t i = 0; i < size; i += stride_)
            for (u32 m = 0; m < memories_; ++m)
                if (memories >> m & 1) entries[i + 1 + m] = std::max(entries[i + 1 + m], entries[i]);
    }

    u32 warps_, sc_, memories_, stride_, row_, actors_;  // stride: words of an entry; row: words of a warp's clock
    std::vector<u32> time_, warp_time_, warp_seen_, fenced_;  // fenced: up to when a thread's own accesses are behind its proxy fences
    std::vector<bool> taken_;
    std::vector<Vector> seen_, executed_;
    Vector fence_own_, fence_made_;
    u32 fence_memories_ = 0;
    Last last_, last_executed_;
};
