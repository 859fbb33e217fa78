// The records that the host and the checker exchange. consan/checker/replay.py and instrument/record/templates.py have the same fields.
#pragma once

#include <cstdint>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;

constexpr u32 LANES = 32, WARPGROUP_THREADS = 128, MOST_BARRIERS = 16, NOTHING = 0xFFFFFFFFu, END = 0xFFFFFFFFu, STOP = 0xFFFFFFFEu, LEFT = 0xC0000000u;

enum EventKind : i32 { READ = 1, WRITE, ATOMIC, BARRIER, WARP_BARRIER, POINT, JOIN, COPY, COPY_COMMIT, COPY_WAIT, GLOBAL_WRITE, MBARRIER_INIT, MBARRIER_INVAL, MBARRIER_ARRIVE, MBARRIER_TX, MBARRIER_WAIT, MBARRIER_COPIES, PROXY_FENCE, BULK_LOAD, BULK_STORE, BULK_COMMIT, BULK_WAIT, GLOBAL_READ, TENSOR_LOAD, TENSOR_STORE, PRODUCT, PRODUCT_COMMIT, PRODUCT_WAIT, CLUSTER_ARRIVE, CLUSTER_WAIT, FENCE, INITS_FENCE, FILL, STORE_ASYNC, BULK_PUSH, LAUNCH_REQUEST, LAUNCH_ANSWER, LAUNCH_USE, MAP_FENCE = 40, OBSERVE = 61, PUBLISH = 62, GRID_WAIT = 63, TENSOR_ALLOC_REQUEST = 64, TENSOR_ALLOC, TENSOR_DEALLOC_EVENT, TENSOR_RELINQUISH, TENSOR_LD_EVENT, TENSOR_ST_EVENT, TENSOR_WAIT, TENSOR_MMA_EVENT, TENSOR_CP_EVENT, TENSOR_SHIFT_EVENT, TENSOR_COMMIT, TENSOR_FENCE, UNSEEN };
enum EventFlag : i32 { STRONG = 1, WAITS = 2, AGAIN = 2, UNUSED = 4, ALIGNED = 8, WHOLE = 16, MASKED = 32, DROP = 64, NO_COMPLETE = 128, NOINC = 256, COMPLETE = 512, READ_ONLY = 1024, ADDS = 2048, MAJOR = 4096, RANKED = 8192, NARROW = 16384, RELAXED = 32768, ACQUIRES = 65536, RELEASES = 131072, PAIR = 262144, MULTICAST = 524288, SINGLE = 1048576, OWN_ROWS = 2097152, FOUR_ROWS = 4194304, MAP = 8388608, CONSTANT = 536870912, NC = 16777216, READS = 33554432, WRITES = 67108864, SEAL = 134217728, WARPGROUP = 268435456, DATA = 1073741824, IGNORED = -2147483648 };

struct Event {
    i32 kind, flags, site, bytes, offset, address_word, guard_word, value_word, a, a_word, b, b_word, c, c_word;
};

struct Block {
    i32 first, events, words;
};

// One finding, merged by kind, reason and unordered pair of sites. `low` and `high` bound the bytes of all that were merged.
struct Record {
    u32 kind, hazard, reason, flags, site, other_site, thread, other_thread, offset, bytes, number, came, others, exited, how, operation, own_operation, group, commits, retired, address_low, address_high, place, phase, expected, state_low, state_high, count, low, high, unit, threads, lanes, arrived;
};

// Numbers of instrument/abi/events.py (tests/record/test_checker.py compares them).
enum Kind : u32 { DATA_RACE = 1, MISSING_WAIT = 2, UNINITIALIZED_READ = 3, OUT_OF_BOUNDS = 4, BARRIER_MISUSE = 6, MISSING_PROXY_FENCE = 7, LIFETIME = 8, DEADLOCK = 9, WAITER = 10, SCOPE = 11, DIVERGENCE = 12, GLOBAL_RACE = 16, TENSOR_MISUSE = 20, MISSING_TENSOR_FENCE = 21, LAUNCH_MISUSE = 22, MISSING_ORDER = 23 };
enum Hazard : u32 { NO_HAZARD = 0, RAW, WAR, WAW };
enum Reason : u32 { NO_REASON = 0, MAP_NOT_RELEASED = 38, MAP_CHANGED = 39, MAP_NOT_ACQUIRED = 41, NOT_IN_MASK = 43, BARRIER_NUMBER = 44, THREAD_COUNT = 45, OTHER_LANE_RELEASED = 46, NO_BARRIER = 1, NO_WARP_SYNC = 2, NOT_COMMITTED = 3, NOT_WAITED = 4, WAITED_NO_BARRIER = 5, OVERLAPPING_COPIES = 6, SOURCE_OVERWRITTEN = 7, COUNTS_DISAGREE = 8, NOT_INITIALISED = 9, INVALIDATED = 10, INITIALISED_TWICE = 11, INIT_NOT_PUBLISHED = 12, BYTES_USED = 13, TOO_MANY_ARRIVALS = 14, PHASE_LAPPED = 15, TX_RANGE = 16, COUNT_RANGE = 17, NO_COMPLETE_REASON = 18, SIGNALS_PENDING = 19, DIVERGENT = 20, NO_PROXY_FENCE = 21, WRITER_NO_FENCE = 22, READ_NO_FENCE = 23, OTHER_LANES = 24, READ_WAIT_ONLY = 25, EXIT = 26, OTHER_ISSUER = 27, COPY_NO_FENCE = 29, OWN_WARP_WAITED = 30, SHARED_ID = 31, WAITERS_PENDING = 32, NOT_STARTED = 35, AFTER_EXIT = 36, REFILLED = 37, BYTES_NOT_ANNOUNCED = 42, NO_SYNCHRONISATION = 50, NO_RELEASE = 51, NO_ACQUIRE = 52, RELEASE_SCOPE_REASON = 53, ACQUIRE_SCOPE_REASON = 54, FLAG_SCOPE_REASON = 55, OTHER_THREADS = 56, NOT_COHERENT = 57, ACCESS_SCOPE = 58, FENCE_SCOPE = 59, WRITTEN_LATER = 60, WEAK_ACCESS = 61, RELEASED_BEFORE = 62, RELEASED_BY_OTHER = 63, WEAKER_FENCES = 94, PHASE_NOT_WAITED = 95, NO_CLUSTER_BARRIER = 48, MIXED_SIZES = 49, MIXED_ATOMICS = 113, ALLOC_COLUMNS = 64, ALLOC_GROWS = 65, ALLOC_RELINQUISHED = 66, DEALLOC_MISMATCH = 67, ALLOC_LIVE = 68, OUTSIDE_ALLOCATION = 69, USED_AFTER_DEALLOC = 70, OTHER_QUARTER = 71, NOT_UNIFORM = 72, TWO_GROUPS = 73, MASK_OUTSIDE = 74, PAIR_NOT_STARTED = 75, NO_FENCE_BEFORE = 76, NO_FENCE_AFTER = 77, FENCE_BY_THE_ISA = 78, ISSUE_ORDER = 79, ONLY_USED = 80, COLLECTOR_EMPTY = 81, COLLECTOR_OTHER = 82, OTHER_LAYOUT = 83, REQUEST_AFTER_REFUSAL = 84, REFUSED_ID_USED = 85, REQUESTS_OF_LANES = 86, LANE_OF_THE_WARP = 87, PEER_DEALLOC = 88, NO_FENCE_BEHIND_COMMIT = 89, FENCE_OF_OWN_CTA = 90, WORDS_APART = 91, COLLECTOR_DISCARDED = 92, EARLIER_COMMIT = 93, ARRIVED_TWICE = 110, OTHER_CALL = 111, OUT_OF_STEP = 112, CROSSED_STORES = 114, ACROSS_CTAS = 117, COMPLETION_SCOPE = 118 };
enum FindingFlag : u32 { SAME_WARP = 1, SAME_VALUE = 2, OTHER_ASYNC = 4, OTHER_ATOMIC = 8, GLOBAL = 16, TENSOR = 64, GRID = 128, BOTH_SIDES = 512 };
constexpr u32 UNORDERED = 32;  // a flag that the host takes off: the issue of the operation is not ordered either
enum OperationKind : u32 { BULK_STORE_OPERATION = 2, BULK_LOAD_OPERATION = 3, WGMMA_OPERATION = 4, STORE_ASYNC_OPERATION = 5, TCGEN05_MMA_OPERATION = 6, LAUNCH_REQUEST_OPERATION = 7, TCGEN05_CP_OPERATION = 8, BULK_SOURCE_OPERATION = 10, TCGEN05_SHIFT_OPERATION = 12, TCGEN05_LD_OPERATION = 14, TCGEN05_ST_OPERATION = 16 };  // bit 0: it writes shared memory

constexpr u32 STRICT = 2;  // of Input.isa: a replay that takes no weaker fence for a fence.sc (D17)

struct Input {
    const Block *blocks;
    const Event *events;
    const u32 *log;  // of the CTAs of the cluster, by rank: for each warp `lines` lines of 32 words
    Record *records;
    u64 lines;
    u32 block_count, threads, window, shared_bytes, descending, capacity;  // threads and shared_bytes: of a CTA
    u32 ctas, cta_threads, cta_bytes, level;  // CTAs of the cluster; the numbers of threads, and of bytes, that each CTA takes; a Level
    u32 isa;  // the stricter reading of the ISA (SEMANTICS 9: D1, D2), or STRICT
    u32 open_block, open_events;  // where a fault ended the launch: events of a block that is not closed; 0: none
    u32 closed;   // the launch did not end, and all words of a block are there that has its number
    u32 every;    // rounds that repeat are replayed each time (repeats.hpp)
    u32 *stands;  // of each thread: where it stands, if it has not exited; null: not wanted
    const volatile u32 *halt;  // not zero once the host wants no more; null: it always does
};

// The addresses of tensor maps, compared with those of writes; how much of a box lies inside its tensor; whether stored values are equal.
enum Decides : u32 { BY_ADDRESS = 1, BY_CLIP = 2, BY_VALUE = 4 };

struct Output {
    u32 status, records, stuck_lane, by_address;  // by_address: which words that are not hashed decide the findings, a Decides
    u32 overtaken;  // a wait passed for a phase that was over, though another one had ended since: a thread that polls may wait for ever
    u64 lane_events;
    u32 proven;  // a deadlock
    u32 repeats;  // periods that were not replayed (repeats.hpp)
};

// One launch: the logs of its units, CTAs or clusters (`lines` of each warp), and how its global memory is checked.
struct UnitLog {
    const u32 *log;
    u64 lines;
};
// An access to global memory that is kept for the comparison with other launches. consan/checker/beside.py has the same fields.
struct KeptAccess {
    u64 address;
    u32 bytes, unit, thread, site, value, element, scope, flags;
};
enum KeptFlag : u32 { KEPT_READS = 1, KEPT_WRITES = 2, KEPT_STRONG = 4, KEPT_HAS_VALUE = 8, KEPT_ASYNCHRONOUS = 16, KEPT_BEHIND = 32, KEPT_GIVES = 64, KEPT_TAKES = 128 };

// How a thread stood that the host has stopped: it has exited, or waits for others, or leaves a loop whose last event is a strong read. An
// address with its highest bit is one of shared memory.
struct Stopped {
    enum Kind : u32 { GONE = 0, WAITS, POLLS, FREE };
    u64 address, low, high;  // the bytes and their value
    u32 bytes, site, kind, latest;  // latest: of shared memory, no strong access has written the bytes after the read
};

struct GridInput {
    Input one;  // what all units share
    const UnitLog *units;
    Record *of_units;  // findings in shared memory, where threads may synchronise through memory; else the units are replayed by themselves
    u32 count, synced, capacity;
    u32 most;  // accesses that are kept
    u32 kept_capacity;
    KeptAccess *kept;  // null: not wanted
    u32 *stands;       // of a launch that the host has stopped, by thread; else null
    Stopped *stops;
};
struct GridOutput {
    u32 status, records, of_units, stuck, contradictions, full, unknown, narrow;  // narrow: some scope excludes other CTAs
    u64 lane_events, kept;
    u32 kept_full, waited, unseen;  // not all were kept; a thread has executed griddepcontrol.wait, or an access that the log does not name
    u64 accesses, compared;  // accesses to global memory; those of bytes that several threads touch, and one writes
};

// OK; some threads could not continue; a word that no template explains; a log without room; more findings than there is room for; the
// replay ended at a divergent .aligned instruction; threads met others that have copies in flight at a seal; the host has ended the replay.
enum Status : u32 { OK = 0, STUCK, CORRUPT, FULL, TOO_MANY, UNDEFINED, APART, HALTED };

inline bool is_halted(const Input &input) { return input.halt && *input.halt; }
