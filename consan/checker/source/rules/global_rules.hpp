// Global memory, and what orders through memory: strong accesses and fences (SEMANTICS 12).
#pragma once

#include "barrier_rules.hpp"

class GlobalRules : protected BarrierRules {
  protected:
    using BarrierRules::BarrierRules;
    using BarrierRules::on;

    bool on(u32 thread, const effects::Observe &access, Released &) {
        auto look_now = [&] { look(thread, access.log); };
        auto early_now = [&] {
            on_next(thread, access.log, [&](const Access &next) { races_.early(next); });
            return !(access.log.event().flags & IGNORED);
        };
        auto cross_now = [&](i32 store) { on_next(thread, access.log, [&](const Access &next) { races_.cross(next, store); }); };
        return part_.observe(thread, look_now, early_now, cross_now) || turns_.wait_before(thread);
    }
    bool on(u32 thread, const effects::Publish &access, Released &released) {
        if (access.order() & IS_RELEASE) turns_.catch_up(thread, released);
        return part_.publish(thread);
    }
    bool on(u32 thread, const effects::GridWait &, Released &) { return part_.grid_wait(thread); }
    bool on(u32, const effects::Unseen &, Released &) { return true; }  // noted before the replay
    bool on(u32 thread, const effects::Fence &fence, Released &released) {
        if (fence.of_puts() || fence.own_puts()) return part_.fence_of_puts(thread, fence);
        // R-SR1: one with .sync_restrict orders no accesses to global memory.
        if (fence.restricted() && (part_.alone() || !shape_.takes_restricted(thread, fence.releases()))) return true;
        if (fence.order() & IS_RELEASE) turns_.catch_up(thread, released);
        scopes_.fence(thread, fence.acquires(), fence.releases(), !fence.narrow());
        return part_.fence(thread, fence);
    }
    bool on(u32 thread, const effects::MapFence &fence, Released &) {
        if (fence.acquires()) part_.acquire_map(thread, fence.map());
        else part_.release_maps(thread);
        return true;
    }
    bool on(u32 thread, const effects::GlobalRead &load, Released &) {
        if (!load.ignored()) part_.access(thread, load);
        return true;
    }
    bool on(u32 thread, const effects::GlobalWrite &store, Released &) {
        if (store.releases() && thread % LANES) return true;  // the first lane writes the map that a warp copies
        if (store.ignored()) return true;
        part_.access(thread, store);
        if (store.releases()) part_.release_maps(thread);
        return true;
    }
};
