// The accesses to global memory that later ones are compared with, by cells of 4 bytes: plain writes, plain reads, strong accesses.
//
// For each CTA, site and bytes the latest access is enough where it is ordered after the earlier one: every access between the two was
// compared with the earlier one. Where nothing orders CTAs, a few accesses of those that are over stand for all that are like them (`unite`).
#pragma once

#include <unordered_map>

#include "completions.hpp"
#include "views.hpp"

// An access to global memory, its scope and strength in the side.
struct RacingAccess : Side {
    u64 address = 0;
    u32 cluster = 0, operation = 0;  // operation: the number of an asynchronous one, from 1 on
    u8 order = 0;
    bool constant = false;  // a load with .nc
    i32 look = -1;          // the number of a strong load of data that a loop may throw away
};

class GlobalRaceItems {
  protected:
    GlobalRaceItems(u32 most, Views &views) : views_(views), most_(most) { items_.emplace_back(); }

    static constexpr u32 WALK = 64;
    static constexpr u32 VALUES = 8;  // that are kept of accesses that are alike
    static constexpr u32 LONG = 64;   // accesses of a cell
    static constexpr u32 LATER = 16;  // accesses of a site
    struct Item {
        u32 next, time, warp_time, made;  // made: how many moments threads had published (views.hpp)
        u32 more;                         // accesses that it stands for
        u32 before;                       // the time of the thread's access that this one replaces
        u8 mask;
        RacingAccess access;
    };
    struct Cell {
        u32 writes = 0, reads = 0, strong = 0;
        u32 size = 0;  // accesses that were added since the last CTA was over
        bool alike = true;  // all strong accesses are morally strong with each other
    };

    // Whether a thread is behind an access, of an asynchronous operation: behind its issue.
    bool before(const Item &item, const RacingAccess &now) {
        return views_.before(item.access.cluster, item.access.thread, item.time, now.cluster, now.thread);
    }
    // Whether it knows that an asynchronous operation is complete.
    bool over(const RacingAccess &old, const RacingAccess &now) {
        auto known = completions_.find(old.cluster);
        auto reached = [&](u32 actor, u32 number) { return views_.reached(old.cluster, actor, number, now.cluster, now.thread); };
        return known != completions_.end() && known->second->any_end(operations_[old.operation], reached);
    }
    bool ended(const Item &item, const RacingAccess &now) { return item.access.operation ? over(item.access, now) : before(item, now); }

    // Bytes of one cell.
    static u8 mask_of(u64 low, u64 end) { return (u8)((1u << (end - low / 4 * 4)) - (1u << low % 4)); }

    // An access with the number of the part that is at an address.
    static RacingAccess part_at(RacingAccess access, u64 address) {
        if (access.flag >= 0) access.flag += (i32)((address - access.address) / access.element);
        return access;
    }

    void keep(u32 &head, u8 mask, const RacingAccess &access) {
        if (replace(head, mask, access)) return;
        u32 at = free_;
        if (at) {
            free_ = items_[at].next;
        } else if (items_.size() < most_) {
            at = (u32)items_.size();
            items_.emplace_back();
        } else {
            full_ = true;
            return;
        }
        items_[at].next = head;
        fill(items_[at], mask, access);
        head = at;
    }

    // Let an access take the place of an earlier one of its site that is ordered before it: of its own cluster, or of any, where later ones tell as
    // much. What is in no order with the earlier one is in no order with them. Two values of later stores tell whether what is stored is the same.
    bool replace(u32 &head, u8 mask, const RacingAccess &access) {
        u32 steps = 0, later = 0, value = 0;
        bool values = !access.has_value;
        for (u32 *link = &head; *link && steps < WALK; link = &items_[*link].next, ++steps) {
            Item &item = items_[*link];
            const RacingAccess &old = item.access;
            if (old.site != access.site || item.mask != mask || old.flag >= 0) continue;
            bool own = old.cluster == access.cluster, any = !access.strong && !access.operation && !old.operation && later >= LATER && values;
            if ((own || any) && ended(item, access)) {
                u32 before = own && old.thread == access.thread ? item.time : 0, at = *link;
                fill(item, mask, access);
                item.before = before;
                if (!own) *link = item.next, item.next = head, head = at;
                return true;
            }
            values = values || (later && old.has_value && old.value != value);
            value = old.value, ++later;
        }
        return false;
    }

    static bool same_kind(const Item &one, const Item &other) {
        const RacingAccess &a = one.access, &b = other.access;
        bool single = a.flag < 0 && b.flag < 0;
        bool place = one.mask == other.mask && a.address == b.address && a.bytes == b.bytes && a.element == b.element;
        bool flags = a.reads == b.reads && a.writes == b.writes && a.strong == b.strong && a.constant == b.constant && a.has_value == b.has_value;
        return single && place && flags && a.site == b.site && a.scope == b.scope && a.order == b.order && !a.operation == !b.operation && a.proxy == b.proxy;
    }

    // Let the first accesses of a list stand for those of the same kind, once there are so many different values.
    void unite(u32 &head) {
        std::vector<u32> first;
        u32 *link = &head;
        for (u32 at = head, next; at; at = next) {
            Item &item = items_[at];
            next = item.next;
            u32 same = 0, values = 0;
            for (u32 each : first)
                if (same_kind(items_[each], item) && values < VALUES)
                    same = each, values = items_[each].access.value == item.access.value ? VALUES : values + 1;
            if (values == VALUES) {
                items_[same].more += 1 + item.more;
                item.next = free_, free_ = at;
            } else {
                first.push_back(at);
                *link = at, link = &item.next;
            }
        }
        *link = 0;
    }

    void fill(Item &item, u8 mask, const RacingAccess &access) {
        item.more = item.before = 0;
        item.time = views_.clocks(access.cluster).time(access.thread);
        item.warp_time = views_.clocks(access.cluster).warp_time(access.thread);
        item.made = views_.made();
        item.mask = mask;
        item.access = access;
    }

    Views &views_;
    u32 most_;
    std::vector<Item> items_;
    u32 free_ = 0;  // items that are no longer used
    std::vector<Completion> operations_{1};
    std::unordered_map<u32, const Completions *> completions_;  // by cluster, while it is replayed
    bool full_ = false;
};
