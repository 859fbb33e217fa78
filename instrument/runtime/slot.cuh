// CTA slots: where the shadow state of a CTA is stored, how its threads find it, and how the next CTA gets it.
//
// Identity. %gridid and %ctaid identify a CTA while it runs. The directory maps that key to a slot. Only thread 0 of a CTA inserts
// the key, so a key has one slot at most. The other threads poll until the key appears. This is the only place where a hook
// waits. It terminates: thread 0 is resident and waits for nobody, and its CTA cannot end before it has run.
//
// Reuse. Nothing is cleared when a CTA ends. The next owner of the slot starts at a later epoch (`base`), so every leftover record
// is older than the CTA that reads it. Truncated epochs would alias after 2^EPOCH_BITS. Records are cleared long before that
// (scrub_*): by the warp that owns them or, between CTAs, by the last thread to exit.
//
// Memory. Slots are cut from one arena by size class and keep their shape (the geometry of their tables). A free slot of another
// shape is cleared before use. When the arena is exhausted, the CTA runs unchecked and is counted, so the verdict says so.
#pragma once

#include "base.cuh"

#ifndef CONSAN_READ_EPOCH_BITS
#define CONSAN_READ_EPOCH_BITS 12
#endif
#ifndef CONSAN_WRITE_EPOCH_BITS
#define CONSAN_WRITE_EPOCH_BITS 20
#endif
#ifndef CONSAN_NAMED
#define CONSAN_NAMED 0
#endif
#ifndef CONSAN_EPOCH_LIMIT
#define CONSAN_EPOCH_LIMIT 0xf0000000u
#endif
#define READ_EPOCH_MASK ((1u << CONSAN_READ_EPOCH_BITS) - 1)
#define WRITE_EPOCH_MASK ((1u << CONSAN_WRITE_EPOCH_BITS) - 1)
#define READ_PERIOD (1u << (CONSAN_READ_EPOCH_BITS - 2))
#define WRITE_PERIOD (1u << (CONSAN_WRITE_EPOCH_BITS - 2))
#define NO_SLOT 1ull  // directory value of a CTA that runs unchecked

// Upper half of a write record: epoch, thread, two flags.
#ifndef CONSAN_THREAD_BITS
#define CONSAN_THREAD_BITS 10
#endif
#define EPOCH_SHIFT (2 + CONSAN_THREAD_BITS)
#define THREAD_MASK ((1u << CONSAN_THREAD_BITS) - 1)
DEVICE u32 record_thread(u64 r) { return (u32)(r >> 34) & THREAD_MASK; }
DEVICE u32 record_warp(u64 r) { return record_thread(r) >> 5; }
DEVICE u32 record_lane(u64 r) { return (u32)(r >> 34) & 31; }
// Barriers with deposited clocks: those with a thread count, and the barrier of the cluster.
#if CONSAN_ENGINE && !CONSAN_CLUSTER
#define DEPOSIT_PLACES (CONSAN_NAMED + 1u)
#else
#define DEPOSIT_PLACES (NAMED_BARRIERS * MAX_CTAS)
#endif
// Bytes of a thread's record that this variant uses.
#if CONSAN_ENGINE
#define THREAD_BYTES sizeof(Thread)
#elif CONSAN_ASYNC
#define THREAD_BYTES offsetof(Thread, bulk_commits)
#elif CONSAN_PARTIAL
#define THREAD_BYTES offsetof(Thread, commits)
#else
#define THREAD_BYTES offsetof(Thread, full_barriers)
#endif
#define FLAG_SETS (MAX_CTAS > 1 ? MAX_CTAS + 1 : 1)  // in clusters: one set for all CTAs, and one per CTA

// `rows`: warps with a row of read records; `warps`: warps in the table of threads.
struct Shape { u32 warps, rows, cells; u64 threads, vectors, deposits, flags, engine, coarse, writes, reads, size, tag; };

// Entries of a clock. With asynchronous engines: epochs of the warps, epochs that have passed a proxy fence, phases of mbarriers.
// In clusters also: epochs learnt through edges whose scope is too narrow.
#if CONSAN_ENGINE
#define VECTOR CLOCK
#define VECTOR_ROWS (2 * MAX_WARPS)  // two per warp: what all its lanes have observed, and what some lanes have observed
#else
#define VECTOR MAX_WARPS
#define VECTOR_ROWS MAX_WARPS
#endif

// Clocks of an mbarrier: one per parity. In clusters two more, for arrivals from other CTAs.
#define MBARRIER_CLOCKS (CONSAN_CLUSTER ? 4u : 2u)
#define ENGINE_AT ((sizeof(Slot) + 127) / 128 * 128)  // directly behind the slot's head
#if CONSAN_ENGINE
#define GLOBALS_AT (ENGINE_AT + sizeof(Engine) + MBARRIERS * (sizeof(MBarrier) + MBARRIER_CLOCKS * CLOCK * 4 + MAX_WARPS * 4) + OPERATIONS * (sizeof(OperationRecord) + 8))
#define TABLES_AT ((GLOBALS_AT + sizeof(Globals) + 127) / 128 * 128)
#define GLOBALS_BYTES (TABLES_AT - GLOBALS_AT + sizeof(GlobalTables))
#define ENGINE_BYTES (GLOBALS_AT - ENGINE_AT + GLOBALS_BYTES)
// Coarse table. A block is 128 bytes, a superblock 16 blocks.
// Per block: last operation listed, its place if it begins here, whether the whole block was found written, and the words that
// generic writes have reached (8 bytes). Per superblock: start of the interval of the last generic read, epoch of the last generic write.
// Per warp and block, and per warp and superblock: last read, last write, group of the last cp.async.
#define COARSE_ROW(BYTES) (((BYTES) / BLOCK_BYTES + 3) / 4 * 16)
#define SUPER_ROW(ROW) (((ROW) / 64 + 4) / 4 * 16)
#define COARSE_BYTES(BYTES, WARPS) align_up(COARSE_ROW(BYTES) * (7ull + 3 * (WARPS)) + SUPER_ROW(COARSE_ROW(BYTES)) * (3ull * (WARPS)), 128)
static_assert(sizeof(Engine) % 8 == 0, "Engine");
#else
#define ENGINE_BYTES 0
#define COARSE_BYTES(BYTES, WARPS) 0
#endif

DEVICE u64 align_up(u64 value, u64 to) { return (value + to - 1) / to * to; }

// Rounding up cells and warps lets similar launches share slots.
DEVICE Shape shape_of(u32 threads, u32 shared_bytes) {
    Shape s;
#if CONSAN_CLUSTER
    // A block of the coarse table must not span two CTAs.
    u32 warps = cluster_size() << shift_of(threads), step = 2048;
#else
    u32 warps = (threads + 31) / 32, step = 256;
#endif
    s.warps = warps <= 1 ? 1 : 1u << (32 - __clz(warps - 1));
    s.rows = CONSAN_CLUSTER ? s.warps : min(s.warps, (warps + 1) & ~1u);
    while (shared_bytes > step * 8) step *= 2;
    s.cells = (u32)align_up(shared_bytes ? shared_bytes : 1, step) / CONSAN_GRANULE;
#if CONSAN_CLUSTER
    s.cells *= cluster_size();
#endif
    s.engine = ENGINE_AT;
    s.threads = align_up(ENGINE_AT + ENGINE_BYTES, 128);
    s.vectors = s.threads + (u64)s.warps * 32 * THREAD_BYTES;
#if CONSAN_PARTIAL
    s.deposits = s.vectors + (u64)VECTOR_ROWS * VECTOR * 4;
    s.flags = s.deposits + (u64)DEPOSIT_PLACES * BARRIER_GENERATIONS * VECTOR * 8;
    s.coarse = s.flags + (u64)FLAG_CELLS * FLAG_SETS * VECTOR * 4;
#else
    s.deposits = s.flags = s.coarse = s.vectors;
#endif
    s.writes = s.coarse + COARSE_BYTES(s.cells * CONSAN_GRANULE, s.rows);
    s.reads = s.writes + (u64)s.cells * 8;
    s.size = align_up(s.reads + (u64)s.cells * 4 * (s.rows + 1), 256);  // one extra row: the summary of `read_in_interval`
    s.tag = 1ull << 63 | (u64)(CONSAN_GRANULE | CONSAN_PARTIAL << 3 | CONSAN_ENGINE << 4 | CONSAN_CLUSTER << 5 | CONSAN_ASYNC << 10 | CONSAN_NAMED << 11) << 44 | (u64)s.rows << 32 | s.cells;
    return s;
}

DEVICE u64 class_bytes(u32 index) { return (4ull + index % 4) << (CLASS_SHIFT - 2 + index / 4); }
DEVICE u32 size_class(u64 bytes) {
    u32 index = 4 * (max(63 - __clzll(bytes - 1), CLASS_SHIFT) - CLASS_SHIFT);
    while (class_bytes(index) < bytes) ++index;
    return index;
}

// The key of a slot: all threads that share the slot compute the same key. While the slot is being acquired, the directory holds the
// key with its lowest bit clear.
DEVICE u64 cta_key() {
#if CONSAN_CLUSTER
    u64 place = linear_cluster();
#else
    u64 place = linear_cta();
#endif
    return (grid_id() & 0x7fffff) << 41 | (place & 0x7fffffffffull) << 2 | 3;
}
DEVICE u32 home_of(u64 key) { return (u32)((key * 0x9E3779B97F4A7C15ull) >> 44) % DIRECTORY_ENTRIES; }

COLD void clear_bytes(u64 at, u64 bytes) {
    for (u64 i = 0; i < bytes; i += 16)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;\n\tst.relaxed.gpu.global.u64 [%0+8], %1;" :: "l"(at + i), "l"(0ull) : "memory");
}

COLD u64 claim_free(u64 runtime, u32 index, u64 tag, bool any_shape, const Shape &s) {
    u64 list = load64(FIELD(runtime, Runtime, class_slots)) + (u64)index * SLOTS_PER_CLASS * 8;
    u32 count = min(gpu_load32(FIELD(runtime, Runtime, class_count) + 4 * index), SLOTS_PER_CLASS), start = count ? (u32)(linear_cta() % count) : 0;
    for (u32 i = 0; i < count; ++i) {
        u64 slot = gpu_load64(list + (u64)((start + i) % count) * 8);
        if (!slot || gpu_load64(FIELD(slot, Slot, owner)) || (!any_shape && gpu_load64(FIELD(slot, Slot, shape)) != tag)) continue;
        if (gpu_swap64(FIELD(slot, Slot, owner), 0, 1)) continue;
        if (gpu_load64(FIELD(slot, Slot, shape)) == tag) return slot;
        if (any_shape) {
            clear_bytes(slot + offsetof(Slot, threads), s.size - offsetof(Slot, threads));
            gpu_store64(FIELD(slot, Slot, shape), 0);
            gpu_add32(FIELD(runtime, Runtime, stolen_slots), 1);
            return slot;
        }
        gpu_release64(FIELD(slot, Slot, owner), 0);
    }
    return 0;
}

// Newly cut memory is zero, because the host clears the arena once.
COLD u64 cut_slot(u64 runtime, u32 index) {
    u64 bytes = class_bytes(index), limit = load64(FIELD(runtime, Runtime, arena_bytes));
    if (gpu_load64(FIELD(runtime, Runtime, arena_next)) + bytes > limit) return 0;
    u64 at = gpu_add64(FIELD(runtime, Runtime, arena_next), bytes);
    if (at + bytes > limit) { gpu_add64(FIELD(runtime, Runtime, arena_next), 0 - bytes); return 0; }
    u32 number = gpu_add32(FIELD(runtime, Runtime, class_count) + 4 * index, 1);
    u64 slot = load64(FIELD(runtime, Runtime, arena)) + at;
    gpu_store64(FIELD(slot, Slot, owner), 1);
    // If the list is full, the slot cannot be found again after this CTA. Nothing else is lost.
    if (number < SLOTS_PER_CLASS) gpu_release64(load64(FIELD(runtime, Runtime, class_slots)) + ((u64)index * SLOTS_PER_CLASS + number) * 8, slot);
    return slot;
}

// Hints: the slot that a CTA of this shape released on this multiprocessor. The owner word decides who gets a slot, so a lost or
// stale hint costs a longer search only. Hints make acquisition O(1) and find the slot that is in this multiprocessor's cache.
DEVICE u32 hint_bucket(u64 tag, u32 sm) { return (u32)((tag * 0x9E3779B97F4A7C15ull) >> 59) % HINT_SHAPES * HINT_PLACES + sm % HINT_PLACES; }

// A cluster's slot returns to the multiprocessor that took it. The last thread of the cluster may exit on another one, which may
// never ask for this shape; the arena would then be cut up completely.
COLD void leave_hint(u64 runtime, u64 slot) {
#if CONSAN_CLUSTER
    u32 sm = load32(FIELD(slot, Slot, home));
#else
    u32 sm = sm_id();
#endif
    u32 bucket = hint_bucket(gpu_load64(FIELD(slot, Slot, shape)), sm);
    u32 top = gpu_add32(load64(FIELD(runtime, Runtime, hint_tops)) + 4ull * bucket, 1);
    gpu_store64(load64(FIELD(runtime, Runtime, hints)) + 8ull * (bucket * HINT_DEPTH + top % HINT_DEPTH), slot);
}

COLD u64 take_hint(u64 runtime, u64 tag) {
    u32 bucket = hint_bucket(tag, sm_id()), top = gpu_load32(load64(FIELD(runtime, Runtime, hint_tops)) + 4ull * bucket);
    for (u32 i = 1; i <= min(top, HINT_DEPTH); ++i) {
        u64 at = load64(FIELD(runtime, Runtime, hints)) + 8ull * (bucket * HINT_DEPTH + (top - i) % HINT_DEPTH);
        if (!gpu_load64(at)) continue;
        u64 slot = gpu_exchange64(at, 0);
        if (slot && gpu_load64(FIELD(slot, Slot, shape)) == tag && !gpu_swap64(FIELD(slot, Slot, owner), 0, 1)) {
            if (gpu_load64(FIELD(slot, Slot, shape)) == tag) return slot;
            gpu_release64(FIELD(slot, Slot, owner), 0);
        }
    }
    return 0;
}

COLD u64 acquire_slot(u64 runtime, const Shape &s) {
    u32 index = size_class(s.size);
    if (index >= CLASS_COUNT) return 0;
    u64 slot = take_hint(runtime, s.tag);
    if (!slot) slot = cut_slot(runtime, index);
    if (!slot) slot = claim_free(runtime, index, s.tag, false, s);
    // The arena is used up. Take a free slot of this class or of a larger one; launches of another shape may hold all of this class.
    for (; !slot && index < CLASS_COUNT; ++index) slot = claim_free(runtime, index, s.tag, true, s);
    return slot;
}

#if CONSAN_ENGINE
COLD void prepare_globals(u64 globals) {
    for (u32 i = 0; i < sizeof(Globals); i += 8) gpu_store64(globals + i, 0);
}

// Forgets mbarriers and operations. Phases and sequence numbers continue, so entries that an earlier CTA left in the clocks are older
// than everything of this CTA.
COLD void prepare_engine(u64 engine, u32 open) {
    u32 operations = gpu_load32(FIELD(engine, Engine, op_next));
    gpu_store64(FIELD(engine, Engine, op_next), pack(operations, operations));
    gpu_store64(FIELD(engine, Engine, op_count), pack(0, operations));
    gpu_store64(FIELD(engine, Engine, barrier_count), 0);
    gpu_store64(FIELD(engine, Engine, elsewhere), 0);
    gpu_store64(FIELD(engine, Engine, open), open);
    gpu_store64(FIELD(engine, Engine, phase_base), pack(gpu_load32(FIELD(engine, Engine, phase_base)), operations));
    for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(engine, Engine, acquired) + 4 * w, 0);
    for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(engine, Engine, fenced) + 4 * w, 0);
    for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(engine, Engine, at_main) + 4 * w, 0);
    for (u32 w = 0; w < MAX_WARPS; ++w) gpu_store64(FIELD(engine, Engine, waiting) + 8 * w, 0);
    for (u32 w = 0; w < 4 * MAX_WARPS; ++w) gpu_store64(FIELD(engine, Engine, copies_done) + 8 * w, 0);
    for (u32 i = 0; i < MBARRIERS; i += 2) gpu_store64(FIELD(engine, Engine, keys) + 4 * i, 0);
    prepare_globals(engine + (GLOBALS_AT - ENGINE_AT));
}

#define PHASE_LIMIT (1u << 20)

// Runs before the slot is handed on. The next CTA's phases begin above all of this one's, at an even number, so that parities agree.
COLD void release_engine(u64 slot, bool wrapped) {
    u64 engine = load64(FIELD(slot, Slot, engine));
    u32 count = min(load32(FIELD(engine, Engine, barrier_count)), MBARRIERS), next = load32(FIELD(engine, Engine, phase_base));
    for (u32 i = 0; i < count; ++i) next = max(next, (u32)(load64(engine + sizeof(Engine) + i * sizeof(MBarrier)) >> 42) + 1);
    next = (next + 2) & ~1u;
    if (wrapped || next > PHASE_LIMIT || load32(FIELD(engine, Engine, op_next)) > 1u << 30) {
        u64 vectors = load64(FIELD(slot, Slot, vectors));
        clear_bytes(vectors, load64(FIELD(slot, Slot, writes)) - vectors);
        clear_bytes(engine, ENGINE_BYTES);
        next = 0;
    }
    store32(FIELD(engine, Engine, phase_base), next);
}
#endif

#if CONSAN_ASYNC
DEVICE u64 source_range(u64 slot, u32 i) { return FIELD(slot, Slot, sources) + 16 * i; }
#endif

COLD void prepare_slot(u64 slot, u64 runtime, const Shape &s, u32 threads, u32 shared_bytes, u32 module, u32 entry, u64 directory) {
    if (gpu_load64(FIELD(slot, Slot, shape)) != s.tag) {
        gpu_store64(FIELD(slot, Slot, writes), slot + s.writes);
        gpu_store64(FIELD(slot, Slot, reads), slot + s.reads);
        gpu_store64(FIELD(slot, Slot, threads), slot + s.threads | (u64)(31 - __clz(s.warps)) << 56);
        gpu_store64(FIELD(slot, Slot, vectors), slot + s.vectors);
        gpu_store64(FIELD(slot, Slot, deposits), slot + s.deposits);
        gpu_store64(FIELD(slot, Slot, flags), slot + s.flags);
        gpu_store64(FIELD(slot, Slot, engine), slot + s.engine);
        gpu_store64(FIELD(slot, Slot, coarse), slot + s.coarse);
        gpu_store64(FIELD(slot, Slot, size), s.size);
        gpu_store64(FIELD(slot, Slot, runtime), runtime);
        gpu_store64(FIELD(slot, Slot, low), pack(0, shared_bytes));
        gpu_store64(FIELD(slot, Slot, row), pack(s.cells * 4, 1));
        gpu_store64(FIELD(slot, Slot, read_scrub) & ~7ull, 0ull);
        for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(slot, Slot, row_scrub) + 4 * w, pack(1, 1));
        gpu_store64(FIELD(slot, Slot, write_scrub), pack(1, 0));
        gpu_store64(FIELD(slot, Slot, shape), s.tag);
    }
    u32 base = (u32)(gpu_load64(FIELD(slot, Slot, row)) >> 32);
    gpu_store64(FIELD(slot, Slot, low), pack(reserved_shared(), shared_bytes));
    gpu_store64(FIELD(slot, Slot, state), pack(base, base));
    gpu_store64(FIELD(slot, Slot, directory), directory);
#if CONSAN_CLUSTER
    u32 ranks = cluster_size(), shift = shift_of(threads);
    gpu_store64(FIELD(slot, Slot, cta_bytes), pack(s.cells / ranks * CONSAN_GRANULE, shift));
    gpu_store64(FIELD(slot, Slot, ctas), pack(ranks, sm_id()));
    for (u32 c = 0; c < MAX_CTAS; c += 2) {
        gpu_store64(FIELD(slot, Slot, visitors) + 4 * c, 0);
        gpu_store64(FIELD(slot, Slot, gone) + 4 * c, 0);
        gpu_store64(FIELD(slot, Slot, exits) + 4 * c, 0);
    }
    for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(slot, Slot, started) + 4 * w, 0);
    for (u32 w = 0; w < MAX_WARPS; ++w) {
        gpu_store64(FIELD(slot, Slot, cluster_waits) + 8 * w, 0);
        gpu_store64(FIELD(slot, Slot, cluster_arrivals) + 8 * w, 0);
    }
    gpu_store64(FIELD(slot, Slot, thread_count), pack(threads, ranks << shift));
#else
    gpu_store64(FIELD(slot, Slot, thread_count), pack(threads, (threads + 31) / 32));
#endif
    gpu_store64(FIELD(slot, Slot, entry), pack(entry & 0x7fffffff, module));
    gpu_store64(FIELD(slot, Slot, latest), pack(base, 0));
    gpu_store64(FIELD(slot, Slot, found_any), (u64)gpu_load32(FIELD(slot, Slot, read_scrub)) << 32);
    for (u32 c = 0; c < MAX_CTAS; ++c) gpu_store64(FIELD(slot, Slot, full_epoch) + 8 * c, pack(base, base));
#if CONSAN_ASYNC
    for (u32 i = 0; i < SOURCE_RANGES; ++i) {
        gpu_store64(source_range(slot, i), ~0ull);
        gpu_store64(source_range(slot, i) + 8, 0);
    }
#endif
    gpu_store64(FIELD(slot, Slot, result_low), ~0ull);
    gpu_store64(FIELD(slot, Slot, result_high), 0);
    gpu_store64(FIELD(slot, Slot, flight_low), ~0ull);
    gpu_store64(FIELD(slot, Slot, flight_high), 0);
    for (u32 w = 0; w < MAX_WARPS; w += 2) gpu_store64(FIELD(slot, Slot, epochs) + 4 * w, pack(base, base));
    if (gpu_load32(FIELD(slot, Slot, lanes_left))) {
        for (u32 i = 0; i < NAMED_BARRIERS * MAX_WARPS; i += 2) gpu_store64(FIELD(slot, Slot, named_lanes) + 4 * i, 0);
        for (u32 i = 0; i < MAX_WARPS; i += 2) gpu_store64(FIELD(slot, Slot, split) + 4 * i, 0);
        for (u32 i = 0; i < MAX_WARPS; i += 2) gpu_store64(FIELD(slot, Slot, exited) + 4 * i, 0);
        gpu_store32(FIELD(slot, Slot, lanes_left), 0);
    }
#if CONSAN_PARTIAL
    for (u32 i = 0; i < MAX_WARPS; i += 2) gpu_store64(FIELD(slot, Slot, exited) + 4 * i, 0);
#endif
#if CONSAN_ENGINE
    prepare_engine(slot + s.engine, entry >> 31);
#endif
    // Generations continue, so a deposit of an earlier CTA never outranks one of this CTA.
    for (u32 b = 0; b < NAMED_BARRIERS * MAX_CTAS; ++b) gpu_store64(FIELD(slot, Slot, named) + 8 * b, pack(0, (u32)(gpu_load64(FIELD(slot, Slot, named) + 8 * b) >> 32) + 1));
}

COLD void insert_cta(u64 runtime, u64 key, u32 module, u32 entry) {
    u64 table = load64(FIELD(runtime, Runtime, directory));
    u32 index = home_of(key);
    while (gpu_swap64(table + (u64)index * sizeof(Directory), 0, key & ~1ull)) index = (index + 1) % DIRECTORY_ENTRIES;
    u64 place = table + (u64)index * sizeof(Directory);
    u32 threads = thread_total(), bytes = total_shared();
    u64 slot = NO_SLOT;
    u32 limit = gpu_load32(FIELD(runtime, Runtime, cta_limit));
#if CONSAN_CLUSTER
    u32 ctas = cluster_size();
    bool watched = limit == 0 || linear_cluster() * ctas < limit;
#else
    u32 ctas = 1;
    bool watched = limit == 0 || linear_cta() < limit;
#endif
    // A cluster launch that the host did not announce: this variant would treat each CTA as a grid CTA and misread its addresses.
    if (watched && cluster_size() > MAX_CTAS) gpu_add64(FIELD(runtime, Runtime, foreign_ctas), ctas);
    else if (watched) {
        Shape s = shape_of(threads, bytes);
        slot = acquire_slot(runtime, s);
        if (slot) { prepare_slot(slot, runtime, s, threads, bytes, module, entry, place); gpu_add64(FIELD(runtime, Runtime, checked_ctas), ctas); }
        else { slot = NO_SLOT; gpu_add64(FIELD(runtime, Runtime, dropped_ctas), ctas); }
    }
    gpu_store64(FIELD(place, Directory, exited), 0);
    gpu_store64(FIELD(place, Directory, slot), slot);
    gpu_release64(place, key);
}

// The directory place of this CTA; polls until thread 0 has inserted it. The caller fences afterwards: an acquire load in the loop would
// empty the L1 cache of the multiprocessor at every poll. Most CTAs are at their home place or close to it, so a search that fails
// soon restarts there: until thread 0 has inserted the key, a longer search is wasted.
DEVICE u64 find_cta(u64 runtime, u64 key) {
    u64 table = load64(FIELD(runtime, Runtime, directory));
    u32 home = home_of(key);
#pragma unroll 1
    for (u32 span = 4;; span = min(span + 4, DIRECTORY_ENTRIES)) {
#pragma unroll 1
        for (u32 step = 0; step < span; ++step) {
            u64 place = table + (u64)((home + step) % DIRECTORY_ENTRIES) * sizeof(Directory);
            if ((gpu_load64(place) | 1) != key) continue;
            while (gpu_load64(place) != key) {}
            return place;
        }
    }
}

// Thread records are transposed word by word, so that the lanes of a warp access neighbouring words. The handle of a record is the
// address of its first word; its top byte holds the logarithm of the number of warps.
DEVICE u64 thread_record(u64 slot, u32 thread) { return load64(FIELD(slot, Slot, threads)) + 8ull * thread; }
DEVICE u64 thread_word(u64 handle, u32 offset) {
    return (handle & ((1ull << 56) - 1)) + ((u64)(offset / 8) << (8 + (u32)(handle >> 56))) + offset % 8;
}
#define THREAD_FIELD(HANDLE, NAME) thread_word(HANDLE, offsetof(Thread, NAME))
#define THREAD_WORD(HANDLE, NAME, INDEX) thread_word(HANDLE, offsetof(Thread, NAME) + 8 * (INDEX))

COLD void clear_words(u64 thread, u32 first, u32 end) {
    for (u32 i = first; i < end; i += 8) store64(thread_word(thread, i), 0);
}

// This is most of what a short CTA writes. It clears the lengths of address ranges and leaves the addresses.
COLD void reset_thread(u64 slot, u32 me) {
    u64 at = thread_record(slot, me), state = load64(FIELD(slot, Slot, state));
    store64(THREAD_FIELD(at, state), state);
    clear_words(at, offsetof(Thread, full_barriers), min((u32)THREAD_BYTES, (u32)offsetof(Thread, range_address)));
#if CONSAN_ASYNC
    clear_words(at, offsetof(Thread, range_info), THREAD_BYTES);
#endif
}

DEVICE u32 read_age(u32 entry, u32 epoch) { return (epoch - (entry >> 20)) & READ_EPOCH_MASK; }

DEVICE bool outlived(u32 entry, u32 epoch) { return entry && read_age(entry, epoch) > READ_PERIOD; }

// Removes the entries of a row that are older than a period, several at a time. Where mbarriers advance epochs, one lane may do this
// alone while the other threads of a pipeline wait for it. Elsewhere whole warps do it, and more entries at a time would spill registers.
// It uses compare-and-swap because other warps clear the row of an exited warp, and "exited" is inferred from the age of the row.
#define ENTRIES_AT_ONCE (CONSAN_ENGINE ? 16 : 4)
DEVICE void scrub_entries(u64 row, u32 cells, u32 epoch, u32 mask) {
#pragma unroll 1
    for (u32 c = ENTRIES_AT_ONCE * lanes_below(mask); c < cells; c += ENTRIES_AT_ONCE * __popc(mask)) {
        u32 entries[ENTRIES_AT_ONCE], old = 0;
        load_entries<ENTRIES_AT_ONCE>(row + 4 * c, entries);
        for (u32 i = 0; i < ENTRIES_AT_ONCE; ++i) old |= (u32)outlived(entries[i], epoch) << i;
#pragma unroll 1
        for (; old; old &= old - 1) {
            u64 at = row + 4 * (c + __ffs(old) - 1);
            u32 entry = load32(at);
            if (outlived(entry, epoch)) swap32(at, entry, 0);
        }
    }
}

COLD void scrub_row(u64 slot, u32 warp, u32 epoch) {
    u32 cells = load32(FIELD(slot, Slot, row)) / 4;
    scrub_entries(load64(FIELD(slot, Slot, reads)) + (u64)(warp + 1) * cells * 4, cells, epoch, active_mask());
}

// With whole-CTA barriers only, all living warps cross a period in the same interval. A row that lags two periods belongs to an
// exited warp, and another warp must clear it. With partial barriers the age of an entry is counted in epochs of its own warp,
// which stop at its exit, so nothing has to be done.
COLD void scrub_reads(u64 slot, u32 me, u32 epoch) {
    scrub_row(slot, me >> 5, epoch);
    store32(FIELD(slot, Slot, row_scrub) + 4 * (me >> 5), epoch);
#if !CONSAN_PARTIAL
    for (u32 w = 0; w < load32(FIELD(slot, Slot, warp_count)); ++w)
        if (epoch - load32(FIELD(slot, Slot, row_scrub) + 4 * w) >= 2 * READ_PERIOD) scrub_row(slot, w, epoch);
#endif
}

// Marks write records older than a period as `old`: initialised, and ordered before everything. With partial barriers it marks
// records of this warp only. Bound: a warp that has not synchronised with the writer for 2^(WRITE_EPOCH_BITS-2) of the writer's
// releases does not find the missing edge.
COLD void scrub_writes(u64 slot, u32 me, u32 epoch) {
    u32 mask = active_mask(), lanes = __popc(mask), cells = load32(FIELD(slot, Slot, row)) / 4;
    u64 writes = load64(FIELD(slot, Slot, writes));
    u32 base = load32(FIELD(slot, Slot, base));
    for (u32 c = lanes_below(mask); c < cells; c += lanes) {
        u64 record = load64(writes + 8 * c);
        u32 high = (u32)(record >> 32), age = (epoch - (high >> EPOCH_SHIFT)) & WRITE_EPOCH_MASK;
        bool mine = !CONSAN_PARTIAL || record_warp(record) == me >> 5;
        if (!record || !mine || high & 1 || age <= WRITE_PERIOD) continue;
        // A copy stays a copy until its group has been waited for. Only its epoch is renewed.
        if (high & 2 && age <= epoch - base) {
            swap64(writes + 8 * c, record, (record & (1ull << 32 + EPOCH_SHIFT) - 1) | (u64)(epoch & WRITE_EPOCH_MASK) << 32 + EPOCH_SHIFT);
            continue;
        }
        // A record of an earlier CTA, or a marker of an uninitialised read: not initialised. The first period of a CTA ends before a
        // stale record could alias, so later scrubs cannot confuse the two.
        bool stale = age > epoch - base || record & 1u << 14;
        swap64(writes + 8 * c, record, stale ? 0 : (record | 1ull << 32) & ~(2ull << 32));
    }
    store32(FIELD(slot, Slot, has_old), 1);
}

// Must be called at every change of a thread's epoch.
DEVICE void epoch_moved(u64 slot, u32 me, u32 before, u32 after) {
    if ((before ^ after) >= READ_PERIOD) scrub_reads(slot, me, after);
    if ((before ^ after) >= WRITE_PERIOD) scrub_writes(slot, me, after);
}

// Runs in the last thread of a CTA. No other thread can use the slot before its owner word is cleared.
COLD void release_slot(u64 slot) {
    u32 next = load32(FIELD(slot, Slot, latest)) + 1, cells = load32(FIELD(slot, Slot, row)) / 4;
    u32 last_write_scrub = load32(FIELD(slot, Slot, write_scrub));
    u64 writes = load64(FIELD(slot, Slot, writes)), reads = load64(FIELD(slot, Slot, reads)), size = load64(FIELD(slot, Slot, size));
    bool wrapped = next >= CONSAN_EPOCH_LIMIT;
    if (wrapped) next = 1;
    if (wrapped || next - last_write_scrub > WRITE_PERIOD || load32(FIELD(slot, Slot, has_old))) {
        clear_bytes(writes, (u64)cells * 8);
        store32(FIELD(slot, Slot, write_scrub), next);
    }
    // A row is stale if neither its warp nor an earlier release has cleared it for two periods.
    u32 rows = (u32)((size - (reads - slot)) / ((u64)cells * 4)) - 1;
    if (wrapped) {
        // Clocks from before the wrap would outrank all later ones. Generations restart with them: at most one per warp and epoch.
        u64 vectors = load64(FIELD(slot, Slot, vectors));
        clear_bytes(vectors, writes - vectors);
        for (u32 b = 0; b < NAMED_BARRIERS * MAX_CTAS; ++b) store64(FIELD(slot, Slot, named) + 8 * b, 0);
#if CONSAN_CLUSTER
        clear_bytes(FIELD(slot, Slot, visits), 8ull * MAX_WARPS * MAX_CTAS);
#endif
        clear_bytes(reads, (u64)cells * 4);
    }
#if CONSAN_ENGINE
    release_engine(slot, wrapped);
#endif
    for (u32 w = 0; w < rows; ++w) {
        bool stale = next - load32(FIELD(slot, Slot, row_scrub) + 4 * w) > 2 * READ_PERIOD;
        if (!wrapped && !stale) continue;
        clear_bytes(reads + (u64)(w + 1) * cells * 4, (u64)cells * 4);
        store32(FIELD(slot, Slot, row_scrub) + 4 * w, next);
    }
    if (load32(FIELD(slot, Slot, found_any)))
        for (u32 i = 0; i < TABLE_ENTRIES / 32; i += 2) store64(FIELD(slot, Slot, found) + 4 * i, 0);
    store32(FIELD(slot, Slot, base), next);
    gpu_fence();
    gpu_release64(FIELD(slot, Slot, owner), 0);
    leave_hint(load64(FIELD(slot, Slot, runtime)), slot);
}

HOOK u64 __consan_enter(u64 runtime, u32 module, u32 entry, u32 counter) {
    if (!runtime) return 0;
    u64 key = cta_key();
    u32 me = self_number(), mask = active_mask();
    if (me == 0) {
        if (linear_cta() == 0) gpu_add64(load64(FIELD(runtime, Runtime, launches)) + 8ull * counter, 1);
        insert_cta(runtime, key, module, entry);
    }
    u64 place = find_cta(runtime, key);
    // Acquires the release of thread 0 and of the slot's previous owner: L1 may hold lines of this slot from an earlier CTA of this SM.
    gpu_fence();
    u64 slot = gpu_load64(FIELD(place, Directory, slot));
    if (slot != NO_SLOT) reset_thread(slot, me);
    // The first thread is delayed. Without this, its warp continued in two parts, on an H200 up to an aligned barrier.
    __syncwarp(mask);
    return slot == NO_SLOT ? 0 : slot;  // unchecked, but still counted out of the directory
}

// The slot of the running CTA, for a called function.
HOOK u64 __consan_find(u64 runtime) {
    if (!runtime) return 0;
    u64 place = find_cta(runtime, cta_key()), slot = gpu_load64(FIELD(place, Directory, slot));
    return slot == NO_SLOT ? 0 : slot;
}

// The shared-space address of the CTA's first own byte.
HOOK u32 __consan_low() { return reserved_shared(); }

#if CONSAN_CLUSTER
// The number of this thread in its cluster.
HOOK u32 __consan_self() { return self_number(); }
#endif

// Where lanes that were told to stop stand, before they leave: behind the findings, so that it survives a lost context too. `place`: a line of
// the PTX, or with STAND_AT_SITE a site.
HOOK void __consan_stands(u64 runtime, u64 slot, u32 module, u32 entry, u32 place) {
    u32 mask = active_mask();
    if (!runtime || lane_id() != __ffs(mask) - 1) return;
    u32 index = gpu_add32(FIELD(runtime, Runtime, stands), 1);
    if (index >= STANDS) { gpu_add32(FIELD(runtime, Runtime, stands_over), __popc(mask)); return; }
    StandRecord r;
    r.valid = 0; r.module = module; r.entry = entry == NO_ENTRY && slot ? load32(FIELD(slot, Slot, entry)) : entry;
    r.place = place; r.warp = linear_tid() >> 5; r.lanes = mask;
    r.ctaid[0] = ctaid_x(); r.ctaid[1] = ctaid_y(); r.ctaid[2] = ctaid_z(); r.pad = 0;
    const u64 *words = (const u64 *)&r;
    u64 at = load64(FIELD(runtime, Runtime, ring)) + (u64)RING_ENTRIES * sizeof(FindingRecord) + (u64)index * sizeof(StandRecord);
    for (u32 i = 1; i < sizeof(r) / 8; ++i) host_store64(at + 8 * i, words[i]);
    host_fence();
    host_store64(at, words[0] | 1);
}

HOOK u32 __consan_poll(u64 runtime) { return runtime ? gpu_load32(FIELD(runtime, Runtime, abort)) : 0; }

// A kernel without checked accesses takes no slot. Its launches are counted all the same.
HOOK void __consan_count(u64 runtime, u32 counter) {
    if (runtime && linear_tid() == 0 && linear_cta() == 0) gpu_add64(load64(FIELD(runtime, Runtime, launches)) + 8ull * counter, 1);
}
