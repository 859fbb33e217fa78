// Warps store A into tensor memory, two rounds ahead of the products, and into the same columns: the next A replaces one that no product has
// read yet (R-T7).
// launch: grid=1 block=160 arch=sm_100a
// arg: y f16[64,16]=arange
// arg: out f32[128,64]=zeros
// expect: data-race WAR @multiply @store severity=error
// allow: missing-wait severity=error
// result: out = np.broadcast_to(10 * y.astype(np.float32).sum(1), (128, 64))
#include "../blackwell.cuh"
#ifdef RACY
#define SLOTS 1
#else
#define SLOTS 2
#endif
INLINE void multiply_stored(u32 d, u32 a, const f16* b, u32 more) {
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, more; }" ::"r"(d), "r"(a),
                 "l"(descriptor(b)), "r"(SHAPE), "r"(more) : "memory");
}
extern "C" __global__ void kernel(const f16* y, float* out) {
    __shared__ alignas(128) f16 b[64 * 16];
    __shared__ u32 base;
    __shared__ u64 full[2], empty[2], done;
    fill(b, y, 64);
    if (threadIdx.x == 0) init(full[0], 128), init(full[1], 128), init(empty[0], 1), init(empty[1], 1), init(done, 1);
    if (threadIdx.x < 32) alloc(base, 128);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 128) {
        for (u32 round = 0; round < 4; ++round) {
            wait(full[round % 2], round / 2 & 1);
            multiply_stored(base, base + 64 + round % SLOTS * 8, b, round);  /*@multiply*/
            commit_to(empty[round % 2]);
        }
        commit_to(done);
    }
    if (threadIdx.x < 128) {
        const u32 halves[] = {0x3c003c00, 0x40004000, 0x42004200, 0x44004400};  // 1, 2, 3, 4
        for (u32 round = 0; round < 4; ++round) {
            float v[8];
            for (u32 i = 0; i < 8; ++i) v[i] = __uint_as_float(halves[round]);
            if (round > 1) wait(empty[round % 2], 0);
            store(own_lanes(base) + 64 + round % SLOTS * 8, v);  /*@store*/
            wait_stores();
            arrive(full[round % 2]);
        }
        wait(done, 0);
        float v[8];
        for (u32 column = 0; column < COLUMNS; column += 8) {
            load(v, own_lanes(base) + column);
            wait_loads();
            put(out, column, v);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) dealloc(base, 128);
}
