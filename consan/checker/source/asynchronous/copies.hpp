// cp.async (SEMANTICS 4.1, R-CP1 to R-CP6). A copy is a write that nothing orders before what follows, not even for its own thread, until
// that thread has waited for its group. From then on it is ordered as an access by its thread at the time of that wait. A
// cp.async.mbarrier.arrive makes the earlier copies of its thread complete with the phase that it arrives at.
#pragma once

#include <map>
#include <vector>

#include "mbarriers.hpp"
#include "races.hpp"

class Copies {
  public:
    Copies(const Shape &shape, Clocks &clocks, Races &races, const Mbarriers &mbarriers, Findings &findings)
        : mbarriers_(mbarriers), clocks_(clocks), races_(races), findings_(findings), heads_((shape.bytes() + 3) / 4, 0), settled_(heads_.size(), 0),
          threads_(shape.threads()) {
        items_.emplace_back();
    }

    // A thread issues a copy. `size`: the bytes that it reads. Its value says where they lie, before the byte 0 of shared memory.
    void issue(const Access &access, u32 size) {
        Thread &own = threads_[access.thread];
        Access plain = access;
        plain.has_value = false;
        meet(access, true);
        races_.meet(plain);
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) keep(heads_[cell], Races::mask_of(access, cell), access);
        if (size) own.last_copy = own.issued, own.last_group = own.commits, own.last_site = access.site;
        ++own.issued;
    }

    // The copies of a thread so far complete with a phase of an mbarrier.
    void complete_on(u32 thread, const Mbarriers::Phase &phase) { threads_[thread].tags.push_back({threads_[thread].issued, phase}); }

    void commit(u32 thread) { ++threads_[thread].commits; }

    // `pending`: groups that may stay in flight.
    void wait(u32 thread, u32 pending) {
        Thread &own = threads_[thread];
        if (own.commits <= (u64)own.retired + pending) return;
        own.retired = own.commits - pending;
        own.waits.push_back({own.retired, clocks_.time(thread), races_.generation()});
    }

    // The number of a thread's next copy, and its group.
    u32 next(u32 thread) const { return threads_[thread].issued; }
    u32 group(u32 thread) const { return threads_[thread].commits; }

    // Whether a thread has observed a copy, and if so, whether that is behind a proxy fence.
    bool observed(u32 issuer, u32 group, u32 number, u32 thread) const { return observed(covering(issuer, group), issuer, number, thread); }
    bool fenced(u32 issuer, u32 group, u32 number, u32 thread, u32 memory) const {
        const Wait *wait = covering(issuer, group);
        if (wait && clocks_.fenced(issuer, wait->time, thread, memory)) return true;
        const std::vector<CompletionTag> &tags = threads_[issuer].tags;
        return std::any_of(tags.rbegin(), tags.rend(),
                           [&](const CompletionTag &tag) { return tag.copies > number && mbarriers_.fenced(thread, tag.phase, memory); });
    }

    // A thread that knows one of these moments knows that a copy is complete: f(actor, number).
    template <typename F> bool any_end(u32 issuer, u32 group, u32 number, F f) const {
        const Wait *wait = covering(issuer, group);
        if (wait && f(issuer, wait->time)) return true;
        const std::vector<CompletionTag> &tags = threads_[issuer].tags;
        return std::any_of(tags.rbegin(), tags.rend(),
                           [&](const CompletionTag &tag) { return tag.copies > number && f(mbarriers_.actor(tag.phase), tag.phase.phase + 1); });
    }
    void describe(Record &found, u32 issuer, u32 group, u32 number) const {
        const Thread &own = threads_[issuer];
        found.group = group, found.commits = own.commits, found.retired = own.retired;
        if (const CompletionTag *tag = tag_of(own, number)) mbarriers_.describe(found, tag->phase);
    }

    // When a thread first waited for one of its groups; 0 if it has not.
    u32 waited(u32 issuer, u32 group) const {
        const Wait *wait = covering(issuer, group);
        return wait ? wait->time : 0;
    }

    // An access meets copies in flight (R-CP1, R-CP2), or (`copy`) another one does (R-CP3).
    void meet(const Access &access, bool copy = false) {
        if (items_.size() > 1) meet_each(access, copy);
    }
    void meet_each(const Access &access, bool copy) {
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            u8 mask = Races::mask_of(access, cell);
            for (u32 *at = &heads_[cell]; *at;) {
                const Item &item = items_[*at];
                const Wait *wait = covering(item.thread, item.group);
                if (wait && wait->generation != races_.generation()) {
                    *at = item.next;  // all threads have observed its completion
                    settled_[cell] = 1;
                    continue;
                }
                if (item.mask & mask)
                    race_rule::meet(item, access, Facts{{}, *this, item, wait, cell, access, copy}, [&](const Record &found) { findings_.add(found); });
                at = &items_[*at].next;
            }
        }
    }

    // What is in flight, as numbers: groups count from the last one that their thread has waited for.
    void state(std::vector<u32> &found) const {
        auto since = [](const Thread &own, u32 group) { return group < own.retired ? NOTHING : group - own.retired; };
        for (const Thread &own : threads_)
            for (u32 each : {own.commits - own.retired, own.last_site, since(own, own.last_group)}) found.push_back(each);
        for (u32 cell = 0; cell < heads_.size(); ++cell) {
            if (!heads_[cell] && !settled_[cell]) continue;
            found.push_back(cell), found.push_back(settled_[cell]);
            for (u32 at = heads_[cell]; at; at = items_[at].next)
                for (u32 each : {items_[at].thread, items_[at].site, (u32)items_[at].mask, since(threads_[items_[at].thread], items_[at].group)})
                    found.push_back(each);
        }
    }

    // The groups of each thread.
    std::vector<u32> groups() const {
        std::vector<u32> found;
        for (const Thread &own : threads_) found.push_back(own.commits);
        return found;
    }
    // The groups since then have come so many times more: groups in flight, and what is known of groups, have later numbers.
    void repeat(const std::vector<u32> &since, u64 times) {
        std::vector<u32> more;
        for (u32 thread = 0; thread < threads_.size(); ++thread) more.push_back((u32)((threads_[thread].commits - since[thread]) * times));
        for (u32 thread = 0; thread < threads_.size(); ++thread) {
            Thread &own = threads_[thread];
            own.commits += more[thread], own.retired += more[thread], own.last_group += more[thread];
            for (Wait &each : own.waits) each.retired += more[thread];
        }
        for (Item &each : items_) each.group += more[each.thread], each.before_group += more[each.thread];
    }

    // Whether a thread has waited for all of its copies.
    bool waited(u32 thread) const { return !threads_[thread].last_site || threads_[thread].last_group < threads_[thread].retired; }

    // R-CP5: only its own thread can wait for a copy. Pipelines leave copies that read nothing (src-size 0) at the end of a loop.
    void exit(u32 thread) {
        const Thread &own = threads_[thread];
        if (!own.last_site || own.last_group < own.retired || tag_of(own, own.last_copy)) return;
        Record found{};
        found.kind = LIFETIME;
        found.reason = EXIT;
        found.site = own.last_site;
        found.thread = thread;
        found.group = own.last_group;
        found.commits = own.commits;
        found.retired = own.retired;
        findings_.add(found);
    }

  private:
    // A wait after which `retired` groups are complete for the thread.
    struct Wait {
        u32 retired, time, generation;
    };
    // The first `copies` copies of the thread complete with the phase.
    struct CompletionTag {
        u32 copies;
        Mbarriers::Phase phase;
    };
    struct Thread {
        u32 issued = 0, commits = 0, retired = 0;
        u32 last_copy = 0, last_group = 0, last_site = 0;  // the last copy that reads something
        std::vector<Wait> waits;
        std::vector<CompletionTag> tags;
    };
    struct Item : Side {
        u32 next, group, number;
        u8 mask;
        u32 issued;      // the moment of its thread
        u32 before = 0, before_group = 0;  // the number of its thread's last copy into the bytes at this site, plus 1, and its group
    };

    // Compares a copy with a later access. `wait`: that of its thread, if there is one; `copy`: the access is one of a copy, too.
    struct Facts : race_rule::PlainFacts {
        const Copies &all;
        const Item &item;
        const Wait *found_wait;
        u32 cell;
        const Access &now;
        bool copy;

        bool complete() const { return all.observed(found_wait, item, cell, now); }
        bool asynchronous() const { return true; }
        bool issued() const { return item.thread == now.thread || all.clocks_.before(item.thread, item.issued, now.thread); }
        bool awaited() const { return !now.writes; }
        // A read of what an earlier copy brought, before this one.
        bool early() const { return !now.writes && !now.operation && (all.settled_[cell] || all.replaces(item, now, cell)); }

        void place(Record &found) const {
            bool one_warp = item.thread / LANES == now.thread / LANES, of_one = copy && one_warp && item.site == now.site;
            found.flags = one_warp * SAME_WARP | (of_one && race_rule::same_value(item, now, true)) * SAME_VALUE;
            found.offset = now.offset, found.bytes = now.bytes;
        }
        void wait(Record &found) const {
            found.flags |= OTHER_ASYNC;
            found.reason = copy ? OVERLAPPING_COPIES : decided<REFILLED>(all.refilled(item, now, cell)) ? REFILLED : all.why(item);
            all.describe(found, item.thread, item.group, item.number);
        }
    };

    // The first wait of a thread that covers a group.
    const Wait *covering(u32 thread, u32 group) const {
        const std::vector<Wait> &waits = threads_[thread].waits;
        auto found = std::upper_bound(waits.begin(), waits.end(), group, [](u32 value, const Wait &wait) { return value < wait.retired; });
        return found == waits.end() ? nullptr : &*found;
    }

    // The first phase with which a copy completes.
    static const CompletionTag *tag_of(const Thread &thread, u32 number) {
        auto after = [](u32 value, const CompletionTag &tag) { return value < tag.copies; };
        auto found = std::upper_bound(thread.tags.begin(), thread.tags.end(), number, after);
        return found == thread.tags.end() ? nullptr : &*found;
    }

    // `number`: of the copy among those of its thread.
    bool observed(const Wait *wait, u32 issuer, u32 number, u32 thread) const {
        if (wait && decided<Edge::COPY_WAIT>(clocks_.before(issuer, wait->time, thread))) return true;
        const std::vector<CompletionTag> &tags = threads_[issuer].tags;
        auto knows = [&](const CompletionTag &tag) { return tag.copies > number && mbarriers_.knows(thread, tag.phase); };
        return std::any_of(tags.rbegin(), tags.rend(), knows);
    }

    // The lanes that have a row of a matrix may know less than the issuer that gives its address: what it had waited for at its last release.
    bool observed(const Wait *wait, const Item &item, u32 cell, const Access &access) const {
        bool own = access.row && item.thread == access.thread && performer(access, cell, item.mask & 3 ? 1 : 4) != access.thread;
        if (own && wait && wait->time == clocks_.time(item.thread)) wait = nullptr;
        return observed(wait, item.thread, item.number, access.thread);
    }

    // For each thread and site the latest copy is enough: a thread that has observed its completion has observed theirs.
    void keep(u32 &head, u8 mask, const Access &access) {
        u32 group = threads_[access.thread].commits, steps = 0;
        for (u32 at = head; at && steps < 2; at = items_[at].next, ++steps) {
            Item &item = items_[at];
            if (item.thread != access.thread || item.site != access.site || item.mask != mask) continue;
            item.before_group = item.group, item.group = group;
            item.value = access.value, item.has_value = access.has_value;
            item.before = item.number + 1;
            item.number = threads_[access.thread].issued;
            item.issued = clocks_.time(access.thread);
            return;
        }
        items_.push_back({access, head, group, threads_[access.thread].issued, mask, clocks_.time(access.thread)});
        head = (u32)items_.size() - 1;
    }

    // Whether a thread has waited for an earlier copy of these bytes, and has not come to its own copy of this round, if it makes any.
    bool replaces(const Item &item, const Access &access, u32 cell) const {
        if (threads_[access.thread].issued > item.number) return false;
        for (u32 at = heads_[cell]; at; at = items_[at].next) {
            const Item &each = items_[at];
            bool own = &each == &item;
            const Wait *wait = each.mask & item.mask && (!own || item.before) ? covering(each.thread, own ? item.before_group : each.group) : nullptr;
            if (wait && clocks_.before(each.thread, wait->time, access.thread)) return true;
        }
        return false;
    }

    // Whether a thread knows by an mbarrier that an earlier copy is complete: it lacks a wait, or has released the bytes too early.
    bool refilled(const Item &item, const Access &access, u32 cell) const {
        if (access.writes || item.thread == access.thread) return false;
        for (u32 at = heads_[cell]; at; at = items_[at].next) {
            const Item &each = items_[at];
            u32 numbers = &each == &item ? each.before : each.number + 1;
            if (each.mask & item.mask && numbers && observed(nullptr, each.thread, numbers - 1, access.thread)) return true;
        }
        return false;
    }

    Reason why(const Item &item) const {
        const Thread &other = threads_[item.thread];
        if (decided<WAITED_NO_BARRIER>(item.group < other.retired)) return WAITED_NO_BARRIER;
        return decided<NOT_COMMITTED>(item.group >= other.commits) ? NOT_COMMITTED : NOT_WAITED;
    }

    const Mbarriers &mbarriers_;
    Clocks &clocks_;
    Races &races_;
    Findings &findings_;
    std::vector<u32> heads_;   // by cell of 4 bytes
    std::vector<u8> settled_;  // cells that had a copy whose completion all threads have observed
    std::vector<Item> items_;
    std::vector<Thread> threads_;
};
