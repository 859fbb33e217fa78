// R-OOB: an access outside the shared memory of its CTA, or of the CTA that its address names. The host counts offsets modulo 2^32, as the called hooks do.
#pragma once

#include "findings.hpp"
#include "races.hpp"

class Bounds {
  public:
    Bounds(const Shape &shape, Findings &findings) : shape_(shape), findings_(findings) {}

    // Whether the access lies inside.
    bool holds(const Access &access) { return holds(access.thread, access.site, access.offset, access.bytes); }

    bool holds(u32 thread, u32 site, u32 offset, u32 bytes) {
        if (shape_.holds(offset, bytes)) return true;
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
    const Shape &shape_;
    Findings &findings_;
};
