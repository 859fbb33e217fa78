// Cells of tensor memory (ISA "Tensor Memory Addressing"): 128 lanes x 512 columns of 32 bits. No instruction writes a part of a cell, so bytes
// need no state of their own, not even those of scale factors.
#pragma once

#include <algorithm>
#include <vector>

#include "types.hpp"

constexpr u32 TENSOR_LANES = 128, TENSOR_COLUMNS = 512, QUARTER = 32;

// A set of the 128 lanes.
struct LaneSet {
    u64 words[2] = {0, 0};

    // `count` lanes from `first` on.
    static LaneSet range(u32 first, u32 count) {
        LaneSet made;
        for (u32 lane = first; lane < std::min(first + count, TENSOR_LANES); ++lane) made.words[lane / 64] |= 1ull << lane % 64;
        return made;
    }
    // The same `bits` in each quarter.
    static LaneSet quarters(u32 bits) {
        u64 word = (u64)bits << 32 | bits;
        return {{word, word}};
    }

    bool empty() const { return !(words[0] | words[1]); }
    bool has(u32 lane) const { return words[lane / 64] >> lane % 64 & 1; }
    LaneSet operator&(const LaneSet &other) const { return {{words[0] & other.words[0], words[1] & other.words[1]}}; }
    LaneSet without(const LaneSet &other) const { return {{words[0] & ~other.words[0], words[1] & ~other.words[1]}}; }
    bool operator==(const LaneSet &other) const { return words[0] == other.words[0] && words[1] == other.words[1]; }
    u32 first() const { return words[0] ? (u32)__builtin_ctzll(words[0]) : 64 + (u32)__builtin_ctzll(words[1]); }
    u32 end() const { return words[1] ? 128 - (u32)__builtin_clzll(words[1]) : 64 - (u32)__builtin_clzll(words[0]); }
};

// Some lanes of columns [begin, end).
struct Piece {
    LaneSet lanes;
    u32 begin, end;

    bool meets(const Piece &other) const { return begin < other.end && other.begin < end && !(lanes & other.lanes).empty(); }
    Piece common(const Piece &other) const { return {lanes & other.lanes, std::max(begin, other.begin), std::min(end, other.end)}; }
    bool operator==(const Piece &other) const { return lanes == other.lanes && begin == other.begin && end == other.end; }
};

using Pieces = std::vector<Piece>;

constexpr u32 column_of(u32 address) { return address & 0xFFFF; }
constexpr u32 lane_of(u32 address) { return address >> 16; }

// What has written a cell last, since its columns were allocated.
enum Mark : u8 { UNWRITTEN = 0, WRITTEN = 1, FIRST_LAYOUT = 2 };  // from FIRST_LAYOUT on: in one of the layouts that the owner numbers

class WrittenCells {
  public:
    WrittenCells() : written_(TENSOR_LANES * TENSOR_COLUMNS, UNWRITTEN) {}

    void set(const Piece &piece, u8 mark) {
        for (u32 lane = 0; lane < TENSOR_LANES; ++lane)
            if (piece.lanes.has(lane)) std::fill(row(lane) + piece.begin, row(lane) + piece.end, mark);
    }

    // The first mark of a layout in a piece for which `wrong` holds; WRITTEN if there is none.
    template <typename F> u8 find(const Piece &piece, F wrong) const {
        u8 last = WRITTEN;
        for (u32 lane = 0; lane < TENSOR_LANES; ++lane) {
            if (!piece.lanes.has(lane)) continue;
            for (u32 column = piece.begin; column < piece.end; ++column) {
                u8 mark = row(lane)[column];
                if (mark == last || mark < FIRST_LAYOUT) continue;
                if (wrong(mark)) return mark;
                last = mark;
            }
        }
        return WRITTEN;
    }

    // The smallest range that has all unwritten cells of a piece; false if there are none.
    bool missing(const Piece &piece, Piece &found) const {
        found = {{}, TENSOR_COLUMNS, 0};
        for (u32 lane = 0; lane < TENSOR_LANES; ++lane) {
            if (!piece.lanes.has(lane)) continue;
            for (u32 column = piece.begin; column < piece.end; ++column) {
                if (row(lane)[column]) continue;
                found.lanes.words[lane / 64] |= 1ull << lane % 64;
                found.begin = std::min(found.begin, column), found.end = std::max(found.end, column + 1);
            }
        }
        return !found.lanes.empty();
    }

  private:
    u8 *row(u32 lane) { return &written_[lane * TENSOR_COLUMNS]; }
    const u8 *row(u32 lane) const { return &written_[lane * TENSOR_COLUMNS]; }

    std::vector<u8> written_;
};
