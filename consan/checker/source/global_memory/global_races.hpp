// Races in global memory (SEMANTICS 12): two accesses of a launch overlap, one writes, they are not morally strong, and nothing orders them.
//
// Accesses of bytes that no other thread touches, or nobody writes, are not kept (footprints.hpp).
#pragma once

#include "edges.hpp"
#include "findings.hpp"
#include "footprints.hpp"
#include "retained.hpp"
#include "maps.hpp"
#include "sequence_locks.hpp"
#include "global_race_items.hpp"
#include "surfaces.hpp"

class GlobalRaces : GlobalRaceItems {
  public:
    GlobalRaces(u32 threads, u32 most, bool isa, Views &views, Edges &edges, Footprints &footprints, MapFences &map_fences, Findings &findings,
                Retained &retained)
        : GlobalRaceItems(most, views), threads_(threads), isa_(isa), edges_(edges), footprints_(footprints), map_fences_(map_fences), findings_(findings),
          retained_(retained) {}

    // Compare an access with those before it, and keep it.
    void add(const RacingAccess &access) {
        if (retained_.wanted()) retained_.add(retained(access));
        bool any = false;
        u64 end = access.address + access.bytes, step = access.flag >= 0 ? std::min<u64>(access.element, 4) : 4;
        for (u64 at = access.address; at < end; at += step - at % step) {
            u64 cell = at / 4;
            u8 mask = mask_of(at, std::min(end, at + step - at % step)) & footprints_.shared_bytes(cell * 4);
            if (mask) any = true, add_to(cells_[cell], mask, part_at(access, at));
        }
        compared_ += any;
    }

    // R-MO1: a strong load of data is about to be performed, and has observed nothing yet. The write that it should see is the latest one. Of an
    // attempt that may be thrown away it is also the one that it has read from: a later round may have no flag yet.
    void look(const FlagAccess &read) {
        u32 last = latest(read, [](const RacingAccess &) { return true; });
        u32 own = read.again ? latest(read, [&](const RacingAccess &old) { return old.flag == read.from; }) : 0;
        if (last) lacks_order(cells_.at(read.address / 4), items_[last], now(read));
        if (own && own != last) lacks_order(cells_.at(read.address / 4), items_[own], now(read));
    }

    // R-RACE: a read that acquires is about to be performed. It may come before the release that it observes, and then before weak writes that
    // are in order with it by that release alone.
    void early(const FlagAccess &read) {
        for (u64 cell = read.address / 4; cell * 4 < read.address + read.bytes; ++cell) {
            auto found = cells_.find(cell);
            u8 mask = mask_of(std::max(read.address, cell * 4), std::min(read.address + read.bytes, cell * 4 + 4));
            if (found != cells_.end()) compare(found->second.writes, mask, now(read));
        }
    }

    // R-MO2: the same for a load of another thread's flag (Flags::crosses).
    void cross(const FlagAccess &read) {
        u32 at = latest(read, [&](const RacingAccess &old) { return old.flag == read.from; });
        if (!at || is_before(items_[at], read) || edges_.observed(read.from, read.cluster, read.thread)) return;
        Record made = between(items_[at].access, now(read));
        made.kind = MISSING_ORDER, made.hazard = RAW, made.flags = GLOBAL | GRID, made.reason = CROSSED_STORES;
        findings_.add(made);
    }

    // What a cluster knows of the ends of its operations.
    void begin(u32 cluster, const Completions &completions) { completions_[cluster] = &completions; }
    // An asynchronous operation is issued; its number. Then its rows are added.
    u32 issue(const Completion &end) {
        operations_.push_back(end);
        return (u32)operations_.size() - 1;
    }

    // All CTAs so far are over, and nothing orders a later access behind them. So it races with all accesses that are alike, or with none.
    // Their values decide how severe that is: some different ones are kept.
    void over() {
        for (Cell *cell : long_) {
            for (u32 *head : {&cell->writes, &cell->reads, &cell->strong}) unite(*head);
            cell->size = 0;
        }
        long_.clear();
        completions_.clear();
    }

    // A race of two threads of a CTA: a side of a flag, where they hand over through one; else a barrier, as was said.
    static void tell_side(const Deficit &deficit, Record &found) {
        if (deficit.handed_over && (deficit.lack == Lack::RELEASE || deficit.lack == Lack::ACQUIRE)) name_lack(deficit, found);
    }

    // A copy whose bytes are not known.
    void skip() { unknown_ = true; }
    bool unknown() const { return unknown_; }
    bool full() const { return full_; }

    // The side of a flag that lacks between two threads, if a flag comes between.
    static void name_lack(const Deficit &deficit, Record &found) {
        if (deficit.lack == Lack::NONE) return;
        found.reason = reason_of(deficit);
        tell_flag(deficit, found);
    }
    // The flag that the second thread has waited for, and that the first one writes too early.
    static void name_early_flag(const Deficit &flag, Record &found) {
        if (decided<FLAG_BEFORE>(flag.write_site)) found.reason = FLAG_BEFORE, tell_flag(flag, found);
    }
    u64 compared() const { return compared_; }

  private:
    static constexpr Reason LACKS[] = {NO_SYNCHRONISATION, NO_RELEASE, NO_ACQUIRE, RELEASE_SCOPE, ACQUIRE_SCOPE, FLAG_SCOPE};  // by Lack
    static Reason reason_of(const Deficit &deficit) { return deficit.both && deficit.lack == Lack::RELEASE ? NO_RELEASE_NO_ACQUIRE : LACKS[(u32)deficit.lack]; }
    struct Explained {
        u32 count = 0;
        Deficit deficit, behind, early;  // behind: by a third thread; early: a flag that is written before the access
        Deficit passed, passed_first;    // a flag that the second thread, or the first one, has read before the other one's release
        bool others = false;
    };

    static RetainedAccess retained(const RacingAccess &access) {
        u32 flags = RETAINED_READS * access.reads | RETAINED_WRITES * access.writes | RETAINED_STRONG * access.strong;
        flags |= RETAINED_HAS_VALUE * (access.has_value && !access.operation) | RETAINED_ASYNCHRONOUS * !!access.operation |
                 RETAINED_RELEASES * !!(access.order & IS_RELEASE) | RETAINED_ACQUIRES * !!(access.order & IS_ACQUIRE);
        return {access.address, access.bytes, access.cluster, access.thread, access.site, access.value, access.element, access.scope, flags, 0, 0};
    }

    void add_to(Cell &cell, u8 mask, const RacingAccess &access) {
        compare(cell.writes, mask, access);
        if (access.writes) compare(cell.reads, mask, access);
        if (cell.strong && access.strong) {
            const RacingAccess &known = items_[cell.strong].access;
            bool scopes = access.scope == known.scope || std::min(access.scope, known.scope) >= views_.all();
            cell.alike = cell.alike && race_rule::morally_strong(known, access, facts(items_[cell.strong], access)) && scopes && access.proxy == known.proxy;
        }
        if (!access.strong || !cell.alike) compare(cell.strong, mask, access);
        if (access.strong && access.writes && !access.reads) follow(cell, mask, access);
        keep(access.strong ? cell.strong : access.writes ? cell.writes : cell.reads, mask, access);
        if (++cell.size == LONG) long_.push_back(&cell);
    }

    void compare(u32 head, u8 mask, const RacingAccess &access) {
        for (u32 at = head; at; at = items_[at].next) {
            const Item &item = items_[at];
            if (!(item.mask & mask) || !(item.access.writes || access.writes)) continue;
            if (item.access.operation && item.access.operation == access.operation) continue;  // an operation does not meet itself
            race_rule::meet(item.access, access, facts(item, access), [&](const Record &found) { findings_.add(found, 1 + item.more); });
        }
    }

    // Compares an access that is kept, or whose issue is, with a later one.
    struct Facts : race_rule::PlainFacts {
        GlobalRaces &all;
        const Item &item;
        const RacingAccess &now;

        const RacingAccess &old() const { return item.access; }
        bool together() const { return all.views_.together(old().cluster, old().thread, now.cluster, now.thread); }
        bool one_warp() const { return together() && old().thread / LANES == now.thread / LANES; }
        Scope narrowest() const { return all.views_.both(old().cluster, old().thread, now.cluster, now.thread); }
        // R-GM8: a write that was observed is before what follows.
        bool ordered() const {
            bool write = old().flag >= 0 && old().writes;
            return all.ended(item, now) || (write && decided<Edge::OBSERVED>(all.edges_.observed(old().flag, now.cluster, now.thread)));
        }
        // Why no order makes one of the two see the other. R-GM13: a load with .nc. R-SU1: order through a proxy holds within a CTA only, but for the
        // generic one (ISA 8.9.5, case 2).
        Reason incoherent() const {
            if (decided<NOT_COHERENT>((old().constant && now.writes) || (now.constant && old().writes)))
                return decided<WRITTEN_LATER>(old().constant && ordered()) ? WRITTEN_LATER : NOT_COHERENT;
            return decided<SURFACE_OF_CTAS>(is_surface(now.address) && !together()) ? SURFACE_OF_CTAS : NO_REASON;
        }
        bool complete() const { return ordered() && !incoherent(); }
        bool asynchronous() const { return old().operation && !incoherent(); }
        bool issued() const { return all.before(item, now); }
        bool early() const {
            return together() && !now.writes && !old().reads && item.before &&
                   all.views_.before(old().cluster, old().thread, item.before, now.cluster, now.thread);
        }
        static constexpr bool of_lanes = true;
        bool in_step() const { return all.knows_as_warp(item, now); }
        // What one lane has taken of another CTA, others of its warp need not have.
        bool lanes_take() const { return !together() || all.views_.clocks(now.cluster).lanes_take(now.thread); }
        bool lane_knows() const { return all.lane_knows(item, now); }
        template <typename Add> void bridge(Add add) const {
            if (Reason reason = all.unbridged(item, now)) add(all.lacking_fence(item, now, reason));
        }

        void place(Record &found) const {
            all.place(old(), now, found);
            found.flags = GLOBAL | GRID | one_warp() * SAME_WARP | same_value() * SAME_VALUE | old().updates() * OTHER_ATOMIC;
        }
        bool same_value() const {
            bool of_one = !(old().operation || now.operation) || (old().operation && now.operation && one_warp() && old().site == now.site);
            return of_one && race_rule::same_value(old(), now, old().address == now.address);
        }
        void wait(Record &found) const { all.in_flight(old(), now, found); }
        Reason unsynchronised() const { return together() ? NO_BARRIER : old().cluster == now.cluster ? NO_CLUSTER_BARRIER : NO_SYNCHRONISATION; }
        void race(Record &found, Reason reason, bool) const {
            found.kind = together() ? DATA_RACE : GLOBAL_RACE, found.reason = reason;
            if (Reason why = incoherent()) found.reason = why;
            else if (together() && (reason == NO_BARRIER || reason == NO_WARP_SYNC)) all.explain_within(item, now, found);
            else if (reason == NO_BARRIER) all.explain(item, now, found);
            if (!together()) found.narrow_fence = all.edges_.narrow_fence(old().cluster, old().thread, item.time, now.cluster, now.thread);
        }
    };
    Facts facts(const Item &item, const RacingAccess &now) { return {{}, *this, item, now}; }

    // R-PX, R-GM12, R-B7: an access comes behind a write through another proxy, perhaps of another CTA. The fence that lacks between them.
    Reason unbridged(const Item &item, const RacingAccess &now) {
        const RacingAccess &old = item.access;
        if (old.proxy == ASYNC_PROXY && now.proxy == ASYNC_PROXY && isa_) return decided<ACROSS_CTAS>(crosses(old, now)) ? ACROSS_CTAS : NO_REASON;
        if (now.proxy == old.proxy || old.proxy != GENERIC_PROXY || !old.writes) return NO_REASON;
        if (now.proxy == TENSORMAP_PROXY) return map_fences_.lacking(now.address, old.cluster, old.thread, item.time, now.cluster, now.thread);
        return decided<NO_PROXY_FENCE>(!views_.fenced(old.cluster, old.thread, item.time, now.cluster, now.thread)) ? NO_PROXY_FENCE : NO_REASON;
    }

    // D4: two operations of the async proxy, by threads of two CTAs, and no proxy fence behind the completion of the first.
    bool crosses(const RacingAccess &old, const RacingAccess &now) {
        auto known = completions_.find(old.cluster);
        if (views_.together(old.cluster, old.thread, now.cluster, now.thread) || known == completions_.end()) return false;
        auto fenced = [&](u32 actor, u32 number) { return views_.fenced(old.cluster, actor, number, now.cluster, now.thread); };
        return !known->second->any_end(operations_[old.operation], fenced);
    }

    Record lacking_fence(const Item &item, const RacingAccess &now, Reason reason) const {
        Record found{};
        place(item.access, now, found);
        found.kind = MISSING_PROXY_FENCE, found.reason = reason, found.hazard = race_rule::hazard_of(item.access, now);
        found.flags = GLOBAL | GRID * !views_.together(item.access.cluster, item.access.thread, now.cluster, now.thread);
        found.own_operation = operations_[now.operation].kind;
        return found;
    }

    // R-MO1: a strong store comes after strong loads of data.
    void follow(const Cell &cell, u8 mask, const RacingAccess &now) {
        u32 steps = 0;
        for (u32 at = cell.strong; at && steps < WALK; at = items_[at].next, ++steps)
            if (items_[at].mask & mask && !items_[at].access.writes) lacks_order(cell, items_[at], now);
    }

    // R-MO1: a strong load of data and a strong store in no order. Where a flag comes between, its release or its acquire lacks.
    void lacks_order(const Cell &cell, const Item &item, const RacingAccess &now) {
        const RacingAccess &old = item.access, &load = now.writes ? old : now, &store = now.writes ? now : old;
        if (!race_rule::gives_data(old, now) || same_thread(old, now) || !race_rule::morally_strong(old, now, facts(item, now)) || ended(item, now)) return;
        if (!edges_.by_timing(store.flag, old.writes, now.cluster, now.thread) || (store.data && !writes(cell, load))) return;
        Deficit deficit = edges_.lacks(old.cluster, old.thread, item.time, now.cluster, now.thread);
        if (deficit.is_other()) return;
        Record found = between(old, now);
        found.kind = MISSING_ORDER, found.hazard = now.writes ? WAR : RAW, found.flags = GLOBAL | GRID;
        if (load.again && deficit.lack == Lack::NONE) return lacks_fence(load, store, found);
        Facts known = facts(item, now);
        if (known.in_step() || known.one_warp()) found.reason = race_rule::lane(known);
        else if (!known.together() && deficit.lack == Lack::NONE && others_know(item, now)) found.reason = OTHER_THREADS;
        else found.reason = known.unsynchronised(), name_lack(deficit, found);
        found.flags |= known.one_warp() * SAME_WARP;
        findings_.add(found);
    }

    // R-MO3.
    void lacks_fence(const RacingAccess &load, const RacingAccess &store, Record &found) {
        const SequenceLocks::Lack &lack = locks_.lacks(load.look, store.flag);
        if (lack.reason == NO_REASON) return;
        found.reason = lack.reason, found.flag_write = lack.sequence, found.flag_read = lack.look;
        findings_.add(found);
    }

    // Whether the thread of a load has written a cell: who only looks at a counter takes statistics.
    bool writes(const Cell &cell, const RacingAccess &load) const {
        u32 steps = 0;
        for (u32 at = cell.strong; at && steps < WALK; at = items_[at].next, ++steps)
            if (items_[at].access.writes && same_thread(items_[at].access, load)) return true;
        return false;
    }

    static bool same_thread(const RacingAccess &one, const RacingAccess &other) { return one.cluster == other.cluster && one.thread == other.thread; }

    RacingAccess now(const FlagAccess &read) const {
        RacingAccess now{};
        now.address = read.address, now.bytes = read.bytes, now.element = (u8)read.bytes, now.scope = (u8)read.scope;
        now.cluster = read.cluster, now.thread = read.thread, now.site = read.site, now.reads = now.strong = true, now.data = read.data, now.again = read.again,
        now.look = edges_.number(read);
        return now;
    }

    // The latest write of what a strong load reads, if `f` takes it; else 0.
    template <typename F> u32 latest(const FlagAccess &read, F f) const {
        auto found = cells_.find(read.address / 4);
        auto mask = mask_of(read.address, std::min(read.address + read.bytes, read.address / 4 * 4 + 4));
        u32 steps = 0;
        for (u32 at = found == cells_.end() ? 0 : found->second.strong; at && steps < WALK; at = items_[at].next, ++steps)
            if (items_[at].access.writes && items_[at].mask & mask && f(items_[at].access)) return at;
        return 0;
    }

    bool is_before(const Item &item, const FlagAccess &read) {
        return views_.before(item.access.cluster, item.access.thread, item.time, read.cluster, read.thread);
    }

    // The two accesses of a finding.
    void place(const RacingAccess &old, const RacingAccess &now, Record &found) const {
        found.site = now.site, found.other_site = old.site;
        found.thread = now.cluster * threads_ + now.thread, found.other_thread = old.cluster * threads_ + old.thread;
        found.bytes = now.bytes;
        found.address_low = (u32)now.address, found.address_high = (u32)(now.address >> 32);
    }
    Record between(const RacingAccess &old, const RacingAccess &now) const {
        Record found{};
        place(old, now, found);
        return found;
    }

    // R-B1, R-B3, R-CP4: an operation whose issue is before the access, but whose completion is not.
    void in_flight(const RacingAccess &old, const RacingAccess &now, Record &found) {
        if (views_.together(old.cluster, old.thread, now.cluster, now.thread)) found.flags &= ~GRID;
        found.own_operation = now.operation ? operations_[now.operation].kind : 0;
        completions_.at(old.cluster)->describe(found, operations_[old.operation], now.thread, old.cluster != now.cluster);
        if (old.proxy == TENSORMAP_PROXY) found.reason = MAP_CHANGED;
    }

    // What is missing between two threads. Only the first accesses of a pair of sites are asked.
    const Explained &explained(const Item &item, const RacingAccess &now, bool separate) {
        const RacingAccess &old = item.access;
        Explained &explained = explained_[(u64)separate << 63 | (u64)old.site << 32 | now.site];
        if (explained.count++ < WALK) {
            explained.deficit = edges_.lacks(old.cluster, old.thread, item.time, now.cluster, now.thread);
            bool nothing = separate && explained.deficit.lack == Lack::NONE;
            explained.others = nothing && others_know(item, now);
            if (nothing) explained.early = edges_.waited_for(old.cluster, old.thread, now.cluster, now.thread);
            if (nothing && !explained.others) explained.behind = edges_.lacks_behind(old.cluster, old.thread, item.time, now.cluster, now.thread);
            if (nothing) explained.passed = edges_.passed(old.cluster, old.thread, item.time, now.cluster, now.thread, 0);
            if (nothing) explained.passed_first = edges_.passed(now.cluster, now.thread, 0, old.cluster, old.thread, item.time);
        }
        return explained;
    }

    static void tell_flag(const Deficit &deficit, Record &found) {
        found.flag_write = deficit.write_site, found.flag_read = deficit.read_site, found.fence = deficit.fence_site;
    }

    // Between two CTAs.
    void explain(const Item &item, const RacingAccess &now, Record &found) {
        const Explained &explained = this->explained(item, now, true);
        if (own_flag(item.access, now, explained.deficit)) return (void)(found.reason = WEAK_ACCESS);
        found.reason = decided<OTHER_THREADS>(explained.others) ? OTHER_THREADS : reason_of(explained.deficit);
        if (explained.deficit.lack >= Lack::RELEASE_SCOPE) found.kind = SCOPE;
        tell_flag(explained.deficit, found);
        if (found.reason == NO_SYNCHRONISATION) explain_unrelated(item, now, found);
        if (found.hazard == RAW && explained.early.write_site && is_first(item)) found.flags |= FIRST_WRITE;
        if (found.reason == NO_SYNCHRONISATION && explained.behind.lack != Lack::NONE) {
            found.reason = reason_of(explained.behind);
            if (explained.behind.lack >= Lack::RELEASE_SCOPE) found.kind = SCOPE;
            tell_flag(explained.behind, found);
        }
        if (found.reason == NO_SYNCHRONISATION && found.hazard == RAW) name_early_flag(explained.early, found);
        if (found.reason != NO_SYNCHRONISATION) return;
        bool turned = !explained.passed.write_site;
        const Deficit &passed = turned ? explained.passed_first : explained.passed;
        if (!decided<FLAG_PASSED>(passed.write_site)) return;
        found.reason = FLAG_PASSED, tell_flag(passed, found);
        if (turned) turn(found);
    }

    // The access that should come first is the one that has come second.
    static void turn(Record &found) {
        std::swap(found.site, found.other_site), std::swap(found.thread, found.other_thread);
        found.hazard = found.hazard == RAW ? WAR : found.hazard == WAR ? RAW : found.hazard;
    }

    // Whether no write of the bytes came before one of them.
    bool is_first(const Item &item) const {
        auto found = cells_.find(item.access.address / 4);
        auto others = [&](u32 at) {
            for (; at; at = items_[at].next)
                if (items_[at].access.writes && items_[at].mask & item.mask && &items_[at] != &item) return true;
            return false;
        };
        return found != cells_.end() && !others(found->second.writes) && !others(found->second.strong);
    }

    // Between two threads of a CTA.
    void explain_within(const Item &item, const RacingAccess &now, Record &found) {
        Deficit deficit = explained(item, now, false).deficit;
        if (!own_flag(item.access, now, deficit)) tell_side(deficit, found);
    }

    // A strong access that races with a weak one of the same bytes is no flag between the two.
    bool own_flag(const RacingAccess &old, const RacingAccess &now, const Deficit &deficit) const {
        u32 strong = old.strong == now.strong ? 0 : edges_.site((old.strong ? old : now).flag);
        return strong && (deficit.write_site == strong || deficit.read_site == strong);
    }

    // Nothing leads from the one to the other: one of them accesses a flag weakly or in part, or what the one's CTA has published does not
    // cover it. (Strong accesses of the same bytes have a kind of their own, `scope`.)
    void explain_unrelated(const Item &item, const RacingAccess &now, Record &found) {
        const RacingAccess &old = item.access;
        Views::Published last = views_.last_of(old.cluster, old.thread, now.cluster, now.thread);
        bool copies = old.operation || now.operation;  // their strength is not what lacks
        if (decided<MIXED_SIZES>(!copies && old.strong && now.strong)) return (void)(found.reason = MIXED_SIZES);
        bool weak = !copies && old.strong != now.strong && (!last.made || signals(old.strong ? old : now));
        if (decided<WEAK_ACCESS>(weak)) return (void)(found.reason = WEAK_ACCESS);
        if (decided<NO_CLUSTER_BARRIER>(old.cluster == now.cluster)) found.reason = NO_CLUSTER_BARRIER;
        if (!last.made) return;
        bool earlier = last.thread == old.thread || (last.made <= item.made && views_.clocks(old.cluster).before(last.thread, last.time, old.thread));
        found.reason = decided<RELEASED_BEFORE>(earlier) ? RELEASED_BEFORE : RELEASED_BY_OTHER, found.fence = last.site;
    }

    // Whether a strong access sets or tests a value, as one of a flag or a lock does. A sum does not.
    bool signals(const RacingAccess &access) const { return access.reads != access.writes || edges_.swaps(access.flag); }

    // R-W1: whether only a bar.warp.sync lacks.
    bool knows_as_warp(const Item &item, const RacingAccess &now) {
        return views_.warps_before(item.access.cluster, item.access.thread, item.time, item.warp_time, now.cluster, now.thread);
    }

    // Whether the order reaches another thread of the CTA.
    bool others_know(const Item &item, const RacingAccess &now) {
        return any_knows(item, now, 0, threads_, [&](u32 thread) { return views_.together(now.cluster, thread, now.cluster, now.thread); });
    }
    // Whether it reaches a lane of the warp.
    bool lane_knows(const Item &item, const RacingAccess &now) {
        u32 first = now.thread / LANES * LANES;
        return any_knows(item, now, first, std::min(first + LANES, views_.clocks(now.cluster).threads()), [](u32) { return true; });
    }
    template <typename F> bool any_knows(const Item &item, const RacingAccess &now, u32 first, u32 end, F counts) {
        for (u32 thread = first; thread < end; ++thread)
            if (counts(thread) && views_.before(item.access.cluster, item.access.thread, item.time, now.cluster, thread)) return true;
        return false;
    }

    u32 threads_;
    bool isa_;
    Edges &edges_;
    SequenceLocks locks_{edges_.flags()};
    Footprints &footprints_;
    MapFences &map_fences_;
    Findings &findings_;
    Retained &retained_;
    std::unordered_map<u64, Cell> cells_;
    std::unordered_map<u64, Explained> explained_;  // by pair of sites
    std::vector<Cell *> long_;
    u64 compared_ = 0;  // accesses
    bool unknown_ = false;
};
