// Tensor copies (ISA "cp.async.bulk.tensor"): the bytes that a tensor map and coordinates name, in shared and in global memory.
// consan/tensormap/encoding.py has the table of the map's bits, instrument/record/families/tensors.py the words that a copy records.
#pragma once

#include <vector>

#include "effects.hpp"
#include "regions.hpp"
#include "shape.hpp"

class Tensor {
  public:
    // The words of a tensor copy: the global address, then WORDS of the map, strides, extents, coordinates, with MAP its address.
    // In im2col mode the fourth of them has the pixels, in place of the box.
    template <typename Copy> explicit Tensor(const Copy &copy)
        : four_(copy.four_rows()), rank_(four_ ? 2 : std::min(std::max(copy.rank(), 1u), 5u)), address_((u64)copy.tensor(1) << 32 | copy.tensor(0)) {
        u32 at = 2;
        head_ = copy.tensor(at++), upper_ = copy.tensor(at++), steps_ = copy.tensor(at++), upper_dims_ = copy.tensor(at++), size_ = copy.tensor(at++);
        for (u32 d = 1; d < rank_; ++d) strides_[d] = copy.tensor(at++);
        for (u32 d = 0; d < rank_; ++d) extents_[d] = copy.tensor(at++);
        for (u32 d = 0; d < (four_ ? 1 + ROWS : rank_); ++d) coordinates_[d] = (i32)copy.tensor(at++);
        if (copy.map()) map_ = (u64)copy.tensor(at + 1) << 32 | copy.tensor(at);
        counts_[0] = (steps_ >> 24) + 1;
        if (type() == PACKED && !im2col()) counts_[0] /= 2, extents_[0] = (extents_[0] + 1) / 2 - 1, coordinates_[0] >>= 1;  // bytes from here on
        if (im2col()) counts_[1] = (upper_dims_ & 1023) + 1;
        else
            for (u32 d = 1; d < rank_; ++d) counts_[d] = ((upper_dims_ >> 8 * (d - 1) & 255) + step(d)) / step(d);
        if (head_ & 0x1800) counts_[0] = (counts_[0] + (steps_ & 7)) / ((steps_ & 7) + 1);
    }

    // The address of the map, if it may be in global memory; else 0.
    u64 map() const { return map_; }

    // The bytes that one copy moves: those of the whole box, or of four. An unknown element type has the size that the driver noted.
    u32 bytes() const {
        if (shift() == UNKNOWN) return (four_ ? ROWS : 1) * size_;
        u32 count = 1;
        for (u32 d = 0; d < rank_; ++d) count *= counts_[d];
        return (four_ ? ROWS : 1) * count << shift();
    }

    // The bytes of an element; 0 if the type is not known.
    u32 element() const { return shift() == UNKNOWN ? 0 : 1u << shift(); }

    // The chunks of shared memory that a store reads: what lies inside the tensor. `place`: the box's offset.
    std::vector<u32> inside(u32 place, const Shape &shape) const {
        u32 inner = shift() == UNKNOWN ? 0 : (counts_[0] << shift()) / 16, rows = 1, seen[5] = {}, lines = (1u << (head_ >> 13 & 3)) - 1;
        std::vector<u32> found;
        if (head_ & 0x1801 || !inner) return chunks_of(place, bytes());
        for (u32 d = 0; d < (four_ ? 1 : rank_); ++d) {
            u32 begin = (u32)std::max(coordinates_[d], 0), step = d ? this->step(d) : 1;
            if (begin > extents_[d]) return found;
            seen[d] = std::min(counts_[d], (extents_[d] - begin) / step + 1);
            if (d) rows *= counts_[d];
        }
        if (four_) rows = ROWS;
        u32 wide = ((seen[0] << shift()) + 15) / 16;
        for (u32 row = 0; row < rows; ++row) {
            u32 rest = row;
            bool in = !four_ || has_row(row);
            for (u32 d = 1; d < rank_ && !four_; ++d) in &= rest % counts_[d] < seen[d], rest /= counts_[d];
            for (u32 chunk = 0; in && chunk < wide; ++chunk) {
                u32 at = shape.address(place) + (row * inner + chunk) * 16;
                found.push_back((place + (at ^ (at >> 7 & lines) << 4) - shape.address(place)) / 16);
            }
        }
        return found;
    }

    // Whether the box lies inside the tensor, or counts as if it did.
    bool whole() const {
        if (im2col()) return true;
        if (four_) return has_row(0) && has_row(1) && has_row(2) && has_row(3) && coordinates_[0] >= 0 && (u64)coordinates_[0] + counts_[0] - 1 <= extents_[0];
        for (u32 d = 0; d < rank_; ++d)
            if (coordinates_[d] < 0 || (u64)coordinates_[d] + (u64)(counts_[d] - 1) * (d ? step(d) : 1) > extents_[d]) return false;
        return true;
    }

    // The bytes of global memory. None if their form is not known.
    std::vector<Region> regions() const {
        if (head_ & 0x1801 || shift() == UNKNOWN) return {};
        std::vector<Region> found(four_ ? ROWS : 1);
        for (Region &each : found) {
            each.low = address_;
            u32 inner = clip(each.low, 0, 1, 1u << shift());
            each.add(inner, 1u << shift());
            for (u32 d = 1; d < rank_ && !four_; ++d) each.add(clip(each.low, d, step(d), stride(d)), stride(d) * step(d));
        }
        for (u32 row = 0; four_ && row < ROWS; ++row) {
            found[row].low += (u64)((long long)coordinates_[1 + row] * (long long)stride(1));
            found[row].add(has_row(row), stride(1));
        }
        return found;
    }

    static std::vector<u32> chunks_of(u32 place, u32 bytes) {
        std::vector<u32> found;
        found.reserve(bytes / 16 + 1);
        for (u32 chunk = place / 16; bytes && chunk * 16 < place + bytes; ++chunk) found.push_back(chunk);
        return found;
    }

  private:
    static constexpr u32 UNKNOWN = 15, ROWS = 4, PACKED = 11;
    u32 type() const { return head_ >> 7 & 15; }
    bool im2col() const { return head_ & 1; }
    bool has_row(u32 row) const { return coordinates_[1 + row] >= 0 && (u32)coordinates_[1 + row] <= extents_[1]; }
    u64 stride(u32 d) const { return ((u64)(upper_ >> 4 * (d - 1) & 15) << 32 | strides_[d]) * 16; }
    // One nibble per element type: the logarithm of its size.
    u32 shift() const { return type() <= PACKED ? (u32)(0x013221332210ull >> 4 * type()) & 15 : UNKNOWN; }
    u32 step(u32 d) const { return (steps_ >> 3 * d & 7) + 1; }

    // Clips one dimension: moves `start` to its first element inside the tensor and returns the number of elements inside.
    u32 clip(u64 &start, u32 d, u32 step, u64 distance) const {
        long long place = coordinates_[d], room = (long long)extents_[d] + 1 - place;
        long long first = place < 0 ? (-place + step - 1) / step : 0;
        if (room <= 0) return 0;
        long long last = std::min((long long)counts_[d], (room + step - 1) / step);
        start += (u64)((place + first * step) * (long long)distance);
        return last > first ? (u32)(last - first) : 0;
    }

    bool four_;
    u32 rank_, head_ = 0, upper_ = 0, steps_ = 0, upper_dims_ = 0, size_ = 0, strides_[5] = {}, extents_[5] = {},
               counts_[5] = {1, 1, 1, 1, 1};  // extents less one
    i32 coordinates_[5] = {};
    u64 address_, map_ = 0;
};
