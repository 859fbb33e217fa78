// Groups of bulk operations and of matrix products (SEMANTICS 4.2, 4.3): what has been committed, and what a wait has made known.
//
// Groups of bulk operations belong to a thread. A product is one operation of four warps, and each warp waits for itself. A wait makes the
// number of its groups known to its thread only; it goes on with happens-before.
#pragma once

#include <vector>

#include "scopes.hpp"

class Groups {
  public:
    Groups(const Shape &shape, Clocks &clocks, Scopes &scopes)
        : shape_(shape), clocks_(clocks), scopes_(scopes), bulk_(shape.threads()), products_(shape.threads()), warps_(shape.warps(), NOTHING),
          signals_(warps_.size(), NOTHING) {}

    struct Owner {
        u32 commits = 0, read = 0, retired = 0, sources = NOTHING, results = NOTHING;  // the last two: actors
        bool waits = false;
    };
    const Owner &bulk(u32 thread) const { return bulk_[thread]; }
    const Owner &products(u32 thread) const { return products_[thread]; }

    void commit(u32 thread) {
        Owner &own = bulk_[thread];
        if (own.sources == NOTHING) own.sources = clocks_.new_actor(), own.results = clocks_.new_actor();
        ++own.commits;
    }

    // `pending`: groups that may stay in flight. With `read_only` only their sources are complete.
    void wait(u32 thread, u32 pending, bool read_only) {
        Owner &own = bulk_[thread];
        own.waits = true;
        if (own.commits <= pending) return;
        u32 done = own.commits - pending;
        if (decided<Edge::BULK_RESULTS>(!read_only) && done > own.retired) clocks_.take(thread, {}, own.results, own.retired = done);
        if (done > own.read && decided<Edge::BULK_SOURCES>()) clocks_.take(thread, {}, own.sources, own.read = done);
    }

    void commit_products(u32 thread) { ++products_[thread].commits; }

    // Whether the other warps of a thread's warpgroup have committed what it has.
    bool together(u32 thread) const {
        u32 own = products_[thread].commits, first = thread / WARPGROUP_THREADS * WARPGROUP_THREADS,
            end = std::min(first + WARPGROUP_THREADS, shape_.threads());
        for (u32 each = own ? first : end; each < end; each += LANES)
            if (shape_.exists(each) && products_[each].commits < own) return false;
        return true;
    }

    // What the thread releases from then on signals that the groups are over.
    void wait_for_products(u32 thread, u32 pending) {
        Owner &own = products_[thread];
        if (own.commits <= pending || own.commits - pending <= own.retired) return;
        u32 &actor = warps_[thread / LANES];
        if (actor == NOTHING) actor = clocks_.new_actor();
        clocks_.take(thread, {}, actor, own.read = own.retired = own.commits - pending);
        u32 &signal = signals_[thread / WARPGROUP_THREADS];
        if (signal == NOTHING) signal = clocks_.new_actor();
        scopes_.signals(thread, {signal, own.retired});
    }

    // The groups of another thread that a thread knows to be complete.
    bool sources_read(u32 issuer, u32 group, u32 thread) const { return known(thread, bulk_[issuer].sources) > group; }
    bool results_written(u32 issuer, u32 group, u32 thread) const { return known(thread, bulk_[issuer].results) > group; }

    // A thread of the warpgroup must know of the waits of all warps that read the bytes (all four, or `reader`), or have seen an arrival of a
    // warp behind its wait. Another thread must know of any wait (D12, SEMANTICS 9).
    bool products_over(u32 first, u32 group, u32 thread, u32 reader) const {
        u32 warp = first / LANES, end = warp, seen = 0;
        while (end < warp + 4 && end < warps_.size() && shape_.lanes(end)) ++end;
        for (u32 each = warp; each < end; ++each) seen += known(thread, warps_[each]) > group;
        bool inside = thread / LANES >= warp && thread / LANES < end;
        if (inside && known(thread, signals_[first / WARPGROUP_THREADS]) > group) return true;
        if (inside && reader != NOTHING) return known(thread, warps_[reader]) > group;
        return inside ? seen == end - warp : seen != 0;
    }

    // Products, as numbers: groups count from the last one that their thread has waited for. `witness` knows what everybody knows.
    void state(std::vector<u32> &found, u32 witness) const {
        for (u32 thread = 0; thread < products_.size(); ++thread) {
            const Owner &own = products_[thread], &first = products_[thread / WARPGROUP_THREADS * WARPGROUP_THREADS];
            for (u32 each :
                 {own.commits - own.retired, own.read - own.retired, own.commits - first.commits, own.retired - known(witness, warps_[thread / LANES])})
                found.push_back(each);
        }
    }
    // How far a group of products is from what the warps of its warpgroup have waited for; NOTHING where it is over.
    void distances(std::vector<u32> &found, u32 first, u32 group, u32 witness) const {
        for (u32 warp = first / LANES; warp < first / LANES + 4 && warp < warps_.size(); ++warp) {
            u32 over = known(witness, warps_[warp]);
            found.push_back(over > group ? NOTHING : group - over);
        }
    }
    // The commits of each thread.
    std::vector<u32> commits() const {
        std::vector<u32> found;
        for (const Owner &own : products_) found.push_back(own.commits);
        return found;
    }
    // The groups of products have so many more numbers; so has what threads know of them.
    void move(const std::vector<u32> &more, const std::vector<bool> &gone, u32 witness) {
        for (u32 warp = 0; warp < warps_.size(); ++warp) {
            if (warps_[warp] == NOTHING || !more[warp * LANES]) continue;
            u32 number = known(witness, warps_[warp]) + more[warp * LANES];
            for (u32 thread = 0; thread < products_.size(); ++thread)
                if (!gone[thread]) clocks_.take(thread, {}, warps_[warp], number);
        }
        for (u32 thread = 0; thread < products_.size(); ++thread) {
            Owner &own = products_[thread];
            own.commits += more[thread], own.read += more[thread], own.retired += more[thread];
        }
    }

  private:
    u32 known(u32 thread, u32 actor) const { return actor == NOTHING ? 0 : clocks_.known(thread, actor); }

    const Shape &shape_;
    Clocks &clocks_;
    Scopes &scopes_;
    std::vector<Owner> bulk_, products_;
    std::vector<u32> warps_, signals_;  // actors: of each warp, of each warpgroup
};
