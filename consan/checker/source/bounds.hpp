// R-OOB: an access outside the CTA's shared memory. The host counts offsets modulo 2^32, as the called hooks do.
#pragma once

#include "findings.hpp"
#include "races.hpp"

class Bounds {
  public:
    Bounds(u32 shared_bytes, Findings &findings) : shared_bytes_(shared_bytes), findings_(findings) {}

    // Whether the access lies inside.
    bool holds(const Access &access) {
        if (access.offset < shared_bytes_ && access.bytes <= shared_bytes_ - access.offset) return true;
        Record found{};
        found.kind = OUT_OF_BOUNDS;
        found.site = access.site;
        found.thread = found.other_thread = access.thread;
        found.offset = access.offset;
        found.bytes = access.bytes;
        findings_.add(found);
        return false;
    }

  private:
    u32 shared_bytes_;
    Findings &findings_;
};
