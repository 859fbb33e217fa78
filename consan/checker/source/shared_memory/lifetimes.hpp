// R-CL: a thread uses another CTA's shared memory only after that CTA has started and before it may have exited. The thread must come after
// something that a thread of that CTA has done, and some thread of that CTA must come after the use.
//
// For that the order of execution is enough: a relaxed barrier says so, and publishes nothing. A warp counts as one thread: that errs to silence.
#pragma once

#include <array>
#include <map>

#include "clocks.hpp"
#include "findings.hpp"
#include "races.hpp"

class Lifetimes {
  public:
    Lifetimes(const Shape &shape, const Clocks &clocks, Findings &findings) : shape_(shape), clocks_(clocks), findings_(findings), started_(shape.warps(), 0) {}

    // A thread starts an operation on bytes of shared memory. Its end is for others to know.
    void start(u32 thread, u32 site, u32 place, u32 bytes) {
        u32 target = shape_.owner(place);
        if (target != shape_.home(thread) && !started(thread / LANES, target)) report({site, thread, place, bytes, {}}, NOT_STARTED);
    }

    // A thread uses bytes of shared memory.
    void use(u32 thread, u32 site, u32 place, u32 bytes) {
        if (shape_.ctas() > 1 && shape_.owner(place) != shape_.home(thread)) use_other(thread, site, place, bytes);
    }
    void use_other(u32 thread, u32 site, u32 place, u32 bytes) {
        u32 target = shape_.owner(place), warp = thread / LANES;
        start(thread, site, place, bytes);
        Use made{site, thread, place, bytes, {}};
        for (u32 lane = 0; lane < LANES; ++lane) made.times[lane] = clocks_.time(warp * LANES + lane);
        uses_[{warp, target}] = made;
    }

    // A thread does something for which another CTA must run.
    void start(u32 thread, u32 site, u32 target) {
        if (!started(thread / LANES, target)) report({site, thread, shape_.at(target, 0), 4, {}}, PAIR_NOT_STARTED);
    }

    // All threads have exited.
    void finish() {
        for (const auto &each : uses_)
            if (!covered(each.first.first, each.first.second, each.second)) report(each.second, AFTER_EXIT);
    }

  private:
    // The last use by a warp: those before it come before it. `times`: of the lanes.
    struct Use {
        u32 site, thread, place, bytes;
        std::array<u32, LANES> times;
    };

    bool started(u32 warp, u32 target) {
        if (started_[warp] >> target & 1) return true;
        for (u32 lane = 0; lane < LANES; ++lane)
            for (u32 i = 0; i < shape_.cta_threads(); ++i)
                if (clocks_.executed(warp * LANES + lane, shape_.first(target) + i)) return started_[warp] |= 1u << target, true;
        return false;
    }

    bool covered(u32 warp, u32 target, const Use &use) const {
        for (u32 i = 0; i < shape_.cta_threads(); ++i)
            for (u32 lane = 0; lane < LANES; ++lane)
                if (clocks_.executed(shape_.first(target) + i, warp * LANES + lane) >= use.times[lane]) return true;
        return false;
    }

    void report(const Use &use, Reason reason) {
        Record found{};
        found.kind = LIFETIME;
        found.reason = reason;
        found.site = use.site;
        found.thread = found.other_thread = use.thread;
        found.offset = use.place;
        found.bytes = use.bytes;
        findings_.add(found);
    }

    const Shape &shape_;
    const Clocks &clocks_;
    Findings &findings_;
    std::vector<u32> started_;  // by warp: a bit for each CTA that is known to run
    std::map<std::pair<u32, u32>, Use> uses_;  // by warp and CTA
};
