// The last wait of each thread at an mbarrier, and the arrival that ended each phase. They order nothing: a finding of a missing wait names them.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "types.hpp"

class LastWaits {
  public:
    // A thread waits for a phase, or goes on at once because it is over. NOTHING: it is the one before the first. `object`: a number of its own.
    void wait(u32 thread, u32 site, u32 place, u32 object, u32 phase) {
        if (thread >= last_.size()) last_.resize(thread + 1);
        last_[thread] = {site, place, object, phase};
        if (now_ == std::pair(object, thread / LANES)) return;  // another lane of its warp
        now_ = {object, thread / LANES};
        warps_[object].insert(thread / LANES);
    }
    void end_phase(u32 object, u32 site, u32 thread) { ended_[object].push_back({site, thread}); }

    // Whether the warp of a thread has ever waited at an mbarrier, for whatever phase; whether any has.
    bool waits(u32 thread, u32 object) const {
        auto found = warps_.find(object);
        return found != warps_.end() && found->second.count(thread / LANES) != 0;
    }
    bool awaited(u32 object) const { return warps_.count(object) != 0; }

    // An arrival is not named where nothing shows that it came behind the operation: `signal_thread` is NOTHING.
    void describe(Record &found) const { describe(found, last(found.thread)); }

    struct Wait {
        u32 site = 0, place = 0, object = 0, phase = 0;  // site 0: none
    };
    struct End {
        u32 site, thread;
    };
    Wait last(u32 thread) const { return thread < last_.size() ? last_[thread] : Wait{}; }
    void describe(Record &found, const Wait &wait) const {
        if (found.waited_place) return;
        bool late = found.signal_thread != NOTHING;
        found.signal_thread = 0;
        if (!wait.site) return;
        found.waited_site = wait.site, found.waited_place = wait.place + 1, found.waited_phase = wait.phase;
        auto ends = ended_.find(wait.object);
        if (!late || ends == ended_.end() || wait.phase >= ends->second.size()) return;
        found.signal_site = ends->second[wait.phase].site, found.signal_thread = ends->second[wait.phase].thread;
    }

  private:
    std::vector<Wait> last_;                 // by thread
    std::pair<u32, u32> now_{NOTHING, 0};    // the object of the last wait of all, and its warp
    std::map<u32, std::set<u32>> warps_;     // by object
    std::map<u32, std::vector<End>> ended_;  // by object: its phases
};
