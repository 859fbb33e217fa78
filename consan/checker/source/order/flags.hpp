// Which write each strong read has read from. Strong accesses of a launch are in the logs with their values and two readings of the clock of
// their address (instrument/record/families/global_memory.py), one before and one after, so their order at one address is almost known: an access
// whose second reading is less than another's first one came before it. The values decide the rest (flag_order.hpp).
//
// A vector, or a packed type, is as many accesses, numbered one after the other (ISA "Vector Data-types").
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "decisions.hpp"
#include "flag_order.hpp"
#include "log.hpp"

class Flags {
  public:
    // The strong access that a log is at.
    void add(const effects::Observe &access, u32 cluster, u32 thread, Scope scope) {
        u32 parts = std::max(1u, access.bytes() / std::max(1u, access.element()));
        for (u32 part = 0; part < parts; ++part) all_.push_back(read(access, cluster, thread, scope, part, parts));
        u64 address = all_[all_.size() - parts].address;
        for (u32 part = 1; part <= parts; ++part) all_[all_.size() - part].fences = fences_[address >> 62 == 2];
        for (u64 cell = address / 4; address >> 62 == 2 && cell * 4 < address + access.bytes(); ++cell) shared_.insert(cell);
    }

    // A fence of the thread whose log is read. `wide`: for threads of other CTAs too.
    void fence(u32 order, bool wide) {
        if (wide) fences_[0].add(order);
        fences_[1].add(order);
    }

    // A store that is no such access.
    void add_plain(u64 address, u32 bytes) {
        for (u64 cell = address / 4; cell * 4 < address + bytes; ++cell) plain_.insert(cell);
    }

    // The same in shared memory, once all flags there are known.
    void add_plain_shared(u32 cluster, u32 offset, u32 bytes) {
        u64 address = shared(cluster, (u64)1 << 63 | offset);
        for (u64 cell = address / 4; cell * 4 < address + bytes; ++cell)
            if (shared_.count(cell)) plain_.insert(cell);
    }
    bool in_shared_memory() const { return !shared_.empty(); }

    // `launch`: what memory held before it.
    void order(const GridInput &launch) {
        for (const FlagAccess &each : all_)
            if (each.writes)
                for (u64 cell = each.address / 4; cell * 4 < each.address + each.bytes; ++cell) note_size(cell, {each.address, each.bytes});
        std::map<std::pair<u64, u32>, std::vector<u32>> places;
        for (u32 i = 0; i < all_.size(); ++i) places[{all_[i].address, all_[i].bytes}].push_back(i);
        for (auto &each : places) {
            std::vector<u32> &found = each.second;
            std::stable_sort(found.begin(), found.end(), [&](u32 a, u32 b) { return all_[a].before < all_[b].before; });
            if (is_mark(each.first.first)) {
                link_marks(found);
                continue;
            }
            bool known = !has_sizes(each.first) && std::all_of(found.begin(), found.end(), [&](u32 one) { return FlagOrder::is_known(all_[one]); });
            bool peers = launch.peers && std::any_of(found.begin(), found.end(), [&](u32 one) { return all_[one].scope >= SYS_SCOPE; });
            bool sound = known && !has_plain(each.first);
            Value held = held_at_first(launch, each.first);
            u32 wrong = order_from_best(found, sound, known, held);
            bool exact = sound && !(peers && wrong);  // another GPU has written it in between
            // A plain store that sets the flag to its first value leaves no contradiction.
            note_values(found, held);
            note_own(found, exact || (known && !wrong) ? owner_of(found) : -1, exact);
            if (exact) contradictions_ += wrong;
        }
        note_ways_on();
    }

    const FlagAccess &operator[](u32 number) const { return all_[number]; }
    u32 size() const { return (u32)all_.size(); }
    i32 number(const FlagAccess &access) const { return (i32)(&access - all_.data()); }
    u32 contradictions() const { return contradictions_; }
    // Whether an access exchanges the value.
    bool swaps(u32 number) const {
        u32 operation = all_[number].operation & 255;
        return operation == FlagOrder::EXCH || operation == FlagOrder::CAS;
    }

    // Whether an access leaves the value that it finds, and gives it: a load, or an atomic that changes nothing.
    static bool looks(const FlagAccess &access) { return access.observes && !(access.writes && access.changes); }
    static bool same_thread(const FlagAccess &a, const FlagAccess &b) { return a.cluster == b.cluster && a.thread == b.thread; }
    static bool same_place(const FlagAccess &a, const FlagAccess &b) { return a.address == b.address && a.bytes == b.bytes; }

    // R-MO2: two threads have each stored a flag of their own and then looked at the other's, one of them without a fence.sc in between.
    // The look is that of the second one. The first one has not seen the second one's store, or neither waits; it has not looked again.
    bool crosses(u32 number) const {
        const FlagAccess &read = all_[number];
        if (!looks(read) || read.data || read.from < 0 || !all_[read.from].intent || same_thread(all_[read.from], read)) return false;
        for (u32 back = 1; back <= number && back < NEAR; ++back) {
            const FlagAccess &own = all_[number - back];
            if (!same_thread(own, read)) break;
            if (!looks(own) && own.intent && misses((u32)read.from, number - back, own.fences.sc != read.fences.sc, read.polls)) return true;
        }
        return false;
    }

    // A strong access of up to 16 bytes as a poll.
    Stopped polled(u32 number) const {
        const FlagAccess &first = all_[number];
        u32 bytes = first.parts * first.bytes;
        if (bytes > sizeof(Value) || !first.observes) return {};
        Value value = 0;
        bool latest = first.address >> 63;
        for (u32 part = 0; part < first.parts; ++part) {
            const FlagAccess &read = all_[number + part];
            value |= (Value)read.old << 8 * part * first.bytes;
            auto later = [&](const FlagAccess &each) { return each.writes && same_place(each, read) && each.rank > read.rank; };
            latest = latest && !is_mixed({read.address, read.bytes}) && std::none_of(all_.begin(), all_.end(), later);
        }
        return {first.address, (u64)value, (u64)(value >> 64), bytes, first.site, STOPPED_POLLS, latest};
    }

  private:
    static constexpr u32 NEAR = 16;  // accesses between a store and a load

    // A thread has left a loop around looks at a flag, having read this value, with that in its own flag.
    struct WayOn {
        u64 looked_at;
        Value value, own_value;
        bool operator==(const WayOn &other) const { return looked_at == other.looked_at && value == other.value && own_value == other.own_value; }
    };

    // Whether the thread of a store loads, behind it, what was there before another store, and goes on. Where neither thread waits for the
    // other, it may load what that store has left: it came in between by luck.
    bool misses(u32 store, u32 other, bool fenced, bool polled) const {
        const FlagAccess &first = all_[store];
        for (u32 at = store + 1; at < all_.size() && same_thread(all_[at], first) && at - store < NEAR; ++at) {
            const FlagAccess &next = all_[at];
            if (!looks(next) && same_place(next, first)) return false;
            if (!looks(next) || !same_place(next, all_[other])) continue;
            bool seen = next.rank > all_[other].rank && (polled || next.polls);
            bool again = repeated(at);
            if (seen ? may_miss(store, other) : !again) return !fenced || next.fences.sc == first.fences.sc;
        }
        return false;
    }

    // Whether a thread looks again at once, or behind other looks in a loop that only waits.
    bool repeated(u32 at) const {
        for (u32 later = at + 1; later < all_.size() && same_thread(all_[later], all_[at]) && later - at < NEAR; ++later) {
            if (same_place(all_[later], all_[at])) return true;
            if (!all_[at].polls || !looks(all_[later])) return false;
        }
        return false;
    }

    // Whether the thread of a store could have gone on, had it loaded what was there before another store: it did so elsewhere in this run, with this
    // value in its own flag. What it had seen before its own store it cannot miss.
    bool may_miss(u32 store, u32 other) const {
        const FlagAccess &first = all_[store], &missed = all_[other];
        for (u32 at = store; at > 0 && same_thread(all_[at - 1], first); --at)
            if (const FlagAccess &look = all_[at - 1]; looks(look) && same_place(look, missed)) {
                if (look.rank > missed.rank) return false;
                break;
            }
        auto goes_on = [&](const WayOn &each) { return each.looked_at == missed.address && each.value == missed.finds && each.own_value == first.leaves; };
        auto found = ways_on_.equal_range({first.cluster, first.thread});
        return std::any_of(found.first, found.second, [&](const auto &each) { return goes_on(each.second); });
    }

    // Keep what lets a thread leave its loops around looks at flags of others, and what its own flag is then.
    void note_ways_on() {
        const FlagAccess *own = nullptr, *look = nullptr;
        auto leave = [&] {
            if (own && look) note_way_on({look->address, look->old, own->leaves}, *own);
            look = nullptr;
        };
        for (const FlagAccess &each : all_) {
            if (own && !same_thread(*own, each)) leave(), own = nullptr;
            if (looks(each) && each.polls) {
                if (!each.intent && (!look || same_place(*look, each))) look = &each;
                continue;
            }
            leave();
            if (each.intent && !looks(each)) own = &each;
        }
        leave();
    }
    void note_way_on(const WayOn &way, const FlagAccess &own) {
        auto found = ways_on_.equal_range({own.cluster, own.thread});
        auto same = [&](const auto &each) { return each.second == way; };
        if (std::none_of(found.first, found.second, same)) ways_on_.emplace(std::make_pair(own.cluster, own.thread), way);
    }

    // Sort the accesses of one place, and keep what each finds there and leaves.
    void note_values(std::vector<u32> &places, Value held) {
        std::sort(places.begin(), places.end(), [&](u32 a, u32 b) { return all_[a].rank < all_[b].rank; });
        for (u32 each : places) {
            FlagAccess &access = all_[each];
            access.finds = held, held = access.leaves = looks(access) ? held : FlagOrder::result(access, held);
        }
    }

    // Keep of these accesses which are of the thread whose flag it is (`owner`: a store of it, or -1).
    void note_own(const std::vector<u32> &places, i32 owner, bool exact) {
        for (u32 each : places) {
            FlagAccess &access = all_[each];
            access.intent = owner >= 0 && same_thread(all_[(u32)owner], access), access.changes |= !exact;
        }
    }

    // A store of the thread whose own flag a place is, or -1. No index in a table names that word. Another thread may have stored what was there
    // at first: once, and no other has read it before the owner's first store.
    i32 owner_of(const std::vector<u32> &places) const {
        std::vector<Value> values;
        i32 owner = -1;
        bool is_first = false;  // only one store has come, and no other thread has read it
        auto note = [&](Value value) {
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
        };
        for (u32 each : places) {
            const FlagAccess &access = all_[each];
            if (access.observes) note(access.old);
            bool other = owner >= 0 && !same_thread(all_[(u32)owner], access);
            is_first = is_first && !(access.observes && other);
            if (looks(access)) continue;
            if (access.looked_up || (other && !is_first)) return -1;
            is_first = owner < 0;
            owner = (i32)each;
            note(access.leaves);
        }
        return values.size() <= 2 ? owner : -1;
    }

    // The word of an annotation (instrument/record/families/annotated.py): it has no values. Each takes what the releases before it have left.
    static bool is_mark(u64 address) { return address >> 62 & 1; }
    void link_marks(const std::vector<u32> &found) {
        i32 last = -1;
        for (u32 each : found) {
            FlagAccess &access = all_[each];
            if (decided<Edge::ANNOTATION>()) access.from = last;
            if (access.updates && last >= 0) all_[last].next = (i32)each;
            if (access.writes) last = (i32)each;
        }
    }

    // A place in shared memory is one of its cluster. The address has the rank of its CTA.
    static u64 shared(u32 cluster, u64 address) { return address | (u64)(cluster + 1) << 32; }

    static FlagAccess read(const effects::Observe &access, u32 cluster, u32 thread, Scope scope, u32 part, u32 parts) {
        auto wide = [&](u32 place) { return (u64)access.words(place + 1) << 32 | access.words(place); };
        FlagAccess made{};
        made.cluster = cluster, made.thread = thread, made.site = access.site(), made.bytes = access.bytes() / parts, made.parts = parts;
        auto reading = [&](u32 place) { return (u64)access.words(place) * 2 + (access.writes() ? 1 : 0); };
        u32 place = 4, offset = part * made.bytes;
        auto value = [&](bool is_there) {
            Value found = 0;
            for (u32 at = 0; is_there && at < made.bytes; at += 4) found |= (Value)(access.words(place + (offset + at) / 4) >> 8 * (offset % 4)) << 8 * at;
            place += is_there ? (access.bytes() + 3) / 4 : 0;
            return found & FlagOrder::mask(made.bytes);
        };
        bool mark = is_mark(wide(0));
        made.address = wide(0), made.before = reading(2), made.after = mark ? made.before : reading(3);
        if (made.address >> 63) made.address = shared(cluster, made.address);
        made.address += offset;
        bool swaps = (access.operation() & 255) == FlagOrder::CAS;
        made.old = value(access.reads() && !mark), made.first = value(access.writes() && !mark), made.second = value(swaps);
        made.order = access.order() & 7, made.scope = scope, made.operation = access.operation();
        made.observes = access.reads(), made.updates = access.adds();
        made.writes = access.writes();
        made.unused = access.unused() && !(made.order & IS_ACQUIRE);
        made.data = made.observes && access.data() && !(access.ignored()), made.again = access.again(), made.compared = made.data && access.compared();
        made.polls = access.polls(), made.looked_up = access.looked_up();
        if ((made.operation & 255) == FlagOrder::CAS && made.observes && made.old != made.first) made.writes = made.updates = false;
        return made;
    }

    static constexpr size_t TRIED = 8;

    typedef std::pair<u64, u32> Place;  // address and bytes

    void note_size(u64 cell, const Place &place) {
        auto range = sizes_.equal_range(cell);
        if (std::none_of(range.first, range.second, [&](const auto &each) { return each.second == place; })) sizes_.emplace(cell, place);
    }

    // Whether bytes of a place are also written in another way: then the values of its accesses need not fit.
    bool is_mixed(const Place &place) const { return has_plain(place) || has_sizes(place); }
    bool has_plain(const Place &place) const {
        return any_cell(place, [&](u64 cell) { return plain_.count(cell) > 0; });
    }
    bool has_sizes(const Place &place) const {
        return any_cell(place, [&](u64 cell) {
            auto range = sizes_.equal_range(cell);
            return std::any_of(range.first, range.second, [&](const auto &each) { return each.second != place && overlap(each.second, place); });
        });
    }
    template <typename Test> static bool any_cell(const Place &place, Test test) {
        for (u64 cell = place.first / 4; cell * 4 < place.first + place.second; ++cell)
            if (test(cell)) return true;
        return false;
    }

    static bool overlap(const Place &a, const Place &b) { return a.first < b.first + b.second && b.first < a.first + a.second; }

    // What a place held before the launch; 0 where nobody knows.
    static Value held_at_first(const GridInput &launch, const Place &place) {
        Value found = 0;
        for (const MemoryBefore *each = launch.before; each != launch.before + launch.before_count; ++each)
            if (place.first >= each->address && place.second <= sizeof found && place.first - each->address + place.second <= each->bytes)
                std::memcpy(&found, each->data + (place.first - each->address), place.second);
        return found;
    }

    // `held`: what the place held at first. If that does not fit, or nobody knows, it is one of the values that the first accesses have read.
    // `known`: plain stores come in between at most; so no order need fit, and one that does is better than a guess.
    u32 order_from_best(const std::vector<u32> &places, bool exact, bool known, Value &held) {
        std::vector<Value> values{held};
        for (u32 each : places)
            if (all_[each].observes && std::find(values.begin(), values.end(), all_[each].old) == values.end() && values.size() < TRIED)
                values.push_back(all_[each].old);
        FlagOrder order(all_, places);
        for (Value value : values)
            if (exact && order.find(value)) return held = value, 0;
        u32 best = NOTHING;
        for (Value value : values)
            if (u32 wrong = order.guess(value); wrong < best) best = wrong, held = value;
        for (Value value : values)
            if (known && !exact && best && order.find(value, FlagOrder::FEW_STEPS)) return held = value, 0;
        return order.guess(held);
    }

    std::vector<FlagAccess> all_;
    std::unordered_set<u64> shared_;           // cells of 4 bytes with flags in shared memory
    std::unordered_set<u64> plain_;            // cells of 4 bytes with stores that are no flag accesses
    std::unordered_multimap<u64, Place> sizes_;  // cells with flag accesses that write, and the places of these
    std::multimap<std::pair<u32, u32>, WayOn> ways_on_;  // by cluster and thread
    u32 contradictions_ = 0;
    Fences fences_[2];  // of global and of shared memory
};
