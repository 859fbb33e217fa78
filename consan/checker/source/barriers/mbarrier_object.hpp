// The state of an mbarrier, from its initialisation on.
#pragma once

#include <unordered_map>
#include <vector>

#include "late_bytes.hpp"
#include "same_turn.hpp"
#include "scopes.hpp"

struct MbarrierObject {
    struct Waiter {
        u32 thread, phase;
        i32 flags;
    };
    struct Moment {
        u32 thread, time, warp_time;
    };
    // The last tcgen05.commit: it arrives when `actor` has come up to a number.
    struct Commit {
        u32 site = 0, thread = 0, actor = 0, number = 0;
    };
    // An operation on an object: where, and by whom.
    struct Use {
        u32 site = 0, thread = 0;
    };

    bool live = false, overwritten = false, failed = false;
    u32 actor = 0, init = NOTHING, place = 0, pending = 0, expected = 0, phase = 0, waited = 0, heeded = 0;
    u32 site = 0, thread = 0, time = 0;  // of the initialisation
    i32 tx = 0;
    u64 announced = 0, brought = 0;  // bytes, of all phases
    Use last, expect, copy;  // of each the last
    Use completed;           // the last phase
    Use ending;              // what may end the phase that is under way
    Commit commit;
    SameTurn arrivals;
    LateBytes late;
    bool surplus = false;     // reported
    Given gathered;           // published by all arrivals so far
    std::vector<Given> done;  // published by the arrivals of each phase and of earlier phases
    std::vector<Waiter> waiters;
    std::unordered_map<u32, Moment> observers;  // the last wait of each warp
    std::unordered_map<u32, u32> seen_at;       // the time of each thread then
};
