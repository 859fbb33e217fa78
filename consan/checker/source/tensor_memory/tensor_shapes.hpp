// What tcgen05.mma touches (ISA "Instruction descriptor", "Data path layout organization", "Scale factors", "Sparse matrices"): chunks of shared
// memory, and cells of tensor memory. For a pair of CTAs it says what one CTA holds.
#pragma once

#include "matrix.hpp"
#include "tensor_cells.hpp"

// The kinds in the order of record/families/tensor_memory.py, with what the tables say of each.
struct TensorFormat {
    u32 element, depth;  // bytes of an element in shared memory; elements along K of a dense step
    u32 metadata;        // columns of sparsity metadata
};
inline const TensorFormat &format_of(u32 kind) {
    static const TensorFormat formats[] = {{2, 16, 1}, {4, 8, 1}, {1, 32, 2}, {1, 32, 2}, {1, 32, 2}, {1, 64, 2}, {1, 64, 2}};
    return formats[std::min(kind, 6u)];
}

constexpr u32 TF32 = 1, PACKED = 2;  // a kind; a layout that is none of D
enum TensorForm : u32 { A_IN_TENSOR_MEMORY = 1, SPARSE = 2, SCALED = 4, WEIGHT_STATIONARY = 8, PAIRED = 16, SHIFTED = 32 };

class TensorProduct {
  public:
    TensorProduct(u32 kind, u32 form, u32 descriptor) : kind_(kind), form_(form), descriptor_(descriptor) {}

    u32 columns() const { return (descriptor_ >> 17 & 63) << 3; }
    u32 rows() const { return form_ & SCALED ? (descriptor_ >> 27 & 3) << 7 : (descriptor_ >> 24 & 31) << 4; }

    // Cells of D. Layouts A to G of the ISA differ in which lanes hold rows, and how many columns are left.
    Piece accumulator(u32 address) const {
        u32 begin = column_of(address), wide = columns() / (layout_halves() * (weight() && rows() == 32 ? 2 : 1));
        return {lanes(address), begin, begin + wide};
    }

    // How the cells of D hold elements (R-T16): the layout of the ISA, the type, and the place of the whole where its columns are split.
    u32 layout(u32 address) const {
        u32 letter = form_ & PAIRED ? 8 | (rows() == 256) << 1 | (form_ & SPARSE ? 1 : 0)
                                    : (rows() == 64) << 1 | (rows() == 32) << 2 | (weight() && rows() < 128 ? 1 : 0);
        u32 split = layout_halves() > 1 ? columns() << 7 | column_of(address) << 16 : 0;
        return 1 | letter << 1 | type() << 5 | split;
    }
    // The same for A in tensor memory. Elements of 32 bits lie as those of D do; others are packed, as no D is.
    u32 left_layout(u32 address) const { return kind_ == TF32 ? layout(address) : PACKED; }

    // Cells of A. Where several parts of the lanes compute on the same rows, each holds a copy.
    Piece left(u32 address) const { return {lanes(address), column_of(address), column_of(address) + 8}; }

    std::vector<u32> left_chunks(u64 bits) const { return chunks(bits, form_ & PAIRED ? rows() / 2 : rows(), descriptor_ >> 15 & 1, 1); }
    std::vector<u32> right_chunks(u64 bits) const {
        return chunks(bits, form_ & PAIRED ? columns() / 2 : columns(), descriptor_ >> 16 & 1, form_ & SPARSE ? 2 : 1);
    }

    // Cells of the scale factors of some rows of A or columns of B: lane r modulo 32 of each quarter, column r / 32.
    static Pieces factors(u32 address, u32 rows) {
        u32 begin = column_of(address), whole = rows / QUARTER;
        Pieces found;
        if (whole) found.push_back({LaneSet::range(0, TENSOR_LANES), begin, begin + whole});
        if (rows % QUARTER) found.push_back({LaneSet::quarters((1u << rows % QUARTER) - 1), begin + whole, begin + whole + 1});
        return found;
    }
    Pieces left_factors(u32 address) const { return factors(address, form_ & PAIRED ? rows() / 2 : rows()); }
    Pieces right_factors(u32 address) const { return factors(address, form_ & PAIRED && rows() == 128 ? columns() / 2 : columns()); }

    // One column is the first or the second of two: the sparsity selector says which.
    Piece metadata(u32 address) const {
        u32 wide = format_of(kind_).metadata, begin = column_of(address) + (wide == 1 ? descriptor_ & 1 : 0);
        return {lanes(address), begin, begin + wide};
    }

    // What one collector buffer holds of A (of B with .ws): the bits of the instruction descriptor that say how it is read.
    u32 stationary() const { return descriptor_ & (weight() ? 0x007F1C04u : 0x1F008384u); }

  private:
    u32 type() const { return form_ & SCALED ? 1 : descriptor_ >> 4 & 3; }
    bool weight() const { return form_ & WEIGHT_STATIONARY; }

    // Layouts B, E and G: the columns are split over parts of the lanes.
    u32 layout_halves() const {
        if (form_ & PAIRED) return rows() == 128 && !(form_ & SPARSE) ? 2 : 1;
        return weight() && rows() < 128 ? 2 : 1;
    }

    // Layouts C and F use 16 lanes of each quarter.
    LaneSet lanes(u32 address) const {
        bool narrow = form_ & PAIRED ? rows() == 128 && form_ & SPARSE : rows() == 64 && !weight();
        return narrow ? LaneSet::quarters(lane_of(address) & 16 ? 0xFFFF0000u : 0xFFFFu) : LaneSet::range(0, TENSOR_LANES);
    }

    std::vector<u32> chunks(u64 bits, u32 rows, bool major, u32 times) const {
        const TensorFormat &format = format_of(kind_);
        Descriptor descriptor = Descriptor::of_tcgen05(bits);
        return major ? descriptor.chunks_across(rows * format.element / 16, format.depth * times) : descriptor.chunks(rows, 2 * times, false);
    }

    u32 kind_, form_, descriptor_;
};
