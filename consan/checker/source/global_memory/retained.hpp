// The accesses of a launch to global memory, for a comparison with launches that may run beside it (SEMANTICS 12, R-GM14), which the host
// makes (consan/checker/compiled/concurrent_launches.py). Each says whether it is behind a griddepcontrol.wait: in its own thread, or in one that is
// ordered before.
//
// Reads of the same bytes by one instruction differ in their threads alone. Where there is no room for each, one row stands for them.
//
// Not kept apart: an order that only the other lanes of the warp have (R-W1) is none here.
#pragma once

#include "decisions.hpp"
#include "peer_order.hpp"
#include "rank_order.hpp"
#include "views.hpp"

// Rows that stand for reads, by what these have in common: an open table of their numbers from 1 on.
class AlikeReads {
  public:
    static bool plain(const RetainedAccess &access) { return (access.flags & ~RETAINED_BEHIND) == RETAINED_READS; }

    bool begun() const { return !places_.empty(); }
    void begin(u64 rows) {
        size_t places = 1;
        while (places < 2 * rows) places *= 2;
        places_.resize(places);
    }

    // The row that stands for a read; null: row `number` does from now on.
    RetainedAccess *known(RetainedAccess *rows, const RetainedAccess &read, u64 number) {
        for (size_t at = hash(read);; ++at) {
            u32 &place = places_[at & (places_.size() - 1)];
            if (!place) return place = (u32)number + 1, nullptr;
            if (alike(rows[place - 1], read)) return &rows[place - 1];
        }
    }

  private:
    static bool alike(const RetainedAccess &one, const RetainedAccess &other) {
        return one.address == other.address && one.bytes == other.bytes && one.site == other.site && one.flags == other.flags && one.element == other.element;
    }
    static size_t hash(const RetainedAccess &read) { return ((read.address * 0x9E3779B97F4A7C15ull) >> 24) + read.site * 0x9E3779B1ull; }

    std::vector<u32> places_;
};

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
        if (!rows_ || full_) return;
        if (count_ == capacity_ && !alike_.begun()) unite();
        u32 waits = behind(access.cluster, access.thread);
        if (decided<Edge::GRID_WAIT>(waits & ranks_.own(access.cluster))) access.flags |= RETAINED_BEHIND;
        if (ranks_.wanted())
            access.begins = ranks_.begun(access.cluster, access.thread) | waits << RANKS_WAITED, access.ends = ranks_.time(access.cluster, access.thread);
        if (peers_.wanted()) access.begins = peers_.begun(access.cluster, access.thread), access.ends = peers_.time(access.cluster, access.thread);
        keep(access);
    }

    PeerOrder &peers() { return peers_; }

    // All threads have come to their ends. `begun_before_end`: of each rank, the ranks that have begun before its end, and those that have waited.
    void end(u32 *begun_before_end) {
        if (rows_ && ranks_.wanted()) ranks_.end(rows_, count_, waits_, begun_before_end);
        if (rows_ && peers_.wanted()) peers_.end(rows_, count_);
    }

  private:
    // One row for reads that are alike, among those that are here and from now on. Of several ranks and GPUs each has an order of its own.
    void unite() {
        if (ranks_.wanted() || peers_.wanted()) return;
        alike_.begin(capacity_);
        u64 all = std::exchange(count_, 0);
        for (u64 row = 0; row < all; ++row) keep(rows_[row]);
    }

    void keep(RetainedAccess access) {
        bool plain = AlikeReads::plain(access);
        if (plain) access.value = 0;
        RetainedAccess *known = plain && alike_.begun() ? alike_.known(rows_, access, count_) : nullptr;
        if (known) ++known->value;
        else if (count_ == capacity_) full_ = true;
        else rows_[count_++] = access;
    }

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
    AlikeReads alike_;
    Views &views_;
    RankOrder ranks_;
    PeerOrder peers_;
    std::vector<std::vector<GridWait>> waits_;  // by cluster
    std::vector<u32> behind_;  // by thread: ranks
    u32 waited_;  // ranks
};
