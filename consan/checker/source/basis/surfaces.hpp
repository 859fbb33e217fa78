// Bytes of surfaces (instrument/surfaces.py): their names stand where addresses in global memory do.
#pragma once

#include "types.hpp"

inline bool is_surface(u64 name) { return name >> 62 == 3; }

// The surfaces of a launch. Two handles may be of one array: then accesses by the one may meet those by the other.
class Surfaces {
  public:
    void note(u64 name, bool writes) {
        if (!is_surface(name)) return;
        several_ |= handle_ && handle_ != name >> SURFACE_HANDLE;
        handle_ = name >> SURFACE_HANDLE, written_ |= writes;
    }
    bool written() const { return written_; }
    bool aliased() const { return several_ && written_; }

  private:
    u64 handle_ = 0;
    bool several_ = false, written_ = false;
};
