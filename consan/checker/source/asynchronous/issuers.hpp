// Completion of tcgen05 operations (SEMANTICS 4.4). The operations of an issuer complete in numbers: mma, cp and shift of a thread by its commits,
// ld and st of a warp by its waits. How many are known to be complete is an entry of a clock, so happens-before carries it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "mbarriers.hpp"

// Who issues, and how its operations complete.
enum Pipe : u32 { BY_COMMIT = 0, BY_WAIT_LD, BY_WAIT_ST };

struct Ticket {
    u32 issuer = 0, number = 0;
};

class Issuers {
  public:
    Issuers(Clocks &clocks, Mbarriers &mbarriers) : clocks_(clocks), mbarriers_(mbarriers) {}

    Ticket issue(u32 thread, Pipe pipe) {
        u32 name = name_of(thread, pipe);
        auto known = names_.find(name);
        if (known == names_.end()) {
            known = names_.emplace(name, (u32)issuers_.size()).first;
            issuers_.push_back({thread, pipe, clocks_.new_actor(), clocks_.new_actor(), clocks_.new_actor()});
        }
        return {known->second, issuers_[known->second].issued++};
    }

    // tcgen05.commit: the actor and the number that its arrival stands for. All earlier operations of the thread are complete before it.
    std::pair<u32, u32> commit(u32 thread, u32 place) {
        auto known = names_.find(name_of(thread, BY_COMMIT));
        if (known == names_.end()) {
            vacuous_ = thread;
            return {NOTHING, 0};
        }
        Issuer &own = issuers_[known->second];
        Mbarriers::Phase phase;
        if (mbarriers_.current(place, phase)) own.commits.push_back({own.issued, phase});
        own.committed = own.issued;
        return {own.actor, own.issued};
    }

    // tcgen05.wait::ld, ::st of a thread's warp.
    void wait(u32 thread, Pipe pipe) {
        auto known = names_.find(name_of(thread, pipe));
        if (known == names_.end()) return;
        Issuer &own = issuers_[known->second];
        own.committed = own.issued;
        own.used.clear();
        if (decided<Edge::TENSOR_WAIT>()) clocks_.take(thread, {}, own.actor, own.issued);
        clocks_.take_executed(thread, {}, own.waited, own.issued);
    }

    // tcgen05.fence (ISA "tcgen05.fence"): relaxed synchronisation orders what is between the one before it and the one behind it. In the order
    // of execution the actors have what is before such a fence.
    void fence_before(u32 thread) {
        for (Issuer &each : issuers_) {
            if (!decided<Edge::TENSOR_FENCE_BEFORE>()) break;
            clocks_.take_executed(thread, {}, each.actor, clocks_.known(thread, each.actor));
            if (each.thread == thread) clocks_.take_executed(thread, {}, each.fenced, each.issued);
        }
    }
    void fence_after(u32 thread) {
        if (decided<Edge::TENSOR_FENCE_AFTER>()) fenced_[thread] = clocks_.executed(thread);
    }

    // Operation `load` of a warp's text, the last time that it was executed.
    void name(const Ticket &ticket, u32 load) { issuers_[ticket.issuer].latest[load] = ticket.number; }

    // Its registers have been used (T2). Loads are known to be complete in their order.
    void consume(u32 thread, u32 load) {
        auto known = names_.find(name_of(thread, BY_WAIT_LD));
        if (known == names_.end()) return;
        Issuer &own = issuers_[known->second];
        auto last = own.latest.find(load);
        if (last == own.latest.end()) return;
        if (last->second >= own.committed) own.used.insert(last->second);
        while (own.used.erase(own.committed)) ++own.committed;
        if (decided<Edge::TENSOR_USE>()) clocks_.take(thread, {}, own.actor, own.committed);
    }

    // Whether a thread knows that an operation is complete: `complete` for tensor memory, `known` for shared memory too.
    bool known(const Ticket &ticket, u32 thread) const { return clocks_.known(thread, issuers_[ticket.issuer].actor) > ticket.number; }
    bool complete(const Ticket &ticket, u32 thread) const {
        return known(ticket, thread) || clocks_.in(behind_fence(thread), issuers_[ticket.issuer].actor) > ticket.number;
    }
    // Whether a thread knows that an operation is complete, and no proxy fence for a memory lies behind that.
    bool unbridged(const Ticket &ticket, u32 thread, u32 memory) const {
        return known(ticket, thread) && clocks_.known_fenced(thread, issuers_[ticket.issuer].actor, memory) <= ticket.number;
    }
    // Whether relaxed synchronisation and fences order the issue of an operation before what a thread does.
    bool issued_before(const Ticket &ticket, u32 thread) const { return clocks_.in(behind_fence(thread), issuers_[ticket.issuer].fenced) > ticket.number; }

    // The same, but for the fence of the thread itself.
    bool issued_behind_fence(const Ticket &ticket, u32 thread) const { return clocks_.executed(thread, issuers_[ticket.issuer].fenced) > ticket.number; }

    // Whether a wait tells of a load, not only the use of its registers (T2); and whether fences do, not only release and acquire (T1).
    bool waited(const Ticket &ticket, u32 thread) const { return clocks_.executed(thread, issuers_[ticket.issuer].waited) > ticket.number; }
    bool fenced(const Ticket &ticket, u32 thread) const { return clocks_.in(behind_fence(thread), issuers_[ticket.issuer].actor) > ticket.number; }

    // The fence that is missing where relaxed synchronisation orders the completion of an operation; NO_REASON where nothing does.
    Reason unfenced(const Ticket &ticket, u32 thread) const {
        const Issuer &own = issuers_[ticket.issuer];
        if (decided<NO_FENCE_AFTER>(clocks_.executed(thread, own.actor) > ticket.number)) return NO_FENCE_AFTER;
        return decided<NO_FENCE_BEFORE>(clocks_.executed(thread, own.waited) > ticket.number) ? NO_FENCE_BEFORE : NO_REASON;
    }

    // How many operations of the issuer a thread knows to be complete.
    u32 completed(const Ticket &ticket, u32 thread) const { return clocks_.known(thread, issuers_[ticket.issuer].actor); }

    bool known_to_any(const Ticket &ticket) const {
        for (u32 thread = 0; thread < clocks_.threads(); ++thread)
            if (complete(ticket, thread)) return true;
        return false;
    }

    // Why a thread does not know that an operation is complete.
    Reason why(const Ticket &ticket, u32 thread) const {
        const Issuer &own = issuers_[ticket.issuer];
        if (ticket.number >= own.committed)
            return own.pipe == BY_COMMIT && vacuous_ != NOTHING && vacuous_ != own.thread ? OTHER_ISSUER : own.pipe == BY_COMMIT ? NOT_COMMITTED : NOT_WAITED;
        if (own.pipe == BY_WAIT_LD && clocks_.executed(own.thread, own.waited) <= ticket.number) return NOT_WAITED;  // only its registers were used (T2)
        u32 first = thread / LANES * LANES, end = std::min(first + LANES, clocks_.threads());
        for (u32 lane = first; lane < end; ++lane)
            if (complete(ticket, lane)) return OTHER_LANES;
        return known_to_any(ticket) ? WAITED_NO_BARRIER : NOT_WAITED;
    }

    // Whether one of the commits right behind an operation is on a barrier for which a thread waits.
    bool informed(const Ticket &ticket, u32 thread) const {
        u32 upto = NOTHING;
        for (const Commit &each : issuers_[ticket.issuer].commits) {
            if (each.upto <= ticket.number || each.upto > upto) continue;
            if (mbarriers_.waits(thread, each.phase)) return true;
            upto = each.upto;
        }
        return false;
    }

    // The barrier and the phase that tell a thread of an operation. `cells`: of tensor memory. What comes later may tell more (`settle`).
    void describe(Record &found, const Ticket &ticket, u32 thread, bool cells) {
        if (const Commit *best = telling(ticket, thread, cells)) mbarriers_.describe(found, best->phase);
        asked_.push_back({ticket, thread, cells});
        found.commit = (u32)asked_.size();
    }
    // At the end, when all commits and waits are known.
    void settle(Record &found) const {
        if (!found.commit) return;
        const Asked &asked = asked_[found.commit - 1];
        const Commit *best = telling(asked.ticket, asked.thread, asked.cells);
        if (!best) return;
        mbarriers_.describe(found, best->phase);
        bool heard = mbarriers_.waits().awaited(mbarriers_.actor(best->phase));
        if (!heard && found.reason == WAITED_NO_BARRIER) found.reason = NOT_WAITED;  // others know it by another commit
    }

  private:
    struct Commit {
        u32 upto;
        Mbarriers::Phase phase;
    };
    struct Asked {
        Ticket ticket;
        u32 thread;
        bool cells;
    };
    struct Issuer {
        u32 thread;
        Pipe pipe;
        u32 actor, waited, fenced;  // completed operations; the same, without a fence; operations issued before a fence
        u32 issued = 0, committed = 0;
        std::vector<Commit> commits{};
        std::map<u32, u32> latest{};  // numbers of the loads of the text
        std::set<u32> used{};         // loads, not yet committed, whose registers have been used
    };

    // Of the commits of an operation the first one on a barrier at which the warp of the thread waits. Where it waits at none: the first commit,
    // or for `cells` the first one on a barrier at which nobody waits, or the last one of those in a row: the accumulator's behind that of the stage.
    const Commit *telling(const Ticket &ticket, u32 thread, bool cells) const {
        const Commit *best = nullptr, *idle = nullptr;
        const LastWaits &waits = mbarriers_.waits();
        for (const Commit &each : issuers_[ticket.issuer].commits) {
            if (each.upto <= ticket.number) continue;
            u32 object = mbarriers_.actor(each.phase);
            if (waits.waits(thread, object)) return &each;
            if (!idle && !waits.awaited(object)) idle = &each;
            if (!best || (cells && each.upto == best->upto)) best = &each;
        }
        return cells && idle ? idle : best;
    }

    static u32 name_of(u32 thread, Pipe pipe) { return (pipe == BY_COMMIT ? thread : thread / LANES) * 4 + pipe; }

    Clocks &clocks_;
    Mbarriers &mbarriers_;
    std::map<u32, u32> names_;
    std::vector<Issuer> issuers_;
    std::vector<Asked> asked_;
    const Vector &behind_fence(u32 thread) const {
        static const Vector none;
        auto found = fenced_.find(thread);
        return found == fenced_.end() ? none : found->second;
    }

    std::map<u32, Vector> fenced_;  // by thread: the order of execution at its last fence::after_thread_sync
    u32 vacuous_ = NOTHING;  // the last thread that has committed without operations
};
