// The order of the strong accesses of one place: one in which each has read what the one before it has left.
//
// An access can be the next if no other one had ended before it began. Loads that read the present value come first; then what reads it and
// changes it, then stores that somebody waits for; of equals the one that ended first. A choice after which nothing fits is taken back, as
// long as STEPS last. What the place held at first is given.
//
// Not known: where several orders fit, that of the run.
#pragma once

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "log.hpp"

typedef unsigned __int128 Value;  // of a flag: up to 16 bytes

// Fences so far.
struct Fences {
    u32 sc = 0, acquires = 0, releases = 0;

    void add(u32 order) { sc += !!(order & IS_SC), acquires += !!(order & IS_ACQUIRE), releases += !!(order & IS_RELEASE); }
};

// A strong access through which threads may synchronise, or a part of one.
// `before`, `after`: twice the reading of its clock, and one more for a number that was drawn. So numbers are equal only where two loads looked
// with no draw in between, and a load that saw n draws comes after the draw of n - 1 and before that of n.
struct FlagAccess {
    u32 cluster, thread, site, bytes, order;
    u32 parts;  // of the access, each with a number of its own
    u64 before, after, address;
    Value old, first, second;
    Value finds = 0, leaves = 0;  // what is at its place before it and after it, in their order
    u32 operation;
    Scope scope;
    bool observes, writes, updates;  // it gets the value; it stores one; it is a read-modify-write
    bool unused;                     // nothing reads the value, so the thread learns nothing by it (R-GM8, D22)
    bool data;                       // of a load: the value is stored, and decides nothing (R-MO1)
    bool again;                      // of a load of data: a loop may throw it away
    bool compared;                   // of a load of data: looks at a word before and behind it are compared (R-MO3)
    bool polls;                      // it is in a loop that may wait for another thread
    bool looked_up;                  // its place follows from an index that the thread has loaded
    bool changes;                    // of a write: it leaves another value than it finds
    bool intent;                     // of a word that one thread writes, with one of two values: its own flag (R-MO2)
    Fences fences;                   // before it, in the order of the logs
    u32 rank = 0;                    // in the order of its place
    i32 from = -1;                   // the write that it has read from, or follows as a read-modify-write
    i32 next = -1;                   // the read-modify-write that follows this write
};

class FlagOrder {
  public:
    enum Operation : u32 { LD = 1, ST, EXCH, ADD, CAS, INC, DEC, MIN, MAX, AND, OR, XOR, MARK };
    enum Type : u32 { SIGNED = 1, FLOAT = 2 };

    // `places`: the accesses of one place, by the first number.
    FlagOrder(std::vector<FlagAccess> &all, const std::vector<u32> &places) : all_(all), places_(places) {}

    static Value mask(u32 bytes) { return bytes == sizeof(Value) ? ~(Value)0 : ((Value)1 << 8 * bytes) - 1; }

    // Whether what an access leaves behind is computed: sums of halves are not.
    static bool is_known(const FlagAccess &access) {
        u32 operation = access.operation & 255;
        return access.operation >> 8 != FLOAT || operation < ADD || operation == CAS || (operation == ADD && access.bytes >= 4);
    }

    static constexpr u64 STEPS = 1 << 16, FEW_STEPS = 1 << 12;

    // Whether there is an order without a contradiction. The accesses then have it.
    bool find(Value first, u64 most = STEPS) {
        start(first);
        u64 steps = most + places_.size() * 8;
        std::vector<Choice> choices;
        std::unordered_set<u64> seen;  // what has been done, and the value: nothing follows from these, if they come again
        while (fill()) {
            std::vector<u32> next = candidates();
            if (!choices.empty() && !seen.insert(mixed(mixed(which_) ^ hashed(now_))).second) next.clear();
            if (next.size() > 1) choices.push_back({done_.size(), open_, at_, now_, which_, next, 0});
            if (next.empty() && !back(choices, next)) return false;
            if (!steps--) return false;
            take(next.front());
        }
        link();
        return true;
    }

    // An order with as few contradictions as come of choosing once. Their number.
    u32 guess(Value first) {
        start(first);
        u32 wrong = 0;
        std::vector<u32> broken;  // accesses that do not follow what they have read
        while (fill()) {
            std::vector<u32> next = candidates();
            if (next.empty()) {
                next = {*std::min_element(open_.begin(), open_.end(), [&](u32 a, u32 b) { return all_[a].after < all_[b].after; })};
                ++wrong, now_ = all_[next.front()].old;
                broken.push_back(next.front());
            }
            take(next.front());
        }
        link(broken);
        return wrong;
    }

    // What an access leaves behind.
    static Value result(const FlagAccess &access, Value now) {
        Value mask = FlagOrder::mask(access.bytes), first = access.first;
        u32 type = access.operation >> 8;
        auto wide = [&](Value value) { return type == SIGNED ? (int64_t)((u64)value << (64 - 8 * access.bytes)) >> (64 - 8 * access.bytes) : (int64_t)value; };
        auto less = [&](Value a, Value b) { return type == SIGNED ? wide(a) < wide(b) : a < b; };
        switch (access.operation & 255) {
        case ST:
        case EXCH: return first & mask;
        case CAS: return (now == first ? access.second : now) & mask;
        case ADD: return type == FLOAT ? (Value)sum(access.bytes, (u64)now, (u64)first) : (now + first) & mask;
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

  private:
    static constexpr size_t TRIED = 16;  // of those that could be the next
    // Where several could be the next: what there was then, and which of them has been tried.
    struct Choice {
        size_t done;
        std::vector<u32> open;
        size_t at;
        Value now;
        u64 which;
        std::vector<u32> next;
        size_t tried;
    };

    void start(Value first) { done_.clear(), open_.clear(), at_ = 0, first_ = now_ = first, which_ = 0; }

    // A bijection in which every bit depends on every bit (the finaliser of SplitMix64).
    static u64 mixed(u64 value) {
        value += 0x9E3779B97F4A7C15;
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
        return value ^ (value >> 31);
    }

    static u64 hashed(Value value) { return (u64)value ^ mixed((u64)(value >> 64)); }

    // Take the loads that read the present value, and let all accesses in that can be the next then. Returns whether there is one.
    bool fill() {
        do {
            u64 end = ~0ull;
            for (u32 each : open_) end = std::min(end, all_[each].after);
            for (; at_ < places_.size() && (open_.empty() || all_[places_[at_]].before <= end); ++at_) {
                open_.push_back(places_[at_]);
                end = std::min(end, all_[places_[at_]].after);
            }
        } while (take_loads());
        return !open_.empty();
    }

    // Many loads may be open at once: all that can be taken are, in one pass. Returns whether there was one.
    bool take_loads() {
        size_t retained = 0;
        for (u32 each : open_) {
            const FlagAccess &access = all_[each];
            if (access.observes && !access.writes && access.old == now_) done_.push_back(each), which_ ^= mixed(each);
            else open_[retained++] = each;
        }
        bool any = retained < open_.size();
        open_.resize(retained);
        return any;
    }

    // Those that may be the next, the best first. Where several are alike, the first to end is enough.
    std::vector<u32> candidates() const {
        std::vector<Value> awaited;
        for (u32 each : open_)
            if (all_[each].observes) awaited.push_back(all_[each].old);
        std::sort(awaited.begin(), awaited.end());
        std::vector<std::pair<std::tuple<bool, bool, u64>, u32>> ranked;
        for (u32 each : open_) {
            const FlagAccess &access = all_[each];
            if (access.observes && access.old != now_) continue;
            bool wanted = access.observes || std::binary_search(awaited.begin(), awaited.end(), result(access, now_));
            ranked.push_back({std::make_tuple(!access.observes, !wanted, access.after), each});
        }
        auto last = ranked.begin() + (long)std::min(ranked.size(), TRIED);
        std::partial_sort(ranked.begin(), last, ranked.end());
        std::vector<u32> found;
        for (auto each = ranked.begin(); each != last; ++each)
            if (std::none_of(found.begin(), found.end(), [&](u32 other) { return alike(all_[each->second], all_[other]); })) found.push_back(each->second);
        return found;
    }

    static bool alike(const FlagAccess &a, const FlagAccess &b) {
        auto what = [](const FlagAccess &each) {
            return std::make_tuple(each.operation, each.first, each.second, each.observes, each.observes ? each.old : 0);
        };
        return what(a) == what(b);
    }

    // Take back to the last choice that has another. Returns whether there was one.
    bool back(std::vector<Choice> &choices, std::vector<u32> &next) {
        while (!choices.empty() && choices.back().tried + 1 == choices.back().next.size()) choices.pop_back();
        if (choices.empty()) return false;
        Choice &last = choices.back();
        done_.resize(last.done), open_ = last.open, at_ = last.at, now_ = last.now, which_ = last.which;
        next = {last.next[++last.tried]};
        return true;
    }

    void take(u32 number) {
        done_.push_back(number);
        which_ ^= mixed(number);
        open_.erase(std::find(open_.begin(), open_.end(), number));
        if (all_[number].writes) now_ = result(all_[number], now_);
    }

    // What each has read from, in the order that was found.
    void link(const std::vector<u32> &broken = {}) {
        for (u32 each : places_) all_[each].from = all_[each].next = -1;
        i32 last = -1;
        u32 rank = 0;
        Value now = first_;
        for (u32 each : done_) {
            FlagAccess &access = all_[each];
            access.rank = ++rank;
            if (std::find(broken.begin(), broken.end(), each) != broken.end()) last = -1, now = access.old;
            if (access.writes) access.changes = result(access, now) != now, now = result(access, now);
            if (access.observes || access.updates) access.from = last;
            if (access.updates && last >= 0) all_[last].next = (i32)each;
            if (access.writes) last = (i32)each;
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

    std::vector<FlagAccess> &all_;
    const std::vector<u32> &places_;
    std::vector<u32> done_, open_;
    size_t at_ = 0;
    Value first_ = 0, now_ = 0;
    u64 which_ = 0;  // the value; a hash of what is done
};
