// The shadow runtime: compiled once per architecture and variant, pasted into the instrumented module as local functions.
//
// Variants, chosen per module from what it contains:
//   CONSAN_GRANULE  1, 2, 4   bytes per shadow cell: the narrowest access
//   CONSAN_PARTIAL  0, 1      named, counted or warp barriers (vector clocks), or whole-CTA barriers only (one counter)
//   CONSAN_ASYNC    0, 1      cp.async
//   CONSAN_CLUSTER  0, 1      shadow operations at .gpu scope
#include "layout.cuh"
#include "base.cuh"
#include "report.cuh"
#include "slot.cuh"
#include "access.cuh"
#include "barrier.cuh"
#include "async.cuh"
