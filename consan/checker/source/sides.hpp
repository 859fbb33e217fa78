// The sides of asynchronous copies in global memory, against what other units do (SEMANTICS 12, G11).
//
// A store writes from its issue on, and is over for its thread after wait_group without .read: so it is compared at both moments, and kept
// with the second one. A load reads at its issue.
//
// Not detected: writes of other units between the issue of a load and its completion, if they are ordered behind the issue.
#pragma once

#include "outer.hpp"
#include "tensors.hpp"

class Sides {
  public:
    void handle(Outer &outer, u32 unit, u32 thread, const LaneLog &log) {
        const Event &event = log.event();
        switch (event.kind) {
        case COPY:
        case BULK_LOAD:
        case TENSOR_LOAD:
        case BULK_STORE:
        case TENSOR_STORE: rows(outer, unit, thread, log); break;
        case BULK_COMMIT: ++threads_[thread].commits; break;
        case BULK_WAIT:
            if (!(event.flags & READ_ONLY)) retire(outer, threads_[thread], log.a());
            break;
        default: break;
        }
    }

    // Copies that nothing has waited for.
    void finish(Outer &outer) {
        for (auto &each : threads_)
            for (Store &store : each.second.stores) store.access.endless = true, outer.add(store.access);
    }

    static bool writes(const Event &event) { return event.kind == BULK_STORE || event.kind == TENSOR_STORE; }
    static bool reads(const Event &event) { return event.kind == COPY || event.kind == BULK_LOAD || event.kind == TENSOR_LOAD; }

    // The rows of global memory that a copy touches: f(address, bytes). False if they are not known.
    template <typename F> static bool each_row(const LaneLog &log, F f) {
        const Event &event = log.event();
        if (event.kind == COPY) return f(log.wide_value(), std::min(log.b(), (u32)event.bytes)), true;
        if (event.kind == BULK_STORE || event.kind == BULK_LOAD) return f(log.wide_value(), log.a()), true;
        Region region;
        if (!Tensor(log).region(region)) return false;
        region.any_row([&](u64 low, u64 high) { return f(low, (u32)(high - low)), false; });
        return true;
    }

  private:
    struct Store {
        OuterAccess access;
        u32 group;
    };
    struct Thread {
        u32 commits = 0;
        std::vector<Store> stores;
    };

    static OuterAccess of(const Event &event, u32 unit, u32 thread, u64 address, u32 bytes, bool writes) {
        OuterAccess made{};
        made.address = address, made.bytes = bytes, made.unit = unit, made.thread = thread, made.site = (u32)event.site;
        made.flag = -1, made.writes = writes, made.reads = !writes, made.asynchronous = true;
        made.reduces = writes && event.flags & ADDS;
        return made;
    }

    void rows(Outer &outer, u32 unit, u32 thread, const LaneLog &log) {
        bool stores = writes(log.event());
        Thread &own = threads_[thread];
        bool known = each_row(log, [&](u64 address, u32 bytes) {
            OuterAccess made = of(log.event(), unit, thread, address, bytes, stores);
            if (stores) outer.meet(made), own.stores.push_back({made, own.commits});
            else outer.add(made);
        });
        if (!known) outer.skip();
    }

    // `pending`: groups that may stay in flight.
    void retire(Outer &outer, Thread &own, u32 pending) {
        auto over = [&](const Store &store) { return (u64)store.group + pending < own.commits; };
        for (const Store &store : own.stores)
            if (over(store)) outer.add(store.access);
        own.stores.erase(std::remove_if(own.stores.begin(), own.stores.end(), over), own.stores.end());
    }

    std::unordered_map<u32, Thread> threads_;
};
