// Which threads stand still while another one waits. Where one lane of a warp waits at an mbarrier or for a flag, its warp does not go past that
// place in the text, as on a chip most of the time; where a thread waits for a flag in global memory, neither does its CTA. A lane that comes
// round a loop stands still, too, if the place is further on and it never comes there itself: it is one that an elected lane executes. Any order
// of the replay is legal. In this one the others come behind what the wait brings, so a race says that they have not waited themselves.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shape.hpp"

// Who stands still while a thread waits.
enum class Holder { NOBODY, WARP, CTA };

class Holds {
  public:
    explicit Holds(const Shape &shape, u32 ctas) : shape_(shape), warps_(shape.warps()), groups_(warps_ + ctas), waits_(shape.threads(), NOTHING) {}

    // A thread waits at an event. `global`: for a flag in global memory.
    void wait(u32 thread, const Event *event, bool global) {
        waits_[thread] = global ? warps_ + shape_.home(thread) : thread / LANES;
        Group &group = groups_[waits_[thread]];
        group.waiters.push_back({event, thread});
        group.first = std::min(group.first ? group.first : event, event);
        ++count_;
    }

    // A thread continues. Returns those that may do so now.
    std::vector<u32> go(u32 thread) {
        if (waits_[thread] == NOTHING) return {};
        Group &group = groups_[waits_[thread]];
        waits_[thread] = NOTHING;
        --count_;
        auto is_own = [&](const Waiter &each) { return each.thread == thread; };
        group.waiters.erase(std::find_if(group.waiters.begin(), group.waiters.end(), is_own));
        group.first = nullptr;
        for (const Waiter &each : group.waiters) group.first = std::min(group.first ? group.first : each.event, each.event);
        if (group.waiters.empty()) group.released = false;
        return std::exchange(group.held, {});
    }

    // Whether any thread waits.
    bool any() const { return count_; }

    // Whether a thread stands still before an event. `again`: whether it has come round a loop, and comes to none of some events.
    template <typename Again> bool holds(u32 thread, const Event *event, Again again) {
        Group &warp = groups_[thread / LANES], &cta = groups_[warps_ + shape_.home(thread)];
        auto elected = [&](const Waiter &each) { return event < each.event && again(each.event); };
        bool held = is_past(warp, event) || (!warp.released && std::any_of(warp.waiters.begin(), warp.waiters.end(), elected));
        if (held) warp.held.push_back(thread);
        else if (is_past(cta, event)) cta.held.push_back(thread), held = true;
        return held;
    }

    // Nobody else can continue: one group goes on, though one of it waits.
    std::vector<u32> release() {
        for (Group &each : groups_)
            if (!each.held.empty()) return each.released = true, std::exchange(each.held, {});
        return {};
    }

  private:
    struct Waiter {
        const Event *event;
        u32 thread;
    };
    struct Group {
        std::vector<Waiter> waiters;
        std::vector<u32> held;
        const Event *first = nullptr;  // of the events where they wait, in the text
        bool released = false;
    };

    static bool is_past(const Group &group, const Event *event) { return group.first && !group.released && event > group.first; }

    const Shape &shape_;
    const u32 warps_;
    std::vector<Group> groups_;  // of warps, then of CTAs
    std::vector<u32> waits_;     // by thread: the group that waits for it
    u32 count_ = 0;
};

// Whether threads come to events: asked once of each.
class Coming {
  public:
    // `log`: a copy of the thread's.
    template <typename Log> bool to(const Event *event, u32 thread, Log log) {
        Lanes &lanes = known_[(u64)(size_t)event << 16 ^ thread / LANES];
        u32 bit = 1u << thread % LANES;
        if (!(lanes.asked & bit) && log.next([&](const Event &each) { return &each == event; }) == Log::EVENT) lanes.coming |= bit;
        lanes.asked |= bit;
        return lanes.coming & bit;
    }

  private:
    struct Lanes {
        u32 asked = 0, coming = 0;
    };
    std::unordered_map<u64, Lanes> known_;  // by event and warp
};
