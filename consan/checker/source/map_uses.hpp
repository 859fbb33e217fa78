// The tensor maps of copies in global memory, against what the same CTA writes: a map must not change before a copy has read it (R-B7), and
// what changed it must be behind fences for tensor maps (maps.hpp).
#pragma once

#include <unordered_map>

#include "maps.hpp"
#include "operations.hpp"

class MapUses {
  public:
    MapUses(Clocks &clocks, const Groups &groups, const Mbarriers &mbarriers, Findings &findings)
        : clocks_(clocks), groups_(groups), mbarriers_(mbarriers), findings_(findings), fences_(clocks) {}

    MapFences &fences() { return fences_; }

    // A thread writes. Returns whether the address decides something. `released`: it is a release for tensor maps.
    bool write(const Access &access, u64 address, bool released) {
        bool any = false;
        for (const Use &use : uses_) any |= meet(use, access, address);
        if (keeps_) remember(access, address, released);
        return any;
    }

    // A copy uses a tensor map. Returns whether the address decides something.
    bool use(const Operation &copy, u64 map) {
        add({map, copy});
        for (u64 cell = map / CELL; cell * CELL < map + MAP_BYTES; ++cell) {
            auto found = stores_.find(cell);
            if (found != stores_.end() && check_change(copy, map, found->second)) break;
        }
        return !stores_.empty();
    }

    void keep_stores() { keeps_ = true; }

  private:
    struct Use {
        u64 map;
        Operation of;
    };
    struct Store {
        u32 thread, site, time;
        bool released;  // tensormap.cp_fenceproxy
    };
    static constexpr u64 CELL = 16, MAP_BYTES = 128;

    bool complete(const Use &use, u32 thread) const {
        return use.of.by_phase() ? mbarriers_.knows(thread, use.of.phase) : groups_.sources_read(use.of.thread, use.of.group, thread);
    }

    bool meet(const Use &use, const Access &access, u64 address) {
        if (complete(use, access.thread)) return false;
        if (address >= use.map + MAP_BYTES || use.map >= address + access.bytes) return true;
        Record found = between(access.site, access.thread, use.of.site, use.of.thread, address, access.bytes);
        found.kind = MISSING_WAIT, found.hazard = WAR, found.reason = MAP_CHANGED;
        found.flags |= OTHER_ASYNC;
        found.operation = use.of.kind;
        if (use.of.by_phase()) return mbarriers_.describe(found, use.of.phase), findings_.add(found), true;
        const Groups::Owner &own = groups_.bulk(use.of.thread);
        found.group = use.of.group, found.commits = own.commits, found.retired = own.read;
        findings_.add(found);
        return true;
    }

    static Record between(u32 site, u32 thread, u32 other_site, u32 other, u64 address, u32 bytes) {
        Record found{};
        found.flags = GLOBAL;
        found.site = site, found.other_site = other_site;
        found.thread = thread, found.other_thread = other;
        found.bytes = bytes;
        found.address_low = (u32)address, found.address_high = (u32)(address >> 32);
        return found;
    }

    // Whether a write of a map that comes before its use lacks a fence.
    bool check_change(const Operation &copy, u64 map, const Store &store) {
        if (!clocks_.before(store.thread, store.time, copy.thread)) return false;
        bool acquired = fences_.acquired(map, store.thread, store.time, copy.thread);
        if (acquired && (store.released || fences_.released(store.thread, store.time, copy.thread))) return false;
        Record found = between(copy.site, copy.thread, store.site, store.thread, map, MAP_BYTES);
        found.kind = MISSING_PROXY_FENCE, found.reason = acquired ? MAP_NOT_RELEASED : MAP_NOT_ACQUIRED, found.hazard = RAW;
        found.own_operation = copy.kind;
        findings_.add(found);
        return true;
    }

    void remember(const Access &access, u64 address, bool released) {
        for (u64 cell = address / CELL; cell * CELL < address + access.bytes; ++cell) stores_[cell] = {access.thread, access.site, clocks_.time(access.thread), released};
    }

    // Uses that every thread knows to be complete are dropped, from time to time.
    void add(const Use &made) {
        if (uses_.size() >= limit_) {
            auto over = [&](const Use &use) {
                for (u32 thread = 0; thread < clocks_.threads(); ++thread)
                    if (!complete(use, thread)) return false;
                return true;
            };
            uses_.erase(std::remove_if(uses_.begin(), uses_.end(), over), uses_.end());
            limit_ = 2 * uses_.size() + 64;
        }
        uses_.push_back(made);
    }

    Clocks &clocks_;
    const Groups &groups_;
    const Mbarriers &mbarriers_;
    Findings &findings_;
    MapFences fences_;
    std::vector<Use> uses_;
    size_t limit_ = 64;
    bool keeps_ = false;                     // the module has copies that use maps
    std::unordered_map<u64, Store> stores_;  // the last store to each cell
};
