// What the host and the checker exchange. consan/checker/replay.py and instrument/record/templates.py have the same fields.
#pragma once

#include <cstdint>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;

constexpr u32 LANES = 32, NOTHING = 0xFFFFFFFFu, END = 0xFFFFFFFFu, STOP = 0xFFFFFFFEu;

enum EventKind : i32 { READ = 1, WRITE, ATOMIC, BARRIER, WARP_BARRIER, POINT, JOIN, COPY, COPY_COMMIT, COPY_WAIT, GLOBAL_WRITE, MBARRIER_INIT, MBARRIER_INVAL, MBARRIER_ARRIVE, MBARRIER_TX, MBARRIER_WAIT, MBARRIER_COPIES, PROXY_FENCE, BULK_LOAD, BULK_STORE, BULK_COMMIT, BULK_WAIT, GLOBAL_READ, TENSOR_LOAD, TENSOR_STORE, PRODUCT, PRODUCT_COMMIT, PRODUCT_WAIT };
enum EventFlag : i32 { STRONG = 1, WAITS = 2, UNUSED = 4, ALIGNED = 8, WHOLE = 16, MASKED = 32, DROP = 64, NO_COMPLETE = 128, NOINC = 256, COMPLETE = 512, READ_ONLY = 1024, ADDS = 2048, MAJOR = 4096 };

struct Event {
    i32 kind, flags, site, bytes, offset, address_word, guard_word, value_word, a, a_word, b, b_word;
};

struct Block {
    i32 first, events, words;
};

// One finding, merged by kind, reason and unordered pair of sites. `low` and `high` bound the bytes of all that were merged.
struct Record {
    u32 kind, hazard, reason, flags, site, other_site, thread, other_thread, offset, bytes, number, came, others, exited, how, operation, own_operation, group, commits, retired, address_low, address_high, place, phase, expected, state_low, state_high, count, low, high;
};

// Numbers of instrument/abi/events.py (tests/record/test_checker.py compares them).
enum Kind : u32 { DATA_RACE = 1, MISSING_WAIT = 2, UNINITIALIZED_READ = 3, OUT_OF_BOUNDS = 4, BARRIER_MISUSE = 6, MISSING_PROXY_FENCE = 7, LIFETIME = 8, DIVERGENCE = 12 };
enum Hazard : u32 { NO_HAZARD = 0, RAW, WAR, WAW };
enum Reason : u32 { NO_REASON = 0, NO_BARRIER = 1, NO_WARP_SYNC = 2, NOT_COMMITTED = 3, NOT_WAITED = 4, WAITED_NO_BARRIER = 5, OVERLAPPING_COPIES = 6, SOURCE_OVERWRITTEN = 7, COUNTS_DISAGREE = 8, NOT_INITIALISED = 9, INVALIDATED = 10, INITIALISED_TWICE = 11, INIT_NOT_PUBLISHED = 12, BYTES_USED = 13, TOO_MANY_ARRIVALS = 14, PHASE_LAPPED = 15, TX_RANGE = 16, COUNT_RANGE = 17, NO_COMPLETE_REASON = 18, SIGNALS_PENDING = 19, DIVERGENT = 20, NO_PROXY_FENCE = 21, OTHER_LANES = 24, READ_WAIT_ONLY = 25, EXIT = 26, OTHER_ISSUER = 27, OWN_WARP_WAITED = 30, SHARED_ID = 31, WAITERS_PENDING = 32, REFILLED = 37 };
enum FindingFlag : u32 { SAME_WARP = 1, SAME_VALUE = 2, OTHER_ASYNC = 4, OTHER_ATOMIC = 8, GLOBAL = 16 };
enum OperationKind : u32 { BULK_STORE_OPERATION = 2, BULK_LOAD_OPERATION = 3, WGMMA_OPERATION = 4 };  // bit 0: it writes shared memory

struct Input {
    const Block *blocks;
    const Event *events;
    const u32 *log;  // of the CTA: for each warp `lines` lines of 32 words
    Record *records;
    u64 lines;
    u32 block_count, threads, window, shared_bytes, descending, capacity;
};

struct Output {
    u32 status, records, stuck_lane, by_address;  // by_address: the findings depend on words that are not hashed
    u64 lane_events;
};

// OK; some threads could not continue; a word that no template explains; a log without room; more findings than there is room for; the
// replay ended at a divergent .aligned instruction.
enum Status : u32 { OK = 0, STUCK, CORRUPT, FULL, TOO_MANY, UNDEFINED };
