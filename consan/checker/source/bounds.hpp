// R-OOB: an access outside the CTA's shared memory. The host counts offsets modulo 2^32, as the called hooks do.
#pragma once

#include "findings.hpp"
#include "races.hpp"

class Bounds {
  public:
    Bounds(u32 shared_bytes, Findings &findings) : shared_bytes_(shared_bytes), findings_(findings) {}

    // Whether the access lies inside.
    bool holds(const Access &access) { return holds(access.thread, access.site, access.offset, access.bytes); }

    bool holds(u32 thread, u32 site, u32 offset, u32 bytes) {
        if (offset < shared_bytes_ && bytes <= shared_bytes_ - offset) return true;
        Record found{};
        found.kind = OUT_OF_BOUNDS;
        found.site = site;
        found.thread = found.other_thread = thread;
        found.offset = offset;
        found.bytes = bytes;
        findings_.add(found);
        return false;
    }

  private:
    u32 shared_bytes_;
    Findings &findings_;
};
