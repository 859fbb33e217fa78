// Flags that a thread has read too early: another thread releases the flag again behind what the first one should have seen.
//
// Such a read waits for too few arrivals, or for a round before, or it waits for nothing. Both sides of the flag are there, and only the number
// is wrong. A swap that takes a lock is no such read.
#pragma once

#include <unordered_map>
#include <vector>

#include "flags.hpp"

class PassedFlags {
  public:
    explicit PassedFlags(const Flags &flags) : flags_(flags) {}

    // The read, and the release of the same flag that comes behind it; NOTHING if there is none. `acquires` says of a read whether its thread has
    // acquired by it, `behind` of a release whether it comes behind the access of the other thread.
    struct Passed {
        u32 write = NOTHING, read = NOTHING;
    };
    template <typename Acquires, typename Behind> Passed find(u32 writer, u32 reader_cluster, u32 reader, Acquires acquires, Behind behind) {
        start();
        Passed found{};
        bool own_one = false;
        u32 looked = 0;
        for (u32 number : of(reads_, reader_cluster)) {
            const FlagAccess &read = flags_[number];
            bool own = read.thread == reader;
            if ((own_one && !own) || !acquires(number) || ++looked > MOST) continue;
            for (u32 write : of(writes_, read.address)) {
                const FlagAccess &later = flags_[write];
                if (later.cluster != writer || !Flags::same_place(later, read) || later.rank < read.rank || !behind(write)) continue;
                found = {write, number}, own_one = own;
                break;
            }
        }
        return found;
    }

  private:
    static constexpr u32 MOST = 1 << 12;  // reads of a CTA
    typedef std::unordered_map<u64, std::vector<u32>> Numbers;

    void start() {
        for (; next_ < flags_.size(); ++next_) {
            const FlagAccess &each = flags_[next_];
            bool locks = !Flags::looks(each) && flags_.swaps(next_);
            if (each.observes && !each.unused && !each.again && !locks) reads_[each.cluster].push_back(next_);
            if (!Flags::looks(each)) writes_[each.address].push_back(next_);
        }
    }
    static const std::vector<u32> &of(const Numbers &all, u64 key) {
        static const std::vector<u32> none;
        auto found = all.find(key);
        return found == all.end() ? none : found->second;
    }

    const Flags &flags_;
    Numbers reads_, writes_;  // by cluster, by address
    u32 next_ = 0;
};
