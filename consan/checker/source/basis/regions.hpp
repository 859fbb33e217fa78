// Bytes of global memory that a copy reads or writes: a range, or rows along up to five dimensions.
#pragma once

#include "types.hpp"

struct Region {
    u64 low = 0;
    u32 dimensions = 0, counts[5] = {};
    u64 strides[5] = {}, sizes[5] = {};  // sizes: from the first byte of a dimension to behind its last

    // Add a dimension outside of those so far.
    void add(u32 count, u64 stride) {
        u64 within = dimensions ? sizes[dimensions - 1] : stride;
        counts[dimensions] = count, strides[dimensions] = stride;
        sizes[dimensions] = count && within ? (count - 1) * stride + within : 0;
        ++dimensions;
    }

    // Whether `f` holds for a row of it; calls f(begin, end).
    template <typename F> bool any_row(F f) const { return sizes[dimensions - 1] && row(dimensions - 1, low, f); }

  private:
    template <typename F> bool row(u32 d, u64 at, F f) const {
        if (d == 0) return f(at, at + sizes[0]);
        for (u32 i = 0; i < counts[d]; ++i)
            if (row(d - 1, at + i * strides[d], f)) return true;
        return false;
    }
};
