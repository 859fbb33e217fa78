// Findings of one CTA, merged by kind, reason and unordered pair of sites.
#pragma once

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "decisions.hpp"

class Findings {
  public:
    // `threads`: the numbers of threads that each CTA takes, where a finding can be of several CTAs.
    // `bytes`: of shared memory, all others are left out.
    Findings(Record *records, u32 capacity, u32 threads = ~0u, std::pair<u32, u32> bytes = {0, ~0u})
        : records_(records), capacity_(capacity), threads_(threads), bytes_(bytes) {}

    // What is known of the threads of a missing wait when it is found.
    void explain_waits(std::function<void(Record &)> explain) { explain_ = std::move(explain); }
    // At the end: `f` may know more of what was found.
    template <typename F> void each(F f) {
        for (u32 i = 0; i < count_; ++i) f(records_[i]);
    }

    void add(Record found, u32 times = 1) {
        if (!reported(found) || (!(found.flags & TENSOR) && (found.offset < bytes_.first || found.offset >= bytes_.second))) return;
        u32 first = std::min(found.site, found.other_site), second = std::max(found.site, found.other_site);
        found.lane_bits = (found.thread ^ found.other_thread) % LANES;
        if (found.kind == MISSING_WAIT && explain_) explain_(found);
        if (found.kind == LANES_GONE) first = found.number;  // the host looks at each
        u64 flags = (found.flags & (SAME_WARP | SAME_VALUE)) | !!(found.flags & NEAR_VALUE) << 2;
        u64 key = (u64)found.kind << 56 | flags << 52 | (u64)found.reason << 44 | (u64)first << 22 | second;
        auto known = places_.find(key);
        if (known == places_.end()) {
            if (count_ == capacity_) {
                overflow_ = true;
                return;
            }
            found.count = times;
            found.low = found.offset;
            found.high = found.offset + found.bytes;
            read_by(found, found);
            places_[key] = count_;
            records_[count_++] = found;
            return;
        }
        Record &retained = records_[known->second];
        if (found.kind == DATA_RACE && speaks_for(found, retained)) {
            std::swap(retained, found);
            std::tie(retained.count, retained.low, retained.high) = std::tie(found.count, found.low, found.high);
            std::tie(retained.first_reader, retained.last_reader) = std::tie(found.first_reader, found.last_reader);
            read_by(retained, retained, true);
        }
        retained.count = (u32)std::min<u64>((u64)retained.count + times, ~0u);
        read_by(retained, found, true);
        retained.flags &= found.flags | ~UNORDERED;
        retained.lane_bits |= found.lane_bits;
        retained.low = std::min(retained.low, found.offset);
        retained.high = std::max(retained.high, found.offset + found.bytes);
        if (found.flags & TENSOR)
            retained.address_low = std::min(retained.address_low & 255, found.address_low & 255) | std::max(retained.address_low >> 8, found.address_low >> 8)
                                                                                                       << 8;
    }

    // How often each was found.
    std::vector<u32> counts() const {
        std::vector<u32> found;
        for (u32 i = 0; i < count_; ++i) found.push_back(records_[i].count);
        return found;
    }
    // All that was found since then is found so many times more.
    void repeat(const std::vector<u32> &since, u64 times) {
        for (u32 i = 0; i < count_; ++i) records_[i].count += (u32)((records_[i].count - (i < since.size() ? since[i] : 0)) * times);
    }

    u32 count() const { return count_; }
    bool overflow() const { return overflow_; }

  private:
    // The threads that read in a finding count as those of another one, beside those that it has (`more`).
    static void read_by(Record &of, const Record &found, bool more = false) {
        auto [low, high] = std::minmax(found.hazard == WAR ? found.other_thread : found.thread, found.hazard == RAW ? found.thread : found.other_thread);
        of.first_reader = more ? std::min(of.first_reader, low) : low;
        of.last_reader = more ? std::max(of.last_reader, high) : high;
    }
    bool between_ctas(const Record &of) const { return of.thread / threads_ != of.other_thread / threads_; }
    // What orders CTAs orders the threads of each, too; a race with a product of the own warpgroup may be a warning (R-G1).
    bool speaks_for(const Record &found, const Record &other) const {
        if (between_ctas(found) != between_ctas(other)) return between_ctas(found);
        return (found.operation == WGMMA_OPERATION || found.own_operation == WGMMA_OPERATION) && between_warpgroups(found) && !between_warpgroups(other);
    }
    static bool between_warpgroups(const Record &of) { return of.thread / (4 * LANES) != of.other_thread / (4 * LANES); }

    Record *records_;
    u32 capacity_, threads_, count_ = 0;
    std::pair<u32, u32> bytes_;
    bool overflow_ = false;
    std::function<void(Record &)> explain_;
    std::unordered_map<u64, u32> places_;
};
