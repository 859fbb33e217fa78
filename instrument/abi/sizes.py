"""How many of everything the shadow keeps. Larger numbers cost memory, smaller ones forget sooner (instrument/BOUNDS.md)."""

from __future__ import annotations

from functools import cache

MAX_WARPS = 32
DIRECTORY_ENTRIES = 1 << 15
CLASS_COUNT = 70
CLASS_SHIFT = 13  # the smallest slot has 8 KiB, the largest 1.25 GiB; four sizes per power of two
SLOTS_PER_CLASS = 8192
# Recently released slots, by shape (hashed) and multiprocessor. No multiprocessor holds more than 32 CTAs.
HINT_SHAPES = 32
HINT_PLACES = 256
HINT_DEPTH = 32
TABLE_ENTRIES = 4096
RING_ENTRIES = 4096
STANDS = 64  # warps whose places are kept behind the ring when the host stops a launch; the threads of further warps are counted
LAUNCH_COUNTERS = 8192
NAMED_BARRIERS = 18  # per CTA: 16 of the ISA, one for the cluster barrier (in the first CTA), one for alignment
CLUSTER_BARRIER = 16  # the number of the cluster barrier among them
BARRIER_GENERATIONS = 4
WAIT_HISTORY = 4
WARP_SYNCS = 4
COPY_RANGES = 16
SOURCE_RANGES = 4  # intervals that bound the sources of a CTA's copies
FLAG_CELLS = 64  # one bit each in Thread.flags_read
# Asynchronous engines: tracked mbarriers of one CTA, listed operations, bytes of a coarse block.
MBARRIERS = 64  # of one CTA; clusters have more (`counts`)
OPERATIONS = 512
BLOCK_BYTES = 128
MAX_WARPGROUPS = 8
OPERATIONS_OVER = 8  # per warp: operations noted as complete
GROUP_WAITS = 4
MATRIX_OPERANDS = 8  # per warp: operands recently found ordered
MATRIX_WAITS = 16  # per warp: a producer may lag by this many stages
COPY_TAGS = 8
ARRIVALS = 32  # per warp: its last arrivals at mbarriers, by barrier and parity
# Copies between global and shared memory, of one CTA (runtime/globals.cuh).
RESULTS = 128  # bulk stores whose results in global memory are separate records
LOST_RESULTS = 4  # threads whose older results are merged, into one interval each
WRITTEN = 2048  # cells of 16 bytes of global memory with generic stores, by address
WRITTEN_AREAS = 4  # intervals that bound these stores, by site
TENSORS = 8  # tensor maps whose whole range is cached, by address of the map
FENCE_EVENTS = 4  # per warp: its last proxy fences for global memory
FETCHES = 64  # bulk loads whose source in global memory is tracked
FETCH_AREAS = 4  # intervals that bound the sources of bulk loads without a tensor map, by site
MAP_USES = 64  # tensor copies whose map in global memory is tracked
MAPS = 32  # changed or acquired tensor maps, by address
SITE_LIMIT = (1 << 16) - 1
READ_SITE_LIMIT = (1 << 12) - 1
STAND_AT_SITE, NO_ENTRY = 1 << 31, (1 << 32) - 1

FIXED = {name: value for name, value in globals().items() if name.isupper()}


@cache
def sizes(ctas: int = 1) -> dict[str, int]:
    """All of these numbers. Some grow with the largest cluster that a variant of the runtime supports (1: none)."""
    warps, mbarriers = MAX_WARPS * ctas, min(MBARRIERS * ctas, 4 * MBARRIERS)
    # Blocks of a clock, one entry per warp each: epochs; epochs that have passed a proxy fence (in clusters one block for memory of even
    # ranks and one for odd ranks); in clusters three more of epochs learnt through non-synchronising edges (wait too narrow, arrival too
    # narrow, relaxed). Then one entry per mbarrier: observed phases.
    blocks = 6 if ctas > 1 else 2
    grown = {"MAX_CTAS": ctas, "MAX_WARPS": warps, "MBARRIERS": mbarriers, "CLOCK": blocks * warps + mbarriers}
    return FIXED | grown | {"FIRST_ENDS": max(ctas, 2), "FOUND_WORDS": TABLE_ENTRIES // 32}
