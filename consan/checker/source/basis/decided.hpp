// What a decision comes to: what its condition says. A checker with planted faults has another file here (tests/planted.py).
#pragma once

#include "types.hpp"

template <auto Decision> constexpr bool decided(bool holds = true) { return holds; }

// Whether a finding leaves the checker.
constexpr bool reported(Record &) { return true; }
