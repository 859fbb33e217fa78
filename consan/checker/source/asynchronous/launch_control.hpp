// Cluster launch control (SEMANTICS 4.5): what requests and responses are for. The 16 bytes of a response are an operation (operations.hpp).
//
// A CTA that has seen a refusal must not ask again (R-C4). That counts where the refusal was seen before the request in happens-before.
#pragma once

#include <map>
#include <vector>

#include "findings.hpp"
#include "issuers.hpp"

class LaunchControl {
  public:
    LaunchControl(const Shape &shape, const Clocks &clocks, Findings &findings)
        : shape_(shape), clocks_(clocks), findings_(findings), refusals_(shape.ctas()) {}

    // A request with its response at a place. Each lane that executes the instruction is a request.
    void request(u32 thread, const Event *event, u32 place) {
        u32 site = (u32)event->site;
        for (const Refusal &each : refusals_[shape_.home(thread)])
            if (clocks_.before(each.thread, each.time, thread)) {
                misuse(REQUEST_AFTER_REFUSAL, thread, site, each.thread, each.site);
                break;
            }
        Iteration &iteration = rounds_[{event, thread / LANES}];
        if (iteration.counts[thread % LANES]++ == iteration.count) ++iteration.count, iteration.leaders.clear();
        auto first = iteration.leaders.emplace(place, thread).first;
        if (first->second != thread) misuse(REQUESTS_OF_LANES, thread, site, first->second, site);
    }

    // A thread has decoded a response; `query`: the number of the instruction that gives the id, 0 for `is_canceled`.
    void answer(u32 thread, u32 site, bool cancelled, u32 query) {
        if (query) ids_[{thread, query}] = cancelled ? 0 : site;
        else if (!cancelled) refusals_[shape_.home(thread)].push_back({thread, clocks_.time(thread), site});
    }

    // A thread uses the id that a query gave.
    void use(u32 thread, u32 site, u32 query) {
        auto known = ids_.find({thread, query});
        if (known != ids_.end() && known->second) misuse(REFUSED_ID_USED, thread, site, thread, known->second);
    }

  private:
    struct Refusal {
        u32 thread, time, site;
    };
    struct Iteration {
        u32 count = 0, counts[LANES] = {};
        std::map<u32, u32> leaders{};  // the first lane of this round, by place
    };

    void misuse(Reason reason, u32 thread, u32 site, u32 other, u32 other_site) {
        Record found{};
        found.kind = LAUNCH_MISUSE, found.reason = reason;
        found.site = site, found.other_site = other_site;
        found.thread = thread, found.other_thread = other;
        findings_.add(found);
    }

    const Shape &shape_;
    const Clocks &clocks_;
    Findings &findings_;
    std::vector<std::vector<Refusal>> refusals_;  // by CTA
    std::map<std::pair<const Event *, u32>, Iteration> rounds_;
    std::map<std::pair<u32, u32>, u32> ids_;  // by thread and query: the site of the query if the response was a refusal, else 0
};
