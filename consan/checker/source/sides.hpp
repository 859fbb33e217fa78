// The sides of asynchronous copies in global memory, against what other units do (SEMANTICS 12, G11).
//
// A store writes from its issue on, and is over for its thread after wait_group without .read: what comes between races with it (outer.hpp).
// A load reads at its issue.
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
        case BULK_COMMIT: commit(outer, threads_[thread]); break;
        case BULK_WAIT: wait(outer, unit, thread, log.a(), event.flags & READ_ONLY); break;
        default: break;
        }
    }

    static bool writes(const Event &event) { return event.kind == BULK_STORE || event.kind == TENSOR_STORE; }
    static bool reads(const Event &event) { return event.kind == COPY || event.kind == BULK_LOAD || event.kind == TENSOR_LOAD; }

    // The rows of global memory that a copy touches: f(address, bytes). False if they are not known.
    template <typename F> static bool each_row(const LaneLog &log, F f) {
        const Event &event = log.event();
        if (event.kind == COPY) return f(log.wide_value(), std::min(log.b(), (u32)event.bytes)), true;
        if (event.kind == BULK_STORE || event.kind == BULK_LOAD) return f(log.wide_value(), log.a()), true;
        std::vector<Region> regions = Tensor(log).regions();
        for (const Region &region : regions) region.any_row([&](u64 low, u64 high) { return f(low, (u32)(high - low)), false; });
        return !regions.empty();
    }

  private:
    struct Thread {
        u32 commits = 0;
        std::vector<u32> stores;  // the numbers of those in flight
    };

    static OuterAccess of(const Event &event, u32 unit, u32 thread, u64 address, u32 bytes, bool writes) {
        OuterAccess made{};
        made.address = address, made.bytes = bytes, made.unit = unit, made.thread = thread, made.site = (u32)event.site;
        made.flag = -1, made.writes = writes, made.reads = !writes, made.asynchronous = true;
        made.reduces = writes && event.flags & ADDS;
        made.fetches = !writes && event.kind != COPY;
        return made;
    }

    void rows(Outer &outer, u32 unit, u32 thread, const LaneLog &log) {
        u32 store = 0;
        if (writes(log.event())) {
            store = outer.issue(unit, thread, threads_[thread].commits);
            threads_[thread].stores.push_back(store);
        }
        bool known = each_row(log, [&](u64 address, u32 bytes) {
            OuterAccess made = of(log.event(), unit, thread, address, bytes, store != 0);
            made.store = store;
            outer.add(made);
        });
        if (!known) outer.skip();
    }

    static void commit(Outer &outer, Thread &own) {
        ++own.commits;
        for (u32 number : own.stores) outer.store(number).commits = own.commits;
    }

    // `pending`: groups that may stay in flight. `read`: only sources are waited for.
    void wait(Outer &outer, u32 unit, u32 thread, u32 pending, bool read) {
        Thread &own = threads_[thread];
        auto over = [&](u32 number) {
            OuterStore &store = outer.store(number);
            if ((u64)store.group + pending >= own.commits) return false;
            store.read |= read;
            if (!read) outer.complete(number, unit, thread);
            return !read;
        };
        own.stores.erase(std::remove_if(own.stores.begin(), own.stores.end(), over), own.stores.end());
    }

    std::unordered_map<u32, Thread> threads_;
};
