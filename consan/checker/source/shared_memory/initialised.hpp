// R-UNINIT: a read of bytes that no thread has written. If a later write is unordered with the read, the pair is a race, or R-MO1 reports it, and it
// explains the read.
// A write behind the completion of an operation is ordered, too.
#pragma once

#include <cstring>
#include <functional>
#include <unordered_map>
#include <vector>

#include "races.hpp"

class Initialised {
  public:
    Initialised(const Shape &shape, Clocks &clocks, Findings &findings)
        : clocks_(clocks), findings_(findings), written_((shape.bytes() + 3) / 4, 0), pending_(written_.size(), 0) {}

    typedef std::function<bool(u32 thread)> Over;  // whether a thread knows that an operation is complete

    void add(const Access &access) {
        if (access.reads) read(access);
        if (access.writes) write(access);
    }

    // The access of an operation.
    void add(const Access &access, Over over) {
        if (access.reads && read(access)) reads_.back().over = std::move(over);
        if (access.writes) write(access);
    }

    // Whether bytes are initialised.
    bool holds(u32 offset, u32 bytes) const {
        if (bytes == 4 && offset % 4 == 0) return written_[offset / 4] == 15;
        for (u32 byte = offset; byte < offset + bytes; ++byte)
            if (!(written_[byte / 4] >> byte % 4 & 1)) return false;
        return true;
    }
    // The bytes of a cell that are.
    u8 written(u32 cell) const { return written_[cell]; }

    // Grows with each change.
    u32 version() const { return version_; }

    // At the end: report the reads that no write explains.
    void finish() {
        for (const Read &read : reads_) {
            if (!read.missing) continue;
            Record found{};
            found.kind = UNINITIALIZED_READ;
            found.site = read.access.site;
            found.own_operation = read.access.operation;
            found.thread = found.other_thread = read.access.thread;
            found.offset = read.access.offset;
            found.bytes = read.access.bytes;
            findings_.add(found);
        }
    }

  private:
    struct Read {
        Access access;
        u32 time, missing;  // a bit for each byte
        Over over;
    };

    // Returns whether it is one of `reads_` now, the last.
    bool read(const Access &access) {
        u32 missing = 0, whole = 0;
        if (access.bytes == 16 && access.offset % 16 == 0) std::memcpy(&whole, &written_[access.offset / 4], 4);
        if (whole == 0x0F0F0F0F) return false;
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            u32 lacking = Races::mask_of(access, cell) & ~written_[cell];
            for (u32 byte = 0; lacking && byte < 4; ++byte)
                if (lacking >> byte & 1) missing |= 1u << (cell * 4 + byte - access.offset);
        }
        if (!missing || known(access.offset / 4, access, missing)) return false;
        ++version_;
        reads_.push_back({access, clocks_.time(access.thread), missing, {}});
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) keep(cell, (u32)reads_.size() - 1);
        return true;
    }

    void keep(u32 cell, u32 read) {
        pending_[cell] = 1;
        by_cell_[cell].push_back(read);
    }

    void write(const Access &access) {
        for (u32 cell = first_cell(access), end = end_cell(access); cell < end; ++cell) {
            u8 known = written_[cell];
            written_[cell] |= Races::mask_of(access, cell);
            version_ += written_[cell] != known;
            if (pending_[cell])
                for (u32 number : by_cell_[cell]) explain(reads_[number], access);
        }
    }

    void explain(Read &read, const Access &access) {
        if (!read.missing || read.access.thread == access.thread) return;
        if (read.access.strong && access.strong && !race_rule::gives_data(read.access, access)) return;
        if (clocks_.before(read.access.thread, read.time, access.thread) || (read.over && read.over(access.thread))) return;
        for (u32 byte = 0; byte < access.bytes; ++byte) {
            u32 place = access.offset + byte - read.access.offset;
            if (place < LANES) read.missing &= ~(1u << place), ++version_;
        }
    }

    bool known(u32 cell, const Access &access, u32 missing) const {
        auto found = by_cell_.find(cell);
        if (found == by_cell_.end()) return false;
        for (u32 number : found->second) {
            const Read &read = reads_[number];
            if (read.access.thread == access.thread && read.access.site == access.site && read.missing == missing) return true;
        }
        return false;
    }

    Clocks &clocks_;
    Findings &findings_;
    u32 version_ = 0;
    std::vector<u8> written_, pending_;
    std::vector<Read> reads_;
    std::unordered_map<u32, std::vector<u32>> by_cell_;
};
