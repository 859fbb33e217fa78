// Bulk and tensor copies, their groups, st.async and proxy fences (R-B1 to R-B9, SEMANTICS section 5).
//
// The shadow credits the bytes of a load to its mbarrier at issue. The kernel's own wait blocks until the real completion; the shadow
// decides by phases what the waiter has observed. A tensor map is read where the copy is issued.
#pragma once

#include "operation.cuh"
#include "barrier.cuh"

#if CONSAN_ENGINE
DEVICE Operation new_operation(const Caller &c, u32 kind, u32 source) {
    Operation o;
    o.kind = kind; o.site = c.site; o.source = source; o.thread = c.me; o.barrier = o.phase = o.group = 0; o.shape = o.shape2 = 0;
    return o;
}

// ---- tensor maps (consan/tensormap/encoding.py has the table of their bits) --------------------------------------------------------------

DEVICE u32 map_word(u64 map, u32 word) { u32 v; asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(map + 4 * word) : "memory"); return v; }

struct Box { u32 rank, size_shift, swizzle, modes, counts[5]; };  // counts: elements along each dimension

// One nibble per element type: the logarithm of its size.
#define ELEMENT_SHIFTS 0x13221332210ull
#define KNOWN_TYPES 11u

DEVICE Box read_box(u64 map) {
    Box box;
    u32 head = map_word(map, 2), steps = map_word(map, 13), outer = map_word(map, 14), type = head >> 7 & 15;
    box.rank = (head >> 4 & 7) + 1;
    box.size_shift = type < KNOWN_TYPES ? (u32)(ELEMENT_SHIFTS >> 4 * type) & 15 : 15;
    box.swizzle = head >> 13 & 3;
    box.modes = head & 0x1801;  // im2col, interleaved
    box.counts[0] = (steps >> 24) + 1;
    for (u32 d = 1; d < 5; ++d) box.counts[d] = d < box.rank ? ((outer >> 8 * (d - 1) & 255) + (steps >> 3 * d & 7) + 1) / ((steps >> 3 * d & 7) + 1) : 1;
    if (box.modes & 0x1800) box.counts[0] = (box.counts[0] + (steps & 7)) / ((steps & 7) + 1);
    return box;
}

// The bytes that one copy moves. An unknown element type has the size that the driver noted.
HOOK u32 __consan_tensor_bytes(u64 map, u32 times) {
    Box box = read_box(map);
    if (box.size_shift == 15) return map_word(map, 16) * times;
    u32 count = box.counts[0];
    if (box.modes & 1) count *= (map_word(map, 15) & 0x3ff) + 1;
    else for (u32 d = 1; d < 5; ++d) count *= box.counts[d];
    return (count << box.size_shift) * times;
}

// Computes which part of a box lies inside the tensor, along each dimension, and what is needed to locate a chunk in it. `shape` holds the
// sizes and inside parts of the outer dimensions, each less one. `shape2` holds both for the innermost dimension, in chunks of 16 bytes,
// the swizzle, and three bits of the base of shared memory. Stores must not have negative coordinates; they count as zero.
DEVICE bool clip(Operation &o, u64 map, const u32 *place, u32 window) {
    Box box = read_box(map);
    if (box.modes || box.size_shift == 15) return true;
    u64 outer = 0, inner = 0;
    u32 rows = 1, last = 0;
    bool whole = true;
    for (u32 d = 0; d < 5; ++d) {
        u32 count = box.counts[d], extent = d < box.rank ? map_word(map, 8 + d) + 1 : 1, begin = (int)place[d] < 0 || d >= box.rank ? 0 : place[d];
        u32 step = d && d < box.rank ? (map_word(map, 13) >> 3 * d & 7) + 1 : 1;
        if (begin >= extent) return false;
        u32 inside = min(count, (extent - begin + step - 1) / step);
        whole &= inside == count;
        if (d) {
            outer |= (u64)(count - 1 | (inside - 1) << 8) << 16 * (d - 1);
            last += (inside - 1) * rows;
            rows *= count;
        } else inner = (count << box.size_shift) / 16 | ((inside << box.size_shift) + 15) / 16 << 8;
    }
    if (whole || !(inner & 255)) return true;
    o.shape = outer;
    o.shape2 = SHAPE_BOX | inner | box.swizzle << 16 | (window >> 7 & 7) << 18;
    o.high = o.low + (last + 1) * ((u32)inner & 255) * 16;
    return true;
}

DEVICE bool box_covers(const Operation &o, u32 low, u32 high) {
    u32 chunks = (u32)o.shape2 & 255, inside = (u32)o.shape2 >> 8 & 255, lines = (1u << ((u32)o.shape2 >> 16 & 3)) - 1, window = ((u32)o.shape2 >> 18 & 7) << 7;
    for (u32 chunk = max(low, o.low) & ~15u; chunk < min(high, o.high); chunk += 16) {
        u32 index = ((chunk ^ ((chunk + window >> 7 & lines) << 4)) - o.low) / 16, row = index / chunks;
        bool in = index % chunks < inside;
        for (u32 d = 0; d < 4 && in; ++d) {
            u32 sizes = (u32)(o.shape >> 16 * d) & 0xffff, count = (sizes & 255) + 1;
            in = row % count <= sizes >> 8;
            row /= count;
        }
        if (in) return true;
    }
    return false;
}

HOOK void __consan_bulk_commit(u64 slot, u64 state, u32 me) {
    if (!slot) return;
    u64 at = THREAD_FIELD(thread_record(slot, me), bulk_commits);
    store32(at, load32(at) + 1);
}

DEVICE void remember_group_wait(u64 thread, u32 history, u32 epoch, u32 retired) {
    u32 oldest = 0;
    u64 least = ~0ull;
    for (u32 i = 0; i < GROUP_WAITS; ++i) {
        u64 wait = load64(thread_word(thread, history + 8 * i));
        if (wait && low_word(wait) == epoch) { oldest = i; break; }
        u64 rank = wait ? pack(low_word(wait), 1) : 0;
        if (rank < least) { least = rank; oldest = i; }
    }
    store64(thread_word(thread, history + 8 * oldest), pack(epoch, retired));
}

// `pending`: groups that may stay in flight. With .read only the sources are complete, which is all that shared memory needs.
HOOK void __consan_bulk_wait(u64 slot, u64 state, u32 me, u32 pending, u32 read_only) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 commits = load32(THREAD_FIELD(thread, bulk_commits));
    store32(THREAD_FIELD(thread, waits_on), 1);
    if (commits <= pending) return;
    u32 done = commits - pending;
    if (!read_only && done > load32(THREAD_FIELD(thread, bulk_retired))) store32(THREAD_FIELD(thread, bulk_retired), done);
    if (done <= load32(THREAD_FIELD(thread, bulk_read))) return;
    store32(THREAD_FIELD(thread, bulk_read), done);
    remember_group_wait(thread, offsetof(Thread, bulk_waits), low_word(state), done);
}

// fence.proxy.async: everything that this thread has observed passes it, in both directions (SEMANTICS section 5). A new epoch follows. In
// clusters, `own_cta`: the fence covers the shared memory of this thread's CTA only (D3).
#if CONSAN_CLUSTER
HOOK u64 __consan_proxy_fence(u64 slot, u64 state, u32 me, u32 own_cta) {
    if (!slot) return state;
    u32 mask = lanes_alike(own_cta), first = own_cta ? rank_of(slot, me) % FENCED_BLOCKS : 0, last = own_cta ? first : FENCED_BLOCKS - 1;
#else
HOOK u64 __consan_proxy_fence(u64 slot, u64 state, u32 me) {
    if (!slot) return state;
    u32 mask = active_mask();
    constexpr u32 first = 0, last = 0;
#endif
    state = together(state, mask);
    u64 row = own_vector(slot, me), target = target_row(slot, me, mask);
    bool some = some_acquired(slot, me, mask);
    u32 warps = load32(FIELD(slot, Slot, warp_count));
    for (u32 w = 4 * lanes_below(mask); w < warps; w += 4 * __popc(mask)) {
        u32 now[4], values[4];
        published(slot, row, w, me, low_word(state), high_word(state), some, values);
        for (u32 block = first; block <= last; ++block) {
            u64 at = target + 4 * (FENCED + block * MAX_WARPS + w);
            load_entries<4>(at, now);
            raise_entries(at, now, values);
        }
    }
    if (lane_id() == __ffs(mask) - 1) raise32(FIELD(engine_of(slot), Engine, fenced) + 4 * (me >> 5), low_word(state));
    __syncwarp(mask);
    return advance(slot, state, me);
}

// ---- exit of a thread, and of the CTA ----------------------------------------------------------------------------------------

COLD void report_at_exit(u64 slot, u64 state, u32 me, const Operation &o, u32 bytes) {
    Caller c = {slot, state, me, o.site, ACCESS_WRITE, o.low, bytes};
    Finding f = make_finding(c, KIND_LIFETIME, REASON_EXIT);
    f.thread = o.thread; f.lifetime.own_operation = kind_of(o);
    describe_operation(c, f.lifetime.completion, o);
    report(slot, f);
}
#endif
