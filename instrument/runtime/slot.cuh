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

#include "records.cuh"

#define NO_SLOT 1ull  // directory value of a CTA that runs unchecked

// Rounding up cells and warps lets similar launches share slots.
DEVICE Shape shape_of(u32 threads, u32 shared_bytes) {
    Shape s;
#if CONSAN_CLUSTER
    u32 warps = cluster_size() << shift_of(threads);
#else
    u32 warps = (threads + 31) / 32;
#endif
    s.warps = POWER_OF_TWO(warps);
    s.rows = CONSAN_CLUSTER ? s.warps : min(s.warps, (warps + 1) & ~1u);
    s.cells = CTA_CELLS(shared_bytes);
#if CONSAN_CLUSTER
    s.cells *= cluster_size();
#endif
    place_tables(s);
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
    for (u32 i = 0; i < count; ++i) next = max(next, state_phase(load64(engine + (MBARRIERS_AT - ENGINE_AT) + i * sizeof(MBarrier))) + 1);
    next = (next + 2) & ~1u;
    if (wrapped || next > PHASE_LIMIT || load32(FIELD(engine, Engine, op_next)) > 1u << 30) {
        u64 vectors = load64(FIELD(slot, Slot, vectors));
        clear_bytes(vectors, load64(FIELD(slot, Slot, writes)) - vectors);
        clear_bytes(engine, THREADS_AT - ENGINE_AT);
        next = 0;
    }
    store32(FIELD(engine, Engine, phase_base), next);
}
#endif

// Writes the addresses of the tables into a slot that is new or had another shape. Its memory is zero.
DEVICE void lay_out(u64 slot, u64 runtime, const Shape &s, u32 shared_bytes) {
    gpu_store64(FIELD(slot, Slot, writes), slot + s.writes);
    gpu_store64(FIELD(slot, Slot, reads), slot + s.reads);
    gpu_store64(FIELD(slot, Slot, threads), slot + s.threads | (u64)(31 - __clz(s.warps)) << 56);
    gpu_store64(FIELD(slot, Slot, vectors), slot + s.vectors);
    gpu_store64(FIELD(slot, Slot, deposits), slot + s.deposits);
    gpu_store64(FIELD(slot, Slot, flags), slot + s.flags);
    gpu_store64(FIELD(slot, Slot, engine), slot + ENGINE_AT);
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

COLD void prepare_slot(u64 slot, u64 runtime, const Shape &s, u32 threads, u32 shared_bytes, u32 module, u32 entry, u64 directory) {
    if (gpu_load64(FIELD(slot, Slot, shape)) != s.tag) lay_out(slot, runtime, s, shared_bytes);
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
    gpu_store64(FIELD(slot, Slot, entry), pack(entry & ~KERNEL_OPEN, module));
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
    prepare_engine(slot + ENGINE_AT, !!(entry & KERNEL_OPEN));
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
