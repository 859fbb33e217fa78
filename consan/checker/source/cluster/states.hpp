// What the rules know of a cluster (a CTA by itself is one), and how an access to its shared memory meets it.
#pragma once

#include "asynchronous.hpp"
#include "barriers.hpp"
#include "clusters.hpp"
#include "divergence.hpp"
#include "grid.hpp"
#include "lifetimes.hpp"
#include "convergence.hpp"
#include "seals.hpp"
#include "tensor_memory.hpp"
#include "turns.hpp"
#include "warp_barriers.hpp"

class Rules;

class States {
  protected:
    typedef std::vector<u32> Released;  // threads that may go on

    States(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : input_(input), output_(output), isa_(input.isa != USUAL), shape_(input), part_(grid, cluster, shape_),
          findings_(input.records, input.capacity, input.cta_threads, shape_.reported_bytes()), asynchronous_events_(Asynchronous::has(input)),
          clocks_(shape_, memories(), keeps_times(), part_.fences()), scopes_(shape_, input.level, isa_, clocks_),
          races_(shape_, clocks_, findings_, [this](Record &found, u32 other, u32 time, u32 thread) { part_.explain(found, other, time, thread); }),
          initialised_(shape_, clocks_, findings_), bounds_(shape_, findings_), warp_barriers_(shape_, clocks_), convergence_(shape_),
          cluster_barrier_(shape_, clocks_, scopes_), lifetimes_(shape_, clocks_, findings_), divergence_(input, shape_, findings_),
          mbarriers_(clocks_, scopes_, findings_, isa_), issuers_(clocks_, mbarriers_), copies_(shape_, clocks_, races_, mbarriers_, findings_), seals_(shape_),
          asynchronous_(shape_, asynchronous_events_, isa_, clocks_, scopes_, races_, copies_, initialised_, bounds_, mbarriers_, lifetimes_, issuers_,
                        findings_),
          tensor_(shape_, clocks_, bounds_, mbarriers_, issuers_, asynchronous_, lifetimes_, findings_, isa_, [this](const Access &word) { add(word, false); }),
          turns_(input, output, shape_, asynchronous_events_, needs_places(), rules) {
        for (u32 cta = 0; cta < input.ctas; ++cta) barriers_.emplace_back(shape_, cta, clocks_, races_, findings_);
        part_.begin(clocks_);
        findings_.explain_waits([this](Record &found) { mbarriers_.waits().describe(found); });
        races_.on_strong([this](const Access &old, u32 time, const Access &now, Record &found) { return part_.lacks_order(old, time, now, found); });
    }

    Barriers &barriers(u32 thread) { return barriers_[shape_.home(thread)]; }
    template <typename E> u32 place(u32 thread, const E &effect) const { return shape_.place(effect.at(), thread, effect.ranked()); }

    void misuse(u32 thread, u32 site, Reason reason, u32 barrier = 0) {
        Record found{};
        found.number = barrier;
        found.kind = BARRIER_MISUSE;
        found.reason = reason;
        found.site = site;
        found.thread = found.other_thread = thread;
        findings_.add(found);
    }

    static u8 strong_scope(bool narrow) { return narrow ? CTA_SCOPE : SYS_SCOPE; }

    Access access_of(u32 thread, const effects::SharedAccess &given, bool reads, bool writes) const {
        Access access{};
        access.thread = thread;
        access.site = given.site();
        access.offset = place(thread, given);
        access.bytes = given.bytes(), access.element = (u8)given.element();
        access.reads = reads, access.writes = writes;
        access.row = (u8)given.row();
        access.strong = given.strong();
        access.scope = strong_scope(given.narrow());
        access.has_value = given.has_value();
        access.constant = given.constant(), access.uniform = given.uniform();
        access.value = access.has_value ? given.value() : 0;
        access.data = access.strong && given.data(), access.again = access.data && given.again();
        return access;
    }
    Access access_of(u32 thread, const effects::Fill &fill) const {
        Access access{};
        access.thread = thread;
        access.site = fill.site();
        access.offset = place(thread, fill);
        access.bytes = fill.size();
        access.writes = true;
        return access;
    }

    // An access that is compared with no other: what it writes is initialised.
    void ignore(Access access) {
        access.reads = false;
        if (bounds_.holds(access) && access.writes) initialised_.add(access);
    }

    // `proxies`: whether the access needs a proxy fence before asynchronous ones; the word of tcgen05.alloc does not (T5).
    void add(const Access &access, bool proxies = true) {
        if (!bounds_.holds(access)) return;
        barriers(access.thread).touch(access.thread);
        lifetimes_.use(access.thread, access.site, access.offset, access.bytes);
        if (mbarriers_.data(access)) return;
        copies_.meet(access);
        if (asynchronous_events_) proxies ? asynchronous_.access(access) : asynchronous_.meet(access);
        races_.add(access);
        initialised_.add(access);
    }

    const Input &input_;
    Output &output_;
    bool isa_;
    Shape shape_;
    Part part_;
    Findings findings_;
    bool asynchronous_events_;
    Clocks clocks_;
    Scopes scopes_;
    Races races_;
    Initialised initialised_;
    Bounds bounds_;
    std::vector<Barriers> barriers_;  // by CTA
    WarpBarriers warp_barriers_;
    Convergence convergence_;
    ClusterBarrier cluster_barrier_;
    Lifetimes lifetimes_;
    Divergence divergence_;
    Mbarriers mbarriers_;
    Issuers issuers_;
    Copies copies_;
    Seals seals_;
    Asynchronous asynchronous_;
    TensorMemory tensor_;
    Turns<Rules> turns_;

    template <typename F> bool any_event(F f) const {
        for (u32 block = 1; block <= input_.block_count; ++block)
            for (i32 i = 0; i < input_.blocks[block].events; ++i)
                if (f(input_.events[input_.blocks[block].first + i])) return true;
        return false;
    }

    // Whether some thread may keep others from going on, or releases what others have done: an mbarrier, a strong access, a fence.
    bool needs_places() const {
        return asynchronous_events_ || any_event([](const Event &event) { return effects::has(event, effects::Trait::places); });
    }

  private:
    // The memories that proxy fences keep apart: shared and global memory; that of each CTA only if a fence is for one of them.
    u32 memories() const {
        if (!asynchronous_events_) return 0;
        bool by_cta = input_.ctas > 1 && any_event([](const Event &event) { return event.kind == PROXY_FENCE && event.flags & NARROW; });
        return (by_cta ? input_.ctas : 1) + 1;
    }

    bool keeps_times() const {
        return isa_ || input_.ctas > 1 || any_event([](const Event &event) { return (event.flags & RELAXED) != 0; });
    }
};
