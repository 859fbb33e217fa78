// R-SCOPE, and relaxed operations (SEMANTICS 3; ISA "Scope", "Release and Acquire Patterns"). A release and an acquire make an edge if the scope
// of each includes the other thread. A relaxed release publishes what a release fence before it covers; what a relaxed acquire sees is acquired
// by an acquire fence behind it.
//
// Within a CTA every scope serves; two CTAs need .cluster or wider on both sides. A launch whose races may lack nothing but a scope is replayed
// again with wider ones (Level): a race that is none then is a `scope`.
#pragma once

#include "clocks.hpp"
#include "decisions.hpp"

// How much is taken for an edge: what the rule says; waits of any scope; releases of any scope too.
// The clocks that releases have published, by who may take them: the threads of each CTA, and (FAR, the last) those of any CTA. One CTA has no FAR.
struct Given {
    std::vector<Deposit> by;
    Vector executed;
    std::vector<Deposit> wide;  // for threads of each CTA, with FAR; made when it is first taken
};

// An actor has come up to a number. NOTHING: no actor has.
struct Progress {
    u32 actor = NOTHING, number = 0;
};

class Scopes {
  public:
    // `isa`: what acquires of .cluster scope have brought is kept apart (D5).
    Scopes(const Shape &shape, u32 level, bool isa, Clocks &clocks)
        : shape_(shape), level_(level), isa_(isa), clocks_(clocks), fences_(shape.threads()), pending_(shape.threads()), progress_(shape.threads()) {}

    // The actor of an mbarrier. The next one is what acquires of .cluster scope know of it.
    u32 new_actor() {
        u32 made = clocks_.new_actor();
        if (isa_) clocks_.new_actor();
        return made;
    }

    // What the releases of a thread signal from now on, besides its clock.
    void signals(u32 thread, Progress progress) { progress_[thread] = progress; }

    // A strong write of a thread. `release`: it is one; `wide`: of .cluster scope or wider.
    void release(u32 thread, bool release, bool wide, Given &to) {
        bool orders = decided<Edge::RELEASE>(release);
        to.wide.clear();
        Past past = clocks_.release(thread);
        clocks_.give_executed(to.executed, past);
        give(thread, wide || any_release(), to, [&](Deposit &deposit, bool far) {
            if (orders) clocks_.give(deposit, past);
            else if (decided<Edge::RELEASE_FENCE>()) clocks_.give(deposit, far ? fences_[thread].far : fences_[thread].near);
        });
        if (decided<Edge::PRODUCTS_SIGNALLED>(orders)) add(progress_[thread], to);
    }

    // tcgen05.commit: a release at .cluster scope, at which an actor has come up to a number.
    void signal(u32 thread, Progress progress, Given &to) {
        release(thread, true, true, to);
        if (progress.actor == NOTHING || !decided<Edge::TENSOR_COMMIT>()) return;
        Vector done = clocks_.only({progress.actor}, progress.number);
        if (to.executed) clocks_.add(to.executed, done);
        for (Deposit &each : to.by) clocks_.add(each.seen, done);  // in each CTA, whatever the scope of its wait
    }

    // A strong read sees what has been published. `actor`, `number`: what it then knows of an mbarrier, or NOTHING.
    void take(u32 thread, Given &from, bool orders, bool wide, u32 actor, u32 number) {
        clocks_.take_executed(thread, from.executed, actor, number);
        wide |= any_wait();
        if (decided<Edge::ACQUIRE>(orders)) acquire(thread, from, wide, actor, number);
        else pending_[thread].push_back({from, wide, actor, number});
    }

    // A fence. `wide`: of .cluster scope or wider.
    void fence(u32 thread, bool acquires, bool releases, bool wide) {
        std::vector<Seen> &pending = pending_[thread];
        if (decided<Edge::ACQUIRE_FENCE>(acquires)) {
            bool far = wide || any_wait();
            for (Seen &each : pending) acquire(thread, each.given, far && each.wide, each.actor, each.number);
            if (far) pending.clear();
        }
        if (!releases) return;
        Past past = clocks_.release(thread);
        Fences &own = fences_[thread];
        clocks_.give(own.near, past);
        if (decided<Inclusion::FENCE>(wide || any_release())) clocks_.give(own.far, past);
    }

    // fence.mbarrier_init: it covers initialisations, the actors, and nothing else.
    void fence_inits(u32 thread, const std::vector<u32> &actors) {
        Fences &own = fences_[thread];
        Vector inits = clocks_.only(actors);
        clocks_.add(own.near.seen, inits), clocks_.add(own.far.seen, inits);
    }

  private:
    struct Fences {
        Deposit near, far;  // what the thread's release fences cover, for its own CTA and for all
    };
    struct Seen {
        Given given;
        bool wide;
        u32 actor, number;
    };

    bool any_release() const { return decided<Inclusion::ANY_RELEASE>(level_ >= SCOPES); }
    bool any_wait() const { return decided<Inclusion::ANY_WAIT>(level_ >= WAIT_SCOPES); }

    void add(Progress progress, Given &to) const {
        Vector done;
        for (Deposit &each : to.by) {
            if (progress.actor == NOTHING || !each.seen || clocks_.in(each.seen, progress.actor) >= progress.number) continue;
            if (!done) done = clocks_.only({progress.actor}, progress.number);
            clocks_.add(each.seen, done);
        }
        if (done && to.executed) clocks_.add(to.executed, done);
    }

    template <typename Add> void give(u32 thread, bool wide, Given &to, Add add) {
        u32 far = shape_.ctas() == 1 ? 0 : shape_.ctas();
        to.by.resize(far + 1);
        add(to.by[shape_.home(thread)], false);
        if (far && decided<Inclusion::RELEASE>(wide)) add(to.by[far], true);
    }

    void acquire(u32 thread, Given &from, bool wide, u32 actor, u32 number) {
        const Deposit &deposit = reached(from, shape_.home(thread), wide);
        if (!deposit.seen && actor == NOTHING) return;
        clocks_.take(thread, deposit.seen, actor, number);
        if (isa_ && actor != NOTHING && decided<Inclusion::COMPLETION>(wide)) clocks_.take(thread, {}, actor + 1, number);
        clocks_.take_warp(thread, deposit.warps);
    }

    const Deposit &reached(Given &from, u32 home, bool wide) {
        if (from.by.empty()) return nothing_;
        if (from.by.size() == 1 || !decided<Inclusion::ACQUIRE>(wide)) return from.by[home];
        if (from.wide.empty()) from.wide.resize(shape_.ctas());
        Deposit &made = from.wide[home];
        if (!made.seen) made = from.by[home], clocks_.give(made, from.by.back());
        return made;
    }

    const Shape &shape_;
    u32 level_;
    bool isa_;
    Clocks &clocks_;
    std::vector<Fences> fences_;              // by thread
    std::vector<std::vector<Seen>> pending_;  // by thread: what a fence would acquire
    std::vector<Progress> progress_;          // by thread
    Deposit nothing_;
};
