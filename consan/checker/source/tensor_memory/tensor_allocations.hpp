// Allocation of tensor memory (SEMANTICS 4.4, R-A1 to R-A7, R-A9; ISA "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit").
#pragma once

#include "tensor_order.hpp"

class TensorAllocations {
  public:
    TensorAllocations(Clocks &clocks, Issuers &issuers, Findings &findings, bool isa)
        : clocks_(clocks), order_(clocks, issuers, findings, isa), findings_(findings), owner_(TENSOR_COLUMNS, 0) {}

    // A warp asks for columns. The checks need no answer: an alloc that is never served is checked too.
    void request(u32 thread, u32 site, u32 columns) {
        if (columns < 32 || columns > TENSOR_COLUMNS || (columns & (columns - 1))) misuse(ALLOC_COLUMNS, thread, site, columns);
        else if (last_ && columns > last_) misuse(ALLOC_GROWS, thread, site, columns, last_site_, last_thread_);
        if (relinquished_) misuse(ALLOC_RELINQUISHED, thread, site, columns, relinquished_, relinquisher_);
        last_ = columns, last_site_ = site, last_thread_ = thread;
    }

    void allocate(u32 thread, u32 site, u32 address, u32 columns) {
        u32 begin = std::min(column_of(address), TENSOR_COLUMNS), end = std::min(begin + columns, TENSOR_COLUMNS);
        allocations_.push_back({site, thread, clocks_.time(thread), address, columns, begin, end, true, 0, 0, 0, NOTHING, 0});
        std::fill(owner_.begin() + begin, owner_.begin() + end, (u32)allocations_.size());
        order_.forget(begin, end);
        TensorAccess alloc = end_of(thread, site);
        for (Outside &each : outside_)
            if (each.piece.begin < end && begin < each.piece.end && !each.explained)
                each.explained = meet({{}, each.access, alloc, each.piece, site, clocks_.before(each.access.thread, each.access.time, thread), true});
    }

    // The other warp of an allocation for a pair has come: what is behind either of the two is behind the allocation, which both make together.
    // `own`: it is this CTA's, which answers for it.
    void join(u32 thread, u32 site, u32 address, bool own) {
        Allocation *made = nullptr;
        for (Allocation &each : allocations_)
            if (each.live && each.address == address) made = &each;
        if (!made) return;
        made->other = thread, made->other_time = clocks_.time(thread);
        if (!own) return;
        std::swap(made->thread, made->other), std::swap(made->time, made->other_time);
        made->site = site;
    }

    void relinquish(u32 thread, u32 site) { relinquished_ = site, relinquisher_ = thread; }

    void free(u32 thread, u32 site, u32 address, u32 columns) {
        for (Allocation &each : allocations_) {
            if (!each.live || each.address != address || each.columns != columns) continue;
            use(end_of(thread, site), {{LaneSet::range(0, TENSOR_LANES), each.begin, each.end}});
            order_.forget(each.begin, each.end);
            release(each, thread, site);
            return;
        }
        Allocation *part = nullptr;
        for (Allocation &each : allocations_)
            if (each.live && column_of(address) >= each.begin && column_of(address) < each.end) part = &each;
        Piece piece{LaneSet::range(0, TENSOR_LANES), std::min(column_of(address), TENSOR_COLUMNS), std::min(column_of(address) + columns, TENSOR_COLUMNS)};
        Record found = TensorOrder::place(piece, part ? part->site : 0);
        fill(found, DEALLOC_MISMATCH, thread, site, columns, part ? part->site : freed_at(address), part ? part->thread : thread);
        findings_.add(found);
        if (part) release(*part, thread, site);
    }

    // The other CTA of the pair frees its columns (T6, by the strict reading only).
    void freed_by_peer(u32 thread, u32 site, u32 address, u32 columns, u32 number) {
        TensorAccess access = end_of(thread, site);
        access.number = number;
        u32 begin = std::min(column_of(address), TENSOR_COLUMNS);
        order_.free_of_peer(access, {LaneSet::range(0, TENSOR_LANES), begin, std::min(begin + columns, TENSOR_COLUMNS)});
    }

    // The number of the live allocation at an address; 0: none.
    u32 number(u32 address) const { return column_of(address) < TENSOR_COLUMNS ? owner_[column_of(address)] : 0; }

    // An access: it must lie in live allocations, and behind their allocs.
    void use(TensorAccess access, const Pieces &pieces) {
        u32 last = 0;
        for (const Piece &piece : pieces)
            for (u32 column = piece.begin; column < piece.end; ++column) {
                u32 number = column < TENSOR_COLUMNS ? owner_[column] : 0;
                if (number == 0) return outside(access, piece, column);
                if (number == last) continue;
                last = number;
                const Allocation &own = allocations_[number - 1];
                access.allocation = own.site, access.number = number;
                TensorAccess alloc = end_of(own.thread, own.site);
                meet({{}, alloc, access, piece, own.site, behind(own, access.thread), false});
            }
        order_.add(access, pieces);
    }

    // All instructions of a kernel have one cta_group (R-A9).
    void group(u32 thread, u32 site, u32 group) {
        if (group_ && group != group_) misuse(TWO_GROUPS, thread, site, group, group_site_, group_thread_);
        if (!group_) group_ = group, group_site_ = site, group_thread_ = thread;
    }

    void misuse(Reason reason, u32 thread, u32 site, u32 number, u32 other_site = 0, u32 other = NOTHING) {
        Record found{};
        fill(found, reason, thread, site, number, other_site, other == NOTHING ? thread : other);
        findings_.add(found);
    }

    void finish() {
        for (const Outside &each : outside_) {
            if (each.explained) continue;
            Record found = TensorOrder::place(each.piece, each.freed);
            fill(found, each.freed ? USED_AFTER_DEALLOC : OUTSIDE_ALLOCATION, each.access.thread, each.access.site, 0, each.freed, each.freer);
            findings_.add(found);
        }
        for (const Allocation &each : allocations_)
            if (each.live) {
                Record found = TensorOrder::place({LaneSet::range(0, TENSOR_LANES), each.begin, each.end}, each.site);
                fill(found, ALLOC_LIVE, each.thread, each.site, each.columns, 0, each.thread);
                findings_.add(found);
            }
        order_.finish();
    }

  private:
    struct Allocation {
        u32 site, thread, time, address, columns, begin, end;
        bool live;
        u32 freed, freer, freed_time;  // site, thread and moment of the dealloc
        u32 other, other_time;         // of a pair: the thread of the other CTA
    };
    struct Outside {
        Piece piece;
        TensorAccess access;
        u32 freed, freer;
        bool explained;
    };

    // Compares an alloc or a dealloc with an access to its columns. `ordered`: the two are in order; `early`: the earlier one of the replay comes too early.
    struct Facts : race_rule::PlainFacts {
        const TensorAccess &old, &now;
        const Piece &piece;
        u32 allocation;
        bool ordered, early_;

        bool complete() const { return ordered; }
        bool early() const { return early_; }
        void place(Record &found) const { TensorOrder::place(piece, allocation, old.kind, now.kind, found); }
    };

    // Whether the race rule finds something.
    bool meet(const Facts &facts) {
        race_rule::meet(facts.old, facts.now, facts, [&](const Record &found) { findings_.add(found); });
        return !facts.ordered;
    }

    // An alloc or a dealloc, as one end of the life of its columns.
    static TensorAccess end_of(u32 thread, u32 site) { return {NO_OPERATION, site, thread, false, true}; }

    // Whether a thread is behind an alloc. It is synchronous, so the order of execution is enough (T21); its word in shared memory needs more.
    bool behind(const Allocation &made, u32 thread) const {
        return behind(made.thread, made.time, thread) || (made.other != NOTHING && behind(made.other, made.other_time, thread));
    }
    bool behind(u32 other, u32 time, u32 thread) const { return clocks_.before(other, time, thread) || clocks_.executed(thread, other) >= time; }

    void release(Allocation &each, u32 thread, u32 site) {
        each.live = false, each.freed = site, each.freer = thread, each.freed_time = clocks_.time(thread);
        std::fill(owner_.begin() + each.begin, owner_.begin() + each.end, 0u);
    }

    u32 freed_at(u32 address) const {
        for (auto each = allocations_.rbegin(); each != allocations_.rend(); ++each)
            if (each->address == address) return each->freed;
        return 0;
    }

    // Outside all live allocations: a race with a dealloc, or with an alloc to come, where nothing orders the two; else a misuse.
    void outside(TensorAccess access, const Piece &piece, u32 column) {
        access.time = clocks_.time(access.thread);
        for (auto each = allocations_.rbegin(); each != allocations_.rend(); ++each) {
            if (each->live || column < each->begin || column >= each->end) continue;
            access.allocation = each->site;
            TensorAccess dealloc = end_of(each->freer, each->freed);
            if (!meet({{}, dealloc, access, piece, each->site, clocks_.before(each->freer, each->freed_time, access.thread), true}))
                outside_.push_back({piece, access, each->freed, each->freer, false});
            return;
        }
        outside_.push_back({piece, access, 0, access.thread, false});
    }

    static void fill(Record &found, Reason reason, u32 thread, u32 site, u32 number, u32 other_site, u32 other) {
        found.kind = TENSOR_MISUSE, found.reason = reason;
        found.site = site, found.other_site = other_site;
        found.thread = thread, found.other_thread = other;
        found.number = number;
    }

    Clocks &clocks_;
    TensorOrder order_;
    Findings &findings_;
    std::vector<u32> owner_;  // by column: the number of the live allocation
    std::vector<Allocation> allocations_;
    std::vector<Outside> outside_;
    u32 last_ = 0, last_site_ = 0, last_thread_ = 0, relinquished_ = 0, relinquisher_ = 0, group_ = 0, group_site_ = 0, group_thread_ = 0;
};
