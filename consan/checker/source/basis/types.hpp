// Types that all use. layouts.hpp has the records and the numbers that the host and the checker share (consan/checker/compiled/layouts.py).
#pragma once

#include <cstddef>
#include <cstdint>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;

#include "layouts.hpp"

constexpr u32 WARPGROUP_THREADS = 128, MOST_BARRIERS = 16, NOTHING = 0xFFFFFFFFu;

enum Orders : u32 { IS_ACQUIRE = 1, IS_RELEASE = 2, IS_SC = 4 };
enum Scope : u32 { CTA_SCOPE = 0, CLUSTER_SCOPE = 1, GPU_SCOPE = 2, SYS_SCOPE = 3 };

inline Scope scope_of(u32 order) { return (Scope)(order >> 4 & 3); }

inline bool is_halted(const Input &input) { return input.halt && *const_cast<const volatile u32 *>(input.halt); }
