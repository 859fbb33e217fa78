// For a launch of several ranks: which of them have begun before an access, and which end behind it. A launch that runs beside a part of this one
// is compared with it by these (SEMANTICS 12, R-RK5; consan/session/comparing/rank_launches.py). A set of ranks is a word with a bit for each.
#pragma once

#include "decisions.hpp"
#include "views.hpp"

struct GridWait {  // a griddepcontrol.wait
    u32 thread, time;
};

class RankOrder {
  public:
    RankOrder(const GridInput &input, Views &views)
        : clusters_(input.rank_clusters), count_(clusters_ ? input.count / clusters_ : 0), threads_(input.one.ctas * input.one.cta_threads),
          synced_(input.synced), views_(views), begun_(clusters_ ? (size_t)input.count * threads_ : 0) {}

    bool wanted() const { return clusters_; }

    // The rank of a cluster; of a launch of one, the first.
    u32 own(u32 cluster) const { return clusters_ ? 1u << cluster / clusters_ : 1; }

    // The ranks that have begun before what a thread does now.
    u32 begun(u32 cluster, u32 thread) {
        if (!synced_) return own(cluster);
        Begun &last = begun_[(size_t)cluster * threads_ + thread];
        const Knowledge &known = views_.clocks(cluster).chains(thread);
        if (last.known != known) last = {known, begun(known)};
        return last.ranks | own(cluster);
    }

    u32 time(u32 cluster, u32 thread) const { return views_.clocks(cluster).time(thread); }

    // All threads have come to their ends. Each access has its time instead of the ranks that end behind it.
    void end(RetainedAccess *rows, u64 count, const std::vector<std::vector<GridWait>> &waits, u32 *begun_before_end) {
        std::vector<Knowledge> known(count_);
        for (u32 cluster = 0; synced_ && cluster < count_ * clusters_; ++cluster)
            for (u32 thread = 0; thread < threads_; ++thread) known[cluster / clusters_].join(views_.clocks(cluster).chains(thread));
        for (u32 rank = 0; rank < count_; ++rank) begun_before_end[rank] = begun(known[rank]) | 1u << rank | waited(rank, known[rank], waits) << RANKS_WAITED;
        for (RetainedAccess *row = rows; row != rows + count; ++row) {
            u32 time = row->ends;
            row->ends = own(row->cluster);
            for (u32 rank = 0; rank < count_; ++rank)
                if (decided<Edge::RANK_END>(views_.known(known[rank], row->cluster, row->thread, time))) row->ends |= 1u << rank;
        }
    }

  private:
    struct Begun {
        Knowledge known;
        u32 ranks = 0;
    };

    u32 begun(const Knowledge &known) const {
        u32 ranks = 0;
        for (u32 cluster = 0; cluster < count_ * clusters_; ++cluster)
            for (const Known &each : known.of(cluster))
                if (decided<Edge::RANK_BEGIN>(each.number > 0)) ranks |= own(cluster);
        return ranks;
    }

    // The ranks with a wait before the end of a rank.
    u32 waited(u32 rank, const Knowledge &known, const std::vector<std::vector<GridWait>> &waits) const {
        u32 ranks = 0;
        for (u32 cluster = 0; cluster < waits.size(); ++cluster)
            for (const GridWait &each : waits[cluster])
                if (!(ranks & own(cluster)) && (own(cluster) == 1u << rank || views_.known(known, cluster, each.thread, each.time))) ranks |= own(cluster);
        return ranks;
    }

    u32 clusters_, count_, threads_;  // clusters: of a rank
    bool synced_;
    Views &views_;
    std::vector<Begun> begun_;  // by thread
};
