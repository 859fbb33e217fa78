// The accesses of all threads between two barriers for all, by cells of shared memory: whether some cell is written by one thread and accessed by another.
// Cells are compared whole: two threads that write different bytes of one are not apart, and the replay decides.
#pragma once

#include "races.hpp"

class Disjoint {
  public:
    explicit Disjoint(u32 bytes) : count_((bytes + 3) / 4) {}

    // All accesses so far are forgotten.
    void begin() { cells_.resize(count_), ++phase_; }

    // A thread reads or writes bytes. Returns whether it is apart from all others so far. A row (R-ROW) is accessed by several threads.
    bool add(u32 thread, u32 offset, u32 bytes, bool row, bool writes) {
        if (row) thread = MANY;
        for (u32 cell = offset / 4, end = (offset + bytes + 3) / 4; cell < end; ++cell) {
            Cell &known = cells_[cell];
            if (known.phase != phase_) known = {phase_, thread, 0};
            bool alone = known.thread == thread && thread != MANY;
            if (!alone && (writes || known.written)) return false;
            if (!alone) known.thread = MANY;
            if (writes) known.written |= Races::mask_of(offset, bytes, cell);
        }
        return true;
    }

    // The bytes of a cell that are written: by the thread that accesses it now, if all are apart.
    u8 written(u32 cell) const { return cells_[cell].phase == phase_ ? cells_[cell].written : 0; }

  private:
    static constexpr u32 MANY = NOTHING;
    struct Cell {
        u32 phase = 0, thread = 0;
        u8 written = 0;  // a bit for each byte
    };
    u32 count_, phase_ = 0;
    std::vector<Cell> cells_;
};
