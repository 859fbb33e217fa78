// Barriers of CTAs, warps and clusters, and the convergence of lanes (SEMANTICS 3: R-BAR1 to R-BAR4).
#pragma once

#include "shared_rules.hpp"

class BarrierRules : protected SharedRules {
  protected:
    BarrierRules(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : SharedRules(input, output, grid, cluster, rules), points_(shape_.threads(), 0) {}

    using SharedRules::on;

    bool on(u32 thread, const effects::JoinPassed &join, Released &) {
        if (divergence_.ends_at_join(thread, join.site())) turns_.end_undefined();
        return true;
    }
    bool on(u32 thread, const effects::ClusterBarrierArrive &arrive, Released &released) {
        if (cluster_barrier_.has_arrived(thread)) return misuse(thread, arrive.site(), ARRIVED_TWICE), true;
        return cluster_barrier_.arrive(thread, arrive.relaxed(), released);
    }
    bool on(u32 thread, const effects::ClusterBarrierWait &, Released &) { return cluster_barrier_.wait(thread); }
    bool on(u32 thread, const effects::WarpSync &barrier, Released &released) {
        if (!(barrier.mask() >> thread % LANES & 1)) return misuse(thread, barrier.site(), NOT_IN_MASK), true;
        warp_barriers_.arrive(thread, barrier.mask(), !barrier.site(), released);
        return false;
    }
    bool on(u32 thread, const effects::PointReached &point, Released &released) {
        if (Divergence::lacks(point, thread)) {
            ++points_[thread];
            if (!point.waits()) misuse(thread, point.site(), NOT_IN_MASK);  // a bar.warp.sync tells it itself
            return true;
        }
        if (divergence_.ends_at_point(thread, points_[thread]++)) turns_.end_undefined();
        convergence_.arrive(thread, point.members(), released);
        return false;
    }

    bool on(u32 thread, const effects::CtaBarrier &barrier, Released &released) {
        u32 id = barrier.id(), count = barrier.threads(), site = barrier.site();
        if (barrier.warpgroup()) {
            id = MOST_BARRIERS + thread % shape_.cta_threads() / WARPGROUP_THREADS;
            barriers(thread).arrive({thread, id, WARPGROUP_THREADS, site, true, 0}, released);
            return false;
        }
        if (Reason why = Barriers::out_of_range(id, count)) return misuse(thread, site, why, id), true;
        if (id == 0 && count == NOTHING) seals_.arrive(thread, barrier.seal(), copies_.waited(thread));
        u32 forgets = barriers(thread).forgets();
        barriers(thread).arrive({thread, id, count, site, barrier.waits(), barrier.call()}, released);
        if (barriers(thread).forgets() == forgets) return false;
        part_.pass_barrier();
        pass_milestone(thread);
        return false;
    }

  private:
    std::vector<u32> points_;  // by thread: points that it has come to
};
