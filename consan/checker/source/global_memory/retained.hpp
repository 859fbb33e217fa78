// The accesses of a launch to global memory, for a comparison with launches that may run beside it (SEMANTICS 12, R-GM14), which the host
// makes (consan/checker/compiled/concurrent_launches.py). Each says whether it is behind a griddepcontrol.wait: in its own thread, or in one that is
// ordered before.
//
// Not kept apart: an order that only the other lanes of the warp have (R-W1) is none here.
#pragma once

#include "decisions.hpp"
#include "peer_order.hpp"
#include "rank_order.hpp"
#include "views.hpp"

class Retained {
  public:
    Retained(const GridInput &input, Views &views)
        : rows_(input.retained), capacity_(input.retained_capacity), threads_(input.one.ctas * input.one.cta_threads), synced_(input.synced), views_(views),
          ranks_(input, views), peers_(input, views), waits_(input.count), behind_(rows_ ? (size_t)input.count * threads_ : 0), waited_(0) {}

    bool wanted() const { return rows_; }
    u64 count() const { return count_; }
    bool full() const { return full_; }
    bool waited() const { return waited_ != 0; }

    // A thread executes griddepcontrol.wait.
    void wait(u32 cluster, u32 thread) {
        u32 rank = ranks_.own(cluster);
        waited_ |= rank;
        if (!rows_ || behind_[place(cluster, thread)] & rank) return;
        waits_[cluster].push_back({thread, views_.clocks(cluster).time(thread)});
        behind_[place(cluster, thread)] |= rank;
    }

    void add(RetainedAccess access) {
        if (!rows_) return;
        if (count_ == capacity_) {
            full_ = true;
            return;
        }
        u32 waits = behind(access.cluster, access.thread);
        if (decided<Edge::GRID_WAIT>(waits & ranks_.own(access.cluster))) access.flags |= RETAINED_BEHIND;
        if (ranks_.wanted())
            access.begins = ranks_.begun(access.cluster, access.thread) | waits << RANKS_WAITED, access.ends = ranks_.time(access.cluster, access.thread);
        if (peers_.wanted()) access.begins = peers_.begun(access.cluster, access.thread), access.ends = peers_.time(access.cluster, access.thread);
        rows_[count_++] = access;
    }

    PeerOrder &peers() { return peers_; }

    // All threads have come to their ends. `begun_before_end`: of each rank, the ranks that have begun before its end, and those that have waited.
    void end(u32 *begun_before_end) {
        if (rows_ && ranks_.wanted()) ranks_.end(rows_, count_, waits_, begun_before_end);
        if (rows_ && peers_.wanted()) peers_.end(rows_, count_);
    }

  private:
    size_t place(u32 cluster, u32 thread) const { return (size_t)cluster * threads_ + thread; }

    // The ranks with a wait before what the thread does next. That stays so.
    u32 behind(u32 cluster, u32 thread) {
        u32 &known = behind_[place(cluster, thread)];
        if (known == waited_) return known;
        for (u32 other = synced_ ? 0 : cluster; other < (synced_ ? (u32)waits_.size() : cluster + 1); ++other)
            for (const GridWait &wait : waits_[other])
                if (!(known & ranks_.own(other)) && views_.before(other, wait.thread, wait.time, cluster, thread)) known |= ranks_.own(other);
        return known;
    }

    RetainedAccess *rows_;
    u64 capacity_, count_ = 0;
    u32 threads_;
    bool synced_, full_ = false;
    Views &views_;
    RankOrder ranks_;
    PeerOrder peers_;
    std::vector<std::vector<GridWait>> waits_;  // by cluster
    std::vector<u32> behind_;  // by thread: ranks
    u32 waited_;  // ranks
};
