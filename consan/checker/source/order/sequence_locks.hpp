// R-MO3: data behind a sequence lock. Its reader looks at the sequence, loads data, looks again, and keeps the data if both looks gave one value.
//
// Who has loaded what a round stores must find, with the second look, that the round has begun. So the writer needs a release fence between the
// sequence and the data, and the reader an acquire fence between the data and the second look: then the data itself is the flag (ISA 8.8). A run in
// order never shows what happens else. A look that releases, and a sequence that is changed by an update which acquires, count as such a fence.
#pragma once

#include <unordered_map>

#include "flags.hpp"

class SequenceLocks {
  public:
    explicit SequenceLocks(const Flags &flags) : flags_(flags) {}

    struct Lack {
        Reason reason = NO_REASON;
        u32 sequence = 0, look = 0;  // the sites of the store to the sequence before the data, and of the second look
    };

    // What lacks for a load of data and a store to it that nothing orders, by their numbers.
    const Lack &lacks(i32 load, i32 store) {
        if (load < 0 || store < 0 || !flags_[(u32)load].compared) return none_;
        Known &known = known_[(u64)flags_[(u32)load].site << 32 | flags_[(u32)store].site];
        if (known.lack.reason == NO_REASON && known.tried++ < MOST_TRIED) known.lack = find((u32)load, (u32)store);
        return known.lack;
    }

  private:
    static constexpr u32 NEAR = 256, MOST_TRIED = 64;  // accesses of a round; pairs of accesses of two sites
    struct Known {
        Lack lack;
        u32 tried = 0;
    };

    Lack find(u32 load, u32 store) const {
        u32 second = second_look(load);
        if (second == NOTHING) return {};
        const FlagAccess &look = flags_[second];
        u32 begun = nearest(store, look, false);
        if (begun == NOTHING || !flags_[begun].writes || nearest(store, look, true) == NOTHING) return {};
        bool reader = decided<SEQUENCE_READER>(late(flags_[load], look)), writer = decided<SEQUENCE_WRITER>(early(flags_[begun], flags_[store]));
        return {reader && writer ? SEQUENCE_BOTH : reader ? SEQUENCE_READER : writer ? SEQUENCE_WRITER : NO_REASON, flags_[begun].site, look.site};
    }

    // The look behind a load that gave the same value as the one before it, or NOTHING.
    u32 second_look(u32 load) const {
        for (u32 before = load; before > 0 && load - before < NEAR && Flags::same_thread(flags_[before - 1], flags_[load]); --before) {
            const FlagAccess &first = flags_[before - 1];
            if (!Flags::looks(first) || first.data || nearest(load, first, false) != before - 1) continue;
            u32 behind = nearest(load, first, true);
            if (behind == NOTHING || flags_[behind].site == first.site) continue;  // the attempt has not come to its second look
            if (Flags::looks(flags_[behind]) && flags_[behind].old == first.old) return behind;
        }
        return NOTHING;
    }

    // Whether the second look may be performed before the load; a store of the data before that to the sequence.
    static bool late(const FlagAccess &load, const FlagAccess &look) {
        return look.fences.acquires == load.fences.acquires && !(load.order & IS_ACQUIRE) && !(look.writes && look.order & IS_RELEASE);
    }
    static bool early(const FlagAccess &sequence, const FlagAccess &store) {
        return store.fences.releases == sequence.fences.releases && !(store.order & IS_RELEASE) && !(sequence.observes && sequence.order & IS_ACQUIRE);
    }

    // The nearest access of a thread to a place, before or behind one of its accesses; NOTHING if there is none near.
    u32 nearest(u32 number, const FlagAccess &place, bool behind) const {
        u32 at = number;
        for (u32 steps = 0; steps < NEAR; ++steps) {
            if (behind ? ++at >= flags_.size() : !at--) return NOTHING;
            if (!Flags::same_thread(flags_[at], flags_[number])) return NOTHING;
            if (Flags::same_place(flags_[at], place)) return at;
        }
        return NOTHING;
    }

    const Flags &flags_;
    const Lack none_;
    std::unordered_map<u64, Known> known_;  // by pair of sites
};
