// R-PX (SEMANTICS 5): a write through the generic proxy, then a use of its bytes through the asynchronous proxy, with order but no proxy fence.
//
// Such writes are kept beyond barriers, because a barrier is no fence. A write matters while its bytes are there: what comes behind a later
// write of the same bytes need not care for it. Within one warp the missing fence is reported before the missing bar.warp.sync: warps run nearly
// in step, but a fence is never implied. Modules without asynchronous proxies keep nothing here.
#pragma once

#include "copies.hpp"

class Proxies {
  public:
    Proxies(const Shape &shape, bool enabled, bool isa, Clocks &clocks, Races &races, const Copies &copies, const Mbarriers &mbarriers, Findings &findings)
        : shape_(shape), isa_(isa), clocks_(clocks), races_(races), copies_(copies), mbarriers_(mbarriers), findings_(findings),
          heads_(enabled ? (shape.bytes() + 3) / 4 : 0, 0) {
        items_.emplace_back();
    }

    // A generic write. `copy`: it is the cp.async that its thread is about to issue.
    void write(const Access &access, bool copy = false) {
        if (heads_.empty()) return;
        Item made{};
        made.thread = access.thread, made.site = access.site;
        made.time = clocks_.time(access.thread), made.warp_time = clocks_.warp_time(access.thread);
        made.copy = copy;
        if (copy) made.group = copies_.group(access.thread), made.number = copies_.next(access.thread);
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            made.mask = Races::mask_of(access, cell), made.cell = cell;
            for (u32 at = heads_[cell]; at; at = items_[at].next) {
                Item &item = items_[at];
                if (!(item.mask & made.mask)) continue;
                bool known = ordered(item, access.thread), in_step = !item.store && clocks_.warps_before(item.thread, item.warp_time, access.thread);
                if (known || in_step) item.after.push_back({made.mask, known, access.thread, made.time, made.warp_time, races_.generation(), {}});
            }
            keep(heads_[cell], made);
        }
    }

    // A generic read, which a later asynchronous write may overtake (D1).
    void read(const Access &access) {
        if (heads_.empty() || !isa_) return;
        Item made{};
        made.read = true;
        made.thread = access.thread, made.site = access.site;
        made.time = clocks_.time(access.thread), made.warp_time = clocks_.warp_time(access.thread);
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            made.mask = Races::mask_of(access, cell), made.cell = cell;
            keep(heads_[cell], made);
        }
    }

    // A store that completes with a phase. `own`: through the async proxy; then the text asks for a fence between two CTAs only (D4). Whoever
    // knows of a store through the generic proxy need not care for what it has replaced.
    void store(const Access &access, const Mbarriers::Phase &phase, bool own = false) {
        if (heads_.empty() || (own && !(isa_ && shape_.ctas() > 1))) return;
        Item made{};
        made.thread = access.thread, made.site = access.site;
        made.store = true, made.own = own, made.phase = phase;
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            made.mask = Races::mask_of(access, cell), made.cell = cell;
            for (u32 at = heads_[cell]; at && !own; at = items_[at].next)
                if (ordered(items_[at], access.thread)) items_[at].after.push_back({made.mask, true, NOTHING, 0, 0, NOTHING, phase});
            keep(heads_[cell], made);
        }
    }

    // An asynchronous operation uses bytes. It reports the writes that lack a fence.
    void meet(const Access &use) {
        each_left(use, [&](Item &item) {
            bool known = ordered(item, use.thread);
            bool product = use.operation == WGMMA_OPERATION || use.operation == TCGEN05_MMA_OPERATION;
            if ((item.copy || item.store || item.read) && !known) return;
            Reason reason = known ? lacking(item, use, product) : lacks_in_step(item, use) ? NO_PROXY_FENCE : NO_REASON;
            if (reason == NO_REASON) return;
            Record found{};
            found.kind = MISSING_PROXY_FENCE;
            found.reason = reason;
            found.hazard = !use.writes ? RAW : item.read ? WAR : WAW;
            found.site = use.site, found.other_site = item.site;
            found.thread = use.thread, found.other_thread = item.thread;
            found.own_operation = use.operation;
            found.offset = use.offset, found.bytes = use.bytes;
            findings_.add(found);
        });
    }

    // A copy replaces bytes, for whoever knows that it is complete.
    void load(const Access &use, const Mbarriers::Phase &phase) {
        each_left(use, [&](Item &item) {
            if (ordered(item, use.thread) && fenced(item, use.thread)) item.after.push_back({15, true, NOTHING, 0, 0, NOTHING, phase});
        });
    }

    // The writes, as numbers: what is left of them, and whether it is ordered and fenced. `witness` knows what everybody knows.
    void state(std::vector<u32> &found, u32 witness) const {
        for (u32 cell = 0; cell < heads_.size(); ++cell)
            for (u32 at = heads_[cell]; at; at = items_[at].next) {
                const Item &item = items_[at];
                u32 mask = item.mask, in_step = mask;
                for (const Later &each : item.after) mask &= each.exact ? ~each.mask : ~0u, in_step &= ~each.mask;
                if (!mask) continue;  // everybody knows that other bytes are there
                bool warps = clocks_.warps_fenced(item.thread, item.warp_time, witness, memory(item));
                for (u32 value :
                     {cell, item.thread, item.site, mask, in_step, (u32)item.copy, (u32)ordered(item, witness), (u32)fenced(item, witness), (u32)warps})
                    found.push_back(value);
            }
    }

  private:
    // A later write of some bytes, by a thread, or by a copy that completes with a phase. `exact`: also where each lane is one thread.
    struct Later {
        u8 mask;
        bool exact;
        u32 thread, time, warp_time, generation;
        Mbarriers::Phase phase;
    };
    struct Item {
        u32 next, cell, thread, site, time, warp_time, group, number;
        u8 mask;
        bool copy, store, read, own;
        Mbarriers::Phase phase;  // of a store
        std::vector<Later> after;
    };

    template <typename Use> void each_left(const Access &use, Use f) {
        if (heads_.empty()) return;
        for (u32 cell = first_cell(use), end = end_cell(use); cell < end; ++cell)
            for (u32 *at = &heads_[cell]; *at;) {
                Item &item = items_[*at];
                if (gone(item)) {
                    *at = item.next;
                    continue;
                }
                if (left(item, use.thread) & Races::mask_of(use, cell)) f(item);
                at = &items_[*at].next;
            }
    }

    bool ordered(const Item &item, u32 thread) const {
        if (item.store) return mbarriers_.knows(thread, item.phase);
        return item.copy ? copies_.observed(item.thread, item.group, item.number, thread) : clocks_.before(item.thread, item.time, thread);
    }
    bool fenced(const Item &item, u32 thread) const {
        if (item.store) return mbarriers_.fenced(thread, item.phase, memory(item));
        return item.copy ? copies_.fenced(item.thread, item.group, item.number, thread, memory(item))
                         : clocks_.fenced(item.thread, item.time, thread, memory(item));
    }

    // The fence that an ordered access lacks. Shipped libraries feed products with data of cp.async and need none for reads; those, and a
    // fence that is not the writer's own (D2), matter to the strict reading only.
    Reason lacking(const Item &item, const Access &use, bool product) const {
        bool passed = fenced(item, use.thread);
        if (item.own) return decided<ACROSS_CTAS>(!passed && shape_.home(item.thread) != shape_.home(use.thread)) ? ACROSS_CTAS : NO_REASON;
        if (item.read) return decided<READ_NO_FENCE>(use.writes && !passed) ? READ_NO_FENCE : NO_REASON;
        if (item.copy && product) return decided<COPY_NO_FENCE>(isa_ && !passed) ? COPY_NO_FENCE : NO_REASON;
        if (decided<NO_PROXY_FENCE>(!passed)) return NO_PROXY_FENCE;
        if (isa_ && !item.store && decided<WRITER_NO_FENCE>(!by_writer(item))) return WRITER_NO_FENCE;
        bool operand = product || use.operation == TCGEN05_CP_OPERATION;
        return isa_ && operand && !item.store && decided<FENCE_OF_OWN_CTA>(!covers(item, use.thread)) ? FENCE_OF_OWN_CTA : NO_REASON;
    }
    bool by_writer(const Item &item) const {
        u32 time = item.copy ? copies_.waited(item.thread, item.group) : item.time;
        return clocks_.fenced_own(item.thread, time, memory(item));
    }

    // Whether the fence is also for the memory of the CTA whose thread issues the operation (T14).
    bool covers(const Item &item, u32 thread) const {
        return item.copy || clocks_.fenced(item.thread, item.time, thread, clocks_.shared_memory(shape_.home(thread)));
    }

    u32 memory(const Item &item) const { return clocks_.shared_memory(shape_.owner(item.cell * 4)); }

    // Whether a write is ordered once each warp is one thread, its bytes are still there then, and a fence is missing even then.
    bool lacks_in_step(const Item &item, const Access &use) const {
        u8 mask = item.mask;
        for (const Later &each : item.after)
            if (each.thread != NOTHING && clocks_.warps_before(each.thread, each.warp_time, use.thread)) mask &= ~each.mask;
        if (!(mask & Races::mask_of(use, item.cell))) return false;
        return clocks_.warps_before(item.thread, item.warp_time, use.thread) && !clocks_.warps_fenced(item.thread, item.warp_time, use.thread, memory(item));
    }

    // The bytes that nothing has replaced which a thread knows of.
    u8 left(const Item &item, u32 thread) const {
        u8 mask = item.mask;
        for (const Later &each : item.after) {
            bool known = each.thread == NOTHING ? mbarriers_.knows(thread, each.phase) : clocks_.before(each.thread, each.time, thread);
            if (each.exact && known) mask &= ~each.mask;
        }
        return mask;
    }

    // Whether everybody knows that all bytes have been replaced.
    bool gone(const Item &item) const {
        u8 mask = item.mask;
        for (const Later &each : item.after)
            if (each.exact && each.generation < races_.generation()) mask &= ~each.mask;
        return mask == 0;
    }

    // For each thread and site the latest write of the same bytes is enough: whoever comes behind it comes behind the earlier ones.
    void keep(u32 &head, const Item &made) {
        for (u32 at = head; at; at = items_[at].next) {
            Item &item = items_[at];
            if (item.thread != made.thread || item.site != made.site || item.mask != made.mask || item.read != made.read) continue;
            u32 next = item.next;
            item = made;
            item.next = next;
            return;
        }
        items_.push_back(made);
        items_.back().next = head;
        head = (u32)items_.size() - 1;
    }

    const Shape &shape_;
    bool isa_;
    Clocks &clocks_;
    Races &races_;
    const Copies &copies_;
    const Mbarriers &mbarriers_;
    Findings &findings_;
    std::vector<u32> heads_;  // by cell of 4 bytes
    std::vector<Item> items_;
};
