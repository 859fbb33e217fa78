// Variants of the runtime, chosen per module from what it contains:
//   CONSAN_GRANULE  1, 2, 4   bytes per shadow cell: the narrowest access
//   CONSAN_PARTIAL  0, 1      named, counted or warp barriers (vector clocks), or whole-CTA barriers only (one counter)
//   CONSAN_ASYNC    0, 1      cp.async
//   CONSAN_CLUSTER  0, 1      shadow operations at .gpu scope
//   CONSAN_ENGINE   0, 1      mbarriers, bulk copies, wgmma operands, proxies; needs the two before
//   CONSAN_NAMED    0 to 16   with the engine: barriers with a thread count, how many names at most
//   CONSAN_ISA      0, 1      the stricter reading of the ISA (--policy isa)
//
// Scoped memory operations, special registers and warp helpers of the shadow runtime.
//
// Shadow state of a CTA is touched by that CTA's threads only, which share one L1 cache, so relaxed operations of .cta
// scope are coherent for it; CONSAN_CLUSTER widens them to .gpu, because cluster peers sit behind other L1 caches. State
// shared by all CTAs (directory, arena, ring, table) always uses .gpu scope. No weak load ever reads shadow state.
#pragma once

#if CONSAN_CLUSTER
#define CONSAN_SCOPE "gpu"
#else
#define CONSAN_SCOPE "cta"
#endif

#define DEVICE static __device__ __forceinline__
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
// Weak loads, for words that do not change while a CTA runs (a slot's geometry), so that they may hit L1.
DEVICE void constant_pair(u64 at, u64 &a, u64 &b) { asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(at)); }
DEVICE u32 swap32(u64 at, u32 old, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.cas.b32 %0, [%1], %2, %3;" : "=r"(o) : "l"(at), "r"(old), "r"(v) : "memory"); return o; }
DEVICE u32 or32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.or.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 and32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.and.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 add32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed." CONSAN_SCOPE ".global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE void raise32(u64 at, u32 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.max.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
DEVICE void raise64(u64 at, u64 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.max.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void lower64(u64 at, u64 v) { asm volatile("red.relaxed." CONSAN_SCOPE ".global.min.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }

DEVICE u64 gpu_load64(u64 at) { u64 v; asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory"); return v; }
DEVICE u32 gpu_load32(u64 at) { u32 v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory"); return v; }
DEVICE u64 gpu_acquire64(u64 at) { u64 v; asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory"); return v; }
DEVICE void gpu_release64(u64 at, u64 v) { asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void gpu_store64(u64 at, u64 v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE u64 gpu_swap64(u64 at, u64 old, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(o) : "l"(at), "l"(old), "l"(v) : "memory"); return o; }
DEVICE u64 gpu_exchange64(u64 at, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(o) : "l"(at), "l"(v) : "memory"); return o; }
DEVICE u64 gpu_add64(u64 at, u64 v) { u64 o; asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(o) : "l"(at), "l"(v) : "memory"); return o; }
DEVICE u32 gpu_add32(u64 at, u32 v) { u32 o; asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE u32 gpu_or32(u64 at, u32 v) { u32 o; asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;" : "=r"(o) : "l"(at), "r"(v) : "memory"); return o; }
DEVICE void gpu_max32(u64 at, u32 v) { asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" :: "l"(at), "r"(v) : "memory"); }
// The ring is host memory: system scope, one 8-byte store at a time.
DEVICE void host_store64(u64 at, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(at), "l"(v) : "memory"); }
DEVICE void host_fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
DEVICE void gpu_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Store-then-load order between this thread's own record and the other side's (the store-buffering shape): only a
// sequentially consistent fence forbids both threads from missing each other.
DEVICE void record_fence() { asm volatile("fence.sc." CONSAN_SCOPE ";" ::: "memory"); }

#define SPECIAL(NAME, REGISTER) DEVICE u32 NAME() { u32 v; asm volatile("mov.u32 %0, " REGISTER ";" : "=r"(v)); return v; }
SPECIAL(tid_x, "%%tid.x") SPECIAL(tid_y, "%%tid.y") SPECIAL(tid_z, "%%tid.z")
SPECIAL(ntid_x, "%%ntid.x") SPECIAL(ntid_y, "%%ntid.y") SPECIAL(ntid_z, "%%ntid.z")
SPECIAL(ctaid_x, "%%ctaid.x") SPECIAL(ctaid_y, "%%ctaid.y") SPECIAL(ctaid_z, "%%ctaid.z")
SPECIAL(nctaid_x, "%%nctaid.x") SPECIAL(nctaid_y, "%%nctaid.y") SPECIAL(nctaid_z, "%%nctaid.z")
SPECIAL(sm_id, "%%smid") SPECIAL(lane_id, "%%laneid") SPECIAL(total_shared, "%%total_smem_size")
#undef SPECIAL
DEVICE u64 grid_id() { u64 v; asm volatile("mov.u64 %0, %%gridid;" : "=l"(v)); return v; }
// Shared-space address of the CTA's first own byte: the reserved region, where there is one, lies before it. Its whole size
// is `cap`; `end` is only the end of what the system uses of it (seen on sm_90: begin 0, cap 1024).
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
DEVICE u32 active_mask() { u32 v; asm volatile("activemask.b32 %0;" : "=r"(v)); return v; }
DEVICE u32 lanes_below(u32 mask) { return __popc(mask & ((1u << lane_id()) - 1)); }

DEVICE u32 linear_tid() { return tid_x() + ntid_x() * (tid_y() + ntid_y() * tid_z()); }
DEVICE u32 thread_total() { return ntid_x() * ntid_y() * ntid_z(); }
DEVICE u64 linear_cta() { return ctaid_x() + (u64)nctaid_x() * (ctaid_y() + (u64)nctaid_y() * ctaid_z()); }

#define FIELD(POINTER, TYPE, NAME) ((POINTER) + offsetof(TYPE, NAME))
DEVICE u32 low_word(u64 state) { return (u32)state; }         // own epoch
DEVICE u32 high_word(u64 state) { return (u32)(state >> 32); } // epoch at which this barrier interval began
DEVICE u64 pack(u32 low, u32 high) { return (u64)high << 32 | low; }
