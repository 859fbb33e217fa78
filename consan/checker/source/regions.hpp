// Bytes of global memory that a copy reads or writes: a range, or rows along up to five dimensions.
#pragma once

#include <algorithm>

#include "types.hpp"

struct Region {
    u64 low = 0;
    u32 dimensions = 0, counts[5] = {};
    u64 strides[5] = {}, sizes[5] = {};  // sizes: from the first byte of a dimension to behind its last

    static Region of(u64 low, u32 bytes) {
        Region made;
        made.low = low;
        made.add(bytes, 1);
        return made;
    }

    // Add a dimension outside of those so far.
    void add(u32 count, u64 stride) {
        u64 within = dimensions ? sizes[dimensions - 1] : stride;
        counts[dimensions] = count, strides[dimensions] = stride;
        sizes[dimensions] = count && within ? (count - 1) * stride + within : 0;
        ++dimensions;
    }

    u64 high() const { return low + sizes[dimensions - 1]; }

    // Whether it has some of bytes [begin, end).
    bool covers(u64 begin, u64 end) const { return begin < high() && end > low && within(dimensions - 1, begin, end, low); }

    // Whether `f` holds for a row of it; calls f(begin, end).
    template <typename F> bool any_row(F f) const { return sizes[dimensions - 1] && row(dimensions - 1, low, f); }

  private:
    bool within(u32 d, u64 begin, u64 end, u64 at) const {
        if (!sizes[d] || begin >= at + sizes[d] || end <= at) return false;
        if (d == 0) return true;
        u64 reach = sizes[d - 1], first = strides[d] && begin > at + reach ? (begin - at - reach) / strides[d] : 0;
        for (u64 i = first; i < counts[d] && at + i * strides[d] < end; ++i)
            if (within(d - 1, begin, end, at + i * strides[d])) return true;
        return false;
    }

    template <typename F> bool row(u32 d, u64 at, F f) const {
        if (d == 0) return f(at, at + sizes[0]);
        for (u32 i = 0; i < counts[d]; ++i)
            if (row(d - 1, at + i * strides[d], f)) return true;
        return false;
    }
};
