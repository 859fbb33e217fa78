// The chunks of shared memory that a matrix descriptor names (ISA "Strides", "Canonical Layouts", "Matrix descriptor").
#pragma once

#include <vector>

#include "types.hpp"

class Descriptor {
  public:
    // wgmma: bits 62 and 63 give the swizzle.
    explicit Descriptor(u64 bits) : Descriptor(bits, (u32)(bits >> 62) ? 16u >> (bits >> 62) : 1, 1) {}

    // tcgen05 (ISA "Shared memory descriptor"): bits 61 to 63. Mode 1 swizzles 32 bytes at a time.
    static Descriptor of_tcgen05(u64 bits) {
        u32 mode = (u32)(bits >> 61);
        return Descriptor(bits, mode == 0 ? 1 : mode <= 2 ? 8 : mode == 4 ? 4 : 2, mode == 1 ? 2 : 1);
    }

    // `depth`: chunks along K, or elements along K if K is not the major dimension. Addresses of chunks, in the order of the operand.
    std::vector<u32> chunks(u32 rows, u32 depth, bool major) const {
        std::vector<u32> found;
        if (major) mn_major(rows / 8, depth, found);
        else k_major(rows, depth, found);
        return found;
    }

    // `across`: chunks along the major dimension; `depth`: elements along K.
    std::vector<u32> chunks_across(u32 across, u32 depth) const {
        std::vector<u32> found;
        mn_major(across, depth, found);
        return found;
    }

  private:
    Descriptor(u64 bits, u32 width, u32 atom)
        : start_(((u32)bits & 0x3fff) << 4), leading_(((u32)(bits >> 16) & 0x3fff) << 4), stride_(((u32)(bits >> 32) & 0x3fff) << 4),
          base_((u32)(bits >> 49) & 7), width_(width), atom_(atom) {}

    void k_major(u32 rows, u32 depth, std::vector<u32> &found) const {
        found.reserve(rows * depth);
        for (u32 row = 0; row < rows; ++row)
            for (u32 chunk = 0; chunk < depth; ++chunk) {
                u32 along = width_ == 1 ? chunk * leading_ : chunk * 16;
                found.push_back(swizzled(row / 8 * stride_ + row % 8 * 16 * width_ + along));
            }
    }

    void mn_major(u32 chunks, u32 depth, std::vector<u32> &found) const {
        u32 across = width_ == 1 ? stride_ : leading_, along = width_ == 1 ? leading_ : stride_, lines = 8 / atom_;
        found.reserve(chunks * depth);
        for (u32 chunk = 0; chunk < chunks; ++chunk)
            for (u32 k = 0; k < depth; ++k)
                found.push_back(swizzled(chunk / width_ * across + chunk % width_ * 16 + k / lines * along + k % lines * 16 * width_));
    }

    u32 swizzled(u32 distance) const {
        u32 at = start_ + distance;
        return at ^ (((at >> 7) - base_) & (width_ / atom_ - 1)) << (3 + atom_);
    }

    u32 start_, leading_, stride_, base_, width_, atom_;  // width: chunks in a line of the swizzle pattern; atom: chunks that stay together
};
