// Scoped memory operations, special registers and warp helpers of the shadow runtime. The macros of its variants are in abi/variant.py.
//
// Only threads of one CTA access its shadow state, and they share one L1 cache, so relaxed operations of .cta scope are coherent.
// CONSAN_CLUSTER widens them to .gpu, because CTAs of a cluster use different L1 caches. State shared by all CTAs (directory,
// arena, ring, table) always uses .gpu scope. No weak load reads shadow state that can change.
#pragma once

#if CONSAN_CLUSTER
#define CONSAN_SCOPE "gpu"
#else
#define CONSAN_SCOPE "cta"
#endif

#define DEVICE_MEMBER __device__ __forceinline__
#define COLD static __device__ __noinline__
#define HOOK extern "C" __device__ __noinline__

struct alignas(16) Pair { u64 x, y; };
struct alignas(16) Quad { u32 x, y, z, w; };

DEVICE u64 load64(u64 at) { u64 v; asm volatile("ld.relaxed." CONSAN_SCOPE ".global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory"); return v; }
DEVICE u32 load32(u64 at) { u32 v; asm volatile("ld.relaxed." CONSAN_SCOPE ".global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory"); return v; }
DEVICE void store64(u64 at, u64 v) { asm volatile("st.relaxed." CONSAN_SCOPE ".global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void store32(u64 at, u32 v) { asm volatile("st.relaxed." CONSAN_SCOPE ".global.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE u64 exchange64(u64 at, u64 v) { u64 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.exch.b64 %0, [%1], %2;" : "=l"(o) : "l"(at), "l"(v) : "memory"); return o; }
DEVICE u64 swap64(u64 at, u64 old, u64 v) { u64 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.cas.b64 %0, [%1], %2, %3;" : "=l"(o) : "l"(at), "l"(old), "l"(v) : "memory"); return o; }
// Weak loads, for words that are constant while a CTA runs (the geometry of a slot), so that they may hit L1.
DEVICE void constant_pair(u64 at, u64 &a, u64 &b) { asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(at)); }
DEVICE u32 swap32(u64 at, u32 old, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.cas.b32 %0, [%1], %2, %3;" : "=r"(o) : "l"(at), "r"(old), "r"(v) : "memory"); return o; }
DEVICE u32 or32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.or.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 and32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.and.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 add32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE void raise32(u64 at, u32 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.max.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void raise64(u64 at, u64 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.max.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void set_bits(u64 at, u32 v) { asm volatile("red.release." CONSAN_SCOPE ".global.or.b32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void or_bits(u64 at, u32 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.or.b32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void clear_bits(u64 at, u32 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.and.b32 [%0], %1;" :: "l"(at), "r"(~v) : "memory"); }
DEVICE void lower64(u64 at, u64 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.min.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }

// Consecutive entries and records, aligned to 16 bytes. Each element is a separate relaxed operation.
template <u32 COUNT> DEVICE void load_entries(u64 at, u32 *out) {
    if constexpr (COUNT % 4 == 0) {
        for (u32 i = 0; i < COUNT; i += 4)
            asm volatile("ld.relaxed." CONSAN_SCOPE ".global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(out[i]), "=r"(out[i + 1]), "=r"(out[i + 2]), "=r"(out[i + 3]) : "l"(at + 4 * i) : "memory");
    } else {
        for (u32 i = 0; i < COUNT; ++i) out[i] = load32(at + 4 * i);
    }
}

template <u32 COUNT> DEVICE void store_entries(u64 at, const u32 *in) {
    if constexpr (COUNT % 4 == 0) {
        for (u32 i = 0; i < COUNT; i += 4)
            asm volatile("st.relaxed." CONSAN_SCOPE ".global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(at + 4 * i), "r"(in[i]), "r"(in[i + 1]), "r"(in[i + 2]), "r"(in[i + 3]) : "memory");
    } else {
        for (u32 i = 0; i < COUNT; ++i) store32(at + 4 * i, in[i]);
    }
}

template <u32 COUNT> DEVICE void load_records(u64 at, u64 *out) {
    if constexpr (COUNT % 2 == 0) {
        for (u32 i = 0; i < COUNT; i += 2)
            asm volatile("ld.relaxed." CONSAN_SCOPE ".global.v2.u64 {%0, %1}, [%2];" : "=l"(out[i]), "=l"(out[i + 1]) : "l"(at + 8 * i) : "memory");
    } else {
        for (u32 i = 0; i < COUNT; ++i) out[i] = load64(at + 8 * i);
    }
}

DEVICE u64 gpu_load64(u64 at) { u64 v; asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory"); return v; }
DEVICE u32 gpu_load32(u64 at) { u32 v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory"); return v; }
DEVICE void gpu_release64(u64 at, u64 v) { asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void gpu_store32(u64 at, u32 v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void gpu_store64(u64 at, u64 v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE u64 gpu_swap64(u64 at, u64 old, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(o) : "l"(at), "l"(old), "l"(v) : "memory"); return o; }
DEVICE u64 gpu_exchange64(u64 at, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(o) : "l"(at), "l"(v) : "memory"); return o; }
DEVICE u64 gpu_add64(u64 at, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(o) : "l"(at), "l"(v) : "memory"); return o; }
DEVICE u32 gpu_add32(u64 at, u32 v) { u32 o; asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 gpu_or32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE void gpu_count32(u64 at, u32 v) { asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void gpu_max32(u64 at, u32 v) { asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
// The ring is in host memory: system scope, one 8-byte store at a time.
DEVICE void host_store64(u64 at, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void host_fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
DEVICE void gpu_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Orders this thread's own record before its look at the other side's (the store-buffering pattern). Only a sequentially consistent
// fence prevents both threads from missing each other.
DEVICE void record_fence() { asm volatile("fence.sc." CONSAN_SCOPE ";" ::: "memory"); }

#define SPECIAL(NAME, REGISTER) DEVICE u32 NAME() { u32 v; asm volatile("mov.u32 %0, " REGISTER ";" : "=r"(v)); return v; }
SPECIAL(tid_x, "%%tid.x") SPECIAL(tid_y, "%%tid.y") SPECIAL(tid_z, "%%tid.z")
SPECIAL(ntid_x, "%%ntid.x") SPECIAL(ntid_y, "%%ntid.y") SPECIAL(ntid_z, "%%ntid.z")
SPECIAL(ctaid_x, "%%ctaid.x") SPECIAL(ctaid_y, "%%ctaid.y") SPECIAL(ctaid_z, "%%ctaid.z")
SPECIAL(nctaid_x, "%%nctaid.x") SPECIAL(nctaid_y, "%%nctaid.y") SPECIAL(nctaid_z, "%%nctaid.z")
SPECIAL(sm_id, "%%smid") SPECIAL(lane_id, "%%laneid") SPECIAL(total_shared, "%%total_smem_size")
DEVICE u64 grid_id() { u64 v; asm volatile("mov.u64 %0, %%gridid;" : "=l"(v)); return v; }
// Shared-space address of the CTA's first own byte. The reserved region, if there is one, lies before it. Its whole size is `cap`;
// `end` is only the end of the part that the system uses (observed on sm_90: begin 0, cap 1024).
DEVICE u32 reserved_shared() {
#if __CUDA_ARCH__ < 800
    return 0;
#else
    u32 begin, cap;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(begin));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_cap;" : "=r"(cap));
    return begin == 0 ? cap : 0;
#endif
}
// Lane masks. Hardware may reconverge lanes inside a function that they entered one after another, so lanes with different masks execute
// one instruction. ptxas assumes that a mask from a vote or activemask is uniform: it takes the mask of one lane for all (R2UR, BRA.CONV),
// so some lanes continue without the others, which then wait for ever (observed on an H200). A bit that differs
// from lane to lane, and is set already, makes ptxas use each lane's own mask.
DEVICE u32 per_lane(u32 mask) { return mask | 1u << lane_id(); }
DEVICE u32 active_mask() { u32 v; asm volatile("activemask.b32 %0;" : "=r"(v)); return per_lane(v); }
// The active lanes with the same key, for code that depends on the key.
DEVICE u32 lanes_alike(u32 key) { return __match_any_sync(active_mask(), key); }
// The usual case, a whole warp, does not need each lane's mask.
DEVICE void converge(u32 mask) { mask == ~0u ? __syncwarp() : __syncwarp(mask); }
DEVICE u32 maximum_over(u32 mask, u32 value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(mask, value);
#else
    for (u32 lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1) value = max(value, __shfl_sync(mask, value, lane));
    return value;
#endif
}
DEVICE u32 lanes_below(u32 mask) { return __popc(mask & ((1u << lane_id()) - 1)); }

DEVICE u32 linear_tid() { return tid_x() + ntid_x() * (tid_y() + ntid_y() * tid_z()); }
DEVICE u32 thread_total() { return ntid_x() * ntid_y() * ntid_z(); }
#if __CUDA_ARCH__ >= 900
SPECIAL(cluster_size, "%%cluster_nctarank")
#else
DEVICE u32 cluster_size() { return 1; }
#endif
#if CONSAN_CLUSTER
SPECIAL(cluster_rank, "%%cluster_ctarank")
SPECIAL(cluster_x, "%%clusterid.x") SPECIAL(cluster_y, "%%clusterid.y") SPECIAL(cluster_z, "%%clusterid.z")
SPECIAL(clusters_x, "%%nclusterid.x") SPECIAL(clusters_y, "%%nclusterid.y")
SPECIAL(ctas_x, "%%cluster_nctaid.x") SPECIAL(ctas_y, "%%cluster_nctaid.y") SPECIAL(ctas_z, "%%cluster_nctaid.z")
DEVICE u64 linear_cluster() { return cluster_x() + (u64)clusters_x() * (cluster_y() + (u64)clusters_y() * cluster_z()); }
#endif
DEVICE u64 linear_cta() { return ctaid_x() + (u64)nctaid_x() * (ctaid_y() + (u64)nctaid_y() * ctaid_z()); }

#undef SPECIAL

// Threads and CTAs of a cluster. Thread numbers run through all CTAs. Each CTA has a power of two of warps, at least four, so that
// warpgroups stay whole. Shared memory is one range of offsets, `cta_bytes` of them per CTA. Hooks get an address as the address in the
// CTA of rank 0, with the rank above it (word `address`); the passes compute both with mapa and getctarank.
#define FIELD(POINTER, TYPE, NAME) ((POINTER) + offsetof(TYPE, NAME))
DEVICE u32 low_word(u64 state) { return (u32)state; }         // own epoch
DEVICE u32 high_word(u64 state) { return (u32)(state >> 32); } // epoch at which this barrier interval began
DEVICE u64 pack(u32 low, u32 high) { return (u64)high << 32 | low; }

#if CONSAN_CLUSTER
DEVICE u32 shift_of(u32 threads) { return max(2, 32 - __clz(max((threads + 31) / 32, 2u) - 1)); }
DEVICE u32 self_number() { return (cluster_rank() << 5 + shift_of(thread_total())) + linear_tid(); }
DEVICE u32 weak32(u64 at) { u32 v; asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(at)); return v; }
DEVICE u32 cta_shift(u64 slot) { return weak32(FIELD(slot, Slot, cta_shift)); }
DEVICE u32 cta_bytes(u64 slot) { return weak32(FIELD(slot, Slot, cta_bytes)); }
DEVICE u32 cta_count(u64 slot) { return weak32(FIELD(slot, Slot, ctas)); }
DEVICE u32 rank_of(u64 slot, u32 thread) { return thread >> 5 >> cta_shift(slot); }
DEVICE bool same_cta(u64 slot, u32 warp, u32 other) { return !((warp ^ other) >> cta_shift(slot)); }
#else
DEVICE u32 self_number() { return linear_tid(); }
DEVICE u32 rank_of(u64, u32) { return 0; }
DEVICE bool same_cta(u64, u32, u32) { return true; }
DEVICE u32 cta_count(u64) { return 1; }
#endif
DEVICE u32 tid_of(u64 slot, u32 thread) {
#if CONSAN_CLUSTER
    return thread & (32u << cta_shift(slot)) - 1;
#else
    return thread;
#endif
}
