// Which bytes of global memory more than one thread touches, one of them writing. All others cannot race, so they need no list of accesses,
// and a cluster that touches no such bytes needs no replay where nothing orders clusters.
//
// Pass 1 sees all writes of a launch, pass 2 all reads.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "types.hpp"

class Footprints {
  public:
    static constexpr u64 LINE = 128;

    void resize(u32 clusters) { shared_.assign(clusters, false); }

    void write(u64 address, u32 bytes, u32 cluster, u32 thread, bool always = false) {
        each_line(address, bytes, [&](u64 line, u32 from, u32 to) {
            Line &own = lines_[line];
            if ((from | to) % WORD && own.grain == WORD) refine(own);
            touch(own, from, to, {cluster, thread}, true, always);
        });
    }

    // `always`: nothing orders it after what its own thread does: a load with .nc, or an asynchronous operation.
    void read(u64 address, u32 bytes, u32 cluster, u32 thread, bool always) {
        each_line(address, bytes, [&](u64 line, u32 from, u32 to) {
            auto found = lines_.find(line);
            if (found != lines_.end()) touch(found->second, from, to, {cluster, thread}, false, always);
        });
    }

    // Whether any thread writes some of the bytes.
    bool written(u64 address, u64 bytes) const {
        bool any = false;
        each_line(address, bytes, [&](u64 line, u32 from, u32 to) {
            auto found = lines_.find(line);
            for (u32 at = from; found != lines_.end() && at < to; ++at) any |= found->second.owners[at / found->second.grain] != NOBODY;
        });
        return any;
    }
    // Whether any thread writes anything.
    bool any() const { return !lines_.empty(); }

    // Whether a cluster touches such bytes.
    bool shares(u32 cluster) const { return shared_[cluster]; }

    // The bytes of a word, a bit each, that others touch too.
    u8 shared_bytes(u64 address) {
        if (address / LINE != last_) last_ = address / LINE, found_ = lines_.find(last_);
        if (found_ == lines_.end()) return 0;
        const Line &own = found_->second;
        u32 at = (u32)(address % LINE);
        if (own.grain == WORD) return own.owners[at / WORD] == MANY ? ALL : 0;
        u8 mask = 0;
        for (u32 byte = 0; byte < WORD; ++byte) mask |= (u8)((own.owners[at + byte] == MANY) << byte);
        return mask;
    }

  private:
    static constexpr u32 WORD = 4;
    static constexpr u8 ALL = 15;
    static constexpr u64 NOBODY = 0, MANY = ~0ull, NO_LINE = ~0ull;
    struct Who {
        u32 cluster, thread;
        u64 number() const { return (u64)cluster << 32 | (thread + 1); }
    };
    struct Line {
        u32 grain = WORD;  // bytes that have one owner
        std::vector<u64> owners = std::vector<u64>(LINE / WORD, NOBODY);
    };

    template <typename F> static void each_line(u64 address, u64 bytes, F f) {
        for (u64 line = address / LINE; bytes && line * LINE < address + bytes; ++line) {
            u64 low = std::max(address, line * LINE), high = std::min(address + bytes, (line + 1) * LINE);
            f(line, (u32)(low - line * LINE), (u32)(high - line * LINE));
        }
    }

    static void refine(Line &line) {
        std::vector<u64> fine(LINE);
        for (u32 byte = 0; byte < LINE; ++byte) fine[byte] = line.owners[byte / WORD];
        line.grain = 1, line.owners.swap(fine);
    }

    void touch(Line &line, u32 from, u32 to, Who who, bool writes, bool always) {
        for (u32 at = from / line.grain; at * line.grain < to; ++at) {
            u64 &owner = line.owners[at];
            if (owner == NOBODY && writes) owner = who.number();
            if (owner == NOBODY || (owner == who.number() && !always)) continue;
            shared_[who.cluster] = true;
            if (owner != MANY) shared_[(u32)(owner >> 32)] = true;
            owner = MANY;
        }
    }

    std::unordered_map<u64, Line> lines_;
    u64 last_ = NO_LINE;  // the line that was looked up last
    std::unordered_map<u64, Line>::const_iterator found_;
    std::vector<bool> shared_;  // by cluster
};
