// What the kernels of blackwell/ share: names for single tcgen05 instructions, and a product of 128 x 64 x 16 in f16.
#pragma once
#include "hopper.cuh"

constexpr u32 COLUMNS = 64, SHAPE = 0x08100010;  // f16, D in f32, M = 128, N = 64, both operands K-major

INLINE void alloc(u32& base, u32 columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared(&base)), "r"(columns) : "memory");
}
INLINE void relinquish() { asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"); }
INLINE void dealloc(u32 base, u32 columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(columns) : "memory");
}

// Operands lie in 8 x 16 bytes, without swizzle: element (row, k) of `rows` x 16.
INLINE u32 element(u32 row, u32 k) { return row % 8 * 8 + row / 8 * 128 + k / 8 * 64 + k % 8; }
INLINE void fill(f16* operand, const f16* from, u32 rows) {
    for (u32 i = threadIdx.x; i < rows * 16; i += blockDim.x) operand[element(i / 16, i % 16)] = from[i];
}
INLINE u64 descriptor(const void* operand) { return 0x0000401000080000ull | shared(operand) >> 4; }
INLINE void multiply(u32 d, const f16* a, const f16* b, u32 accumulate, u32 shape = SHAPE) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.u32 more, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, more;\n"
        "}" ::"r"(d), "l"(descriptor(a)), "l"(descriptor(b)), "r"(shape), "r"(accumulate) : "memory");
}
// The same with a qualifier for the collector buffer.
#define MULTIPLY(qualifier, d, a, b, accumulate)                                                                                           \
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %4, 0; "                                                                          \
                 "tcgen05.mma.cta_group::1.kind::f16" qualifier " [%0], %1, %2, %3, more; }" ::"r"(d), "l"(descriptor(a)), "l"(descriptor(b)), \
                 "r"(SHAPE), "r"(accumulate) : "memory")
INLINE void copy_4_columns(u32 to, const void* from) {
    asm volatile("tcgen05.cp.cta_group::1.128x128b [%0], %1;" ::"r"(to), "l"(descriptor(from)) : "memory");
}
INLINE void commit_to(u64& barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(&barrier)) : "memory");
}

// What most kernels begin with: operands that products may read, the address of COLUMNS columns for all threads, and an mbarrier.
INLINE void prepare(f16* a, const f16* x, f16* b, const f16* y, u32& base, u64& done) {
    fill(a, x, 128), fill(b, y, 64);
    if (threadIdx.x == 0) init(done, 1);
    if (threadIdx.x < 32) alloc(base, COLUMNS);
    fence_async_shared();
    __syncthreads();
}

// Eight columns of the lane of each thread.
INLINE u32 own_lanes(u32 base) { return base + (threadIdx.x / 32 % 4 * 32 << 16); }
INLINE void load(float (&v)[8], u32 from) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]) : "r"(from) : "memory");
}
INLINE void store(u32 to, const float (&v)[8]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};"
                 ::"f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6]), "f"(v[7]), "r"(to) : "memory");
}
INLINE void wait_loads() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
INLINE void wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
INLINE void fence_before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
INLINE void fence_after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
INLINE void put(float* out, u32 column, const float (&v)[8]) {
    for (u32 i = 0; i < 8; ++i) out[threadIdx.x * COLUMNS + column + i] = v[i];
}

// ---- cluster launch control ----
struct alignas(16) Response {
    u32 words[4];
};
INLINE void request(Response& response, u64& barrier) {
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                 ::"r"(shared(&response)), "r"(shared(&barrier)) : "memory");
}
INLINE void request_for_all(Response& response, u64& barrier) {
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];"
                 ::"r"(shared(&response)), "r"(shared(&barrier)) : "memory");
}
// Whether a cluster was cancelled; then %ctaid.x of its first CTA.
INLINE bool taken(const Response& response, u32& x) {
    u32 found;
    asm volatile(
        "{\n"
        ".reg .b128 q;\n"
        ".reg .pred p;\n"
        "ld.shared.b128 q, [%2];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, q;\n"
        "}" : "=r"(found), "+r"(x) : "r"(shared(&response)) : "memory");
    return found;
}
// The same without a test.
INLINE u32 first_of(const Response& response) {
    u32 x;
    asm volatile(
        "{\n"
        ".reg .b128 q;\n"
        "ld.shared.b128 q, [%1];\n"
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, q;\n"
        "}" : "=r"(x) : "r"(shared(&response)) : "memory");
    return x;
}
