// Which write each strong read has read from. Strong accesses of a launch are in the logs with their values and two numbers of a counter, one
// drawn before and one after, so their order at one address is almost known: an access whose second number is less than another's first one
// came before it. The values decide the rest.
//
// Not known: the order of operations whose numbers overlap and whose values are equal (the first in the order of numbers is taken), and
// strong vectors and values of 16 bytes, which are no flags here.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "log.hpp"

enum Orders : u32 { TAKES = 1, GIVES = 2, IS_SC = 4 };
enum Scope : u32 { CTA_SCOPE = 0, CLUSTER_SCOPE = 1, GPU_SCOPE = 2, SYS_SCOPE = 3 };

inline Scope scope_of(const Event &event) { return (Scope)(event.offset >> 4 & 3); }

// A strong access through which threads may synchronise.
struct FlagAccess {
    u32 unit, thread, site, bytes, before, after, order;
    u64 address, old, first, second;
    u32 operation;
    Scope scope;
    bool observes, writes, updates;  // it gets the value; it stores one; it is a read-modify-write
    i32 from = -1;                   // the write that it has read from, or follows as a read-modify-write
    i32 next = -1;                   // the read-modify-write that follows this write
};

class Flags {
  public:
    // The strong access that a log is at.
    void add(const LaneLog &log, u32 unit, u32 thread, Scope scope) { all_.push_back(read(log, unit, thread, scope)); }

    // A store that is no such access.
    void add_plain(u64 address, u32 bytes) {
        for (u64 cell = address / 4; cell * 4 < address + bytes; ++cell) plain_.insert(cell);
    }

    void order() {
        for (const FlagAccess &each : all_)
            if (each.writes)
                for (u64 cell = each.address / 4; cell * 4 < each.address + each.bytes; ++cell) note_size(cell, each.address * 16 + each.bytes);
        std::map<std::pair<u64, u32>, std::vector<u32>> places;
        for (u32 i = 0; i < all_.size(); ++i) places[{all_[i].address, all_[i].bytes}].push_back(i);
        for (auto &each : places) {
            std::vector<u32> &found = each.second;
            std::stable_sort(found.begin(), found.end(), [&](u32 a, u32 b) { return all_[a].before < all_[b].before; });
            u32 wrong = order_from_best(found);
            if (!is_mixed(each.first.first, each.first.second)) contradictions_ += wrong;
        }
    }

    const FlagAccess &operator[](u32 number) const { return all_[number]; }
    u32 size() const { return (u32)all_.size(); }
    u32 contradictions() const { return contradictions_; }
    // Whether an access exchanges the value.
    bool swaps(u32 number) const {
        u32 operation = all_[number].operation & 255;
        return operation == EXCH || operation == CAS;
    }

  private:
    static FlagAccess read(const LaneLog &log, u32 unit, u32 thread, Scope scope) {
        const Event &event = log.event();
        auto wide = [&](u32 place) { return (u64)log.value_at(place + 1) << 32 | log.value_at(place); };
        FlagAccess made{};
        made.unit = unit, made.thread = thread, made.site = (u32)event.site, made.bytes = (u32)event.bytes;
        made.address = wide(0), made.before = log.value_at(2), made.after = log.value_at(3);
        if (made.address >> 63) made.address |= (u64)(unit + 1) << 32;  // shared memory: of its unit: an address there has the rank of its CTA
        made.old = wide(4), made.first = wide(6), made.second = wide(8);
        made.order = (u32)event.offset & 7, made.scope = scope, made.operation = (u32)event.b;
        made.observes = event.flags & READS, made.updates = event.flags & ADDS;
        made.writes = event.flags & WRITES;
        if ((made.operation & 255) == CAS && made.observes && made.old != made.first) made.writes = made.updates = false;
        return made;
    }

    static constexpr size_t TRIED = 8;
    enum Operation : u32 { LD = 1, ST, EXCH, ADD, CAS, INC, DEC, MIN, MAX, AND, OR, XOR };

    void note_size(u64 cell, u64 place) {
        auto range = sizes_.equal_range(cell);
        if (std::none_of(range.first, range.second, [&](const auto &each) { return each.second == place; })) sizes_.emplace(cell, place);
    }

    // Whether bytes of a place are also written in another way: then the values of its accesses need not fit.
    bool is_mixed(u64 address, u32 bytes) const {
        for (u64 cell = address / 4; cell * 4 < address + bytes; ++cell) {
            if (plain_.count(cell)) return true;
            auto range = sizes_.equal_range(cell);
            for (auto each = range.first; each != range.second; ++each)
                if (each->second != address * 16 + bytes) return true;
        }
        return false;
    }

    // What the place held at first is not in the log: one of the values that the first accesses have read.
    u32 order_from_best(const std::vector<u32> &places) {
        std::vector<u64> values{0};
        for (u32 each : places)
            if (all_[each].observes && std::find(values.begin(), values.end(), all_[each].old) == values.end() && values.size() < TRIED) values.push_back(all_[each].old);
        u32 best = NOTHING;
        u64 first = 0;
        for (u64 value : values) {
            u32 wrong = order(places, value);
            if (wrong < best) best = wrong, first = value;
            if (!wrong) return 0;
        }
        return order(places, first);
    }

    // The accesses of one place, and the number of contradictions: always one of those that can be the next, because no other one had ended before it began.
    u32 order(const std::vector<u32> &places, u64 now) {
        std::vector<u32> open;
        size_t at = 0;
        u32 wrong = 0;
        i32 last = -1;
        for (u32 each : places) all_[each].from = all_[each].next = -1;
        while (at < places.size() || !open.empty()) {
            u32 end = NOTHING;
            for (u32 each : open) end = std::min(end, all_[each].after);
            for (; at < places.size() && (open.empty() || all_[places[at]].before < end); ++at) {
                open.push_back(places[at]);
                end = std::min(end, all_[places[at]].after);
            }
            size_t chosen = choose(open, now);
            FlagAccess &access = all_[open[chosen]];
            if (access.observes && now != access.old) ++wrong, now = access.old, last = -1;
            if (access.observes || access.updates) access.from = last;
            if (access.updates && last >= 0) all_[last].next = (i32)open[chosen];
            if (access.writes) {
                last = (i32)open[chosen];
                now = result(access, now);
            }
            open.erase(open.begin() + (long)chosen);
        }
        return wrong;
    }

    size_t choose(const std::vector<u32> &open, u64 now) const {
        auto first = [&](auto holds) {
            for (size_t i = 0; i < open.size(); ++i)
                if (holds(all_[open[i]])) return i;
            return open.size();
        };
        auto fits = [&](const FlagAccess &each) { return each.observes && each.old == now; };
        size_t found = first([&](const FlagAccess &each) { return fits(each) && !each.writes; });
        if (found == open.size()) found = first(fits);
        // A write that nobody has observed: rather one whose value somebody waits for.
        auto awaited = [&](const FlagAccess &each) {
            if (each.observes) return false;
            u64 then = result(each, now);
            return first([&](const FlagAccess &other) { return other.observes && other.old == then; }) < open.size();
        };
        if (found == open.size()) found = first(awaited);
        if (found == open.size()) found = first([&](const FlagAccess &each) { return !each.observes; });
        return found == open.size() ? 0 : found;
    }

    // What an access leaves behind.
    static u64 result(const FlagAccess &access, u64 now) {
        u64 mask = access.bytes == 8 ? ~0ull : (1ull << 8 * access.bytes) - 1, first = access.first;
        u32 type = access.operation >> 8;
        auto wide = [&](u64 value) { return type == 1 ? (int64_t)(value << (64 - 8 * access.bytes)) >> (64 - 8 * access.bytes) : (int64_t)value; };
        auto less = [&](u64 a, u64 b) { return type == 1 ? wide(a) < wide(b) : a < b; };
        switch (access.operation & 255) {
        case ST:
        case EXCH: return first & mask;
        case CAS: return (now == first ? access.second : now) & mask;
        case ADD: return type == 2 ? sum(access.bytes, now, first) : (now + first) & mask;
        case INC: return now >= first ? 0 : now + 1;
        case DEC: return now == 0 || now > first ? first : now - 1;
        case MIN: return less(first, now) ? first : now;
        case MAX: return less(now, first) ? first : now;
        case AND: return now & first;
        case OR: return now | first;
        case XOR: return now ^ first;
        default: return now;
        }
    }

    static u64 sum(u32 bytes, u64 a, u64 b) {
        if (bytes == 8) return bits<u64>(bits<double>(a) + bits<double>(b));
        return bytes == 4 ? bits<u32>(bits<float>((u32)a) + bits<float>((u32)b)) : a;
    }
    template <typename To, typename From> static To bits(From value) {
        To made;
        static_assert(sizeof made == sizeof value, "bits of another type");
        std::memcpy(&made, &value, sizeof made);
        return made;
    }

    std::vector<FlagAccess> all_;
    std::unordered_set<u64> plain_;            // cells of 4 bytes with stores that are no flag accesses
    std::unordered_multimap<u64, u64> sizes_;  // cells with flag accesses that write, and the places of these
    u32 contradictions_ = 0;
};
