// Order of accesses to tensor memory (SEMANTICS 4.4, R-T1, R-T3 to R-T8, R-A7, R-T11). Each access meets the earlier ones with common cells.
//
// The latest of the accesses of one thread and place to the same cells is enough: its completion is later than that of the earlier ones.
#pragma once

#include "findings.hpp"
#include "issuers.hpp"
#include "race_rule.hpp"
#include "tensor_cells.hpp"

constexpr u32 NO_OPERATION = 0;

struct TensorAccess : Side {
    // `kind`: an OperationKind, or NO_OPERATION: a dealloc.
    TensorAccess(u32 kind, u32 site, u32 thread, bool reads, bool writes) : kind(kind) {
        this->site = site, this->thread = thread, this->reads = reads, this->writes = writes;
    }

    u32 kind;
    u32 accumulator = 0, shape = 0;  // of an mma: the address of D, and M and N
    u32 layout = 0;                  // how the cells hold elements, if it says that (R-T16)
    bool rows_of_4 = false;          // cp.4x256b
    Ticket ticket{};
    u32 time = 0, allocation = 0, number = 0;  // the site of the alloc; how many the CTA had made then
    // Of ld and st: the issuer of an mma, cp or shift on the cells, and how many of its operations were known to be complete. Of these: that of a st.
    u32 issuer = NOTHING, known = 0;

    bool pipelined() const { return kind == TCGEN05_MMA_OPERATION || kind == TCGEN05_CP_OPERATION || kind == TCGEN05_SHIFT_OPERATION; }
};

class TensorOrder {
  public:
    // `isa`: report too what is in order by readings that the ISA's text does not give (SEMANTICS T1 to T3).
    TensorOrder(Clocks &clocks, Issuers &issuers, Findings &findings, bool isa) : isa_(isa), clocks_(clocks), issuers_(issuers), findings_(findings) {}

    void add(TensorAccess access, const Pieces &pieces) {
        access.time = clocks_.time(access.thread);
        for (const Piece &piece : pieces) {
            for (const Item &peer : peers_)
                if (of_one(access, peer.access) && peer.piece.meets(piece)) report_peer({piece, access, {}}, peer.access, peer.piece);
            for (const Item &item : items_) {
                if (!item.piece.meets(piece)) continue;
                if (access.writes || item.access.writes)
                    race_rule::meet(item.access, access, Facts{{}, *this, item, access, piece},
                                    [&](const Record &found) { report(found, item, access, piece); });
                if (access.pipelined() ? item.access.kind == TCGEN05_ST_OPERATION : item.access.pipelined())
                    access.issuer = item.access.ticket.issuer, access.known = issuers_.completed(item.access.ticket, access.thread);
            }
            if (access.reads) check_written(access, piece);
            if (access.reads && access.layout) check_layout(access, piece);
        }
        for (const Piece &piece : pieces) {
            if (access.writes) written_.set(piece, mark_of(access));
            keep(access, piece);
        }
    }

    // Columns are freed, or allocated again: nothing before matters to what comes, but for a dealloc by the peer.
    void forget(u32 begin, u32 end) {
        Piece all{LaneSet::range(0, TENSOR_LANES), begin, end};
        if (isa_) std::copy_if(items_.begin(), items_.end(), std::back_inserter(freed_), [&](const Item &item) { return item.piece.meets(all); });
        written_.set(all, UNWRITTEN);
        items_.erase(std::remove_if(items_.begin(), items_.end(), [&](const Item &item) { return item.piece.meets(all); }), items_.end());
    }

    // A dealloc by the other CTA of a pair: it must come behind all accesses here, those that are known to be over and those to come (T6).
    void free_of_peer(const TensorAccess &dealloc, const Piece &piece) {
        for (const std::vector<Item> *items : {&items_, &freed_})
            for (const Item &item : *items)
                if (of_one(item.access, dealloc) && item.piece.meets(piece) && !ordered(item.access, dealloc)) report_peer(item, dealloc, piece);
        peers_.push_back({piece, dealloc, {}});
    }

    // At the end: reads of cells that nothing has written, and that no write without order explains.
    void finish() {
        for (const Read &read : unwritten_) {
            if (read.explained) continue;
            Record found = place(read.piece, read.access.allocation);
            found.kind = UNINITIALIZED_READ;
            found.site = read.access.site;
            found.thread = found.other_thread = read.access.thread;
            found.own_operation = read.access.kind;
            findings_.add(found);
        }
    }

    static Record place(const Piece &piece, u32 allocation) {
        Record found{};
        place(piece, allocation, found);
        return found;
    }
    static void place(const Piece &piece, u32 allocation, u32 operation, u32 own_operation, Record &found) {
        place(piece, allocation, found);
        found.operation = operation, found.own_operation = own_operation;
    }
    static void place(const Piece &piece, u32 allocation, Record &found) {
        found.flags = TENSOR;
        found.offset = piece.begin;
        found.bytes = piece.end - piece.begin;
        found.address_low = piece.lanes.empty() ? 0 : piece.lanes.first() | piece.lanes.end() << 8;
        found.address_high = allocation;
    }

  private:
    struct Item {
        Piece piece;
        TensorAccess access;
        std::vector<u32> numbers;  // of all such operations
        u32 overwrites = 0;  // how many operations the issuer had with the last one that wrote and did not read

        // How many of them are complete if the issuer has completed that many operations.
        u32 complete(u32 completed) const { return (u32)(std::lower_bound(numbers.begin(), numbers.end(), completed) - numbers.begin()); }
    };
    struct Read {
        Piece piece;
        TensorAccess access;
        bool explained;
    };

    struct Writer {
        u32 layout, site, thread;
    };

    // ISA "Pipelined tcgen05 Instructions"; more within a thread (T3).
    static bool in_issue_order(const TensorAccess &first, const TensorAccess &second, bool one_thread) {
        if (!first.pipelined() || !second.pipelined()) return false;
        if (first.kind == TCGEN05_SHIFT_OPERATION) return second.kind == TCGEN05_MMA_OPERATION || (second.kind == TCGEN05_CP_OPERATION && second.rows_of_4);
        if (second.kind == TCGEN05_SHIFT_OPERATION) return first.kind == TCGEN05_MMA_OPERATION;
        if (one_thread) return true;
        if (second.kind != TCGEN05_MMA_OPERATION) return false;
        return first.kind == TCGEN05_CP_OPERATION || (first.accumulator == second.accumulator && first.shape == second.shape);
    }

    bool issued_before(const TensorAccess &old, const TensorAccess &now) const {
        return clocks_.before(old.thread, old.time, now.thread) || issuers_.issued_before(old.ticket, now.thread);
    }

    bool ordered(const TensorAccess &old, const TensorAccess &now) const {
        if (issuers_.complete(old.ticket, now.thread)) return true;
        if (now.kind == NO_OPERATION && issuers_.unfenced(old.ticket, now.thread))
            return true;  // it touches no cell: it is enough that the access is over (T21)
        return in_issue_order(old, now, old.thread == now.thread) && issued_before(old, now);
    }

    // Why an order that is accepted is not in the ISA's text.
    Reason lenient(const TensorAccess &old, const TensorAccess &now) const {
        if (old.kind == NO_OPERATION) return NO_REASON;
        if (!issuers_.complete(old.ticket, now.thread)) {
            if (now.kind == NO_OPERATION) return FENCE_BY_THE_ISA;
            bool listed =
                now.kind == TCGEN05_MMA_OPERATION && (old.kind != TCGEN05_MMA_OPERATION || (old.accumulator == now.accumulator && old.shape == now.shape));
            return listed || old.kind == TCGEN05_SHIFT_OPERATION || now.kind == TCGEN05_SHIFT_OPERATION ? NO_REASON : ISSUE_ORDER;
        }
        if (decided<ONLY_USED>(old.kind == TCGEN05_LD_OPERATION && !issuers_.waited(old.ticket, now.thread))) return ONLY_USED;
        return old.thread / LANES == now.thread / LANES || issuers_.fenced(old.ticket, now.thread) ? NO_REASON : FENCE_BY_THE_ISA;
    }

    // Compares an operation with a later one. All of them are asynchronous: some complete by a commit, the others by the wait of their warp.
    struct Facts : race_rule::PlainFacts {
        const TensorOrder &all;
        const Item &item;
        const TensorAccess &now;
        const Piece &piece;

        const TensorAccess &old() const { return item.access; }
        bool complete() const { return all.ordered(old(), now); }
        bool asynchronous() const { return true; }
        bool issued() const { return all.issued_before(old(), now) || fence(); }
        // Who has not issued an operation may wait for its commit, and a read is of what the operation brings. R-T5: a thread waits at the mbarrier of
        // the commit, for another phase.
        bool awaited() const { return behind_commit() && (!now.writes || now.kind == NO_OPERATION || all.issuers_.informed(old().ticket, now.thread)); }
        bool behind_commit() const { return old().pipelined() && !now.pipelined(); }
        bool early() const { return (behind_commit() && now.kind != NO_OPERATION && all.overtakes(item, now, piece)) || all.refills(item, now); }
        Reason fence() const { return all.missing_fence(old(), now); }

        template <typename Add> void bridge(Add add) const {
            Reason reason = all.isa_ ? all.lenient(old(), now) : NO_REASON;
            if (!reason) return;
            Record found = race_rule::pair(old(), now, *this);
            all.issuers_.describe(found, old().ticket, now.thread, true);
            found.kind = reason == FENCE_BY_THE_ISA ? MISSING_TENSOR_FENCE : MISSING_WAIT;
            found.reason = reason;
            found.flags |= OTHER_ASYNC;
            add(found);
        }
        void place(Record &found) const { TensorOrder::place(item.piece.common(piece), now.allocation, old().kind, now.kind, found); }
        void wait(Record &found) const {
            Reason lacks = fence();
            found.flags |= OTHER_ASYNC;
            if (!all.issued_before(old(), now)) found.signal_thread = NOTHING;
            all.issuers_.describe(found, old().ticket, now.thread, true);
            if (lacks) found.kind = MISSING_TENSOR_FENCE, found.reason = lacks;
            else found.reason = early_commit() ? EARLIER_COMMIT : all.issuers_.why(old().ticket, now.thread);
        }
        bool early_commit() const {
            return !all.issued_before(old(), now) && now.kind != NO_OPERATION && all.is_waiting(item, now, piece) && all.adds_up(item, now);
        }
        void race(Record &found, Reason reason, bool early) const {
            if (!early) all.issuers_.describe(found, old().ticket, now.thread, true);
            if (!early && old().pipelined()) found.flags |= OTHER_ASYNC;
            found.kind = DATA_RACE, found.reason = reason;
        }
    };

    void report(const Record &found, const Item &item, const TensorAccess &now, const Piece &piece) {
        findings_.add(found);
        for (Read &read : unwritten_)
            if (now.writes && read.access.site == item.access.site && read.piece.meets(piece)) read.explained = true;
    }

    // An access, and the dealloc in the other CTA, of one allocation of the pair.
    static bool of_one(const TensorAccess &access, const TensorAccess &dealloc) { return access.kind != NO_OPERATION && access.number == dealloc.number; }

    void report_peer(const Item &item, const TensorAccess &dealloc, const Piece &piece) {
        Record found = race_rule::pair(item.access, dealloc, Facts{{}, *this, item, dealloc, piece});
        issuers_.describe(found, item.access.ticket, dealloc.thread, true);
        found.kind = DATA_RACE, found.reason = PEER_DEALLOC;
        findings_.add(found);
    }

    // The fence that is missing where relaxed synchronisation orders two operations, by completion or, of pipelined ones, by issue.
    Reason missing_fence(const TensorAccess &old, const TensorAccess &now) const {
        Reason fence = issuers_.unfenced(old.ticket, now.thread);
        if (fence || !in_issue_order(old, now, old.thread == now.thread) || clocks_.executed(now.thread, old.thread) < old.time) return fence;
        return issuers_.issued_behind_fence(old.ticket, now.thread) ? NO_FENCE_AFTER : NO_FENCE_BEFORE;
    }

    // Whether an operation comes too early for a thread that does not know of its issue: one that has waited for the operations on its cells, and has not
    // used them since, or that writes what the operation has read before anybody wrote it.
    bool overtakes(const Item &item, const TensorAccess &now, const Piece &piece) const {
        return (now.writes && read_unwritten(item)) || (is_waiting(item, now, piece) && !adds_up(item, now));
    }
    // Whether a store comes before an operation has read what an earlier one of its thread has left: of that the issuer knows, and has issued no
    // operation that reads it.
    bool refills(const Item &item, const TensorAccess &now) const {
        const TensorAccess &store = item.access;
        if (store.kind != TCGEN05_ST_OPERATION || !now.pipelined() || !now.reads) return false;
        auto known = [&](u32 issuer) { return stored(issuer, item.piece, issuers_.completed({issuer, 0}, now.thread)); };
        return known(store.ticket.issuer) && std::none_of(items_.begin(), items_.end(), [&](const Item &each) {
                   const TensorAccess &read = each.access;
                   bool own = read.pipelined() && read.reads && read.thread == now.thread && read.issuer != NOTHING && each.piece.meets(item.piece);
                   return own && stored(read.issuer, item.piece, read.known) == known(read.issuer);
               });
    }
    // How many stores of a warp into some cells are complete if it has completed that many.
    u32 stored(u32 issuer, const Piece &piece, u32 completed) const {
        u32 found = 0;
        for (const Item &each : items_)
            if (each.access.kind == TCGEN05_ST_OPERATION && each.access.ticket.issuer == issuer && each.piece.meets(piece)) found += each.complete(completed);
        return found;
    }

    bool is_waiting(const Item &item, const TensorAccess &now, const Piece &piece) const { return knows_earlier(item, now) && !released(item, now, piece); }

    // Whether it adds to what the earlier ones have left, and the thread does not wait for its commit: then the other commit came too early.
    bool adds_up(const Item &item, const TensorAccess &now) const {
        bool adds = item.access.updates() && !overwritten(item, now);
        return decided<EARLIER_COMMIT>(adds && !issuers_.informed(item.access.ticket, now.thread));
    }

    // Whether an operation has read cells that nothing had written: a write of them that comes behind it is late, whatever waits for the operation.
    bool read_unwritten(const Item &item) const {
        return std::any_of(unwritten_.begin(), unwritten_.end(), [&](const Read &read) {
            return read.access.site == item.access.site && read.access.thread == item.access.thread && read.piece.meets(item.piece);
        });
    }

    // Whether a thread knows that an earlier operation on the cells is complete.
    bool knows_earlier(const Item &item, const TensorAccess &now) const {
        return of_issuer(item, [&](const Item &each) { return each.complete(issuers_.completed(each.access.ticket, now.thread)) > 0; });
    }

    // Whether one that it does not know to be complete has begun the sum anew.
    bool overwritten(const Item &item, const TensorAccess &now) const {
        return of_issuer(item, [&](const Item &each) { return each.overwrites > issuers_.completed(each.access.ticket, now.thread); });
    }

    // Whether a thread has used the cells since it learned of the last operation on them that it knows to be complete, and informed the issuer of that.
    bool released(const Item &item, const TensorAccess &now, const Piece &piece) const {
        for (const Item &each : items_) {
            const TensorAccess &use = each.access;
            if (use.thread != now.thread || use.pipelined() || !each.piece.meets(piece) || !clocks_.before(use.thread, use.time, item.access.thread)) continue;
            u32 known = use.issuer == item.access.ticket.issuer ? use.known : 0;
            if (!of_issuer(item,
                           [&](const Item &other) { return other.complete(known) < other.complete(issuers_.completed(other.access.ticket, now.thread)); }))
                return true;
        }
        return false;
    }

    // Whether something holds for operations of one issuer on common cells.
    template <typename F> bool of_issuer(const Item &item, F holds) const {
        return std::any_of(items_.begin(), items_.end(), [&](const Item &each) {
            return each.access.pipelined() && each.access.ticket.issuer == item.access.ticket.issuer && each.piece.meets(item.piece) && holds(each);
        });
    }

    void check_written(const TensorAccess &access, const Piece &piece) {
        Piece missing;
        if (!written_.missing(piece, missing)) return;
        for (const Read &read : unwritten_)
            if (read.access.site == access.site && read.access.thread == access.thread) return;
        unwritten_.push_back({missing, access, false});
    }

    // R-T16: cells that the last write left in another layout.
    void check_layout(const TensorAccess &access, const Piece &piece) {
        u8 mark = written_.find(piece, [&](u8 each) { return writers_[each - FIRST_LAYOUT].layout != access.layout; });
        if (mark == WRITTEN) return;
        const Writer &writer = writers_[mark - FIRST_LAYOUT];
        Record found = place(piece, access.allocation);
        found.kind = TENSOR_MISUSE, found.reason = OTHER_LAYOUT;
        found.site = access.site, found.other_site = writer.site;
        found.thread = access.thread, found.other_thread = writer.thread;
        findings_.add(found);
    }

    u8 mark_of(const TensorAccess &access) {
        if (!access.layout) return WRITTEN;
        for (u32 i = 0; i < writers_.size(); ++i)
            if (writers_[i].layout == access.layout && writers_[i].site == access.site) return (u8)(FIRST_LAYOUT + i);
        if (writers_.size() == 255 - FIRST_LAYOUT) return WRITTEN;  // so many that the rest is left alone
        writers_.push_back({access.layout, access.site, access.thread});
        return (u8)(FIRST_LAYOUT + writers_.size() - 1);
    }

    void keep(const TensorAccess &access, const Piece &piece) {
        for (Item &item : items_) {
            const TensorAccess &old = item.access;
            if (old.site != access.site || old.thread != access.thread || old.writes != access.writes || !(item.piece == piece)) continue;
            note(item, access);
            return;
        }
        items_.push_back({piece, access, {}});
        note(items_.back(), access);
    }

    static void note(Item &item, const TensorAccess &access) {
        item.access = access;
        if (!access.pipelined() && access.kind != TCGEN05_ST_OPERATION) return;
        item.numbers.push_back(access.ticket.number);
        if (access.writes && !access.reads) item.overwrites = access.ticket.number + 1;
    }

    bool isa_;
    Clocks &clocks_;
    Issuers &issuers_;
    Findings &findings_;
    WrittenCells written_;
    std::vector<Item> items_;
    std::vector<Read> unwritten_;
    std::vector<Writer> writers_;  // by Mark, in the layouts in which cells were written
    std::vector<Item> peers_;  // the same: deallocs by the other CTA
    std::vector<Item> freed_;  // under the strict reading: of columns of a pair that have been freed (T6)
};
