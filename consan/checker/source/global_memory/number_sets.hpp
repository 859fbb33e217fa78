// Sets of numbers, each of them kept once, and written for the host: how many numbers a set has, and these. A set is named by its place in this order;
// 0 is the empty one.
#pragma once

#include <map>
#include <vector>

#include "types.hpp"

class NumberSets {
  public:
    NumberSets(u32 *words, u32 capacity) : words_(words), capacity_(capacity) { name({}); }

    u32 count() const { return count_; }
    bool full() const { return full_; }

    // `numbers`: in rising order.
    u32 name(const std::vector<u32> &numbers) {
        auto made = names_.emplace(numbers, (u32)names_.size());
        if (made.second) write(numbers);
        return made.first->second;
    }

  private:
    void write(const std::vector<u32> &numbers) {
        if (full_ || capacity_ - count_ <= numbers.size()) return (void)(full_ = true);
        words_[count_++] = (u32)numbers.size();
        for (u32 each : numbers) words_[count_++] = each;
    }

    u32 *words_;
    u32 capacity_, count_ = 0;
    bool full_ = false;
    std::map<std::vector<u32>, u32> names_;
};
