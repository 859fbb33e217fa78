// The sides of bulk and tensor copies in global memory, against accesses of the same CTA.
//
// A source must not be overwritten before the load is known to be complete (R-B1), a result not be used before a wait without .read (R-B3),
// and a store must be behind a proxy fence for global memory before a load reads its bytes (R-PX). The tensor map of a copy is a source, too:
// it must not change before the copy has read it (R-B7), and what changed it must be behind fences for tensor maps (maps.hpp).
//
// Not detected: accesses of other CTAs, two copies that conflict, stores that nothing orders with the load or the use of a map, and overwritten
// sources of multicasts.
#pragma once

#include <unordered_map>

#include "maps.hpp"
#include "operations.hpp"
#include "regions.hpp"

class Globals {
  public:
    Globals(Clocks &clocks, const Groups &groups, const Mbarriers &mbarriers, Findings &findings)
        : clocks_(clocks), groups_(groups), mbarriers_(mbarriers), findings_(findings), maps_(clocks) {}

    MapFences &maps() { return maps_; }

    // An access by a thread. Returns whether its address decides something. `released`: it is a release for tensor maps.
    bool access(const Access &access, u64 address, bool released = false) {
        bool any = false;
        for (const Side &side : results_) any |= meet(side, access, address);
        for (const Side &side : fetches_)
            if (access.writes) any |= meet(side, access, address);
        for (const Side &side : uses_)
            if (access.writes) any |= meet(side, access, address);
        if (access.writes && keeps_) remember(access, address, released);
        return any;
    }

    // A load of some bytes. Returns whether their address decides something. `multicast`: it is complete when each receiver knows its part.
    bool fetch(const Operation &load, const Region &region, bool multicast) {
        if (!multicast) add(fetches_, {region, load, SOURCE}, fetch_limit_);
        bool any = false;
        for (const auto &each : last_) any |= !clocks_.fenced(each.first, each.second, load.thread, clocks_.global_memory());
        return any && (region.any_row([&](u64 low, u64 high) { return check_stores(load, low, high); }), true);
    }

    void result(const Operation &store, const Region &region, bool adds) { add(results_, {region, store, adds ? SUM : RESULT}, result_limit_); }

    // A copy uses a tensor map. Returns whether the address decides something.
    bool use(const Operation &copy, u64 map) {
        add(uses_, {Region::of(map, MAP_BYTES), copy, USED_MAP}, use_limit_);
        for (u64 cell = map / CELL; cell * CELL < map + MAP_BYTES; ++cell) {
            auto found = stores_.find(cell);
            if (found != stores_.end() && check_change(copy, map, found->second)) break;
        }
        return !stores_.empty();
    }

    void keep_stores() { keeps_ = true; }

  private:
    enum Kind { SOURCE, RESULT, SUM, USED_MAP };
    struct Side {
        Region region;
        Operation of;
        Kind kind;
    };
    struct Store {
        u32 thread, site, time;
        bool released;  // tensormap.cp_fenceproxy
    };
    static constexpr u64 CELL = 16, MAP_BYTES = 128;

    bool complete(const Side &side, u32 thread) const {
        if (side.of.by_phase()) return mbarriers_.knows(thread, side.of.phase);
        if (side.kind == USED_MAP) return groups_.sources_read(side.of.thread, side.of.group, thread);
        return groups_.results_written(side.of.thread, side.of.group, thread);
    }

    bool meet(const Side &side, const Access &access, u64 address) {
        if (complete(side, access.thread)) return false;
        if ((side.kind == SUM && access.strong && access.writes) || !side.region.covers(address, address + access.bytes)) return true;
        Record found{};
        found.kind = MISSING_WAIT;
        found.site = access.site, found.other_site = side.of.site;
        found.thread = access.thread, found.other_thread = side.of.thread;
        found.flags = OTHER_ASYNC | GLOBAL;
        found.operation = side.of.kind;
        found.bytes = access.bytes;
        found.address_low = (u32)address, found.address_high = (u32)(address >> 32);
        if (side.of.by_phase()) {
            found.hazard = WAR, found.reason = SOURCE_OVERWRITTEN;
            mbarriers_.describe(found, side.of.phase);
        } else {
            const Groups::Owner &own = groups_.bulk(side.of.thread);
            found.hazard = access.writes ? WAW : RAW, found.reason = why(side.of, own, access.thread);
            found.group = side.of.group, found.commits = own.commits, found.retired = side.kind == USED_MAP ? own.read : own.retired;
        }
        if (side.kind == USED_MAP) found.hazard = WAR, found.reason = MAP_CHANGED;
        findings_.add(found);
        return true;
    }

    Reason why(const Operation &of, const Groups::Owner &own, u32 thread) const {
        if (of.group >= own.commits) return NOT_COMMITTED;
        if (of.group < own.retired) return of.thread / LANES == thread / LANES ? OTHER_LANES : WAITED_NO_BARRIER;
        if (of.group < own.read) return READ_WAIT_ONLY;
        return groups_.bulk(thread).waits && of.thread != thread ? OTHER_ISSUER : NOT_WAITED;
    }

    // Whether a write of a map that comes before its use lacks a fence.
    bool check_change(const Operation &copy, u64 map, const Store &store) {
        if (!clocks_.before(store.thread, store.time, copy.thread)) return false;
        bool acquired = maps_.acquired(map, store.thread, store.time, copy.thread);
        if (acquired && (store.released || maps_.released(store.thread, store.time, copy.thread))) return false;
        lacks_fence(copy, store, acquired ? MAP_NOT_RELEASED : MAP_NOT_ACQUIRED, map, MAP_BYTES);
        return true;
    }

    // An operation that uses bytes behind a store, without the fence.
    void lacks_fence(const Operation &use, const Store &store, Reason reason, u64 address, u32 bytes) {
        Record found{};
        found.kind = MISSING_PROXY_FENCE;
        found.reason = reason;
        found.hazard = RAW;
        found.flags = GLOBAL;
        found.site = use.site, found.other_site = store.site;
        found.thread = use.thread, found.other_thread = store.thread;
        found.own_operation = use.kind;
        found.bytes = bytes;
        found.address_low = (u32)address, found.address_high = (u32)(address >> 32);
        findings_.add(found);
    }

    void remember(const Access &access, u64 address, bool released) {
        u32 time = clocks_.time(access.thread);
        last_[access.thread] = time;
        for (u64 cell = address / CELL; cell * CELL < address + access.bytes; ++cell) stores_[cell] = {access.thread, access.site, time, released};
    }

    // The first cell of a row with a store that comes before the load, and is not behind a fence.
    bool check_stores(const Operation &load, u64 low, u64 high) {
        for (u64 cell = low / CELL; cell * CELL < high; ++cell) {
            auto found = stores_.find(cell);
            if (found == stores_.end()) continue;
            const Store &store = found->second;
            if (!clocks_.before(store.thread, store.time, load.thread) || clocks_.fenced(store.thread, store.time, load.thread, clocks_.global_memory())) continue;
            lacks_fence(load, store, NO_PROXY_FENCE, cell * CELL, (u32)CELL);
            return true;
        }
        return false;
    }

    // Sides that every thread knows to be complete are dropped, from time to time.
    void add(std::vector<Side> &sides, const Side &made, size_t &limit) {
        if (sides.size() >= limit) {
            auto over = [&](const Side &side) {
                for (u32 thread = 0; thread < clocks_.threads(); ++thread)
                    if (!complete(side, thread)) return false;
                return true;
            };
            sides.erase(std::remove_if(sides.begin(), sides.end(), over), sides.end());
            limit = 2 * sides.size() + 64;
        }
        sides.push_back(made);
    }

    Clocks &clocks_;
    const Groups &groups_;
    const Mbarriers &mbarriers_;
    Findings &findings_;
    MapFences maps_;
    std::vector<Side> fetches_, results_, uses_;
    size_t fetch_limit_ = 64, result_limit_ = 64, use_limit_ = 64;
    bool keeps_ = false;                          // the module has loads that stores can come before
    std::unordered_map<u64, Store> stores_;       // the last store to each cell
    std::unordered_map<u32, u32> last_;           // when each thread last stored
};
