// Barriers of a CTA (SEMANTICS section 3; ISA "bar, barrier"). They count whole warps; accesses before an arrival happen before accesses
// after a wait. R-BAR2: all arrivals give one thread count. R-BAR3: an arrival happens after all arrivals of the previous round.
// R-BAR4: all warps of a round are at one __syncthreads() of the source.
#pragma once

#include <vector>

#include "calls.hpp"
#include "races.hpp"

class Barriers {
  public:
    // Those of the `cta`th CTA.
    Barriers(const Shape &shape, u32 cta, Clocks &clocks, Races &races, Findings &findings)
        : threads_(shape.cta_threads()), live_(threads_), first_(shape.first(cta)), alone_(shape.ctas() == 1), clocks_(clocks), races_(races),
          findings_(findings), last_access_(threads_, 0), living_((threads_ + LANES - 1) / LANES) {
        for (u32 warp = 0; warp < living_.size(); ++warp) living_[warp] = std::min(threads_ - warp * LANES, LANES);
    }

    // R-BAR2: what no barrier is, and which count is none.
    static Reason out_of_range(u32 id, u32 count) {
        if (decided<BARRIER_NUMBER>(id >= MOST_BARRIERS)) return BARRIER_NUMBER;
        return decided<THREAD_COUNT>(count != NOTHING && (count % LANES || !count)) ? THREAD_COUNT : NO_REASON;
    }

    // A thread touches shared memory.
    void touch(u32 thread) { last_access_[thread - first_] = clocks_.time(thread); }

    void arrive(const Arrival &arrival, std::vector<u32> &released) {
        Generation &generation = generation_of(arrival.id);
        if (generation.pasts.empty()) {
            generation.partial.resize(living_.size());
            generation.count = arrival.count;
            generation.site = arrival.site;
            generation.pasts.reserve(live_);
        } else if (decided<COUNTS_DISAGREE>(needed(generation.count) != needed(arrival.count))) {
            misuse(arrival, COUNTS_DISAGREE, generation.site, generation.pasts.front().thread);
        }
        check_last(arrival, generation);
        generation.count = arrival.count;
        generation.pasts.push_back(clocks_.release(arrival.thread));
        if (arrival.waits) generation.waiting.push_back(arrival.thread);
        u32 warp = (arrival.thread - first_) / LANES;
        Partial &partial = generation.partial[warp];
        if (!arrival.waits) partial.passing.push_back(arrival.thread);
        if (!partial.lanes && arrival.call) calls_.arrive(warp, arrival);
        if (++partial.lanes >= living_[warp]) settle(generation, released);
    }

    void exit(u32 thread, std::vector<u32> &released) {
        exited_.push_back(thread);
        --live_;
        --living_[(thread - first_) / LANES];
        for (Generation &each : rounds_)
            if (!each.pasts.empty()) settle(each, released);
    }

    // No thread can continue.
    void finish() {
        calls_.finish([&](const Arrival &arrival, Reason why, const Arrival &other, u32 times) { misuse(arrival, why, other.site, other.thread, times); });
    }

    const Calls &calls() const { return calls_; }
    // Barriers so far that ordered everything before them.
    u32 forgets() const { return forgets_; }
    // Whether nobody has arrived at a barrier and not been released.
    bool idle() const {
        return std::all_of(rounds_.begin(), rounds_.end(), [](const Generation &each) { return each.pasts.empty(); });
    }

    // What a thread waits for that has arrived.
    void describe(Record &record, u32 id) {
        const Generation &generation = generation_of(id);
        record.number = id;
        record.arrived = generation.count == NOTHING ? (u32)generation.waiting.size() : generation.arrived;
        record.expected = generation.count == NOTHING ? threads_ : generation.count;
    }

  private:
    // A warp that is not counted yet. `passing`: lanes that only arrive; they continue when the warp is counted, because otherwise one of
    // them could arrive at the next round before other lanes of its warp arrive at this one.
    struct Partial {
        u32 lanes = 0;
        std::vector<u32> passing;
        void clear() { lanes = 0, passing.clear(); }
    };
    struct Generation {
        u32 count = NOTHING, site = 0, last_site = 0, last_count = NOTHING;
        std::vector<Past> pasts, last;
        std::vector<u32> waiting, warps;  // warps: what those that are counted have published, each as one thread
        std::vector<Partial> partial;  // by warp
        u32 arrived = 0, forgets = 0;
        Joined last_joined;
    };

    Generation &generation_of(u32 id) {
        if (id >= rounds_.size()) rounds_.resize(id + 1);
        return rounds_[id];
    }

    u32 needed(u32 count) const { return count == NOTHING ? (threads_ + LANES - 1) / LANES * LANES : count; }

    u32 living_warps() const {
        u32 warps = 0;
        for (u32 lanes : living_) warps += lanes != 0;
        return warps;
    }

    void settle(Generation &generation, std::vector<u32> &released) {
        for (u32 warp = 0; warp < generation.partial.size(); ++warp) {
            Partial &each = generation.partial[warp];
            if (!each.lanes || each.lanes < living_[warp]) continue;
            generation.arrived += LANES;
            clocks_.add_warp(*last_of_warp(generation.pasts, first_ + warp * LANES), generation.warps);
            released.insert(released.end(), each.passing.begin(), each.passing.end());
            each.clear();
        }
        u32 wanted = generation.count == NOTHING ? living_warps() * LANES : generation.count;
        if (generation.arrived && generation.arrived >= wanted) complete(generation, released);
    }

    void complete(Generation &generation, std::vector<u32> &released) {
        if (&generation == rounds_.data()) calls_.complete();
        Joined joined = clocks_.join(generation.pasts);
        clocks_.acquire_warps(generation.waiting, generation.warps);
        if (decided<Edge::CTA_BARRIER>()) clocks_.acquire(generation.waiting, joined);
        generation.forgets = forgets_;
        if (alone_ && generation.waiting.size() == live_ && covers_exited(joined)) {
            races_.forget();
            ++forgets_;
        }
        released.insert(released.end(), generation.waiting.begin(), generation.waiting.end());
        generation.last_site = generation.site;
        generation.last_count = generation.count;
        generation.last.swap(generation.pasts);
        generation.last_joined = std::move(joined);
        generation.pasts.clear();
        generation.waiting.clear();
        generation.warps.clear();
        for (Partial &each : generation.partial) each.clear();
        generation.arrived = 0;
    }

    // Whether a joined clock covers the last accesses of all exited threads.
    bool covers_exited(const Joined &joined) {
        auto covered = [&](u32 thread) { return clocks_.time_in(joined, thread) >= last_access_[thread - first_]; };
        exited_.erase(std::remove_if(exited_.begin(), exited_.end(), covered), exited_.end());
        return exited_.empty();
    }

    void check_last(const Arrival &arrival, const Generation &generation) {
        if (!generation.last_joined || forgets_ > generation.forgets || clocks_.seen(arrival.thread) == generation.last_joined.seen) return;
        for (const Past &past : generation.last) {
            if (past.thread / LANES == arrival.thread / LANES || clocks_.before(past.thread, past.time, arrival.thread)) continue;
            // In another schedule the two rounds meet: R-BAR2 then.
            bool agree = decided<SHARED_ID>(needed(generation.last_count) == needed(arrival.count));
            return misuse(arrival, agree ? SHARED_ID : COUNTS_DISAGREE, generation.last_site, past.thread);
        }
    }

    void misuse(const Arrival &arrival, Reason reason, u32 other_site, u32 other, u32 times = 1) {
        Record found{};
        found.kind = BARRIER_MISUSE;
        found.reason = reason;
        found.site = arrival.site;
        found.other_site = other_site;
        found.thread = arrival.thread;
        found.other_thread = other;
        found.number = arrival.id;
        findings_.add(found, times);
    }

    u32 threads_, live_, first_;  // first: the number of its first thread
    bool alone_;                  // no other CTA is replayed with it
    Clocks &clocks_;
    Races &races_;
    Findings &findings_;
    std::vector<Generation> rounds_;  // by number, up to the largest that was used
    Calls calls_;
    std::vector<u32> exited_;       // exited threads with accesses that no barrier of all living threads has ordered
    std::vector<u32> last_access_;  // time of each thread's last access to shared memory
    std::vector<u32> living_;  // lanes of each warp that have not exited
    u32 forgets_ = 0;  // barriers that ordered everything before them
};
