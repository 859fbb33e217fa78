// What the Hopper kernels of twins/ and clean/ share: names for single PTX instructions, and the smallest wgmma there is.
#pragma once
typedef unsigned int u32;
typedef unsigned long long u64;

#define INLINE __device__ __forceinline__

struct alignas(64) TensorMap {
    u64 words[16];
};

INLINE u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// ---- mbarriers ----
INLINE void init(u64& barrier, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(&barrier)), "r"(count) : "memory"); }
INLINE void arrive(u64& barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(&barrier)) : "memory"); }
INLINE void expect(u64& barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&barrier)), "r"(bytes) : "memory");
}
INLINE void wait(u64& barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared(&barrier)), "r"(parity) : "memory");
}

// ---- proxies ----
INLINE void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
INLINE void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
INLINE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- bulk copies ----
INLINE void bulk_load(void* to, const void* from, u32 bytes, u64& barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared(&barrier)) : "memory");
}
INLINE void bulk_store(void* to, const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(__cvta_generic_to_global(to)), "r"(shared(from)), "r"(bytes) : "memory");
}
INLINE void bulk_add(void* to, const void* from, u32 bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
                 ::"l"(__cvta_generic_to_global(to)), "r"(shared(from)), "r"(bytes) : "memory");
}
INLINE void tensor_load(void* to, const TensorMap& map, int x, int y, u64& barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(shared(&barrier)) : "memory");
}
INLINE void tensor_store(const TensorMap& map, int x, int y, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&map), "r"(x), "r"(y), "r"(shared(from)) : "memory");
}
INLINE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int PENDING> INLINE void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory"); }
template <int PENDING> INLINE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory"); }

// ---- cp.async ----
INLINE void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(to)), "l"(__cvta_generic_to_global(from)) : "memory");
}
INLINE void copy_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// ---- wgmma: D (64 x 8, f32) = A (64 x 16, f16) * B (8 x 16, f16) transposed ----
typedef unsigned short f16;  // only its bits are moved about
enum { A_BYTES = 64 * 16 * 2, B_BYTES = 8 * 16 * 2 };

// Operands without a swizzle, K innermost: blocks of 8 rows by 16 bytes, first along K.
INLINE u32 place(u32 row, u32 k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

INLINE u64 descriptor(u32 address, u32 leading, u32 stride, u64 swizzle) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | swizzle << 62;
}
INLINE u64 operand(const void* tile) { return descriptor(shared(tile), 128, 256, 0); }

INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Values that the compiler has in registers here, and not later.
INLINE void keep(float (&d)[4]) { asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory"); }
template <int PENDING> INLINE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
template <int TRANSPOSE_B = 0, int TRANSPOSE_A = 0> INLINE void multiply(float (&d)[4], u64 a, u64 b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %6, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, add, 1, 1, %8, %7;\n"
        "}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(add), "n"(TRANSPOSE_B), "n"(TRANSPOSE_A));
}
// A in registers: a thread has two values of each of its two rows, in both halves of K.
INLINE void load_fragment(u32 (&a)[4], const f16* x) {
    u32 t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, k = t % 4 * 2;
    for (u32 i = 0; i < 4; i++) a[i] = *(const u32*)&x[(row + i % 2 * 8) * 16 + k + i / 2 * 8];
}
INLINE void multiply_fragment(float (&d)[4], const u32 (&a)[4], u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// The threads of a warpgroup write its 64 x 8 results.
INLINE void write_result(float* out, const float (&d)[4]) {
    u32 t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    out[row * 8 + column] = d[0];
    out[row * 8 + column + 1] = d[1];
    out[(row + 8) * 8 + column] = d[2];
    out[(row + 8) * 8 + column + 1] = d[3];
}

// A warpgroup writes both operands with ordinary stores, from row-major matrices.
INLINE void fill_operands(f16* a, f16* b, const f16* x, const f16* y) {
    u32 t = threadIdx.x % 128;
    for (u32 i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    if (t < 8 * 16) b[place(t / 16, t % 16)] = y[t];
}
