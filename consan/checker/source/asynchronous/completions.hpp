// What is known to be over of asynchronous operations that access global memory (SEMANTICS 4, R-GM11): a phase of an mbarrier, a group of bulk
// operations, a group of cp.async. Each is a number of an actor, so it goes the way of all happens-before.
#pragma once

#include "copies.hpp"
#include "groups.hpp"

struct Completion {
    enum How : u8 { NEVER, PHASE, RESULTS, SOURCES, COPY_GROUP } how = NEVER;
    u32 kind = 0, thread = 0, group = 0, number = 0;  // kind: an OperationKind, 0 of cp.async; number: of a cp.async among those of its thread
    Mbarriers::Phase phase{};
};

class Completions {
  public:
    Completions(const Groups &groups, const Mbarriers &mbarriers, const Copies &copies) : groups_(groups), mbarriers_(mbarriers), copies_(copies) {}

    // Whether any of the moments at which it is known holds: f(actor, number).
    template <typename F> bool any_end(const Completion &of, F f) const {
        switch (of.how) {
        case Completion::PHASE: return f(mbarriers_.actor(of.phase), of.phase.phase + 1);
        case Completion::RESULTS: return groups_.bulk(of.thread).results != NOTHING && f(groups_.bulk(of.thread).results, of.group + 1);
        case Completion::SOURCES: return groups_.bulk(of.thread).sources != NOTHING && f(groups_.bulk(of.thread).sources, of.group + 1);
        case Completion::COPY_GROUP: return copies_.any_end(of.thread, of.group, of.number, f);
        default: return false;
        }
    }

    // What lacks for a thread, whose operation is not over when it accesses the bytes. `other`: the thread of another CTA.
    void describe(Record &found, const Completion &of, u32 thread, bool other) const {
        found.flags |= OTHER_ASYNC, found.operation = of.kind;
        if (of.how == Completion::RESULTS) {
            const Groups::Owner &own = groups_.bulk(of.thread);
            found.reason = why(of, own, thread, other);
            found.group = of.group, found.commits = own.commits, found.retired = own.retired;
            return;
        }
        found.reason = SOURCE_OVERWRITTEN;
        if (of.how == Completion::SOURCES)
            found.group = of.group, found.commits = groups_.bulk(of.thread).commits, found.retired = groups_.bulk(of.thread).read;
        if (of.how == Completion::PHASE) mbarriers_.describe(found, of.phase);
        if (of.how == Completion::COPY_GROUP) copies_.describe(found, of.thread, of.group, of.number);
    }

  private:
    Reason why(const Completion &of, const Groups::Owner &own, u32 thread, bool other) const {
        if (of.group >= own.commits) return NOT_COMMITTED;
        if (of.group < own.retired && !other) return of.thread / LANES == thread / LANES ? OTHER_LANES : WAITED_NO_BARRIER;
        if (of.group < own.read) return READ_WAIT_ONLY;
        return !other && groups_.bulk(thread).waits && of.thread != thread ? OTHER_ISSUER : NOT_WAITED;
    }

    const Groups &groups_;
    const Mbarriers &mbarriers_;
    const Copies &copies_;
};
