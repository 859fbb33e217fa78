// R-RACE (SEMANTICS section 2): two accesses overlap, one writes, nothing orders them, and they are not morally strong.
//
// Every access since the last moment that orders all of them is kept, so each is compared with each. Cells of 4 bytes have lists of
// writes and of reads; an item holds a mask of its bytes in the cell. For each thread, site and kind the latest item is enough: every
// access between the two in the replay was compared with the earlier one.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "clocks.hpp"
#include "race_rule.hpp"

// An access to shared memory. For a row, `flag` is the number of its matrix instruction.
struct Access : Side {
    u8 operation = 0;         // an OperationKind, if it is no access of a thread
    u8 row = 0;               // R-ROW: how lanes of the warp share the bytes; `thread` only gives the address
    bool allocation = false;  // the word of a tcgen05.alloc
    u32 offset = 0;
    bool constant = false;    // the text gives the value
    bool uniform = false;     // all lanes of the warp store one value, by an instruction that is executed once
    bool looked = false;      // of a load: it was compared with the stores before it when it had observed nothing yet
    bool changes = false;     // of a strong store: it may leave another value than it finds
};

// The thread that accesses bytes of a cell (R-ROW). `mask`: of the lower or of the upper half of the cell. Lanes 4r to 4r + 3 have the words
// of row r; with `.trans` the lanes 4c + r / 2 have its elements c, of two bytes.
inline u32 performer(const Access &of, u32 cell, u8 mask) {
    if (of.row == ROW_OF_NOBODY) return of.thread;
    u32 lane = of.thread % LANES, row = lane % 8, word = cell - of.offset / 4, first = of.thread - lane;
    return first + (of.row == ROW_OF_WORDS ? 4 * row + word : 4 * (2 * word + (mask > 3)) + row / 2);
}

// The cells of an access: from the first, and up to before the other.
inline u32 first_cell(const Access &of) { return of.offset / 4; }
inline u32 end_cell(const Access &of) { return (of.offset + of.bytes + 3) / 4; }

class Races {
  public:
    // May give a race between warps a better reason: (found, the thread of the earlier access, its time, the later thread).
    typedef std::function<void(Record &, u32, u32, u32)> Explain;

    Races(const Shape &shape, Clocks &clocks, Findings &findings, Explain explain)
        : shape_(shape), clocks_(clocks), findings_(findings), explain_(std::move(explain)), cells_((shape.bytes() + 3) / 4) {
        items_.reserve(1 << 12);
        items_.emplace_back();
    }

    // R-MO1: what else is known of a strong store and a load of data in no order. It may name what lacks, and says whether that is a finding.
    typedef std::function<bool(const Access &old, u32 time, const Access &now, Record &found)> Strong;
    void on_strong(Strong strong) { strong_ = std::move(strong); }

    // R-MO1: a strong load of data is about to be performed, and has observed nothing yet.
    void look(const Access &access) {
        for (u32 number = first_cell(access), end = end_cell(access); number < end; ++number) {
            const Cell &cell = cells_[number];
            if (cell.generation == generation_) compare_strong(number, cell.writes, access);
        }
    }

    // A strong access that acquires is about to be performed. It may come before the release that it observes, and then before weak accesses
    // that are in order with it by that release alone.
    void early(const Access &access) {
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell)
            if (cells_[cell].generation == generation_) compare(cells_[cell].writes, cell, access, Later(), true);
    }

    // R-MO2: a look at a flag has seen a store, by its number (Flags::crosses).
    void cross(const Access &look, i32 store) {
        u32 number = look.offset / 4;
        const Cell &cell = cells_[number];
        for (u32 at = cell.generation == generation_ ? cell.writes : 0; at; at = items_[at].next) {
            const Item &item = items_[at];
            if (item.access.row || item.access.flag != store || clocks_.before(item.access.thread, item.time, look.thread)) continue;
            Record found = race_rule::compare(item.access, look, facts(item, number, look));
            found.kind = MISSING_ORDER, found.hazard = RAW, found.reason = CROSSED_STORES;
            findings_.add(found);
        }
    }

    // All accesses so far happen before all that are still to come.
    void forget() {
        ++generation_;
        items_.resize(1);
    }

    // Whether two stores that nothing orders have stored the same value, which the text does not give: other CTAs may have stored others.
    bool by_value() const { return by_value_; }

    // Grows when all accesses so far are forgotten.
    u32 generation() const { return generation_; }

    // Compare an asynchronous access with what came before it.
    void meet(const Access &access) { meet(access, Later()); }

    // The same for an operation: more is known of it.
    template <typename Actor> void meet(const Access &access, const Actor &actor) {
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            const Cell &known = cells_[cell];
            if (known.generation != generation_) continue;
            compare(known.writes, cell, access, actor);
            if (access.writes) compare(known.reads, cell, access, actor);
        }
    }

    void add(const Access &access) {
        if (access.row) begin_rows(access);
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) access.strong ? add_strong(cell, access) : add_to(cell, access);
    }

    static u8 mask_of(const Access &access, u32 cell) { return mask_of(access.offset, access.bytes, cell); }
    static u8 mask_of(u32 offset, u32 bytes, u32 cell) {
        u32 low = offset > cell * 4 ? offset - cell * 4 : 0;
        u32 high = std::min(offset + bytes - cell * 4, 4u);
        return (u8)((1u << high) - (1u << low));
    }

  private:
    static constexpr u32 FILTERS = 4;
    static constexpr u32 STRONG_ACCESSES = 64;  // of a cell that are compared
    struct Item {
        Access access;
        u8 mask;
        u32 next, time, warp_time, before;  // before: the time of the thread's access that this one replaces; 0: it replaces none
    };
    struct Cell {
        u32 generation = 0, writes = 0, reads = 0;
        u64 retained[FILTERS] = {};  // a bit in each for each item by its thread and site, so that most are known to be new without a search
        u32 value = 0;
        bool has_value = false;  // the last store of the whole cell gave the value

        void begin(u32 of) {
            generation = of, writes = reads = 0;
            std::fill_n(retained, FILTERS, 0);
        }
        // Whether it may have an item of a thread and a site. From now on it has.
        bool retains(u32 thread, u32 site) {
            // At one site a cell is mostly shared by the lanes of a warp, or by one lane of each warp: those have different bits.
            u64 mixed = (thread + thread / LANES + 11 * site) % 64 | (u64)(thread * 0x9e3779b1u + site * 0x85ebca6bu) >> 8 << 6;
            bool known = true;
            for (u64 &filter : retained) {
                u64 bit = 1ull << mixed % 64;
                known &= (filter & bit) != 0;
                filter |= bit, mixed >>= 6;
            }
            return known;
        }
    };

    // Lanes give their rows to a matrix instruction in ascending order: another one begins at another site, or with a lane before the last.
    void begin_rows(const Access &access) {
        rows_ += access.site != row_site_ || access.thread <= row_thread_;
        row_site_ = access.site, row_thread_ = access.thread;
    }

    void add_to(u32 number, const Access &access) {
        Cell &cell = cells_[number];
        if (cell.generation != generation_) cell.begin(generation_);
        compare(cell.writes, number, access, Later());
        if (access.writes) compare(cell.reads, number, access, Later());
        keep(cell, access.writes ? cell.writes : cell.reads, mask_of(access, number), access);
        if (access.writes) cell.value = access.value, cell.has_value = access.has_value && access.bytes == 4;
    }

    // A strong access: with the number of its part that is in the cell (a vector is as many accesses), and with what R-MO1 needs.
    void add_strong(u32 number, const Access &access) {
        Cell &cell = cells_[number];
        Access part = access;
        if (part.flag >= 0 && number * 4 > access.offset) part.flag += (i32)((number * 4 - access.offset) / access.element);
        if (part.writes) part.changes = !(part.has_value && part.bytes == 4 && cell.has_value && cell.value == part.value);
        by_value_ |= !part.changes && !part.constant && part.writes;
        if (cell.generation == generation_ && part.data && !part.writes && !part.looked) compare_strong(number, cell.writes, part);
        if (cell.generation == generation_ && part.writes && !part.reads) compare_strong(number, cell.reads, part);
        add_to(number, part);
    }

    // R-MO1: a strong load of data and a strong store in no order.
    void compare_strong(u32 cell, u32 head, const Access &now) {
        u8 mask = mask_of(now, cell);
        for (u32 at = head, steps = 0; at && steps < STRONG_ACCESSES; at = items_[at].next, ++steps) {
            const Item &item = items_[at];
            const Access &old = item.access, &load = now.writes ? old : now, &store = now.writes ? now : old;
            bool asked = race_rule::gives_data(old, now) && store.changes;
            if (!asked || !(item.mask & mask) || old.thread == now.thread || !race_rule::morally_strong(old, now, facts(item, cell, now))) continue;
            if (clocks_.before(old.thread, item.time, now.thread) || (store.data && !writes(cells_[cell], load.thread))) continue;
            Record found = race_rule::compare(old, now, facts(item, cell, now));
            found.kind = MISSING_ORDER;
            if (strong_(old, item.time, now, found)) findings_.add(found);
        }
    }

    // Whether a thread has written a cell: who only looks at a counter takes statistics.
    bool writes(const Cell &cell, u32 thread) const {
        u32 steps = 0;
        for (u32 at = cell.writes; at && steps < STRONG_ACCESSES; at = items_[at].next, ++steps)
            if (items_[at].access.thread == thread) return true;
        return false;
    }

    // What an access of a thread adds to the facts.
    struct Later {
        bool replaced(const Access &, u32) const { return false; }
        bool awaited(const Access &, u32) const { return false; }
        void wait(Record &, const Access &) const {}
    };

    // Compares an access that is kept with a later one. `actor`: whose that is.
    template <typename Actor> struct Facts : race_rule::PlainFacts {
        const Races &races;
        const Item &item;
        u32 cell;
        const Access &now;
        const Actor &actor;

        const Access &old() const { return item.access; }
        Scope narrowest() const { return races.shape_.home(old().thread) == races.shape_.home(now.thread) ? CTA_SCOPE : CLUSTER_SCOPE; }
        bool complete() const {
            bool rows = old().row | now.row;
            return (rows ? races.ordered_rows(item, cell, now) : races.clocks_.before(old().thread, item.time, now.thread)) || actor.replaced(old(), item.time);
        }
        bool awaited() const { return actor.awaited(old(), item.time); }
        bool early() const {
            return !now.writes && !old().reads && !now.operation && item.before && races.clocks_.before(old().thread, item.before, now.thread);
        }
        static constexpr bool of_lanes = true;
        bool in_step() const { return races.clocks_.warps_before(old().thread, item.warp_time, now.thread); }
        bool one_warp() const { return old().thread / LANES == now.thread / LANES; }
        bool lanes_take() const { return races.clocks_.lanes_take(now.thread); }
        bool lane_knows() const { return races.lane_knows(item, now.thread); }
        // The log has the value of a strong store only where R-MO1 needs it, so none is compared.
        bool same_place() const { return old().offset == now.offset && !(old().strong || now.strong); }

        void place(Record &found) const {
            found.flags = one_warp() * SAME_WARP | race_rule::same_value(old(), now, same_place()) * SAME_VALUE |
                          race_rule::near_value(old(), now, same_place()) * NEAR_VALUE | old().updates() * OTHER_ATOMIC;
            found.own_operation = now.operation;
            found.offset = now.offset, found.bytes = now.bytes;
            u8 shared = item.mask & mask_of(now, cell), part = shared & 3 ? shared & 3 : shared;
            found.thread = performer(now, cell, part), found.other_thread = performer(old(), cell, part);
        }
        void wait(Record &found) const { actor.wait(found, old()); }
        void race(Record &found, Reason reason, bool early) const {
            found.kind = DATA_RACE, found.reason = reason;
            if (!early) races.explain_(found, old().thread, item.time, now.thread);
        }
    };

    Facts<Later> facts(const Item &item, u32 cell, const Access &now) const {
        static const Later later;
        return {{}, *this, item, cell, now, later};
    }

    // `weak`: with weak accesses only.
    template <typename Actor> void compare(u32 head, u32 cell, const Access &access, const Actor &actor, bool weak = false) {
        if (head) compare_each(head, cell, access, actor, weak);
    }
    template <typename Actor> void compare_each(u32 head, u32 cell, const Access &access, const Actor &actor, bool weak) {
        u8 mask = mask_of(access, cell);
        for (u32 at = head; at; at = items_[at].next) {
            const Item &item = items_[at];
            if (!(item.mask & mask) || (weak && item.access.strong) || (!(item.access.row | access.row) && item.access.thread == access.thread)) continue;
            race_rule::meet(item.access, access, Facts<Actor>{{}, *this, item, cell, access, actor},
                            [&](const Record &found) { add(found, item.access, access); });
        }
    }

    // R-ROW: whether two accesses are of one thread, or in order, where one of them is a row. The lanes that have the row know what the lane that
    // gives its address has done before its last release at most.
    bool ordered_rows(const Item &item, u32 cell, const Access &now) const {
        const Access &old = item.access;
        u8 mask = item.mask & mask_of(now, cell);
        bool one_instruction = old.row && now.row && old.flag == (i32)rows_ && old.thread != now.thread;
        auto is_same = [&](u8 part) { return !part || performer(old, cell, part) == performer(now, cell, part); };
        if (!one_instruction && is_same(mask & 3) && is_same(mask & 12)) return true;
        return old.thread == now.thread ? item.time != clocks_.time(old.thread) : clocks_.before(old.thread, item.time, now.thread);
    }

    void add(const Record &found, const Access &old, const Access &now) {
        bool lanes = old.uniform && now.uniform && old.site == now.site && old.thread / LANES == now.thread / LANES;
        by_value_ |= found.flags & (SAME_VALUE | NEAR_VALUE) && !(old.constant && now.constant) && !lanes;
        findings_.add(found);
    }

    // Whether a lane of a thread's warp is behind an access.
    bool lane_knows(const Item &item, u32 thread) const {
        u32 first = thread / LANES * LANES, end = std::min(first + LANES, clocks_.threads());
        for (u32 lane = first; lane < end; ++lane)
            if (clocks_.before(item.access.thread, item.time, lane)) return true;
        return false;
    }

    void keep(Cell &cell, u32 &head, u8 mask, const Access &access) {
        u32 steps = 0;
        bool known = cell.retains(access.thread, access.site);
        for (u32 at = known ? head : 0; at && steps < 64; at = items_[at].next, ++steps) {
            Item &item = items_[at];
            if (item.access.thread != access.thread || item.access.site != access.site || item.mask != mask) continue;
            item = made(access, mask, item.next, item.time);
            return;
        }
        items_.push_back(made(access, mask, head, 0));
        head = (u32)items_.size() - 1;
    }

    Item made(const Access &access, u8 mask, u32 next, u32 before) const {
        Item item{access, mask, next, clocks_.time(access.thread), clocks_.warp_time(access.thread), before};
        if (access.row) item.access.flag = (i32)rows_;
        return item;
    }

    const Shape &shape_;
    Clocks &clocks_;
    Findings &findings_;
    Explain explain_;
    std::vector<Cell> cells_;
    std::vector<Item> items_;
    u32 generation_ = 1;
    u32 rows_ = 0, row_site_ = 0, row_thread_ = 0;  // matrix instructions so far, and of the last row
    bool by_value_ = false;
    Strong strong_;
};
